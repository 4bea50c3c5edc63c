/* Small files in one call, and errors in words: for the door and for its stand-in. */
#include "base/disk/disk.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READ_BY_OWNER = 0400, USER_MAX = 64 };

int64_t
disk_read_at(struct disk *disk, const char *path, int64_t offset, char *to, size_t size)
{
    int file = disk_open_file(disk, path, false);
    if (file < 0)
        return file;
    int64_t got = disk_read(disk, file, offset, to, size);
    disk_close_file(disk, file);
    return got;
}

int
disk_write_new(struct disk *disk, const char *path, unsigned mode, struct text text)
{
    int file = disk_create(disk, path, mode);
    if (file < 0)
        return file;
    int result = disk_write(disk, file, text);
    if (result == 0)
        result = disk_sync(disk, file);
    disk_close_file(disk, file);
    return result;
}

const char *
disk_explain(int error)
{
    switch (error) {
    case -EINVAL: /* disk_read_regular() */
    case -ENXIO:  /* the open of a socket */
        return "it is not a regular file";
    default:
        return strerror(-error);
    }
}

static const char *
user_name(unsigned uid, char out[USER_MAX])
{
    const struct passwd *entry = getpwuid(uid);
    if (entry != NULL)
        snprintf(out, USER_MAX, "%s", entry->pw_name);
    else
        snprintf(out, USER_MAX, "%u", uid);
    return out;
}

/* The last part of the path that can be inspected closes the file. */
const char *
disk_explain_closed(const char *path, char out[DISK_REASON_MAX])
{
    char barrier[DISK_REASON_MAX / 4], who[USER_MAX], owner[USER_MAX];
    struct disk_info info;
    size_t length = strlen(path);
    out[0] = '\0';
    if (length >= sizeof(barrier))
        return out;
    memcpy(barrier, path, length + 1);
    while (disk_look(barrier, &info) != 0) {
        char *slash = strrchr(barrier, '/');
        if (slash == NULL || slash == barrier)
            return out;
        *slash = '\0';
    }
    bool is_file = strlen(barrier) == length;
    if (geteuid() == 0 ||
        (is_file && info.owner == geteuid() && (info.mode & READ_BY_OWNER) != 0))
        return out;
    user_name(geteuid(), who);
    user_name(info.owner, owner);
    if (is_file)
        snprintf(
            out, DISK_REASON_MAX,
            "; it belongs to %s (mode %04o): `chown %s %s` if the daemon runs as %s",
            owner, info.mode, who, path, who);
    else
        snprintf(out, DISK_REASON_MAX,
                 "; its directory %s belongs to %s (mode %04o): move it elsewhere, or "
                 "`chmod o+x %s`",
                 barrier, owner, info.mode, barrier);
    return out;
}

const char *
disk_explain_file(const char *path, int error, char out[DISK_REASON_MAX])
{
    char closed[DISK_REASON_MAX] = "";
    if (error == -EACCES)
        disk_explain_closed(path, closed);
    snprintf(out, DISK_REASON_MAX, "%s%.*s", disk_explain(error), DISK_REASON_MAX - 128,
             closed);
    return out;
}
