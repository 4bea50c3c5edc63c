/* The hosts that share sets of fragments with us: `defrag_host`, `defrag_peers`. Pure.
 *
 * A fragment whose set belongs to another host is forwarded to that host directly, at
 * the address configured here, never by MX. A client that connects from one of these
 * addresses is trusted as a peer (doc/defragment.md "Hosts"). */
#ifndef SCHED_ROUTE_PEERS_H
#define SCHED_ROUTE_PEERS_H

#include "base/net_address.h"
#include "sched/route/route.h"

enum { PEERS_MAX = 256, PEERS_NAME_MAX = 255 };

struct peers;

/* host: our NAME, or NAME=ADDRESS[:PORT]; list: of NAME=ADDRESS[:PORT], or
 * NAME=smtp://... with a route's options. Our own entry may be in the list, so that all
 * hosts can have the same. */
struct peers_settings {
    struct text host, list;
    uint16_t smtp_port;
    const struct transport_params *base;
};
/* NULL with one line per error ("defrag_peers: ..."). */
struct peers *peers_new(const struct peers_settings *settings, struct buffer *errors);
void peers_free(struct peers **peers);

/* In lower case. */
const char *peers_own_name(const struct peers *peers);
/* The local address of connections to the others, port 0. NULL: the system chooses. */
const struct net_address *peers_own_address(const struct peers *peers);
/* The target of one of the others. NULL: no such host. */
const struct target *peers_find(const struct peers *peers, struct text name);
/* Whether one of the others has that address, with any port. */
bool peers_have(const struct peers *peers, const struct net_address *client);
void peers_each_target(const struct peers *peers,
                       void (*each)(void *context, const struct target *target),
                       void *context);

#endif
