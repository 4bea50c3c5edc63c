/* Removal: deletes the files of an ended message when its END record in the journal is
 * durable. An unlink becomes durable at an unknown time and in no order; with the END,
 * startup finishes a partial removal instead of delivering the message again. A few
 * messages are removed in a turn, so that no client waits while an operator removes
 * many. */
#ifndef QUEUE_RECOVERY_REMOVAL_H
#define QUEUE_RECOVERY_REMOVAL_H

#include "base/loop/loop.h"
#include "queue/spool/id_set.h"
#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

/* Above this limit, files that are due are removed immediately: a caller that ends mail
 * faster than files can be removed must wait. */
enum { REMOVAL_MAX = 10000 }; /* 1.2 MB */

struct ending;

struct removal {
    struct spool *spool;
    struct journaled *journaled;
    struct id_set *seen;
    struct loop *loop;
    bool unsynced; /* there are removals without an END in the journal */
    struct loop_timer sync;
    struct ending *list, *table; /* list: by batch */
    struct ending *due;          /* their END is durable; by batch */
    struct loop_task task;       /* while some are due */
    bool stopping;               /* no more turns: remove all immediately */
    /* Files of some messages have been removed, or none waits for its event any more; or
     * NULL. */
    void (*removed)(void *context);
    void *context;
    /* Messages of other slices whose todo and info are removed, not yet durably
     * (foreign) or durably (gone). */
    struct ending *foreign, *gone;
    struct ending *barred; /* removed without an END when the gate opens */
    struct loop_timer gate;
    struct ending *refused; /* by the disk; tried again by: */
    struct loop_timer retry;
};

/* For a message of the spool, or a large journaled one, with its END in batch. */
void removal_add(struct removal *n, struct id id, uint64_t batch);
/* With a journal: writes END and removes later; without: removes now. dirs: where it may
 * have files. Returns the batch of the END, or 0. */
uint64_t removal_end(struct removal *n, struct id id, unsigned dirs);
/* For a message of a slice that we took over: removes todo and info, durably within
 * 100 ms, then its other files. The daemon of that slice will not read our journal. */
void removal_end_foreign(struct removal *n, struct id id);
/* Syncs removals that have no END in the journal. */
void removal_sync(struct removal *n);
bool removal_have(const struct removal *n, struct id id);
size_t removal_count(const struct removal *n);
/* True when all with an END up to this batch have been removed. */
bool removal_are_removed(const struct removal *n, uint64_t batch);
/* From now on files that are due are removed immediately. */
void removal_hurry(struct removal *n);
/* The event of journal.h; again: after an error, journal_again(). */
void removal_settled(struct removal *n, uint64_t batch, int error, uint64_t again);
void removal_stop(struct removal *n);

#endif
