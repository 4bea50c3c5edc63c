/* Counts hold/ and corrupt/, in steps where they are large.
 *
 * A directory is read again only when it has changed. One of few names is read whole, and
 * the count is exact. A larger one is read in steps, and until that is over the count is
 * the one before; the first count is that of the names seen so far, and says so. */
#ifndef QUEUE_QUEUE_APART_H
#define QUEUE_QUEUE_APART_H

#include "base/loop/loop.h"
#include "queue/queue_operator.h"
#include "queue/spool/spool.h"

enum { QUEUE_APART_STEP = 1000 /* names read in a turn */ };

struct queue_apart_count {
    struct spool *spool;
    struct loop *loop;
    struct loop_task task; /* reads on */
    struct queue_apart_directory {
        bool is_counted;
        int64_t changed_ms, counted_ms; /* the directory; when reading it began */
        struct queue_apart result, next;
        struct disk_listing *listing; /* being read; NULL: none is */
        int64_t next_changed_ms, next_counted_ms;
    } held, corrupt;
};

struct queue_apart queue_apart_count(struct queue_apart_count *c);
void queue_apart_stop(struct queue_apart_count *c);

#endif
