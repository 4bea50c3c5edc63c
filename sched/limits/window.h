/* The concurrency window of a site: the number of parallel sessions. Pure.
 *
 * Postfix's feedback with one rule of our own, in integers (doc/scheduler.md "Windows
 * and feedback less than 1"). With g the feedback at the present size, a cycle is
 * ceil(1/g) events. Successes: the window rises by 1 at the *end* of their cycle.
 * Failures: it drops by exactly 1 at the *start* of theirs, never below 1; the cycle
 * that the drop begins has the length of the new size. A rise resets the failures, a
 * drop the successes; nothing is carried into the next cycle. Failed pseudo-cohorts
 * (1/size a failure) are counted since the last success; the site is dead when they
 * reach the limit. */
#ifndef SCHED_LIMITS_WINDOW_H
#define SCHED_LIMITS_WINDOW_H

#include "sched/limits/transport_params.h"

struct window {
    int size;           /* sessions allowed, >= 1 */
    int initial, limit; /* limit 0 = none; initial <= limit */
    bool probing;       /* revived: one session until a success */
    uint64_t successes; /* events in the present cycle */
    uint64_t failures;  /* 0: the next failure begins a cycle */
    uint64_t cohorts;   /* in units of 2^-32, each share rounded up */
};

/* A rate delay makes the limit 1. */
void window_init(struct window *w, const struct transport_params *t);
/* The parameters have changed: its size stays within the new limit. */
void window_change(struct window *w, const struct transport_params *t);

/* busy: sessions that carry mail, with the one that reports. The window grows only
 * while it is below busy + initial: it never runs ahead of use. */
void window_good(struct window *w, const struct transport_params *t, int busy);

/* True: the site is dead now. Never with a failed_cohort_limit of 0. */
bool window_bad(struct window *w, const struct transport_params *t)
    __attribute__((warn_unused_result));

/* After a death: size 1, until window_good or window_answered. */
void window_probe(struct window *w);

/* The site answers, though not well (greylisting): only ends a probe. */
void window_answered(struct window *w);

#endif
