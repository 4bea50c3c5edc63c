/* The scheduler's machine: events in, actions out. */
#include "sched/sched.h"

#include "base/memory.h"
#include "sched/known.h"
#include "sched/message.h"
#include "sched/retry.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CLOCK_SLACK_MS = 1000, /* a smaller step back is waited out */
    NEW_RUN_MAX = 3,       /* new messages in a row while deferred ones are due */
    TURN_WORKS = 20,       /* of a session while others wait for one */
    READY_TRIES = 8        /* destinations looked at for one session */
};

enum feeling {
    FEELING_GOOD,
    FEELING_NONE,
    FEELING_BAD
}; /* the worst is the greatest */

/* What a session carries in one transaction. */
struct work {
    struct sched_message *message;
    unsigned first, count, unsettled,
        hint; /* slots of the work; hint: next to be settled */
    enum feeling feeling;
    struct reason *blamed; /* for BAD; a slot of the message holds it */
    unsigned *indexes;
    size_t capacity;
};

enum { WORKS_MAX = 2 };

struct sched_session {
    struct sched_session *prev, *next;
    struct destination *destination;
    bool greeted, idle; /* idle: asked for mail in vain */
    struct work works[WORKS_MAX];
    unsigned oldest, work_count; /* of works */
    unsigned run;                /* works since it was idle */
};

struct sched {
    bool draining;
    struct sched_settings settings;
    int64_t now_ms;
    uint64_t random;
    struct known_set known;
    struct destinations destinations;
    struct sched_session *sessions;
    int session_count, idle_count;
    int active;                   /* messages being loaded or loaded */
    bool old_turn;                /* deferred mail is loaded next */
    unsigned new_run;             /* new messages loaded since */
    struct entry *settling;       /* recipients to be settled without a session */
    struct sched_message *ending; /* all settled */
    struct outcome outcome;       /* of the last SETTLE, or a sched_site */
};

struct sched *
sched_new(const struct sched_settings *settings)
{
    struct sched *s = memory_new(sizeof *s);
    s->now_ms = INT64_MIN;
    s->random = settings->seed;
    known_init(&s->known);
    destinations_init(&s->destinations);
    sched_change(s, settings);
    return s;
}

void
sched_drain(struct sched *s)
{
    s->draining = true;
}

void
sched_change(struct sched *s, const struct sched_settings *settings)
{
    assert(settings->active_limit > 0 && settings->session_limit > 0);
    s->settings = *settings;
}

static void
session_free(struct sched *s, struct sched_session *session)
{
    DL_DELETE(s->sessions, session);
    for (unsigned i = 0; i < WORKS_MAX; i++)
        free(session->works[i].indexes);
    free(session);
}

static void
free_loaded(void *context, struct known *k)
{
    struct sched *s = context;
    struct sched_message *m = k->place == KNOWN_ACTIVE ? k->message : NULL;
    if (m)
        message_free(&s->destinations, &m, s->now_ms);
}

static void
empty_queue(void *context, struct known *k)
{
    (void)context;
    if (k->place != KNOWN_ACTIVE)
        return;
    for (unsigned i = 0; i < k->message->entry_count; i++) {
        struct destination *d = k->message->entries[i].destination;
        d->waiting = NULL;
        d->works = d->recipients = 0;
    }
}

void
sched_free(struct sched **sched)
{
    struct sched *s = *sched;
    if (!s)
        return;
    *sched = NULL;
    while (s->sessions) {
        s->sessions->destination->sessions = 0;
        session_free(s, s->sessions);
    }
    known_each(&s->known, empty_queue, s);
    known_each(&s->known, free_loaded, s);
    known_free(&s->known);
    destinations_free(&s->destinations);
    free(s);
}

/* Time as the scheduler sees it never goes back: when the clock does, by an operator or
 * after a boot, all that waits moves along, or it would wait for the difference too. */
static void
tick(struct sched *s, int64_t now_ms)
{
    if (now_ms < s->now_ms) {
        int64_t delta = now_ms - s->now_ms;
        if (delta > -CLOCK_SLACK_MS)
            return;
        known_shift(&s->known, delta);
        destinations_shift(&s->destinations, delta);
    }
    s->now_ms = now_ms;
    destinations_tick(&s->destinations, now_ms);
}

static void
update(struct sched *s, struct destination *d)
{
    destination_update(&s->destinations, d, s->now_ms);
}

static int
working_sessions(const struct sched *s)
{
    return s->session_count - s->idle_count;
}

/* --- Messages
 * ------------------------------------------------------------------------- */

