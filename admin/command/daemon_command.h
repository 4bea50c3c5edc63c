/* Commands that are a question to the running daemon: reload, log-level, health,
 * unlock. Each returns its exit code. */
#ifndef ADMIN_COMMAND_DAEMON_COMMAND_H
#define ADMIN_COMMAND_DAEMON_COMMAND_H

#include "admin/settings/options.h"

/* arguments[0] is the name, one of these.
 * `health` ends with 0 or 1, the others with sysexits codes;
 * `reload` with EX_CONFIG when the settings have errors. */
int daemon_command(int count, char **arguments, const struct options *options);

#endif
