/* The little that sendmail(1), `status` and `queue` need of the settings, and how they
 * get it when the settings have errors, or are not theirs to read: mail of cron and
 * the like is not to be lost by a typing error.
 *
 * A daemon leaves SPOOL/lock/about for them, which everybody can read: its hostname,
 * limits and control socket as `key = value`. */
#ifndef ADMIN_SETTINGS_ABOUT_H
#define ADMIN_SETTINGS_ABOUT_H

#include "admin/settings/options.h"

/* The daemon's, at its start and after a reload. Where that fails nothing is lost. */
void about_write(struct disk *spool, const struct options *options);

/* options_read() for such a command. Errors that do not matter to it are one warning
 * line on standard error, and none when all that is wrong is that the caller may not
 * read the file. The values are then those that could be read, and those that a daemon
 * of that spool has left. NULL: the errors are on standard error. */
struct settings *about_read(const struct options_sources *sources,
                            struct options *options);

#endif
