/* Two hosts of a group, each with a queue and a clock of its own: A gives to B. */
#ifndef T_SUPPORT_GROUP_WORLD_H
#define T_SUPPORT_GROUP_WORLD_H

#include "t/support/give_kit.h"
#include "t/support/manager_world.h"

#define GROUP_WORLD_ROUTE "* smtp://smtp.b.test"

/* A gives to B, and to C. */
struct group_world {
    struct world a, b;
    struct kit_wire wire;
    struct kit_host *host;
    struct give *give;
    unsigned over;
    uint64_t due_ms; /* of the message, at A */
};

void group_world_begin(struct group_world *g, const char *routes);

/* Callbacks of manager_drain() and give_new(): the latter counts. */
void group_world_drained(void *context);

void group_world_given(void *context);

void group_world_start(struct group_world *g);

/* Both hosts live for that time. */
void group_world_pass(struct group_world *g, int64_t ms);

void group_world_end(struct group_world *g);

/* The id of the only message that B has taken. */
struct id group_world_id(const struct world *w);

struct envelope *group_world_taken(const struct group_world *g);

/* Deferred twice, to three recipients: one has it, one has failed and knows. */
void group_world_defer(struct group_world *g);

void group_world_check(struct group_world *g);

/* Host B has the only message: it is known here, and waits there. */
void group_world_is_given(struct group_world *g);

#endif
