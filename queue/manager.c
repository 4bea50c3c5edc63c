/* The queue manager: couples the disk with the order of delivery. */
#include "queue/manager.h"

#include "base/loop.h"
#include "base/memory.h"
#include "queue/notice.h"
#include "queue/waiting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum {
    LATER_MS = 60 * 1000,    /* for what the disk would not take */
    REASONS_MAX = 10000,     /* of waiting messages; the oldest are forgotten first */
    WAKE_MAX_MS = 60 * 1000, /* so that a stepped clock cannot put us to sleep */
    /* Messages read back in a turn, so that a full queue stalls nobody: */
    LOADS_PER_TURN = 64,
    LOADED_BYTES_PER_TURN = 4 * 1024 * 1024
};

/* A message in memory: from its acceptance or SCHED_LOAD to its end or SCHED_WAIT. */
struct active {
    struct id id;
    struct manager *manager;
    struct envelope *envelope;
    enum target_kind *kinds; /* per recipient; NULL until routed */
    char **reasons;          /* per recipient: the last deferral; NULL until one */
    int64_t loaded_ms;
    bool scheduled; /* the scheduler works on it; else it waits for SCHED_LOAD or its
                       end */
    bool removing;  /* the operator wants it gone */
    UT_hash_handle hh;
};

struct plug {
    manager_open *open;
    void *context;
};

struct manager {
    struct loop *loop;
    struct log *log;
    struct manager_settings settings;
    const struct route_table *routes;
    struct queue *queue;
    struct sched *sched;
    struct active *actives;
    struct waiting *reasons;
    struct id *loads; /* that the scheduler wants from the disk, in its order */
    size_t load_next, load_count, load_capacity;
    unsigned loads_now; /* in this turn */
    int64_t loaded_bytes;
    struct plug plugs[TARGET_UNKNOWN + 1];
    size_t sessions;
    size_t notices; /* being committed */
    bool draining, patience_over, pumping;
    void (*drained)(void *context);
    void *drained_context;
    struct loop_timer wake;
    struct loop_task stir;
};

static const char *
program_of(enum target_kind kind)
{
    switch (kind) {
    case TARGET_MX:
    case TARGET_SMTP:
        return "smtp";
    case TARGET_LMTP:
        return "lmtp";
    case TARGET_MAILDIR:
        return "local";
    case TARGET_HOLD:
    case TARGET_DISCARD:
    case TARGET_ERROR:
    case TARGET_UNKNOWN:
        break;
    }
    return "queue";
}

static enum channel
channel_of(enum target_kind kind)
{
    return kind == TARGET_LMTP || kind == TARGET_MAILDIR ? CHANNEL_LOCAL
                                                         : CHANNEL_REMOTE;
}

static void
nothing(void *context)
{
    (void)context;
}

/* Makes sure that a turn comes, with the pump at its end. */
static void
stir(struct manager *m)
{
    if (!m->pumping)
        loop_post(m->loop, &m->stir, nothing, m);
}

/* --- Messages in memory ----------------------------------------------------------- */

static struct active *
active_find(const struct manager *m, struct id id)
{
    struct active *a = NULL;
    HASH_FIND(hh, m->actives, &id, sizeof(id), a);
    return a;
}

static struct active *
active_new(struct manager *m, struct envelope *e)
{
    struct active *a = memory_new(sizeof(*a));
    a->id = e->id;
    a->manager = m;
    a->envelope = e;
    HASH_ADD(hh, m->actives, id, sizeof(a->id), a);
    return a;
}

/* Forgets the message. The envelope is retired, deferred or simply freed by the caller
 * before, with the count of its recipients as it was. */
static void
active_free(struct active *a, unsigned recipients)
{
    struct manager *m = a->manager;
    HASH_DEL(m->actives, a);
    for (unsigned i = 0; a->reasons && i < recipients; i++)
        free(a->reasons[i]);
    free(a->reasons);
    free(a->kinds);
    free(a);
}

static void
active_drop(struct active *a)
{
    unsigned recipients = a->envelope->count;
    envelope_free(&a->envelope);
    active_free(a, recipients);
}

static void
active_retire(struct active *a)
{
    unsigned recipients = a->envelope->count;
    waiting_forget(a->manager->reasons, a->id);
    queue_retire(a->manager->queue, &a->envelope);
    active_free(a, recipients);
}

