/* The recipients of a message handed in: as users write them, qualified, each once. */
#ifndef ADMIN_SENDMAIL_RECIPIENTS_H
#define ADMIN_SENDMAIL_RECIPIENTS_H

#include "queue/envelope.h"

enum { RECIPIENTS_ADDRESS_MAX = 320 };

struct recipients {
    struct envelope
        *envelope;        /* where they go; recipients added by others are not seen */
    const char *hostname; /* of those without a domain */
    unsigned limit;
    unsigned notify;               /* RFC 3461, of each */
    struct recipients_seen *known; /* recipients.c's; NULL at first */
    const char *error;             /* the first one; NULL */
};

/* An address list (RFC 5322 §3.4): "a@b", "<a@b>", "Name <a@b>, c". False: error says
 * why; what came before it is in the envelope. */
bool recipients_add(struct recipients *r, struct text list)
    __attribute__((warn_unused_result));
void recipients_free(struct recipients *r);

/* One address: "<a@b>", "a@b", "a" (then a@hostname), in normal form. False: bad
 * syntax, or a control character anywhere. */
bool recipients_qualify(struct text written, const char *hostname, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
