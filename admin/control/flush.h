/* Mail for a node that has said ETRN (RFC 1985): waiting mail is due now.
 *
 * One walk over the queue at a time, for all the nodes that have asked until it began,
 * some messages in each turn; then a pause as long as the walk was. A message that is
 * due revives its destinations when it is loaded (sched_retry). */
#ifndef ADMIN_CONTROL_FLUSH_H
#define ADMIN_CONTROL_FLUSH_H

#include "queue/manager/manager.h"

enum {
    FLUSH_NODES_MAX = 1000,     /* remembered at a time */
    FLUSH_AGAIN_MS = 60 * 1000, /* a node is not served twice within this */
    FLUSH_PAUSE_MAX_MS = 60 * 1000
};

struct flush;

struct flush *flush_new(struct loop *loop, struct log *log, struct manager *manager);
/* Before the manager. Walks that have begun end where they are. */
void flush_free(struct flush **flush);

enum flush_answer {
    FLUSH_STARTED, /* or soon */
    FLUSH_RECENT,  /* it had asked less than FLUSH_AGAIN_MS ago, or still waits */
    FLUSH_FULL     /* FLUSH_NODES_MAX others have */
};
/* node: a domain, or "@domain" with its sub-domains; in lower case. client is for the
 * log. */
enum flush_answer flush_ask(struct flush *flush, const char *node, const char *client)
    __attribute__((warn_unused_result));

#endif
