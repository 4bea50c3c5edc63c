/* The queue manager: couples the disk with the order of delivery. */
#include "queue/manager.h"

#include "queue/manager_inside.h"

#include "base/memory.h"
#include "queue/lessons.h"
#include "queue/slices.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REASONS_MAX = 10000,     /* of waiting messages; the oldest are forgotten first */
    WAKE_MAX_MS = 60 * 1000, /* so that a stepped clock cannot put us to sleep */
    /* Messages read back in a turn, so that a full queue stalls nobody: */
    LOADS_PER_TURN = 64,
    LOADED_BYTES_PER_TURN = 4 * 1024 * 1024
};

static void
nothing(void *context)
{
    (void)context;
}

void
manager_turn(struct manager *m)
{
    loop_post(m->loop, &m->stir, nothing, m);
}

void
manager_stir(struct manager *m)
{
    if (!m->pumping)
        manager_turn(m);
}

/* What is in memory is taken up at once, the rest as this turn allows. */
static void
load_soon(struct manager *m, struct id id)
{
    if (active_find(m, id)) {
        round_load(m, id);
        return;
    }
    if (m->load_next == m->load_count)
        m->load_next = m->load_count = 0;
    if (m->load_count == m->load_capacity) {
        m->load_capacity = m->load_capacity > 0 ? m->load_capacity * 2 : 64;
        m->loads = memory_resize(m->loads, m->load_capacity * sizeof(*m->loads));
    }
    m->loads[m->load_count++] = id;
}

static bool
may_load(const struct manager *m)
{
    return m->load_next < m->load_count && !m->draining &&
           m->loads_now < LOADS_PER_TURN && m->loaded_bytes < LOADED_BYTES_PER_TURN;
}

/* --- The pump --------------------------------------------------------------------- */

/* A verdict of the scheduler's. What is to be held does not expire. */
static void
settle_now(const struct sched_action *action)
{
    struct active *a = action->owner;
    if (!action->expired || a->fate != FATE_HOLD)
        round_settle(a, action->index, action->outcome, action->expired, NULL);
}

static void
act(struct manager *m, const struct sched_action *action)
{
    switch (action->verb) {
    case SCHED_LOAD:
        load_soon(m, action->id);
        break;
    case SCHED_OPEN: {
        const struct plug *plug = &m->plugs[action->target->kind];
        assert(plug->open);
        m->sessions++;
        plug->open(plug->context, action->session, action->target, action->domain);
        break;
    }
    case SCHED_SETTLE:
        settle_now(action);
        break;
    case SCHED_WAIT:
        round_wait(action->owner, action->due_ms, action->attempts);
        break;
    case SCHED_FINISH:
        round_finish(action->owner);
        break;
    }
}

/* Whatever is done to a message in memory may be what crashes. */
static void
act_on(struct manager *m, const struct sched_action *action)
{
    const struct active *a = action->owner;
    if (a == NULL) {
        act(m, action);
        return;
    }
    struct id before = queue_enter(m->queue, a->id);
    act(m, action);
    queue_leave(m->queue, before);
}

static void
rest(struct manager *m)
{
    int64_t wake = sched_wake_ms(m->sched);
    if (wake == INT64_MAX) {
        loop_timer_stop(m->loop, &m->wake);
        return;
    }
    int64_t delay = wake - loop_now_ms(m->loop);
    if (delay > WAKE_MAX_MS)
        delay = WAKE_MAX_MS;
    loop_timer_start(m->loop, &m->wake, delay, nothing, m);
}

static void
end_drain(struct manager *m)
{
    bool quiet = m->sessions == 0 && m->notices.begun == m->notices.ended;
    if (m->drained == NULL || !(quiet || m->patience_over))
        return;
    void (*drained)(void *) = m->drained;
    m->drained = NULL;
    drained(m->drained_context);
}

static void
pump(void *context)
{
    struct manager *m = context;
    struct sched_action action;
    m->pumping = true;
    m->loads_now = 0;
    m->loaded_bytes = 0;
    for (;;) {
        while (sched_next(m->sched, loop_now_ms(m->loop), &action))
            act_on(m, &action);
        if (!may_load(m))
            break;
        round_load(m, m->loads[m->load_next++]);
    }
    m->pumping = false;
    if (m->load_next < m->load_count && !m->draining)
        manager_stir(m);
    if (m->draining)
        end_drain(m);
    else
        rest(m);
}

