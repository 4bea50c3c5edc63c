/* The life of mail in the words of qmail-send's log (qmail-log(5)), for the
 * programs that read those: with LOG_STYLE_QMAIL alone, else nothing is said.
 *
 * qmail numbers messages by their inode; here the number is the hash of the name, the
 * same after a restart, and the name itself stands behind it: "id NAME". Deliveries are
 * counted from the start on, one for each recipient. */
#ifndef QUEUE_QMAIL_LOG_H
#define QUEUE_QMAIL_LOG_H

#include "base/log/log.h"
#include "queue/envelope.h"

enum { QMAIL_LOG_VALUE_MAX = 1024 };

struct qmail_log {
    struct log *log;
    unsigned limit;      /* of deliveries at a time, for each channel */
    unsigned running[2]; /* deliveries, by channel */
    unsigned deliveries; /* so far */
};

bool qmail_log_is_on(const struct qmail_log *s);
void qmail_log_new(struct qmail_log *s, const struct envelope *e);
/* A handle for the delivery; 0 when nothing is said. */
unsigned qmail_log_start(struct qmail_log *s, const struct envelope *e, unsigned index,
                         enum channel channel);
/* delivery 0: it had no beginning. False: nothing is said. */
bool qmail_log_result(struct qmail_log *s, unsigned delivery, const struct envelope *e,
                      unsigned index, enum channel channel,
                      const struct outcome *outcome);
/* It was begun and not made. */
void qmail_log_stopped(struct qmail_log *s, unsigned delivery);
void qmail_log_bounce(struct qmail_log *s, struct id id);
/* The notice of a notice failed. */
void qmail_log_discard(struct qmail_log *s, struct id id);
void qmail_log_end(struct qmail_log *s, struct id id);
void qmail_log_exit(struct qmail_log *s);

#endif
