/* Commands of operators for messages: hold, release, retry, bounce, remove. */
#include "queue/manager/manager_internal.h"
#include "queue/queue_fragments.h"
#include "queue/queue_operator.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPERATOR_TEXT_MAX = 128 };

/* One command on one message. */
struct command {
    struct manager *manager;
    struct id id;
    const char *by; /* the giver of the command, for log and hold text */
    char *why;      /* MANAGER_WHY_MAX */
    bool listed;    /* its files are known to be in their usual directories */
};

static enum manager_result
manager_operator_refuse(const struct command *o, const char *why)
{
    snprintf(o->why, MANAGER_WHY_MAX, "%s", why);
    return MANAGER_REFUSED;
}

static enum manager_result
refuse_errno(const struct command *o, const char *doing, int error)
{
    snprintf(o->why, MANAGER_WHY_MAX, "cannot %s: %s", doing, strerror(-error));
    return MANAGER_REFUSED;
}

static void
manager_operator_say(const struct command *o, enum event_kind kind)
{
    char text[OPERATOR_TEXT_MAX];
    snprintf(text, sizeof(text), "%s by %s", event_word(kind), o->by);
    event_tell(o->manager->events,
               &(struct event){.kind = kind, .id = o->id, .text = text_from(text)});
}

/* No envelope with that id was found. For a quarantined message the operator gets that
 * answer instead of "unknown". */
static enum manager_result
refuse_missing(const struct command *o)
{
    char note[QUEUE_NOTE_MAX];
    return queue_note(o->manager->queue, o->id, QUEUE_CORRUPT, note) < 0
               ? MANAGER_UNKNOWN
               : MANAGER_DAMAGED;
}

struct envelope *
manager_peek(struct manager *m, struct id id, enum queue_place place)
{
    char note[QUEUE_NOTE_MAX];
    struct envelope *e = queue_peek(m->queue, id, place);
    if (e == NULL && queue_note(m->queue, id, QUEUE_CORRUPT, note) == 0)
        (void)sched_forget(m->sched, id);
    return e;
}

/* The scheduler forgets the message, which waits on disk. */
static void
manager_operator_forget(const struct command *o)
{
    (void)sched_forget(o->manager->sched, o->id);
    deferral_reasons_forget(o->manager->reasons, o->id);
}

/* --- Hold ------------------------------------------------------------------------- */

/* The mark becomes durable immediately, even during a delivery, so that the rest is
 * held even after a crash. */
static enum manager_result
mark_held(const struct command *o, struct envelope *e)
{
    char text[HOLD_TEXT_MAX], words[HOLD_TEXT_MAX / 2];
    if (e->delivery.held)
        return MANAGER_DONE;
    snprintf(words, sizeof(words), "held by %s", o->by);
    attempt_hold_text(o->manager, words, text);
    int error = queue_hold(o->manager->queue, e, text, true);
    if (error < 0)
        return refuse_errno(o, "write its mark in hold/", error);
    e->delivery.held = true;
    if (e->fragment.awaits_parts)
        queue_wait(o->manager->queue, e, false);
    manager_operator_say(o, EVENT_HELD);
    return MANAGER_DONE;
}

/* Recipients that a session has are not called back: SMTP has no way to take mail back.
 * The rest stays. */
static enum manager_result
hold_active(const struct command *o, struct active *a)
{
    enum manager_result result = mark_held(o, a->envelope);
    if (result != MANAGER_DONE)
        return result;
    if (a->scheduled) {
        a->pending = PENDING_HOLD;
        return MANAGER_LATER;
    }
    manager_operator_forget(o);
    if (manager_must_expand(a->envelope))
        manager_active_drop(a);
    else
        manager_active_defer(a, loop_now_ms(o->manager->loop),
                             a->envelope->delivery.attempts);
    return MANAGER_DONE;
}

static enum manager_result
manager_operator_hold(const struct command *o)
{
    struct active *a = manager_active_find(o->manager, o->id);
    if (a)
        return hold_active(o, a);
    struct envelope *e = queue_load_envelope(o->manager->queue, o->id);
    if (e == NULL)
        return refuse_missing(o);
    enum manager_result result = e->delivery.held ? MANAGER_ALREADY : mark_held(o, e);
    envelope_free(&e);
    if (result == MANAGER_DONE)
        manager_operator_forget(o);
    return result;
}

/* --- Release ---------------------------------------------------------------------- */

/* Whether a route holds open recipients of a message that waits for others. Only the
 * daemon has routes. */
