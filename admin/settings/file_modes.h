/* Files with secrets that all users can read, or that the daemon will not read again.
 */
#ifndef ADMIN_SETTINGS_FILE_MODES_H
#define ADMIN_SETTINGS_FILE_MODES_H

#include "admin/settings/options.h"

/* A warning in the log for each that all users can read. Symbolic links are not
 * followed: a file mounted into a container is one, and guarded by its walls. */
void file_modes_warn(const struct options *options, const struct settings *settings,
                     struct log *log);

/* The first of these files; false: there is none, and path is "". */
bool file_modes_find(const struct options *options, const struct settings *settings,
                     char *path, size_t size);

/* After startup has given up root's rights: a warning for each file of the
 * settings, and of those that they name, that a reload could not read. */
void file_modes_foresee(const struct options *options, const struct settings *settings,
                        struct log *log);

#endif
