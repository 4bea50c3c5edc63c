/* What another user of this machine may say of a message that he puts into todo/.
 *
 * Whoever can write there is believed no more than a client that may relay: sender,
 * recipients with NOTIFY and ORCPT, ENVID, RET, BODY, SMTPUTF8, the header lines before
 * the content (sendmail(1) writes them), and when it was handed in, unless that is to
 * come. All else in his envelope is as if it were not there. */
#ifndef QUEUE_INJECTED_H
#define QUEUE_INJECTED_H

#include "queue/envelope.h"

enum {
    INJECTED_ADDRESS_MAX = 1000, /* as in a command; longer ones are no addresses */
    INJECTED_ORIGINAL_MAX = 2048,
    INJECTED_ID_MAX = 100, /* RFC 3461 §4.4 */
    INJECTED_PREFIX_MAX = 64 * 1024
};

/* e as read from todo/, which another user owns. NULL, or why it is no envelope, in a
 * few words. */
const char *injected_take(struct envelope *e, int64_t now_ms)
    __attribute__((warn_unused_result));

#endif