static void
log_removed(struct manager *m, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    log_say(m->log, LOG_LEVEL_INFO, "queue", name, "removed by the operator");
}

static void
active_remove(struct active *a)
{
    log_removed(a->manager, a->id);
    active_retire(a);
}

/* --- Verdicts --------------------------------------------------------------------- */

static void
remember_reason(struct active *a, unsigned index, const struct outcome *outcome)
{
    if (a->reasons == NULL)
        a->reasons = memory_array(a->envelope->count, sizeof(*a->reasons));
    free(a->reasons[index]);
    a->reasons[index] = memory_string(outcome->text);
}

static void
log_verdict(const struct active *a, unsigned index, const struct outcome *outcome,
            bool expired, const struct timing *timing)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    int64_t now = loop_now_ms(m->loop);
    int64_t connect = timing ? timing->connect_ms : 0;
    int64_t transmit = timing ? timing->transmit_ms : 0;
    int64_t total = now > e->birth_ms ? now - e->birth_ms : 0;
    int64_t before = a->loaded_ms > e->birth_ms ? a->loaded_ms - e->birth_ms : 0;
    int64_t waited = total - before - connect - transmit;
    char id[ID_LENGTH + 1];
    id_format(e->id, id);
    struct log_line line;
    log_start(&line, m->log, LOG_LEVEL_INFO, program_of(a->kinds[index]), id);
    log_field_format(&line, "to", "<%.*s>", TEXT_ARGS(e->recipients[index].address));
    log_field(&line, "relay", text_from(outcome->remote[0] ? outcome->remote : "none"));
    log_field_format(&line, "delay", "%.2f", (double)total / 1000);
    log_field_format(&line, "delays", "%.2f/%.2f/%.2f/%.2f", (double)before / 1000,
                     waited > 0 ? (double)waited / 1000 : 0, (double)connect / 1000,
                     (double)transmit / 1000);
    log_field(&line, "dsn", text_from(outcome->enhanced));
    log_field(&line, "status",
              text_from(expired ? "expired" : outcome_word(outcome->verdict)));
    log_remark(&line, text_from(outcome->text));
    log_end(&line);
}

/* Writes one verdict down: log line, D mark, bounce text. */
static void
settle(struct active *a, unsigned index, const struct outcome *outcome, bool expired,
       const struct timing *timing)
{
    struct manager *m = a->manager;
    struct envelope *e = a->envelope;
    enum channel channel = channel_of(a->kinds[index]);
    log_verdict(a, index, outcome, expired, timing);
    switch (outcome->verdict) {
    case VERDICT_DEFERRED:
        remember_reason(a, index, outcome);
        break;
    case VERDICT_DELIVERED:
        queue_settle(m->queue, e, index, channel, NULL);
        break;
    case VERDICT_FAILED: {
        struct failure failure = {index, expired, *outcome};
        queue_settle(m->queue, e, index, channel, &failure);
        break;
    }
    }
}

/* --- The end of a message --------------------------------------------------------- */

/* The message stays in memory; the scheduler brings it back, with nobody left to serve.
 */
static void
notice_later(struct active *a)
{
    struct manager *m = a->manager;
    int64_t now = loop_now_ms(m->loop);
    if (a->removing) {
        active_remove(a);
        return;
    }
    sched_add(m->sched, now, a->id, now + LATER_MS, a->envelope->attempts);
    stir(m);
}

static void
notice_stored(void *context, struct envelope *notice, const struct outcome *refusal)
{
    struct active *a = context;
    struct manager *m = a->manager;
    assert(m->notices > 0);
    m->notices--;
    if (refusal) {
        notice_later(a);
        return;
    }
    active_retire(a);
    manager_accept(m, &notice);
}

static void
finish(struct active *a)
{
    struct manager *m = a->manager;
    struct notice_settings settings = {m->settings.hostname,
                                       m->settings.bounce_size_limit};
    a->scheduled = false;
    if (a->removing) {
        active_remove(a);
        return;
    }
    switch (notice_commit(m->queue, m->loop, m->log, &settings, a->envelope,
                          notice_stored, a)) {
    case NOTICE_NOTHING:
        active_retire(a);
        break;
    case NOTICE_COMMITTED:
        m->notices++;
        /* The commit needs another turn's SYNC stage. */
        loop_post(m->loop, &m->stir, nothing, m);
        break;
    case NOTICE_REFUSED:
        notice_later(a);
        break;
    }
}

