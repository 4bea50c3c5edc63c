/* The crash-loop guard: records which message is being processed when the process ends.
 *
 * While the daemon processes a message, the message's id is in one page of shared
 * memory (lock/guard), which outlives the process without a system call. The next
 * startup reads and counts it: a message that was being processed in two crashes is
 * quarantined (corrupt/) instead of being tried again (GNU Mailman's .bak and .psv;
 * doc/dev/design.md "Crash-loop guard"). A message that ends or is deferred in order is
 * forgotten.
 *
 * A crash is the daemon's own (base/crash.h). An end from outside (SIGKILL, lack of
 * memory, power cut) also interrupts some message, but mostly an innocent one: six ends
 * of any kind are needed then.
 *
 * Ends with no message in process count, too: after two such crashes or six such ends,
 * each within a minute of startup, the daemon is careful. The manager then keeps one
 * message at a time in memory, the suspect, which counts as in process whenever no
 * other message does. When three suspects have been quarantined and the daemon still
 * ends, mail is not the reason, and no message is suspected any more.
 *
 * The page is advisory: a missing or damaged one is made anew, without one nothing is
 * counted, and it is never synced. */
#ifndef QUEUE_SPOOL_GUARD_H
#define QUEUE_SPOOL_GUARD_H

#include "base/disk/disk.h"
#include "base/id.h"
#include "base/log/log.h"

enum {
    GUARD_CRASHES_MAX = 2,
    GUARD_ENDS_MAX = 6,     /* crashes among them */
    GUARD_SUSPECTS_MAX = 3, /* quarantined in vain: then mail is not the reason */
    GUARD_EARLY_MS = 60 * 1000
};

struct guard_page;
struct guard {
    struct disk *disk;
    struct guard_page *page; /* NULL: nothing is counted */
    struct id suspect;       /* time 0: none */
};

/* For the holder of the slice's lock alone. Counts the last end for the message that
 * was being processed, with a log line. */
void guard_open(struct guard *g, struct disk *disk, struct log *log, unsigned slices,
                unsigned slice);
/* The daemon stops in order; before guard_close(), which alone counts as a crash. */
void guard_stop(struct guard *g);
void guard_close(struct guard *g);

/* GUARD_EARLY_MS have passed, or all due messages have been tried. */
void guard_survive(struct guard *g);
bool guard_is_careful(const struct guard *g);
/* Sets the suspect; time 0: none. Not between guard_enter() and guard_leave(). */
void guard_suspect(struct guard *g, struct id id);

/* From here on id is being processed, until guard_leave() with the returned id of the
 * message before. Both only store to memory. An id of time 0 changes nothing. */
struct id guard_enter(struct guard *g, struct id id);
/* The same for work without a message: a client is being served. */
struct id guard_enter_none(struct guard *g);
void guard_leave(struct guard *g, struct id before);

/* Deferred: its ends are forgotten, unless the daemon ends while writing the
 * deferral. */
void guard_rest(struct guard *g, struct id id);
/* Ended, or released by the operator. */
void guard_forget(struct guard *g, struct id id);
/* NULL, or why the message must be quarantined. */
const char *guard_reason(const struct guard *g, struct id id);
static inline bool
guard_is_deadly(const struct guard *g, struct id id)
{
    return guard_reason(g, id) != NULL;
}

#endif
