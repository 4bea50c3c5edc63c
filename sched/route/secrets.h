/* Passwords for next hops: the table of `auth_passwords`. Pure.
 *
 * One entry per line: HOST[:PORT] USER PASSWORD, the password up to the end of the
 * line. Without a port it is for all ports of the host. A password that begins with "@"
 * is written with a second "@" in front; @/PATH names the file of a token for XOAUTH2,
 * which is read anew for every attempt. "#" begins a comment line. A secret is sent to
 * the host of its line only. */
#ifndef SCHED_ROUTE_SECRETS_H
#define SCHED_ROUTE_SECRETS_H

#include "base/buffer.h"

enum {
    SECRETS_FILE_MAX = 1024 * 1024,
    SECRETS_HOST_MAX = 255,
    SECRETS_USER_MAX = 128,      /* bytes */
    SECRETS_PASSWORD_MAX = 1024, /* bytes; also of a path */
    SECRETS_KEY_MAX = SECRETS_HOST_MAX + 8 + SECRETS_USER_MAX + 1
};

/* The key of a login, not a string: "host:port user". Hosts have no case, but users do:
 * only the part before the user is in lower case. Its length; 0: host or user is too
 * long. */
size_t secrets_key(struct text host, uint16_t port, struct text user,
                   char key[SECRETS_KEY_MAX]);

struct secrets;

/* Owned by the table. */
struct secret {
    bool is_token;   /* value is the path of the token's file */
    bool is_account; /* of OAuth2: value names it; its token is asked for elsewhere */
    struct text value;
    const char *from; /* the setting that contains it */
};

/* table may be empty. NULL with one line per error; no line shows a secret. */
struct secrets *secrets_new(struct text table, struct buffer *errors);
/* Overwrites them. May be NULL. */
void secrets_free(struct secrets **secrets);

/* Adds the password of the setting `from`, which must be constant, as it is. False: it
 * is not a valid password (secrets_error()), or that host and user have one
 * already. */
bool secrets_add(struct secrets *secrets, struct text host, uint16_t port,
                 struct text user, struct text password, const char *from)
    __attribute__((warn_unused_result));

/* A user that logs in with a token of OAuth2. The name of the account, unlike its
 * tokens, goes into the mark. */
struct secrets_account {
    struct text host, user;
    uint16_t port; /* 0: all */
    struct text name;
};
/* False, with a line in errors: host and user have a password for the same port or a
 * second account. */
bool secrets_add_account(struct secrets *secrets, const struct secrets_account *account,
                         struct buffer *errors) __attribute__((warn_unused_result));

/* NULL, or the reason why it cannot be a password, to follow "the password ". */
const char *secrets_error(struct text password);

/* The one for the port, else the one for all ports. NULL: none, or secrets is NULL. */
const struct secret *secrets_find(const struct secrets *secrets, struct text host,
                                  uint16_t port, struct text user);

/* Calls each with every file of a token. */
void secrets_each_file(const struct secrets *secrets,
                       void (*each)(void *context, const char *path), void *context);

/* Differs for different secrets; not 0, not reversible in practice, not to be
 * stored. */
uint64_t secrets_mark(const struct secret *secret);

#endif
