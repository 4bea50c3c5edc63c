/* Whether a message that a client has handed in is ours, and whose: envelope.ours.
 *
 * It is ours when the client may relay. With `sender_login` or `sender_domains` the
 * first address in From must be permitted as well, or a user could have mail in any
 * name signed: such a message is accepted, but neither rewritten nor signed. */
#ifndef SMTP_SERVER_SUBMITTER_H
#define SMTP_SERVER_SUBMITTER_H

#include "smtp/server/transaction.h"

enum { SUBMITTER_HEAD_MAX = 64 * 1024 }; /* From behind it is not permitted */

/* Content up to the end of the header, if t->gathers_head. */
void submitter_gather(struct server_transaction *t, struct text content);
/* Sets ours, header_needs and submitter of t's envelope. The client may relay. Logs a
 * From that is not permitted. */
void submitter_note(struct server_transaction *t, const struct server *s);

#endif
