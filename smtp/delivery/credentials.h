/* The user and secret for a host of a target; a token is read from its file each
 * time. */
#ifndef SMTP_DELIVERY_CREDENTIALS_H
#define SMTP_DELIVERY_CREDENTIALS_H

#include "base/net_address.h"
#include "sched/route/route.h"
#include "smtp/client/client.h"

struct loop;
struct tokens;

/* Owns copies: settings may be replaced meanwhile. */
struct credentials;

/* For host number `at` of the target, which has the address. *login is NULL if the host
 * has no user. False, with why (DEFERRED), if the user's secret cannot be read; with
 * REPLY_CLASS_TOKEN: there is no token of its account, and the provider is being asked.
 * tokens: of accounts, lives longer than the login; NULL: there are none. */
bool credentials_new(struct credentials **login, struct loop *loop,
                     const struct secrets *secrets, struct tokens *tokens,
                     const struct target *target, size_t at,
                     const struct net_address *address, struct outcome *why)
    __attribute__((warn_unused_result));
/* The host has refused it. True: it was a token, for which there will be another one, so
 * that the login is to be tried again then. login may be NULL. */
bool credentials_refused(const struct credentials *login)
    __attribute__((warn_unused_result));
/* Overwrites it; may be NULL. */
void credentials_free(struct credentials **login);
/* For the client machine; lives as long as login. NULL for NULL. */
const struct client_login *credentials_login(const struct credentials *login);

#endif
