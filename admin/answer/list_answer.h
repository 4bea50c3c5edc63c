/* Lists the queue for a client of the control socket, some of it each turn.
 *
 *   {"command": "list", "limit": 100, "after": ID, "bytes": N, and what selects of request.h}
 *
 * Nothing selected: every message. It is answered by a line for each message, as `queue
 * ls --json` has it, and at the end by {"ok": true, "end": true, "next": ID};
 * next is null when there are no more, else the `after` of the next request. It ends at
 * limit (at most LIST_ANSWER_MAX), behind N bytes, or after LIST_WALK_MAX messages looked at. */
#ifndef ADMIN_ANSWER_LIST_ANSWER_H
#define ADMIN_ANSWER_LIST_ANSWER_H

#include "admin/answer/answer.h"
#include "admin/answer/filter.h"
#include "admin/answer/questions.h"
#include "base/loop/loop.h"
#include "queue/queue_walk.h"

enum { LIST_ANSWER_DEFAULT = 100, LIST_ANSWER_MAX = 10000, LIST_ANSWER_A_TURN = 50 };

struct list_answer;

/* NULL with a reason in *why. Takes the request. No callback before it returns. */
struct list_answer *list_answer_new(struct loop *loop, struct manager *manager,
                                    struct questions *questions, json_t *request,
                                    const struct answer_events *events,
                                    const char **why);
void list_answer_free(struct list_answer **answer);
/* The client has read. */
void list_answer_wake(struct list_answer *answer);
/* The line that was just written has that many bytes. */
void list_answer_count(struct list_answer *answer, size_t bytes);
size_t list_answer_seen(const struct list_answer *answer);

/* Goes through the queue for lists, a message at a time. */
enum { LIST_WALK_MAX = 50000 }; /* messages that one walk looks at */

struct list_walk { /* the first part is set by the owner, the rest is zeroed */
    struct loop *loop;
    struct manager *manager;
    struct questions *questions;
    struct filter *filter; /* borrowed */
    bool with_subjects;    /* read from the content of each message that is wanted */
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
