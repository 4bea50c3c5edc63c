/* The settings as read once, checked as a whole, and the parts of them for each part of
 * the daemon. */
#ifndef ADMIN_STARTUP_CONFIGURATION_H
#define ADMIN_STARTUP_CONFIGURATION_H

#include "admin/findings/faults.h"
#include "admin/settings/accounts.h"
#include "admin/settings/alias_files.h"
#include "admin/settings/options.h"
#include "admin/settings/sandbox_rules.h"
#include "admin/http/http_server.h"
#include "defrag/registry/registry.h"
#include "queue/copies/copies_settings.h"
#include "queue/group/group_settings.h"
#include "smtp/delivery/delivery.h"
#include "defrag/channel.h"
#include "smtp/trust/security.h"
#include "smtp/peer/peer.h"
#include "smtp/session/listener.h"

enum { CONFIGURATION_ERRORS_MAX = 64 * 1024 }; /* bytes */

struct configuration {
    struct options options;
    struct settings *settings;
    struct route_table *routes;
    struct rewrites *rewrites;
    struct aliases *aliases;         /* NULL: none are set, or (without secrets) */
    struct alias_files *alias_files; /* they cannot be read */
    struct registry_place registry;
    struct group_settings group;
    struct copies_settings copies;
    struct net_address *peer_doors; /* `listen` with ?peer; NULL: there is none */
    size_t peer_door_count;
    struct accounts accounts;
    struct http_places http;
    struct post_keys *post_keys; /* NULL: http_keys is not set */
    struct dkim_keys *dkim_keys; /* until delivery takes them, and anchors */
    struct tls_client *anchors;  /* from configuration_trust() on */
    struct buffer errors;
    /* Until configuration_end(). */
    struct dkim_keys_reading *reading;
    struct alias_files_reading *reading_aliases;
    struct buffer unused; /* errors of files that only the daemon can read */
};

/* Reads and checks all settings, also those of listeners, unless the sources have no
 * secrets. NULL: with one line per error in out. */
struct configuration *configuration_read(const struct options_sources *sources,
                                         struct buffer *out);
/* Whether there would be one. */
bool configuration_is_good(const struct options_sources *sources,
                           struct buffer *errors);
/* The same in parts, for a loop that serves others: thousands of keys of dkim_keys and
 * names of aliases are not read in one turn. configuration_end() takes c;
 * configuration_free() may end it. */
struct configuration *configuration_begin(const struct options_sources *sources);
/* True: there is nothing more to read. */
bool configuration_go_on(struct configuration *c);
struct configuration *configuration_end(struct configuration *c, struct buffer *out);
/* The same. NULL: the errors were written to standard error. */
struct configuration *configuration_new(const struct options_sources *sources);
/* Frees *c unless it is NULL, and sets it to NULL. */
void configuration_free(struct configuration **c);

/* Reads the certificates that outgoing TLS trusts: c->anchors. Not for every command:
 * reading a bundle takes time. log says which one it was, unless it is NULL. False: one
 * line in error. */
bool configuration_trust(struct configuration *c, struct log *log, char *error,
                         size_t size) __attribute__((warn_unused_result));

/* Warnings about settings that faults.h does not know; before the keys are taken. log
 * may be NULL: on standard error. */
void configuration_warn(const struct configuration *c, struct log *log);

/* These borrow from the options and routes. The first: the objects that judges of faults
 * ask. */
struct fault_world configuration_faults(const struct configuration *c);
struct sandbox_rules configuration_sandbox(const struct configuration *c);
struct http_server_settings configuration_http(const struct configuration *c);
struct peer_settings configuration_peer(const struct configuration *c);

/* sendmail -bs. Any user may run this, so that it gets settings without secrets and the
 * injector's side of the queue. A sysexits code. */
int configuration_serve_standard(const struct options *options);

#endif
