/* The queue manager: couples the disk with the order of delivery. */
#include "queue/manager/manager.h"

#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "queue/spool/guard.h"
#include "queue/manager/site_cache.h"
#include "queue/manager/deferral_reasons.h"
#include "queue/spool/slices.h"
#include "queue/spool/spool.h"

#include <assert.h>
#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REASONS_MAX = 200000,    /* messages with a reason in memory
                              * (queue/manager/deferral_reasons.h) */
    WAKE_MAX_MS = 60 * 1000, /* so that a stepped clock cannot make us sleep for
                              * longer */
    /* Messages loaded in a turn, so that a full queue stalls nothing else: */
    LOADS_PER_TURN = 64,
    LOADED_BYTES_PER_TURN = 1024 * 1024,
    SETTLES_PER_TURN = 1000, /* of a dead site, so that a large message stalls nothing
                              * else */
    /* In the careful mode after crashes: */
    TRIAL_MAX_MS = 10 * 1000, /* a message that is still in memory */
    TRIAL_LOOK_MS = 1000,
    CAREFUL_MAX_MS = 10 * 60 * 1000 /* with any rest */
};

static const struct id no_id;

void
manager_turn(struct manager *m)
{
    loop_wake(m->loop, &m->wake_task);
}

void
manager_wake(struct manager *m)
{
    if (!m->running)
        manager_turn(m);
}

/* Whether a message waits to be loaded, in this turn or a later one. */
static bool
wants_load(const struct manager *m)
{
    return m->load_next < m->load_count && !m->draining;
}

/* --- After crashes without a known cause ------------------------------------------
 *
 * Only one message at a time is in memory, so that the next crash has a known cause
 * (queue/spool/guard.h). Its time is limited: a message that waits for a slow host does
 * not delay the others, but is no longer suspected. */

static bool
trial_is_over(const struct manager *m)
{
    return m->actives == NULL ||
           loop_monotonic_ms(m->loop) - m->trial_ms >= TRIAL_MAX_MS;
}

static void
trial_begin(struct manager *m, struct id id)
{
    m->trial_ms = loop_monotonic_ms(m->loop);
    guard_suspect(queue_guard(m->queue), id);
}

static void
be_careless(struct manager *m)
{
    m->careful = false;
    guard_suspect(queue_guard(m->queue), no_id);
    guard_survive(queue_guard(m->queue));
    log_say(m->log, LOG_LEVEL_INFO, "queue", NULL,
            "all due mail has been tried; normal delivery resumes");
    manager_wake(m);
}

static void
on_trial(void *context)
{
    struct manager *m = context;
    int64_t lived = loop_monotonic_ms(m->loop) - m->started_ms;
    bool idle = m->actives == NULL && !wants_load(m);
    if (!m->careful)
        guard_survive(queue_guard(m->queue));
    else if (lived >= CAREFUL_MAX_MS || (lived >= GUARD_EARLY_MS && idle))
        be_careless(m);
    else
        loop_timer_start(m->loop, &m->trial, TRIAL_LOOK_MS, on_trial, m);
    manager_turn(m);
}

/* The end of a turn: no message is suspected while none is in memory. */
static void
trial_go_on(struct manager *m)
{
    if (m->actives == NULL && !wants_load(m))
        guard_suspect(queue_guard(m->queue), no_id);
    else if (m->actives == NULL && !m->load_waits)
        manager_wake(m);
}

static void
trial_start(struct manager *m)
{
    m->careful = guard_is_careful(queue_guard(m->queue));
    m->started_ms = loop_monotonic_ms(m->loop);
    loop_timer_start(m->loop, &m->trial, m->careful ? TRIAL_LOOK_MS : GUARD_EARLY_MS,
                     on_trial, m);
}

/* The queue of loads is the scheduler's order; a message that is in memory already
 * needs no disk and does not wait in it. */
void
manager_load(struct manager *m, struct id id)
{
    if (manager_active_find(m, id)) {
        begin_load(m, id);
        return;
    }
    /* It may never be empty while the disk is slower than the network. */
    if (m->load_next > m->load_capacity / 2 || m->load_next == m->load_count) {
        m->load_count -= m->load_next;
        if (m->load_count > 0)
            memmove(m->loads, m->loads + m->load_next,
                    m->load_count * sizeof(*m->loads));
        m->load_next = 0;
    }
    if (m->load_count == m->load_capacity) {
        m->load_capacity = m->load_capacity > 0 ? m->load_capacity * 2 : 64;
        m->loads = memory_resize(m->loads, m->load_capacity * sizeof(*m->loads));
    }
    m->loads[m->load_count++] = id;
}

