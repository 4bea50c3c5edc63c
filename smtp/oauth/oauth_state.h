/* The state of an OAuth2 account between starts: a JSON object in a file. Pure. */
#ifndef SMTP_OAUTH_OAUTH_STATE_H
#define SMTP_OAUTH_OAUTH_STATE_H

#include "smtp/oauth/oauth.h"

enum { OAUTH_STATE_MAX = 40 * 1024 }; /* of the file: each octet may be escaped */

struct oauth_state {
    struct buffer access, refresh; /* empty: none */
    int64_t expires_ms;            /* of access; wall clock, as updated_ms */
    int64_t updated_ms;
    char error[OAUTH_REASON_MAX]; /* why the last request failed, or "" */
};

void oauth_state_init(struct oauth_state *state);
/* Overwrites the tokens. */
void oauth_state_free(struct oauth_state *state);
/* Into an initialised state. False, with the state empty: damaged, or another
 * account's. */
bool oauth_state_read(struct text content, const struct oauth_account *account,
                      struct oauth_state *state) __attribute__((warn_unused_result));
/* False: out's limit is reached, or a member is not UTF-8. */
bool oauth_state_write(struct buffer *out, const struct oauth_account *account,
                       const struct oauth_state *state)
    __attribute__((warn_unused_result));

#endif
