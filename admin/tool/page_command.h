/* `petrel page`: an address for a browser, with a key, and the way there if nothing
 * listens for HTTP. */
#ifndef ADMIN_TOOL_PAGE_COMMAND_H
#define ADMIN_TOOL_PAGE_COMMAND_H

#include "admin/settings/options.h"

/* Arguments behind the name. Prints where the page is; where the daemon listens for no
 * browser it listens itself, on loopback, and carries the bytes to the control socket,
 * until it is interrupted. A sysexits code. */
int page_command(int count, char **arguments, const struct options *options);

#endif
