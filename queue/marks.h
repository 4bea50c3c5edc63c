/* What deliveries have led to and is not on disk yet: D marks, bounce texts, due times.
 *
 * Written together, at most 100 ms or 64 marks behind (spec/queue.md §6 R7), at the end
 * of a turn; a message that is retired before costs nothing. What the disk refuses
 * stays here and is tried again, so that a full disk does not deliver twice. */
#ifndef QUEUE_MARKS_H
#define QUEUE_MARKS_H

#include "base/loop.h"
#include "queue/seen.h"
#include "queue/spool.h"

struct pending;

struct marks {
    struct spool *spool;
    struct loop *loop;
    struct seen *seen;
    bool at_once; /* an injector or operator: no end of turn will come */
    struct pending *table;
    unsigned unwritten; /* marks */
    bool urgent;        /* write at the end of this turn */
    struct loop_timer delay, retry;
    struct loop_task stir;
};

/* spool to at_once are the caller's to set before. */
void marks_start(struct marks *m);
void marks_flush(struct marks *m);
/* Writes what can be written and forgets the rest. */
void marks_stop(struct marks *m);

/* Behind the functions of queue.h with these names. */
void marks_settle(struct marks *m, struct envelope *e, unsigned index,
                  enum channel channel, const struct failure *failure);
void marks_defer(struct marks *m, struct envelope **e);

/* Before id is read from disk: writes what is pending for it. */
void marks_write(struct marks *m, struct id id);
/* After: what could not be written is laid over what was read. */
void marks_overlay(struct marks *m, struct envelope *e);
/* Nothing of id will be written any more. */
void marks_forget(struct marks *m, struct id id);

#endif
