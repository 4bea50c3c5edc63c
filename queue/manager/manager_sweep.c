/* Has the ids of removed messages forgotten by the backlogs of all sites. Nothing waits for
 * it but the counts that operators see, so it goes slowly. */
#include "queue/manager/manager_internal.h"

enum {
    SWEEP_STEP_MS = 20,
    SWEEP_PAUSE_MS = 10 * 1000 /* from one sweep to the next */
};

static void
sweep_on(void *context)
{
    struct manager *m = context;
    if (sched_backlog_sweep(m->sched))
        loop_timer_start(m->loop, &m->sweep, SWEEP_STEP_MS, sweep_on, m);
    else
        m->swept_ms = loop_monotonic_ms(m->loop);
}

void
manager_sweep(struct manager *m)
{
    if (m->draining || heap_has(&m->sweep.node) || sched_backlog_is_swept(m->sched))
        return;
    int64_t rest_ms = m->swept_ms + SWEEP_PAUSE_MS - loop_monotonic_ms(m->loop);
    bool rests = m->swept_ms != 0 && rest_ms > SWEEP_STEP_MS;
    loop_timer_start(m->loop, &m->sweep, rests ? rest_ms : SWEEP_STEP_MS, sweep_on, m);
}

void
manager_sweep_stop(struct manager *m)
{
    loop_timer_stop(m->loop, &m->sweep);
}
