/* The monotonic clock in the hand of a test, for the real loop and all that it drives: it stands still, however
 * busy the machine is, until the test lets time pass. For one file of a test program. */
#ifndef T_SIM_CLOCK_H
#define T_SIM_CLOCK_H

#include "base/loop/loop.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

void clock_stop(void);

void clock_pass(int64_t ms);

/* The wall clock is set, by whole seconds. */
void clock_step(int64_t ms);

/* A turn in which a millisecond passes at most, however long the machine lets it wait. */
void clock_turn(struct loop *loop);

/* So many milliseconds of them. */
void clock_turns(struct loop *loop, int64_t ms);

void clock_go(void);

#endif
