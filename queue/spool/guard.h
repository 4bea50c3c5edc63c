/* The crash-loop guard: which message is at work when the process ends.
 *
 * While the daemon is at a message in any way, the message's id stands in one page of
 * shared memory (lock/guard), which outlives the process without any system call. The
 * next start finds it there, and counts: what was at work in two crashes is quarantined
 * (corrupt/) instead of being tried again (GNU Mailman's .bak and .psv;
 * doc/design.md "Crash-loop guard"). What ends or is deferred in order is forgotten.
 *
 * A crash is the daemon's own (base/crash.h). An end that came from outside (SIGKILL, a
 * lack of memory, a power cut) finds some message at work, too, and mostly an innocent
 * one: six ends of any kind are needed then.
 *
 * No start repeats what failed without anything at work: after two such crashes or six
 * ends, each within a minute of its start, the daemon is careful. The manager then has
 * one message at a time in memory, and that is the suspect: at work whenever nothing
 * else is. When three suspects have been quarantined and the daemon still ends, the
 * reason is none of the mail, and nothing is suspected any more.
 *
 * The page is advice: a missing or damaged one is made anew, without one nothing is
 * counted, and it is never synced. */
#ifndef QUEUE_GUARD_H
#define QUEUE_GUARD_H

#include "base/disk/disk.h"
#include "base/id.h"
#include "base/log/log.h"

enum {
    GUARD_CRASHES_MAX = 2,
    GUARD_ENDS_MAX = 6,     /* crashes among them */
    GUARD_SUSPECTS_MAX = 3, /* quarantined in vain: then it is not the mail */
    GUARD_EARLY_MS = 60 * 1000
};

struct guard_page;
struct guard {
    struct disk *disk;
    struct guard_page *page; /* NULL: nothing is counted */
    struct id suspect;       /* time 0: none */
};

/* For the holder of the slice's lock alone. Counts for what was at work, with a log
 * line. */
void guard_open(struct guard *g, struct disk *disk, struct log *log, unsigned slices,
                unsigned slice);
/* It was stopped in order; before guard_close(), which is what a crash does as well. */
void guard_stop(struct guard *g);
void guard_close(struct guard *g);

/* GUARD_EARLY_MS have passed, or all that was due has been tried. */
void guard_survive(struct guard *g);
bool guard_is_careful(const struct guard *g);
/* From now on at work whenever nothing else is; time 0: nothing. Not within enter and
 * leave. */
void guard_suspect(struct guard *g, struct id id);

/* From here on id is at work, until guard_leave() with the answer: what was at work
 * before. Both only store to memory. An id of time 0 changes nothing. */
struct id guard_enter(struct guard *g, struct id id);
/* The same for what no message is the reason of: a client that is being served. */
struct id guard_enter_nobody(struct guard *g);
void guard_leave(struct guard *g, struct id before);

/* Deferred: its ends are forgotten unless writing that down is one more. */
void guard_rest(struct guard *g, struct id id);
/* Ended, or released by the operator. */
void guard_forget(struct guard *g, struct id id);
/* At work in so many ends, at most GUARD_ENDS_MAX are counted. */
unsigned guard_ends(const struct guard *g, struct id id);
/* NULL, or why it is to be quarantined. */
const char *guard_reason(const struct guard *g, struct id id);
static inline bool
guard_is_deadly(const struct guard *g, struct id id)
{
    return guard_reason(g, id) != NULL;
}

#endif
