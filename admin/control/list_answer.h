/* Lists the queue for a client of the control socket, some of it each turn.
 *
 *   {"command": "list", "limit": 100, "after": ID, "bytes": N, and what selects of request.h}
 *
 * Nothing selected: every message. It is answered by a line for each message, as `queue
 * ls --json` has it, and at the end by {"ok": true, "end": true, "next": ID};
 * next is null when there are no more, else the `after` of the next request. It ends at
 * limit (at most LIST_ANSWER_MAX), behind N bytes, or after LIST_WALK_MAX messages looked at. */
#ifndef ADMIN_CONTROL_LIST_ANSWER_H
#define ADMIN_CONTROL_LIST_ANSWER_H

#include "admin/control/answer.h"
#include "admin/control/list_walk.h"

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

#endif
