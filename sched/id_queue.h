/* Ids in order of age; those of one millisecond in the order of their addition, because
 * their hashes have none.
 *
 * A dead site may have a million messages on disk. They mostly come in order: then an id
 * costs 12 bytes, else up to twice as many. Memory of taken ids is freed. */
#ifndef SCHED_ID_QUEUE_H
#define SCHED_ID_QUEUE_H

#include "base/id.h"

struct id_queue_block;

/* Zeroed at first; an empty one owns nothing. */
struct id_queue {
    struct id_queue_block **blocks; /* in order, none is empty */
    size_t block_count, block_capacity;
    size_t count;
    size_t sifted; /* blocks before this one have been sifted */
};

void id_queue_add(struct id_queue *q, struct id id); /* perhaps again */
/* The oldest; false: none. */
bool id_queue_first(const struct id_queue *q, struct id *id);
/* The same, and removes it. */
bool id_queue_take(struct id_queue *q, struct id *id);
/* Keeps one of each id, the one that was added first. */
void id_queue_unite(struct id_queue *q);
/* Whether it is there; of very many ids of its millisecond only the last ones count. */
bool id_queue_has(const struct id_queue *q, struct id id);

/* Removes the ids that `keeps` does not want, in steps, between which ids may be added
 * and taken. Asks for at most *most ids and takes them off, at least 128 at a time. False:
 * there are more to ask for. */
void id_queue_sift_begin(struct id_queue *q);
bool id_queue_sift(struct id_queue *q, size_t *most,
                   bool (*keeps)(const void *context, struct id id),
                   const void *context);
void id_queue_free(struct id_queue *q); /* empty afterwards */
/* Bytes allocated. */
size_t id_queue_memory(const struct id_queue *q);

#endif
