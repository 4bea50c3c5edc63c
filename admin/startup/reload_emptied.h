/* Files of settings that are empty at a reload and were not before: somebody is writing
 * them. As settings they would mean the defaults: mail would go by MX. */
#ifndef ADMIN_STARTUP_RELOAD_EMPTIED_H
#define ADMIN_STARTUP_RELOAD_EMPTIED_H

#include "base/settings/settings.h"

enum { RELOAD_EMPTIED_MAX = 1024 };

/* True: the settings file has no setting any more (or is not there), or the file that
 * has a value (`key_file`) is empty; why gets the error, with the file and the fix. Both
 * have been applied. */
bool reload_is_emptied(const struct settings *was, const struct settings *now,
                       char why[RELOAD_EMPTIED_MAX])
    __attribute__((warn_unused_result));

#endif
