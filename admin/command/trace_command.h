/* `petrel trace`: searches the history of mail. */
#ifndef ADMIN_COMMAND_TRACE_COMMAND_H
#define ADMIN_COMMAND_TRACE_COMMAND_H

#include "admin/settings/options.h"

/* Arguments begin behind "trace". Exit code: 0; 65: nothing was found; 77: the history
 * may not be read. */
int trace_command(int count, char **arguments, const struct options *options);

#endif
