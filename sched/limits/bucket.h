/* The rate of transactions to a site: a token bucket for the configured rate, and a
 * rate learnt from replies that say "slow down". Whole numbers. Pure.
 *
 * The bucket is one time, that at which the next transaction is due at an even pace
 * (GCRA), so that it may be kept over a restart as it is. The learnt rate works beside
 * the configured one: the later of the two times counts
 * (doc/scheduler.md "Learnt rates"). */
#ifndef SCHED_BUCKET_H
#define SCHED_BUCKET_H

#include "base/text.h"

enum { RATE_AMOUNT_MAX = 1000000 };

struct rate { /* amount 0 = unlimited; both at most RATE_AMOUNT_MAX */
    uint32_t amount;
    uint32_t burst; /* >= 1: so many at once after a rest */
    int64_t period_ms;
};

/* "N/s", "N/m" ("min"), "N/h", "N/d", with ",burst=B" behind it if wanted; "0" or
 * "none": unlimited. Without it the burst is what one second allows, or 1. False: it is
 * none, and *out is as it was. */
bool bucket_rate_parse(struct text t, struct rate *out)
    __attribute__((warn_unused_result));

struct bucket {         /* zeroed = full */
    int64_t full_at_us; /* when the bucket is full, if nothing is taken */
    uint32_t part;      /* and a part of a microsecond: of r->amount */
};

/* When the next one conforms: <= now_ms means at once; INT64_MIN if unlimited. A bucket
 * emptier than it can be (the clock was set unnoticed, the rate was made higher) counts
 * as empty. */
int64_t bucket_ready_ms(const struct bucket *b, const struct rate *r, int64_t now_ms);

/* One transaction begins, conforming or not. Taken whenever ready, the transactions
 * keep the rate in the long run: to be late by less than a millisecond, as ready times
 * are, costs nothing. */
void bucket_take(struct bucket *b, const struct rate *r, int64_t now_ms);

/* How many would conform if they began from now to until_ms, a day later at most;
 * RATE_AMOUNT_MAX at most, and if unlimited. */
uint32_t bucket_passes(const struct bucket *b, const struct rate *r, int64_t now_ms,
                       int64_t until_ms);

/* The clock was set by delta_ms. */
void bucket_shift(struct bucket *b, int64_t delta_ms);

/* What a site lets through. There is no limit until the first refusal; then a rate well
 * below what was accepted is doubled until the next one (SEARCH). Each refusal makes a
 * rest at 0.7 of what is known by then to pass (REST), after which it goes on just
 * below that (HELD). After half a minute, doubled with each vain attempt to 10 minutes,
 * it is raised step by step, ever faster (PROBE), until the site refuses. A day without
 * refusals, and nothing is known any more.
 *
 * Refusals within LEARNT_PAUSE_MS, in which nothing is sent, are one: those of
 * transactions under way. When nothing passes after the pause, it is doubled, to a
 * minute, and the rate stays: a limit for a whole minute may be used up, or the site
 * shut. What passes is measured from one refusal to the next, at both of which the
 * site's own bucket is empty: so its depth does not deceive. The rate is raised only
 * while it is used. */
enum learnt_phase {
    LEARNT_NONE,
    LEARNT_SEARCH,
    LEARNT_REST,
    LEARNT_HELD,
    LEARNT_PROBE
};

enum {
    LEARNT_SLOTS = 8,
    LEARNT_MIN = 17,       /* transactions in 1000 s: one a minute */
    LEARNT_MAX = 10000000, /* above it there is no limit */
    LEARNT_PAUSE_MS = 1500,
    LEARNT_PAUSE_MAX_MS = 60000,
    LEARNT_HOLD_MIN_MS = 30000,
    LEARNT_HOLD_MAX_MS = 600000
};

struct learnt_rate { /* zeroed = new. Rates in transactions in 1000 s */
    enum learnt_phase phase;
    uint32_t rate;         /* now in force; 0 = none */
    uint32_t known;        /* passes: measured at the refusals */
    uint32_t probed;       /* known when the last probe began */
    uint32_t before;       /* the rate before the last step */
    uint32_t step;         /* per mille, of the next raise */
    int64_t next_at_ms;    /* end of the phase, or next step of it */
    int64_t hold_ms;       /* from rest to probe */
    int64_t next_hold_ms;  /* for this once */
    int64_t refused_at_ms; /* the last time */
    int64_t pause_ms;      /* after it nothing is sent for so long */
    int64_t since_ms;      /* the last refusal after which something passed */
    bool shut;             /* there were others since then */
    uint32_t accepted;     /* since since_ms */
    uint32_t used;         /* taken since the last step */
    int64_t slot_at_ms;    /* start of the present slot of a second */
    uint32_t slots[LEARNT_SLOTS];
    struct bucket bucket;
};

/* Forgets all. */
void bucket_learnt_init(struct learnt_rate *l);

/* A transaction passed. */
void bucket_learnt_accepted(struct learnt_rate *l, int64_t now_ms);

/* A transaction was refused for the rate. */
void bucket_learnt_refused(struct learnt_rate *l, int64_t now_ms);

/* As bucket_ready_ms; also does what time does to the rate, which may make a later call
 * say less than an earlier one. */
int64_t bucket_learnt_ready_ms(struct learnt_rate *l, int64_t now_ms);

/* As bucket_passes; without the pause after a refusal. */
uint32_t bucket_learnt_passes(const struct learnt_rate *l, int64_t now_ms,
                              int64_t until_ms);

/* One transaction begins. */
void bucket_learnt_take(struct learnt_rate *l, int64_t now_ms);

/* The clock was set by delta_ms. */
void bucket_learnt_shift(struct learnt_rate *l, int64_t delta_ms);

#endif
