/* `petrel init`: at most seven questions, and the settings for the first mail. */
#ifndef ADMIN_SETUP_INIT_COMMAND_H
#define ADMIN_SETUP_INIT_COMMAND_H

#include "admin/settings/options.h"

/* Functions of other rooms; dispatch.c connects them. */
struct init_helpers {
    /* Whether the daemon would start with them; else one line per error. */
    bool (*check)(const struct options_sources *sources, struct buffer *errors);
    /* Prints faults that receivers will see. */
    int (*examine)(const struct options_sources *sources);
};

/* arguments behind "init". sources name the file; NULL: /etc/petrel/petrel.conf. Returns
 * 0, EX_USAGE (also when answers are missing and nobody can be asked), EX_DATAERR (wrong
 * answers), EX_NOPERM, EX_CANTCREAT (a file is there), or 130 (^C). */
int init_command(int count, char **arguments, const struct options_sources *sources,
                 const struct init_helpers *helpers);

#endif
