/* Files of states of accounts. */
#include "base/http/tokens_file.h"

#include "base/disk/disk.h"

#include <errno.h>
#include <stdio.h>

int64_t
tokens_file_read(struct disk *spool, const char *path,
                 char content[OAUTH_STATE_MAX + 1], int64_t *changed_ms)
{
    struct disk_info info;
    int file = disk_open_file(spool, path, false);
    if (file < 0)
        return file;
    int64_t length = disk_read(spool, file, 0, content, OAUTH_STATE_MAX + 1);
    if (disk_file_info(spool, file, &info) == 0)
        *changed_ms = info.changed_ms;
    disk_close_file(spool, file);
    return length > OAUTH_STATE_MAX ? -EFBIG : length;
}

/* Content, then name. The name is new: it must not be taken. */
static int
tokens_file_write_new(struct disk *spool, const char *fresh, const char *path,
                      struct text content)
{
    (void)disk_unlink(spool, fresh);
    int file = disk_create(spool, fresh, 0600);
    if (file < 0)
        return file;
    int result = disk_write(spool, file, content);
    if (result == 0)
        result = disk_sync(spool, file);
    disk_close_file(spool, file);
    if (result == 0)
        result = disk_rename(spool, fresh, path);
    if (result < 0)
        (void)disk_unlink(spool, fresh);
    return result;
}

int
tokens_file_write(struct disk *spool, const char *path, struct text content)
{
    char fresh[64];
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    int result = disk_make_directory(spool, "oauth", 0700);
    if (result == 0)
        result = tokens_file_write_new(spool, fresh, path, content);
    if (result == 0)
        result = disk_sync_directory(spool, "oauth");
    if (result == 0)
        result = disk_sync_directory(spool, "");
    return result;
}
