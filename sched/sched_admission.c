/* The scheduler's machine: the limit of recipients in memory.
 *
 * A large message for which there is no room waits on disk in one line, oldest first.
 * While mail stands in line only small mail is loaded past it, and no more of that than
 * an eighth of the limit. So small mail does not wait for large mail, and nothing that
 * passes can delay the first in line for ever: it comes when enough of the mail in
 * memory has left.
 *
 * Large mail leaves that eighth free. A message that is larger than the rest comes when
 * no other large one is in memory: only then the limit is exceeded, by that message. */
#include "sched/sched_internal.h"

#include "base/memory.h"

#include <stdlib.h>

enum {
    OWN_PART = 8,          /* this fraction of the limit is for small mail alone */
    SMALL_PART = 800,      /* a small message has this fraction of the limit, or one
                       * recipient */
    LINE_LENGTH_MAX = 4096 /* then all mail waits behind it: one turn may fill it */
};

static size_t
room_limit(const struct sched *s)
{
    return (size_t)s->settings.recipient_limit;
}

static size_t
own_part(const struct sched *s)
{
    size_t part = room_limit(s) / OWN_PART;
    return part > 0 ? part : 1;
}

/* A message whose number of recipients is not known counts as one: most have one. */
static size_t
recipients_of(const struct message_index *k)
{
    return k->recipients > 0 ? k->recipients : 1;
}

static bool
is_small(const struct sched *s, size_t recipients)
{
    return recipients <= 1 || recipients <= room_limit(s) / SMALL_PART;
}

/* Beyond its own part small mail takes only space that no other mail waits for. */
static bool
small_fits(const struct sched *s, size_t recipients)
{
    const struct admission *r = &s->admission;
    return r->small + recipients <= own_part(s) ||
           (r->count == 0 && r->recipients + recipients <= room_limit(s));
}

static bool
large_fits(const struct sched *s, size_t recipients)
{
    const struct admission *r = &s->admission;
    size_t own = own_part(s), large = r->recipients - r->small;
    if (large == 0 && r->small <= own)
        return true;
    return large + recipients + (r->small > own ? r->small : own) <= room_limit(s);
}

bool
sched_has_room(const struct sched *s, size_t recipients)
{
    if (room_limit(s) == 0)
        return true;
    return is_small(s, recipients)
               ? small_fits(s, recipients)
               : s->admission.count == 0 && large_fits(s, recipients);
}

bool
sched_admission_has(const struct sched *s, const struct message_index *k)
{
    return sched_has_room(s, recipients_of(k));
}

/* Small mail keeps its order by waiting where it is. */
bool
sched_admission_blocks(const struct sched *s, const struct message_index *k)
{
    return !sched_admission_has(s, k) &&
           (is_small(s, recipients_of(k)) || s->admission.count >= LINE_LENGTH_MAX);
}

/* --- In memory -------------------------------------------------------------------- */

static void
add_recipients(struct sched *s, const struct message_index *k)
{
    size_t recipients = recipients_of(k);
    s->admission.recipients += recipients;
    s->admission.small += is_small(s, recipients) ? recipients : 0;
}

static void
remove_recipients(struct sched *s, const struct message_index *k)
{
    size_t recipients = recipients_of(k);
    s->admission.recipients -= recipients;
    s->admission.small -= is_small(s, recipients) ? recipients : 0;
}

void
sched_admission_enter(struct sched *s, struct message_index *k)
{
    k->queued = 0;
    s->active++;
    add_recipients(s, k);
}

void
sched_admission_leave(struct sched *s, struct message_index *k)
{
    s->active--;
    remove_recipients(s, k);
}

static void
note_recipients(struct message_index *k, size_t recipients)
{
    k->recipients = recipients & MESSAGE_INDEX_RECIPIENTS_MAX;
    if (recipients > MESSAGE_INDEX_RECIPIENTS_MAX)
        k->recipients = MESSAGE_INDEX_RECIPIENTS_MAX;
}

void
sched_weigh(struct sched *s, struct id id, size_t recipients)
{
    struct message_index *k = message_index_find(&s->known, id);
    if (k && k->place == MESSAGE_INDEX_WAITING)
        note_recipients(k, recipients);
}

