/* A sorted list of ids with their directories. */
#include "queue/spool/id_list.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
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
 * id_list_note() would have found it. */
void
id_list_sort(struct id_list *l)
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

void
id_list_note(struct id_list *l, struct id id, unsigned dirs)
{
    struct id_list_row row = {.time_ms = id.time_ms & ((UINT64_C(1) << 50) - 1),
                              .hash = id.hash & ((UINT64_C(1) << ID_HASH_BITS) - 1),
                              .dirs = dirs & ((1u << 24) - 1)},
                       *found = NULL;
    if (l->sorted > 0)
        found = bsearch(&row, l->rows, l->sorted, sizeof(row), rows_compare);
    if (found != NULL) {
        found->dirs |= row.dirs;
        return;
    }
    if (l->count == l->capacity) {
        l->capacity = l->capacity > 0 ? l->capacity + l->capacity / 4 : 64;
        l->rows = memory_resize(l->rows, l->capacity * sizeof(*l->rows));
    }
    l->rows[l->count++] = row;
    if (l->count - l->sorted >= TAIL_MIN + l->sorted / TAIL_PART)
        id_list_sort(l);
}

void
id_list_free(struct id_list *l)
{
    free(l->rows);
    *l = (struct id_list){0};
}

size_t
id_list_memory(const struct id_list *l)
{
    return l->capacity * sizeof(*l->rows);
}
