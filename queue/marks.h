/* Marks: delivery results that are not on disk yet: D marks, bounce texts, due times.
 *
 * Written together at the end of a turn, at most 100 ms or 64 marks late (doc/dev/design.md
 * "Crash rules"); a message that is retired before costs no write. Where they go:
 *   journaled, all results final   a record of the journal
 *   journaled or S4, deferred      the message moves to S5 (preprocess.h)
 *   S5                             the message's files
 * Marks that the disk refuses stay here and are written later, so that a full disk does
 * not cause a second delivery. */
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
    struct journaled *journaled;
    bool synchronous;     /* an injector or operator: no end of turn follows */
    queue_in_use *in_use; /* of queue_settings; may be NULL */
    void *in_use_context;
    /* A message that was retired during its move is S5 now, and must be ended. */
    void (*ended)(void *context, struct id id);
    /* Its state on disk has changed. */
    void (*changed)(void *context, struct id id);
    /* The message cannot be read back and must be quarantined. */
    void (*damaged)(void *context, struct id id, const char *reason);
    /* A round of the preprocessor is over; may be NULL. */
    void (*moved)(void *context);
    void *context;

    /* Wait for a move, each line oldest first: lines[true] have results that only the files
     * can keep, and most places of a round. */
    struct pending *table, *lines[2];
    size_t lined;       /* in both */
    unsigned unwritten; /* marks */
    bool urgent;        /* write at the end of this turn */
    bool barred; /* some wait for their events; tried again when the gate moves */
    uint64_t barred_at; /* the gate then */
    struct preprocessor preprocessor;
    uint64_t rounds; /* finished rounds of the preprocessor */
    struct loop_timer delay, retry;
    struct loop_task wake;
};

/* The caller sets the members from spool to context before. */
void marks_start(struct marks *m);
/* Writes all marks that can be written and forgets the rest. */
void marks_stop(struct marks *m);

/* Behind queue_defer() and queue_retire(); marks.c has queue_settle() and its like. */
void marks_defer(struct marks *m, struct envelope **e);
/* True: the message is being moved; e is taken, and `ended` is called later. False: the
 * caller ends the message itself. */
bool marks_retire(struct marks *m, struct envelope **e);

/* Moves a journaled message to the spool in any state, because its segment is
 * needed. */
void marks_move(struct marks *m, struct id id);

/* Before id is read from disk: writes its pending marks. */
void marks_write(struct marks *m, struct id id);
/* Afterwards: applies marks that could not be written to the envelope just read. False: it
 * cannot have them. */
bool marks_overlay(struct marks *m, struct envelope *e)
    __attribute__((warn_unused_result));
/* No more marks of id will be written. True: it is being moved, as marks_retire(). */
bool marks_forget(struct marks *m, struct id id);
/* Before id is quarantined: its marks go where the rest of it is. False: they cannot now;
 * ask again later. Marks that the files can never take, for they are gone or damaged, are
 * forgotten, and added to reason in words: release of what an operator has repaired would
 * deliver again. */
bool marks_yield(struct marks *m, struct id id, char *reason, size_t reason_size)
    __attribute__((warn_unused_result));
/* True: its files are being made. */
bool marks_are_moving(const struct marks *m, struct id id);
/* True: retired or forgotten during its move, so no longer a message. */
bool marks_have_ended(const struct marks *m, struct id id);
/* By how much `rounds` must grow, at most, until all messages in line now have moved; 0: none
 * is. */
uint64_t marks_rounds_left(const struct marks *m);
/* True: no mark is pending and no move in progress; for tests. */
bool marks_are_quiet(const struct marks *m);

#endif
