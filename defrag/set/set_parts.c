/* The messages, numbers and recipients of a set.
 *
 * Three views of the same fragments: a slot is a number, with the digest that every
 * fragment of this number must have; a part is a message; a wanted is a recipient, with
 * one bit for each number that is there for it. A message whose recipients all have its
 * number is no part at all: it is absorbed. So each recipient needs one part of a slot
 * at most. */
#include "defrag/set/set_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct wanted *
set_wanted_find(struct set *set, struct text address)
{
    struct wanted *w;
    HASH_FIND(hh, set->wanted, address.at, address.length, w);
    return w;
}

bool
set_wanted_has(const struct wanted *w, uint32_t number)
{
    return number / 64 < w->words && (w->numbers[number / 64] >> number % 64 & 1) != 0;
}

/* The bits grow with the highest number that the recipient has, not with the total:
 * that may be large, or unknown. */
void
set_wanted_put(struct wanted *w, uint32_t number, bool there)
{
    size_t words = number / 64 + 1;
    if (words > w->words) {
        w->numbers = memory_resize(w->numbers, words * sizeof(w->numbers[0]));
        memset(w->numbers + w->words, 0, (words - w->words) * sizeof(w->numbers[0]));
        w->words = words;
    }
    uint64_t bit = UINT64_C(1) << number % 64;
    w->numbers[number / 64] &= ~bit;
    w->numbers[number / 64] |= there ? bit : 0;
    /* Equal to the total: complete, without counting bits. */
    w->count += there ? 1u : -1u;
}

static struct wanted *
wanted_get(struct set *set, struct text address)
{
    struct wanted *w = set_wanted_find(set, address);
    if (w != NULL)
        return w;
    w = memory_new(sizeof(*w) + address.length);
    memcpy(w->address, address.at, address.length);
    HASH_ADD_KEYPTR(hh, set->wanted, w->address, address.length, w);
    return w;
}

struct slot *
set_slot_find(struct set *set, uint32_t number)
{
    struct slot *slot;
    HASH_FIND(hh, set->slots, &number, sizeof(number), slot);
    return slot;
}

/* Its slot stays: the digest tells a repetition that comes later from a
 * contradiction. */
void
set_part_free(struct sets *s, struct part *p)
{
    struct set *set = p->set;
    HASH_DEL(s->by_id, p);
    DL_DELETE(p->slot->parts, p);
    DL_DELETE2(set->parts, p, set_prev, set_next);
    set->bytes -= p->size;
    set->messages--;
    s->bytes -= p->size;
    s->messages--;
    s->recipients -= p->count;
    free(p);
}

static struct slot *
slot_get(struct set *set, uint32_t number, const unsigned char digest[TAG_SIZE])
{
    struct slot *slot = set_slot_find(set, number);
    if (slot != NULL)
        return slot;
    slot = memory_new(sizeof(*slot));
    slot->number = number;
    memcpy(slot->digest, digest, TAG_SIZE);
    HASH_ADD(hh, set->slots, number, sizeof(slot->number), slot);
    set->have++;
    set->highest = number > set->highest ? number : set->highest;
    return slot;
}

void
set_part_keep(struct sets *s, struct set *set, const struct fragment *f,
              const unsigned *absorbed, size_t absorbed_count)
{
    size_t count = f->count - absorbed_count, passed = 0;
    struct part *p = memory_new(sizeof(*p) + count * sizeof(p->needs[0]));
    p->set = set;
    p->slot = slot_get(set, f->number, f->digest);
    p->id = f->id;
    p->size = f->size;
    p->total = f->total;
    for (size_t i = 0; i < f->count; i++) {
        if (passed < absorbed_count && absorbed[passed] == i) {
            passed++;
            continue;
        }
        struct wanted *w = wanted_get(set, f->recipients[i]);
        set_wanted_put(w, f->number, true);
        p->needs[p->count++].wanted = w;
    }
    assert(p->count == count);
    p->left = count;
    if (f->total > 0)
        set->total = f->total;
    HASH_ADD(hh, s->by_id, id, sizeof(p->id), p);
    DL_APPEND(p->slot->parts, p);
    DL_APPEND2(set->parts, p, set_prev, set_next);
    set->bytes += p->size;
    set->messages++;
    s->bytes += p->size;
    s->messages++;
    s->recipients += p->count;
}

static uint64_t
address_hash(struct text address)
{
    uint64_t hash = TEXT_HASH;
    for (size_t i = 0; i < address.length; i++)
        hash = (hash ^ (unsigned char)address.at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static int
by_hash(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void
forget_wanted(struct set *set)
{
    struct wanted *w, *next;
    HASH_ITER (hh, set->wanted, w, next) {
        HASH_DEL(set->wanted, w);
        free(w->numbers);
        free(w);
    }
}

size_t
set_compact(struct set *set)
{
    const struct wanted *w;
    size_t count = HASH_COUNT(set->wanted);
    set->served = memory_array(count + 1, sizeof(*set->served));
    for (w = set->wanted; w != NULL; w = w->hh.next)
        /* Others have no reassembled message: fragments for them are not
         * repetitions. */
        if (w->count >= set->total)
            set->served[set->served_count++] =
                address_hash(text_of(w->address, w->hh.keylen));
    qsort(set->served, set->served_count, sizeof(*set->served), by_hash);
    forget_wanted(set);
    return sizeof(*set) + set->served_count * sizeof(*set->served) +
           HASH_COUNT(set->slots) * sizeof(struct slot);
}

bool
set_has_served(const struct set *set, struct text address)
{
    uint64_t hash = address_hash(address);
    return set->served_count > 0 && bsearch(&hash, set->served, set->served_count,
                                            sizeof(hash), by_hash) != NULL;
}

void
set_forget_numbers(struct set *set)
{
    struct slot *slot, *slot_next;
    HASH_ITER (hh, set->slots, slot, slot_next) {
        assert(slot->parts == NULL);
        HASH_DEL(set->slots, slot);
        free(slot);
    }
    forget_wanted(set);
    free(set->served);
    set->served = NULL;
    set->served_count = 0;
}
