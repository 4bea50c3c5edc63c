/* The life of mail in the words of qmail-send's log (spec/queue.md §1.11), for the
 * programs that read those: with LOG_STYLE_QMAIL alone, else nothing is said.
 *
 * qmail numbers messages by their inode; here the number is the hash of the name, the
 * same after a restart, and the name itself stands behind it: "id NAME". Deliveries are
 * counted from the start on, one for each recipient. */
#ifndef QUEUE_SENDLOG_H
#define QUEUE_SENDLOG_H

#include "base/log.h"
#include "queue/envelope.h"

enum { SENDLOG_VALUE_MAX = 1024 };

struct sendlog {
    struct log *log;
    unsigned limit;      /* of deliveries at a time, for each channel */
    unsigned running[2]; /* deliveries, by channel */
    unsigned deliveries; /* so far */
};

bool sendlog_is_on(const struct sendlog *s);
void sendlog_new(struct sendlog *s, const struct envelope *e);
/* A handle for the delivery; 0 when nothing is said. */
unsigned sendlog_start(struct sendlog *s, const struct envelope *e, unsigned index,
                       enum channel channel);
/* delivery 0: it had no beginning. False: nothing is said. */
bool sendlog_result(struct sendlog *s, unsigned delivery, const struct envelope *e,
                    unsigned index, enum channel channel,
                    const struct outcome *outcome);
/* It was begun and not made. */
void sendlog_stopped(struct sendlog *s, unsigned delivery);
void sendlog_bounce(struct sendlog *s, struct id id);
/* The notice of a notice failed. */
void sendlog_discard(struct sendlog *s, struct id id);
void sendlog_end(struct sendlog *s, struct id id);
void sendlog_exit(struct sendlog *s);

#endif
