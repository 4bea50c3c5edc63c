/* `petrel import FILE...`: settings of another program become petrel.conf. */
#ifndef ADMIN_IMPORT_IMPORT_COMMAND_H
#define ADMIN_IMPORT_IMPORT_COMMAND_H

#include "admin/setup/init_command.h"

/* arguments behind "import". Returns 0, EX_USAGE, EX_NOINPUT (a file cannot be read),
 * EX_DATAERR (no program of these is known), EX_CANTCREAT (a file is there) or EX_CONFIG
 * (what was written has errors: a defect, or a file that the settings name). */
int import_command(int count, char **arguments, const struct init_helpers *helpers);

#endif
