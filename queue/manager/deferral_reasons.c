/* A bounded map from message to the outcome that says why it waits.
 *
 * Many messages share an outcome, so an entry has only the id and the number of a
 * cause. Causes are in the order of their last use; beyond their limit of bytes the
 * oldest are forgotten. The number of a forgotten cause is free again when its last
 * message has gone. */
#include "queue/manager/deferral_reasons.h"

#include "base/memory.h"
#include "queue/manager/deferral_reasons_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <uthash.h>

enum {
    TEXTS_MAX = OUTCOME_TEXT_MAX + OUTCOME_REMOTE_MAX, /* with their NULs */
    CAPACITY_MIN = 64,
    NONE = 0 /* no cause has this number */
};

/* The key of an outcome; zeroed before it is filled. */
struct cause_key {
    int code;
    char enhanced[sizeof((struct outcome *)0)->enhanced];
    char texts[TEXTS_MAX]; /* text NUL remote NUL, no longer than that */
};

struct cause {
    UT_hash_handle hh;
    unsigned number;
    size_t size;           /* bytes used of key */
    struct cause_key *key; /* allocated behind this */
};

struct cause_slot {
    struct cause *cause; /* NULL: forgotten, or free */
    unsigned holders;    /* messages; 0: free */
    unsigned next;       /* free: the next free one, or NONE */
};

struct deferral_reasons_entry {
    uint64_t time_ms : 50;
    uint64_t hash : 40, number : 24; /* NONE: the place is empty */
};
static_assert(sizeof(struct deferral_reasons_entry) == 16,
              "the size of an entry is the point");

struct deferral_reasons {
    struct deferral_reasons_entry *entries; /* by hash, with linear probing */
    size_t count, capacity, limit, hand;
    struct cause *causes; /* by key; longest unused first */
    struct cause_slot *slots;
    unsigned slot_count, slot_capacity, free;
    size_t bytes; /* of causes */
    uint64_t changes;
};

/* --- Causes ----------------------------------------------------------------------- */

static size_t
cause_key_make(const struct outcome *o, struct cause_key *key)
{
    struct text text = text_from(o->text), remote = text_from(o->remote);
    *key = (struct cause_key){.code = o->code};
    (void)!text_copy(key->enhanced, sizeof(key->enhanced), text_from(o->enhanced));
    memcpy(key->texts, text.at, text.length);
    memcpy(key->texts + text.length + 1, remote.at, remote.length);
    return offsetof(struct cause_key, texts) + text.length + remote.length + 2;
}

static size_t
cause_bytes(const struct cause *c)
{
    return sizeof(*c) + c->size;
}

/* The number of a cause stays the same while messages have it. */
static void
cause_drop(struct deferral_reasons *r, struct cause *c)
{
    r->slots[c->number].cause = NULL;
    r->bytes -= cause_bytes(c);
    HASH_DEL(r->causes, c);
    free(c);
}

static unsigned
cause_number(struct deferral_reasons *r)
{
    unsigned number = r->free;
    if (number != NONE) {
        r->free = r->slots[number].next;
        return number;
    }
    if (r->slot_count == r->slot_capacity) {
        r->slot_capacity *= 2;
        r->slots = memory_resize(r->slots, r->slot_capacity * sizeof(*r->slots));
    }
    return r->slot_count++;
}

/* Adds a holder to an equal cause, or makes a new one. Returns its number. */
static unsigned
cause_hold(struct deferral_reasons *r, const struct outcome *outcome)
{
    struct cause_key key;
    size_t size = cause_key_make(outcome, &key);
    struct cause *c;
    HASH_FIND(hh, r->causes, &key, size, c);
    if (c) {
        HASH_DEL(r->causes, c); /* to the end of the list: used last */
    } else {
        c = memory_new(sizeof(*c) + size);
        c->size = size;
        c->key = (struct cause_key *)(void *)(c + 1);
        memcpy(c->key, &key, size);
        c->number = cause_number(r);
        r->slots[c->number] = (struct cause_slot){.cause = c};
        r->bytes += cause_bytes(c);
    }
    r->slots[c->number].holders++;
    HASH_ADD_KEYPTR(hh, r->causes, c->key, c->size, c);
    while (r->bytes > DEFERRAL_REASONS_BYTES_MAX && r->causes != c)
        cause_drop(r, r->causes);
    return c->number;
}

static void
cause_release(struct deferral_reasons *r, unsigned number)
{
    struct cause_slot *slot = &r->slots[number];
    assert(slot->holders > 0);
    if (--slot->holders > 0)
        return;
    if (slot->cause)
        cause_drop(r, slot->cause);
    slot->next = r->free;
    r->free = number;
}

/* --- Messages --------------------------------------------------------------------- */

/* The factor is 2^64 divided by the golden ratio: it spreads ids that are close
 * together. */
static size_t
entry_home(const struct deferral_reasons *r, uint64_t time_ms, uint64_t hash)
{
    uint64_t mixed = (hash ^ time_ms << 20) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 32) & (r->capacity - 1);
}

/* The place of the message, or the empty place where it would be. */
static struct deferral_reasons_entry *
entry_find(const struct deferral_reasons *r, struct id id)
{
    size_t at = entry_home(r, id.time_ms, id.hash);
    for (;; at = (at + 1) & (r->capacity - 1)) {
        struct deferral_reasons_entry *e = &r->entries[at];
        if (e->number == NONE || (e->time_ms == id.time_ms && e->hash == id.hash))
            return e;
    }
}

static struct id
entry_id(const struct deferral_reasons_entry *e)
{
    return (struct id){.time_ms = e->time_ms, .hash = e->hash};
}

