/* `petrel complete -- WORD...`: completions of the last word, from the table of commands,
 * the table of settings, and the queue. The scripts in etc/completion ask it. */
#ifndef ADMIN_COMMAND_COMPLETE_H
#define ADMIN_COMMAND_COMPLETE_H

#include "admin/settings/options.h"

enum { COMPLETE_IDS_MAX = 200 };

/* arguments: behind the name; the words behind `petrel`; the last is being typed (perhaps
 * ""). Prints a line for each word that it may become: the word, a tab and a sentence;
 * "@files" for a path; a word that ends in = goes on. The sources are those of the
 * command itself; -c and -o of the words come on top. Returns 0. */
int complete_command(int count, char **arguments,
                     const struct options_sources *sources);

#endif
