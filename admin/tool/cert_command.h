/* `petrel cert`: a certificate that signs itself. */
#ifndef ADMIN_TOOL_CERT_COMMAND_H
#define ADMIN_TOOL_CERT_COMMAND_H

#include "admin/settings/options.h"

/* arguments behind "cert". Returns a sysexits code. */
int cert_command(int count, char **arguments, const struct options *options);

#endif
