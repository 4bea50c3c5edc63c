/* Decides which clients may send mail to which recipients. Plain values, no session, no
 * socket.
 *
 * The rule against open relaying: a client outside relay_from may send mail only to
 * local_domains (and postmaster), and not to a local part that a next hop could interpret
 * as a source route. */
#ifndef SMTP_ACCESS_POLICY_H
#define SMTP_ACCESS_POLICY_H

#include "base/net_place.h"
#include "base/outcome.h"
#include "sched/route/route.h"
#include "smtp/access/networks.h"

struct policy {
    struct networks networks; /* relay_from */
    char **flushed;           /* etrn: domains, and .domains */
    size_t flushed_count;
    bool flushes_relayed; /* etrn: relay */
    bool priority;        /* mt_priority is not off */
    bool priority_of_all; /* mt_priority: all */
};

/* Reads relay_from (a list). Adds one line per error to errors; false then.
 * Networks that networks_open() names are an error unless allow_open_relay. */
bool policy_read(struct policy *policy, struct text relay_from, bool allow_open_relay,
                 struct buffer *errors) __attribute__((warn_unused_result));
void policy_free(struct policy *policy);
/* Reads etrn, after policy_read(): the words relay and off (alone), domain,
 * .domain (sub-domains). */
bool policy_read_etrn(struct policy *policy, struct text etrn, struct buffer *errors)
    __attribute__((warn_unused_result));

/* Reads mt_priority: off, trusted (clients that may relay) or all. */
bool policy_read_priority(struct policy *policy, struct text mt_priority,
                          struct buffer *errors) __attribute__((warn_unused_result));

/* True for a network of relay_from, and for a Unix socket: file permissions protect
 * it. */
bool policy_may_relay(const struct policy *policy, const struct net_address *client);

/* True: ETRN is permitted for some domain. */
bool policy_flushes(const struct policy *policy);
/* True: ETRN is permitted for the domain. The word relay permits the domains of
 * local_domains whose mail a route sends to another host. */
bool policy_may_flush(const struct policy *policy, const struct route_table *routes,
                      struct text domain);

/* True: mail from sender (as in route_find_from()) to recipient is accepted. False with
 * the refusal: 554 5.7.1 relay denied, 550 5.1.1 no such mailbox, the text of `error:`, or
 * 550 5.7.10, where the route cannot give the TLS that the sender asks for. The only I/O is
 * the look-up of a Maildir. */
bool policy_recipient(const struct route_table *routes, bool may_relay,
                      struct text sender, enum target_asks asks,
                      const struct address *recipient, struct outcome *refusal)
    __attribute__((warn_unused_result));

/* The first half of policy_recipient(): whether the client may send to the domain at
 * all. False: 554 5.7.1. */
bool policy_reaches(const struct route_table *routes, bool may_relay,
                    const struct address *recipient, struct outcome *refusal)
    __attribute__((warn_unused_result));

/* True: fragments from sender to recipient are reassembled. */
bool policy_joins(const struct route_table *routes, struct text sender,
                  const struct address *recipient);

/* --- The setting `listen` ----------------------------------------------------- */

enum endpoint_auth {
    ENDPOINT_AUTH_DEFAULT,
    ENDPOINT_AUTH_NO,
    ENDPOINT_AUTH_OFFERED,
    ENDPOINT_AUTH_REQUIRED
};
enum { ENDPOINTS_MAX = 64 };
struct endpoint {
    struct net_address address;
    bool lmtp;
    bool tls;         /* from the first byte */
    bool no_starttls; /* not offered */
    bool proxy;       /* each connection begins with a header of a proxy */
    bool peer;        /* the peer door of a group of hosts: no mail of clients */
    bool legacy; /* profile=legacy: bare LF (normalize_newlines.h), cleartext AUTH */
    bool shared; /* by the processes of other slices */
    enum endpoint_auth auth;
    struct net_users users; /* mode 0: 0666 */
};

/* The list of ADDRESS:PORT[?OPTION&...] and unix:PATH[?...]; *endpoints is malloc'ed.
 * False with one line per error. */
bool policy_endpoints_read(struct text listen, struct endpoint **endpoints,
                           size_t *count, struct buffer *errors)
    __attribute__((warn_unused_result));
/* Keeps those that are peer doors, or those that are not. */
void policy_endpoints_keep(struct endpoint *endpoints, size_t *count, bool peer);
/* True: reachable from the internet, that is not a loopback, private (RFC 1918, 6598,
 * 4193) or link-local address and not a Unix socket. */
bool policy_endpoint_is_public(const struct endpoint *endpoint);

/* --- HELO and envelope ------------------------------------------------------------ */

/* Checks of HELO and envelope of untrusted clients, without look-ups: decisions on plain
 * values. Clients that may relay are not checked. */
struct policy_checks {
    bool helo, sender; /* check_helo, check_sender */
};

/* At MAIL, after AUTH. helo: as received; hostname and own: our name and address (own may
 * be a Unix socket). False with the refusal:
 *
 *   check_helo    550 5.7.1  HELO is neither a domain with a dot nor an address literal
 *                 550 5.7.1  HELO is our own name or address
 *   check_sender  550 5.1.8  the domain of the sender has no dot: replies would fail */
bool policy_check_mail(const struct policy_checks *rules, struct text helo,
                       struct text sender, const char *hostname,
                       const struct net_address *own, struct outcome *refusal)
    __attribute__((warn_unused_result));

/* At RCPT, after accepted recipients: with check_sender, a message with the null sender
 * (a bounce) has one recipient; the others get 452 4.5.3, and the client sends them
 * separately. */
bool policy_check_recipient(const struct policy_checks *rules, struct text sender,
                            unsigned accepted, struct outcome *refusal)
    __attribute__((warn_unused_result));

#endif
