/* What we log in with at a host of a target: the secret of its user, or a token that is
 * read anew each time. */
#ifndef SMTP_CREDENTIALS_H
#define SMTP_CREDENTIALS_H

#include "base/net_address.h"
#include "sched/route/route.h"
#include "smtp/client/client.h"

struct loop;

/* A copy of all that it needs: settings may be replaced meanwhile. */
struct credentials;

/* For host number `at` of the target, which has the address. *login stays NULL when it
 * has no user. False, with why (DEFERRED), when the user's secret cannot be read. */
bool credentials_new(struct credentials **login, struct loop *loop,
                     const struct secrets *secrets, const struct target *target,
                     size_t at, const struct net_address *address, struct outcome *why)
    __attribute__((warn_unused_result));
/* Overwrites it; may be NULL. */
void credentials_free(struct credentials **login);
/* For the client machine, as long as login lives; NULL for NULL. */
const struct client_login *credentials_said(const struct credentials *login);

#endif
