/* Every setting of Petrel: one row, one field (petrel.conf(5)).
 *
 * The rows are the only place that knows a key's name, default and help; config.example
 * and petrel.conf(5) are made from them. admin/startup hands the values on to the modules. */
#ifndef ADMIN_SETTINGS_OPTIONS_H
#define ADMIN_SETTINGS_OPTIONS_H

#include "queue/manager/manager.h"
#include "base/dns/dns.h"
#include "base/log/log.h"
#include "base/settings/settings.h"
#include "sched/route/rewrites.h"
#include "sched/route/route.h"

struct options {
    /* the host */
    char *hostname, *spool, *user, *control;
    char *http, *http_names, *http_token, *http_read_token;
    char *log_style, *log_to, *log_level, *sandbox;
    int64_t metrics_sites, history_size, history_age_ms;
    char *ready_when;
    char *events, *events_secret, *events_types;
    int64_t events_batch, events_linger_ms, events_max;
    int64_t canary_interval_ms, canary_grace_ms;
    /* in */
    char *tls_certificate, *tls_key;
    char *listen, *relay_from, *proxy_from, *etrn, *mt_priority;
    char *client_session_rate, *client_message_rate, *client_recipient_rate;
    char *server_session_rate, *server_message_rate, *server_recipient_rate,
        *rate_exempt;
    bool check_helo, check_sender;
    char *auth_users, *auth_cleartext, *sender_login, *sender_domains, *quotas;
    int64_t auth_failure_limit, server_tls_session_limit;
    bool allow_open_relay, tls_legacy;
    int64_t message_size_limit, recipient_limit;
    int64_t server_session_limit, client_session_limit;
    int64_t hopcount_limit, smtpd_hard_error_limit, smtpd_soft_error_limit;
    int64_t smtpd_error_sleep_time_ms, smtpd_junk_command_limit, greet_delay_ms;
    int64_t smtpd_starttls_timeout_ms;
    int64_t smtpd_timeout_ms, smtpd_data_timeout_ms, smtpd_min_data_rate;
    int64_t drain_timeout_ms, drain_delay_ms, hand_over_timeout_ms;
    char *stop; /* "keep" or "hand_over" */
    /* where to */
    char *routes, *sender_routes, *rewrite, *bounce_sender, *relay, *relay_password,
        *auth_passwords, *oauth;
    char *local, *local_domains, *aliases, *root, *srs_domain, *srs_secret;
    bool srs;
    bool without_secrets; /* no setting: of the sources below */
    /* out */
    char *dkim_keys;
    char *dns_servers, *dns_trust, *dane, *smtp_bind, *smtp_family, *tls_ca;
    int64_t smtp_port, smtp_connect_timeout_ms, smtp_mx_address_limit;
    bool mta_sts;
    int64_t mta_sts_port;
    int64_t smtp_min_data_rate;
    int64_t smtp_connection_cache_time_limit_ms;
    /* scheduler */
    int64_t active_limit, active_recipient_limit, delivery_session_limit;
    int64_t initial_concurrency, concurrency_limit, recipients_per_delivery;
    int64_t failed_cohort_limit, rate_delay_ms, transport_rate_delay_ms, reuse_limit;
    int64_t site_active_share, bulk_size;
    bool adaptive, sender_turns;
    char *destination_rate, *providers;
    int64_t slot_cost, slot_loan, slot_discount, minimum_slots;
    char *positive_feedback, *negative_feedback;
    int64_t minimal_backoff_ms, maximal_backoff_ms, lifetime_ms, bounce_lifetime_ms;
    int64_t delay_warning_ms;
    int64_t bounce_size_limit;
    /* message/partial */
    int64_t defrag_parts, defrag_set_size, defrag_sets;
    int64_t defrag_sender_sets, defrag_size;
    int64_t defrag_client_sets;
    char *defrag_on_timeout, *defrag_key, *partial_policy;
    bool defrag_subject_fallback;
    char *defrag_registry, *defrag_registry_password, *defrag_host, *defrag_peers;
    /* group of hosts */
    char *cluster, *cluster_host, *cluster_redis, *cluster_redis_password;
    char *cluster_peers, *cluster_egress, *cluster_address, *cluster_secret;
    /* queue */
    int64_t journal_size, journal_message_max, slices, slice;
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

enum { OPTIONS_RESTART_MAX = 384 };

/* Writes the keys, with commas between them, that differ and that a reload leaves as
 * they were at the start. "": none. */
void options_need_restart(const struct options *old, const struct options *fresh,
                          char out[OPTIONS_RESTART_MAX]);

/* The name by which other hosts of a registry know this one: defrag_host, or the
 * hostname. */
const char *options_host_of(const struct options *o);
enum log_style options_log_style(const struct options *options);
/* stop = hand_over. */
bool options_hands_over(const struct options *options);
enum dns_trust options_dns_trust(const struct options *options);
bool options_dane(const struct options *options);
/* Whether ready_when names smarthosts. */
bool options_ready_needs_upstream(const struct options *options);
/* The greatest age that ready_when allows the oldest message; 0: any. */
int64_t options_ready_age_ms(const struct options *options);
enum target_family options_family(const struct options *options);
enum log_level options_log_level(const struct options *options);
/* The path of the syslog socket, or NULL: standard error. */
const char *options_log_socket(const struct options *options);
enum options_sandbox { SANDBOX_NO, SANDBOX_YES, SANDBOX_REQUIRE };
enum options_sandbox options_sandbox(const struct options *options);
enum options_timeout { TIMEOUT_RELEASE, TIMEOUT_BOUNCE, TIMEOUT_HOLD };
enum options_timeout options_timeout(const struct options *options);
enum options_keying { KEYING_SENDER, KEYING_ID, KEYING_STRICT };
enum options_keying options_keying(const struct options *options);
bool options_refuse_partial(const struct options *options);
/* defrag_max_total; its default is less on a small file system. */
int64_t options_fragments_max(const struct options *options,
                              const struct settings *settings, struct disk *spool);
/* The directory that dkim_keys names; NULL: it has rows, or is not set. */
const char *options_key_directory(const struct options *options);
/* The scheduling defaults that routes may override. */
struct transport_params options_transport(const struct options *options);
/* The settings of the queue; spool is borrowed from the options. */
struct manager_settings options_manager(const struct options *options, uint64_t seed);
struct queue_settings options_queue(const struct options *options);
/* config.example, on standard output. */
void options_print_example(void);
/* The caller frees. NULL with one line per error. */
struct rewrites *options_rewrites(const struct options *options,
                                  const struct settings *settings,
                                  struct buffer *errors);
struct route_table *options_routes(const struct options *options,
                                   struct buffer *errors);

#endif
