/* Syncs in the background: told once, in a later turn, with the system's own answer. */
#include "base/disk/disk.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/support/tap.h"
#include "t/support/folder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REAPED = 32, RING = 256, MANY = 1000, TURNS_MAX = 20000, HANGS_S = 600 };

static char *root; /* a directory of this test's own */

/* --- The system, which can be told to refuse -------------------------------------- */

static struct {
    long fail; /* the number of the call that fails */
    int error;
    long times;                     /* so often; 0: always */
    long result;                    /* what syncs say, if not 0 */
    bool silent;                    /* no signal when one is over */
    long setups, submits, destroys; /* calls that went through */
    long syncs, data_syncs;         /* that block */
    int operation;                  /* of the last submit */
    int signal;                     /* and its eventfd */
} system_is;

static bool
is_allowed(long number)
{
    if (number != system_is.fail)
        return true;
    errno = system_is.error;
    if (--system_is.times == 0)
        system_is.fail = -1;
    return false;
}

/* The C library's, through which base/disk/disk_sync.c makes its calls. */
long
syscall(long number, ...)
{
    long (*real)(long, ...) = NULL;
    long a[5] = {0}, result;
    int count = number == SYS_io_setup       ? 2
                : number == SYS_io_submit    ? 3
                : number == SYS_io_destroy   ? 1
                : number == SYS_io_getevents ? 5
                                             : -1;
    va_list arguments;
    if (count < 0) /* openat2: base/disk/disk.c does without */
        return errno = ENOSYS, -1;
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_start(arguments, number);
    for (int i = 0; i < count; i++)
        a[i] = va_arg(arguments, long);
    va_end(arguments);
    if (!is_allowed(number))
        return -1;
    if (number == SYS_io_submit) {
        struct iocb *asked = *(struct iocb **)a[2];

        system_is.operation = asked->aio_lio_opcode;
        system_is.signal = (int)asked->aio_resfd;
        asked->aio_flags = system_is.silent ? 0 : asked->aio_flags;
    }
    result = real(number, a[0], a[1], a[2], a[3], a[4]);
    system_is.setups += number == SYS_io_setup && result == 0;
    system_is.submits += number == SYS_io_submit && result == 1;
    system_is.destroys += number == SYS_io_destroy && result == 0;
    if (number == SYS_io_getevents && system_is.result)
        for (long i = 0; i < result; i++)
            ((struct io_event *)a[3])[i].res = system_is.result;
    return result;
}

int
fsync(int file)
{
    int (*real)(int) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    system_is.syncs++;
    return real(file);
}

int
fdatasync(int file)
{
    int (*real)(int) = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    system_is.data_syncs++;
    return real(file);
}

/* --- A loop that counts, and owners that hear ------------------------------------- */

struct world {
    struct loop *loop;
    struct disk *disk;
    int turn; /* that runs, or ran last */
    bool ending;
    int told; /* in all */
    bool out_of_turn;
    int file;
};

struct owner {
    struct world *world;
    struct disk_sync sync;
    int begun_in, told, result;
    int again; /* so many times more */
    bool closes, waits;
};

static void
at_end(void *context)
{
    ((struct world *)context)->ending = true;
}

static void
at_very_end(void *context)
{
    struct world *w = context;

    w->turn++;
    w->ending = false;
}

static void
world_start(struct world *w)
{
    memset(&system_is, 0, sizeof(system_is));
    system_is.fail = -1;
    *w = (struct world){.loop = loop_new(), .turn = 1};
    if (disk_open(&w->disk, root, false) < 0)
        abort();
    loop_at_end(w->loop, LOOP_SYNC_JOURNAL, at_end, w);
    w->file = disk_create(w->disk, "file", 0600);
    if (w->file < 0 || disk_write(w->disk, w->file, TEXT("content")) < 0)
        abort();
}

static enum disk_syncing
world_on(struct world *w)
{
    enum disk_syncing way = disk_sync_on(w->disk, w->loop);
    loop_at_end(w->loop, LOOP_SEND_DISK, at_very_end, w);
    return way;
}