void
sched_add(struct sched *s, int64_t now_ms, struct id id, int64_t due_ms,
          unsigned attempts)
{
    tick(s, now_ms);
    known_add(&s->known, id, due_ms < 0 ? 0 : due_ms, attempts);
}

struct sched_message *
sched_loaded(struct sched *s, int64_t now_ms, struct id id, void *owner,
             int64_t birth_ms, bool null_sender,
             const struct sched_recipient *recipients, size_t count)
{
    tick(s, now_ms);
    struct known *k = known_find(&s->known, id);
    assert(k && k->place == KNOWN_LOADING && count > 0);
    struct sched_message *m = message_new(&s->destinations, recipients, count);
    m->id = id;
    m->owner = owner;
    m->birth_ms = birth_ms;
    m->null_sender = null_sender;
    m->attempts = k->attempts;
    known_activate(&s->known, k, m);
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &m->entries[i];
        struct destination *d = e->destination;
        if (k->forced)
            destination_revive(&s->destinations, d);
        if (d->dead) {
            e->reason = reason_share(d->suspended);
            DL_APPEND(s->settling, e);
        } else {
            e->job.since_s = destinations_job_s(&s->destinations, s->now_ms);
            destination_append(d, e);
        }
        update(s, d);
    }
    k->forced = 0;
    return m;
}

void
sched_unloaded(struct sched *s, int64_t now_ms, struct id id)
{
    tick(s, now_ms);
    struct known *k = known_find(&s->known, id);
    assert(k && k->place == KNOWN_LOADING);
    known_remove(&s->known, id);
    s->active--;
}

static void
message_settled(struct sched *s, struct sched_message *m, unsigned slot,
                struct reason *reason)
{
    message_settle(m, slot, reason);
    if (m->unsettled == 0)
        DL_APPEND(s->ending, m);
}

/* --- Sessions
 * ------------------------------------------------------------------------- */

/* All that waits there gets outcome. */
static void
destination_settle(struct sched *s, struct destination *d,
                   const struct outcome *outcome)
{
    struct reason *reason = reason_open(&d->reasons, outcome);
    destination_give_up(d, reason, &s->settling);
    reason_close(&d->reasons, &reason);
}

/* outcome ends it for now. Where a cohort limit of 0 forbids death, the mail that waits
 * had its attempt all the same: sessions come first, so nothing else would ever give it
 * a verdict. */
static void
destination_failed(struct sched *s, struct destination *d,
                   const struct outcome *outcome)
{
    if (d->dead)
        return;
    if (destination_transport(d)->failed_cohort_limit > 0)
        destination_die(&s->destinations, d, s->now_ms, outcome);
    destination_settle(s, d, outcome);
}

/* Who gets the next session: the first in turn, or the one behind it when that has
 * fewer. */
static struct destination *
next_ready(const struct sched *s)
{
    struct destination *first = s->destinations.ready;
    if (first && first->next && first->next->sessions < first->sessions)
        return first->next;
    return first;
}

/* With every session out, one that has had its turn makes room for a destination that
 * has fewer. */
static bool
must_yield(const struct sched *s, const struct sched_session *session)
{
    const struct destination *d = session->destination, *other = next_ready(s);
    if (working_sessions(s) < s->settings.session_limit || !other || session->run == 0)
        return false;
    int mine = d->sessions - d->idle, its = other->sessions - other->idle;
    return its + 1 < mine || (its < mine && session->run >= TURN_WORKS);
}

/* A second work is for a session within the window, and where no pause is due between
 * two. */
static bool
has_room(const struct sched_session *session)
{
    const struct destination *d = session->destination;
    if (session->work_count == 0)
        return d->carrying < d->window.size;
    return session->work_count < WORKS_MAX && d->carrying <= d->window.size &&
           destination_transport(d)->rate_delay_ms == 0;
}

bool
sched_has_work(const struct sched *s, const struct sched_session *session)
{
    const struct destination *d = session->destination;
    return d->works > 0 && !d->dead && d->pause_until_ms <= s->now_ms &&
           has_room(session) &&
           (!session->idle || working_sessions(s) < s->settings.session_limit) &&
           !must_yield(s, session);
}

static void
session_set_idle(struct sched *s, struct sched_session *session, bool idle)
{
    if (session->idle == idle)
        return;
    session->idle = idle;
    session->run = 0;
    session->destination->idle += idle ? 1 : -1;
    s->idle_count += idle ? 1 : -1;
}

static void
session_greet(struct sched *s, struct sched_session *session)
{
    if (session->greeted)
        return;
    session->greeted = true;
    session->destination->greeted++;
    destination_revive(&s->destinations, session->destination);
}