/* A turn loads a bounded number of messages and bytes: clients are served between two
 * turns. */
static bool
may_load(struct manager *m)
{
    return wants_load(m) && !m->load_waits && m->loads_now < LOADS_PER_TURN &&
           m->loaded_bytes < LOADED_BYTES_PER_TURN && !begin_is_busy(m) &&
           (!m->careful || trial_is_over(m));
}

/* Large content needs several turns. */
static bool
manager_is_checked(struct manager *m, struct id id)
{
    int64_t budget = LOADED_BYTES_PER_TURN - m->loaded_bytes;
    if (manager_active_find(m, id))
        return true;
    enum queue_check result = queue_check(m->queue, id, &budget);
    m->loaded_bytes = LOADED_BYTES_PER_TURN - budget;
    m->load_waits = result == QUEUE_CHECK_WAITS;
    return result == QUEUE_CHECKED;
}

/* A message whose content is still being checked stays first: the order of arrival is
 * kept. */
static void
load_next(struct manager *m)
{
    struct id id = m->loads[m->load_next];
    if (m->careful)
        trial_begin(m, id);
    if (!manager_is_checked(m, id))
        return;
    m->load_next++;
    begin_load(m, id);
}

/* --- Loads ----------------------------------------------------------------------- */

/* A verdict of the scheduler. Mail that is to be held does not expire. */
static void
settle_now(const struct sched_action *action)
{
    struct active *a = action->owner;
    struct timing timing = {.site = action->site};
    if (!action->expired || a->pending != PENDING_HOLD)
        attempt_settle(a, action->index, action->outcome, action->expired, &timing);
}

static void
manager_act(struct manager *m, const struct sched_action *action)
{
    switch (action->verb) {
    case SCHED_LOAD:
        manager_load(m, action->id);
        break;
    case SCHED_OPEN: {
        const struct manager_channel *channel = &m->channels[action->target->kind];
        assert(channel->open);
        m->sessions++;
        channel->open(channel->context, action->session, action->target,
                      action->domain);
        break;
    }
    case SCHED_SETTLE:
        settle_now(action);
        break;
    case SCHED_WAIT:
        attempt_wait(action->owner, action->due_ms, action->attempts);
        break;
    case SCHED_FINISH:
        attempt_finish(action->owner);
        break;
    }
}

/* The message to blame if the action crashes: a session that opens is opened for the
 * first message that waits for it. */
static struct id
manager_reason_of(const struct sched_action *action)
{
    const struct active *a = action->verb == SCHED_OPEN
                                 ? sched_session_first(action->session)
                                 : action->owner;
    return a != NULL ? a->id : action->verb == SCHED_LOAD ? action->id : no_id;
}

static void
act_on(struct manager *m, const struct sched_action *action)
{
    struct id before = queue_enter(m->queue, manager_reason_of(action));
    manager_act(m, action);
    queue_leave(m->queue, before);
}

static void
manager_rest(struct manager *m)
{
    int64_t wake = sched_wake_ms(m->sched);
    if (wake == INT64_MAX) {
        loop_timer_stop(m->loop, &m->wake);
        return;
    }
    int64_t delay = wake - loop_now_ms(m->loop);
    if (delay > WAKE_MAX_MS)
        delay = WAKE_MAX_MS;
    loop_timer_start(m->loop, &m->wake, delay, NULL, NULL);
}

static void
end_drain(struct manager *m)
{
    bool quiet = m->sessions == 0 && m->notifications.begun == m->notifications.ended;
    if (m->drained == NULL || !(quiet || m->patience_over))
        return;
    void (*drained)(void *) = m->drained;
    m->drained = NULL;
    drained(m->drained_context);
}

static void
tell_sites(struct manager *m)
{
    struct site_change c;
    char text[SITE_CHANGE_NAME_MAX + OUTCOME_TEXT_MAX + 64];
    while (sched_site_change(m->sched, &c)) {
        if (c.is_dead)
            snprintf(text, sizeof(text), "%s is dead: %s", c.site, c.why.text);
        else
            snprintf(text, sizeof(text), "%s works again, after %" PRId64 " s", c.site,
                     c.dead_ms / 1000);
        event_tell(m->events, &(struct event){.kind = c.is_dead ? EVENT_SITE_DEAD
                                                                : EVENT_SITE_ALIVE,
                                              .relay = text_from(c.site),
                                              .outcome = c.is_dead ? &c.why : NULL,
                                              .text = text_from(text)});
    }
}