/* --- Loading ---------------------------------------------------------------------- */

static struct outcome
immediate_outcome(const struct target *target)
{
    if (target->kind == TARGET_DISCARD)
        return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "discarded");
    if (target->kind == TARGET_ERROR)
        return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, target->enhanced, "%s",
                            target->path);
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                        "unknown user: no mailbox and no route for this local domain");
}

static const struct target *
route_recipient(struct manager *m, const struct recipient *r, struct address *address)
{
    if (text_find(r->address, '@') == TEXT_NONE)
        *address = (struct address){.local = r->address};
    else if (!address_parse(r->address, address))
        return NULL;
    return route_find(m->routes, address);
}

static void
settle_unparsable(struct active *a, unsigned index)
{
    struct outcome outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 553, "5.1.3",
                                          "bad recipient address syntax");
    a->kinds[index] = TARGET_ERROR;
    settle(a, index, &outcome, false, NULL);
}

/* Routes every open recipient: those that need no session get their verdict at once,
 * the others are listed. False: the message is to be held. */
static bool
route_all(struct active *a, struct sched_recipient *open, size_t *count)
{
    const struct envelope *e = a->envelope;
    bool hold = false;
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        struct address address;
        if (r->done)
            continue;
        const struct target *target = route_recipient(a->manager, r, &address);
        if (target == NULL) {
            settle_unparsable(a, i);
            continue;
        }
        a->kinds[i] = target->kind;
        switch (target->kind) {
        case TARGET_MX:
        case TARGET_SMTP:
        case TARGET_LMTP:
        case TARGET_MAILDIR:
            open[(*count)++] = (struct sched_recipient){i, target, address.domain};
            break;
        case TARGET_HOLD:
            hold = true;
            break;
        case TARGET_DISCARD:
        case TARGET_ERROR:
        case TARGET_UNKNOWN: {
            struct outcome outcome = immediate_outcome(target);
            settle(a, i, &outcome, false, NULL);
            break;
        }
        }
    }
    return !hold;
}

static void
hold(struct active *a)
{
    struct manager *m = a->manager;
    char id[ID_LENGTH + 1];
    id_format(a->id, id);
    int error = queue_hold(m->queue, a->envelope, "held by a route");
    log_say(m->log, error ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "queue", id, "%s%s",
            error ? "a route says hold, but: " : "held by a route",
            error ? strerror(-error) : "");
    int64_t due = loop_now_ms(m->loop) + (error ? LATER_MS : 0);
    unsigned attempts = a->envelope->attempts, recipients = a->envelope->count;
    if (error)
        sched_add(m->sched, loop_now_ms(m->loop), a->id, due, attempts);
    queue_defer(m->queue, &a->envelope, due, attempts);
    active_free(a, recipients);
}

static void
load(struct manager *m, struct id id)
{
    int64_t now = loop_now_ms(m->loop);
    struct active *a = active_find(m, id);
    if (a == NULL) {
        struct envelope *e = queue_load(m->queue, id);
        m->loads_now++;
        m->loaded_bytes += e ? e->content_size : 0;
        if (e == NULL) {
            sched_unloaded(m->sched, now, id);
            return;
        }
        a = active_new(m, e);
    }
    const struct envelope *e = a->envelope;
    a->loaded_ms = now;
    free(a->kinds);
    a->kinds = memory_array(e->count + 1, sizeof(*a->kinds));
    struct sched_recipient *open = memory_array(e->count + 1, sizeof(*open));
    size_t count = 0;
    if (!route_all(a, open, &count)) {
        sched_unloaded(m->sched, now, id);
        hold(a);
    } else if (count == 0) {
        sched_unloaded(m->sched, now, id);
        finish(a);
    } else {
        a->scheduled = true;
        sched_loaded(m->sched, now, id, a, e->birth_ms, e->sender.length == 0, open,
                     count);
    }
    free(open);
}

