/* Due times of messages in S5, from the heads of info/ID.
 *
 * Startup needs one of each message, and there may be a million. Those that are not in
 * memory are asked for together, because a device serves many reads at a time. */
#ifndef QUEUE_SPOOL_DUE_TIMES_H
#define QUEUE_SPOOL_DUE_TIMES_H

#include "queue/envelope/envelope.h"
#include "queue/spool/spool.h"

enum { DUE_TIMES_MAX = 50 }; /* files open at a time */

struct due_times {
    struct due_times_head {
        struct id id;
        int file; /* < 0: all has been read */
        int64_t got;
        char bytes[ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE];
    } heads[DUE_TIMES_MAX];
    size_t count, next;
};

/* Zeroed at first. Begins to read the head of a message. False: DUE_TIMES_MAX are asked
 * for. */
bool due_times_ask(struct due_times *d, struct spool *s, struct id id)
    __attribute__((warn_unused_result));
/* Due time and attempts; now and 0 when they cannot be read. Those that were asked for
 * are taken in that order; others are read now. */
void due_times_take(struct due_times *d, struct spool *s, struct id id, int64_t *due_ms,
                    unsigned *attempts);
/* The same of a message in todo/ that another host has given; of others they stay. */
void due_times_read_todo(struct spool *s, struct id id, int64_t *due_ms,
                         unsigned *attempts);
/* Forgets names that were not taken: they are outdated in another turn. */
void due_times_drop(struct due_times *d, struct spool *s);

#endif