/* --- Backlogs -------------------------------------------------------------------- */

/* Has the ids of removed messages forgotten by the backlogs of all sites. Nothing waits for
 * it but the counts that operators see, so it goes slowly. */
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

static void
manager_sweep(struct manager *m)
{
    if (m->draining || heap_has(&m->sweep.node) || sched_backlog_is_swept(m->sched))
        return;
    int64_t rest_ms = m->swept_ms + SWEEP_PAUSE_MS - loop_monotonic_ms(m->loop);
    bool rests = m->swept_ms != 0 && rest_ms > SWEEP_STEP_MS;
    loop_timer_start(m->loop, &m->sweep, rests ? rest_ms : SWEEP_STEP_MS, sweep_on, m);
}

/* --- The end of a turn -------------------------------------------------------------------- */

/* Verdicts and ends come before loads: they free the places that loads take. */
static void
manager_run(void *context)
{
    struct manager *m = context;
    struct sched_action action;
    m->running = true;
    m->loads_now = 0;
    m->loaded_bytes = 0;
    m->load_waits = false;
    unsigned settles = 0;
    bool works = sched_work(m->sched);
    begin_some(m);
    works |= manager_reroute_some(m);
    for (;;) {
        while (settles < SETTLES_PER_TURN && sched_next(m->sched, &action)) {
            settles += action.verb == SCHED_SETTLE;
            act_on(m, &action);
        }
        if (settles == SETTLES_PER_TURN || !may_load(m))
            break;
        load_next(m);
    }
    m->running = false;
    m->has_actions = settles == SETTLES_PER_TURN;
    tell_sites(m);
    manager_sweep(m);
    if (settles == SETTLES_PER_TURN || m->unrouted != NULL || works)
        manager_wake(m);
    if (m->careful)
        trial_go_on(m);
    else if (wants_load(m) && !m->load_waits)
        manager_wake(m);
    if (m->draining)
        end_drain(m);
    else
        manager_rest(m);
}

/* --- Hints and lifetime ----------------------------------------------------------- */

static void
manager_found(void *context, const struct queue_entry *entry)
{
    struct manager *m = context;
    sched_add(m->sched, entry->id, manager_clock_due_ms(m, entry->due_ms),
              entry->attempts);
    manager_wake(m);
}

/* --- Hints over a restart: sites, and reasons ------------------------------------- */

void
manager_hint_path(const struct manager *m, const char *name, char out[MANAGER_HINT_MAX])
{
    char suffix[SLICES_SUFFIX_MAX];
    const struct queue_settings *q = &m->settings.queue;
    slices_suffix(q->slices, q->slice, suffix);
    snprintf(out, MANAGER_HINT_MAX, "lock/%s%s", name, suffix);
}

int
manager_hint_read(const struct manager *m, const char *name, struct buffer *out)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, name, path);
    return spool_read_path(queue_disk(m->queue), path, out);
}

int
manager_hint_write(const struct manager *m, const char *name, struct text text)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, name, path);
    return spool_write_path(queue_disk(m->queue), path, text);
}

/* A handle of a file that is there, or -errno. */
static int
manager_hint_open(const struct manager *m, const char *name)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, name, path);
    return disk_open_file(queue_disk(m->queue), path, true);
}

int
manager_hint_append(const struct manager *m, const char *name, struct text text)
{
    int file = manager_hint_open(m, name);
    int result = file < 0 ? file : disk_write(queue_disk(m->queue), file, text);
    if (file >= 0)
        disk_close_file(queue_disk(m->queue), file);
    return result;
}

int
manager_hint_sync(const struct manager *m, const char *name)
{
    int file = manager_hint_open(m, name);
    int result = file < 0 ? file : disk_sync(queue_disk(m->queue), file);
    if (file >= 0)
        disk_close_file(queue_disk(m->queue), file);
    return result;
}

void
manager_hint_drop(const struct manager *m, const char *name)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, name, path);
    (void)!disk_unlink(queue_disk(m->queue), path);
}

