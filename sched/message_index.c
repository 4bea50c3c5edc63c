/* Compact index of all known messages: sorted blocks in heaps by due time.
 *
 * A block is in the heap of an age while one of its records waits with that age, under
 * the due time of the earliest. So each change of a record takes the block out of the
 * heaps, changes it, and puts it back: a heap never sees a key change under it. */
#include "sched/message_index.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_RECORDS = 64,
    BLOCK_MERGE = 56, /* neighbours that together hold no more are merged */
    NONE = 255
};

struct message_index_block {
    struct heap_node nodes[MESSAGE_INDEX_AGES];
    unsigned char
        first[MESSAGE_INDEX_AGES]; /* the record with the earliest due time, or NONE */
    unsigned char count;
    struct message_index records[BLOCK_RECORDS]; /* by id */
};

static_assert(sizeof(struct message_index) == 24, "the size of a record is the point");
static_assert(BLOCK_RECORDS < NONE, "NONE is no record");

struct id
message_index_id(const struct message_index *k)
{
    return (struct id){.time_ms = k->time_ms, .hash = k->hash};
}

enum message_index_age
message_index_age(const struct message_index *k)
{
    return k->attempts == 0 ? MESSAGE_INDEX_NEW : MESSAGE_INDEX_OLD;
}

/* Half of the mark, because steps of the clock shift all due times. */
bool
message_index_is_backlogged(const struct message_index *k)
{
    return k->place == MESSAGE_INDEX_WAITING &&
           k->due_ms > MESSAGE_INDEX_BACKLOGGED_MS / 2;
}

/* The id breaks ties: ids sort by age, so the oldest is first. */
static bool
message_index_due_before(const struct message_index *a, const struct message_index *b)
{
    if (a->due_ms != b->due_ms)
        return a->due_ms < b->due_ms;
    return id_compare(message_index_id(a), message_index_id(b)) < 0;
}

/* A node tells its block only together with its age: nodes[] has one for each heap. */
static struct message_index_block *
block_of(const struct heap_node *node, enum message_index_age age)
{
    struct heap_node *first = (struct heap_node *)(uintptr_t)(node - (size_t)age);
    return memory_container(first, struct message_index_block, nodes);
}

static const struct message_index *
block_first(const struct heap_node *node, enum message_index_age age)
{
    const struct message_index_block *b = block_of(node, age);
    return &b->records[b->first[age]];
}

static bool
new_before(const struct heap_node *a, const struct heap_node *b)
{
    return message_index_due_before(block_first(a, MESSAGE_INDEX_NEW),
                                    block_first(b, MESSAGE_INDEX_NEW));
}

static bool
old_before(const struct heap_node *a, const struct heap_node *b)
{
    return message_index_due_before(block_first(a, MESSAGE_INDEX_OLD),
                                    block_first(b, MESSAGE_INDEX_OLD));
}

/* Removes it from the heaps, so that its records may change. */
static void
block_detach(struct message_index_set *set, struct message_index_block *b)
{
    for (int age = 0; age < MESSAGE_INDEX_AGES; age++)
        if (heap_has(&b->nodes[age]))
            heap_remove(&set->due[age], &b->nodes[age]);
}

/* The walk through 64 records takes the place of a heap node for each message: see the
 * header. */
static void
block_attach(struct message_index_set *set, struct message_index_block *b)
{
    memset(b->first, NONE, sizeof(b->first));
    for (unsigned char i = 0; i < b->count; i++) {
        const struct message_index *k = &b->records[i];
        unsigned char *first = &b->first[message_index_age(k)];
        if (k->place == MESSAGE_INDEX_WAITING &&
            (*first == NONE || message_index_due_before(k, &b->records[*first])))
            *first = i;
    }
    for (int age = 0; age < MESSAGE_INDEX_AGES; age++)
        if (b->first[age] != NONE)
            heap_add(&set->due[age], &b->nodes[age]);
}

/* The index of the last block that begins at or before id; 0 if there is none. Blocks
 * are never empty, so the first record of each is its key. */