static void
world_end(struct world *w)
{
    ok_named(!w->out_of_turn,
             "nobody heard in the turn of the beginning, or at its end");
    close(w->file);
    if (w->disk)
        disk_unlink(w->disk, "file");
    disk_close(&w->disk);
    loop_free(&w->loop);
    is_number(system_is.destroys, system_is.setups, "every context is destroyed");
}

static int begin(struct owner *o, int file, bool data_only);

static void
on_done(void *context, int result)
{
    struct owner *o = context;
    struct world *w = o->world;

    o->told++;
    o->result = result;
    w->told++;
    w->out_of_turn = w->out_of_turn || w->ending || o->begun_in == w->turn;
    if (o->again-- > 0 && begin(o, w->file, true) != DISK_SYNCING)
        abort();
    if (o->waits)
        disk_sync_wait(w->disk);
    if (o->closes)
        disk_close(&w->disk);
}

static int
begin(struct owner *o, int file, bool data_only)
{
    int before = o->told;
    int result;
    o->sync.done = on_done;
    o->sync.context = o;
    o->begun_in = o->world->turn;
    result = disk_sync_begin(o->world->disk, file, data_only, &o->sync);
    if (o->told != before)
        abort();
    return result;
}

static struct owner *
claims_new(struct world *w, size_t count)
{
    struct owner *all = memory_array(count, sizeof(*all));

    for (size_t i = 0; i < count; i++)
        all[i].world = w;
    return all;
}

static void
turns_until_told(struct world *w, int told)
{
    for (int i = 0; i < TURNS_MAX && w->told < told; i++)
        loop_turn(w->loop, 100);
}

/* Until so many are over of which the loop has not heard, and will. */
static void
wait_over(eventfd_t count)
{
    struct pollfd asked = {.fd = system_is.signal, .events = POLLIN};
    eventfd_t over = 0, more = 0;
    while (over < count && poll(&asked, 1, HANGS_S * 1000) == 1 &&
           eventfd_read(system_is.signal, &more) == 0)
        over += more;
    if (over < count || eventfd_write(system_is.signal, over) < 0)
        abort();
}

/* --- Without the loop ------------------------------------------------------------- */

/* Checks for every disk whose syncs block. */
static void
blocks(struct world *w, const char *why)
{
    struct owner o = {.world = w};
    int directory = disk_open_directory(w->disk, "");

    is_number(disk_sync_way(w->disk), DISK_SYNC_BLOCKS, why);
    system_is.syncs = system_is.data_syncs = 0;
    is_number(begin(&o, w->file, true), 0, "a sync of data is over at once");
    is_number(system_is.data_syncs, 1, "it is fdatasync()");
    is_number(begin(&o, w->file, false), 0, "so is one of everything");
    is_number(begin(&o, directory, false), 0, "so is one of a directory");
    is_number(system_is.syncs, 2, "these are fsync()");
    is_number(begin(&o, 1 << 20, true), -EBADF, "a closed file says so");
    disk_sync_wait(w->disk);
    loop_turn(w->loop, 0);
    loop_turn(w->loop, 0);
    is_number(o.told, 0, "and nobody hears");
    disk_close_file(w->disk, directory);
}

TEST(blocks)
{
    struct world w;

    world_start(&w);
    blocks(&w, "without disk_sync_on() syncs block");
    is_number(system_is.submits, 0, "by no other means");
    world_end(&w);
}

TEST(refused)
{
    static const struct {
        long call;
        int error;
        const char *why;
    } rows[] = {
        {SYS_io_setup,     ENOSYS, "a kernel without AIO"            },
        {SYS_io_setup,     EPERM,  "a sandbox that forbids io_setup" },
        {SYS_io_setup,     EAGAIN, "too many contexts in the system" },
        {SYS_io_submit,    EINVAL, "a kernel whose AIO cannot sync"  },
        {SYS_io_submit,    EPERM,  "a sandbox that forbids io_submit"},
        {SYS_io_getevents, ENOSYS, "one that forbids io_getevents"   },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct world w;
        int before;

        world_start(&w);
        before = folder_descriptors();
        system_is.fail = rows[i].call;
        system_is.error = rows[i].error;
        is_number(world_on(&w), DISK_SYNC_BLOCKS, rows[i].why);
        is_number(folder_descriptors(), before, "no descriptor is left over");
        blocks(&w, "makes syncs block");
        world_end(&w);
    }
}

