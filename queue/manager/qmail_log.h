/* The events of mail in the words of qmail-send's log (qmail-log(5)), for programs that
 * read those. Active with LOG_STYLE_QMAIL only.
 *
 * qmail numbers messages by their inode. Here the number is the hash of the id, the
 * same after a restart, and the id itself follows: "id NAME". Deliveries are counted
 * from startup on, one for each recipient. */
#ifndef QUEUE_MANAGER_QMAIL_LOG_H
#define QUEUE_MANAGER_QMAIL_LOG_H

#include "base/log/log.h"
#include "queue/envelope.h"

enum { QMAIL_LOG_VALUE_MAX = 1024 };

struct qmail_log {
    struct log *log;
    unsigned limit;      /* of parallel deliveries, for each channel */
    unsigned running[2]; /* deliveries, by channel */
    unsigned deliveries; /* so far */
};

bool qmail_log_is_on(const struct qmail_log *s);
void qmail_log_new(struct qmail_log *s, const struct envelope *e);
/* A handle for the delivery; 0 when nothing is logged. */
unsigned qmail_log_start(struct qmail_log *s, const struct envelope *e, unsigned index,
                         enum channel channel);
/* delivery 0: its start was not logged. False: nothing is logged. */
bool qmail_log_result(struct qmail_log *s, unsigned delivery, const struct envelope *e,
                      unsigned index, enum channel channel,
                      const struct outcome *outcome);
/* It was started and not made. */
void qmail_log_stopped(struct qmail_log *s, unsigned delivery);
void qmail_log_bounce(struct qmail_log *s, struct id id);
/* A notification about a notification failed. */
void qmail_log_discard(struct qmail_log *s, struct id id);
void qmail_log_end(struct qmail_log *s, struct id id);
void qmail_log_exit(struct qmail_log *s);

#endif
