/* Concurrency window: slow start, feedback with hysteresis, death by failed cohorts.
 *
 * Feedback below 1 is kept as whole cycles of events, never as a fraction: ten
 * successes at 1/concurrency and size 10 are one session, on every machine, and a test
 * can say so. */
#include "sched/limits/window.h"

#include "sched/limits/limits_internal.h"

#include <assert.h>

#define COHORT_ONE (UINT64_C(1) << 32)

/* The smallest k with k * k >= n. */
static uint64_t
root_up(uint64_t n)
{
    uint64_t low = 0, high = UINT32_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (middle * middle >= n)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t
window_cycle(const struct feedback *f, int size)
{
    /* Rounded up: a partial event never moves the window. */
    assert(size >= 1);
    assert(f->denominator > 0 && f->numerator <= f->denominator);
    uint64_t a = f->numerator, b = f->denominator, n = (uint64_t)size;
    if (a == 0)
        return 0;
    switch (f->kind) {
    case FEEDBACK_CONSTANT:
        return (b + a - 1) / a;
    case FEEDBACK_CONCURRENCY:
        return (b * n + a - 1) / a;
    case FEEDBACK_SQRT_CONCURRENCY:
        /* k a >= b sqrt(n)  <=>  k a >= ceil(sqrt(b b n)), all being integers. */
        return (root_up(b * b * n) + a - 1) / a;
    }
    return 0;
}

void
window_init(struct window *w, const struct transport_params *t)
{
    *w = (struct window){.initial = t->initial_concurrency,
                         .limit = t->concurrency_limit};
    /* A pause after each transaction means nothing with a second session beside it. */
    if (t->rate_delay_ms > 0)
        w->limit = 1;
    if (w->limit > 0 && w->initial > w->limit)
        w->initial = w->limit;
    if (w->initial < 1)
        w->initial = 1;
    w->size = w->initial;
}

void
window_change(struct window *w, const struct transport_params *t)
{
    struct window fresh;
    window_init(&fresh, t);
    w->initial = fresh.initial;
    w->limit = fresh.limit;
    if (w->limit > 0 && w->size > w->limit)
        w->size = w->limit;
}

void
window_answered(struct window *w)
{
    if (!w->probing)
        return;
    w->probing = false;
    w->size = w->initial;
    w->successes = w->failures = 0;
}

void
window_good(struct window *w, const struct transport_params *t, int busy)
{
    w->cohorts = 0;
    if (w->probing) {
        window_answered(w);
        return;
    }
    /* A window that runs ahead of its use would let a later burst open many sessions at
     * a site that was never seen to bear them. */
    if ((w->limit > 0 && w->size >= w->limit) || w->size >= busy + w->initial)
        return;
    uint64_t cycle = window_cycle(&t->positive, w->size);
    if (cycle > 0 && ++w->successes >= cycle) {
        w->size++;
        w->successes = w->failures = 0;
    }
}

bool
window_bad(struct window *w, const struct transport_params *t)
{
    /* One failure at a window of 1 says as much as twenty failures at 20. In fixed
     * point, rounded up: n failures at size n are a whole cohort. */
    uint64_t n = (uint64_t)w->size;
    w->cohorts += (COHORT_ONE + n - 1) / n;
    if (t->failed_cohort_limit > 0 &&
        w->cohorts >= (uint64_t)t->failed_cohort_limit * COHORT_ONE)
        return true;
    /* The first failure of a cycle shrinks the window, the others are forgiven: the
     * response is immediate, and does not depend on how many failures are under way. */
    uint64_t cycle = window_cycle(&t->negative, w->size);
    if (cycle > 0 && (w->failures == 0 || w->failures >= cycle)) {
        w->failures = 0;
        w->successes = 0;
        if (w->size > 1)
            w->size--;
    }
    w->failures++;
    return false;
}

void
window_probe(struct window *w)
{
    w->size = 1;
    w->probing = true;
    w->successes = w->failures = w->cohorts = 0;
}
