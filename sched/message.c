/* Loaded messages: recipients grouped by destination, verdicts, expiry, next delay.
 *
 * A message is one allocation: its slots, one for each recipient and sorted by
 * destination, then its entries. So the recipients of a transaction are neighbours, and
 * a message to one recipient costs 152 bytes. */
#include "sched/message.h"

#include "base/memory.h"
#include "sched/limits/reply_class.h"

#include <assert.h>
#include <stdlib.h>

static int64_t
message_age_ms(const struct sched_message *m, int64_t now_ms)
{
    int64_t birth = m->birth_ms < 0 ? 0 : m->birth_ms;
    return birth < now_ms ? now_ms - birth : 0;
}

struct sched_loading *
message_loading(size_t most)
{
    struct sched_loading *l = memory_new(sizeof(*l) + most * sizeof(struct found));
    l->most = most;
    return l;
}

void
message_find(struct destinations *set, struct sched_loading *l,
             const struct sched_recipient *recipient, int64_t now_ms)
{
    assert(l->count < l->most);
    struct destination *d =
        destination_get(set, recipient->target, recipient->domain, now_ms);
    d->entries++; /* in use from here on; a later call may move it */
    d->site->loaded++;
    l->is_grouped |= l->count > 0 && l->found[l->count - 1].group != recipient->group;
    l->found[l->count++] = (struct found){d, recipient->index, recipient->group};
}

/* Recipients with the same group stand together: up to the end of a run. */
static size_t
run_end(const struct sched_loading *l, size_t from)
{
    size_t end = from;
    while (end < l->count && l->found[end].group == l->found[from].group)
        end++;
    return end;
}

static int
found_compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    unsigned first = x->group != y->group ? x->group : x->index;
    unsigned second = x->group != y->group ? y->group : y->index;
    return first < second ? -1 : first > second;
}

/* Marks each destination through `filling` instead of sorting: a message may have 50,000
 * recipients, and their destinations are in memory anyway. */
static unsigned
count_run(const struct sched_loading *l, size_t from, size_t end)
{
    static struct entry mark; /* only its address is used */
    unsigned different = 0;
    for (size_t i = from; i < end; i++) {
        struct destination *d = l->found[i].destination;
        different += d->filling == NULL;
        d->filling = &mark;
    }
    for (size_t i = from; i < end; i++)
        l->found[i].destination->filling = NULL;
    return different;
}

static unsigned
count_entries(const struct sched_loading *l)
{
    unsigned different = 0;
    for (size_t from = 0, end; from < l->count; from = end) {
        end = run_end(l, from);
        different += count_run(l, from, end);
    }
    return different;
}

/* The entries of a run are in the order of their first recipients. An entry must know
 * its number of slots before the first slot is placed: count here, fill_slots() next.
 * Returns the number of entries up to now. */
static unsigned
make_entries(struct sched_message *m, const struct sched_loading *l, size_t from,
             size_t end, unsigned made)
{
    struct entry *entries = message_entries(m);
    unsigned first = made;
    for (size_t i = from; i < end; i++) {
        struct destination *d = l->found[i].destination;
        if (!d->filling) {
            d->filling = &entries[made++];
            *d->filling = (struct entry){.message = m, .destination = d};
        }
        d->filling->count++;
    }
    assert(made <= m->entry_count);
    for (unsigned i = first; i < made; i++)
        entries[i].first = i > 0 ? entries[i - 1].first + entries[i - 1].count : 0;
    return made;
}

/* `given` serves as the number of slots that are filled so far. */
static void
fill_slots(struct sched_message *m, const struct sched_loading *l, size_t from,
           size_t end)
{
    for (size_t i = from; i < end; i++) {
        struct entry *e = l->found[i].destination->filling;
        m->slots[e->first + e->given++].index = l->found[i].index;
    }
    for (size_t i = from; i < end; i++)
        l->found[i].destination->filling = NULL;
}

static void
sort_recipients(struct sched_message *m, const struct sched_loading *l)
{
    unsigned made = 0;
    for (size_t from = 0, end; from < l->count; from = end) {
        end = run_end(l, from);
        made = make_entries(m, l, from, end, made);
        fill_slots(m, l, from, end);
    }
    for (unsigned i = 0; i < m->entry_count; i++) {
        struct entry *e = &message_entries(m)[i];
        e->destination->entries -= e->count - 1; /* it was counted once per recipient */
        e->destination->site->loaded -= e->count - 1;
        e->given = 0;
    }
}

/* A large message takes a session for longer, so its sender pays more for it. */
static unsigned
mail_cost(const struct sched_mail *mail)
{
    uint64_t cost = 1 + (mail->size >> MESSAGE_COST_SHIFT);
    return cost < MESSAGE_COST_MAX ? (unsigned)cost : MESSAGE_COST_MAX;
}

