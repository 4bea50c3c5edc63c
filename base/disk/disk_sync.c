/* Syncs: blocking ones, and ones in the background by native AIO.
 *
 * A sync that has begun is in `begun` until the kernel reports it, then in `over` until
 * done is called; in_flight counts both lists. done is never called in the turn in
 * which its sync began (the first law of the loop), even if the disk is faster: hence
 * the turn in struct disk_sync. The eventfd brings results into the loop; the loop
 * waits for the kernel only when the ring begins, breaks or ends. A broken ring is
 * never used again, and syncs block from then on. */
#include "base/disk/disk.h"

#include "base/disk/disk_internal.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

enum {
    RING = 256, /* syncs in flight; further ones block */
    REAPED_AT_ONCE = 32,
    SUBMITTED_AT_ONCE = 64,
    SIGNAL_MS = 1000, /* without a signal by then AIO counts as unusable */
};

struct disk_ring {
    aio_context_t context;
    int signal; /* an eventfd: something is over */
    struct loop *loop;
    struct disk_pace *pace; /* of the disk */
    struct loop_watch *watch;
    uint64_t turn;                 /* counted by ourselves */
    size_t in_flight;              /* begun; done was not called yet */
    struct disk_sync *begun;       /* of those, the unfinished ones */
    struct disk_sync *over, *last; /* and the finished ones */
    struct loop_task rest;
    bool broken; /* no further submissions */
    bool closed;
};

/* --- The system calls, for which the C library has no names ----------------------- */

static long
disk_sync_submit(const struct disk_ring *ring, const int *files, bool data_only,
                 struct disk_sync *const *syncs, size_t count)
{
    struct iocb calls[SUBMITTED_AT_ONCE], *list[SUBMITTED_AT_ONCE];
    if (count > SUBMITTED_AT_ONCE)
        count = SUBMITTED_AT_ONCE;
    for (size_t i = 0; i < count; i++) {
        calls[i] = (struct iocb){
            .aio_data = (uintptr_t)syncs[i],
            .aio_lio_opcode = data_only ? IOCB_CMD_FDSYNC : IOCB_CMD_FSYNC,
            .aio_fildes = (uint32_t)files[i],
            .aio_flags = IOCB_FLAG_RESFD,
            .aio_resfd = (uint32_t)ring->signal,
        };
        list[i] = &calls[i];
    }
    return syscall(SYS_io_submit, ring->context, (long)count, list);
}

/* Takes finished syncs, after waiting for at least this number; -1 if that is not
 * allowed. */
static long
reap(const struct disk_ring *ring, long at_least, struct io_event *events, long size)
{
    long got;
    do {
        got = syscall(SYS_io_getevents, ring->context, at_least, size, events, NULL);
    } while (got < 0 && errno == EINTR);
    return got;
}

/* --- Time ------------------------------------------------------------------------- */

static void
disk_sync_took(struct disk_pace *pace, int64_t us)
{
    static const int64_t bounds_us[DISK_PACE_BOUNDS] = {100, 1000, 10000, 100000,
                                                        1000000};
    size_t i = 0;
    while (i < DISK_PACE_BOUNDS && us > bounds_us[i])
        i++;
    pace->syncs[i]++;
    pace->sum_us += us;
}

const struct disk_pace *
disk_pace(const struct disk *disk)
{
    return &disk->pace;
}

/* --- Results ---------------------------------------------------------------------- */

/* Calls done in the order in which the syncs finished. Syncs begun in this same turn
 * wait for the next one. */
static void
disk_sync_report(void *context)
{
    struct disk_ring *ring = context;
    /* A callback may begin other syncs, or close the disk. */
    while (!ring->closed && ring->over && ring->over->turn != ring->turn) {
        struct disk_sync *first = ring->over;

        assert(ring->in_flight > 0);
        LL_DELETE(ring->over, first);
        ring->in_flight--;
        first->done(first->context, first->result);
    }
    if (!ring->closed && ring->over)
        loop_post(ring->loop, &ring->rest, disk_sync_report, ring);
}