static bool
has_held_recipients(const struct manager *m, const struct envelope *e)
{
    if (m->settings.offline)
        return false;
    for (unsigned i = 0; i < e->count && !e->delivery.released; i++) {
        const struct recipient *r = &e->recipients[i];
        struct address address;
        const struct target *t = r->done ? NULL : attempt_route(m, e, r, &address);
        if (t != NULL && t->kind == TARGET_HOLD)
            return true;
    }
    return false;
}

/* From now on the message is released, also after a crash. */
static enum manager_result
manager_operator_note_release(const struct command *o, struct envelope *e)
{
    int error = queue_keep_release(o->manager->queue, e);
    if (error < 0)
        return refuse_errno(o, "note its release", error);
    e->delivery.released = true;
    return MANAGER_DONE;
}

/* Those recipients are due at the end of the attempt that runs. */
static enum manager_result
release_recipients(const struct command *o, struct active *a)
{
    if (a->pending != PENDING_NONE || !has_held_recipients(o->manager, a->envelope))
        return MANAGER_ALREADY;
    enum manager_result result = manager_operator_note_release(o, a->envelope);
    if (result != MANAGER_DONE)
        return result;
    a->pending = PENDING_RETRY;
    manager_operator_say(o, EVENT_RELEASED);
    return MANAGER_DONE;
}

/* The fragment no longer waits for others: it passes when it is offered next. The
 * fragment goes on unchanged: the operator wants it now, not with the others. */
static enum manager_result
release_fragment(const struct command *o, struct active *a)
{
    if (!manager_is_awaiting(o->manager, o->id))
        return release_recipients(o, a);
    enum manager_result result = manager_operator_note_release(o, a->envelope);
    if (result != MANAGER_DONE)
        return result;
    (void)manager_resume(o->manager, o->id);
    manager_operator_say(o, EVENT_RELEASED);
    return MANAGER_DONE;
}

/* The hold was given during a delivery that still runs: its open recipients are due at
 * the end of it. */
static enum manager_result
release_active(const struct command *o, struct active *a)
{
    if (!a->envelope->delivery.held)
        return release_fragment(o, a);
    enum manager_result result = manager_operator_note_release(o, a->envelope);
    if (result != MANAGER_DONE)
        return result;
    int error = queue_release(o->manager->queue, o->id);
    if (error < 0)
        return refuse_errno(o, "remove its mark in hold/", error);
    a->envelope->delivery.held = false;
    if (a->pending == PENDING_HOLD)
        a->pending = PENDING_RETRY;
    manager_operator_say(o, EVENT_RELEASED);
    return MANAGER_DONE;
}

/* Beyond the active set the message becomes due on disk, which ends the look-up of
 * aliases. So it stays in todo/ while that look-up must be repeated, and also without a
 * daemon, which alone has aliases. */
static bool
manager_operator_stays(const struct manager *m, const struct envelope *e)
{
    return manager_must_expand(e) || (m->settings.offline && e->storage.in_todo);
}

/* Takes ownership of the envelope. Makes the message due now, past routes that hold.
 * This is written to disk with its due time, or kept in memory when it has none yet and
 * the active set has space. */
static void
manager_operator_let_go(const struct command *o, struct envelope *e)
{
    struct manager *m = o->manager;
    int64_t now = loop_now_ms(m->loop);
    unsigned attempts = e->delivery.attempts;
    unsigned recipients = e->count;
    bool has_space = !m->settings.offline && manager_has_room(m, recipients);
    e->delivery.held = false;
    if (!e->storage.preprocessed && has_space)
        manager_active_new(m, e);
    else if (manager_operator_stays(m, e))
        envelope_free(&e);
    else
        queue_defer(m->queue, &e, now, attempts);
    sched_add(m->sched, o->id, now, attempts);
    sched_weigh(m->sched, o->id, recipients);
    (void)sched_retry(m->sched, o->id);
    manager_operator_say(o, EVENT_RELEASED);
    manager_wake(m);
}

static enum manager_result
manager_operator_release_held(const struct command *o, struct envelope *e)
{
    enum manager_result result = manager_operator_note_release(o, e);
    int error = 0;
    if (result == MANAGER_DONE && e->delivery.held)
        error = queue_release(o->manager->queue, o->id);
    if (error < 0)
        result = refuse_errno(o, "remove its mark in hold/", error);
    if (result == MANAGER_DONE)
        manager_operator_let_go(o, e);
    else
        envelope_free(&e);
    return result;
}

