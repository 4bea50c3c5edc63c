/* Loaded messages: recipients grouped by destination, verdicts, expiry, next delay. */
#include "sched/message.h"

#include "base/memory.h"
#include "sched/retry.h"

#include <assert.h>
#include <stdlib.h>

static int64_t
message_age_ms(const struct sched_message *m, int64_t now_ms)
{
    int64_t birth = m->birth_ms < 0 ? 0 : m->birth_ms;
    return birth < now_ms ? now_ms - birth : 0;
}

/* Finds each recipient's destination and counts; the entries' order is that of their
 * first recipient. */
static void
count_entries(struct sched_message *m, struct destinations *set,
              const struct sched_recipient *recipients, struct destination **found)
{
    size_t capacity = 0;
    for (unsigned i = 0; i < m->count; i++) {
        struct destination *d = found[i] =
            destination_get(set, recipients[i].target, recipients[i].domain);
        d->entries++; /* in use from here on: its target stays */
        if (!d->filling) {
            if (m->entry_count == capacity) {
                capacity = capacity ? 2 * capacity : 1;
                m->entries = memory_resize(m->entries, capacity * sizeof *m->entries);
            }
            m->entries[m->entry_count++] =
                (struct entry){.message = m, .destination = d};
            d->filling = m->entries; /* only a mark: the array may still move */
        }
    }
}

struct sched_message *
message_new(struct destinations *set, const struct sched_recipient *recipients,
            size_t count)
{
    assert(count > 0 && count <= UINT32_MAX);
    struct sched_message *m = memory_new(sizeof *m + count * sizeof *m->slots);
    struct destination **found = memory_array(count, sizeof(struct destination *));
    m->count = m->unsettled = (unsigned)count;
    count_entries(m, set, recipients, found);
    for (unsigned i = 0; i < m->entry_count; i++)
        m->entries[i].destination->filling = &m->entries[i];
    for (unsigned i = 0; i < m->count; i++)
        found[i]->filling->count++;
    for (unsigned i = 1; i < m->entry_count; i++)
        m->entries[i].first = m->entries[i - 1].first + m->entries[i - 1].count;
    for (unsigned i = 0; i < m->count; i++) {
        struct entry *e = found[i]->filling;
        m->slots[e->first + e->given++].index = recipients[i].index;
    }
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &m->entries[i];
        e->destination->entries -= e->count - 1; /* it was counted once a recipient */
        e->destination->filling = NULL;
        e->given = 0;
    }
    free(found);
    return m;
}

void
message_free(struct destinations *set, struct sched_message **message, int64_t now_ms)
{
    struct sched_message *m = *message;
    *message = NULL;
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &m->entries[i];
        struct destination *d = e->destination;
        for (unsigned j = 0; j < e->count; j++)
            reason_close(&d->reasons, &m->slots[e->first + j].reason);
        reason_close(&d->reasons, &e->reason);
        assert(d->entries > 0);
        d->entries--;
        destination_update(set, d, now_ms);
    }
    free(m->entries);
    free(m);
}

void
message_settle(struct sched_message *m, unsigned slot, struct reason *reason)
{
    assert(slot < m->count && m->unsettled > 0);
    assert(m->slots[slot].state == SLOT_WAITING || m->slots[slot].state == SLOT_TAKEN);
    m->slots[slot].state = reason ? SLOT_DEFERRED : SLOT_DONE;
    m->slots[slot].reason = reason;
    m->deferred += reason != NULL;
    m->unsettled--;
}

static bool
is_expired(const struct sched_message *m, const struct transport *t, int64_t now_ms)
{
    int64_t lifetime = t->lifetime_ms;
    if (m->null_sender && t->bounce_lifetime_ms < lifetime)
        lifetime = t->bounce_lifetime_ms;
    return message_age_ms(m, now_ms) >= lifetime;
}

bool
message_expire(struct sched_message *m, int64_t now_ms, unsigned *index,
               struct outcome *outcome)
{
    assert(m->unsettled == 0);
    for (; m->at_entry < m->entry_count; m->at_entry++) {
        struct entry *e = &m->entries[m->at_entry];
        const struct transport *t = destination_transport(e->destination);
        for (; m->at_slot < e->first + e->count; m->at_slot++) {
            struct slot *slot = &m->slots[m->at_slot];
            if (slot->state != SLOT_DEFERRED || !is_expired(m, t, now_ms))
                continue;
            reason_read(slot->reason, outcome);
            outcome->verdict = VERDICT_FAILED;
            reason_close(&e->destination->reasons, &slot->reason);
            slot->state = SLOT_DONE;
            m->deferred--;
            *index = slot->index;
            return true;
        }
    }
    return false;
}

int64_t
message_delay_ms(const struct sched_message *m, int64_t now_ms)
{
    int64_t delay = INT64_MAX;
    for (unsigned i = 0; i < m->entry_count; i++) {
        const struct entry *e = &m->entries[i];
        const struct transport *t = destination_transport(e->destination);
        int64_t its = retry_delay_ms(message_age_ms(m, now_ms), t->minimal_backoff_ms,
                                     t->maximal_backoff_ms);
        for (unsigned j = 0; j < e->count && its < delay; j++)
            if (m->slots[e->first + j].state == SLOT_DEFERRED)
                delay = its;
    }
    assert(delay < INT64_MAX);
    return delay;
}
