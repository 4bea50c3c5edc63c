/* Logs the arrival of mail that sendmail(1) has put into the spool: sendmail(1) cannot
 * write to the daemon's log, so the daemon does so when it finds the message. */
#ifndef QUEUE_PICKUP_H
#define QUEUE_PICKUP_H

#include "base/log/log.h"
#include "queue/envelope.h"

/* e: injected. Log style postfix has Postfix's words; style qmail logs "info msg"
 * elsewhere (qmail_log.h) and nothing here. */
void pickup_say(struct log *log, const struct envelope *e);

#endif