/* A message to be released or returned: one in todo/ gets the members of its aliases and its
 * copies, as any that is loaded for delivery. NULL: there is none. */
static struct envelope *
manager_operator_load(const struct command *o)
{
    struct envelope *e = queue_load(o->manager->queue, o->id);
    if (e != NULL)
        manager_expand(o->manager, e);
    return e;
}

/* Moves the message out of corrupt/ if it is intact again, and out of hold/ if it was
 * held. */
static enum manager_result
manager_operator_release_quarantined(const struct command *o)
{
    enum manager_result found = refuse_missing(o);
    if (found == MANAGER_UNKNOWN)
        return found;
    int error = queue_release(o->manager->queue, o->id);
    if (error == -EBADMSG)
        return manager_operator_refuse(o, "is still damaged: see its note in corrupt/");
    if (error < 0)
        return refuse_errno(o, "move its files out of corrupt/", error);
    struct envelope *e = manager_operator_load(o);
    return e ? manager_operator_release_held(o, e)
             : manager_operator_refuse(o, "cannot be read");
}

/* A message is looked for in memory, then on disk, then in corrupt/. In each place
 * "released" means that nothing keeps it any more. */
static enum manager_result
manager_operator_release(const struct command *o)
{
    struct active *a = manager_active_find(o->manager, o->id);
    if (a)
        return release_active(o, a);
    struct envelope *e = manager_operator_load(o);
    if (e == NULL)
        return manager_operator_release_quarantined(o);
    bool waits = !e->delivery.held && (manager_is_awaiting(o->manager, o->id) ||
                                       release_is_ahead(o->manager, e) ||
                                       has_held_recipients(o->manager, e));
    if (waits)
        manager_operator_forget(o); /* it is then added as due now */
    if (e->delivery.held || waits)
        return manager_operator_release_held(o, e);
    envelope_free(&e);
    return MANAGER_ALREADY;
}

/* --- Retry, bounce, remove -------------------------------------------------------- */

static void
say_due(const struct command *o)
{
    event_tell(o->manager->events, &(struct event){.kind = EVENT_RETRIED,
                                                   .id = o->id,
                                                   .text = TEXT("retry requested")});
}

/* No daemon runs, so the due time on disk is changed. */
static void
retry_offline(const struct command *o, struct envelope *e)
{
    int64_t now = loop_now_ms(o->manager->loop);
    unsigned attempts = e->delivery.attempts;
    if (e->delivery.due_ms > now)
        queue_defer(o->manager->queue, &e, now, attempts);
    else
        envelope_free(&e);
}

/* The scheduler knows the message, unless startup has not found it yet; without a
 * daemon there is no scheduler. */
static enum manager_result
manager_operator_retry(const struct command *o)
{
    struct manager *m = o->manager;
    int64_t now = loop_now_ms(m->loop);
    manager_wake(m);
    if (!m->settings.offline && sched_retry(m->sched, o->id)) {
        say_due(o);
        return MANAGER_DONE;
    }
    struct envelope *e = queue_load_envelope(m->queue, o->id);
    if (e == NULL)
        return refuse_missing(o);
    if (e->delivery.held) {
        envelope_free(&e);
        return manager_operator_refuse(o, "is held and cannot be retried");
    }
    if (m->settings.offline) {
        retry_offline(o, e);
    } else { /* startup has not yet found the message */
        sched_add(m->sched, o->id, now, e->delivery.attempts);
        sched_weigh(m->sched, o->id, e->count);
        envelope_free(&e);
    }
    say_due(o);
    return MANAGER_DONE;
}

/* The report names all open recipients, so the message has to be in memory. */
static enum manager_result
manager_operator_bounce(const struct command *o)
{
    struct active *a = manager_active_find(o->manager, o->id);
    if (a && a->scheduled) {
        a->pending = PENDING_BOUNCE;
        return MANAGER_LATER;
    }
    if (a == NULL) {
        struct envelope *e = manager_operator_load(o);
        if (e == NULL)
            return refuse_missing(o);
        a = manager_active_new(o->manager, e);
    }
    a->loaded_ms = loop_now_ms(o->manager->loop);
    manager_operator_forget(o);
    manager_operator_say(o, EVENT_RETURNED);
    attempt_bounce(a);
    return MANAGER_DONE;
}

/* Held and quarantined mail, too, and a message that cannot be read: nobody is notified
 * of it. */