static size_t
block_index(const struct message_index_set *set, struct id id)
{
    size_t low = 0, high = set->block_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (id_compare(message_index_id(&set->blocks[middle]->records[0]), id) <= 0)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The index of the first record at or after id; count if there is none. */
static unsigned
record_index(const struct message_index_block *b, struct id id)
{
    unsigned low = 0, high = b->count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (id_compare(message_index_id(&b->records[middle]), id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct message_index_block *
block_insert(struct message_index_set *set, size_t index)
{
    if (set->block_count == set->block_capacity) {
        set->block_capacity = set->block_capacity ? 2 * set->block_capacity : 4;
        set->blocks =
            memory_resize(set->blocks, set->block_capacity * sizeof(*set->blocks));
    }
    memmove(&set->blocks[index + 1], &set->blocks[index],
            (set->block_count - index) * sizeof(*set->blocks));
    set->block_count++;
    return set->blocks[index] = memory_new(sizeof(**set->blocks));
}

/* Removes a block without records that is in no heap. */
static void
block_drop(struct message_index_set *set, size_t index)
{
    free(set->blocks[index]);
    set->block_count--;
    memmove(&set->blocks[index], &set->blocks[index + 1],
            (set->block_count - index) * sizeof(*set->blocks));
}

/* Makes space for a record at *at of the full block index. Both may move to the
 * next. */
static size_t
block_split(struct message_index_set *set, size_t index, unsigned *at)
{
    /* Ids mostly come in order: at the very end nothing moves, and blocks stay full. */
    bool append = index + 1 == set->block_count && *at == BLOCK_RECORDS;
    unsigned keep = append ? BLOCK_RECORDS : BLOCK_RECORDS / 2;
    struct message_index_block *b = set->blocks[index],
                               *next = block_insert(set, index + 1);
    next->count = (unsigned char)(BLOCK_RECORDS - keep);
    memcpy(next->records, &b->records[keep], next->count * sizeof(*b->records));
    b->count = (unsigned char)keep;
    if (*at < keep || (*at == keep && !append)) {
        block_attach(set, next);
        return index;
    }
    block_attach(set, b);
    *at -= keep;
    return index + 1;
}

/* Neighbours are merged only well below a full block, or a queue that shrinks and grows
 * by one message would split and merge at each step. */
static void
block_merge(struct message_index_set *set, size_t index)
{
    if (index + 1 >= set->block_count)
        return;
    struct message_index_block *b = set->blocks[index], *next = set->blocks[index + 1];
    if (b->count + next->count > BLOCK_MERGE)
        return;
    block_detach(set, b);
    block_detach(set, next);
    memcpy(&b->records[b->count], next->records, next->count * sizeof(*b->records));
    b->count = (unsigned char)(b->count + next->count);
    block_drop(set, index + 1);
    block_attach(set, b);
}

static struct message_index_block *
block_with(const struct message_index_set *set, const struct message_index *k)
{
    struct message_index_block *b = set->blocks[block_index(set, message_index_id(k))];
    assert(k >= b->records && k < b->records + b->count);
    return b;
}

void
message_index_init(struct message_index_set *set)
{
    *set = (struct message_index_set){0};
    heap_init(&set->due[MESSAGE_INDEX_NEW], new_before);
    heap_init(&set->due[MESSAGE_INDEX_OLD], old_before);
}

void
message_index_free(struct message_index_set *set)
{
    for (size_t i = 0; i < set->block_count; i++)
        free(set->blocks[i]);
    free(set->blocks);
    heap_free(&set->due[MESSAGE_INDEX_NEW]);
    heap_free(&set->due[MESSAGE_INDEX_OLD]);
    *set = (struct message_index_set){0};
}

struct message_index *
message_index_find(const struct message_index_set *set, struct id id)
{
    if (set->block_count == 0)
        return NULL;
    struct message_index_block *b = set->blocks[block_index(set, id)];
    unsigned at = record_index(b, id);
    if (at == b->count || id_compare(message_index_id(&b->records[at]), id) != 0)
        return NULL;
    return &b->records[at];
}

bool
message_index_add(struct message_index_set *set, struct id id, int64_t due_ms,
                  unsigned attempts)
{
    assert(id.time_ms < UINT64_C(1) << 50 && id.hash < UINT64_C(1) << 40);
    if (message_index_find(set, id))
        return false;
    if (set->block_count == 0)
        block_insert(set, 0);
    size_t index = block_index(set, id);
    unsigned at = record_index(set->blocks[index], id);
    block_detach(set, set->blocks[index]);
    if (set->blocks[index]->count == BLOCK_RECORDS)
        index = block_split(set, index, &at);
    struct message_index_block *b = set->blocks[index];
    block_detach(set, b);
    memmove(&b->records[at + 1], &b->records[at],
            (b->count - at) * sizeof(*b->records));
    struct message_index *k = &b->records[at];
    *k = (struct message_index){.place = MESSAGE_INDEX_WAITING, .due_ms = due_ms};
    k->time_ms = id.time_ms & ((UINT64_C(1) << 50) - 1);
    k->hash = id.hash & ((UINT64_C(1) << 40) - 1);
    k->attempts = attempts & MESSAGE_INDEX_ATTEMPTS_MAX;
    /* The field has 24 bits: more attempts must not count as few again. */
    if (attempts > MESSAGE_INDEX_ATTEMPTS_MAX)
        k->attempts = MESSAGE_INDEX_ATTEMPTS_MAX;
    set->count++;
    set->waiting[message_index_age(k)]++;
    b->count++;
    block_attach(set, b);
    return true;
}

/* Both neighbours may be small enough to be merged with now. */
void
message_index_remove(struct message_index_set *set, struct id id)
{
    struct message_index *k = message_index_find(set, id);
    assert(k);
    size_t index = block_index(set, id);
    struct message_index_block *b = set->blocks[index];
    block_detach(set, b);
    if (k->place == MESSAGE_INDEX_WAITING)
        set->waiting[message_index_age(k)]--;
    set->count--;
    b->count--;
    memmove(k, k + 1, (size_t)(&b->records[b->count] - k) * sizeof(*k));
    block_attach(set, b);
    if (b->count == 0) {
        block_drop(set, index);
        return;
    }
    block_merge(set, index);
    if (index > 0)
        block_merge(set, index - 1);
}

struct message_index *
message_index_first(const struct message_index_set *set, enum message_index_age age)
{
    const struct heap_node *node = heap_first(&set->due[age]);
    if (!node)
        return NULL;
    struct message_index_block *b = block_of(node, age);
    return &b->records[b->first[age]];
}

/* Also for a record that waits already: its due time is the key of its block. */
void
message_index_wait(struct message_index_set *set, struct message_index *k,
                   int64_t due_ms, unsigned attempts)
{
    struct message_index_block *b = block_with(set, k);
    block_detach(set, b);
    if (k->place == MESSAGE_INDEX_WAITING)
        set->waiting[message_index_age(k)]--;
    k->place = MESSAGE_INDEX_WAITING;
    k->due_ms = due_ms;
    k->attempts = attempts & MESSAGE_INDEX_ATTEMPTS_MAX;
    if (attempts > MESSAGE_INDEX_ATTEMPTS_MAX)
        k->attempts = MESSAGE_INDEX_ATTEMPTS_MAX;
    set->waiting[message_index_age(k)]++;
    block_attach(set, b);
}

void
message_index_load(struct message_index_set *set, struct message_index *k)
{
    assert(k->place == MESSAGE_INDEX_WAITING);
    struct message_index_block *b = block_with(set, k);
    block_detach(set, b);
    set->waiting[message_index_age(k)]--;
    k->place = MESSAGE_INDEX_LOADING;
    k->message = NULL;
    block_attach(set, b);
}

/* A record that is loaded or loading is in no heap, since it waits for no time. */
void
message_index_activate(struct message_index_set *set, struct message_index *k,
                       struct sched_message *message)
{
    assert(k->place == MESSAGE_INDEX_LOADING);
    (void)set; /* messages that do not wait have no order */
    k->place = MESSAGE_INDEX_ACTIVE;
    k->message = message;
}

void
message_index_shift(struct message_index_set *set, int64_t delta_ms)
{
    /* The same for all: every heap stays in order. */
    for (size_t i = 0; i < set->block_count; i++)
        for (unsigned j = 0; j < set->blocks[i]->count; j++)
            if (set->blocks[i]->records[j].place == MESSAGE_INDEX_WAITING)
                set->blocks[i]->records[j].due_ms += delta_ms;
}

void
message_index_force_all(struct message_index_set *set, int64_t now_ms)
{
    for (size_t i = 0; i < set->block_count; i++) {
        struct message_index_block *b = set->blocks[i];
        block_detach(set, b);
        for (unsigned j = 0; j < b->count; j++) {
            struct message_index *k = &b->records[j];
            if (k->place != MESSAGE_INDEX_WAITING)
                continue;
            k->forced = 1;
            /* Excess comes in its turn; to load it now would only put it back. */
            if (k->due_ms > now_ms && !message_index_is_backlogged(k))
                k->due_ms = now_ms;
        }
        block_attach(set, b);
    }
}

size_t
message_index_oldest(const struct message_index_set *set, struct id *ids, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < set->block_count && count < most; i++)
        for (unsigned j = 0; j < set->blocks[i]->count && count < most; j++)
            ids[count++] = message_index_id(&set->blocks[i]->records[j]);
    return count;
}

void
message_index_each(struct message_index_set *set,
                   void (*each)(void *context, struct message_index *k), void *context)
{
    for (size_t i = 0; i < set->block_count; i++)
        for (unsigned j = 0; j < set->blocks[i]->count; j++)
            each(context, &set->blocks[i]->records[j]);
}

size_t
message_index_memory(const struct message_index_set *set)
{
    size_t size = set->block_capacity * sizeof(*set->blocks) +
                  set->block_count * sizeof(**set->blocks);
    for (int age = 0; age < MESSAGE_INDEX_AGES; age++)
        size += set->due[age].capacity * sizeof(*set->due[age].nodes);
    return size;
}
