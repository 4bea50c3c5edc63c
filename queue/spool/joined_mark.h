/* The marks of joined messages that came from an adopted journal: journal/ID, an empty
 * file beside the journals.
 *
 * A whole in a journal is known as one at every start (queue_made()), so that its parts
 * are ended before they are looked at. As files alone it would be known by nobody: so
 * it is marked, durably, before the records of its journal stop counting. The mark goes
 * with the message; one without a message goes at the next start. */
#ifndef QUEUE_JOINED_MARK_H
#define QUEUE_JOINED_MARK_H

#include "queue/spool/id_set.h"
#include "queue/spool/spool.h"

/* It may be there already; durable by joined_mark_sync(). 0 or -errno, which is logged.
 */
int joined_mark_put(struct spool *s, struct id id);
int joined_mark_sync(struct spool *s);
/* It may be absent. */
void joined_mark_drop(struct spool *s, struct id id);
/* Adds those that are marked. 0 or -errno. */
int joined_mark_list(struct spool *s, struct id_set *ids);

#endif
