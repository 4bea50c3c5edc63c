/* The marks of messages that wait for other fragments: defrag/ID, an empty file, beside
 * the files of S5 (doc/defragment.md "Crashes").
 *
 * A mark is a hint for who looks at the spool while no daemon runs, and tells a start
 * what to offer first, and what was never let go. No mail depends on it: it is never
 * synced, and one that could not be made or removed is told once and is no trouble of
 * the spool's. Young mail has none; a mark without its message goes at the start, or by
 * the hourly sweep. */
#ifndef QUEUE_PARKED_H
#define QUEUE_PARKED_H

#include "queue/spool/spool.h"

/* It may be there already. False: the disk would not take it. */
bool parked_put(struct spool *s, struct id id);
/* It may be absent. */
void parked_drop(struct spool *s, struct id id);
bool parked_has(struct spool *s, struct id id);

#endif
