/* The accounts of `oauth` and their tokens, for the operator. */
#ifndef ADMIN_CONTROL_ACCOUNT_LIST_H
#define ADMIN_CONTROL_ACCOUNT_LIST_H

#include <jansson.h>

struct tokens;

/* The caller's: an array of objects
 *   host, port (0: any), user
 *   state     "ready", "asked" (the provider is being asked), "failed"
 *   until_ms  when a token that is ready ends
 *   reason    why the last request failed, and what to do; omitted without trouble
 * Empty if tokens is NULL. */
json_t *account_list_make(const struct tokens *tokens);

#endif
