/* `petrel dkim-key DOMAIN [SELECTOR]`: makes a private key for dkim_keys, and prints the
 * record to publish. */
#ifndef ADMIN_COMMAND_DKIM_KEY_H
#define ADMIN_COMMAND_DKIM_KEY_H

#include "admin/settings/options.h"

/* arguments behind "dkim-key". Returns a sysexits code: EX_CANTCREAT if the key exists;
 * it is never overwritten. */
int command_dkim_key(int count, char **arguments, const struct options *options);

#endif
