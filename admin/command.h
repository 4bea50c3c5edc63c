/* Commands of the operator that are not the daemon: queue, check, version. */
#ifndef ADMIN_COMMAND_H
#define ADMIN_COMMAND_H

#include "admin/options.h"

/* `queue ...`: asks the daemon over the control socket, or reads the spool when none
 * runs. arguments behind "queue". Returns a sysexits code. */
int command_queue(int count, char **arguments, const struct options *options);

/* `version [--json]`. more: a library of a room that this one does not know, as
 * "hiredis 0.14.1"; "": this build has none. */
int command_version(int count, char **arguments, const char *more);

#endif
