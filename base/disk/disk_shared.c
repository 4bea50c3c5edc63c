/* Locks, mapped files and FIFOs, which several processes share. */
#include "base/disk/disk.h"

#include "base/disk/disk_internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SHARED_MODE = 0600 };

/* Without SIGPIPE: it would end a program that only wants to wake another one. */
static int
write_quietly(int file, const char *bytes, size_t size)
{
    struct timespec at_once = {0};
    sigset_t pipe_signal, before;
    int result;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_signal, &before);
    do {
        result = disk_answer((int)write(file, bytes, size));
    } while (result == -EINTR);
    /* The pending signal is taken before the mask is restored: afterwards it would
     * arrive. */
    if (result == -EPIPE && !sigismember(&before, SIGPIPE))
        sigtimedwait(&pipe_signal, NULL, &at_once);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}

/* A regular file for reading and writing, made when it is missing. */
static int
open_shared(struct disk *disk, const char *path)
{
    int file = disk_open_at(disk->directory, path, O_RDWR | O_CREAT | DISK_SAFELY,
                            SHARED_MODE);
    return file < 0 ? file : disk_only_of_type(file, S_IFREG);
}

/* Extends the file to this length and allocates its blocks: a store into a hole of a
 * file on a full disk ends the process (SIGBUS). */
static int
disk_shared_make_space(int file, off_t size)
{
    int error;
    do {
        error = posix_fallocate(file, 0, size);
    } while (error == EINTR);
    return -error;
}

int
disk_lock(struct disk *disk, const char *path, unsigned first, unsigned count)
{
    /* The lock belongs to the open file, not to the process: two handles of one
     * process exclude each other, and closing another handle of the file releases
     * nothing. */
    struct flock range = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    int file = open_shared(disk, path);
    int result;
    assert(count > 0); /* 0 would lock everything from here on */
    if (file < 0)
        return file;
    do {
        result = disk_answer(fcntl(file, F_OFD_SETLK, &range));
    } while (result == -EINTR);
    if (result == -EACCES) /* some file systems return this instead */
        result = -EWOULDBLOCK;
    return result < 0 ? disk_close_with(file, result) : file;
}

void *
disk_map(struct disk *disk, const char *path, size_t size)
{
    int file = open_shared(disk, path);
    void *map = MAP_FAILED;
    assert(size > 0);
    if (file < 0)
        return NULL;
    if (disk_shared_make_space(file, (off_t)size) == 0)
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return map == MAP_FAILED ? NULL : map;
}

void
disk_unmap(struct disk *disk, void *map, size_t size)
{
    (void)disk;
    if (map)
        munmap(map, size);
}

int
disk_open_fifo(struct disk *disk, const char *path)
{
    /* For writing too: without a writer the descriptor would be at its end of file,
     * and so ready forever, once the first injector has closed it. */
    int file = disk_open_at(disk->directory, path, O_RDWR | DISK_SAFELY, 0);
    return file < 0 ? file : disk_only_of_type(file, S_IFIFO);
}

int
disk_pull_fifo(struct disk *disk, const char *path)
{
    int file = disk_open_at(disk->directory, path, O_WRONLY | DISK_SAFELY, 0);
    int result;
    if (file >= 0)
        file = disk_only_of_type(file, S_IFIFO);
    if (file < 0)
        return file;
    result = write_quietly(file, "!", 1);
    /* Its only reader closed the FIFO after the open. */
    if (result == -EPIPE)
        result = -ENXIO;
    if (result > 0 || result == -EAGAIN) /* full: the reader is about to wake up */
        result = 0;
    return disk_close_with(file, result);
}
