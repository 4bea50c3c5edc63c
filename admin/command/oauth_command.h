/* `petrel oauth`: logins for the accounts of the setting `oauth`. */
#ifndef ADMIN_COMMAND_OAUTH_COMMAND_H
#define ADMIN_COMMAND_OAUTH_COMMAND_H

#include "admin/settings/accounts.h"

struct tls_client;

struct disk;

/* Called after a login, when the running daemon knows of it: asks the smarthost. A
 * sysexits code. */
typedef int oauth_command_try(void *context, const struct oauth_account *account,
                              struct disk *spool);
/* arguments behind "oauth". anchors: trusted for providers. Root becomes the owner of
 * the spool. Returns a sysexits code. */
int oauth_command(int count, char **arguments, const struct options *options,
                  const struct accounts *accounts, struct tls_client *anchors,
                  oauth_command_try *try, void *context);
/* Whether these arguments ask a provider, so that anchors are needed. */
bool oauth_command_asks(int count, char **arguments);

#endif
