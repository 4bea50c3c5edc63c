/* Passwords for the hosts that mail is handed to: the table of `auth_passwords`. Pure.
 *
 * One a line: HOST[:PORT] USER PASSWORD, the password to the end of the line. Without a
 * port it is for all of the host's. A password that begins with "@" is written with a
 * second one in front; @/PATH names the file of a token for XOAUTH2, which is read anew
 * for every attempt. "#" begins a comment line. A secret goes to the host of its line,
 * and to nobody else. */
#ifndef SCHED_SECRETS_H
#define SCHED_SECRETS_H

#include "base/buffer.h"

enum {
    SECRETS_FILE_MAX = 1024 * 1024,
    SECRETS_USER_MAX = 128,     /* bytes */
    SECRETS_PASSWORD_MAX = 1024 /* bytes; of a path too */
};

struct secrets;

/* Owned by the table. */
struct secret {
    bool is_token; /* value is the path of the token's file */
    struct text value;
    const char *from; /* the setting that has it */
};

/* table may be empty. NULL with one line per mistake, which shows no secret. */
struct secrets *secrets_new(struct text table, struct buffer *mistakes);
/* They are overwritten. May be NULL. */
void secrets_free(struct secrets **secrets);

/* One more, for `from`, which must be constant: its password as it is. False: it is no
 * password (secrets_mistake()), or there is one for that host and user. */
bool secrets_add(struct secrets *secrets, struct text host, uint16_t port,
                 struct text user, struct text password, const char *from)
    __attribute__((warn_unused_result));

/* NULL, or why it can be no password, to be put behind "the password ". */
const char *secrets_mistake(struct text password);

/* The one for the port, else the one for all. NULL: none; also when secrets is. */
const struct secret *secrets_find(const struct secrets *secrets, struct text host,
                                  uint16_t port, struct text user);

/* The files of tokens. */
void secrets_each_file(const struct secrets *secrets,
                       void (*each)(void *context, const char *path), void *context);

/* Other secrets have other marks; not 0, not reversible in practice, not for keeping.
 */
uint64_t secrets_mark(const struct secret *secret);

#endif
