/* A search in the history for a client of the control socket, some of it each turn.
 *
 *   {"command": "trace", "q": ["..."], "since_ms": N, "limit": 20}   a life each line
 *   {"command": "follow", "id": "..."}   the events of a message until it has ended, each
 *                                        with `message`, its id */
#ifndef ADMIN_ANSWER_TRACE_ANSWER_H
#define ADMIN_ANSWER_TRACE_ANSWER_H

#include "admin/answer/answer.h"
#include "base/disk/disk.h"
#include "base/id.h"
#include "base/loop/loop.h"

#include <jansson.h>

struct trace_answer;

/* spool is borrowed; no callback before it returns. NULL with a reason in *why. */
struct trace_answer *trace_answer_new(struct loop *loop, struct disk *spool,
                                      const json_t *request,
                                      const struct answer_events *events,
                                      const char **why);
void trace_answer_free(struct trace_answer **answer);
/* The client has read, or a line of that message was written in this turn (all 0: of
 * none). */
void trace_answer_wake(struct trace_answer *answer, struct id id);

#endif
