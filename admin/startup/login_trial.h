/* Whether the smarthost takes the token of `petrel oauth login`: a canary, in the process
 * of the command. */
#ifndef ADMIN_STARTUP_LOGIN_TRIAL_H
#define ADMIN_STARTUP_LOGIN_TRIAL_H

#include "admin/startup/configuration.h"

/* An oauth_command_try(): the first route that logs in there as that user is tried, with
 * the state in the spool. Prints the reply of the host. configuration: with its anchors.
 * 0, or EX_NOPERM: the host refuses the login. A host that cannot be asked is no error:
 * the login is kept. */
int login_trial_run(void *configuration, const struct oauth_account *account,
                    struct disk *spool);

#endif
