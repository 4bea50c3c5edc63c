/* Syncs that begin together: few system calls, and a result for each. */
#include "base/disk/disk.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/support/tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANY = 600, RING = 256, BAD = 100, TURNS_MAX = 20000 };

static long submits;

/* The C library's, through which base/disk/disk_sync.c makes its calls. */
long
syscall(long number, ...)
{
    long (*real)(long, ...) = NULL;
    va_list list;
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long);
    va_end(list);
    submits += number == SYS_io_submit;
    return real(number, a, b, c, d, e);
}

struct owner {
    struct disk_sync sync;
    int told, result;
};

static void
on_done(void *context, int result)
{
    struct owner *o = context;
    o->told++;
    o->result = result;
}

struct many {
    struct owner *owners;
    struct disk_sync **syncs;
    int *files, *results;
};

static void
begin_all(struct many *m, struct disk *disk, int file)
{
    m->owners = memory_array(MANY, sizeof(*m->owners));
    m->syncs = memory_array(MANY, sizeof(struct disk_sync *));
    m->files = memory_array(MANY, sizeof(*m->files));
    m->results = memory_array(MANY, sizeof(*m->results));
    for (int i = 0; i < MANY; i++) {
        m->owners[i].sync = (struct disk_sync){.done = on_done, .context = &m->owners[i]};
        m->syncs[i] = &m->owners[i].sync;
        m->files[i] = i == BAD ? -1 : file;
    }
    submits = 0;
    disk_sync_begin_many(disk, m->files, true, m->syncs, m->results, MANY);
}

static void
free_all(struct many *m)
{
    free(m->owners);
    free(m->syncs);
    free(m->files);
    free(m->results);
}

static int
count(const struct many *m, int result)
{
    int found = 0;
    for (int i = 0; i < MANY; i++)
        found += m->results[i] == result;
    return found;
}

/* Without AIO, or before it is on. */
static void
test_blocks(struct disk *disk, int file)
{
    FIXTURE(many, m, begin_all, free_all, disk, file);
    is_number(count(&m, 0), MANY - 1, "all block");
    is_number(m.results[BAD], -EBADF, "a bad file fails alone");
    is_number(submits, 0, "without AIO");
}

static void
test_together(struct disk *disk, struct loop *loop, int file)
{
    int once = 0, good = 0;
    FIXTURE(many, m, begin_all, free_all, disk, file);
    is_number(count(&m, DISK_SYNCING), RING, "as many as the ring holds");
    is_number(m.results[BAD], -EBADF, "a bad file fails alone");
    is_number(count(&m, 0), MANY - RING - 1, "the others have blocked");
    /* 64 in a call; the bad file ends one call, and a second one refuses it. */
    ok_named(submits > 0 && submits <= RING / 64 + 3, "a call for many");
    for (int i = 0; i < TURNS_MAX && once < RING; i++) {
        loop_turn(loop, 1);
        once = 0;
        for (int j = 0; j < MANY; j++)
            once += m.owners[j].told;
    }
    for (int i = 0; i < MANY; i++)
        good += m.owners[i].told == (m.results[i] == DISK_SYNCING) &&
                m.owners[i].result == 0;
    is_number(good, MANY, "every owner that waits hears of success, once");
    long before = submits;
    disk_sync_begin_many(disk, m.files, true, m.syncs, m.results, 0);
    is_number(submits, before, "none is nothing");
}

int
main(void)
{
    char template[] = "/tmp/petrel-sync-XXXXXX";
    struct disk *disk;
    struct loop *loop = loop_new();
    if (!mkdtemp(template) || disk_open(&disk, template, false) < 0)
        return 1;
    int file = disk_create(disk, "file", 0600);
    if (file < 0 || disk_write(disk, file, TEXT("content")) < 0)
        return 1;
    test_blocks(disk, file);
    if (disk_sync_on(disk, loop) == DISK_SYNC_AIO)
        test_together(disk, loop, file);
    else
        printf("ok %d # SKIP this system has no AIO\n", ++tap_count);
    disk_close_file(disk, file);
    disk_unlink(disk, "file");
    disk_close(&disk);
    loop_free(&loop);
    if (rmdir(template) < 0)
        printf("# %s stays\n", template);
    return done();
}
