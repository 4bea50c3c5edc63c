/* A host of several: the defragment channel over a registry that answers what the test
 * wants, and peers that take what the test wants. */
#ifndef T_SUPPORT_CHANNEL_SHARED_WORLD_H
#define T_SUPPORT_CHANNEL_SHARED_WORLD_H

#include "t/support/channel_world.h"
#include "t/sim/registry_stand_in.h"

struct shared {
    struct stage s;
    struct registry registry;
};

void shared_begin(struct shared *h, const char *routes);

/* After stage_stop(), with the routes of routes_text. */
void shared_start(struct shared *h);

void shared_end(struct shared *h);

/* The oldest claim, and what comes of it at once. */
void shared_tell(struct shared *h, enum registry_answer is, const char *host);

/* Where a message that arrived was sent to; "": to its next hop. */
const char * shared_peer(const struct shared *h, unsigned which);

#endif
