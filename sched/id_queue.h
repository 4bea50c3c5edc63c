/* Ids in order of age; those of one millisecond in the order of their addition, because
 * their hashes have none.
 *
 * A dead site may have a million messages on disk. They mostly come in order: then an id
 * costs 12 bytes, else up to twice as many. What is taken is freed. */
#ifndef SCHED_ID_QUEUE_H
#define SCHED_ID_QUEUE_H

#include "base/id.h"

struct id_queue_block;

/* Zeroed at first; an empty one owns nothing. */
struct id_queue {
    struct id_queue_block **blocks; /* in order, none is empty */
    size_t block_count, block_capacity;
    size_t count;
};

void id_queue_add(struct id_queue *q, struct id id); /* perhaps again */
/* The oldest; false: none. */
bool id_queue_first(const struct id_queue *q, struct id *id);
/* The same, and removes it. */
bool id_queue_take(struct id_queue *q, struct id *id);
/* Keeps one of each id, the one that was added first. */
void id_queue_unite(struct id_queue *q);
void id_queue_free(struct id_queue *q); /* empty afterwards */
/* Bytes allocated. */
size_t id_queue_memory(const struct id_queue *q);

#endif
