/* The scheduler's machine: mail whose lifetime ends while it waits in memory for its turn:
 * behind a rate, a full window, or other mail. No attempt would end its wait in time. */
#include "sched/sched_internal.h"

/* The bound of the entry's site: the mail waits for nothing else. */
static struct outcome
overdue_reason(const struct sched *s, const struct entry *e)
{
    struct site *site = e->destination->site;
    int64_t until_ms;
    return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.4.7",
                        "it has waited for its turn at %s in vain: %s", site->key,
                        sched_bound_word(site_bound(site, s->now_ms, &until_ms)));
}

static int64_t
overdue_ms(const struct sched_message *m, const struct destination *d)
{
    return m->birth_ms +
           transport_params_lifetime_ms(destination_transport(d), m->null_sender);
}

/* The attempt of recipients that a session has goes on. */
static int64_t
overdue_settle(struct sched *s, struct sched_message *m)
{
    struct entry *entries = message_entries(m);
    int64_t next_ms = INT64_MAX;
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &entries[i];
        struct destination *d = e->destination;
        if (e->given == e->count)
            continue;
        if (!message_is_expired(m, destination_transport(d), s->now_ms)) {
            int64_t ms = overdue_ms(m, d);
            next_ms = ms < next_ms ? ms : next_ms;
            continue;
        }
        struct outcome why = overdue_reason(s, e);
        lane_drop(&s->destinations.sites.flows, d->lane, e);
        sched_entry_settle(s, e, &why);
        destination_update(&s->destinations, d, s->now_ms);
    }
    return next_ms;
}

int64_t
sched_overdue(struct sched *s, int64_t now_ms, struct id id)
{
    sched_tick(s, now_ms);
    struct message_index *k = message_index_find(&s->known, id);
    if (!k || k->place != MESSAGE_INDEX_ACTIVE)
        return INT64_MAX;
    return sched_is_moving(s, k->message) ? now_ms : overdue_settle(s, k->message);
}
