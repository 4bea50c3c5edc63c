/* Answers for the whole group: a request with "cluster": true.
 *
 *   status                 one line a host, as `summary` has it
 *   list                   the messages of all hosts, oldest first, up to `limit`
 *   show                   who has the message; if one has given it away, the question
 *                          follows it
 *   retry, hold, release   on all hosts; an id is reported by the host that has it
 *
 * Each line gets `host`. Hosts that did not answer, or not to the end, come last: host,
 * trouble (why). Then {"ok": true, "end": true, "hosts": N, "silent": N}, hosts being those
 * asked, silent those in trouble; `next` as in list_answer.h. All hosts are asked at one
 * time, one page each; a turn takes CLUSTER_LINES_A_TURN lines. */
#ifndef ADMIN_CONTROL_CLUSTER_ANSWER_H
#define ADMIN_CONTROL_CLUSTER_ANSWER_H

#include "admin/answer/answer.h"
#include "admin/control/fan_out.h"

enum {
    CLUSTER_LINES_A_TURN = 64,
    CLUSTER_FOLLOWS_MAX = 6, /* moves of a message that are followed */
    /* Bytes of a page of `list`, of all hosts together, and of one: */
    CLUSTER_PAGES_BYTES = 8 * 1024 * 1024,
    CLUSTER_PAGE_BYTES = 512 * 1024
};

struct cluster_answer;

/* NULL with a reason in *why. No callback before it returns. */
struct cluster_answer *cluster_answer_new(struct control_service *service,
                                          const json_t *request,
                                          const struct answer_events *events,
                                          const char **why);
void cluster_answer_free(struct cluster_answer **answer);
/* The client has read. */
void cluster_answer_wake(struct cluster_answer *answer);
size_t cluster_answer_seen(const struct cluster_answer *answer);

#endif