/* Writes the file again when startup has found all messages, to drop the reasons of
 * missing ones. */
static void
note_reasons(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    bool all = queue_has_found_all(m->queue);
    if (m->noted_reasons == deferral_reasons_changes(m->reasons) && m->noted_all == all)
        return;
    manager_hint_path(m, "reasons", path);
    if (reasons_write(queue_disk(m->queue), path, m->reasons, m->sched, all) < 0)
        return;
    m->noted_reasons = deferral_reasons_changes(m->reasons);
    m->noted_all = all;
}

/* Errors are ignored: a full or broken disk is reported elsewhere. */
static void
note_hints(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    manager_hint_path(m, "sites", path);
    (void)!site_cache_write(queue_disk(m->queue), path, m->sched, loop_now_ms(m->loop));
    note_reasons(m);
}

static void
write_hints(void *context)
{
    struct manager *m = context;
    note_hints(m);
    loop_timer_start(m->loop, &m->site_cache, SITE_CACHE_EVERY_MS, write_hints, m);
}

static bool
wants_reason(void *context, struct id id)
{
    const struct manager *m = context;
    return queue_handles(m->queue, id);
}

static void
read_hints(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    struct disk *disk = queue_disk(m->queue);
    manager_hint_path(m, "sites", path);
    site_cache_read(disk, path, m->sched, loop_now_ms(m->loop));
    manager_hint_path(m, "reasons", path);
    int result = reasons_read(disk, path, m->reasons, wants_reason, m);
    if (result < 0 && result != -ENOENT)
        log_say(m->log, LOG_LEVEL_WARNING, "queue", NULL,
                "ignored %s: %s; deferral reasons are unknown until the next attempt",
                path,
                result == -EILSEQ ? "damaged, or not written by Petrel"
                                  : strerror(-result));
    m->noted_reasons = deferral_reasons_changes(m->reasons);
    manager_quotas_read(m);
}

/* Its route may be another one later: that changes the delivery, not the file. */
static bool
manager_is_local(void *context, const struct envelope *e, const struct recipient *r)
{
    struct address address;
    const struct target *t = attempt_route(context, e, r, &address);
    return t != NULL && (t->kind == TARGET_LMTP || t->kind == TARGET_MAILDIR);
}

static struct envelope *
manager_in_use(void *context, struct id id)
{
    const struct active *a = manager_active_find(context, id);
    return a != NULL ? a->envelope : NULL;
}

static int64_t
manager_steady_ms(void *context)
{
    const struct manager *m = context;
    return loop_monotonic_ms(m->loop);
}

int
manager_new(struct manager **manager, struct loop *loop, struct event_hub *events,
            const struct manager_settings *settings, const struct route_table *routes,
            char *error, size_t error_size)
{
    struct manager *m = memory_new(sizeof(*m));
    m->loop = loop;
    m->events = events;
    m->log = event_hub_log(events);
    m->settings = *settings;
    m->settings.queue.events = events;
    m->settings.queue.is_local = routes != NULL ? manager_is_local : NULL;
    m->settings.queue.in_use = manager_in_use;
    m->routes = routes;
    int code = queue_open(&m->queue, loop, m->log, &m->settings.queue, manager_found, m,
                          error, error_size);
    if (code != 0) {
        free(m);
        return code;
    }
    m->reasons = deferral_reasons_new(REASONS_MAX);
    heap_init(&m->overdue, heap_due_before);
    m->sched = sched_new(&settings->sched, loop_turn_ms(loop));
    sched_quota_clock(m->sched, manager_steady_ms, m);
    m->quotas = quotas_new();
    manager_quotas_set(m, settings->quotas);
    manager_copies_set(m, settings->copy_to);
    manager_clock_limit(m);
    manager_suppress_follow(m);
    if (settings->offline) {
        m->draining = m->leaves = true;
        sched_drain(m->sched);
    } else {
        read_hints(m);
        manager_clock_start(m);
        loop_timer_start(loop, &m->site_cache, SITE_CACHE_EVERY_MS, write_hints, m);
        trial_start(m);
    }
    /* Runs after the queue's own hook, so that mail that became durable in this turn
     * starts in this turn. */
    loop_at_end(loop, LOOP_ANSWER_MANAGER, manager_run, m);
    *manager = m;
    return 0;
}

