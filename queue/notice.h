/* Notices: the bounce that tells a sender what failed, written into the queue.
 *
 * Null sender, never a bounce of a bounce: what fails with a null sender is told to
 * postmaster (a double bounce), and what fails again is only logged (spec/queue.md
 * §1.8). NOTIFY and RET of RFC 3461 are honoured. */
#ifndef QUEUE_NOTICE_H
#define QUEUE_NOTICE_H

#include "queue/queue.h"

struct loop;

struct notice_settings {
    const char *hostname;
    size_t size_limit; /* RET=FULL of a larger message gives its header only */
};

enum notice_result {
    NOTICE_NOTHING,   /* nobody is to be told; stored will not be called */
    NOTICE_COMMITTED, /* stored comes when the notice is durable, or was refused */
    NOTICE_REFUSED    /* the queue takes no mail now; try again later */
};

/* e->failures are told in one message. */
enum notice_result notice_commit(struct queue *queue, struct loop *loop,
                                 struct log *log,
                                 const struct notice_settings *settings,
                                 const struct envelope *e, queue_stored *stored,
                                 void *context);

#endif
