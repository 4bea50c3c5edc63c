/* The monotonic clock in the hand of a test. */
#include "t/sim/clock.h"

static struct {
    bool stands;
    int64_t now_us;
    int64_t ahead_us;   /* of the real one while it goes: it never goes back */
    int64_t stepped_ms; /* the wall clock's */
} clock_is;

void
clock_stop(void)
{
    clock_is.now_us = loop_clock_us();
    clock_is.stands = true;
}

static void
clock_pass_us(int64_t us)
{
    clock_is.now_us += us;
}

void
clock_pass(int64_t ms)
{
    clock_pass_us(ms * 1000);
}

void
clock_step(int64_t ms)
{
    clock_is.stepped_ms += ms;
}

void
clock_turn(struct loop *loop)
{
    enum { STEP_US = 1000 };
    struct timespec from, to; /* by a clock that is not in our hand */
    clock_gettime(CLOCK_MONOTONIC_RAW, &from);
    loop_turn(loop, STEP_US / 1000);
    clock_gettime(CLOCK_MONOTONIC_RAW, &to);
    int64_t us = (int64_t)(to.tv_sec - from.tv_sec) * 1000000 +
                 (to.tv_nsec - from.tv_nsec) / 1000;
    clock_pass_us(us < STEP_US ? us : STEP_US);
}

void
clock_turns(struct loop *loop, int64_t ms)
{
    for (int64_t end_us = clock_is.now_us + ms * 1000; clock_is.now_us < end_us;)
        clock_turn(loop);
}

void
clock_go(void)
{
    clock_is.stands = false;
    clock_is.ahead_us = 0;
    clock_is.ahead_us = clock_is.now_us - loop_clock_us();
}

/* Stands before the C library's, in the product and in libev. */
int
clock_gettime(clockid_t which, struct timespec *now)
{
    int (*real)(clockid_t, struct timespec *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, now);
    if (which == CLOCK_REALTIME) {
        int64_t ms = (int64_t)now->tv_sec * 1000 + clock_is.stepped_ms;
        now->tv_sec = ms / 1000;
    }
    if (which != CLOCK_MONOTONIC)
        return result;
    int64_t now_us = (int64_t)now->tv_sec * 1000000 + now->tv_nsec / 1000;
    now_us = clock_is.stands ? clock_is.now_us : now_us + clock_is.ahead_us;
    *now = (struct timespec){now_us / 1000000, now_us % 1000000 * 1000};
    return result;
}