/* Copied, because the message may be gone before its last verdict is told. */
static void
work_copy_indexes(struct work *w)
{
    if (w->capacity < w->count) {
        w->capacity = w->count;
        w->indexes = memory_resize(w->indexes, w->capacity * sizeof *w->indexes);
    }
    struct slot *slots = &w->message->slots[w->first];
    for (unsigned i = 0; i < w->count; i++) {
        assert(slots[i].state == SLOT_WAITING);
        slots[i].state = SLOT_TAKEN;
        w->indexes[i] = slots[i].index;
    }
}

static void
work_start(struct sched *s, struct sched_session *session)
{
    struct destination *d = session->destination;
    unsigned at = (session->oldest + session->work_count++) % WORKS_MAX;
    struct work *w = &session->works[at];
    destination_choose(d, destinations_job_s(&s->destinations, s->now_ms));
    w->message = destination_cut(d, &w->first, &w->count)->message;
    w->unsettled = w->count;
    w->hint = 0;
    w->feeling = FEELING_GOOD;
    w->blamed = NULL;
    d->carrying += session->work_count == 1;
    work_copy_indexes(w);
}

static struct work *
newest_work(struct sched_session *session)
{
    assert(session->work_count > 0);
    return &session->works[(session->oldest + session->work_count - 1) % WORKS_MAX];
}

bool
sched_take(struct sched *s, int64_t now_ms, struct sched_session *session,
           struct sched_work *work)
{
    tick(s, now_ms);
    assert(session->work_count < WORKS_MAX);
    session_greet(s, session);
    bool takes = sched_has_work(s, session);
    session_set_idle(s, session, !takes && session->work_count == 0);
    if (takes) {
        work_start(s, session);
        const struct work *w = newest_work(session);
        *work = (struct sched_work){.message = w->message,
                                    .owner = w->message->owner,
                                    .indexes = w->indexes,
                                    .count = w->count};
    }
    update(s, session->destination);
    return takes;
}

static void
work_finished(struct sched *s, struct sched_session *session, struct work *w)
{
    struct destination *d = session->destination;
    const struct transport *t = destination_transport(d);
    switch (w->feeling) {
    case FEELING_GOOD:
        destination_revive(&s->destinations, d);
        window_good(&d->window, t, d->carrying);
        break;
    case FEELING_NONE:
        destination_revive(&s->destinations, d);
        window_answered(&d->window);
        break;
    case FEELING_BAD:
        if (!d->dead && window_bad(&d->window, t)) {
            reason_read(w->blamed, &s->outcome);
            destination_failed(s, d, &s->outcome);
        }
        break;
    }
    /* The oldest, or (waived) the newest. */
    if (w == &session->works[session->oldest])
        session->oldest = (session->oldest + 1) % WORKS_MAX;
    d->carrying -= --session->work_count == 0;
    w->message = NULL;
    session->run++;
    if (t->rate_delay_ms > 0)
        d->pause_until_ms = s->now_ms + t->rate_delay_ms;
}

static enum feeling
outcome_feeling(const struct outcome *outcome)
{
    switch (outcome->verdict) {
    case VERDICT_DELIVERED:
    case VERDICT_FAILED:
        return FEELING_GOOD;
    case VERDICT_DEFERRED:
        return outcome->blame == BLAME_SITE ? FEELING_BAD : FEELING_NONE;
    }
    return FEELING_NONE;
}

/* Verdicts mostly come in the order of the work. */
static unsigned
work_slot(struct work *w, unsigned index)
{
    assert(w->message && w->unsettled > 0);
    for (unsigned looked = 0;; looked++) {
        assert(looked < w->count); /* else no open index of this work */
        unsigned at = w->first + w->hint;
        const struct slot *slot = &w->message->slots[at];
        w->hint = (w->hint + 1) % w->count;
        if (slot->index == index && slot->state == SLOT_TAKEN)
            return at;
    }
}

static void
work_settled(struct sched *s, struct sched_session *session, struct work *w,
             unsigned index, const struct outcome *outcome)
{
    unsigned slot = work_slot(w, index);
    struct destination *d = session->destination;
    enum feeling feeling = outcome_feeling(outcome);
    struct reason *reason = NULL;
    if (outcome->verdict == VERDICT_DEFERRED)
        reason = reason_open(&d->reasons, outcome);
    if (feeling > w->feeling) {
        w->feeling = feeling;
        w->blamed = reason;
    }
    message_settled(s, w->message, slot, reason);
    if (--w->unsettled == 0)
        work_finished(s, session, w);
    update(s, d);
}

