/* Times that were written by another clock: one that was ahead or behind, in a boot or a
 * daemon before. */
#include "queue/manager/manager_internal.h"

#include "sched/limits/transport_params.h"
#include "sched/route/route.h"

enum {
    HOUR_MS = 60 * 60 * 1000,
    LONGEST_CLASS_MS = 4 * HOUR_MS, /* reply_class_delay_ms() */
    JITTER_PART = 10                /* retry_jitter_ms() adds up to a tenth */
};

static void
clock_note_backoff(void *context, const struct target *target)
{
    int64_t *most_ms = context;
    if (target->transport.maximal_backoff_ms > *most_ms)
        *most_ms = target->transport.maximal_backoff_ms;
}

void
manager_clock_limit(struct manager *m)
{
    int64_t most_ms = LONGEST_CLASS_MS;
    if (m->routes != NULL) {
        clock_note_backoff(&most_ms, route_default(m->routes));
        route_each_target(m->routes, clock_note_backoff, &most_ms);
    }
    m->wait_max_ms = most_ms + most_ms / JITTER_PART;
}

int64_t
manager_clock_due_ms(const struct manager *m, int64_t due_ms)
{
    int64_t now_ms = loop_now_ms(m->loop);
    return due_ms - now_ms > m->wait_max_ms ? now_ms : due_ms;
}

/* The new time may go to the disk unless it would be moved again when it is read. */
static void
clock_move_birth(const struct manager *m, struct envelope *e, int64_t by_ms)
{
    e->birth_ms += by_ms;
    e->birth_moved_ms += by_ms;
    if (age_clock_birth_ms(&m->age, e->birth_ms, loop_now_ms(m->loop)) == e->birth_ms)
        e->birth_moved_ms = 0;
}

void
manager_clock_set_birth(const struct manager *m, struct envelope *e)
{
    int64_t now_ms = loop_now_ms(m->loop);
    clock_move_birth(m, e,
                     age_clock_birth_ms(&m->age, e->birth_ms, now_ms) - e->birth_ms);
    if (e->birth_ms <= now_ms)
        return;
    e->birth_ms = now_ms;
    e->birth_moved_ms = 0;
}

static void
manager_clock_stepped(void *context, int64_t by_ms)
{
    struct manager *m = context;
    struct active *a, *next;
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, "clock", path);
    age_clock_note(&m->age, queue_disk(m->queue), path, loop_now_ms(m->loop),
                   loop_monotonic_ms(m->loop));
    HASH_ITER (hh, m->actives, a, next) {
        if (a->envelope != NULL)
            clock_move_birth(m, a->envelope, by_ms);
        if (by_ms < 0) /* all of them: the heap stays in order */
            a->overdue.due_ms += by_ms;
        if (by_ms < 0 && a->lent) /* the scheduler has not got its time now */
            a->envelope->delivery.due_ms += by_ms;
    }
}

void
manager_clock_start(struct manager *m)
{
    char path[MANAGER_HINT_MAX], boot[AGE_BOOT_MAX];
    manager_clock_limit(m);
    manager_hint_path(m, "clock", path);
    age_clock_boot(boot);
    age_clock_start(&m->age, queue_disk(m->queue), path, boot, loop_now_ms(m->loop),
                    loop_monotonic_ms(m->loop));
    sched_on_step(m->sched, manager_clock_stepped);
}
