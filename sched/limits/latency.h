/* Whether a site becomes slower the more we ask of it. Pure.
 *
 * A short and a long average of the duration of small transactions, from MAIL to the
 * reply to the final dot (doc/scheduler.md "Ceiling and latency"), in whole
 * microseconds. The long one stands for the site at its best: it follows the short one
 * down immediately, and up so slowly that our own load does not become the measure. A
 * single slow reply says nothing: one sample counts for at most 4 times the average. */
#ifndef SCHED_LIMITS_LATENCY_H
#define SCHED_LIMITS_LATENCY_H

#include <stdint.h>

enum latency_advice {
    LATENCY_FINE,
    LATENCY_HOLD,  /* no growth: more than twice the best time */
    LATENCY_SHRINK /* one session less per cohort: more than 4 times the best */
};

/* Differences below this are noise: best times count as at least half of it. */
enum { LATENCY_NOISE_MS = 50 };

struct latency { /* zeroed = nothing measured */
    int64_t short_us, long_us;
    int64_t samples;
};

/* Adds one duration. Negative counts as 0, more than an hour as an hour. */
void latency_note(struct latency *l, int64_t milliseconds);

/* The present duration counts as the best from now on. */
void latency_accept(struct latency *l);

/* FINE if nothing was measured. The caller must not shrink a window of 1. */
enum latency_advice latency_judge(const struct latency *l);

/* Rounded; 0 when nothing was measured. */
int64_t latency_short_ms(const struct latency *l);

#endif
