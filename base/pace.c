/* Collects small writes. */
#include "base/pace.h"

bool
pace_passes(struct pace *pace, int64_t now_ms, size_t waiting)
{
    if (now_ms - pace->began_ms >= pace->period_ms) {
        pace->began_ms = now_ms;
        pace->bytes = 0;
    } else if (pace->bytes >= pace->immediate && waiting < pace->most) {
        return false;
    }
    pace->bytes += waiting;
    return true;
}

int64_t
pace_left_ms(const struct pace *pace, int64_t now_ms)
{
    return pace->began_ms + pace->period_ms - now_ms;
}
