/* Whether and in which form a message can go to the host, and the MAIL and RCPT
 * commands with their parameters (RFC 1870, 3030, 3461, 6152, 6531, 6710). */
#ifndef SMTP_CLIENT_MAIL_H
#define SMTP_CLIENT_MAIL_H

#include "smtp/client/client_internal.h"

/* Chooses the form of the transaction for this host. NULL, or why the host cannot get
 * the message, with the code of RFC 3463. */
const char *client_choose_form(const struct client *c, struct client_transaction *l,
                               const char **enhanced);
/* The same once it is known how it can be converted for this host. */
const char *client_change_form(const struct client *c, struct client_transaction *l,
                               enum downgrade_verdict verdict, uint64_t size_max,
                               const char **enhanced);
/* The parameters of EHLO's keyword LIMITS; invalid ones are ignored. */
struct client_limits client_read_limits(struct text parameters);
/* Whether it may be sent in a command: no control byte, not too long. */
bool client_is_sendable(struct text address);

void client_say_mail(struct client *c, const struct client_transaction *l);
void client_say_rcpt(struct client *c, const struct client_transaction *l,
                     const struct recipient *r);

#endif
