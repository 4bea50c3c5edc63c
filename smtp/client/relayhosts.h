/* From a list of hosts, tried in order, to their addresses: an exchange for each.
 *
 * What the first of a list is, is the best preference of a domain: who orders addresses
 * by health (manager_hosts_order()) passes over a host that fails until it works again.
 */
#ifndef SMTP_RELAYHOSTS_H
#define SMTP_RELAYHOSTS_H

#include "sched/route/route.h"
#include "smtp/client/mx_lookup.h"

struct net;
struct relayhosts;

enum { RELAYHOSTS_PATIENCE_MS = 2000, RELAYHOSTS_PREFERENCES = 65536 };

/* For a TARGET_SMTP; address_limit is for each host, less when the list is long. As
 * mx_lookup_find(): the answer's preferences are the place in the list times
 * RELAYHOSTS_PREFERENCES, and more. A host that cannot be found is left out; those
 * whose look-up takes RELAYHOSTS_PATIENCE_MS more than that of another are not waited
 * for. */
struct relayhosts *relayhosts_find(struct loop *loop, struct net *net, struct dns *dns,
                                   const struct target *target, uint16_t default_port,
                                   int address_limit, mx_lookup_found *done,
                                   void *context);
void relayhosts_free(struct relayhosts **relays);
/* Which host of the list it is. */
size_t relayhosts_place(const struct mx_lookup_host *host);

#endif