static void
entries_grow(struct deferral_reasons *r)
{
    struct deferral_reasons_entry *old = r->entries;
    size_t capacity = r->capacity;
    r->capacity *= 2;
    r->hand = 0;
    r->entries = memory_array(r->capacity, sizeof(*r->entries));
    for (size_t i = 0; i < capacity; i++)
        if (old[i].number != NONE)
            *entry_find(r, entry_id(&old[i])) = old[i];
    free(old);
}

/* Entries behind it close the gap, so that each is found from its home on. */
static void
entry_remove(struct deferral_reasons *r, struct deferral_reasons_entry *e)
{
    size_t mask = r->capacity - 1, gap = (size_t)(e - r->entries), at = gap;
    cause_release(r, e->number);
    for (;;) {
        at = (at + 1) & mask;
        const struct deferral_reasons_entry *next = &r->entries[at];
        if (next->number == NONE)
            break;
        size_t home = entry_home(r, next->time_ms, next->hash);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        r->entries[gap] = *next;
        gap = at;
    }
    r->entries[gap] = (struct deferral_reasons_entry){0};
    r->count--;
}

/* Makes space: forgets the message under the clock hand. */
static void
entry_evict(struct deferral_reasons *r)
{
    do
        r->hand = (r->hand + 1) & (r->capacity - 1);
    while (r->entries[r->hand].number == NONE);
    entry_remove(r, &r->entries[r->hand]);
}

/* ---------------------------------------------------------------------------------- */

struct deferral_reasons *
deferral_reasons_new(unsigned limit)
{
    struct deferral_reasons *r = memory_new(sizeof(*r));
    assert(limit > 0 && limit < 1U << 24);
    r->limit = limit;
    r->capacity = CAPACITY_MIN;
    r->entries = memory_array(r->capacity, sizeof(*r->entries));
    r->slot_capacity = CAPACITY_MIN;
    r->slots = memory_array(r->slot_capacity, sizeof(*r->slots));
    r->slot_count = NONE + 1;
    return r;
}

void
deferral_reasons_free(struct deferral_reasons **r)
{
    if (*r == NULL)
        return;
    while ((*r)->causes)
        cause_drop(*r, (*r)->causes);
    free((*r)->entries);
    free((*r)->slots);
    free(*r);
    *r = NULL;
}

void
deferral_reasons_forget(struct deferral_reasons *r, struct id id)
{
    struct deferral_reasons_entry *e = entry_find(r, id);
    if (e->number == NONE)
        return;
    entry_remove(r, e);
    r->changes++;
}

void
deferral_reasons_keep(struct deferral_reasons *r, struct id id,
                      const struct outcome *outcome)
{
    /* Held before the old cause is released, so that an equal one is not made anew. */
    unsigned number = cause_hold(r, outcome);
    struct deferral_reasons_entry *e = entry_find(r, id);
    r->changes++;
    if (e->number != NONE) {
        cause_release(r, e->number);
        e->number = number & ((1U << 24) - 1);
        return;
    }
    if (r->count == r->limit)
        entry_evict(r);
    /* A search ends at an empty place, so some must remain. */
    if (r->count + 1 > r->capacity / 8 * 7)
        entries_grow(r);
    e = entry_find(r, id);
    e->time_ms = id.time_ms & ((UINT64_C(1) << 50) - 1);
    e->hash = id.hash & ((UINT64_C(1) << 40) - 1);
    e->number = number & ((1U << 24) - 1);
    r->count++;
    assert(r->count <= r->limit);
}

const char *
deferral_reasons_find(const struct deferral_reasons *r, struct id id)
{
    const struct deferral_reasons_entry *e = entry_find(r, id);
    const struct cause *c = e->number == NONE ? NULL : r->slots[e->number].cause;
    return c ? c->key->texts : "";
}

int
deferral_reasons_code(const struct deferral_reasons *r, struct id id)
{
    const struct deferral_reasons_entry *e = entry_find(r, id);
    const struct cause *c = e->number == NONE ? NULL : r->slots[e->number].cause;
    return c != NULL ? c->key->code : 0;
}

unsigned
deferral_reasons_count(const struct deferral_reasons *r)
{
    return (unsigned)r->count;
}

uint64_t
deferral_reasons_changes(const struct deferral_reasons *r)
{
    return r->changes;
}

size_t
deferral_reasons_memory(const struct deferral_reasons *r)
{
    return sizeof(*r) + r->capacity * sizeof(*r->entries) +
           r->slot_capacity * sizeof(*r->slots) + r->bytes +
           (r->causes ? HASH_OVERHEAD(hh, r->causes) : 0);
}

unsigned
deferral_reasons_numbers(const struct deferral_reasons *r)
{
    return r->slot_count;
}

void
deferral_reasons_each(const struct deferral_reasons *r,
                      void (*each)(void *context, struct id id, unsigned number),
                      void *context)
{
    for (size_t i = 0; i < r->capacity; i++)
        if (r->entries[i].number != NONE)
            each(context, entry_id(&r->entries[i]), r->entries[i].number);
}

bool
deferral_reasons_read(const struct deferral_reasons *r, unsigned number,
                      struct outcome *outcome)
{
    assert(number != NONE && number < r->slot_count);
    const struct cause *c = r->slots[number].cause;
    if (!c)
        return false;
    const struct cause_key *key = c->key;
    const char *remote = key->texts + strlen(key->texts) + 1;
    *outcome = (struct outcome){
        .verdict = VERDICT_DEFERRED, .blame = BLAME_MESSAGE, .code = key->code};
    memcpy(outcome->enhanced, key->enhanced, sizeof(outcome->enhanced));
    (void)!text_copy(outcome->text, sizeof(outcome->text), text_from(key->texts));
    (void)!text_copy(outcome->remote, sizeof(outcome->remote), text_from(remote));
    return true;
}
