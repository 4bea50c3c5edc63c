/* The scheduler's machine: takes a message back from it in the middle of an attempt. */
#include "sched/sched_internal.h"

/* Entries are in no queue: of a message with very many destinations, or before their
 * verdict. */
static bool
withdraw_is_moving(const struct sched *s, const struct sched_message *m)
{
    for (const struct sched_part *part = s->entering; part; part = part->next)
        if (part->message == m)
            return true;
    return s->settling != NULL || m->unsettled == 0;
}

static bool
withdraw_is_taken(const struct sched_message *m)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->slots[i].state == SLOT_TAKEN)
            return true;
    return false;
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

bool
sched_withdraw(struct sched *s, int64_t now_ms, struct id id)
{
    sched_tick(s, now_ms);
    struct message_index *k = message_index_find(&s->known, id);
    if (!k || k->place != MESSAGE_INDEX_ACTIVE)
        return sched_forget(s, id);
    struct sched_message *m = k->message;
    if (withdraw_is_moving(s, m) || withdraw_is_taken(m))
        return false;
    withdraw_entries(s, m);
    sched_room_leave(s, k);
    sched_backlog_forget(s, k);
    message_free(&s->destinations, &m, s->now_ms);
    return true;
}
