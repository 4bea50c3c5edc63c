/* `petrel check`: the settings in effect, or their errors. */
#ifndef ADMIN_STARTUP_CHECK_COMMAND_H
#define ADMIN_STARTUP_CHECK_COMMAND_H

#include "admin/settings/options.h"

/* arguments behind the name: --changed (settings that differ from the default), --json,
 * or --example alone. Returns 0 with the settings on standard output and warnings on
 * standard error; else a sysexits code, with one line for each error on standard
 * error. */
int check_command(int count, char **arguments, const struct options_sources *sources);

#endif
