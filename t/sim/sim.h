/* Controls of the stand-ins, beyond the headers of the real doors. */
#ifndef T_SIM_SIM_H
#define T_SIM_SIM_H

#include "base/loop/loop.h"

/* The loop (t/sim/loop.c): time stands still while anything happens and jumps to the
 * next timer when nothing does. loop_run() also ends when nothing is left that could
 * happen; loop_turn() lets at most its wait_ms of time pass. loop_new() is
 * sim_loop_new(1). */

enum { SIM_MONOTONIC_START_MS = 1000000 };
#define SIM_WALL_START_MS INT64_C(1750000000000) /* 2025-06-15 15:06:40 UTC */

/* The same seed gives the same loop_random(). */
struct loop *sim_loop_new(uint64_t seed);
/* --- Many loops in one time, whose owner runs them turn by turn --- */

/* A loop that begins when now_ms have passed since SIM_WALL_START_MS; its wall clock is
 * step_ms ahead. */
struct loop *sim_loop_new_at(uint64_t seed, int64_t now_ms, int64_t step_ms);
/* From now on loop_new() makes such a loop. */
void sim_loop_begin_at(uint64_t seed, int64_t now_ms, int64_t step_ms);
/* From now on, for all loops: the events that ask() says a descriptor is ready for happen
 * in every turn, until it says otherwise. */
void sim_loop_on_ask(int (*ask)(int descriptor));
/* When the next turn has something to do, in the same ms; INT64_MAX: never. */
int64_t sim_loop_due_ms(struct loop *loop);
/* Runs the turn of that time. */
void sim_loop_turn_at(struct loop *loop, int64_t now_ms);
/* Whether loop_stop() was called. */
bool sim_loop_is_stopped(const struct loop *loop);

/* Runs all turns of the next ms milliseconds: both clocks end exactly there, unless
 * loop_stop() ends it before. */
void sim_loop_advance(struct loop *loop, int64_t ms);
/* Someone sets the wall clock, from the next turn on; durations do not notice. */
void sim_loop_step_wall(struct loop *loop, int64_t ms);
/* events happen on the descriptor in the next turn, to every watch that wants them;
 * once. */
void sim_loop_ready(struct loop *loop, int descriptor, int events);
/* The same for what the kernel says of real descriptors. */
void sim_loop_poll(struct loop *loop);
/* The signal arrives in the next turn. */
void sim_loop_signal(struct loop *loop, int signal_number);
/* Turns so far. */
uint64_t sim_loop_turns(const struct loop *loop);
/* That are started. */
size_t sim_loop_timers(const struct loop *loop);
/* The next turn runs a posted task, or a timer without delay: more than loop_wake(). */
bool sim_loop_has_task(const struct loop *loop);

#endif
