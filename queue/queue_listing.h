/* Listing: which of Postfix's queues each message is in, from spool and journal. */
#ifndef QUEUE_QUEUE_LISTING_H
#define QUEUE_QUEUE_LISTING_H

#include "queue/recovery/adopt.h"
#include "queue/queue_operator.h"
#include "queue/journal/journaled.h"

/* The directories of messages, in the order in which they are read. */
enum { QUEUE_LISTING_PLACES = 5 };
extern const struct queue_listing_place {
    enum spool_dir dir;
    enum queue_place place;
} queue_listing_places[QUEUE_LISTING_PLACES];

/* Reads all journals, for an operator's process; restores y->directory. */
void queue_listing_read(struct spool *s, struct journaled *y,
                        struct adopt_journals *journals);
/* Behind queue_each(): each message once, oldest first. */
int queue_listing_each(struct spool *s, const struct journaled *y,
                       bool (*each)(void *context, struct id id,
                                    enum queue_place place),
                       void *context);
/* Behind queue_made(). adopted: those of other journals. */
size_t queue_listing_made(struct spool *s, const struct journaled *y,
                          const struct id_set *adopted, struct id **ids);

#endif