/* The system that could, and then cannot: owners hear -EIO, and it goes on. */
TEST(broken)
{
    for (int way = 0; way < 2; way++) {
        struct world w;
        struct owner *o;

        world_start(&w);
        ok(world_on(&w) == DISK_SYNC_AIO);
        o = claims_new(&w, 3);
        for (int i = 0; i < 3; i++)
            ok(begin(&o[i], w.file, i > 0) == DISK_SYNCING);
        system_is.fail = SYS_io_getevents;
        system_is.error = EIO;
        system_is.times = 1;
        w.turn += way;
        if (way == 0)
            turns_until_told(&w, 3);
        else
            disk_sync_wait(w.disk);
        is_number(w.told, 3, "each is told");
        ok_named(o[0].result == -EIO && o[1].result == -EIO && o[2].result == -EIO,
                 "that nobody knows whether it is durable");
        blocks(&w, "then syncs block");
        ok(disk_sync_on(w.disk, w.loop) == DISK_SYNC_BLOCKS);
        world_end(&w);
        free(o);
    }
}

TEST(useless)
{
    struct world w;

    world_start(&w);
    system_is.silent = true;
    is_number(world_on(&w), DISK_SYNC_BLOCKS, "AIO that never signals is none");
    world_end(&w);

    world_start(&w);
    system_is.result = -EIO;
    is_number(world_on(&w), DISK_SYNC_BLOCKS, "nor is one whose first sync fails");
    system_is.result = 0;
    blocks(&w, "so syncs block");
    world_end(&w);
}

TEST(open_directory)
{
    struct world w;
    int directory;

    world_start(&w);
    directory = disk_open_directory(w.disk, "");
    ok_named(directory >= 0, "the disk as a handle");
    disk_close_file(w.disk, directory);
    is_number(disk_open_directory(w.disk, "missing"), -ENOENT, "a missing directory");
    is_number(disk_open_directory(w.disk, "file"), -ENOTDIR, "a file is none");
    is_number(symlink(".", "link"), 0, "a link to one");
    is_number(disk_open_directory(w.disk, "link"), -ENOTDIR, "is not followed");
    disk_unlink(w.disk, "link");
    world_end(&w);
}

/* --- With it ---------------------------------------------------------------------- */

static void
test_one(void)
{
    struct world w;
    struct owner o = {.world = &w};
    int64_t before_us;
    int directory;

    world_start(&w);
    is_number(world_on(&w), DISK_SYNC_AIO, "syncs go on in the background");
    is_number(disk_sync_way(w.disk), DISK_SYNC_AIO, "and it knows");
    is_number(disk_sync_on(w.disk, w.loop), DISK_SYNC_AIO, "asking again is no harm");
    is_number(system_is.setups, 1, "nor does anything");
    system_is.submits = 0;
    o.result = 77;
    is_number(begin(&o, w.file, true), DISK_SYNCING, "a sync of data begins");
    is_number(system_is.operation, IOCB_CMD_FDSYNC, "as one of data alone");
    turns_until_told(&w, 1);
    is_number(o.told, 1, "and its owner hears");
    is_number(o.result, 0, "that it succeeded");
    is_number(begin(&o, w.file, false), DISK_SYNCING, "the same for one of everything");
    is_number(system_is.operation, IOCB_CMD_FSYNC, "which it is");
    turns_until_told(&w, 2);
    is_number(o.told, 2, "with the same struct");
    directory = disk_open_directory(w.disk, "");
    is_number(begin(&o, directory, false), DISK_SYNCING, "and for a directory");
    turns_until_told(&w, 3);
    is_number(o.told == 3 && o.result == 0, 1, "which succeeds");
    disk_close_file(w.disk, directory);
    for (int i = 0; i < 5; i++)
        loop_turn(w.loop, 0);
    is_number(o.told, 3, "and nobody hears twice");
    before_us = loop_clock_us();
    loop_turn(w.loop, 50);
    ok_named(loop_clock_us() - before_us > 40000, "nor does it keep the loop awake");
    is_number(system_is.submits, 3, "one call each");
    is_number(system_is.syncs + system_is.data_syncs, 0, "none of which blocks");
    world_end(&w);
}

