/* The error message of a command. */
#ifndef ADMIN_SETTINGS_COMPLAINT_H
#define ADMIN_SETTINGS_COMPLAINT_H

/* "program: what: argument" on standard error: one line whatever the argument holds, ""
 * for none. Returns code. */
int complaint_say(const char *program, int code, const char *what,
                  const char *argument);

#endif
