/* From a list of hosts, tried in order, to their addresses: a look-up for each.
 *
 * The place in the list becomes the preference: sched_hosts_order() then passes over
 * a host that fails until it works again. */
#ifndef SMTP_CONNECT_RELAYHOSTS_H
#define SMTP_CONNECT_RELAYHOSTS_H

#include "sched/route/route.h"
#include "smtp/connect/mx_lookup.h"

struct net;
struct relayhosts;

enum { RELAYHOSTS_WAIT_MS = 2000, RELAYHOSTS_PREFERENCES = 65536 };

/* For a TARGET_SMTP. query: its port is for hosts without one, its address_limit for
 * each host, less when the list is long; its name is not used. As mx_lookup_find(), but
 * the preferences are the place in the list times RELAYHOSTS_PREFERENCES, plus that of
 * the MX. A host that cannot be found is omitted; so is one whose look-up takes
 * RELAYHOSTS_WAIT_MS longer than that of another. */
struct relayhosts *relayhosts_find(struct loop *loop, struct net *net, struct dns *dns,
                                   const struct target *target,
                                   const struct mx_lookup_query *query,
                                   mx_lookup_found *done, void *context);
void relayhosts_free(struct relayhosts **relays);
/* Its host's place in the list. */
size_t relayhosts_place(const struct mx_lookup_host *host);

#endif
