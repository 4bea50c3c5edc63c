/* Goes through the queue for lists, a message at a time. */
#ifndef ADMIN_CONTROL_LIST_WALK_H
#define ADMIN_CONTROL_LIST_WALK_H

#include "admin/control/filter.h"
#include "admin/control/questions.h"
#include "base/loop/loop.h"
#include "queue/queue_walk.h"

enum { LIST_WALK_MAX = 50000 }; /* messages that one walk looks at */

struct list_walk { /* the first part is set by the owner, the rest is zeroed */
    struct loop *loop;
    struct manager *manager;
    struct questions *questions;
    struct filter *filter; /* borrowed */
    bool has_after;
    struct id after; /* the walk begins behind it */
    /* Private. */
    struct queue_walk *names;
    struct id id, last; /* the next message; the one before it */
    enum queue_place place;
    bool has_next;
    size_t seen;
};

/* Finds messages, a step at a time; their envelopes are read as the walk goes. True:
 * there are more names to read. All else is for after that. */
bool list_walk_read(struct list_walk *walk);
bool list_walk_is_over(const struct list_walk *walk);
/* The next message as listing.h has it. NULL: it is not wanted, or has gone. Not after
 * the walk is over. */
json_t *list_walk_next(struct list_walk *walk);
/* Messages looked at so far. */
size_t list_walk_seen(const struct list_walk *walk);
/* Where another walk goes on; NULL: there is nothing more. */
const char *list_walk_rest(const struct list_walk *walk, char name[ID_LENGTH + 1]);
void list_walk_end(struct list_walk *walk);

#endif
