/* A simulated mail server: how it treats a connection and a transaction. Pure; time and
 * chance are given. For t/simulation/simulation.h. */
#ifndef T_SIMULATION_FAKE_SERVER_H
#define T_SIMULATION_FAKE_SERVER_H

#include "base/buffer.h"
#include "sched/limits/bucket.h"

enum { FAKE_SERVER_NAME_MAX = 64 };

enum fake_server_state {
    FAKE_SERVER_UP,
    FAKE_SERVER_DOWN,  /* refuses connections */
    FAKE_SERVER_SILENT /* never answers: connections time out */
};
/* The fate of a connection beyond the limit of sessions. */
enum fake_server_over {
    FAKE_SERVER_OVER_421,
    FAKE_SERVER_OVER_QUEUE /* some wait, the rest is never accepted */
};
/* `bad` out of `of`: at random, or the last `bad` of each `of`. */
struct fake_server_odds {
    unsigned bad, of; /* of 0: never */
    bool random;
};

/* Its behaviour. Times in microseconds. */
struct fake_server_settings {
    char name[FAKE_SERVER_NAME_MAX];
    enum fake_server_state state;
    unsigned sessions; /* at a time; 0 = no limit */
    enum fake_server_over over;
    unsigned queue;
    int64_t greeting_us, rcpt_us, message_us;
    unsigned jitter; /* per mille, up or down, of each of them */
    struct fake_server_odds fail, tempfail;
    unsigned per_session; /* messages; then it hangs up; 0 = no limit */
    struct rate rate;     /* of transactions, or none */
    unsigned rate_reply;  /* the reply above it; 421 hangs up, too */
    int64_t connect_timeout_us, greeting_timeout_us; /* the client's */
};

/* "sessions=5", "over=421|queue:6", "delay.greeting=10ms", "delay.rcpt=",
 * "delay.message=", "delay.jitter=2%", "fail=1/4" or "fail=1/4,random" (connections),
 * "tempfail=" (transactions), "per_session=100", "rate=10/s,burst=10", "rate_reply=451",
 * "connect_timeout=", "greeting_timeout="; and the words "up", "down", "silent". False:
 * problem states the error and the valid form. */
bool fake_server_option(struct fake_server_settings *settings, struct text option,
                        struct buffer *problem) __attribute__((warn_unused_result));

struct fake_server {
    struct fake_server_settings settings;
    unsigned sessions, waiting; /* now */
    unsigned peak_sessions;
    uint64_t connections, transactions; /* for odds that are not random */
    struct bucket bucket;
    uint64_t *random; /* a generator of its owner */
};

/* time_us with the jitter. */
int64_t fake_server_delay_us(struct fake_server *r, int64_t time_us);

enum reception {
    RECEPTION_SESSION, /* counted; greets after settings.greeting_us */
    RECEPTION_QUEUED,  /* counted as waiting */
    RECEPTION_421,
    RECEPTION_REFUSED,
    RECEPTION_UNANSWERED /* ends with the client's connect_timeout */
};
enum reception fake_server_connect(struct fake_server *r);
/* A session has ended. True: a waiting connection takes its place, and is counted as a
 * session. */
bool fake_server_left(struct fake_server *r) __attribute__((warn_unused_result));
/* A waiting connection has given up. */
void fake_server_gave_up(struct fake_server *r);

enum receipt { RECEIPT_TAKEN, RECEIPT_TEMPFAIL, RECEIPT_RATE };
/* A transaction begins. */
enum receipt fake_server_begin(struct fake_server *r, int64_t now_ms);
/* The duration of the transaction; *reply_us: the part of it after the content. */
int64_t fake_server_service_us(struct fake_server *r, size_t recipients,
                               int64_t *reply_us);

#endif