static void
test_many(void)
{
    struct world w;
    struct owner *all = claims_new(&w, MANY);
    int begun = 0, over = 0, once = 0, good = 0, wrong = 0;

    world_start(&w);
    world_on(&w);
    for (int i = 0; i < MANY; i++) {
        int result = begin(&all[i], w.file, i % 2 == 0);

        begun += result == DISK_SYNCING;
        over += result == 0;
        all[i].result = result == DISK_SYNCING ? 77 : 0;
        all[i].told = result == DISK_SYNCING ? 0 : 1;
    }
    is_number(begun, RING, "as many at once as the ring holds");
    is_number(over, MANY - RING, "the others are over at once");
    is_number(system_is.syncs + system_is.data_syncs, MANY - RING, "by blocking");
    turns_until_told(&w, RING);
    for (int i = 0; i < 5; i++)
        loop_turn(w.loop, 0);
    for (int i = 0; i < MANY; i++) {
        once += all[i].told == 1;
        good += all[i].result == 0;
    }
    is_number(once, MANY, "every owner hears once, or none");
    is_number(good, MANY, "of a success");
    is_number(w.told, RING, "those in the background");
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < RING; i++)
            wrong += begin(&all[i], w.file, true) != DISK_SYNCING ||
                     (i == RING - 1 && (turns_until_told(&w, RING * (round + 2)), 0));
    is_number(wrong, 0, "and the ring is free for the next, ten times over");
    is_number(w.told, RING * 11, "all of whom hear");
    world_end(&w);
    free(all);
}

static void
test_chains(void)
{
    struct world w;
    struct owner *all = claims_new(&w, 20);
    int heard = 0;

    world_start(&w);
    world_on(&w);
    for (int i = 0; i < 20; i++) {
        all[i].again = 50;
        begin(&all[i], w.file, true);
    }
    turns_until_told(&w, 20 * 51);
    for (int i = 0; i < 20; i++)
        heard += all[i].told == 51;
    is_number(heard, 20, "an owner who hears may begin the next");
    world_end(&w);
    free(all);
}

static void
begin_first(void *context)
{
    begin(context, ((struct owner *)context)->world->file, true);
    wait_over(1);
}

/* While one is over that nobody has heard of. */
static void
begin_second(void *context)
{
    begin(context, ((struct owner *)context)->world->file, true);
    wait_over(2);
}

static void
test_same_turn(void)
{
    struct world w;
    struct owner *all = claims_new(&w, 2);
    struct loop_task task = {0};

    world_start(&w);
    world_on(&w);
    loop_post(w.loop, &task, begin_first, &all[0]);
    loop_turn(w.loop, 0); /* which has looked before what is ready */
    is_number(all[0].told, 0, "one that is over, and not told");
    loop_post(w.loop, &task, begin_second, &all[1]);
    loop_turn(w.loop, 0);
    is_number(all[0].told, 1, "an older one is told");
    is_number(all[1].told, 0, "what is over in its own turn");
    turns_until_told(&w, 2);
    is_number(all[1].told, 1, "is told in the next");
    world_end(&w);
    free(all);
}

/* Over, but to be told in the next turn only: what if there is no such turn? */
static void
test_over_not_told(void)
{
    struct world w;
    struct owner *all = claims_new(&w, 2);
    struct loop_task task = {0};

    for (int waits = 0; waits < 2; waits++) {
        world_start(&w);
        world_on(&w);
        all[1].told = 0;
        begin_first(&all[0]);
        loop_post(w.loop, &task, begin_second, &all[1]);
        loop_turn(w.loop, 0);
        is_number(all[1].told, 0, "it is over, and nobody has heard");
        w.turn++;
        if (waits)
            disk_sync_wait(w.disk);
        is_number(all[1].told, waits, waits ? "waiting tells" : "so it stays");
        disk_unlink(w.disk, "file");
        disk_close(&w.disk);
        for (int i = 0; i < 3; i++)
            loop_turn(w.loop, 0);
        is_number(all[1].told, waits, "and closing does not");
        world_end(&w);
    }
    free(all);
}

