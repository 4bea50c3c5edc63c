/* Collects small writes while there are many of them: the first bytes of a period pass
 * immediately, those behind them wait for its end, or until they are many. So rare
 * lines are written immediately, and under load a system call has many lines. */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pace {
    int64_t period_ms;
    size_t immediate; /* bytes of a period that do not wait */
    size_t most;      /* fewer bytes wait */
    int64_t began_ms; /* monotonic; from here on private, and zeroed */
    size_t bytes;     /* that have passed since then */
};

/* Whether the bytes that wait are written now; if so, they count. */
bool pace_passes(struct pace *pace, int64_t now_ms, size_t waiting);
/* Until the period ends. */
int64_t pace_left_ms(const struct pace *pace, int64_t now_ms);

#endif
