/* The rate of transactions to a site: a token bucket for the configured rate, and a
 * rate learnt from replies that say "slow down". Whole numbers. Pure.
 *
 * The bucket is a single time, at which the next transaction is due at an even pace
 * (GCRA), so that it can be kept over a restart unchanged. The learnt rate works beside
 * the configured one: the later of the two times counts (doc/scheduler.md "Learnt
 * rates"). */
#ifndef SCHED_LIMITS_BUCKET_H
#define SCHED_LIMITS_BUCKET_H

#include "base/text.h"

enum { RATE_AMOUNT_MAX = 1000000 };

struct rate { /* amount 0 = unlimited; both at most RATE_AMOUNT_MAX */
    uint32_t amount;
    uint32_t burst; /* >= 1: transactions without delay after a rest */
    int64_t period_ms;
};

/* "N/s", "N/m" ("min"), "N/h", "N/d", optionally followed by ",burst=B"; "0" or "none":
 * unlimited. The default burst is the number of one second, or 1. False: not a rate,
 * and *out is unchanged. */
bool bucket_rate_parse(struct text t, struct rate *out)
    __attribute__((warn_unused_result));

struct bucket {         /* zeroed = full */
    int64_t full_at_us; /* when the bucket will be full if nothing is taken */
    uint32_t part;      /* the fraction of a microsecond, in units of 1/r->amount */
};

/* When the next transaction conforms: <= now_ms: it does now; INT64_MIN if unlimited. A
 * bucket emptier than possible (the clock was set unnoticed, the rate was raised)
 * becomes an empty one: it fills from now on. */
int64_t bucket_ready_ms(struct bucket *b, const struct rate *r, int64_t now_ms);

/* One transaction begins, conforming or not. If each is taken when ready, the
 * transactions keep the rate in the long run: a delay of less than a millisecond, the
 * precision of ready times, costs nothing. */
void bucket_take(struct bucket *b, const struct rate *r, int64_t now_ms);

/* How many transactions would conform if they began between now and until_ms, which is
 * at most a day later. At most RATE_AMOUNT_MAX, which also means unlimited. */
uint32_t bucket_passes(const struct bucket *b, const struct rate *r, int64_t now_ms,
                       int64_t until_ms);

/* The clock was set by delta_ms. */
void bucket_shift(struct bucket *b, int64_t delta_ms);

/* The rate that a site accepts. There is no limit until the first refusal. Then a rate
 * below the accepted one is doubled until the next refusal (SEARCH). Each refusal
 * causes a rest at 0.7 of the rate known to pass (REST), after which the rate goes on
 * just below that (HELD). After half a minute or a minute, doubled with each vain
 * attempt to 5 minutes, it is raised in steps, ever faster, and at least doubled in each
 * minute (PROBE), until the site refuses. After ten minutes without a refusal everything
 * is forgotten, whatever was learnt.
 *
 * Nothing is sent for LEARNT_PAUSE_MS after a refusal. Further refusals in that time
 * count as the same one: they are of transactions that were under way. When nothing
 * passes after the pause, the pause is doubled, up to a minute, and the rate stays: a
 * limit for a whole minute may be used up, or the site may be shut. The rate that
 * passes is measured from one refusal to the next. The site's own bucket is empty at
 * both, so its depth does not distort the measurement. A refusal halves the rate at
 * most, and where little has passed nothing is measured. The rate is raised only while
 * it is used. */
enum learnt_phase {
    LEARNT_NONE,
    LEARNT_SEARCH,
    LEARNT_REST,
    LEARNT_HELD,
    LEARNT_PROBE
};

enum {
    LEARNT_SLOTS = 8,
    LEARNT_MIN = 17,        /* transactions in 1000 s: one a minute */
    LEARNT_STEP_MAX = 1000, /* thousandths: twice the rate */
    LEARNT_MAX = 10000000,  /* no limit above it */
    LEARNT_PAUSE_MS = 1500,
    LEARNT_PAUSE_MAX_MS = 60000,
    LEARNT_HOLD_MIN_MS = 30000,
    LEARNT_HOLD_MAX_MS = 300000,
    LEARNT_CLEAN_MS = 600000 /* without a refusal: no limit */
};

struct learnt_rate { /* zeroed = new. Rates in transactions in 1000 s */
    enum learnt_phase phase;
    uint32_t rate;         /* in force now; 0 = none */
    uint32_t known;        /* the rate that passes, measured at the refusals */
    uint32_t probed;       /* `known` when the last probe began */
    uint32_t before;       /* the rate before the last step */
    uint32_t step;         /* of the next raise, per mille */
    int64_t next_at_ms;    /* end of the phase or of its present step */
    int64_t hold_ms;       /* from rest to probe */
    int64_t next_hold_ms;  /* for the next time only */
    int64_t refused_at_ms; /* of the last refusal */
    int64_t pause_ms;      /* nothing is sent after it for this time */
    int64_t begun_ms;      /* of the first refusal since there was no limit */
    int64_t since_ms;      /* start of the measurement: a refusal */
    bool shut;             /* there were later refusals */
    uint32_t accepted;     /* since since_ms */
    uint32_t used;         /* taken since the last step */
    int64_t slot_at_ms;    /* start of the present slot of a second */
    uint32_t slots[LEARNT_SLOTS];
    struct bucket bucket;
};

/* Forgets everything. */
void bucket_learnt_init(struct learnt_rate *l);

/* A transaction passed. */
void bucket_learnt_accepted(struct learnt_rate *l, int64_t now_ms);

/* A transaction was refused for the rate. */
void bucket_learnt_refused(struct learnt_rate *l, int64_t now_ms);

/* As bucket_ready_ms. Also advances the phases, so that a later call may return less
 * than an earlier one. */
int64_t bucket_learnt_ready_ms(struct learnt_rate *l, int64_t now_ms);

/* The rate in force, transactions in 1000 s; 0: none. */
uint32_t bucket_learnt_rate(const struct learnt_rate *l, int64_t now_ms);

/* As bucket_passes; ignores the pause after a refusal. */
uint32_t bucket_learnt_passes(const struct learnt_rate *l, int64_t now_ms,
                              int64_t until_ms);

/* One transaction begins. */
void bucket_learnt_take(struct learnt_rate *l, int64_t now_ms);

/* The clock was set by delta_ms. */
void bucket_learnt_shift(struct learnt_rate *l, int64_t delta_ms);

#endif
