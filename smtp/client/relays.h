/* From a list of hosts, tried in order, to their addresses: an exchange for each.
 *
 * What the first of a list is, is the best preference of a domain: who orders addresses
 * by health (manager_hosts_order()) passes over a host that fails until it works again.
 */
#ifndef SMTP_RELAYS_H
#define SMTP_RELAYS_H

#include "sched/route/route.h"
#include "smtp/client/exchange.h"

struct relays;

enum { RELAYS_PATIENCE_MS = 2000, RELAYS_PREFERENCES = 65536 };

/* For a TARGET_SMTP; address_limit is for each host, less when the list is long. As
 * exchange_find(): the answer's preferences are the place in the list times
 * RELAYS_PREFERENCES, and more. A host that cannot be found is left out; those whose
 * look-up takes RELAYS_PATIENCE_MS more than that of another are not waited for. */
struct relays *relays_find(struct loop *loop, struct net *net, struct dns *dns,
                           const struct target *target, uint16_t default_port,
                           int address_limit, exchange_found *done, void *context);
void relays_free(struct relays **relays);
/* Which host of the list it is. */
size_t relays_place(const struct exchange_host *host);

#endif
