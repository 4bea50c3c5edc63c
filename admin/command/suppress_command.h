/* `petrel suppress`: addresses that are not tried again. */
#ifndef ADMIN_COMMAND_SUPPRESS_COMMAND_H
#define ADMIN_COMMAND_SUPPRESS_COMMAND_H

#include "admin/settings/options.h"

/* arguments behind "suppress". Asks the daemon, or changes the spool when none runs. */
int suppress_command(int count, char **arguments, const struct options *options);

#endif
