/* The part that the real loop and the simulated one share: tasks, timers, end of turn.
 *
 * base/loop/loop.c and t/sim/loop.c embed `struct loop`. They decide when a turn
 * begins, the time, and which descriptors are ready; loop_turn.c is the rest of loop.h.
 * No other file includes this header. */
#ifndef BASE_LOOP_LOOP_TURN_H
#define BASE_LOOP_LOOP_TURN_H

#include "base/loop/loop.h"

struct turn_call {
    void (*run)(void *context); /* NULL: removed */
    void *context;
};
struct turn_calls {
    struct turn_call *rows;
    size_t count, capacity;
};

struct loop {
    int64_t wall_ms, monotonic_ms; /* of this turn */
    struct heap timers;            /* with a due time */
    struct heap soon;              /* started with no delay: ripe when a turn begins */
    struct loop_task *posted, *last; /* for the next turn, oldest first */
    struct loop_task *running;       /* the rest of this turn's */
    struct turn_calls hooks[LOOP_SLOTS];
    struct turn_calls releases;
    bool in_turn, stopping;
    int64_t began_us, timed_us; /* loop_clock_us() of the turn, and behind its timers */
    struct loop_pace pace;
};

void turn_init(struct loop *loop, int64_t wall_ms, int64_t monotonic_ms);
/* Runs the releases that are left. */
void turn_free(struct loop *loop);

/* Sets the time, runs the posted tasks, then the timers that are due. */
void turn_begin(struct loop *loop, int64_t wall_ms, int64_t monotonic_ms);
/* Runs the hooks, then the releases. */
void turn_end(struct loop *loop);

/* The next turn must not wait. */
bool turn_is_pressing(const struct loop *loop);
/* When the first timer is due (monotonic), or -1. */
int64_t turn_due_ms(const struct loop *loop);

#endif
