/* `petrel oauth`: logins for the accounts of the setting `oauth`. */
#ifndef ADMIN_COMMAND_OAUTH_COMMAND_H
#define ADMIN_COMMAND_OAUTH_COMMAND_H

#include "admin/settings/accounts.h"

struct tls_client;

/* arguments behind "oauth". anchors: trusted for providers. Root becomes the owner of
 * the spool. Returns a sysexits code. */
int oauth_command(int count, char **arguments, const struct options *options,
                  const struct accounts *accounts, struct tls_client *anchors);
/* Whether these arguments ask a provider, so that anchors are needed. */
bool oauth_command_asks(int count, char **arguments);

#endif
