/* Whether a site grows slower the more we ask of it. Pure.
 *
 * A short and a long average of what small transactions take there, from MAIL to the
 * answer to the final dot (doc/scheduler.md "Ceiling and latency"), in whole
 * microseconds. The long one is what the site takes at its best: it follows the short
 * one down at once, and up so slowly that our own load does not become the measure. A
 * single slow answer says nothing: one sample counts for 4 times the average at
 * most. */
#ifndef SCHED_LATENCY_H
#define SCHED_LATENCY_H

#include <stdint.h>

enum latency_advice {
    LATENCY_FINE,
    LATENCY_HOLD,  /* no growth: more than twice as slow as at its best */
    LATENCY_SHRINK /* one session less per cohort: more than 4 times as slow */
};

/* What differs below is noise: best answers count as half of it at least. */
enum { LATENCY_NOISE_MS = 50 };

struct latency { /* zeroed = nothing measured */
    int64_t short_us, long_us;
    int64_t samples;
};

/* One answer. Negative counts as 0, above an hour as an hour. */
void latency_note(struct latency *l, int64_t milliseconds);

/* Nothing measured is fine. A window of 1 has nothing to shrink: the caller's. */
enum latency_advice latency_judge(const struct latency *l);

/* Rounded; 0 when nothing was measured. */
int64_t latency_short_ms(const struct latency *l);
int64_t latency_long_ms(const struct latency *l);

#endif