/* --- Troubles --------------------------------------------------------------------- */

static void
test_bad_files(void)
{
    struct world w;
    struct owner o = {.world = &w};
    int fifo, full = open("/dev/full", O_RDWR), closed;

    world_start(&w);
    world_on(&w);
    closed = disk_open_directory(w.disk, "");
    close(closed);
    is_number(begin(&o, closed, true), -EBADF, "a closed descriptor");
    is_number(begin(&o, closed, false), -EBADF, "for either sync");
    is_number(begin(&o, -1, false), -EBADF, "what never was one");
    disk_make_fifo(w.disk, "fifo", 0600);
    fifo = disk_open_fifo(w.disk, "fifo");
    is_number(begin(&o, fifo, false), -EINVAL, "a FIFO cannot be synced");
    is_number(begin(&o, full, false), -EINVAL, "nor /dev/full");
    close(fifo);
    close(full);
    disk_unlink(w.disk, "fifo");
    for (int i = 0; i < 3; i++)
        loop_turn(w.loop, 0);
    is_number(o.told, 0, "all of which is said at once");
    is_number(begin(&o, w.file, false), DISK_SYNCING, "and does no harm to others");
    turns_until_told(&w, 1);
    is_number(o.result, 0, "that follow");
    world_end(&w);
}

static void
test_errors(void)
{
    static const int errors[] = {EIO, ENOSPC, EDQUOT, EROFS};
    struct world w;
    struct owner o = {.world = &w};

    world_start(&w);
    world_on(&w);
    for (int i = 0; i < 4; i++) {
        system_is.submits = 0;
        system_is.result = -errors[i];
        is_number(begin(&o, w.file, i % 2 == 0), DISK_SYNCING, "a sync begins");
        turns_until_told(&w, i + 1);
        is_number(o.result, -errors[i], "and fails as the system says");
        loop_turn(w.loop, 0);
        is_number(system_is.submits, 1, "it was tried once");
    }
    is_number(system_is.syncs + system_is.data_syncs, 0, "nor in another way");
    world_end(&w);
}

static void
test_refused_later(void)
{
    static const int errors[] = {EAGAIN, ENOMEM, EPERM, EINVAL};
    struct world w;
    struct owner o = {.world = &w};

    world_start(&w);
    world_on(&w);
    for (int i = 0; i < 4; i++) {
        system_is.fail = SYS_io_submit;
        system_is.error = errors[i];
        is_number(begin(&o, w.file, i % 2 == 0), 0, "refused, a sync is over at once");
    }
    is_number(system_is.syncs, 2, "by blocking");
    is_number(system_is.data_syncs, 2, "in the way that was asked for");
    is_number(disk_sync_way(w.disk), DISK_SYNC_AIO, "that is no reason to give up");
    system_is.fail = -1;
    is_number(begin(&o, w.file, true), DISK_SYNCING, "the next may succeed");
    turns_until_told(&w, 1);
    is_number(o.told, 1, "in the background");
    system_is.fail = SYS_io_getevents;
    system_is.error = EINTR;
    system_is.times = 3;
    begin(&o, w.file, true);
    turns_until_told(&w, 2);
    is_number(o.told, 2, "and an interrupted system call costs nobody his answer");
    is_number(system_is.fail, -1, "after three of them");
    world_end(&w);
}

static void
test_file_closed(void)
{
    struct world w;
    struct owner o = {.world = &w};
    int file;

    world_start(&w);
    world_on(&w);
    file = disk_create(w.disk, "short", 0600);
    is_number(disk_write(w.disk, file, TEXT("x")), 0, "a file");
    is_number(begin(&o, file, false), DISK_SYNCING, "being synced");
    disk_close_file(w.disk, file);
    disk_unlink(w.disk, "short");
    turns_until_told(&w, 1);
    is_number(o.told == 1 && o.result == 0, 1, "may be closed and removed");
    world_end(&w);
}

