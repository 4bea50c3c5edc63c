/* A queue of ids in sorted blocks. */
#include "sched/id_queue.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_ROWS = 128,
    CAPACITY_MIN = 4,
    TIME_LOW = 18,
    HASH_LOW = 26,
    FOUND_AMONG = 8 /* blocks that are examined for one id */
};

/* 50 bits of time, 40 of hash. */
struct row {
    uint32_t high, middle, low;
};
static_assert(sizeof(struct row) == 12, "the size of a row is the point");

struct id_queue_block {
    uint32_t count;
    struct row rows[BLOCK_ROWS]; /* by time */
};

static struct row
row_from_id(struct id id)
{
    uint32_t time_low = (uint32_t)(id.time_ms & ((1u << TIME_LOW) - 1));
    uint32_t hash_high = (uint32_t)(id.hash >> HASH_LOW);
    assert(id.time_ms >> 50 == 0 && id.hash >> ID_HASH_BITS == 0);
    return (struct row){.high = (uint32_t)(id.time_ms >> TIME_LOW),
                        .middle = time_low << (32 - TIME_LOW) | hash_high,
                        .low = (uint32_t)(id.hash & ((1u << HASH_LOW) - 1))};
}

static uint64_t
row_time(struct row row)
{
    return (uint64_t)row.high << TIME_LOW | row.middle >> (32 - TIME_LOW);
}

static struct id
row_id(struct row row)
{
    uint64_t hash_high = row.middle & ((1u << (32 - TIME_LOW)) - 1);
    return (struct id){.time_ms = row_time(row),
                       .hash = hash_high << HASH_LOW | row.low};
}

/* --- Blocks ----------------------------------------------------------------------- */

static struct id_queue_block *
queue_make_block(struct id_queue *q, size_t index)
{
    if (q->block_count == q->block_capacity) {
        q->block_capacity =
            q->block_capacity > 0 ? 2 * q->block_capacity : CAPACITY_MIN;
        q->blocks = memory_resize(q->blocks, q->block_capacity * sizeof(*q->blocks));
    }
    memmove(&q->blocks[index + 1], &q->blocks[index],
            (q->block_count - index) * sizeof(*q->blocks));
    q->block_count++;
    q->sifted += index <= q->sifted && q->sifted > 0;
    return q->blocks[index] = memory_new(sizeof(**q->blocks));
}

static void
queue_drop_block(struct id_queue *q, size_t index)
{
    free(q->blocks[index]);
    q->block_count--;
    memmove(&q->blocks[index], &q->blocks[index + 1],
            (q->block_count - index) * sizeof(*q->blocks));
    q->sifted -= index < q->sifted;
    if (q->block_count == 0)
        id_queue_free(q);
}