void
sched_settled(struct sched *s, int64_t now_ms, struct sched_session *session,
              unsigned index, const struct outcome *outcome)
{
    tick(s, now_ms);
    assert(session->work_count > 0);
    work_settled(s, session, &session->works[session->oldest], index, outcome);
}

void
sched_waive(struct sched *s, int64_t now_ms, struct sched_session *session,
            const struct outcome *outcome)
{
    tick(s, now_ms);
    struct work *w = newest_work(session);
    for (unsigned i = 0; i < w->count; i++)
        work_settled(s, session, w, w->indexes[i], outcome);
}

void
sched_session_ended(struct sched *s, int64_t now_ms, struct sched_session *session,
                    const struct outcome *trouble)
{
    tick(s, now_ms);
    assert(session->work_count == 0);
    struct destination *d = session->destination;
    session_set_idle(s, session, false);
    s->session_count--;
    d->sessions--;
    d->greeted -= session->greeted;
    if (!session->greeted) /* whatever the owner makes of it: never a busy loop */
        d->open_after_ms = s->now_ms + DESTINATION_OPEN_PAUSE_MS;
    if (trouble && trouble->verdict == VERDICT_FAILED) {
        destination_settle(s, d, trouble);
        d->open_after_ms = 0;
        d->forget = true;
    } else if (trouble && !session->greeted && !d->dead) {
        bool dead = window_bad(&d->window, destination_transport(d));
        if (dead || d->greeted == 0)
            destination_failed(s, d, trouble);
    }
    session_free(s, session);
    update(s, d);
}

/* --- Actions
 * -------------------------------------------------------------------------- */

static bool
next_settle(struct sched *s, struct sched_action *action)
{
    struct entry *e = s->settling;
    if (!e)
        return false;
    struct sched_message *m = e->message;
    unsigned slot = e->first + e->given;
    bool deferred = reason_verdict(e->reason) == VERDICT_DEFERRED;
    reason_read(e->reason, &s->outcome);
    *action = (struct sched_action){.verb = SCHED_SETTLE,
                                    .id = m->id,
                                    .owner = m->owner,
                                    .index = m->slots[slot].index,
                                    .outcome = &s->outcome};
    if (++e->given == e->count)
        DL_DELETE(s->settling, e);
    message_settled(s, m, slot, deferred ? reason_share(e->reason) : NULL);
    return true;
}

static bool
next_end(struct sched *s, struct sched_action *action)
{
    struct sched_message *m = s->ending;
    if (!m)
        return false;
    *action = (struct sched_action){.id = m->id, .owner = m->owner};
    if (message_expire(m, s->now_ms, &action->index, &s->outcome)) {
        action->verb = SCHED_SETTLE;
        action->outcome = &s->outcome;
        action->expired = true;
        return true;
    }
    if (m->deferred > 0) {
        action->verb = SCHED_WAIT;
        action->attempts =
            m->attempts < KNOWN_ATTEMPTS_MAX ? m->attempts + 1 : m->attempts;
        action->due_ms =
            s->now_ms + retry_jitter_ms(message_delay_ms(m, s->now_ms), &s->random);
        known_wait(&s->known, known_find(&s->known, m->id), action->due_ms,
                   action->attempts);
    } else {
        action->verb = SCHED_FINISH;
        known_remove(&s->known, m->id);
    }
    s->active--;
    DL_DELETE(s->ending, m);
    message_free(&s->destinations, &m, s->now_ms);
    return true;
}

/* Behind the others, if it still wants a session: round robin. */
static void
ready_rotate(struct sched *s, struct destination *d)
{
    DL_DELETE(s->destinations.ready, d);
    d->is_ready = false;
    update(s, d);
}

/* One that may have a session now. Its idle sessions, which will ask again, come first
 * where the limit is near. */
static struct destination *
ready_choose(struct sched *s)
{
    int room = s->settings.session_limit - working_sessions(s);
    if (room <= 0 || s->session_count / 2 >= s->settings.session_limit)
        return NULL;
    for (int i = 0; i < READY_TRIES && s->destinations.ready; i++) {
        struct destination *d = next_ready(s);
        if (d->idle < room)
            return d;
        ready_rotate(s, d);
    }
    return NULL;
}

static bool
next_open(struct sched *s, struct sched_action *action)
{
    struct destination *d = ready_choose(s);
    if (!d)
        return false;
    struct sched_session *session = memory_new(sizeof *session);
    session->destination = d;
    DL_APPEND(s->sessions, session);
    s->session_count++;
    d->sessions++;
    *action = (struct sched_action){.verb = SCHED_OPEN,
                                    .session = session,
                                    .target = &d->shared->target,
                                    .domain = d->domain};
    ready_rotate(s, d);
    return true;
}

