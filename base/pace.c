/* Collects small writes. */
#include "base/pace.h"

bool
pace_passes(struct pace *pace, int64_t now_ms, size_t waiting)
{
    if (now_ms - pace->began_ms >= PACE_MS) {
        pace->began_ms = now_ms;
        pace->bytes = 0;
    } else if (pace->bytes >= PACE_IMMEDIATE && waiting < PACE_MOST) {
        return false;
    }
    pace->bytes += waiting;
    return true;
}

int64_t
pace_left_ms(const struct pace *pace, int64_t now_ms)
{
    return pace->began_ms + PACE_MS - now_ms;
}
