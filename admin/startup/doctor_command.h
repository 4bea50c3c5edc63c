/* `petrel doctor`: gives admin/findings/ the settings, the keys, and the client side of
 * SMTP. */
#ifndef ADMIN_STARTUP_DOCTOR_COMMAND_H
#define ADMIN_STARTUP_DOCTOR_COMMAND_H

#include "admin/settings/options.h"

/* arguments behind "doctor". 0; 1: something is wrong, or a sysexits code. Without the
 * right to read secrets, checks that need them are not made. */
int doctor_command(int count, char **arguments, const struct options_sources *sources);

#endif
