/* Slices: several daemons on one spool, the first of them the host of clients. One takes
 * over the slice of another that is dead, and all of them stop to be started as another
 * number of slices. */
#ifndef T_ROOF_SLICES_H
#define T_ROOF_SLICES_H

#include "t/roof/fleet_internal.h"

void slices_begin(void);
/* The first host has ended. */
void slices_first_ended(int64_t window_ms);
/* The first host may start. */
bool slices_may_start(void);
/* A takeover, or another number of slices. */
void slices_act(void);
void slices_become_good(void);

#endif
