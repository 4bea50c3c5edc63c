/* The scheduler's machine: mail in memory that leaves it in the middle of an attempt, enters it
 * again after a change of the routes, or has waited for too long. */
#include "sched/sched_internal.h"

#include "sched/limits/reply_class.h"

#include <limits.h>

static unsigned
withdraw_count(const struct sched_message *m, enum slot_state state)
{
    unsigned count = 0;
    for (unsigned i = 0; i < m->count; i++)
        count += m->slots[i].state == state;
    return count;
}

/* Entries are in no queue: of a message with very many destinations, or before their
 * verdict. Or all have one, and the end of the attempt is on its way. */
static bool
sched_is_moving(const struct sched *s, const struct sched_message *m)
{
    for (const struct sched_part *part = s->entering; part; part = part->next)
        if (part->message == m)
            return true;
    return s->settling != NULL ||
           withdraw_count(m, SLOT_WAITING) + withdraw_count(m, SLOT_TAKEN) == 0;
}

static void
withdraw_entries(struct sched *s, struct sched_message *m)
{
    struct entry *entries = message_entries(m);
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &entries[i];
        if (e->given < e->count)
            lane_drop(&s->destinations.sites.flows, e->destination->lane, e);
    }
}

/* --- After a change of the routes -------------------------------------------------- */

static struct sched_message *
again_message(const struct sched *s, struct id id, struct message_index **k)
{
    *k = message_index_find(&s->known, id);
    return *k && (*k)->place == MESSAGE_INDEX_ACTIVE ? (*k)->message : NULL;
}

bool
sched_seek_astray(const struct sched *s, struct id id, unsigned *slot, unsigned most,
                  sched_is_astray *is_astray, void *context)
{
    struct message_index *k;
    struct sched_message *m = again_message(s, id, &k);
    unsigned end = m ? m->count : 0;
    /* It may have come back with fewer recipients. */
    if (*slot > end)
        *slot = end;
    if (most < end - *slot)
        end = *slot + most;
    for (; *slot < end; ++*slot) {
        const struct slot *at = &m->slots[*slot];
        if (at->state == SLOT_WAITING &&
            is_astray(context, at->index,
                      &message_destination(m, *slot)->transport->target))
            return true;
    }
    if (!m || *slot == m->count)
        *slot = UINT_MAX;
    return false;
}

/* As if it were loaded now; but it has its place in memory, and keeps it. */
static void
again_load(struct sched *s, struct message_index *k, struct sched_message *m)
{
    withdraw_entries(s, m);
    message_index_wait(&s->known, k, s->now_ms, k->attempts);
    message_index_load(&s->known, k);
    k->recalled = 1;
    s->recalling++;
    s->recalling_recipients += k->recipients;
    sched_message_leave(s, m);
}

/* Some recipients have had their attempt, or have it: the others wait for its end, which
 * then comes soon. */
static void
again_settle(struct sched *s, struct sched_message *m)
{
    static const struct outcome changed = {.verdict = VERDICT_DEFERRED,
                                           .blame = BLAME_NONE,
                                           .enhanced = REPLY_CLASS_TOKEN_ENHANCED,
                                           .text = "its route has changed"};
    struct entry *entries = message_entries(m);
    m->is_astray = 1;
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &entries[i];
        struct destination *d = e->destination;
        if (e->given == e->count)
            continue;
        lane_drop(&s->destinations.sites.flows, d->lane, e);
        sched_entry_settle(s, e, &changed);
        destination_update(&s->destinations, d, s->now_ms);
    }
}

enum sched_again
sched_enter_again(struct sched *s, struct id id)
{
    struct message_index *k;
    sched_tick(s);
    struct sched_message *m = again_message(s, id, &k);
    if (!m)
        return SCHED_AGAIN_NEVER;
    if (sched_is_moving(s, m))
        return SCHED_AGAIN_LATER;
    if (withdraw_count(m, SLOT_WAITING) < m->count) {
        again_settle(s, m);
        return SCHED_AGAIN_NEVER;
    }
    again_load(s, k, m);
    return SCHED_AGAIN_NOW;
}

