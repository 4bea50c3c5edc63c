/* `petrel top`: the daemon's state, again and again. */
#ifndef ADMIN_COMMAND_TOP_H
#define ADMIN_COMMAND_TOP_H

#include "admin/settings/options.h"

/* arguments behind the name: -d TIME between two pictures, -n ROUNDS. On a terminal the
 * picture changes until a key ends it; elsewhere it is printed once, or ROUNDS times.
 * Returns a sysexits code: 69 when no daemon answers at first. */
int top_command(int count, char **arguments, const struct options *options);

#endif
