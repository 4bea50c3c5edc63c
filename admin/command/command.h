/* Commands of the operator that are not the daemon: queue, check, version. */
#ifndef ADMIN_COMMAND_COMMAND_H
#define ADMIN_COMMAND_COMMAND_H

#include "admin/settings/options.h"

/* `queue ...`: asks the daemon over the control socket, or reads the spool when none
 * runs. arguments behind "queue". Returns a sysexits code. */
int command_queue(int count, char **arguments, const struct options *options);

/* Prints what a message waits for now, as `queue why` does; nothing if it has gone. */
void command_queue_waits(const char *id, const struct options *options);

/* Names all commands on standard error. Returns EX_USAGE. */
int command_name_all(void);

/* `version [--json]`. redis: library for it and its version, "" where there is none. */
int command_version(int count, char **arguments, const char *redis);

#endif
