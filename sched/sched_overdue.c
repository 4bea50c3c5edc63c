/* The scheduler's machine: mail whose lifetime ends, or whose sender is to be notified, while
 * it waits in memory for its turn: behind a rate, a full window, or other mail. No attempt
 * would end its wait in time. */
#include "sched/sched_internal.h"

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
