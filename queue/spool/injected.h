/* Envelopes that another user of this machine has put into todo/.
 *
 * Such a user is trusted no more than a client that may relay: the mail is ours, and
 * the owner of the file is the submitter, even if the envelope names another. Taken are
 * sender, recipients with NOTIFY and ORCPT, ENVID, RET, BODY, SMTPUTF8, the header
 * lines before the content (sendmail(1) writes them), and the time of submission,
 * unless it is in the future. All other records of the envelope are dropped. */
#ifndef QUEUE_SPOOL_INJECTED_H
#define QUEUE_SPOOL_INJECTED_H

#include "base/log/log.h"
#include "queue/envelope/envelope.h"

enum {
    INJECTED_ADDRESS_MAX = 1000, /* as in a command; longer texts are not addresses */
    INJECTED_ORIGINAL_MAX = 2048,
    INJECTED_ID_MAX = 100, /* RFC 3461 §4.4 */
    INJECTED_PREFIX_MAX = 64 * 1024
};

/* e: as read from a file of this user in todo/. NULL, or in a few words why it is not an
 * envelope. */
const char *injected_take(struct envelope *e, unsigned user, int64_t now_ms)
    __attribute__((warn_unused_result));
/* The same filter for an envelope that another host of the group gives: it may have no
 * address, time or text that a user here could not have submitted. The state that it
 * brings (marks, failures, submitter, trust, due time) is kept, in bounds and forms that
 * this host could have written; a failure's text is one line. NULL, or why not. */
const char *injected_take_given(struct envelope *e, int64_t now_ms)
    __attribute__((warn_unused_result));
/* The names of the message in the header that begins with these bytes, prefix first;
 * "". */
struct injected_names {
    char message_id[ENVELOPE_MESSAGE_ID_MAX + 1], tag[ENVELOPE_TAG_MAX + 1];
};
void injected_read_names(struct text prefix, struct text head,
                         struct injected_names *out);

#endif
