/* For the tests of users.c, client_usage.c and lockout.c. No other file includes this. */
#ifndef SMTP_ACCESS_TABLES_INTERNAL_H
#define SMTP_ACCESS_TABLES_INTERNAL_H

#include "smtp/access/client_usage.h"
#include "smtp/access/lockout.h"
#include "smtp/access/users.h"

/* As users_read(), from the content of a file called `file`. */
struct users *users_new(struct text content, const char *file,
                        const unsigned char secret[DIGEST_SIZE], struct buffer *errors);
size_t users_count(const struct users *users);

/* Clients with a session, or kept for their rates. */
size_t client_usage_known(const struct client_usage *clients);

/* Clients whose failures are remembered. */
size_t lockout_clients(const struct lockout *lockout);

#endif
