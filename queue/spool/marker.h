/* Markers: empty files that say one thing about a message.
 *
 * AWAITING, defrag/ID: the message, which has the files of S5, awaits parts
 * (doc/defragment.md "Crashes"). Only a hint: for offline tools, and for startup, which
 * offers marked messages first. Never synced, and no mail depends on it: a failure is
 * logged once and does not make the spool unhealthy. Messages in the journal have none.
 *
 * REASSEMBLED, journal/ID: the message is a reassembled one that came from an adopted
 * journal. In a journal every startup knows it (queue_made()), so that its parts are
 * ended before they are examined; files alone do not show it. Made durable before the
 * records of its journal stop counting.
 *
 * RELEASED, lock/ID: an operator has released the message, which is in todo/: routes that
 * hold do not count for it. Its injector cannot write there. Made durable before the
 * operator has an answer; from S5 on info/ID says so. */
#ifndef QUEUE_SPOOL_MARKER_H
#define QUEUE_SPOOL_MARKER_H

#include "queue/spool/id_set.h"
#include "queue/spool/spool.h"

enum marker { MARKER_AWAITING, MARKER_REASSEMBLED, MARKER_RELEASED };

/* Succeeds if the marker exists already. 0, or -errno, which is logged. */
int marker_put(struct spool *s, enum marker marker, struct id id);
/* Makes the names of REASSEMBLED or RELEASED durable. 0, or -errno, which is logged. */
int marker_sync(struct spool *s, enum marker marker);
/* Removes the marker, if there is one. */
void marker_drop(struct spool *s, enum marker marker, struct id id);
bool marker_has(struct spool *s, enum marker marker, struct id id);
/* Adds the ids marked REASSEMBLED to the set. 0 or -errno. */
int marker_list(struct spool *s, struct id_set *ids);

#endif
