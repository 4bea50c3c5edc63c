/* Mail whose lifetime ends while it waits in memory: it expires then, and not after its
 * turn, which may be days later. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"

enum {
    OVERDUE_LATE_MS = 10 * 60 * 1000, /* a reload may have made the lifetime shorter */
    OVERDUE_GRACE_PART = 10, /* of the lifetime: mail that comes late has an attempt */
    OVERDUE_PER_TURN = 100
};

static void
overdue_plan(struct manager *m)
{
    struct heap_node *first = heap_first(&m->overdue);
    loop_timer_stop(m->loop, &m->overdue_timer);
    if (first == NULL)
        return;
    int64_t ms =
        memory_container(first, struct heap_due, node)->due_ms - loop_now_ms(m->loop);
    /* A clock that is set delays it no longer than that. */
    if (ms > OVERDUE_LATE_MS)
        ms = OVERDUE_LATE_MS;
    loop_timer_start(m->loop, &m->overdue_timer, ms > 0 ? ms : 0, m->overdue_timer.fire,
                     m);
}

static int64_t
overdue_between(int64_t ms, int64_t least, int64_t most)
{
    return ms < least ? least : ms > most ? most : ms;
}

static void
overdue_add(struct active *a, int64_t due_ms)
{
    a->overdue.due_ms = due_ms;
    heap_add(&a->manager->overdue, &a->overdue.node);
}

static void
overdue_go(void *context)
{
    struct manager *m = context;
    int64_t now_ms = loop_now_ms(m->loop);
    struct heap_node *first;
    for (int i = 0; i < OVERDUE_PER_TURN && (first = heap_first(&m->overdue)) != NULL;
         i++) {
        struct active *a = memory_container(first, struct active, overdue.node);
        if (a->overdue.due_ms > now_ms)
            break;
        heap_remove(&m->overdue, first);
        int64_t next_ms = sched_overdue(m->sched, now_ms, a->id);
        if (next_ms < INT64_MAX)
            overdue_add(a, overdue_between(next_ms, now_ms, now_ms + OVERDUE_LATE_MS));
        if (next_ms <= now_ms) /* the pump settles what there is first */
            break;
    }
    overdue_plan(m);
    manager_stir(m);
}

void
manager_overdue_watch(struct active *a, int64_t lifetime_ms)
{
    struct manager *m = a->manager;
    int64_t now_ms = loop_now_ms(m->loop), grace_ms = lifetime_ms / OVERDUE_GRACE_PART;
    if (grace_ms > OVERDUE_LATE_MS)
        grace_ms = OVERDUE_LATE_MS;
    manager_overdue_forget(a);
    if (lifetime_ms == INT64_MAX)
        return;
    m->overdue_timer.fire = overdue_go;
    overdue_add(a, overdue_between(a->envelope->birth_ms + lifetime_ms,
                                   now_ms + grace_ms, now_ms + OVERDUE_LATE_MS));
    if (heap_first(&m->overdue) == &a->overdue.node)
        overdue_plan(m);
}

void
manager_overdue_forget(struct active *a)
{
    struct manager *m = a->manager;
    if (!heap_has(&a->overdue.node))
        return;
    heap_remove(&m->overdue, &a->overdue.node);
    if (heap_first(&m->overdue) == NULL)
        loop_timer_stop(m->loop, &m->overdue_timer);
}

void
manager_overdue_stop(struct manager *m)
{
    loop_timer_stop(m->loop, &m->overdue_timer);
}
