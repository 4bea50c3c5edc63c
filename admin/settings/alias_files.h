/* The files that `aliases` names, and those that :include: names in them: reads them into
 * the table of aliases, and notices that they have changed. */
#ifndef ADMIN_SETTINGS_ALIAS_FILES_H
#define ADMIN_SETTINGS_ALIAS_FILES_H

#include "admin/settings/options.h"
#include "sched/route/aliases.h"

enum {
    ALIAS_FILES_MAX = 1000, /* all of them */
    ALIAS_FILES_SIZE_MAX = 16 * 1024 * 1024,
    ALIAS_FILES_INCLUDE_MAX = 1024 * 1024 /* bytes of one that is included */
};

struct alias_files;

/* Fills *table, NULL where neither `aliases` nor `root` is set, and *files with the
 * files read, also after errors. False with one line per error: "aliases: ..." or "root:
 * ...". A file that all users can write is an error: its writers decide where mail
 * goes. */
bool alias_files_read(const struct options *options, const struct route_table *routes,
                      struct aliases **table, struct alias_files **files,
                      struct buffer *errors) __attribute__((warn_unused_result));
/* The same in steps, for a loop that serves others: each file as a whole, and the table as
 * aliases_begin() has it. NULL: neither is set; also below. All but that must stay. */
struct alias_files_reading;
struct alias_files_reading *alias_files_begin(const struct options *options,
                                              const struct route_table *routes,
                                              struct buffer *errors);
/* True: there is nothing more to read. */
bool alias_files_go_on(struct alias_files_reading *reading)
    __attribute__((warn_unused_result));
/* As alias_files_read(), and sets *reading to NULL. One that was given up has no table. */
bool alias_files_end(struct alias_files_reading **reading, struct aliases **table,
                     struct alias_files **files) __attribute__((warn_unused_result));
/* Gives it up. */
void alias_files_stop(struct alias_files_reading **reading);
/* Whether one of them is another than it was when it was read. One that was written less
 * than two seconds ago may be half written, and has not changed yet. files may be NULL,
 * here and below. */
bool alias_files_have_changed(const struct alias_files *files, int64_t now_ms);
void alias_files_each(const struct alias_files *files,
                      void (*each)(void *context, const char *path), void *context);
void alias_files_free(struct alias_files **files);

/* "nobody gets mail for root and postmaster: set root", while their mail is refused: a line
 * for each cause. */
void alias_files_each_nobody(const struct route_table *routes, struct aliases *table,
                             void (*each)(void *context, const char *line),
                             void *context);
/* Logs settings that are allowed, but probably wrong: a file that belongs to another
 * user, or that its group can write; names in domains that are not local; `root`
 * without a local domain that mail of cron has; no reader of the mail for root or
 * postmaster. */
void alias_files_warn(const struct options *options, const struct route_table *routes,
                      struct aliases *table, const struct alias_files *files,
                      struct log *log);

#endif
