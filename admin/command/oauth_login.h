/* One login for an OAuth2 account: asks the provider, perhaps with the help of a person,
 * and keeps the grant. */
#ifndef ADMIN_COMMAND_OAUTH_LOGIN_H
#define ADMIN_COMMAND_OAUTH_LOGIN_H

#include "smtp/oauth/oauth.h"

struct disk;
struct tls_client;

enum {
    OAUTH_LOGIN_FAILURES_MAX = 3,   /* in a row, while a code waits for a person */
    OAUTH_LOGIN_LOCK_MS = 40 * 1000 /* the daemon asks for a token meanwhile */
};

struct oauth_login {
    const struct oauth_account *account;
    const char *dns_servers;
    struct disk *spool;
    struct tls_client *anchors;
    bool browser; /* a pasted address, even if there is a device URL */
};
/* Prompts on standard output, errors on standard error. The state on disk is as before
 * unless it returns 0. Else a sysexits code: EX_TEMPFAIL, try again; EX_NOPERM, the
 * provider or the person refuses. */
int oauth_login_run(const struct oauth_login *login);

#endif
