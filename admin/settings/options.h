/* Every setting of Petrel: one row, one field (petrel.conf(5)).
 *
 * The rows are the only place that knows a key's name, default and help; config.example
 * and petrel.conf(5) are made from them. Most fields are in sections, which are structs of
 * the rooms that take them; admin/startup hands these on. */
#ifndef ADMIN_SETTINGS_OPTIONS_H
#define ADMIN_SETTINGS_OPTIONS_H

#include "admin/history/history.h"
#include "base/dns/dns.h"
#include "base/log/log.h"
#include "base/settings/settings.h"
#include "defrag/channel.h"
#include "base/event/event_post.h"
#include "queue/copies/copies_settings.h"
#include "queue/manager/manager.h"
#include "sched/route/rewrites.h"
#include "sched/route/route.h"
#include "smtp/delivery/delivery.h"
#include "smtp/session/listener.h"

enum options_sandbox { SANDBOX_YES, SANDBOX_NO, SANDBOX_REQUIRE };

struct options {
    /* the host */
    char *hostname, *spool, *user, *control;
    char *http, *http_names, *http_token, *http_read_token, *http_keys;
    char *log_to;
    enum log_style log_style;
    enum log_level log_level;
    enum log_addresses log_addresses;
    enum options_sandbox sandbox;
    bool show_subjects;
    int64_t metrics_sites;
    char *ready_when;
    int64_t canary_interval_ms, canary_grace_ms;
    int64_t slices, slice;
    int64_t message_size_limit;
    int64_t drain_timeout_ms, drain_delay_ms, hand_over_timeout_ms;
    bool hands_over;      /* stop = hand_over */
    bool without_secrets; /* no setting: of the sources below */
    /* where to */
    char *routes, *sender_routes, *rewrite, *relay, *relay_password, *auth_passwords,
        *oauth;
    char *local, *local_domains, *aliases, *root, *srs_domain, *srs_secret, *bounces;
    bool srs;
    /* out */
    char *dkim_keys, *dns_servers, *tls_ca;
    enum dns_trust dns_trust;
    bool no_dane;
    int64_t mta_sts_port;
    /* parsed into `transport` */
    char *destination_rate, *positive_feedback, *negative_feedback;
    /* message/partial */
    char *defrag_registry, *defrag_registry_password, *defrag_host, *defrag_peers;
    /* group of hosts */
    char *cluster, *cluster_host, *cluster_redis, *cluster_redis_password;
    char *cluster_peers, *cluster_egress, *cluster_address, *cluster_secret;
    struct copies_options copies;
    /* events for programs */
    char *events_types;
    int64_t events_max;

    /* Sections, as the rooms take them that use them. Settings of several rooms are
     * above: options_fill_sections() copies them. */
    struct listener_settings server;
    struct delivery_settings delivery;
    struct manager_settings manager;
    struct transport_params transport; /* which routes may override */
    struct channel_settings fragments;
    struct history_settings history;
    struct event_post_settings post;
};

extern const struct setting options_rows[];

/* The sources of settings; each may be NULL. */
struct options_sources {
    const char *file;       /* -c */
    char *const *overrides; /* -o, NULL-ended */
    char *const *environment;
    bool without_secrets; /* the command needs none: they are not read, nor missed */
    bool careful;         /* sendmail(1) is called in any directory: it passes over a
                     ./petrel.conf of others, which is an error elsewhere */
    bool runs;            /* a reload: no file is waited for */
};

/* Reads all sources (without -c: $PETREL_CONFIG, ./petrel.conf,
 * /etc/petrel/petrel.conf). ./petrel.conf and its directory must belong to the caller or
 * root, and nobody else may write them. Fills settings that depend on the machine (hostname, spool,
 * control, local_domains) and checks each value by itself. Errors are collected in the
 * settings: settings_errors(). Free the settings to free the options' strings. */
struct settings *options_read(const struct options_sources *sources,
                              struct options *options);

/* Fills in the sections what several of them have: as options_read() does, after
 * settings_apply(). */
void options_fill_sections(struct options *options);

enum { OPTIONS_RESTART_MAX = 384 };

/* Writes the keys, with commas between them, that differ and that a reload leaves as
 * they were at the start. "": none. */
void options_need_restart(const struct options *old, const struct options *fresh,
                          char out[OPTIONS_RESTART_MAX]);

/* The name by which other hosts of a registry know this one: defrag_host, or the
 * hostname. */
const char *options_host_of(const struct options *o);
/* Whether ready_when names smarthosts. */
bool options_ready_needs_upstream(const struct options *options);
/* The greatest age that ready_when allows the oldest message; 0: any. */
int64_t options_ready_age_ms(const struct options *options);
/* The path of the syslog socket, or NULL: standard error. */
const char *options_log_socket(const struct options *options);
/* defrag_max_total; its default is less on a small file system. */
int64_t options_fragments_max(const struct options *options,
                              const struct settings *settings, struct disk *spool);
/* The directory that dkim_keys names; NULL: it has rows, or is not set. */
const char *options_key_directory(const struct options *options);
/* config.example, on standard output. */
void options_print_example(void);
/* The caller frees. NULL with one line per error. */
struct rewrites *options_rewrites(const struct options *options,
                                  const struct settings *settings,
                                  struct buffer *errors);
struct route_table *options_routes(const struct options *options,
                                   struct buffer *errors);

#endif
