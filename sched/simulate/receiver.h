/* A pretended mail server: what it does with a connection and with a transaction. Pure;
 * time and chance are given. For simulations (sched/simulate/simulation.h). */
#ifndef SCHED_RECEIVER_H
#define SCHED_RECEIVER_H

#include "base/buffer.h"
#include "sched/limits/bucket.h"

enum { RECEIVER_NAME_MAX = 64 };

enum receiver_state {
    RECEIVER_UP,
    RECEIVER_DOWN,  /* refuses connections */
    RECEIVER_SILENT /* never answers: what connects times out */
};
enum receiver_over { /* what becomes of a connection over the limit of sessions */
                     RECEIVER_OVER_421,
                     RECEIVER_OVER_RESET,
                     RECEIVER_OVER_REFUSE,
                     RECEIVER_OVER_SILENT, /* accepted, but never greeted */
                     RECEIVER_OVER_QUEUE /* so many wait, the rest is never accepted */
};
struct receiver_odds { /* bad out of: at random, or the last `bad` of each `of` */
    unsigned bad, of;  /* of 0: never */
    bool random;
};

/* How it behaves. Times in microseconds. */
struct receiver_settings {
    char name[RECEIVER_NAME_MAX];
    unsigned preference; /* of the exchange; the least is tried first */
    enum receiver_state state;
    unsigned sessions; /* at once; 0 = no limit */
    enum receiver_over over;
    unsigned queue;
    int64_t greeting_us, rcpt_us, message_us;
    unsigned jitter; /* per mille, up or down, of each of them */
    struct receiver_odds fail, tempfail, reject;
    unsigned per_session; /* messages; then it hangs up; 0 = no limit */
    struct rate rate;     /* of transactions, or none */
    unsigned rate_reply;  /* above it; 421 hangs up, too */
    int64_t connect_timeout_us, greeting_timeout_us; /* the client's */
};

/* "sessions=5", "over=421|rst|refuse|silent|queue:6", "delay.greeting=10ms",
 * "delay.rcpt=", "delay.message=", "delay.jitter=2%", "fail=1/4" or "fail=1/4,random"
 * (connections), "tempfail=", "reject=" (transactions), "per_session=100",
 * "rate=10/s,burst=10", "rate_reply=451", "connect_timeout=", "greeting_timeout=",
 * "preference=10"; and the words "up", "down", "silent". False: problem says what is
 * wrong and what would be right. */
bool receiver_option(struct receiver_settings *settings, struct text option,
                     struct buffer *problem) __attribute__((warn_unused_result));

struct receiver {
    struct receiver_settings settings;
    unsigned sessions, waiting; /* now */
    unsigned peak_sessions;
    uint64_t connections, transactions; /* for odds that are no chance */
    struct bucket bucket;
    uint64_t *random; /* a generator of its owner */
};

/* time, with the jitter. */
int64_t receiver_delay_us(struct receiver *r, int64_t time_us);

enum reception {
    RECEPTION_SESSION, /* it is counted; greets after settings.greeting_us */
    RECEPTION_QUEUED,  /* it is counted as waiting */
    RECEPTION_421,
    RECEPTION_RESET,
    RECEPTION_REFUSED,
    RECEPTION_UNANSWERED, /* ends with the client's connect_timeout */
    RECEPTION_UNGREETED   /* ends with its greeting_timeout */
};
enum reception receiver_connect(struct receiver *r);
/* A session has ended. True: one that waits has its place; it is counted as a session.
 */
bool receiver_left(struct receiver *r) __attribute__((warn_unused_result));
/* One that waited has given up. */
void receiver_gave_up(struct receiver *r);

enum receipt { RECEIPT_TAKEN, RECEIPT_TEMPFAIL, RECEIPT_REJECT, RECEIPT_RATE };
/* A transaction begins. */
enum receipt receiver_begin(struct receiver *r, int64_t now_ms);
/* How long it takes. */
int64_t receiver_service_us(struct receiver *r, size_t recipients);

#endif
