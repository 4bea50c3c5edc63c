/* Journals whose daemon is no more: of another number of slices, of a dead instance, or
 * our own after the journal was turned off.
 *
 * Their messages move to the spool's files, of whatever slice they are; then the
 * segments go. A room below journal/ is named by the part of the names that its daemon
 * handled, FIRST-LAST of ID_SLICES_MAX; whoever holds the lock on some of that part
 * knows that the daemon is dead. Killed at any moment, the next start does the rest. */
#ifndef QUEUE_ADOPT_H
#define QUEUE_ADOPT_H

#include "queue/young.h"

enum { ADOPT_ROOM_MAX = 32 };

/* Of the journal of this part. */
void adopt_room(unsigned first, unsigned count, char room[ADOPT_ROOM_MAX]);

struct adopted {
    unsigned rooms, messages;
    bool busy;  /* another petrel is at it: ask again soon */
    bool again; /* the disk refused something: what is left waits for the next time */
};
/* Every room that has a part in common with ours, except `own` (NULL: none). Waits for
 * the disk. The spool's files must then be listed (again). */
struct adopted adopt_journals(struct spool *s, struct loop *loop, unsigned first,
                              unsigned count, const char *own);

#endif
