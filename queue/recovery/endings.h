/* Messages of the spool whose END is on its way into the journal: their files go once
 * it is durable. An unlink is durable at some time nobody knows, and not in order; with
 * the END a start finishes what it finds half removed, instead of delivering it again.
 * Some go in a turn, so that nobody waits while an operator removes many. */
#ifndef QUEUE_ENDINGS_H
#define QUEUE_ENDINGS_H

#include "base/loop.h"
#include "queue/spool/seen.h"
#include "queue/spool/spool.h"
#include "queue/journal/young.h"

/* When there are more, what is due goes at once: who ends mail faster than files can
 * be removed must wait. */
enum { ENDINGS_MAX = 10000 }; /* 1.2 MB */

struct ending;

struct endings {
    struct spool *spool;
    struct young *young;
    struct seen *seen;
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
void endings_add(struct endings *n, struct id id, uint64_t batch);
/* With the journal: writes END and removes later; without: removes now. The END's
 * batch, or 0. */
uint64_t endings_end(struct endings *n, struct id id);
/* Of a slice that we took over: it is no message any more, durably within 100 ms; then
 * the rest of its files goes. Its own daemon will not read our journal. */
void endings_end_foreign(struct endings *n, struct id id);
/* Makes the removals durable that the journal does not tell of. */
void endings_sync(struct endings *n);
bool endings_have(const struct endings *n, struct id id);
size_t endings_count(const struct endings *n);
/* Nothing is due whose END was in this batch or before. */
bool endings_are_removed(const struct endings *n, uint64_t batch);
/* From now on what is due goes at once. */
void endings_hurry(struct endings *n);
/* The journal's event. */
void endings_settled(struct endings *n, uint64_t batch, int error);
void endings_stop(struct endings *n);

#endif
