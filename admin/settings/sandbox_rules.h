/* The paths that the sandbox must allow, from the settings and routes. */
#ifndef ADMIN_SETTINGS_SANDBOX_RULES_H
#define ADMIN_SETTINGS_SANDBOX_RULES_H

#include "admin/settings/options.h"
#include "base/sandbox/sandbox.h"

/* One reading of the settings; all borrowed. */
struct sandbox_rules {
    const struct options *options;
    const struct settings *settings;
    const struct route_table *routes;
    const struct alias_files *alias_files; /* NULL: none */
};

/* Plans, as the final user: the spool and the Maildirs to write (those that mail would
 * make are made now), to read the files of the settings, every file and directory that
 * a value names, and the system's files that libraries read. */
void sandbox_rules_plan(struct sandbox *sandbox, const struct sandbox_rules *c);

/* Enters it unless the setting says no. True: go on; a missing part is a warning. */
bool sandbox_rules_enter(struct sandbox *sandbox, const struct options *o,
                         struct log *log);

/* After a reload: a warning for each path of the new settings that the plan does not
 * cover. */
void sandbox_rules_review(const struct sandbox *sandbox, const struct sandbox_rules *c,
                          struct log *log);

/* For `petrel check`: a line on standard error when this system lacks something.
 * False: and it is required. */
bool sandbox_rules_check(const struct options *o);

#endif
