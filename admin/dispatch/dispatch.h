/* Which subcommand an argument list means, and its run. */
#ifndef ADMIN_DISPATCH_DISPATCH_H
#define ADMIN_DISPATCH_DISPATCH_H

#include "admin/settings/options.h"

/* arguments begin with the name of the subcommand; count 0: "run". run: the daemon, which
 * is the caller's. Returns its exit code (sysexits). */
int dispatch_command(const struct options_sources *sources, int count, char **arguments,
                     int (*run)(const struct options_sources *sources));
/* sendmail(1) under one of its own names: the arguments of `sendmail`, itself the first. */
int dispatch_sendmail(const struct options_sources *sources, int count,
                      char **arguments);

#endif
