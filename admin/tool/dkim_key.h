/* `petrel dkim-key DOMAIN [SELECTOR]`: makes a private key for dkim_keys, and prints the
 * record to publish. */
#ifndef ADMIN_TOOL_DKIM_KEY_H
#define ADMIN_TOOL_DKIM_KEY_H

#include "admin/settings/options.h"

/* arguments behind "dkim-key". Returns a sysexits code: EX_CANTCREAT if the key exists;
 * it is never overwritten. */
int dkim_key_command(int count, char **arguments, const struct options *options);

#endif
