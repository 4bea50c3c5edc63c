/* Lists the messages of a queue in steps, oldest first, for a daemon that has other work:
 * queue_each() reads all names in one turn.
 *
 * Names are read first, some at a time; then messages are met by age. Messages that are
 * there from begin to the end of reading, and stay where they are, are met once; one that
 * moves meanwhile may be missed when it goes from hold/ back into the queue. */
#ifndef QUEUE_QUEUE_WALK_H
#define QUEUE_QUEUE_WALK_H

#include "queue/queue_operator.h"

struct queue_walk;

/* wants: which to meet; asked once for each name, but not for messages that have ended.
 * context is its own, too. For a daemon's queue, and ended before that. */
struct queue_walk *queue_walk_begin(struct queue *queue,
                                    bool (*wants)(void *context, struct id id),
                                    void *context);
/* Reads at most `most` names of files. 1: there are more; 0: all are read; or -errno. */
int queue_walk_read(struct queue_walk *walk, size_t most)
    __attribute__((warn_unused_result));
/* The next message, when all are read. False: there is none. */
bool queue_walk_next(struct queue_walk *walk, struct id *id, enum queue_place *place);
void queue_walk_end(struct queue_walk **walk); /* NULL inside: nothing */

#endif