static void
add_over(struct disk_ring *ring, struct disk_sync *sync, int result)
{
    DL_DELETE(ring->begun, sync);
    disk_sync_took(ring->pace, loop_clock_us() - sync->began_us);
    sync->next = NULL;
    sync->result = result;
    /* disk_sync_report() leaves `last` as it is when it empties the list. */
    if (!ring->over)
        ring->last = NULL;
    LL_APPEND_ELEM(ring->over, ring->last, sync);
    ring->last = sync;
}

/* The kernel reports no more. Syncs in flight may have succeeded or not, and a second
 * sync might not return the error of the first one: all of them have failed. */
static void
disk_sync_give_up(struct disk_ring *ring)
{
    ring->broken = true;
    syscall(SYS_io_destroy, ring->context); /* waits until no buffer is in use */
    while (ring->begun)
        add_over(ring, ring->begun, -EIO);
}

/* Moves finished syncs into our list, after waiting for at least this number. */
static void
disk_sync_gather(struct disk_ring *ring, long at_least)
{
    struct io_event events[REAPED_AT_ONCE];
    long got;
    if (ring->broken)
        return;
    do {
        got = reap(ring, at_least, events, REAPED_AT_ONCE);
        for (long i = 0; i < got; i++)
            add_over(ring, (struct disk_sync *)(uintptr_t)events[i].data,
                     (int)events[i].res);
        if (got < at_least) {
            disk_sync_give_up(ring);
            return;
        }
        at_least = 0;
    } while (got == REAPED_AT_ONCE);
}

static void
disk_sync_on_signal(void *context, int happened)
{
    struct disk_ring *ring = context;
    eventfd_t count;
    /* First, so that syncs that finish from now on signal again. */
    (void)happened;
    (void)eventfd_read(ring->signal, &count);
    disk_sync_gather(ring, 0);
    disk_sync_report(ring);
}

static void
at_end_of_turn(void *context)
{
    struct disk_ring *ring = context;
    ring->turn++;
}

/* --- The ring --------------------------------------------------------------------- */

/* Syncs the directory by every call that will be needed. Kernels before 4.18 have no
 * sync in the background, and some sandboxes refuse these calls. */
static bool
works(const struct disk_ring *ring, int directory)
{
    struct pollfd asked = {.fd = ring->signal, .events = POLLIN};
    struct io_event event;
    eventfd_t count;
    struct disk_sync *none = NULL;
    if (disk_sync_submit(ring, &directory, false, &none, 1) != 1)
        return false;
    return reap(ring, 1, &event, 1) == 1 && event.res == 0 &&
           poll(&asked, 1, SIGNAL_MS) == 1 && eventfd_read(ring->signal, &count) == 0;
}

static struct disk_ring *
ring_new(struct loop *loop, int directory)
{
    struct disk_ring *ring = memory_new(sizeof(*ring));
    ring->loop = loop;
    ring->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->signal >= 0 && syscall(SYS_io_setup, RING, &ring->context) == 0) {
        if (works(ring, directory))
            return ring;
        syscall(SYS_io_destroy, ring->context);
    }
    if (ring->signal >= 0)
        close(ring->signal);
    free(ring);
    return NULL;
}

void
disk_ring_free(struct disk_ring **ring)
{
    struct disk_ring *r = *ring;
    if (!r)
        return;
    r->closed = true;
    loop_unpost(r->loop, &r->rest);
    loop_at_end_remove(r->loop, LOOP_SEND_DISK, at_end_of_turn, r);
    loop_watch_free(&r->watch);
    if (!r->broken)
        syscall(SYS_io_destroy, r->context);
    close(r->signal);
    /* This may run within one of its callbacks. */
    loop_release(r->loop, free, r);
    *ring = NULL;
}

