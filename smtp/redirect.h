/* Fragments that one of our hosts passes on to the host of their set: the differences
 * from other mail (doc/defragment.md "Hosts"). Pure.
 *
 * MAIL has XDEFRAG with the mark of the set; each RCPT has a source route of one hop, the
 * destination host: "<@host1.example:user@domain>". */
#ifndef SMTP_REDIRECT_H
#define SMTP_REDIRECT_H

#include "base/buffer.h"
#include "queue/envelope/envelope.h"

/* Writes the argument of RCPT without its route to out. The route must be one hop, name
 * in any case. False: another route or none, or out is full; out is then undefined. */
bool redirect_cut_route(struct text argument, struct text name, struct buffer *out)
    __attribute__((warn_unused_result));

/* Sets the birth of e, a fragment by_peer without a birth, to the time of its mark. A
 * time in the future or more than lifetime_ms ago comes from a wrong clock and is
 * ignored: the caller sets the birth then. */
void redirect_date(struct envelope *e, int64_t now_ms, int64_t lifetime_ms);

/* The reason not to send e to a host, with the code of RFC 3463, or NULL. offered: the
 * host offers XDEFRAG. */
const char *redirect_trouble(const struct envelope *e, bool offered,
                             const char **enhanced);

#endif