bool
sched_withdraw(struct sched *s, struct id id)
{
    sched_tick(s);
    struct message_index *k = message_index_find(&s->known, id);
    if (!k || k->place != MESSAGE_INDEX_ACTIVE)
        return sched_forget(s, id);
    struct sched_message *m = k->message;
    if (sched_is_moving(s, m) || withdraw_count(m, SLOT_TAKEN) > 0)
        return false;
    withdraw_entries(s, m);
    sched_admission_leave(s, k);
    sched_backlog_forget(s, k);
    message_free(&s->destinations, &m, s->now_ms);
    return true;
}

/* --- Mail whose lifetime ends, or whose sender is to be notified ----------------- */

/* It waits in memory for its turn: behind a rate, a full window, or other mail. No attempt
 * would end its wait in time. */
enum { OVERDUE_AGAIN_MS = 10 * 1000 }; /* a session for it begins */

struct overdue {
    struct sched *s;
    struct sched_message *message;
    bool is_over;     /* the lifetime, not the patience of the sender */
    int64_t next_ms;  /* when to ask again */
    unsigned settled; /* entries */
};

static void
overdue_note(struct overdue *o, int64_t ms)
{
    o->next_ms = ms < o->next_ms ? ms : o->next_ms;
}

/* When the lifetime of the entry is over; INT64_MAX: with its first attempt. */
static int64_t
overdue_ms(const struct overdue *o, const struct entry *e)
{
    const struct sched_message *m = o->message;
    int64_t lifetime_ms = transport_params_lifetime_ms(
        destination_transport(e->destination), m->null_sender);
    return lifetime_ms > 0 ? m->birth_ms + lifetime_ms : INT64_MAX;
}

/* With the bound of its site as the reason: the mail waits for nothing else. Without a
 * bound it is being served. */
static void
overdue_settle(struct overdue *o, struct entry *e)
{
    struct sched *s = o->s;
    struct destination *d = e->destination;
    int64_t until_ms;
    enum sched_bound bound = sched_bound_now(s, d->site, &until_ms);
    if (bound == SCHED_BOUND_NONE) {
        overdue_note(o, s->now_ms + OVERDUE_AGAIN_MS);
        return;
    }
    struct outcome why =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.4.7",
                     o->is_over ? "it has waited for its turn at %s in vain: %s"
                                : "it waits for its turn at %s: %s",
                     d->site->key, sched_bound_word(bound));
    lane_drop(&s->destinations.sites.flows, d->lane, e);
    sched_entry_settle(s, e, &why);
    destination_update(&s->destinations, d, s->now_ms);
    o->settled++;
}

/* The attempt of recipients that a session has goes on. A part of a message with very
 * many destinations is settled at a time. */
static void
overdue_entries(struct overdue *o)
{
    struct entry *entries = message_entries(o->message);
    for (unsigned i = 0; i < o->message->entry_count; i++) {
        struct entry *e = &entries[i];
        int64_t ms = o->is_over ? overdue_ms(o, e) : o->s->now_ms;
        if (e->given == e->count)
            continue;
        if (o->settled == SCHED_ENTRIES_PER_TURN) {
            overdue_note(o, o->s->now_ms);
            return;
        }
        if (ms <= o->s->now_ms)
            overdue_settle(o, e);
        else
            overdue_note(o, ms);
    }
}

static struct overdue
overdue_begin(struct sched *s, struct id id, bool is_over)
{
    sched_tick(s);
    struct message_index *k = message_index_find(&s->known, id);
    bool is_active = k && k->place == MESSAGE_INDEX_ACTIVE;
    return (struct overdue){.s = s,
                            .message = is_active ? k->message : NULL,
                            .is_over = is_over,
                            .next_ms = INT64_MAX};
}

int64_t
sched_overdue(struct sched *s, struct id id)
{
    struct overdue o = overdue_begin(s, id, true);
    if (!o.message)
        return INT64_MAX;
    if (sched_is_moving(s, o.message))
        return s->now_ms;
    overdue_entries(&o);
    return o.next_ms;
}

/* A part of a message with very many destinations is left for the next question. */
bool
sched_interrupt(struct sched *s, struct id id)
{
    struct overdue o = overdue_begin(s, id, false);
    if (!o.message || sched_is_moving(s, o.message))
        return false;
    overdue_entries(&o);
    return o.settled > 0 && o.next_ms > s->now_ms;
}