void
manager_conclude(struct manager *m)
{
    if (m->is_concluded)
        return;
    m->is_concluded = true;
    loop_at_end_remove(m->loop, LOOP_ANSWER_MANAGER, manager_run, m);
    loop_timer_stop(m->loop, &m->wake);
    loop_timer_stop(m->loop, &m->sweep);
    manager_overdue_stop(m);
    if (!m->settings.offline) {
        loop_timer_stop(m->loop, &m->trial);
        loop_timer_stop(m->loop, &m->site_cache);
        attempt_conclude(m);
        note_hints(m);
        manager_quotas_write(m);
    }
}

void
manager_free(struct manager **manager)
{
    struct manager *m = *manager;
    struct active *a, *next;
    if (m == NULL)
        return;
    *manager = NULL;
    manager_conclude(m);
    HASH_ITER (hh, m->actives, a, next)
        dsn_drop(&a->notification); /* its draft belongs to the queue */
    manager_suppress_end(m);
    /* The queue closes first: it still writes marks of these envelopes. */
    queue_close(&m->queue);
    HASH_ITER (hh, m->actives, a, next)
        manager_active_drop(a);
    heap_free(&m->overdue);
    deferral_reasons_free(&m->reasons);
    sched_free(&m->sched);
    quotas_free(&m->quotas);
    copies_free(&m->copies);
    free(m->refusers);
    free(m->lost_reports);
    free(m->loads);
    manager_reroute_stop(m);
    loop_unpost(m->loop, &m->wake_task); /* last: the end of the queue wakes, too */
    free(m);
}

void
manager_set_channel(struct manager *m, enum target_kind kind, manager_open *open,
                    void *context)
{
    m->channels[kind] = (struct manager_channel){open, context};
}

void
manager_set_watch(struct manager *m, manager_watch *watch, void *context)
{
    const void *wanted = watch ? NULL : context;
    size_t i = 0;
    while (i < MANAGER_WATCHES_MAX && m->watches[i].context != wanted)
        i++;
    assert(i < MANAGER_WATCHES_MAX); /* the daemon has two channels */
    m->watches[i].watch = watch;
    m->watches[i].context = watch ? context : NULL;
}

