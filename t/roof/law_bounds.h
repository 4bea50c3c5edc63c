/* Bounds of a daemon at any time (the law "bounds"): sessions, mail and recipients in
 * memory, recipients of a transaction; descriptors, open files and timers for what it has
 * to do, and no more. */
#ifndef T_ROOF_LAW_BOUNDS_H
#define T_ROOF_LAW_BOUNDS_H

#include "t/roof/host.h"

/* h has had a turn, and runs. */
void law_bounds_turn(struct host *h);
/* Nothing is due at any host, and time goes on: none sleeps over what has come of age (the law
 * "in time"). */
void law_bounds_sleep(void);
/* The most recipients of a transaction since the last call. */
unsigned law_bounds_take_rcpts(void);

#endif
