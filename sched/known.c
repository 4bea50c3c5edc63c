/* Compact index of all known messages: sorted blocks in heaps by due time. */
#include "sched/known.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_RECORDS = 64,
    BLOCK_MERGE = 56, /* neighbours that together hold no more become one */
    NONE = 255
};

struct known_block {
    struct heap_node nodes[KNOWN_AGES];
    unsigned char
        first[KNOWN_AGES]; /* the record with the earliest due time, or NONE */
    unsigned char count;
    struct known records[BLOCK_RECORDS]; /* by id */
};

static_assert(sizeof(struct known) == 24, "the size of a record is the point");
static_assert(BLOCK_RECORDS < NONE, "NONE is no record");

struct id
known_id(const struct known *k)
{
    return (struct id){.time_ms = k->time_ms, .hash = k->hash};
}

enum known_age
known_age(const struct known *k)
{
    return k->attempts == 0 ? KNOWN_NEW : KNOWN_OLD;
}

bool
known_is_parked(const struct known *k)
{
    return k->place == KNOWN_WAITING && k->due_ms > KNOWN_PARKED_MS / 2;
}

static bool
known_due_before(const struct known *a, const struct known *b)
{
    if (a->due_ms != b->due_ms)
        return a->due_ms < b->due_ms;
    return id_compare(known_id(a), known_id(b)) < 0;
}

static struct known_block *
block_of(const struct heap_node *node, enum known_age age)
{
    struct heap_node *first = (struct heap_node *)(uintptr_t)(node - (size_t)age);
    return memory_container(first, struct known_block, nodes);
}

static const struct known *
block_first(const struct heap_node *node, enum known_age age)
{
    const struct known_block *b = block_of(node, age);
    return &b->records[b->first[age]];
}

static bool
new_before(const struct heap_node *a, const struct heap_node *b)
{
    return known_due_before(block_first(a, KNOWN_NEW), block_first(b, KNOWN_NEW));
}

static bool
old_before(const struct heap_node *a, const struct heap_node *b)
{
    return known_due_before(block_first(a, KNOWN_OLD), block_first(b, KNOWN_OLD));
}

/* Out of the heaps, so that its records may change. */
static void
block_detach(struct known_set *set, struct known_block *b)
{
    for (int age = 0; age < KNOWN_AGES; age++)
        if (heap_has(&b->nodes[age]))
            heap_remove(&set->due[age], &b->nodes[age]);
}

static void
block_attach(struct known_set *set, struct known_block *b)
{
    memset(b->first, NONE, sizeof b->first);
    for (unsigned char i = 0; i < b->count; i++) {
        const struct known *k = &b->records[i];
        unsigned char *first = &b->first[known_age(k)];
        if (k->place == KNOWN_WAITING &&
            (*first == NONE || known_due_before(k, &b->records[*first])))
            *first = i;
    }
    for (int age = 0; age < KNOWN_AGES; age++)
        if (b->first[age] != NONE)
            heap_add(&set->due[age], &b->nodes[age]);
}

