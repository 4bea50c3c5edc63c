/* The crash-loop guard: which message is at work when the process dies.
 *
 * While the daemon is at a message in a way that its content could make deadly, the
 * message's id stands in one page of shared memory (lock/guard), which outlives the
 * process without any system call. The next start finds it there, and counts: what was
 * at work in three crashes is parked in corrupt/ instead of being tried again (GNU
 * Mailman's .bak and .psv; DESIGN §2 "Crash rules"). What ends or is deferred in order
 * is forgotten. The page is advice: a missing or damaged one is made anew, without one
 * nothing is counted, and it is never synced. */
#ifndef QUEUE_GUARD_H
#define QUEUE_GUARD_H

#include "base/disk.h"
#include "base/id.h"
#include "base/log.h"

enum {
    GUARD_CRASHES_MAX = 3,
    GUARD_ROWS = 64 /* ids that are remembered; then those with the fewest crashes go */
};
extern const char guard_reason[]; /* of parking */

struct guard_page;
struct guard {
    struct disk *disk;
    struct guard_page *page; /* NULL: nothing is counted */
};

/* For the holder of the slice's lock alone. Counts for what was at work, with a log
 * line. */
void guard_open(struct guard *g, struct disk *disk, struct log *log, unsigned slices,
                unsigned slice);
void guard_close(struct guard *g);

/* From here on id is at work, until guard_leave() with the answer: what was at work
 * before. Both only store to memory. */
struct id guard_enter(struct guard *g, struct id id);
void guard_leave(struct guard *g, struct id before);

/* Deferred: its crashes are forgotten unless writing that down is one more. */
void guard_rest(struct guard *g, struct id id);
/* Ended, or released by the operator. */
void guard_forget(struct guard *g, struct id id);
/* At work in so many crashes. */
unsigned guard_crashes(const struct guard *g, struct id id);
static inline bool
guard_is_deadly(const struct guard *g, struct id id)
{
    return guard_crashes(g, id) >= GUARD_CRASHES_MAX;
}

#endif
