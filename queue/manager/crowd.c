/* Whether mail comes faster than it leaves, so that clients are to wait. */
#include "queue/manager/manager_internal.h"

enum {
    CROWD = 500,      /* messages that wait for one site, or to become files: work for
                      * every session, and some 3 KiB of memory each */
    FILLING_PART = 16 /* of that while the journal fills: large mail */
};

static size_t
crowd_limit(const struct manager *m)
{
    return queue_is_filling(m->queue) ? CROWD / FILLING_PART : CROWD;
}

bool
manager_is_calm(const struct manager *m)
{
    size_t limit = crowd_limit(m);
    struct sched_counts counts = sched_count(m->sched);
    return counts.incoming + counts.active < limit && queue_moves(m->queue) < limit;
}

bool
manager_is_crowded(const struct manager *m, struct id id, bool alone)
{
    size_t limit = crowd_limit(m) * (alone ? 2 : 1);
    return sched_crowd(m->sched, id) >= limit ||
           (queue_moves(m->queue) >= limit && queue_waits_for_move(m->queue, id));
}
