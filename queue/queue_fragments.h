/* The queue for fragments (doc/defragment.md): the mark of a fragment that awaits
 * parts, and the reassembled messages that a crash has left behind. */
#ifndef QUEUE_QUEUE_FRAGMENTS_H
#define QUEUE_QUEUE_FRAGMENTS_H

#include "queue/queue.h"

/* The message awaits parts, or no longer does. Call it with the envelope that is then
 * deferred or dropped. In S5 the mark is made or removed, unsynced, for it is a hint
 * (queue/spool/marker.h); of a journaled message it is kept in memory. */
void queue_wait(struct queue *queue, struct envelope *e, bool waits);
/* The reassembled messages that startup has found in the journal (without a journal: in
 * todo/, perhaps with others among them), oldest first, before queue_found reports
 * anything; and those of journals adopted since, by any process at any time. Some may
 * be over. The caller frees ids. */
size_t queue_made(struct queue *queue, struct id **ids);
/* Grows when the daemon adopts a journal, before queue_found reports its messages. */
uint64_t queue_adoptions(const struct queue *queue);

#endif