static void
test_close(void)
{
    struct world w;
    struct owner *all = claims_new(&w, 100);
    int before, begun = 0, closers = 0;

    world_start(&w);
    before = folder_descriptors();
    world_on(&w);
    for (int i = 0; i < 100; i++)
        begun += begin(&all[i], w.file, i % 2 == 0) == DISK_SYNCING;
    is_number(begun, 100, "a hundred in flight");
    disk_unlink(w.disk, "file");
    disk_close(&w.disk);
    free(all); /* to be touched no more */
    is_number(folder_descriptors(), before - 1, "closing the disk leaves no descriptor");
    for (int i = 0; i < 5; i++)
        loop_turn(w.loop, 10);
    is_number(w.told, 0, "and nobody hears");
    world_end(&w);

    all = claims_new(&w, 100);
    world_start(&w);
    world_on(&w);
    for (int i = 0; i < 100; i++) {
        all[i].closes = i % 2 == 0; /* whichever is over first */
        begin(&all[i], w.file, true);
    }
    wait_over(100);
    for (int i = 0; i < 100 && w.disk; i++)
        loop_turn(w.loop, 100);
    for (int i = 0; i < 100; i += 2)
        closers += all[i].told;
    ok_named(!w.disk && closers == 1, "an owner who hears may close the disk");
    before = w.told;
    for (int i = 0; i < 5; i++)
        loop_turn(w.loop, 10);
    is_number(w.told, before, "then nobody hears any more");
    ok_named(before < 100, "not even who would have been next");
    world_end(&w);
    free(all);
    unlink("file");
}

static void
test_wait(void)
{
    struct world w;
    struct owner *all = claims_new(&w, 100);
    int heard = 0;

    world_start(&w);
    world_on(&w);
    disk_sync_wait(w.disk);
    is_number(w.told, 0, "there is nothing to wait for");
    for (int i = 0; i < 100; i++) {
        all[i].again = 2;
        begin(&all[i], w.file, true);
    }
    w.turn++; /* waiting counts as one */
    all[3].waits = true;
    disk_sync_wait(w.disk);
    for (int i = 0; i < 100; i++)
        heard += all[i].told == 3;
    is_number(heard, 100, "all have heard, and what they began is over");
    for (int i = 0; i < 5; i++)
        loop_turn(w.loop, 10);
    is_number(w.told, 300, "once each");
    for (int i = 0; i < REAPED; i++)
        begin(&all[i], w.file, true);
    wait_over(REAPED);
    w.turn++;
    disk_sync_wait(w.disk);
    is_number(w.told, 300 + REAPED, "also when as many are over as are looked at");
    w.told = 300;
    w.out_of_turn = false; /* an owner that begins while we wait hears before we end */

    all[5].told = all[5].again = 0;
    begin(&all[5], w.file, true);
    turns_until_told(&w, 301);
    is_number(all[5].told, 1, "after which life goes on");
    all[5].closes = true;
    begin(&all[5], w.file, true);
    begin(&all[6], w.file, true);
    w.turn++;
    disk_sync_wait(w.disk);
    ok_named(!w.disk, "an owner may close the disk meanwhile");
    world_end(&w);
    free(all);
    unlink("file");
}

static bool
is_possible(void)
{
    struct world w;
    world_start(&w);
    enum disk_syncing way = world_on(&w);
    world_end(&w);
    return way == DISK_SYNC_AIO;
}

static void
test_in_background(void)
{
    test_one();
    test_many();
    test_chains();
    test_same_turn();
    test_over_not_told();
    test_bad_files();
    test_errors();
    test_refused_later();
    test_file_closed();
    test_close();
    test_wait();
}

int
main(void)
{
    char template[] = "/tmp/petrel-sync-XXXXXX";

    root = mkdtemp(template);
    if (!root || chdir(root) < 0)
        return 1;
    alarm(HANGS_S);
    tap_tests("");
    if (is_possible())
        test_in_background();
    else
        printf("ok %d # SKIP this system has no AIO\n", ++tap_count);
    if (chdir("/") < 0 || rmdir(root) < 0)
        printf("# %s stays\n", root);
    return done();
}