/* The last block that begins at or before that time; 0 if there is none. */
static size_t
queue_block_at(const struct id_queue *q, uint64_t time_ms)
{
    size_t low = 0, high = q->block_count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (row_time(q->blocks[middle]->rows[0]) <= time_ms)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The place behind all rows of that time. */
static unsigned
row_place(const struct id_queue_block *b, uint64_t time_ms)
{
    unsigned low = 0, high = b->count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (row_time(b->rows[middle]) <= time_ms)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes space at *place of the full block index. At the very end nothing moves: blocks of
 * ids that come in order stay full. */
static struct id_queue_block *
queue_split(struct id_queue *q, size_t index, unsigned *place)
{
    bool append = index + 1 == q->block_count && *place == BLOCK_ROWS;
    unsigned keep = append ? BLOCK_ROWS : BLOCK_ROWS / 2;
    struct id_queue_block *next = queue_make_block(q, index + 1), *b = q->blocks[index];
    next->count = BLOCK_ROWS - keep;
    memcpy(next->rows, &b->rows[keep], next->count * sizeof(*b->rows));
    b->count = keep;
    if (*place < keep || (*place == keep && !append))
        return b;
    *place -= keep;
    return next;
}

/* --- Ids -------------------------------------------------------------------------- */

void
id_queue_add(struct id_queue *q, struct id id)
{
    struct row row = row_from_id(id);
    if (q->block_count == 0)
        queue_make_block(q, 0);
    size_t index = queue_block_at(q, id.time_ms);
    struct id_queue_block *b = q->blocks[index];
    unsigned place = row_place(b, id.time_ms);
    if (b->count == BLOCK_ROWS)
        b = queue_split(q, index, &place);
    memmove(&b->rows[place + 1], &b->rows[place],
            (b->count - place) * sizeof(*b->rows));
    b->rows[place] = row;
    b->count++;
    q->count++;
}

bool
id_queue_first(const struct id_queue *q, struct id *id)
{
    if (q->count == 0)
        return false;
    *id = row_id(q->blocks[0]->rows[0]);
    return true;
}

bool
id_queue_take(struct id_queue *q, struct id *id)
{
    if (!id_queue_first(q, id))
        return false;
    struct id_queue_block *b = q->blocks[0];
    q->count--;
    b->count--;
    memmove(b->rows, b->rows + 1, b->count * sizeof(*b->rows));
    if (b->count == 0)
        queue_drop_block(q, 0);
    return true;
}

void
id_queue_free(struct id_queue *q)
{
    for (size_t i = 0; i < q->block_count; i++)
        free(q->blocks[i]);
    free(q->blocks);
    *q = (struct id_queue){0};
}

size_t
id_queue_memory(const struct id_queue *q)
{
    return q->block_capacity * sizeof(*q->blocks) +
           q->block_count * sizeof(**q->blocks);
}

bool
id_queue_has(const struct id_queue *q, struct id id)
{
    struct row row = row_from_id(id);
    size_t index = queue_block_at(q, id.time_ms);
    for (unsigned i = 0; i < FOUND_AMONG && index < q->block_count; i++, index--) {
        const struct id_queue_block *b = q->blocks[index];
        for (unsigned at = row_place(b, id.time_ms); at-- > 0;)
            if (row_time(b->rows[at]) != id.time_ms)
                return false;
            else if (memcmp(&b->rows[at], &row, sizeof(row)) == 0)
                return true;
    }
    return false;
}

/* --- In steps --------------------------------------------------------------------- */

void
id_queue_sift_begin(struct id_queue *q)
{
    q->sifted = 0;
}

/* Drops an empty block. Two neighbours that fit into one become one: so blocks stay half
 * full. */
static void
queue_merge(struct id_queue *q, size_t index)
{
    const struct id_queue_block *b = q->blocks[index];
    struct id_queue_block *before = index > 0 ? q->blocks[index - 1] : NULL;
    if (b->count > 0 && (before == NULL || before->count + b->count > BLOCK_ROWS))
        return;
    if (b->count > 0) {
        memcpy(&before->rows[before->count], b->rows, b->count * sizeof(*b->rows));
        before->count += b->count;
    }
    queue_drop_block(q, index);
}

bool
id_queue_sift(struct id_queue *q, size_t *most,
              bool (*keeps)(const void *context, struct id id), const void *context)
{
    while (q->sifted < q->block_count) {
        struct id_queue_block *b = q->blocks[q->sifted];
        unsigned kept = 0, count = b->count;
        if (count > *most)
            return false;
        for (unsigned i = 0; i < count; i++)
            if (keeps(context, row_id(b->rows[i])))
                b->rows[kept++] = b->rows[i];
        *most -= count;
        b->count = kept;
        q->count -= count - kept;
        q->sifted++;
        queue_merge(q, q->sifted - 1);
    }
    return true;
}

/* --- One of each ------------------------------------------------------------------ */

struct same {
    uint64_t hash;
    size_t place; /* in the order of addition */
};

static int
same_by_hash(const void *a, const void *b)
{
    const struct same *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int
same_by_place(const void *a, const void *b)
{
    const struct same *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

/* The ids of one millisecond. Injectors choose their names: there may be many. */
static void
queue_add_once(struct id_queue *q, uint64_t time_ms, struct same *ids, size_t count)
{
    size_t kept = 0;
    qsort(ids, count, sizeof(*ids), same_by_hash);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || ids[i].hash != ids[i - 1].hash)
            ids[kept++] = ids[i];
    qsort(ids, kept, sizeof(*ids), same_by_place);
    for (size_t i = 0; i < kept; i++)
        id_queue_add(q, (struct id){.time_ms = time_ms, .hash = ids[i].hash});
}

void
id_queue_unite(struct id_queue *q)
{
    struct id_queue all = *q;
    struct same *ids = NULL;
    size_t capacity = 0;
    struct id id;
    *q = (struct id_queue){0};
    while (id_queue_first(&all, &id)) {
        uint64_t time_ms = id.time_ms;
        size_t count = 0;
        while (id_queue_first(&all, &id) && id.time_ms == time_ms) {
            if (count == capacity) {
                capacity = capacity > 0 ? 2 * capacity : BLOCK_ROWS;
                ids = memory_resize(ids, capacity * sizeof(*ids));
            }
            ids[count] = (struct same){.hash = id.hash, .place = count};
            count++;
            (void)id_queue_take(&all, &id);
        }
        queue_add_once(q, time_ms, ids, count);
    }
    free(ids);
}
