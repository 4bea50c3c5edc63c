/* After a change of the routes: mail that waits in memory for a next hop to which its
 * recipients are routed no longer enters the scheduler again. It would keep the rate, the
 * quota or the outage of the old one, and the place in memory that other mail waits for. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void
reroute_stop(struct manager *m)
{
    free(m->rerouting.ids);
    m->rerouting = (struct rerouting){0};
}

/* A list, since messages come and go between the turns. Those that come have the new
 * routes. */
void
reroute_begin(struct manager *m)
{
    struct active *a, *next;
    struct rerouting *r = &m->rerouting;
    reroute_stop(m);
    r->ids = memory_array(HASH_COUNT(m->actives) + 1, sizeof(*r->ids));
    HASH_ITER (hh, m->actives, a, next)
        if (a->scheduled)
            r->ids[r->count++] = a->id;
}

static bool
reroute_is_astray(void *context, unsigned index, const struct target *target)
{
    struct active *a = context;
    struct address address;
    a->manager->routed_now++;
    if (awaiting_is_redirected(a, index)) /* to a peer, by no route */
        return false;
    const struct target *now = attempt_route(a->manager, a->envelope,
                                             &a->envelope->recipients[index], &address);
    return now == NULL || memcmp(now, target, sizeof(*now)) != 0;
}

/* Otherwise it is not the scheduler's now, or will leave it by itself. */
static bool
reroute_may(const struct active *a)
{
    return a != NULL && a->scheduled && !a->routing.queued && !a->loaned &&
           !a->ending && !a->warning && !a->holding && !a->wanted;
}

/* True: done with this message. */
static bool
reroute_one(struct manager *m, struct active *a)
{
    struct rerouting *r = &m->rerouting;
    struct id before;
    if (!reroute_may(a))
        return true;
    if (!sched_seek_astray(m->sched, a->id, &r->slot, manager_routes_left(m),
                           reroute_is_astray, a))
        return r->slot == UINT_MAX;
    switch (sched_enter_again(m->sched, a->id)) {
    case SCHED_AGAIN_NOW:
        before = queue_enter(m->queue, a->id);
        begin_again(a);
        queue_leave(m->queue, before);
        return true;
    case SCHED_AGAIN_LATER:
        return false;
    case SCHED_AGAIN_NEVER:
        return true;
    }
    return true;
}

bool
reroute_some(struct manager *m)
{
    struct rerouting *r = &m->rerouting;
    while (r->next < r->count && !begin_is_busy(m)) {
        if (!reroute_one(m, manager_active_find(m, r->ids[r->next])))
            return true;
        r->slot = 0;
        r->next++;
        m->routed_now++;
    }
    if (r->next < r->count)
        return true;
    reroute_stop(m);
    return false;
}
