/* Files that are whole at any time: keys, passwords, settings. */
#ifndef ADMIN_SETTINGS_WHOLE_FILE_H
#define ADMIN_SETTINGS_WHOLE_FILE_H

#include "base/disk/disk.h"
#include "base/sandbox/identity.h"

enum { WHOLE_FILE_NAME_MAX = 255 }; /* of Linux; NAME.new must fit, too */

/* Durably; owner: NULL or the user to whom it is given. replaces: a file of that name,
 * which has its old content until then; otherwise -EEXIST, and an error leaves nothing.
 * NAME.new is used on the way. 0 or -errno. */
int whole_file_write(struct disk *disk, const char *name, struct text content,
                     unsigned mode, const struct identity *owner, bool replaces);
/* In two steps, for files that change together: makes NAME.new, and moves it to its place,
 * or drops it. An error leaves no NAME.new. */
int whole_file_prepare(struct disk *disk, const char *name, struct text content,
                       unsigned mode, const struct identity *owner)
    __attribute__((warn_unused_result));
int whole_file_place(struct disk *disk, const char *name, bool replaces)
    __attribute__((warn_unused_result));
void whole_file_drop(struct disk *disk, const char *name);

#endif
