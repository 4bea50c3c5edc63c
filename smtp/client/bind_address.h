/* The source addresses of outgoing connections: smtp_bind, at most one a family. */
#ifndef SMTP_CLIENT_BIND_ADDRESS_H
#define SMTP_CLIENT_BIND_ADDRESS_H

#include "base/buffer.h"
#include "base/net_address.h"
#include "sched/route/peers.h"

struct bind_address {
    bool has_v4, has_v6;
    struct net_address v4, v6;
};

/* list: IP addresses without ports. False with one line per error; `errors` may be
 * NULL. */
bool bind_address_read(struct bind_address *sources, struct text list,
                       struct buffer *errors);
/* Copies others. The address by which our own hosts know this one, if any, replaces
 * that of its family; peers may be NULL. */
void bind_address_for_peers(struct bind_address *sources,
                            const struct bind_address *others,
                            const struct peers *peers);
/* NULL: the system chooses. */
const struct net_address *bind_address_for(const struct bind_address *sources,
                                           enum net_family family);

#endif
