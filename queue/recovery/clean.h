/* Leftovers: drafts of dead daemons at the start; every hour what injectors that died
 * left in pid/, mess/ and intd/, and files of every directory whose message has gone.
 *
 * Nothing younger than 36 hours goes: an injector gives up after 24. The age is the
 * ctime of the youngest file: restored or copied files are young again, and no reader
 * makes them younger (doc/design.md "Crash rules"). A name tells nothing about it.
 *
 * A sweep lists one directory after the other and looks at some files in a turn, so that
 * nobody waits for it. What it suspects is for the recovery to judge, as at the start;
 * each removal is one log line. */
#ifndef QUEUE_CLEAN_H
#define QUEUE_CLEAN_H

#include "base/loop/loop.h"
#include "queue/recovery/removal.h"
#include "queue/spool/id_set.h"
#include "queue/spool/slices.h"
#include "queue/journal/journaled.h"

enum { CLEAN_AGE_MS = 36 * 60 * 60 * 1000 };

struct clean_row;
struct clean {
    struct spool *spool;
    struct loop *loop;
    /* What the daemon knows is let alone: it has its own way to its end. */
    const struct journaled *young; /* large and held ones have files too */
    const struct id_set *seen;
    const struct removal *endings;
    const struct slices *slices; /* others' files may have their envelope elsewhere */
    const bool *careful; /* a journal has not been adopted: only pid/ is swept */
    /* Files of id, all of them old, that make no message. */
    void (*suspect)(void *context, struct id id);
    void *context;

    struct loop_timer hourly, more;
    struct buffer drafts; /* names in pid/, each with its NUL */
    size_t drafts_next, drafts_strange;
    struct clean_row *rows; /* ids of mess/, sorted; then of others, sorted */
    size_t count, capacity, mess_count, next;
    enum spool_dir dir; /* to be listed next; SPOOL_DIRS: all have been */
    bool sweeping;
};

/* spool to context are the caller's to set before. Drafts of dead daemons go now, so
 * before any is made. Sweeps pid/ in later turns and all of it every hour; at the start
 * the rest is the recovery's. */
void clean_start(struct clean *c);
void clean_stop(struct clean *c);

/* S2 or S3, known to have neither todo nor info: removed when old, with a log line;
 * left when young. */
void clean_leftover(struct spool *s, struct id id, int64_t now_ms);

#endif
