/* A circuit breaker. */
#include "base/breaker.h"

#include <assert.h>

void
breaker_good(struct breaker *b)
{
    b->failures = 0;
    b->pause_now_ms = 0;
}

int64_t
breaker_failed(struct breaker *b)
{
    assert(b->failures_max > 0 && b->pause_ms <= b->pause_max_ms);
    if (b->failures < b->failures_max)
        b->failures++;
    if (!breaker_is_open(b))
        return b->retry_ms;
    b->pause_now_ms = b->pause_now_ms == 0 ? b->pause_ms : 2 * b->pause_now_ms;
    if (b->pause_now_ms > b->pause_max_ms)
        b->pause_now_ms = b->pause_max_ms;
    return b->pause_now_ms;
}

bool
breaker_is_open(const struct breaker *b)
{
    return b->failures >= b->failures_max;
}
