/* Delivery status notifications: the bounce that tells a sender of failures, the report
 * of a success that was requested, or the delay warning, written into the queue.
 *
 * They have a null sender, and there is never a bounce of a bounce: a failure of mail
 * with a null sender is reported to postmaster (a double bounce), and a failure of that
 * is only logged (doc/dev/flow.md "Bouncing"). NOTIFY and RET of RFC 3461 are honoured. */
#ifndef QUEUE_MANAGER_DSN_H
#define QUEUE_MANAGER_DSN_H

#include "queue/queue.h"

struct event_hub;
struct loop;
struct dsn; /* while it is composed */

struct dsn_settings {
    struct queue *queue;
    struct loop *loop;
    struct event_hub *events;
    const char *hostname; /* copied: a report takes many turns */
    size_t size_limit;    /* RET=FULL of a larger message gives its header only */
    /* Expands the address that is notified, by the aliases in force then; NULL: it
     * stays. */
    void (*expand)(void *context, struct envelope *made);
    /* Takes a notification that is stored while others of the same round follow; NULL:
     * it is left to the queue. */
    void (*accept)(void *context, struct envelope *made);
    void *context; /* of both */
};

enum dsn_result {
    DSN_NOTHING, /* no notification is due; stored will not be called */
    DSN_BEGUN,   /* stored is called when it is durable, or was refused */
    DSN_REFUSED  /* the queue takes no mail now; try again later */
};

/* Reports those of e's failures, which include successes, that no notification has
 * reported yet: in one message for each address that is notified (envelope_notified()),
 * one after the other. stored is called for the last, or for one that is refused. A
 * report of many recipients takes many turns: until it
 * is stored *under_way is set, and e must stay with its failures unchanged. dsn_drop()
 * gives it up (stored will not be called). */
enum dsn_result dsn_begin(const struct dsn_settings *settings, const struct envelope *e,
                          struct dsn **under_way, queue_stored *stored, void *context);

/* A recipient that will be tried again. */
struct dsn_delay {
    unsigned recipient;
    int64_t retry_until_ms;
    const struct outcome *outcome; /* of the last attempt; as long as the envelope */
};
/* Returns only the header of the message. DSN_NOTHING: no recipient's NOTIFY permits
 * it, or the sender is null. */
enum dsn_result dsn_begin_delay(const struct dsn_settings *settings,
                                const struct envelope *e,
                                const struct dsn_delay *delays, size_t count,
                                struct dsn **under_way, queue_stored *stored,
                                void *context);
/* Drops one that is not yet stored; NULL: nothing. */
void dsn_drop(struct dsn **under_way);
/* NOTIFY of RFC 3461 §4.1: absent or with DELAY; present and with SUCCESS. */
bool dsn_wants_delay(const struct recipient *r);
bool dsn_wants_success(const struct recipient *r);

#endif
