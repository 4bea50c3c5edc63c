/* What the files of disk.h share; nobody else includes it.
 *
 * disk.c: directories, files, names. disk_sync.c: making them durable. disk_shared.c:
 * locks, maps, FIFOs. disk_traits.c: what the file system is like. */
#ifndef BASE_DISK_DISK_INTERNAL_H
#define BASE_DISK_DISK_INTERNAL_H

#include "base/disk/disk.h"

#include <fcntl.h>
#include <sys/types.h>

/* Never a symbolic link, never a wait for a FIFO's other end, never left to a child. */
#define DISK_SAFELY (O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)

struct disk_ring;

struct disk {
    int directory;
    char *path;
    struct disk_ring *ring; /* NULL: syncs block */
};

/* The result of a system call, or -errno. */
int disk_answer(int result);
int disk_open_at(int directory, const char *path, int flags, unsigned mode);
/* Closes file and returns result. */
int disk_close_with(int file, int result);
/* file, or -EINVAL and it is closed when it is of another type (S_IFREG, ...). */
int disk_only_of_type(int file, mode_t type);
int disk_sync_directory_at(int directory, const char *path);
/* Waits for the syncs in flight and forgets them. */
void disk_ring_free(struct disk_ring **ring); /* may be NULL */

#endif
