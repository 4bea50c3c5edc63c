/* The error messages of a command, on standard error. */
#ifndef ADMIN_SETTINGS_COMPLAINT_H
#define ADMIN_SETTINGS_COMPLAINT_H

#include "base/buffer.h"

/* "program: what: argument": one line for any argument, "" for none. Returns code. */
int complaint_say(const char *program, int code, const char *what,
                  const char *argument);
/* Errors of settings that were collected, perhaps none. */
void complaint_write(const struct buffer *errors);

#endif
