/* Leftovers: drafts of dead daemons at the start, and every hour what injectors that
 * died left in pid/, mess/ and intd/, after 36 hours, and files whose message has gone.
 *
 * An injector gives up after 24 hours. Their age is the ctime: restored or copied files
 * are young again, and no reader makes them younger (spec/queue.md §1.9, §6 R8). Each
 * is told with one log line. */
#ifndef QUEUE_CLEAN_H
#define QUEUE_CLEAN_H

#include "base/loop.h"
#include "queue/slices.h"
#include "queue/young.h"

enum { CLEAN_AGE_MS = 36 * 60 * 60 * 1000 };

struct clean_row;
struct clean {
    struct spool *spool;
    struct loop *loop;
    const struct young *young;   /* large and held ones have files too */
    const struct slices *slices; /* others' files may have their envelope elsewhere */
    const bool *careful; /* a journal has not been adopted: only pid/ is swept */
    /* Files without their mess/ID: what they are is for the recovery to say. */
    void (*orphan)(void *context, struct id id);
    void *context;

    struct loop_timer hourly, more;
    struct clean_row *rows; /* mess/, sorted; then with what else there is */
    size_t count, capacity, next;
    struct id *orphans; /* files that had none */
    size_t orphan_count, orphan_capacity, orphan_next;
    int room; /* to be listed next; then they are looked at */
    bool sweeping;
};

/* spool to context are the caller's to set before. Drafts of dead daemons go now, so
 * before any is made. Sweeps pid/ in a later turn and all of it every hour; at the
 * start the rest is the recovery's. */
void clean_start(struct clean *c);
void clean_stop(struct clean *c);

/* S2 or S3, known to have neither todo nor info: removed when old, with a log line;
 * left when young. */
void clean_leftover(struct spool *s, struct id id, int64_t now_ms);

#endif
