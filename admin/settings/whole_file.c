/* Writes a file beside its place, and moves it there. */
#include "admin/settings/whole_file.h"

#include <errno.h>
#include <stdio.h>

static int
whole_file_fill(struct disk *disk, const char *fresh, struct text content,
                unsigned mode, const struct identity *owner)
{
    (void)disk_unlink(disk, fresh); /* of one that was killed */
    int file = disk_create(disk, fresh, mode);
    if (file < 0)
        return file;
    int error = disk_write(disk, file, content);
    if (error == 0)
        error = disk_sync(disk, file);
    disk_close_file(disk, file);
    if (error == 0 && owner != NULL && owner->change)
        error = disk_give(disk, fresh, owner->uid, owner->gid);
    return error;
}

int
whole_file_write(struct disk *disk, const char *name, struct text content,
                 unsigned mode, const struct identity *owner, bool replaces)
{
    char fresh[WHOLE_FILE_NAME_MAX + 1];
    if (snprintf(fresh, sizeof(fresh), "%s.new", name) >= (int)sizeof(fresh))
        return -ENAMETOOLONG;
    int error = whole_file_fill(disk, fresh, content, mode, owner);
    if (error == 0)
        error =
            replaces ? disk_rename(disk, fresh, name) : disk_link(disk, fresh, name);
    if (error != 0 || !replaces)
        (void)disk_unlink(disk, fresh);
    if (error != 0)
        return error;
    error = disk_sync_directory(disk, "");
    if (error != 0 && !replaces)
        (void)disk_unlink(disk, name);
    return error;
}