void
manager_reload(struct manager *m, const struct manager_settings *settings,
               const struct route_table *routes)
{
    const struct route_table *was = m->routes;
    m->settings = *settings;
    m->routes = routes;
    manager_quotas_set(m, settings->quotas);
    manager_copies_set(m, settings->copy_to);
    manager_quota_retry(m);
    manager_suppress_follow(m);
    manager_clock_limit(m);
    m->reloads++;
    begin_anew(m);
    sched_change(m->sched, &settings->sched);
    sched_rerouted(m->sched, was, routes);
    manager_reroute_begin(m);
    manager_wake(m);
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

/* While anybody wants it no delivery begins. */
static void
manager_rest_or_go(struct manager *m)
{
    bool rests = m->leaves || m->is_paused;
    if (rests && !m->draining)
        sched_drain(m->sched);
    else if (!rests && m->draining)
        sched_cancel_drain(m->sched);
    m->draining = rests;
    manager_wake(m);
}

void
manager_pause(struct manager *m, bool is_paused)
{
    if (m->is_paused == is_paused)
        return;
    m->is_paused = is_paused;
    manager_rest_or_go(m);
}

/* The scheduler opens nothing any more; sessions that run may end, within the grace
 * period. */
void
manager_drain(struct manager *m, int64_t grace_ms, void (*drained)(void *context),
              void *context)
{
    m->leaves = true;
    m->drained = drained;
    m->drained_context = context;
    /* The scheduler needs no wake-up any more, so its timer measures the grace
     * period. */
    loop_timer_start(m->loop, &m->wake, grace_ms, grace_over, m);
    manager_rest_or_go(m);
}

void
manager_cancel_drain(struct manager *m)
{
    m->leaves = m->patience_over = false;
    m->drained = NULL;
    loop_timer_stop(m->loop, &m->wake);
    manager_rest_or_go(m);
}

bool
manager_is_paused(const struct manager *m)
{
    return m->is_paused;
}

bool
manager_is_draining(const struct manager *m)
{
    return m->draining;
}

/* --- For acceptors and channels --------------------------------------------------- */

bool
manager_has_room(const struct manager *m, unsigned recipients)
{
    const struct sched_settings *s = &m->settings.sched;
    return HASH_COUNT(m->actives) < (unsigned)s->active_limit &&
           (s->recipient_limit == 0 ||
            m->recipients + recipients <= (size_t)s->recipient_limit) &&
           sched_has_room(m->sched, recipients);
}

void
manager_accept(struct manager *m, struct envelope **e)
{
    struct id id = (*e)->id;
    unsigned recipients = (*e)->count;
    attempt_count_accepted(m, *e);
    /* Beyond the active set the envelope waits on disk, not in memory. */
    if (!m->careful && manager_has_room(m, recipients)) {
        manager_active_new(m, *e);
        begin_tell_loaded(m, *e);
    } else {
        envelope_free(e); /* EVENT_LOADED is reported when it is loaded */
    }
    *e = NULL;
    sched_add(m->sched, id, loop_now_ms(m->loop), 0);
    sched_weigh(m->sched, id, recipients);
    manager_wake(m);
}

/* After an operator's command nothing more is delivered: the attempt ends here. */
static void
pass_over(struct manager *m, struct sched_session *session)
{
    struct outcome stopped =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.0.0", "stopped");
    sched_waive(m->sched, session, &stopped);
    manager_wake(m);
}

/* The operator's command counts from the moment it is given, though the scheduler does
 * not know it yet. */
bool
manager_take(struct manager *m, struct sched_session *session,
             struct delivery_request *request)
{
    struct sched_work work;
    while (!m->draining && sched_take(m->sched, session, &work)) {
        struct active *a = work.owner;
        *request =
            (struct delivery_request){session, a->envelope, work.indexes, work.count};
        if (attempt_goes_on(a) && !manager_suppress_work(a, &work)) {
            manager_rest(m); /* it may begin a pause after this turn's run */
            return true;
        }
        pass_over(m, session);
    }
    return false;
}

struct id
manager_first(const struct sched_session *session)
{
    const struct active *a = sched_session_first(session);
    return a != NULL ? a->id : no_id;
}

struct id
manager_enter(struct manager *m, const struct sched_session *session)
{
    return queue_enter(m->queue, manager_first(session));
}

void
manager_leave(struct manager *m, struct id before)
{
    queue_leave(m->queue, before);
}

bool
manager_has_work(const struct manager *m, const struct sched_session *session)
{
    return !m->draining && sched_has_work(m->sched, session);
}

void
manager_settled(struct manager *m, const struct delivery_request *request, size_t which,
                const struct outcome *outcome, const struct timing *timing)
{
    assert(which < request->count);
    struct active *a = manager_active_find(m, request->envelope->id);
    assert(a && a->scheduled);
    unsigned index = request->indexes[which];
    struct id before = queue_enter(m->queue, a->id);
    struct timing at_site = {0};
    if (timing != NULL)
        at_site = *timing;
    at_site.site = sched_session_site(request->session);
    attempt_settle(a, index, outcome, false, &at_site);
    sched_settled(m->sched, request->session, index, outcome);
    if (sched_has_quotas(m->sched))
        manager_note_quotas(m);
    queue_leave(m->queue, before);
    manager_wake(m);
}

bool
manager_session_found(struct manager *m, struct sched_session *session, struct text key)
{
    bool found = sched_session_found(m->sched, session, key);
    manager_wake(m);
    return found;
}

void
manager_set_token(struct manager *m, const struct sched_login *login,
                  enum sched_token token, const char *why)
{
    sched_set_token(m->sched, login, token, why);
    manager_wake(m);
}

void
manager_session_ended(struct manager *m, struct sched_session *session,
                      const struct outcome *why)
{
    assert(m->sessions > 0);
    m->sessions--;
    sched_session_ended(m->sched, session, why);
    manager_wake(m);
}

/* --- For a group of hosts -------------------------------------------------------- */

void
manager_group(struct manager *m, const struct sched_group *group)
{
    sched_members(m->sched, group);
    manager_wake(m);
}

/* A turn follows: the mail there wakes at another time now. */
size_t
manager_wishes(struct manager *m, size_t most,
               void (*each)(void *context, const struct sched_wish *wish),
               void *context)
{
    size_t count = m->has_actions ? 0 : sched_wishes(m->sched, most, each, context);
    if (count > 0)
        manager_wake(m);
    return count;
}

void
manager_granted(struct manager *m, const char *site, const struct bank_grant *grant)
{
    sched_granted(m->sched, site, grant);
    manager_wake(m);
}
