/* Short and long averages of a site's durations, and the advice they give.
 *
 * The long average is the best that the site was seen to do: it follows the short one
 * down immediately and up by 1/4096 only, so that a site which grows slower with each of
 * our sessions is not taken for one that always was slow. */
#include "sched/limits/latency.h"

enum { SHORT_SHARE = 8, LONG_SHARE = 4096, SAMPLE_TIMES = 4 };

#define SAMPLE_MAX_MS INT64_C(3600000)
#define BEST_MIN_US   (LATENCY_NOISE_MS * INT64_C(1000) / 2)

static int64_t
at_least(int64_t value, int64_t low)
{
    return value < low ? low : value;
}

void
latency_note(struct latency *l, int64_t milliseconds)
{
    int64_t sample = at_least(milliseconds, 0);
    sample = (sample > SAMPLE_MAX_MS ? SAMPLE_MAX_MS : sample) * 1000;
    if (l->samples++ == 0) {
        l->short_us = l->long_us = sample;
        return;
    }
    /* One transaction that took minutes must not shrink a window by itself. */
    int64_t most = SAMPLE_TIMES * at_least(l->short_us, BEST_MIN_US);
    sample = sample > most ? most : sample;
    l->short_us += (sample - l->short_us) / SHORT_SHARE;
    if (l->short_us < l->long_us)
        l->long_us = l->short_us;
    else
        l->long_us += (l->short_us - l->long_us) / LONG_SHARE;
}

void
latency_accept(struct latency *l)
{
    l->long_us = l->short_us;
}

enum latency_advice
latency_judge(const struct latency *l)
{
    int64_t best = at_least(l->long_us, BEST_MIN_US);
    if (l->short_us > 4 * best && l->samples > 1)
        return LATENCY_SHRINK;
    return l->short_us > 2 * best && l->samples > 1 ? LATENCY_HOLD : LATENCY_FINE;
}

int64_t
latency_short_ms(const struct latency *l)
{
    return (l->short_us + 500) / 1000;
}
