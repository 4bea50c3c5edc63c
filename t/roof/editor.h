/* The editor of settings: legal values of every setting that a reload may change, from
 * the table of settings, and the routes of the run. */
#ifndef T_ROOF_EDITOR_H
#define T_ROOF_EDITOR_H

#include "base/buffer.h"

#include <stdint.h>

/* Settings as a host begins with them. */
void editor_begin(const char *const *targets, const char *const *domains,
                  unsigned domain_count, unsigned permille);
/* Listeners with TLS, and routes that demand it. */
void editor_begin_tls(void);
/* Domains by MX may have policies of MTA-STS. */
void editor_begin_policies(void);
/* Lines for each file from now on; borrowed. */
void editor_add(const char *lines);
/* The setting is in such lines, and does not change. */
void editor_keep(const char *key);
/* Mail lives for minutes or hours; life and notice: at first. */
void editor_begin_ages(int64_t life_ms, int64_t notice_ms);
/* As by default, from the next reload on. */
void editor_end_ages(void);
/* For each route by SMTP or LMTP. */
void editor_add_option(const char *option);
/* Lines of more routes; borrowed. NULL: none. */
void editor_add_routes(const char *lines);
/* Users may log in, and the host does at the hop of this domain, as user. */
void editor_begin_logins(void);
void editor_log_in(unsigned domain, unsigned user);
/* The same as user t0, with a token (token.h). */
void editor_log_in_by_token(unsigned domain);
/* The least that the route of a domain has ever demanded. */
enum editor_tls {
    EDITOR_TLS_NONE,
    EDITOR_TLS_MAY,
    EDITOR_TLS_ENCRYPT,
    EDITOR_TLS_VERIFY
};
enum editor_tls editor_tls_of(unsigned domain);
/* Other values for a few of them; only: of keys with this in their name, or NULL. */
void editor_change(const char *only);
/* All as by default, but for those that wait for a start. */
void editor_forget(void);
/* Values that wait for a start. */
void editor_change_at_start(void);
/* The same: a journal of this size, and mail of any usual size in it. */
void editor_set_journal(int64_t size);
/* The options of one route: "rate=1/s". */
void editor_set_route(unsigned domain, const char *options);
/* The same for the whole run; borrowed. */
void editor_pin_route(unsigned domain, const char *options);
/* written() comes with each file. */
void editor_on_write(void (*written)(struct text content));
/* The value of one setting; "": its default. */
void editor_set(const char *key, const char *value);
/* Writes the file of the host. */
void editor_write(void);

/* Over all that were ever in force. */
struct editor_bounds {
    int64_t backoff_ms;                /* the longest */
    int64_t life_ms, life_most_ms;     /* of mail, the shortest, and the longest */
    int64_t notice_ms, notice_most_ms; /* the age at a notification; INT64_MAX: off */
    int64_t pace_ms;                   /* between two recipients, the slowest */
    int64_t sessions, active, recipients; /* the most; recipients of a transaction */
    int64_t in_memory, clients; /* recipients in memory; sessions of clients */
};
const struct editor_bounds *editor_bounds(void);
/* The most sessions that the route of a domain ever permitted; INT64_MAX: no limit. */
int64_t editor_window(unsigned domain);

#endif
