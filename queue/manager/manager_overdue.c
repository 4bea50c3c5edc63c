/* Mail whose lifetime ends while it waits in memory expires then, and its sender is notified
 * of the delay in time: neither waits for its turn, which may be days later. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"

enum {
    OVERDUE_SOON_MS = 10 * 1000,      /* mail that is on its way between two states */
    OVERDUE_LATE_MS = 10 * 60 * 1000, /* a reload may have made the lifetime shorter */
    OVERDUE_GRACE_PART = 10, /* of the lifetime: mail that comes late has an attempt */
    OVERDUE_PER_TURN = 100,
    OVERDUE_ROUTES_MAX = 1000 /* looked up in a turn; mail with more keeps its time */
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

/* The routes say when. */
static void
overdue_note_notice(struct active *a)
{
    const struct envelope *e = a->envelope;
    struct address address;
    a->notice_ms = INT64_MAX;
    a->notice_reloads = a->manager->reloads;
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        const struct target *target =
            r->done ? NULL : attempt_route(a->manager, e, r, &address);
        int64_t ms = target != NULL ? delay_warning_next_ms(a, r, target) : INT64_MAX;
        a->notice_ms = ms < a->notice_ms ? ms : a->notice_ms;
    }
}

/* The deferral of those that wait ends the attempt, as another one would: its end sends the
 * notification. Then the mail waits again, without a pause. */
static void
overdue_notify(struct active *a, int64_t now_ms)
{
    struct manager *m = a->manager;
    if (a->pending != PENDING_NONE || !sched_interrupt(m->sched, a->id))
        return;
    a->late = true;
    a->loaded_ms = now_ms;
    a->pending = PENDING_RETRY;
}

/* True: more may be due in this turn. */
static bool
overdue_one(struct active *a, unsigned *routed, int64_t now_ms)
{
    struct manager *m = a->manager;
    int64_t next_ms = sched_overdue(m->sched, a->id);
    if (next_ms == INT64_MAX)
        return true;
    if (next_ms <= now_ms) { /* manager_run() settles what there is first */
        overdue_add(a, now_ms);
        return false;
    }
    if (a->notice_reloads != m->reloads && a->envelope->count <= OVERDUE_ROUTES_MAX) {
        overdue_note_notice(a);
        *routed += a->envelope->count;
    }
    if (a->notice_ms <= now_ms)
        overdue_notify(a, now_ms);
    next_ms = a->notice_ms < next_ms ? a->notice_ms : next_ms;
    overdue_add(a, overdue_between(next_ms, now_ms + OVERDUE_SOON_MS,
                                   now_ms + OVERDUE_LATE_MS));
    return *routed < OVERDUE_ROUTES_MAX;
}

static void
overdue_go(void *context)
{
    struct manager *m = context;
    int64_t now_ms = loop_now_ms(m->loop);
    struct heap_node *first;
    unsigned routed = 0;
    for (int i = 0; i < OVERDUE_PER_TURN && (first = heap_first(&m->overdue)) != NULL;
         i++) {
        struct active *a = memory_container(first, struct active, overdue.node);
        if (a->overdue.due_ms > now_ms)
            break;
        heap_remove(&m->overdue, first);
        if (!overdue_one(a, &routed, now_ms))
            break;
    }
    overdue_plan(m);
    manager_wake(m);
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
    a->notice_reloads = m->reloads;
    int64_t notice_ms = overdue_between(a->notice_ms, now_ms + OVERDUE_SOON_MS,
                                        now_ms + OVERDUE_LATE_MS);
    int64_t over_ms =
        overdue_between(manager_clock_begun_ms(m, a->envelope, now_ms) + lifetime_ms,
                        now_ms + grace_ms, now_ms + OVERDUE_LATE_MS);
    overdue_add(a, notice_ms < over_ms ? notice_ms : over_ms);
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
