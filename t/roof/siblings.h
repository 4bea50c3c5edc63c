/* Hosts of a group that have copies in the engine: any of them loses its disk, for good, or comes
 * back with an empty one, now or later; is cut off for minutes, from the engine, from the hosts
 * of the group and their Redis too, or from everything; and ends, or is cut off, in the middle of
 * an adoption. An operator says which host will not come back, to one host or to two. */
#ifndef T_ROOF_SIBLINGS_H
#define T_ROOF_SIBLINGS_H

#include "t/roof/world.h"

/* Before others are settled; it needs a group, and the engine. */
void siblings_settle(bool with[FEATURES]);
void siblings_begin(void);
void siblings_act(void);
void siblings_become_good(void);
/* A line of the log of that host of the group. */
void siblings_line(unsigned number, struct text line);
/* No host is cut off, all run that are to run, and have their copies. */
bool siblings_are_well(void);
/* That host of the group will not come back. */
bool siblings_is_gone(unsigned number);
/* One is told to adopt the mail of another. */
void siblings_order(unsigned to, unsigned of);
void siblings_cut_engine(unsigned number, bool is_cut_off);
/* A sync of its disk takes up to so long; 0: as before. */
void siblings_slow_disk(unsigned number, int64_t spread_ms);
/* The most time that an adoption needs in good weather. */
int64_t siblings_wait_ms(void);

#endif
