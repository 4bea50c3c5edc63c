/* The names of a listing of the spool: ids in order of age, and the directories that
 * have them, in 16 bytes each. A spool may hold a million messages, each in three or four
 * directories.
 *
 * New ids gather behind the sorted ones and are merged when there are many, so that one
 * call never sorts much. */
#ifndef QUEUE_SPOOL_ID_LIST_H
#define QUEUE_SPOOL_ID_LIST_H

#include "base/id.h"

#include <stddef.h>

struct id_list_row {
    uint64_t time_ms : 50;
    uint64_t hash : ID_HASH_BITS, dirs : 24;
};

struct id_list {
    struct id_list_row *rows;
    size_t count, capacity;
    size_t sorted;             /* rows before this are sorted, one for each id */
    struct id_list_row *noted; /* not yet looked for in rows */
    size_t noted_count;
};

/* Adds dirs to those of id; rows have it after id_list_sort(). */
void id_list_note(struct id_list *list, struct id id, unsigned dirs);
/* Takes all notes, and sorts all rows. Call it at the end of each directory. */
void id_list_sort(struct id_list *list);
void id_list_free(struct id_list *list); /* empty afterwards */

struct id id_list_id(const struct id_list_row *row);
/* Bytes allocated. */
size_t id_list_memory(const struct id_list *list);

#endif