/* Of the last block that begins at or before id; 0 when there is none such. */
static size_t
block_index(const struct known_set *set, struct id id)
{
    size_t low = 0, high = set->block_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (id_compare(known_id(&set->blocks[middle]->records[0]), id) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Of the first record at or after id; count when there is none. */
static unsigned
record_index(const struct known_block *b, struct id id)
{
    unsigned low = 0, high = b->count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (id_compare(known_id(&b->records[middle]), id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct known_block *
block_insert(struct known_set *set, size_t index)
{
    if (set->block_count == set->block_capacity) {
        set->block_capacity = set->block_capacity ? 2 * set->block_capacity : 4;
        set->blocks =
            memory_resize(set->blocks, set->block_capacity * sizeof *set->blocks);
    }
    memmove(&set->blocks[index + 1], &set->blocks[index],
            (set->block_count - index) * sizeof *set->blocks);
    set->block_count++;
    return set->blocks[index] = memory_new(sizeof **set->blocks);
}

/* Its records are gone and it is in no heap. */
static void
block_drop(struct known_set *set, size_t index)
{
    free(set->blocks[index]);
    set->block_count--;
    memmove(&set->blocks[index], &set->blocks[index + 1],
            (set->block_count - index) * sizeof *set->blocks);
}

/* Makes room for a record at *at of the full block index; both may move to the next. */
static size_t
block_split(struct known_set *set, size_t index, unsigned *at)
{
    /* Ids mostly come in order: at the very end nothing moves and blocks stay full. */
    bool append = index + 1 == set->block_count && *at == BLOCK_RECORDS;
    unsigned keep = append ? BLOCK_RECORDS : BLOCK_RECORDS / 2;
    struct known_block *b = set->blocks[index], *next = block_insert(set, index + 1);
    next->count = (unsigned char)(BLOCK_RECORDS - keep);
    memcpy(next->records, &b->records[keep], next->count * sizeof *b->records);
    b->count = (unsigned char)keep;
    if (*at < keep || (*at == keep && !append)) {
        block_attach(set, next);
        return index;
    }
    block_attach(set, b);
    *at -= keep;
    return index + 1;
}

static void
block_merge(struct known_set *set, size_t index)
{
    if (index + 1 >= set->block_count)
        return;
    struct known_block *b = set->blocks[index], *next = set->blocks[index + 1];
    if (b->count + next->count > BLOCK_MERGE)
        return;
    block_detach(set, b);
    block_detach(set, next);
    memcpy(&b->records[b->count], next->records, next->count * sizeof *b->records);
    b->count = (unsigned char)(b->count + next->count);
    block_drop(set, index + 1);
    block_attach(set, b);
}

static struct known_block *
block_with(const struct known_set *set, const struct known *k)
{
    struct known_block *b = set->blocks[block_index(set, known_id(k))];
    assert(k >= b->records && k < b->records + b->count);
    return b;
}

void
known_init(struct known_set *set)
{
    *set = (struct known_set){0};
    heap_init(&set->due[KNOWN_NEW], new_before);
    heap_init(&set->due[KNOWN_OLD], old_before);
}

void
known_free(struct known_set *set)
{
    for (size_t i = 0; i < set->block_count; i++)
        free(set->blocks[i]);
    free(set->blocks);
    heap_free(&set->due[KNOWN_NEW]);
    heap_free(&set->due[KNOWN_OLD]);
    *set = (struct known_set){0};
}

struct known *
known_find(const struct known_set *set, struct id id)
{
    if (set->block_count == 0)
        return NULL;
    struct known_block *b = set->blocks[block_index(set, id)];
    unsigned at = record_index(b, id);
    if (at == b->count || id_compare(known_id(&b->records[at]), id) != 0)
        return NULL;
    return &b->records[at];
}

bool
known_add(struct known_set *set, struct id id, int64_t due_ms, unsigned attempts)
{
    assert(id.time_ms < UINT64_C(1) << 50 && id.hash < UINT64_C(1) << 40);
    if (known_find(set, id))
        return false;
    if (set->block_count == 0)
        block_insert(set, 0);
    size_t index = block_index(set, id);
    unsigned at = record_index(set->blocks[index], id);
    block_detach(set, set->blocks[index]);
    if (set->blocks[index]->count == BLOCK_RECORDS)
        index = block_split(set, index, &at);
    struct known_block *b = set->blocks[index];
    block_detach(set, b);
    memmove(&b->records[at + 1], &b->records[at], (b->count - at) * sizeof *b->records);
    struct known *k = &b->records[at];
    *k = (struct known){.place = KNOWN_WAITING, .due_ms = due_ms};
    k->time_ms = id.time_ms & ((UINT64_C(1) << 50) - 1);
    k->hash = id.hash & ((UINT64_C(1) << 40) - 1);
    k->attempts = attempts & KNOWN_ATTEMPTS_MAX;
    if (attempts > KNOWN_ATTEMPTS_MAX)
        k->attempts = KNOWN_ATTEMPTS_MAX;
    set->count++;
    set->waiting[known_age(k)]++;
    b->count++;
    block_attach(set, b);
    return true;
}

void
known_remove(struct known_set *set, struct id id)
{
    struct known *k = known_find(set, id);
    assert(k);
    size_t index = block_index(set, id);
    struct known_block *b = set->blocks[index];
    block_detach(set, b);
    if (k->place == KNOWN_WAITING)
        set->waiting[known_age(k)]--;
    set->count--;
    b->count--;
    memmove(k, k + 1, (size_t)(&b->records[b->count] - k) * sizeof *k);
    block_attach(set, b);
    if (b->count == 0) {
        block_drop(set, index);
        return;
    }
    block_merge(set, index);
    if (index > 0)
        block_merge(set, index - 1);
}

struct known *
known_first(const struct known_set *set, enum known_age age)
{
    const struct heap_node *node = heap_first(&set->due[age]);
    if (!node)
        return NULL;
    struct known_block *b = block_of(node, age);
    return &b->records[b->first[age]];
}

void
known_wait(struct known_set *set, struct known *k, int64_t due_ms, unsigned attempts)
{
    struct known_block *b = block_with(set, k);
    block_detach(set, b);
    if (k->place == KNOWN_WAITING)
        set->waiting[known_age(k)]--;
    k->place = KNOWN_WAITING;
    k->due_ms = due_ms;
    k->attempts = attempts & KNOWN_ATTEMPTS_MAX;
    if (attempts > KNOWN_ATTEMPTS_MAX)
        k->attempts = KNOWN_ATTEMPTS_MAX;
    set->waiting[known_age(k)]++;
    block_attach(set, b);
}

void
known_load(struct known_set *set, struct known *k)
{
    assert(k->place == KNOWN_WAITING);
    struct known_block *b = block_with(set, k);
    block_detach(set, b);
    set->waiting[known_age(k)]--;
    k->place = KNOWN_LOADING;
    k->message = NULL;
    block_attach(set, b);
}

void
known_activate(struct known_set *set, struct known *k, struct sched_message *message)
{
    assert(k->place == KNOWN_LOADING);
    (void)set; /* what does not wait is in no order */
    k->place = KNOWN_ACTIVE;
    k->message = message;
}

void
known_shift(struct known_set *set, int64_t delta_ms)
{
    /* The same for all: every heap stays in order. */
    for (size_t i = 0; i < set->block_count; i++)
        for (unsigned j = 0; j < set->blocks[i]->count; j++)
            if (set->blocks[i]->records[j].place == KNOWN_WAITING)
                set->blocks[i]->records[j].due_ms += delta_ms;
}

void
known_force_all(struct known_set *set, int64_t now_ms)
{
    for (size_t i = 0; i < set->block_count; i++) {
        struct known_block *b = set->blocks[i];
        block_detach(set, b);
        for (unsigned j = 0; j < b->count; j++) {
            struct known *k = &b->records[j];
            if (k->place != KNOWN_WAITING)
                continue;
            k->forced = 1;
            if (k->due_ms > now_ms)
                k->due_ms = now_ms;
        }
        block_attach(set, b);
    }
}

void
known_each(struct known_set *set, void (*each)(void *context, struct known *k),
           void *context)
{
    for (size_t i = 0; i < set->block_count; i++)
        for (unsigned j = 0; j < set->blocks[i]->count; j++)
            each(context, &set->blocks[i]->records[j]);
}

size_t
known_memory(const struct known_set *set)
{
    size_t size = set->block_capacity * sizeof *set->blocks +
                  set->block_count * sizeof **set->blocks;
    for (int age = 0; age < KNOWN_AGES; age++)
        size += set->due[age].capacity * sizeof *set->due[age].nodes;
    return size;
}
