/* Writes a file beside its place, and moves it there. */
#include "admin/settings/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void
whole_file_name(const char *name, char fresh[WHOLE_FILE_NAME_MAX + 8])
{
    snprintf(fresh, WHOLE_FILE_NAME_MAX + 8, "%.*s.new", WHOLE_FILE_NAME_MAX, name);
}

void
whole_file_drop(struct disk *disk, const char *name)
{
    char fresh[WHOLE_FILE_NAME_MAX + 8];
    whole_file_name(name, fresh);
    (void)disk_unlink(disk, fresh);
}

int
whole_file_prepare(struct disk *disk, const char *name, struct text content,
                   unsigned mode, const struct identity *owner)
{
    char fresh[WHOLE_FILE_NAME_MAX + 8];
    whole_file_name(name, fresh);
    if (strlen(name) + strlen(".new") > WHOLE_FILE_NAME_MAX)
        return -ENAMETOOLONG;
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
    if (error != 0)
        (void)disk_unlink(disk, fresh);
    return error;
}

int
whole_file_place(struct disk *disk, const char *name, bool replaces)
{
    char fresh[WHOLE_FILE_NAME_MAX + 8];
    whole_file_name(name, fresh);
    int error =
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

int
whole_file_write(struct disk *disk, const char *name, struct text content,
                 unsigned mode, const struct identity *owner, bool replaces)
{
    int error = whole_file_prepare(disk, name, content, mode, owner);
    return error == 0 ? whole_file_place(disk, name, replaces) : error;
}