/* What is in memory is taken up at once, the rest as this turn allows. */
static void
load_soon(struct manager *m, struct id id)
{
    if (active_find(m, id)) {
        load(m, id);
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

static void
wait_until(struct active *a, int64_t due_ms, unsigned attempts)
{
    unsigned recipients = a->envelope->count;
    if (a->removing) {
        bool forgotten = sched_forget(a->manager->sched, a->id);
        assert(forgotten); /* it waits, as the scheduler has just said */
        active_remove(a);
        return;
    }
    for (unsigned i = 0; a->reasons && i < recipients; i++)
        if (a->reasons[i])
            waiting_keep(a->manager->reasons, a->id, a->reasons[i]);
    queue_defer(a->manager->queue, &a->envelope, due_ms, attempts);
    active_free(a, recipients);
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
        settle(action->owner, action->index, action->outcome, action->expired, NULL);
        break;
    case SCHED_WAIT:
        wait_until(action->owner, action->due_ms, action->attempts);
        break;
    case SCHED_FINISH:
        finish(action->owner);
        break;
    }
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
    bool quiet = m->sessions == 0 && m->notices == 0;
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
            act(m, &action);
        if (!may_load(m))
            break;
        load(m, m->loads[m->load_next++]);
    }
    m->pumping = false;
    if (m->load_next < m->load_count && !m->draining)
        stir(m);
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
    stir(m);
}

int
manager_new(struct manager **manager, struct loop *loop, struct log *log,
            const struct manager_settings *settings, const struct route_table *routes,
            char *error, size_t error_size)
{
    struct manager *m = memory_new(sizeof(*m));
    m->loop = loop;
    m->log = log;
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
    sched_change(m->sched, &settings->sched);
    stir(m);
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
    stir(m);
}

/* --- For those who accept, and for channels --------------------------------------- */

void
manager_accept(struct manager *m, struct envelope **e)
{
    struct id id = (*e)->id;
    /* Beyond the active set the envelope waits on disk, not in memory. */
    if (HASH_COUNT(m->actives) < (unsigned)m->settings.sched.active_limit)
        active_new(m, *e);
    else
        envelope_free(e);
    *e = NULL;
    sched_add(m->sched, loop_now_ms(m->loop), id, loop_now_ms(m->loop), 0);
    stir(m);
}

/* What the operator has removed is not delivered any more: its round ends here. */
static void
pass_over(struct manager *m, struct sched_session *session,
          const struct sched_work *work)
{
    struct outcome removed =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.0.0", "removed");
    for (size_t i = 0; i < work->count; i++)
        sched_settled(m->sched, loop_now_ms(m->loop), session, work->indexes[i],
                      &removed);
    stir(m);
}

bool
manager_take(struct manager *m, struct sched_session *session, struct errand *errand)
{
    struct sched_work work;
    while (!m->draining && sched_take(m->sched, loop_now_ms(m->loop), session, &work)) {
        struct active *a = work.owner;
        *errand = (struct errand){session, a->envelope, work.indexes, work.count};
        if (!a->removing)
            return true;
        pass_over(m, session, &work);
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
    settle(a, index, outcome, false, timing);
    sched_settled(m->sched, loop_now_ms(m->loop), errand->session, index, outcome);
    stir(m);
}

void
manager_session_ended(struct manager *m, struct sched_session *session,
                      const struct outcome *trouble)
{
    assert(m->sessions > 0);
    m->sessions--;
    sched_session_ended(m->sched, loop_now_ms(m->loop), session, trouble);
    stir(m);
}

/* --- For operators ---------------------------------------------------------------- */

bool
manager_retry(struct manager *m, struct id id)
{
    stir(m);
    return sched_retry(m->sched, loop_now_ms(m->loop), id);
}

void
manager_retry_all(struct manager *m)
{
    sched_retry_all(m->sched, loop_now_ms(m->loop));
    stir(m);
}

enum manager_removal
manager_remove(struct manager *m, struct id id)
{
    struct active *a = active_find(m, id);
    if (a && (a->scheduled || !sched_forget(m->sched, id))) {
        a->removing = true;
        return MANAGER_BUSY;
    }
    if (a) {
        active_remove(a);
        return MANAGER_REMOVED;
    }
    sched_forget(m->sched, id);
    waiting_forget(m->reasons, id);
    if (!queue_remove(m->queue, id))
        return MANAGER_UNKNOWN;
    log_removed(m, id);
    return MANAGER_REMOVED;
}

const struct envelope *
manager_active(struct manager *m, struct id id)
{
    struct active *a = active_find(m, id);
    return a ? a->envelope : NULL;
}

const char *
manager_reason(struct manager *m, struct id id, unsigned recipient)
{
    struct active *a = active_find(m, id);
    if (a && a->reasons && recipient < a->envelope->count && a->reasons[recipient])
        return a->reasons[recipient];
    return waiting_find(m->reasons, id);
}
