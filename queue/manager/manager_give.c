/* Mail that goes to another host of the group, or has come from there: lent to the
 * module that gives it, taken back, ended; and known from its arrival on. */
#include "queue/manager/manager_internal.h"

#include "queue/queue_operator.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

/* --- Whether it may go ------------------------------------------------------------ */

/* No other host can deliver mail for a Maildir or a socket of this machine. */
static bool
give_is_local(const struct target *t)
{
    return t->kind == TARGET_MAILDIR || (t->kind == TARGET_LMTP && t->path[0] == '/');
}

static bool
give_stays(const struct manager *m, const struct envelope *e)
{
    struct address address;
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        if (r->done || r->expanded)
            continue;
        if (r->refused == RECIPIENT_UNSURE)
            return true;
        const struct target *t = attempt_route(m, e, r, &address);
        if (t != NULL && give_is_local(t))
            return true;
    }
    return false;
}

/* --- Lending ---------------------------------------------------------------------- */

/* In memory it may wait for a session that does not come. */
static struct active *
give_take_active(struct active *a, const struct sched_state *known)
{
    struct manager *m = a->manager;
    if (a->loaned || a->ending || a->warning || a->holding || a->wanted ||
        a->pending == PENDING_BOUNCE || a->pending == PENDING_REMOVE ||
        a->routing.queued || known->loading)
        return NULL;
    if (known->place != SCHED_UNKNOWN && !sched_withdraw(m->sched, a->id))
        return NULL;
    a->scheduled = false;
    begin_forget(a);
    /* Its marks may be on their way. */
    a->is_changed = a->envelope->delivery.done > 0;
    return a;
}

/* The scheduler knows all that is not held, unless startup has not reported it yet, or the
 * disk does not say now that it is held. */
static enum manager_lent
give_load(struct manager *m, struct id id, bool is_known, int64_t *budget,
          struct active **loaded)
{
    char note[QUEUE_NOTE_MAX];
    switch (queue_check(m->queue, id, budget)) {
    case QUEUE_CHECK_MORE:
    case QUEUE_CHECK_WAITS:
        return MANAGER_LEND_MORE;
    case QUEUE_CHECKED:
        break;
    }
    struct envelope *e = queue_load(m->queue, id);
    if (e == NULL && queue_note(m->queue, id, QUEUE_CORRUPT, note) == 0)
        return MANAGER_LEND_DAMAGED;
    /* A known message cannot be read now, unless the next list does not have it. */
    if (e == NULL)
        return is_known ? MANAGER_LEND_BUSY : MANAGER_LEND_GONE;
    *budget -= e->content_size;
    if (!is_known && !e->delivery.held) {
        envelope_free(&e);
        return MANAGER_LEND_BUSY;
    }
    manager_expand(m, e);
    *loaded = manager_active_new(m, e);
    return MANAGER_LENT;
}

/* So that the taker knows why it waits. */
static void
give_note_reason(struct manager *m, struct envelope *e)
{
    char reason[ENVELOPE_REASON_MAX + 1];
    const char *text = deferral_reasons_find(m->reasons, e->id);
    e->moved.reason = TEXT("");
    if (text[0] == '\0')
        return;
    snprintf(reason, sizeof(reason), "%03d %s",
             deferral_reasons_code(m->reasons, e->id), text);
    e->moved.reason = envelope_text(e, text_from(reason));
    if (e->moved.reason.at == NULL) /* no room for it */
        e->moved.reason = TEXT("");
}

static void
give_keep_reason(struct manager *m, const struct envelope *e)
{
    struct text text = e->moved.reason, code;
    uint64_t number = 0;
    if (!text_cut(&text, ' ', &code) || !text_number(code, 599, &number) ||
        text.length == 0)
        return;
    struct outcome outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, (int)number,
                                          "4.0.0", "%.*s", TEXT_ARGS(text));
    deferral_reasons_keep(m->reasons, e->id, &outcome);
}

/* Its own state, and that of the scheduler, which is newer than the disk's. */
static void
give_note_state(struct active *a, const struct sched_state *known)
{
    struct manager *m = a->manager;
    struct envelope *e = a->envelope;
    char note[QUEUE_NOTE_MAX] = "";
    a->was_held = e->delivery.held;
    if (known->place != SCHED_UNKNOWN && known->place != SCHED_ACTIVE)
        e->delivery.due_ms = known->due_ms;
    /* It is due; the disk may have the time of a clock that was ahead. */
    if (known->place == SCHED_ACTIVE && e->delivery.due_ms > loop_now_ms(m->loop))
        e->delivery.due_ms = loop_now_ms(m->loop);
    if (known->place != SCHED_UNKNOWN)
        e->delivery.attempts = known->attempts;
    if (a->was_held && queue_note(m->queue, a->id, QUEUE_HOLD, note) < 0)
        note[0] = '\0';
    e->posted = TEXT("");
    e->moved.hold = TEXT("");
    if (a->was_held)
        e->moved.hold = envelope_text(e, text_from(note[0] ? note : "0 held\n"));
    if (e->moved.hold.at == NULL) /* no room for it */
        e->moved.hold = TEXT("0 held\n");
    give_note_reason(m, e);
}

/* Others do not wait for it any longer, and it is offered anew where it goes, or here if it
 * comes back. Returns its set. */
static uint64_t
give_end_awaiting(struct active *a)
{
    struct manager *m = a->manager;
    const struct manager_defragment *d = m->defragment;
    if (!manager_is_awaiting(m, a->id) && !a->envelope->fragment.awaits_parts)
        return 0;
    uint64_t set = d != NULL && d->set != NULL ? d->set(d->context, a->id) : 0;
    manager_awaiting_withdraw(m, a->id);
    a->envelope->delivery.due_ms = loop_now_ms(m->loop);
    return set;
}

