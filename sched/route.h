/* Where mail for an address goes: the table of `routes`, `relay`, `local` (pure).
 *
 * First match wins. PATTERN: user@domain, domain, .domain (sub-domains), *. A recipient
 * in local_domains that only the pattern * would match goes to the `local` target; when
 * that is unset it goes where * says, unless that is mx (or nothing): then it is
 * unknown, since an MX look-up of our own domain only finds ourselves. relay takes the
 * place of a last `* mx`. What nothing matches goes by MX. */
#ifndef SCHED_ROUTE_H
#define SCHED_ROUTE_H

#include "mime/address.h"
#include "sched/transport.h"

enum target_kind {
    TARGET_MX,   /* look up the recipient's domain */
    TARGET_SMTP, /* a named host */
    TARGET_LMTP,
    TARGET_MAILDIR,
    TARGET_HOLD,
    TARGET_DISCARD,
    TARGET_ERROR,  /* refused at RCPT when possible, else bounced */
    TARGET_UNKNOWN /* local domain without a mailbox: 550 5.1.1 */
};
enum { TARGET_HOST_MAX = 256, TARGET_PATH_MAX = 1024 };

struct target {
    enum target_kind kind;
    char host[TARGET_HOST_MAX]; /* name or bare IP literal; "" for Unix sockets */
    bool look_up_mx;            /* SMTP: the host's MX first? Only with ?mx=yes */
    uint16_t port;              /* 0 = smtp_port for MX */
    char path[TARGET_PATH_MAX]; /* Unix socket; Maildir with %u %d; ERROR text */
    char enhanced[12];          /* ERROR */
    bool create;                /* MAILDIR ?create=yes: make missing user directories */
    struct transport transport; /* scheduling, with this route's options applied */
    double timeout_scale;       /* multiplies the RFC 5321 §4.5.3.2 time-outs */
};

struct route_table;

/* All texts may be empty. base = the default_* settings, which a route's options
 * override. One line per mistake is added to mistakes ("routes: 'x y': ..."); NULL
 * then. */
struct route_settings {
    struct text routes, relay, local, local_domains;
    uint16_t smtp_port;
    struct transport base;
};
struct route_table *route_new(const struct route_settings *settings,
                              struct buffer *mistakes);
void route_free(struct route_table **table);

/* Never NULL; borrowed from the table. A bare "postmaster" (no domain) is looked up
 * with the first of local_domains. Plus-addresses match their full spelling only. */
const struct target *route_find(const struct route_table *table,
                                const struct address *address);
/* The same for what an operator has released: routes that say hold do not count. */
const struct target *route_find_past_hold(const struct route_table *table,
                                          const struct address *address);
bool route_is_local_domain(const struct route_table *table, struct text domain);

/* Every target of the table, in no order, once for each pattern. */
void route_each_target(const struct route_table *table,
                       void (*each)(void *context, const struct target *target),
                       void *context);

/* The key under which all mail for the same next hop is one destination queue:
 * "smtp:example.org", "smtp:[mail.example.org]:587", "lmtp:unix:/path", "maildir".
 * Lower case, but for paths. */
enum { ROUTE_KEY_MAX = 1100 };
size_t route_key(const struct target *target, struct text domain,
                 char out[ROUTE_KEY_MAX]);

#endif