static struct known *
first_due(const struct sched *s, enum known_age age)
{
    struct known *k = known_first(&s->known, age);
    return k && k->due_ms <= s->now_ms ? k : NULL;
}

static bool
next_load(struct sched *s, struct sched_action *action)
{
    if (s->active >= s->settings.active_limit) {
        s->old_turn = false; /* the next free place is for new mail */
        return false;
    }
    struct known *fresh = first_due(s, KNOWN_NEW), *old = first_due(s, KNOWN_OLD);
    if (!fresh && !old)
        return false;
    bool take_old = !fresh || (old && (s->old_turn || s->new_run >= NEW_RUN_MAX));
    struct known *k = take_old ? old : fresh;
    s->old_turn = !take_old;
    s->new_run = take_old || !old ? 0 : s->new_run + 1;
    s->active++;
    known_load(&s->known, k);
    *action = (struct sched_action){.verb = SCHED_LOAD, .id = known_id(k)};
    return true;
}

bool
sched_next(struct sched *s, int64_t now_ms, struct sched_action *action)
{
    tick(s, now_ms);
    if (next_settle(s, action) || next_end(s, action))
        return true;
    return !s->draining && (next_open(s, action) || next_load(s, action));
}

int64_t
sched_wake_ms(const struct sched *s)
{
    if (s->draining)
        return INT64_MAX;
    int64_t wake = destinations_wake_ms(&s->destinations);
    for (int age = 0; age < KNOWN_AGES && s->active < s->settings.active_limit; age++) {
        const struct known *k = known_first(&s->known, (enum known_age)age);
        if (k && k->due_ms < wake)
            wake = k->due_ms;
    }
    return wake;
}

/* --- Questions and commands
 * ------------------------------------------------------------- */

struct sched_state
sched_find(const struct sched *s, struct id id)
{
    const struct known *k = known_find(&s->known, id);
    if (!k)
        return (struct sched_state){.place = SCHED_UNKNOWN};
    struct sched_state state = {.place = SCHED_ACTIVE, .attempts = k->attempts};
    if (k->place == KNOWN_WAITING) {
        state.place = known_age(k) == KNOWN_NEW ? SCHED_INCOMING : SCHED_DEFERRED;
        state.due_ms = k->due_ms;
    }
    return state;
}

bool
sched_retry(struct sched *s, int64_t now_ms, struct id id)
{
    tick(s, now_ms);
    struct known *k = known_find(&s->known, id);
    if (!k)
        return false;
    if (k->place == KNOWN_WAITING && k->due_ms > s->now_ms)
        known_wait(&s->known, k, s->now_ms, k->attempts);
    if (k->place != KNOWN_ACTIVE)
        k->forced = 1;
    return true;
}

void
sched_retry_all(struct sched *s, int64_t now_ms)
{
    tick(s, now_ms);
    known_force_all(&s->known, s->now_ms);
    struct destination *d, *next;
    HASH_ITER (hh, s->destinations.by_key, d, next) {
        if (d->dead) {
            destination_revive(&s->destinations, d);
            update(s, d);
        }
    }
}

bool
sched_forget(struct sched *s, struct id id)
{
    const struct known *k = known_find(&s->known, id);
    if (!k || k->place != KNOWN_WAITING)
        return false;
    known_remove(&s->known, id);
    return true;
}

struct sched_counts
sched_count(const struct sched *s)
{
    return (struct sched_counts){
        .incoming = s->known.waiting[KNOWN_NEW],
        .active = (size_t)s->active,
        .deferred = s->known.waiting[KNOWN_OLD],
        .sessions = (size_t)s->session_count,
        .destinations = HASH_COUNT(s->destinations.by_key),
        .dead = s->destinations.dead_count,
    };
}

void
sched_sites(const struct sched *s,
            void (*each)(void *context, const struct sched_site *site), void *context)
{
    struct destination *d, *next;
    HASH_ITER (hh, s->destinations.by_key, d, next) {
        struct outcome outcome;
        if (d->dead)
            reason_read(d->reason, &outcome);
        struct sched_site site = {.key = d->key,
                                  .window = d->dead ? 0 : d->window.size,
                                  .sessions = d->sessions,
                                  .limit = d->window.limit,
                                  .waiting = d->recipients,
                                  .dead_until_ms = d->dead ? d->dead_until_ms : 0,
                                  .reason = d->dead ? &outcome : NULL};
        each(context, &site);
    }
}