/* Undoes the loan. With marks, or an operator's release, that memory alone has it is
 * written. */
static void
give_put_back(struct active *a)
{
    struct manager *m = a->manager;
    struct delivery_state d = a->envelope->delivery;
    struct id id = a->id;
    unsigned recipients = a->envelope->count;
    bool held = a->was_held;
    a->loaned = false;
    if (a->is_changed || d.released)
        manager_active_defer(a, d.due_ms, d.attempts);
    else
        manager_active_drop(a);
    if (held)
        return;
    sched_add(m->sched, id, d.due_ms, d.attempts);
    sched_weigh(m->sched, id, recipients);
    manager_wake(m);
}

static enum manager_lent
give_lend(struct active *a, const struct sched_state *known, struct manager_loan *loan)
{
    struct manager *m = a->manager;
    a->loaned = true;
    a->loaded_ms = loop_now_ms(m->loop);
    give_note_state(a, known);
    if (give_stays(m, a->envelope)) {
        give_put_back(a);
        return MANAGER_LEND_STAYS;
    }
    loan->set = give_end_awaiting(a);
    if (envelope_has_refused(a->envelope)) {
        begin_settle_refused(a);
        a->is_changed = true;
    }
    loan->envelope = a->envelope;
    return MANAGER_LENT;
}

/* The whole would be there beside the fragment. */
static bool
give_is_reassembled(const struct manager *m, struct id id)
{
    return m->defragment != NULL && m->defragment->reassembles != NULL &&
           m->defragment->reassembles(m->defragment->context, id);
}

enum manager_lent
manager_lend(struct manager *m, struct id id, int64_t *budget,
             struct manager_loan *loan)
{
    struct active *a = manager_active_find(m, id);
    struct sched_state known = sched_find(m->sched, id);
    struct id before = queue_enter(m->queue, id);
    enum manager_lent result = MANAGER_LENT;
    if (give_is_reassembled(m, id))
        result = MANAGER_LEND_BUSY;
    else if (a != NULL)
        result = give_take_active(a, &known) != NULL ? MANAGER_LENT : MANAGER_LEND_BUSY;
    else if (known.place == SCHED_ACTIVE)
        result = MANAGER_LEND_BUSY;
    else
        result = give_load(m, id, known.place != SCHED_UNKNOWN, budget, &a);
    if (a != NULL && result == MANAGER_LENT) {
        (void)sched_forget(m->sched, id);
        result = give_lend(a, &known, loan);
    }
    queue_leave(m->queue, before);
    return result;
}

bool
manager_is_lent(const struct manager *m, struct id id)
{
    const struct active *a = manager_active_find(m, id);
    return a != NULL && a->loaned;
}

void
manager_take_back(struct manager *m, struct id id)
{
    struct active *a = manager_active_find(m, id);
    struct id before = queue_enter(m->queue, id);
    if (a != NULL && a->loaned)
        give_put_back(a);
    queue_leave(m->queue, before);
}

static void
give_tell(struct manager *m, const struct envelope *e, const char *host,
          struct id there)
{
    char as[ID_LENGTH + 1];
    id_format(there, as);
    const struct event_field fields[] = {
        {.key = "to",       .kind = EVENT_TEXT,   .value = text_from(host)           },
        {.key = "as",       .kind = EVENT_TEXT,   .value = text_from(as)             },
        {.key = "attempts", .kind = EVENT_NUMBER, .number = e->delivery.attempts     },
        {.key = "due",      .kind = EVENT_NUMBER, .number = e->delivery.due_ms / 1000},
        {.key = "status",   .kind = EVENT_TEXT,   .value = TEXT("given")             }
    };
    event_tell(m->events,
               &(struct event){.kind = EVENT_GIVEN,
                               .id = e->id,
                               .other = there,
                               .fields = fields,
                               .field_count = sizeof(fields) / sizeof(fields[0])});
}

void
manager_give_away(struct manager *m, struct id id, const char *host, struct id there)
{
    struct active *a = manager_active_find(m, id);
    struct id before = queue_enter(m->queue, id);
    if (a != NULL && a->loaned) {
        give_tell(m, a->envelope, host, there);
        manager_active_retire(a);
    }
    queue_leave(m->queue, before);
}

void
manager_rest_loads(struct manager *m)
{
    int64_t now_ms = loop_now_ms(m->loop);
    for (; m->load_next < m->load_count; m->load_next++) {
        struct id id = m->loads[m->load_next];
        struct sched_state known = sched_find(m->sched, id);
        if (!known.loading)
            continue;
        sched_unloaded(m->sched, id);
        sched_add(m->sched, id, now_ms, known.attempts);
    }
}

/* --- Taken ------------------------------------------------------------------------ */

/* It waits on disk: memory is for mail that is due, and many hosts may give mail. */
void
manager_take_over(struct manager *m, struct envelope **e, const char *hold)
{
    struct id id = (*e)->id;
    unsigned recipients = (*e)->count, attempts = (*e)->delivery.attempts;
    /* The giver's clock may be ahead. */
    int64_t due_ms = manager_clock_due_ms(m, (*e)->delivery.due_ms);
    give_keep_reason(m, *e);
    envelope_free(e);
    if (hold[0] != '\0')
        return;
    sched_add(m->sched, id, due_ms, attempts);
    sched_weigh(m->sched, id, recipients);
    manager_wake(m);
}
