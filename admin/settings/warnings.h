/* Warns of settings that are allowed but probably wrong: secrets that others can read
 * (file_modes.h), a hostname that other servers refuse, contradicting ports and limits,
 * times without a unit, routes that are never chosen, hosts that should share fragments
 * and do not, old names of settings, and variables that are no setting. */
#ifndef ADMIN_SETTINGS_WARNINGS_H
#define ADMIN_SETTINGS_WARNINGS_H

#include "admin/settings/options.h"
#include "base/log/log.h"
#include "sched/route/route.h"

/* After each reading of the settings; a line in the log each. */
void warnings_say(const struct options *options, const struct settings *settings,
                  const struct route_table *routes, struct log *log);
/* The same on standard error, that this host has cores for more slices, and which files
 * `user` cannot read, if root asks. */
void warnings_at_check(const struct options *options, const struct settings *settings,
                       const struct route_table *routes);
/* The same, and errors that would make a reload fail. */
void warnings_at_start(const struct options *options, const struct settings *settings,
                       const struct route_table *routes, struct log *log);

/* One line about a bad hostname, on a system of that name (NULL: unknown); false: the
 * hostname is good. */
enum { WARNINGS_HOSTNAME_MAX = 512 };
bool warnings_hostname(const char *hostname, const char *system_name,
                       char out[WARNINGS_HOSTNAME_MAX]);
/* One line if a host with that number of cores has room for more slices. Not for one
 * slice: a daemon that is not busy needs no other. */
enum { WARNINGS_CORES_MAX = 128 };
bool warnings_cores(int64_t slices, int cores, char out[WARNINGS_CORES_MAX]);

#endif
