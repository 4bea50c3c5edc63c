/* Logins with access tokens of OAuth2: whether each has one, as was reported to the
 * scheduler. Internal to sched/. */
#ifndef SCHED_TOKEN_H
#define SCHED_TOKEN_H

#include "sched/sched.h"

struct token_login;
struct token_table {
    struct token_login *by_login;
};

/* False: nothing has changed. */
bool token_table_set(struct token_table *table, const struct sched_login *login,
                     enum sched_token token, const char *why);
void token_table_clear(struct token_table *table);

/* The state of the target's token. AWAITED while any of its hosts awaits a token, which
 * comes soon; FAILED when each of them lacks one. The table owns *why. */
enum sched_token token_table_find(const struct token_table *table,
                                  const struct target *target, const char **why);

#endif
