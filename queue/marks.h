/* What deliveries have led to and is not on disk yet: D marks, bounce texts, due times.
 *
 * Written together, at most 100 ms or 64 marks behind (doc/design.md "Crash rules"), at
 * the end of a turn; a message that is retired before costs nothing. Where they go:
 *   young, decided        a record of the journal
 *   young or S4, waiting  the message moves to S5, with its marks (preprocess.h)
 *   S5                    its files
 * What the disk refuses stays here and is tried again, so that a full disk does not
 * deliver twice. */
#ifndef QUEUE_MARKS_H
#define QUEUE_MARKS_H

#include "base/loop/loop.h"
#include "queue/recovery/preprocess.h"
#include "queue/spool/id_set.h"
#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

struct pending;

struct marks {
    struct spool *spool;
    struct loop *loop;
    struct id_set *seen;
    struct journaled *young;
    bool at_once; /* an injector or operator: no end of turn will come */
    /* A message that was retired while it moved is S5 now, and to be ended. */
    void (*ended)(void *context, struct id id);
    /* One that cannot be read back, to be quarantined. */
    void (*damaged)(void *context, struct id id, const char *reason);
    void *context;

    struct pending *table, *line; /* line: to be moved, oldest first */
    unsigned unwritten;           /* marks */
    bool urgent;                  /* write at the end of this turn */
    struct preprocessor mover;
    uint64_t rounds; /* of the mover, that are over */
    struct loop_timer delay, retry;
    struct loop_task stir;
};

/* spool to context are the caller's to set before. */
void marks_start(struct marks *m);
void marks_flush(struct marks *m);
/* Writes what can be written and forgets the rest. */
void marks_stop(struct marks *m);

/* Behind the functions of queue.h with these names. */
void marks_settle(struct marks *m, struct envelope *e, unsigned index,
                  enum channel channel, const struct failure *failure);
void marks_defer(struct marks *m, struct envelope **e);
/* True: the message moves just now; e is taken, and `ended` is called later. Else the
 * caller ends the message itself. */
bool marks_retire(struct marks *m, struct envelope **e);

/* Behind queue_wait(). */
void marks_wait(struct marks *m, struct envelope *e, bool waits);

/* A young message whose segment is needed goes to the spool, whatever it is doing. */
void marks_move(struct marks *m, struct id id);

/* Before id is read from disk: writes what is pending for it. */
void marks_write(struct marks *m, struct id id);
/* After: what could not be written is laid over what was read. */
void marks_overlay(struct marks *m, struct envelope *e);
/* Nothing of id will be written any more. True: it moves just now, see marks_retire. */
bool marks_forget(struct marks *m, struct id id);
/* It was retired or forgotten while it moves: no message any more. */
bool marks_have_ended(const struct marks *m, struct id id);
/* How often `rounds` must grow until all that waits for the mover now has moved. */
uint64_t marks_rounds_left(const struct marks *m);
/* True: nothing is under way. */
bool marks_are_quiet(const struct marks *m);

#endif