/* When the number was known, room was made for it. */
bool
sched_admit(struct sched *s, struct id id, size_t recipients)
{
    struct message_index *k = message_index_find(&s->known, id);
    sched_tick(s);
    size_t before = recipients_of(k);
    remove_recipients(s, k);
    s->recalling_recipients -= k->recalled ? k->recipients : 0;
    note_recipients(k, recipients);
    s->recalling_recipients += k->recalled ? k->recipients : 0;
    bool fits = recipients_of(k) <= before || sched_admission_has(s, k);
    add_recipients(s, k);
    if (fits)
        return true;
    bool recalled = sched_recall_end(s, k);
    sched_admission_leave(s, k);
    if (sched_admission_blocks(s, k))
        message_index_wait(&s->known, k, s->now_ms, k->attempts);
    else
        sched_admission_wait(s, k);
    k->recalled = recalled;
    return false;
}

static void
count_record(void *context, struct message_index *k)
{
    if (k->place != MESSAGE_INDEX_WAITING)
        add_recipients(context, k);
}

void
sched_admission_count(struct sched *s)
{
    s->admission.recipients = s->admission.small = 0;
    message_index_each(&s->known, count_record, s);
}

/* --- In line ---------------------------------------------------------------------- */

static struct id
line_at(const struct admission *r, size_t i)
{
    return r->line[(r->first + i) % r->capacity];
}

/* Keeps one of each id that stands in line, the first: an operator may have held the
 * message and released it, which adds it again. */
static void
line_clean(struct sched *s)
{
    struct admission *r = &s->admission;
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++) {
        struct id id = line_at(r, i);
        struct message_index *k = message_index_find(&s->known, id);
        if (!k || !k->queued)
            continue;
        k->queued = 0;
        r->line[(r->first + kept++) % r->capacity] = id;
    }
    r->count = kept;
    for (size_t i = 0; i < kept; i++)
        message_index_find(&s->known, line_at(r, i))->queued = 1;
}

static void
line_grow(struct admission *r)
{
    size_t capacity = r->capacity > 0 ? 2 * r->capacity : 16;
    struct id *line = memory_array(capacity, sizeof(*line));
    for (size_t i = 0; i < r->count; i++)
        line[i] = line_at(r, i);
    free(r->line);
    r->line = line;
    r->first = 0;
    r->capacity = capacity;
}

/* An operator may have made it due, or its site: then it keeps its place in line. */
void
sched_admission_wait(struct sched *s, struct message_index *k)
{
    struct admission *r = &s->admission;
    message_index_wait(&s->known, k, MESSAGE_INDEX_BACKLOGGED_MS, k->attempts);
    if (k->queued)
        return;
    if (r->capacity == 0)
        line_grow(r);
    k->queued = 1;
    r->line[(r->first + r->count++) % r->capacity] = message_index_id(k);
    if (r->count < r->capacity)
        return;
    line_clean(s);
    if (r->count > r->capacity / 2)
        line_grow(r);
}

/* Those that have left by another way are dropped. */
struct message_index *
sched_admission_first(struct sched *s)
{
    struct admission *r = &s->admission;
    for (; r->count > 0; r->first = (r->first + 1) % r->capacity, r->count--) {
        struct message_index *k = message_index_find(&s->known, line_at(r, 0));
        if (!k || !k->queued)
            continue;
        if (room_limit(s) > 0 && !large_fits(s, recipients_of(k)))
            return NULL;
        r->first = (r->first + 1) % r->capacity;
        r->count--;
        return k;
    }
    return NULL;
}

size_t
sched_admission_ahead(const struct sched *s, const struct message_index *k)
{
    size_t ahead = 0;
    for (size_t i = 0; i < s->admission.count; i++) {
        struct id id = line_at(&s->admission, i);
        if (id_compare(id, message_index_id(k)) == 0)
            break;
        const struct message_index *other = message_index_find(&s->known, id);
        ahead += other && other->queued;
    }
    return ahead;
}
