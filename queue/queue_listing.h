/* Where the messages are: Postfix's queues, as directories of the spool and the journal. */
#ifndef QUEUE_QUEUE_LISTING_H
#define QUEUE_QUEUE_LISTING_H

#include "queue/recovery/adopt.h"
#include "queue/queue_operator.h"
#include "queue/journal/journaled.h"

/* All journals, for an operator's process; y->directory is as it was then. */
void queue_listing_read(struct spool *s, struct journaled *y,
                        struct adopt_journals *journals);
/* Behind queue_each(): each message once, oldest first. */
int queue_listing_each(struct spool *s, const struct journaled *y,
                       bool (*each)(void *context, struct id id,
                                    enum queue_place place),
                       void *context);
/* Behind queue_count_apart(). */
struct queue_apart queue_listing_count_apart(struct spool *s);

/* queue_made(); adopted: of other journals. */
size_t queue_listing_made(struct spool *s, const struct journaled *y,
                          const struct id_set *adopted, struct id **ids);

#endif
