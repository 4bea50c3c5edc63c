/* Messages of the spool whose END is on its way into the journal: their files go once
 * it is durable. An unlink is durable at some time nobody knows, and not in order; with
 * the END a start finishes what it finds half removed, instead of delivering it again.
 * Some go in a turn, so that nobody waits while an operator removes many. */
#ifndef QUEUE_REMOVAL_H
#define QUEUE_REMOVAL_H

#include "base/loop/loop.h"
#include "queue/spool/id_set.h"
#include "queue/spool/spool.h"
#include "queue/journal/journaled.h"

/* When there are more, what is due goes at once: who ends mail faster than files can
 * be removed must wait. */
enum { REMOVAL_MAX = 10000 }; /* 1.2 MB */

struct ending;

struct removal {
    struct spool *spool;
    struct journaled *young;
    struct id_set *seen;
    struct loop *loop;
    bool unsynced; /* removals that the journal does not tell of */
    struct loop_timer sync;
    struct ending *list, *table; /* list: by batch */
    struct ending *due;          /* their END is durable; by batch */
    struct loop_task task;       /* while some are due */
    bool stopping;               /* no more turns: all at once */
    /* Some that were due are removed; NULL: nobody asks. */
    void (*removed)(void *context);
    void *context;
    /* Of other slices: without todo and info, which is not durable yet; or is. */
    struct ending *foreign, *gone;
};

/* The message was young and large (its END is in batch), or is the spool's. */
void removal_add(struct removal *n, struct id id, uint64_t batch);
/* With the journal: writes END and removes later; without: removes now. The END's
 * batch, or 0. */
uint64_t removal_end(struct removal *n, struct id id);
/* Of a slice that we took over: it is no message any more, durably within 100 ms; then
 * the rest of its files goes. Its own daemon will not read our journal. */
void removal_end_foreign(struct removal *n, struct id id);
/* Makes the removals durable that the journal does not tell of. */
void removal_sync(struct removal *n);
bool removal_have(const struct removal *n, struct id id);
size_t removal_count(const struct removal *n);
/* Nothing is due whose END was in this batch or before. */
bool removal_are_removed(const struct removal *n, uint64_t batch);
/* From now on what is due goes at once. */
void removal_hurry(struct removal *n);
/* The journal's event. */
void removal_settled(struct removal *n, uint64_t batch, int error);
void removal_stop(struct removal *n);

#endif