static enum manager_result
remove_message(const struct command *o)
{
    struct active *a = manager_active_find(o->manager, o->id);
    if (a && a->scheduled) {
        a->pending = PENDING_REMOVE;
        return MANAGER_LATER;
    }
    manager_operator_forget(o);
    if (a) {
        manager_active_remove(a);
        return MANAGER_DONE;
    }
    if (o->listed ? !queue_remove_listed(o->manager->queue, o->id)
                  : !queue_remove(o->manager->queue, o->id))
        return MANAGER_UNKNOWN;
    manager_operator_say(o, EVENT_REMOVED);
    event_tell(o->manager->events, &(struct event){.kind = EVENT_ENDED, .id = o->id});
    return MANAGER_DONE;
}

/* ---------------------------------------------------------------------------------- */

bool
manager_handles(const struct manager *m, struct id id)
{
    return queue_handles(m->queue, id);
}

/* A slice belongs to one daemon, which alone knows the state of the message. */
static enum manager_result
manager_operator_operate(struct manager *m, enum manager_verb verb, struct id id,
                         const char *by, bool listed, char why[MANAGER_WHY_MAX])
{
    static enum manager_result (*const verbs[])(const struct command *) = {
        [MANAGER_HOLD] = manager_operator_hold,
        [MANAGER_RELEASE] = manager_operator_release,
        [MANAGER_RETRY] = manager_operator_retry,
        [MANAGER_BOUNCE] = manager_operator_bounce,
        [MANAGER_REMOVE] = remove_message,
    };
    struct command order = {m, id, by, why, listed};
    why[0] = '\0';
    if (!manager_handles(m, id)) {
        snprintf(why, MANAGER_WHY_MAX, "belongs to slice %u; ask its daemon",
                 id_slice(id, m->settings.queue.slices));
        return MANAGER_REFUSED;
    }
    const struct active *a = manager_active_find(m, id);
    /* Its notification is being committed: too late for a command. */
    if (a && a->ending)
        return MANAGER_ENDING;
    if (a && a->loaned) {
        snprintf(why, MANAGER_WHY_MAX, "is being given to another host");
        return MANAGER_REFUSED;
    }
    struct id before = queue_enter(m->queue, id);
    enum manager_result result = verbs[verb](&order);
    queue_leave(m->queue, before);
    bool taken = result == MANAGER_DONE || result == MANAGER_LATER;
    if (taken && verb != MANAGER_RELEASE && verb != MANAGER_RETRY)
        manager_awaiting_withdraw(m, id);
    assert(result != MANAGER_REFUSED || why[0] != '\0');
    return result;
}

enum manager_result
manager_operate(struct manager *m, enum manager_verb verb, struct id id,
                char why[MANAGER_WHY_MAX])
{
    return manager_operator_operate(m, verb, id, "the operator", false, why);
}

enum manager_result
manager_remove_listed(struct manager *m, struct id id, char why[MANAGER_WHY_MAX])
{
    return manager_operator_operate(m, MANAGER_REMOVE, id, "the operator", true, why);
}

enum manager_result
manager_hold(struct manager *m, struct id id, const char *by, char why[MANAGER_WHY_MAX])
{
    return manager_operator_operate(m, MANAGER_HOLD, id, by, false, why);
}

bool
manager_is_offline(const struct manager *m)
{
    return m->settings.offline;
}

struct manager_notifications
manager_notifications(const struct manager *m)
{
    return m->notifications;
}

void
manager_retry_all(struct manager *m)
{
    sched_retry_all(m->sched);
    manager_wake(m);
}

bool
manager_forget_limits(struct manager *m, const char *site)
{
    bool known = sched_forget_limits(m->sched, site);
    if (known) {
        log_say(m->log, LOG_LEVEL_INFO, "queue", NULL,
                "the operator forgets the learnt limits of %s", site);
        manager_wake(m);
    }
    return known;
}

const struct envelope *
manager_active(struct manager *m, struct id id)
{
    struct active *a = manager_active_find(m, id);
    return a ? a->envelope : NULL;
}

const char *
manager_reason(struct manager *m, struct id id, unsigned recipient)
{
    struct active *a = manager_active_find(m, id);
    if (a && a->reasons && recipient < a->envelope->count)
        return a->reasons[recipient] ? a->reasons[recipient] : "";
    const char *last = deferral_reasons_find(m->reasons, id);
    if (!manager_is_awaiting(m, id))
        return last;
    /* Another of our hosts does not answer, or other recipients are deferred. */
    size_t length = strlen(m->explained);
    if (last[0] != '\0')
        snprintf(m->explained + length, sizeof(m->explained) - length,
                 "; previously deferred: %s", last);
    return m->explained;
}
