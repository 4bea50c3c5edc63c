/* Accepting: drafts, their names, and the group commit at the end of a turn (S1 to S4).
 */
#ifndef QUEUE_ACCEPT_H
#define QUEUE_ACCEPT_H

#include "base/loop.h"
#include "queue/seen.h"
#include "queue/queue.h"
#include "queue/spool.h"

struct commit;

struct accept {
    struct spool *spool;
    struct loop *loop;
    struct seen *seen;
    struct queue_settings settings; /* reserves resolved */
    bool at_once;                   /* an injector: no end of turn will come */
    uint64_t counter, stored;
    struct commit *waiting, *synced;
    struct loop_task stir;
    bool space_known;
    int64_t space_asked_ms; /* monotonic */
    struct disk_space space;
    /* A message whose owner went away before it was durable. */
    void (*orphaned)(void *context, struct id id);
    void *context;
};

/* spool to at_once, orphaned and context are the caller's to set before. */
void accept_start(struct accept *a);
/* What waits is not answered any more; what is not durable is removed. */
void accept_stop(struct accept *a);

/* False: too little is left for size more bytes. */
bool accept_has_space(struct accept *a, int64_t size);

/* Behind the functions of queue.h with these names. */
struct queue_draft *accept_begin(struct accept *a, int64_t size_expected,
                                 struct outcome *refusal);
void accept_commit(struct queue_draft **draft, struct envelope **e,
                   queue_stored *stored, void *context);
void accept_ignore(struct accept *a, void *context);

#endif