/* --- Life ------------------------------------------------------------------------- */

static void
found(void *context, const struct queue_entry *entry)
{
    struct manager *m = context;
    sched_add(m->sched, loop_now_ms(m->loop), entry->id, entry->due_ms,
              entry->attempts);
    manager_stir(m);
}

/* --- What was learnt of sites ----------------------------------------------------- */

enum { LESSONS_PATH = 64 };

static void
lessons_path(const struct manager *m, char out[LESSONS_PATH])
{
    char suffix[SLICES_SUFFIX_MAX];
    const struct queue_settings *q = &m->settings.queue;
    slices_suffix(q->slices, q->slice, suffix);
    snprintf(out, LESSONS_PATH, "lock/sites%s", suffix);
}

/* A full disk, or a broken one, is told elsewhere. */
static void
note_lessons(struct manager *m)
{
    char path[LESSONS_PATH];
    lessons_path(m, path);
    (void)!lessons_write(queue_disk(m->queue), path, m->sched, loop_now_ms(m->loop));
}

static void
write_lessons(void *context)
{
    struct manager *m = context;
    note_lessons(m);
    loop_timer_start(m->loop, &m->lessons, LESSONS_EVERY_MS, write_lessons, m);
}

int
manager_new(struct manager **manager, struct loop *loop, struct log *log,
            const struct manager_settings *settings, const struct route_table *routes,
            char *error, size_t error_size)
{
    struct manager *m = memory_new(sizeof(*m));
    m->loop = loop;
    m->log = log;
    m->sendlog =
        (struct sendlog){.log = log, .limit = (unsigned)settings->sched.session_limit};
    m->settings = *settings;
    m->routes = routes;
    int code =
        queue_open(&m->queue, loop, log, &settings->queue, found, m, error, error_size);
    if (code != 0) {
        free(m);
        return code;
    }
    m->reasons = waiting_new(REASONS_MAX);
    m->sched = sched_new(&settings->sched);
    if (settings->offline) {
        m->draining = true;
        sched_drain(m->sched);
    } else {
        char path[LESSONS_PATH];
        lessons_path(m, path);
        lessons_read(queue_disk(m->queue), path, m->sched, loop_now_ms(loop));
        loop_timer_start(loop, &m->lessons, LESSONS_EVERY_MS, write_lessons, m);
    }
    /* After the queue's own hook: what became durable in this turn starts in this turn.
     */
    loop_at_end(loop, LOOP_STAGE_ANSWER, pump, m);
    *manager = m;
    return 0;
}

void
manager_free(struct manager **manager)
{
    struct manager *m = *manager;
    struct active *a, *next;
    if (m == NULL)
        return;
    *manager = NULL;
    loop_at_end_remove(m->loop, LOOP_STAGE_ANSWER, pump, m);
    loop_timer_stop(m->loop, &m->wake);
    loop_unpost(m->loop, &m->stir);
    if (!m->settings.offline) {
        loop_timer_stop(m->loop, &m->lessons);
        note_lessons(m);
        sendlog_exit(&m->sendlog);
    }
    /* The queue first: it still writes the marks of the envelopes that it remembers. */
    queue_close(&m->queue);
    HASH_ITER (hh, m->actives, a, next)
        active_drop(a);
    waiting_free(&m->reasons);
    sched_free(&m->sched);
    free(m->loads);
    free(m);
}

void
manager_plug(struct manager *m, enum target_kind kind, manager_open *open,
             void *context)
{
    m->plugs[kind] = (struct plug){open, context};
}

void
manager_reload(struct manager *m, const struct manager_settings *settings,
               const struct route_table *routes)
{
    m->settings = *settings;
    m->routes = routes;
    m->sendlog.limit = (unsigned)settings->sched.session_limit;
    sched_change(m->sched, &settings->sched);
    sched_rerouted(m->sched, loop_now_ms(m->loop), routes);
    manager_stir(m);
}

