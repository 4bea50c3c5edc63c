/* A set of message ids. `seen`, its first user, has the messages in todo/ that this run
 * has accepted or reported; a scan of todo/ reports the others. */
#ifndef QUEUE_SPOOL_ID_SET_H
#define QUEUE_SPOOL_ID_SET_H

#include "base/id.h"

struct id_set_id;
struct id_set {
    struct id_set_id *ids;
};

void id_set_add(struct id_set *set, struct id id);    /* may be there */
void id_set_remove(struct id_set *set, struct id id); /* may be absent */
/* In no order; the callback must not change the set. */
void id_set_each(const struct id_set *set, void (*each)(void *context, struct id id),
                 void *context);
size_t id_set_count(const struct id_set *set);
/* True only for the first call with an id of the set. */
bool id_set_report(struct id_set *set, struct id id);
bool id_set_has(const struct id_set *set, struct id id);
void id_set_free(struct id_set *set);

#endif
