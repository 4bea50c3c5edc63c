/* Mail of given sizes for one destination of a real scheduler, one recipient in each
 * transaction, to test the order of service. */
#ifndef T_SUPPORT_JOB_POST_H
#define T_SUPPORT_JOB_POST_H

#include "base/memory.h"
#include "sched/sched.h"

#include "t/support/tap.h"

enum { POST_SESSIONS = 20 };

struct letter {
    unsigned size, open, taken;
    bool gone, loaded;
};

struct post {
    struct sched *s;
    int64_t now;
    struct target target;
    struct letter *letters;
    unsigned count, capacity;
    struct sched_recipient *recipients; /* as many as the largest has */
    unsigned largest;
    struct sched_session *sessions[POST_SESSIONS];
    int session_count;
    unsigned verdicts, settles, expired, waits, finishes;
};

void post_must(bool good, const char *what);

/* Sessions: as many as concurrency, from the first moment. */
void post_start(struct post *p, int concurrency);

void post_end(struct post *p);

struct id post_id(unsigned letter);

void post_run(struct post *p);

/* A message of that many transactions; its number. It is loaded at once. */
unsigned post_add(struct post *p, unsigned size);

/* Gives a session mail: the number of the message, -1 for nothing. */
int post_take(struct post *p, int session, struct sched_work *work);

void post_settle(struct post *p, int session, const struct sched_work *work, enum verdict verdict, enum blame blame);

/* Takes and delivers one with the first session. */
int post_serve(struct post *p);

/* The next count of them, as digits from 1; all when count is 0. */
void post_digits(struct post *p, unsigned count, char *out);

#endif
