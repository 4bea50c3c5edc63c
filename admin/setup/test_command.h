/* `petrel test`: a short message that is followed on its way. */
#ifndef ADMIN_SETUP_TEST_COMMAND_H
#define ADMIN_SETUP_TEST_COMMAND_H

#include "admin/settings/options.h"

/* arguments behind "test". Returns 0: delivered; EX_UNAVAILABLE: it failed; EX_TEMPFAIL:
 * it waits, or no daemon runs; EX_NOPERM: it was sent, but this user may not ask about
 * it; or another sysexits code: nothing was sent. */
int test_command(int count, char **arguments, const struct options *options);

#endif
