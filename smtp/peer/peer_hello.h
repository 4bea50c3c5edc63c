/* The description that each side gives (XPEER), as JSON. Pure. */
#ifndef SMTP_PEER_PEER_HELLO_H
#define SMTP_PEER_PEER_HELLO_H

#include "base/buffer.h"
#include "queue/group/siblings.h"

enum { PEER_HELLO_MAX = 504 /* bytes of the JSON; a reply has one line of 510 */ };

/* False: it does not fit, and nothing was added. */
bool peer_hello_write(const struct sibling_hello *hello, struct buffer *out)
    __attribute__((warn_unused_result));
/* False: a member is missing or malformed. Others are skipped, for later versions. */
bool peer_hello_read(struct text json, struct sibling_hello *out)
    __attribute__((warn_unused_result));

#endif