int
disk_sync_directory_at(int directory, const char *path)
{
    int file = disk_open_at(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return file < 0 ? file : disk_close_with(file, disk_answer(fsync(file)));
}

int
disk_sync(struct disk *disk, int file)
{
    int64_t began_us = loop_clock_us();
    int result = disk_answer(fsync(file));
    disk_sync_took(&disk->pace, loop_clock_us() - began_us);
    return result;
}

int
disk_sync_data(struct disk *disk, int file)
{
    int64_t began_us = loop_clock_us();
    int result = disk_answer(fdatasync(file));
    disk_sync_took(&disk->pace, loop_clock_us() - began_us);
    return result;
}

int
disk_sync_directory(struct disk *disk, const char *path)
{
    int64_t began_us = loop_clock_us();
    int result = disk_sync_directory_at(disk->directory, path);
    disk_sync_took(&disk->pace, loop_clock_us() - began_us);
    return result;
}

enum disk_syncing
disk_sync_way(const struct disk *disk)
{
    return disk->ring && !disk->ring->broken ? DISK_SYNC_AIO : DISK_SYNC_BLOCKS;
}

enum disk_syncing
disk_sync_on(struct disk *disk, struct loop *loop)
{
    struct disk_ring *ring;
    if (disk->ring)
        return disk_sync_way(disk);
    ring = ring_new(loop, disk->directory);
    if (!ring)
        return DISK_SYNC_BLOCKS;
    ring->watch =
        loop_watch_new(loop, ring->signal, LOOP_READ, disk_sync_on_signal, ring);
    loop_at_end(loop, LOOP_SEND_DISK, at_end_of_turn, ring);
    ring->pace = &disk->pace;
    disk->ring = ring;
    return DISK_SYNC_AIO;
}

/* Submits the first of them with as many others as the system takes. 0: none. */
static size_t
disk_sync_begin_some(struct disk_ring *ring, const int *files, bool data_only,
                     struct disk_sync *const *syncs, size_t count)
{
    if (!ring || ring->broken || ring->in_flight == RING)
        return 0;
    if (count > RING - ring->in_flight)
        count = RING - ring->in_flight;
    int64_t began_us = loop_clock_us();
    long taken = disk_sync_submit(ring, files, data_only, syncs, count);
    for (long i = 0; i < taken; i++) {
        DL_APPEND(ring->begun, syncs[i]);
        ring->in_flight++;
        syncs[i]->turn = ring->turn;
        syncs[i]->began_us = began_us;
    }
    return taken > 0 ? (size_t)taken : 0;
}

void
disk_sync_begin_many(struct disk *disk, const int *files, bool data_only,
                     struct disk_sync *const *syncs, int *results, size_t count)
{
    for (size_t i = 0; i < count;) {
        assert(syncs[i]->done);
        size_t begun = disk_sync_begin_some(disk->ring, files + i, data_only, syncs + i,
                                            count - i);
        for (size_t end = i + begun; i < end; i++)
            results[i] = DISK_SYNCING;
        /* A sync that cannot be submitted has not begun: the blocking call does it, or
         * returns the error. */
        if (begun == 0) {
            results[i] =
                data_only ? disk_sync_data(disk, files[i]) : disk_sync(disk, files[i]);
            i++;
        }
    }
}

int
disk_sync_begin(struct disk *disk, int file, bool data_only, struct disk_sync *sync)
{
    int result;
    disk_sync_begin_many(disk, &file, data_only, &sync, &result, 1);
    return result;
}

void
disk_sync_wait(struct disk *disk)
{
    struct disk_ring *ring = disk->ring;
    while (ring && !ring->closed && ring->in_flight > 0) {
        if (!ring->over)
            disk_sync_gather(ring, 1);
        ring->turn++; /* this turn's are reported, too */
        disk_sync_report(ring);
    }
}

int
disk_open_directory(struct disk *disk, const char *path)
{
    return disk_open_at(disk->directory, path, O_RDONLY | O_DIRECTORY | DISK_SAFELY, 0);
}
