/* A sorted list of ids with their directories. */
#include "queue/spool/id_list.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NOTED_MAX = 4096, /* in the caches of a processor */
    TAIL_MIN = 16384, /* rows behind the sorted ones before they are merged, */
    TAIL_PART = 8 /* or this fraction of those: the work grows with the rows alone */
};

static_assert(sizeof(struct id_list_row) == 16, "the size of a row is the point");

struct id
id_list_id(const struct id_list_row *row)
{
    return (struct id){.time_ms = row->time_ms, .hash = row->hash};
}

static int
rows_compare(const void *a, const void *b)
{
    return id_compare(id_list_id(a), id_list_id(b));
}

/* Sorts the rows behind the sorted ones, and makes one of those with the same id. */
static void
tail_sort(struct id_list *l)
{
    size_t kept = l->sorted;
    qsort(l->rows + l->sorted, l->count - l->sorted, sizeof(*l->rows), rows_compare);
    for (size_t i = l->sorted; i < l->count; i++) {
        if (kept > l->sorted && rows_compare(&l->rows[kept - 1], &l->rows[i]) == 0)
            l->rows[kept - 1].dirs |= l->rows[i].dirs;
        else
            l->rows[kept++] = l->rows[i];
    }
    l->count = kept;
}

/* From the back, so that only the tail needs a copy. None of its ids is in front:
 * take_noted() would have found it. */
static void
tail_merge(struct id_list *l)
{
    if (l->sorted == l->count)
        return;
    tail_sort(l);
    size_t front = l->sorted, tail = l->count - front, to = l->count;
    struct id_list_row *copy = memory_array(tail, sizeof(*copy));
    memcpy(copy, l->rows + front, tail * sizeof(*copy));
    while (tail > 0) {
        bool is_front =
            front > 0 && rows_compare(&l->rows[front - 1], &copy[tail - 1]) > 0;
        l->rows[--to] = is_front ? l->rows[--front] : copy[--tail];
    }
    free(copy);
    l->sorted = l->count;
}

/* The first sorted row, from this one on, that is not before row: near in most cases. */
static size_t
sorted_at(const struct id_list *l, size_t low, const struct id_list_row *row)
{
    size_t step = 1;
    while (low + step < l->sorted && rows_compare(&l->rows[low + step], row) < 0) {
        low += step;
        step *= 2;
    }
    size_t high = low + step < l->sorted ? low + step : l->sorted;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows_compare(&l->rows[middle], row) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
tail_add(struct id_list *l, struct id_list_row row)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity + l->capacity / 4 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = row;
}

/* One walk through the rows for many notes: a search for each would miss the caches. */
static void
take_noted(struct id_list *l)
{
    size_t at = 0;
    if (l->noted_count == 0)
        return;
    qsort(l->noted, l->noted_count, sizeof(*l->noted), rows_compare);
    for (size_t i = 0; i < l->noted_count; i++) {
        const struct id_list_row *row = &l->noted[i];
        at = sorted_at(l, at, row);
        if (at < l->sorted && rows_compare(&l->rows[at], row) == 0)
            l->rows[at].dirs |= row->dirs;
        else
            tail_add(l, *row);
    }
    l->noted_count = 0;
    if (l->count - l->sorted >= TAIL_MIN + l->sorted / TAIL_PART)
        tail_merge(l);
}

void
id_list_sort(struct id_list *l)
{
    take_noted(l);
    free(l->noted);
    l->noted = NULL;
    tail_merge(l);
}

void
id_list_note(struct id_list *l, struct id id, unsigned dirs)
{
    if (l->noted == NULL)
        l->noted = memory_array(NOTED_MAX, sizeof(*l->noted));
    l->noted[l->noted_count++] =
        (struct id_list_row){.time_ms = id.time_ms & ((UINT64_C(1) << 50) - 1),
                             .hash = id.hash & ((UINT64_C(1) << ID_HASH_BITS) - 1),
                             .dirs = dirs & ((1u << 24) - 1)};
    if (l->noted_count == NOTED_MAX)
        take_noted(l);
}

void
id_list_free(struct id_list *l)
{
    free(l->noted);
    free(l->rows);
    *l = (struct id_list){0};
}

size_t
id_list_memory(const struct id_list *l)
{
    return (l->capacity + (l->noted != NULL ? NOTED_MAX : 0)) * sizeof(*l->rows);
}
