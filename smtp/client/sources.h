/* The addresses that connections go out from: smtp_bind, at most one a family. */
#ifndef SMTP_SOURCES_H
#define SMTP_SOURCES_H

#include "base/buffer.h"
#include "base/net.h"
#include "sched/route/peers.h"

struct sources {
    bool has_v4, has_v6;
    struct net_address v4, v6;
};

/* list: IP addresses without ports. False with one line per mistake; mistakes may be
 * NULL. */
bool sources_read(struct sources *sources, struct text list, struct buffer *mistakes);
/* As those, but for the address that our own hosts know us by, if they know one; peers
 * may be NULL. */
void sources_for_peers(struct sources *sources, const struct sources *others,
                       const struct peers *peers);
/* NULL: the system chooses. */
const struct net_address *sources_for(const struct sources *sources,
                                      enum net_family family);

#endif