struct queue *
manager_queue(struct manager *m)
{
    return m->queue;
}

struct sched *
manager_sched(struct manager *m)
{
    return m->sched;
}

static void
grace_over(void *context)
{
    struct manager *m = context;
    m->patience_over = true;
}

void
manager_drain(struct manager *m, int64_t grace_ms, void (*drained)(void *context),
              void *context)
{
    m->draining = true;
    sched_drain(m->sched);
    m->drained = drained;
    m->drained_context = context;
    loop_timer_start(m->loop, &m->wake, grace_ms, grace_over, m);
    manager_stir(m);
}

/* --- For those who accept, and for channels --------------------------------------- */

void
manager_accept(struct manager *m, struct envelope **e)
{
    struct id id = (*e)->id;
    /* Beyond the active set the envelope waits on disk, not in memory. */
    if (HASH_COUNT(m->actives) < (unsigned)m->settings.sched.active_limit) {
        sendlog_new(&m->sendlog, *e);
        active_new(m, *e);
    } else {
        envelope_free(e); /* and is new when it comes */
    }
    *e = NULL;
    sched_add(m->sched, loop_now_ms(m->loop), id, loop_now_ms(m->loop), 0);
    manager_stir(m);
}

/* Where the operator stepped in nothing more is delivered: its round ends here. */
static void
pass_over(struct manager *m, struct sched_session *session)
{
    struct outcome stopped =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.0.0", "stopped");
    sched_waive(m->sched, loop_now_ms(m->loop), session, &stopped);
    manager_stir(m);
}

bool
manager_take(struct manager *m, struct sched_session *session, struct errand *errand)
{
    struct sched_work work;
    while (!m->draining && sched_take(m->sched, loop_now_ms(m->loop), session, &work)) {
        struct active *a = work.owner;
        *errand = (struct errand){session, a->envelope, work.indexes, work.count};
        if (a->fate == FATE_NONE || a->fate == FATE_RETRY) {
            round_started(a, work.indexes, work.count);
            return true;
        }
        pass_over(m, session);
    }
    return false;
}

bool
manager_has_work(const struct manager *m, const struct sched_session *session)
{
    return !m->draining && sched_has_work(m->sched, session);
}

void
manager_settled(struct manager *m, const struct errand *errand, size_t which,
                const struct outcome *outcome, const struct timing *timing)
{
    assert(which < errand->count);
    struct active *a = active_find(m, errand->envelope->id);
    assert(a && a->scheduled);
    unsigned index = errand->indexes[which];
    struct id before = queue_enter(m->queue, a->id);
    round_settle(a, index, outcome, false, timing);
    sched_settled(m->sched, loop_now_ms(m->loop), errand->session, index, outcome);
    queue_leave(m->queue, before);
    manager_stir(m);
}

void
manager_session_limit(struct sched_session *session,
                      const struct session_limits *limits)
{
    sched_session_limit(session, limits);
}

bool
manager_session_found(struct manager *m, struct sched_session *session, struct text key)
{
    bool found = sched_session_found(m->sched, loop_now_ms(m->loop), session, key);
    manager_stir(m);
    return found;
}

bool
manager_session_is_spent(const struct sched_session *session)
{
    return sched_session_is_spent(session);
}

void
manager_host_good(struct manager *m, struct text address, int64_t service_ms)
{
    sched_host_good(m->sched, loop_now_ms(m->loop), address, service_ms);
}

void
manager_host_bad(struct manager *m, struct text address)
{
    sched_host_bad(m->sched, loop_now_ms(m->loop), address);
}

void
manager_hosts_order(struct manager *m, const struct text *addresses, const int *groups,
                    size_t count, size_t *order)
{
    sched_hosts_order(m->sched, loop_now_ms(m->loop), addresses, groups, count, order);
}

void
manager_session_ended(struct manager *m, struct sched_session *session,
                      const struct outcome *trouble)
{
    assert(m->sessions > 0);
    m->sessions--;
    sched_session_ended(m->sched, loop_now_ms(m->loop), session, trouble);
    manager_stir(m);
}
