/* The start of small files, read together.
 *
 * A read that must wait for the device is not begun but announced, so that the device
 * has many of them at a time. A file in memory costs three system calls. */
#include "base/disk/disk.h"

#include "base/disk/disk_internal.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* Systems, containers and file systems that cannot tell. */
static bool
cannot_tell(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EPERM || error == EINVAL;
}

/* The kind of the file is not asked: nothing but a regular file has bytes at an offset,
 * except for a few devices. */
int64_t
disk_peek(struct disk *disk, const char *path, char *to, size_t size, int *file)
{
    struct iovec piece = {.iov_base = to, .iov_len = size};
    int opened = disk_open_at(disk->directory, path, O_RDONLY | DISK_SAFELY, 0);
    if (opened < 0)
        return opened;
    ssize_t got = preadv2(opened, &piece, 1, 0, RWF_NOWAIT);
    if (got < 0 && cannot_tell(errno))
        got = pread(opened, to, size, 0);
    if (got < 0 && errno == EAGAIN) {
        (void)readahead(opened, 0, size);
        *file = opened;
        return -EAGAIN;
    }
    return disk_close_with(opened, got < 0 ? -errno : (int)got);
}
