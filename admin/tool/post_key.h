/* `petrel key add|ls|rm`: the keys of programs that send mail by HTTP. */
#ifndef ADMIN_TOOL_POST_KEY_H
#define ADMIN_TOOL_POST_KEY_H

#include "admin/settings/options.h"

/* arguments behind "key". `add` prints the key, which is kept nowhere else: the file of
 * `http_keys` has its digest. Returns a sysexits code. */
int post_key_command(int count, char **arguments, const struct options *options);

#endif
