/* Commands that need all settings, or both sides of SMTP. */
#ifndef ADMIN_STARTUP_COMMANDS_H
#define ADMIN_STARTUP_COMMANDS_H

#include "admin/startup/configuration.h"

/* `petrel check`: the settings in effect, or their errors. arguments behind the name:
 * --changed (settings that differ from the default), --json, or --example alone. Returns
 * 0 with the settings on standard output and warnings on standard error; else a sysexits
 * code, with one line for each error on standard error. */
int check_command(int count, char **arguments, const struct options_sources *sources);

/* `petrel doctor`: gives admin/findings/ the settings, the keys, and the client side of
 * SMTP. arguments behind "doctor". 0; 1: something is wrong, or a sysexits code. Without
 * the right to read secrets, checks that need them are not made. */
int doctor_command(int count, char **arguments, const struct options_sources *sources);

/* Whether the smarthost takes the token of `petrel oauth login`: a probe, in the process of
 * the command. An oauth_command_try(): the first route that logs in there as that user is
 * tried, with the state in the spool. Prints the reply of the host. configuration: with
 * its anchors. 0, or EX_NOPERM: the host refuses the login. A host that cannot be asked is
 * no error: the login is kept. */
int login_trial_run(void *configuration, const struct oauth_account *account,
                    struct disk *spool);

#endif
