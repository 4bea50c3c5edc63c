/* Shared by the files of base/disk/; no other file includes this header.
 *
 * disk.c: directories, files, names. disk_sync.c: syncs. disk_shared.c: locks, maps,
 * FIFOs. disk_traits.c: properties of the file system. */
#ifndef BASE_DISK_DISK_INTERNAL_H
#define BASE_DISK_DISK_INTERNAL_H

#include "base/disk/disk.h"

#include <fcntl.h>
#include <sys/types.h>

/* Follows no symbolic link, does not wait for the other end of a FIFO, and is not
 * inherited. */
#define DISK_SAFELY (O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

struct disk_ring;

struct disk {
    int directory;
    char *path;
    struct disk_ring *ring; /* NULL: syncs block */
    struct disk_pace pace;
};

/* The result of a system call, or -errno. */
int disk_answer(int result);
int disk_open_at(int directory, const char *path, int flags, unsigned mode);
/* Closes file and returns result. */
int disk_close_with(int file, int result);
/* Returns file if it is of this type (S_IFREG, ...); otherwise closes it: -EINVAL. */
int disk_only_of_type(int file, mode_t type);
int disk_sync_directory_at(int directory, const char *path);
/* Waits for the syncs in flight and forgets them. */
void disk_ring_free(struct disk_ring **ring); /* may be NULL */

#endif
