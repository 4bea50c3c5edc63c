/* Notices: the bounce that tells a sender what failed, what succeeded where he asked
 * for that, or that it is late, written into the queue.
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

/* e->failures, successes among them, are told in one message. */
enum notice_result notice_commit(struct queue *queue, struct loop *loop,
                                 struct log *log,
                                 const struct notice_settings *settings,
                                 const struct envelope *e, queue_stored *stored,
                                 void *context);

/* A recipient that is tried again. */
struct notice_delay {
    unsigned recipient;
    int64_t retry_until_ms;
    const struct outcome *outcome; /* of the last attempt */
};
/* The header of the message alone goes with it. NOTHING: no recipient's NOTIFY permits
 * it, or the sender is null. */
enum notice_result notice_commit_delay(struct queue *queue, struct loop *loop,
                                       struct log *log,
                                       const struct notice_settings *settings,
                                       const struct envelope *e,
                                       const struct notice_delay *delays, size_t count,
                                       queue_stored *stored, void *context);
/* NOTIFY of RFC 3461 §4.1: absent, or with DELAY; there, and with SUCCESS. */
bool notice_wants_delay(const struct recipient *r);
bool notice_wants_success(const struct recipient *r);

#endif
