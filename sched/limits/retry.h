/* When a deferred message is tried again. Pure.
 *
 * Postfix's backoff: the delay is the message's age, within bounds (doc/scheduler.md
 * "Backoff"), so each attempt comes at about twice the age of the one before. The
 * number of attempts does not matter. */
#ifndef SCHED_LIMITS_RETRY_H
#define SCHED_LIMITS_RETRY_H

#include <stdint.h>

/* age_ms clipped to [minimal_ms, maximal_ms]; a negative age (the clock went back)
 * counts as 0. */
int64_t retry_delay_ms(int64_t age_ms, int64_t minimal_ms, int64_t maximal_ms);

/* The next number of a generator whose state is the caller's; any seed is good. */
uint64_t retry_random(uint64_t *state);

/* delay_ms and up to a tenth more, so that the mail of a dead host does not fall due in
 * one second. Never less than delay_ms. random as in retry_random(). */
int64_t retry_jitter_ms(int64_t delay_ms, uint64_t *random);

#endif
