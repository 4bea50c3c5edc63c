/* The scheduler's machine: takes a message back from it in the middle of an attempt, or
 * lets it enter again, after a change of the routes. */
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
bool
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
