/* Where the messages are: Postfix's queues, as rooms of the spool and the journal. */
#ifndef QUEUE_PLACES_H
#define QUEUE_PLACES_H

#include "queue/recovery/adopt.h"
#include "queue/queue.h"
#include "queue/journal/young.h"

/* All journals, for an operator's process; y->room is as it was then. */
void places_read(struct spool *s, struct young *y, struct adopt_rooms *rooms);
/* Behind queue_each(): each message once, oldest first. */
int places_each(struct spool *s, const struct young *y,
                bool (*each)(void *context, struct id id, enum queue_place place),
                void *context);
/* Behind queue_count_apart(). */
struct queue_apart places_count_apart(struct spool *s);

/* queue_made(); adopted: of other journals. */
size_t places_made(struct spool *s, const struct young *y, const struct seen *adopted,
                   struct id **ids);

#endif