struct sched_message *
message_make(const struct sched_mail *mail, struct sched_loading *l)
{
    assert(l->count > 0 && l->count <= UINT32_MAX);
    if (l->is_grouped)
        qsort(l->found, l->count, sizeof(*l->found), found_compare);
    unsigned different = count_entries(l);
    size_t slots = l->count * sizeof(struct slot);
    struct sched_message *m =
        memory_new(sizeof(*m) + slots + different * sizeof(struct entry));
    m->count = m->unsettled = (unsigned)l->count;
    m->entry_count = different;
    m->owner = mail->owner;
    m->birth_ms = mail->birth_ms;
    m->null_sender = mail->null_sender;
    m->class = mail->class & 3;
    m->cost = mail_cost(mail) & 15;
    m->sender = mail->sender << 2 | m->class;
    sort_recipients(m, l);
    return m;
}

void
message_leave(struct destinations *set, struct sched_message *m, unsigned first,
              unsigned end, int64_t now_ms)
{
    for (unsigned i = first; i < end; i++) {
        struct entry *e = &message_entries(m)[i];
        struct destination *d = e->destination;
        for (unsigned j = 0; j < e->count; j++)
            reason_close(&d->reasons, &m->slots[e->first + j].reason);
        assert(d->entries > 0 && d->site->loaded > 0);
        d->entries--;
        d->site->loaded--;
        destination_update(set, d, now_ms);
    }
}

void
message_free(struct destinations *set, struct sched_message **message, int64_t now_ms)
{
    struct sched_message *m = *message;
    *message = NULL;
    message_leave(set, m, 0, m->entry_count, now_ms);
    free(m);
}

/* The last verdict leaves `unsettled` at 0, where it becomes `looked`: message_expire()
 * starts at the first slot. */
void
message_settle(struct sched_message *m, unsigned slot, struct reason *reason)
{
    assert(slot < m->count && m->unsettled > 0);
    assert(m->slots[slot].state == SLOT_WAITING || m->slots[slot].state == SLOT_TAKEN);
    m->slots[slot].state = reason ? SLOT_DEFERRED : SLOT_DONE;
    m->slots[slot].reason = reason;
    m->unsettled--;
}

static bool
is_expired(const struct sched_message *m, const struct transport_params *t,
           int64_t now_ms)
{
    return message_age_ms(m, now_ms) >= transport_params_lifetime_ms(t, m->null_sender);
}

/* By binary search: with very many destinations a walk for each verdict would take the
 * square of their number. */
static struct entry *
entry_of(struct sched_message *m, unsigned slot)
{
    struct entry *entries = message_entries(m);
    unsigned low = 0, high = m->entry_count;
    while (low + 1 < high) {
        unsigned middle = low + (high - low) / 2;
        if (entries[middle].first <= slot)
            low = middle;
        else
            high = middle;
    }
    return &entries[low];
}

struct destination *
message_destination(struct sched_message *m, unsigned slot)
{
    return entry_of(m, slot)->destination;
}

/* Goes on where the last call stopped: each call yields one recipient, whose verdict the
 * owner may log before the next. */
bool
message_expire(struct sched_message *m, int64_t now_ms, unsigned *index,
               struct outcome *outcome)
{
    for (; m->looked < m->count; m->looked++) {
        struct slot *slot = &m->slots[m->looked];
        if (slot->state != SLOT_DEFERRED)
            continue;
        struct destination *d = message_destination(m, m->looked);
        if (!is_expired(m, destination_transport(d), now_ms))
            continue;
        reason_read(slot->reason, outcome);
        outcome->verdict = VERDICT_FAILED;
        reason_close(&d->reasons, &slot->reason);
        slot->state = SLOT_DONE;
        *index = slot->index;
        return true;
    }
    return false;
}

/* The delay that the reply to a recipient asks for. */
static int64_t
reason_delay_ms(const struct reason *reason, const struct transport_params *t,
                int64_t age_ms, bool *counts)
{
    struct outcome outcome;
    reason_read(reason, &outcome);
    enum reply_class_class class = reply_class_classify(&outcome);
    *counts |= reply_class_counts(class);
    return reply_class_delay_ms(class, &outcome, age_ms, t->minimal_backoff_ms,
                                t->maximal_backoff_ms);
}

/* The shortest delay counts: a message is loaded as a whole, and its other recipients
 * are tried with it. */
int64_t
message_delay_ms(struct sched_message *m, int64_t now_ms, bool *counts)
{
    int64_t delay = INT64_MAX, age = message_age_ms(m, now_ms);
    const struct reason *last = NULL;
    struct entry *entries = message_entries(m);
    *counts = false;
    for (unsigned i = 0; i < m->entry_count; i++) {
        const struct entry *e = &entries[i];
        const struct transport_params *t = destination_transport(e->destination);
        for (unsigned j = e->first; j < e->first + e->count; j++) {
            const struct slot *slot = &m->slots[j];
            /* Recipients of a dead site share one reason: it is classified once. */
            if (slot->state != SLOT_DEFERRED || slot->reason == last)
                continue;
            last = slot->reason;
            int64_t its = reason_delay_ms(last, t, age, counts);
            delay = its < delay ? its : delay;
        }
    }
    return delay;
}
