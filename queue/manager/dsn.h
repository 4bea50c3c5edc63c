/* Notices: the bounce that tells a sender what failed, what succeeded where he asked
 * for that, or that it is late, written into the queue.
 *
 * Null sender, never a bounce of a bounce: what fails with a null sender is told to
 * postmaster (a double bounce), and what fails again is only logged
 * (doc/flow.md "Bouncing"). NOTIFY and RET of RFC 3461 are honoured. */
#ifndef QUEUE_DSN_H
#define QUEUE_DSN_H

#include "queue/queue.h"

struct log;
struct loop;
struct dsn; /* while it is composed */

struct dsn_settings {
    struct queue *queue;
    struct loop *loop;
    struct log *log;
    const char *hostname;
    size_t size_limit; /* RET=FULL of a larger message gives its header only */
};

enum dsn_result {
    DSN_NOTHING, /* nobody is to be told; stored will not be called */
    DSN_BEGUN,   /* stored comes when the notice is durable, or was refused */
    DSN_REFUSED  /* the queue takes no mail now; try again later */
};

/* e->failures, successes among them, are told in one message. A report of many
 * recipients takes many turns: until it is whole *under_way is set, and e stays with
 * its failures as it is; dsn_drop() gives it up (stored will not be called). */
enum dsn_result dsn_begin(const struct dsn_settings *settings, const struct envelope *e,
                          struct dsn **under_way, queue_stored *stored, void *context);

/* A recipient that is tried again. */
struct dsn_delay {
    unsigned recipient;
    int64_t retry_until_ms;
    const struct outcome *outcome; /* of the last attempt; as long as the envelope */
};
/* The header of the message alone goes with it. NOTHING: no recipient's NOTIFY permits
 * it, or the sender is null. */
enum dsn_result dsn_begin_delay(const struct dsn_settings *settings,
                                const struct envelope *e,
                                const struct dsn_delay *delays, size_t count,
                                struct dsn **under_way, queue_stored *stored,
                                void *context);
/* What is not yet whole; NULL is nothing to drop. */
void dsn_drop(struct dsn **under_way);
/* NOTIFY of RFC 3461 §4.1: absent, or with DELAY; there, and with SUCCESS. */
bool dsn_wants_delay(const struct recipient *r);
bool dsn_wants_success(const struct recipient *r);

#endif
