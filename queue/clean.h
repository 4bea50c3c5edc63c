/* Leftovers: what injectors that died left in pid/, mess/ and intd/ goes after 36
 * hours.
 *
 * An injector gives up after 24. Their age is the ctime: restored or copied files are
 * young again, and no reader makes them younger (spec/queue.md §1.9, §6 R8). */
#ifndef QUEUE_CLEAN_H
#define QUEUE_CLEAN_H

#include "base/loop.h"
#include "queue/slices.h"
#include "queue/young.h"

enum { CLEAN_AGE_MS = 36 * 60 * 60 * 1000 };

struct clean {
    struct spool *spool;
    struct loop *loop;
    const struct young *young;   /* large ones have a mess/ID too */
    const struct slices *slices; /* others' mess/ID may have its envelope elsewhere */
    const bool *careful; /* a journal has not been adopted: nothing in mess/ goes */
    struct loop_timer hourly, more;
    struct id *list; /* names in mess/ that are old enough, to be looked at */
    size_t count, capacity, next;
};

/* spool to young are the caller's to set before. Sweeps pid/ in a later turn and all of
 * it every hour; mess/ at start is the recovery's. */
void clean_start(struct clean *c);
void clean_stop(struct clean *c);

/* S2 or S3, known to have neither todo nor info: removed when old, with a log line;
 * left when young. */
void clean_leftover(struct spool *s, struct id id, int64_t now_ms);

#endif
