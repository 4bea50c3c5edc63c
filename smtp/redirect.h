/* A fragment that one of our hosts passes on to the one that has its set: what is not
 * as in other mail (doc/defragment.md "Hosts"). Pure.
 *
 * MAIL has XDEFRAG with the mark of the set, each RCPT a source route of one hop, the
 * host it goes to: "<@host1.example:user@domain>". */
#ifndef SMTP_REDIRECT_H
#define SMTP_REDIRECT_H

#include "base/buffer.h"
#include "queue/envelope.h"

/* The argument of RCPT without its route, which must be one hop, named name in any
 * case. False, and out of no use: it is not, or does not fit. */
bool redirect_cut_route(struct text argument, struct text name, struct buffer *out)
    __attribute__((warn_unused_result));

/* Gives e, which has come by_peer and has no birth yet, that of its mark. A time to
 * come, or before the lifetime of any mail, is another clock's: then it is left to the
 * caller that names the message. */
void redirect_date(struct envelope *e, int64_t now_ms, int64_t lifetime_ms);

/* Why a host cannot get that mail, with the code of RFC 3463, or NULL. offered: by it,
 * XDEFRAG. */
const char *redirect_trouble(const struct envelope *e, bool offered,
                             const char **enhanced);

#endif
