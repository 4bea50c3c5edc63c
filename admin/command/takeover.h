/* `petrel queue adopt SLICE`: the daemon takes over the slice of a dead instance. */
#ifndef ADMIN_COMMAND_TAKEOVER_H
#define ADMIN_COMMAND_TAKEOVER_H

#include "admin/settings/options.h"

/* arguments: those after "adopt". A sysexits code: EX_TEMPFAIL when no daemon answers,
 * EX_UNAVAILABLE when it does not take the slice. */
int command_takeover(int count, char **arguments, const struct options *options);

#endif
