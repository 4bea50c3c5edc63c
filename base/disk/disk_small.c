/* Small files in one call, and errors in words: for the door and for its stand-in. */
#include "base/disk/disk.h"

#include <errno.h>
#include <string.h>

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
