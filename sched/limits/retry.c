/* Exponential backoff of deferred mail, with jitter. */
#include "sched/limits/retry.h"

int64_t
retry_delay_ms(int64_t age_ms, int64_t minimal_ms, int64_t maximal_ms)
{
    int64_t delay = age_ms > maximal_ms ? maximal_ms : age_ms;
    return delay < minimal_ms ? minimal_ms : delay;
}

/* SplitMix64: any seed is good, one addition of state. */
uint64_t
retry_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

int64_t
retry_jitter_ms(int64_t delay_ms, uint64_t *random)
{
    if (delay_ms <= 0)
        return 0;
    uint64_t space = (uint64_t)delay_ms / 10 + 1;
    return delay_ms + (int64_t)(retry_random(random) % space);
}
