/* The ids of messages in todo/ that this run has seen: accepted here, or reported.
 * A scan of todo/ reports the others. */
#ifndef QUEUE_SEEN_H
#define QUEUE_SEEN_H

#include "base/id.h"

struct seen_id;
struct seen {
    struct seen_id *ids;
};

void seen_add(struct seen *seen, struct id id);    /* may be there */
void seen_remove(struct seen *seen, struct id id); /* may be absent */
/* In no order; each must not change the set. */
void seen_each(const struct seen *seen, void (*each)(void *context, struct id id),
               void *context);
size_t seen_count(const struct seen *seen);
/* True once: the first time that it is asked of an id that is there. */
bool seen_tell(struct seen *seen, struct id id);
bool seen_has(const struct seen *seen, struct id id);
void seen_free(struct seen *seen);

#endif
