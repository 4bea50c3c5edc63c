/* The line of arrival of mail that sendmail(1) has put into the spool: it cannot write
 * to the daemon's log, so the daemon tells when it takes the message up. */
#ifndef QUEUE_PICKUP_H
#define QUEUE_PICKUP_H

#include "base/log/log.h"
#include "queue/envelope.h"

/* Of an envelope that was injected. Postfix's style has Postfix's words; qmail's has
 * "info msg" (qmail_log.h), and nothing here. */
void pickup_say(struct log *log, const struct envelope *e);

#endif
