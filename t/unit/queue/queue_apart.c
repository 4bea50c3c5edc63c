/* Held and quarantined messages are counted exactly, and without a long turn. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/queue_operator.h"

#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>
#include <stdlib.h>

enum { MANY = 5 * QUEUE_APART_STEP / 2 };

static struct loop *loop;
static struct log *log_;
static struct spool spool;
static struct queue_apart_count count;

static void
put(enum spool_dir dir, uint64_t time_ms, const char *suffix)
{
    char id[ID_LENGTH + 1], name[100];
    id_format((struct id){.time_ms = time_ms, .hash = 1}, id);
    snprintf(name, sizeof(name), "%s/%s%s", spool_dir_name(dir), id, suffix);
    int file = disk_create(spool.disk, name, 0600);
    if (file < 0)
        abort();
    disk_close_file(spool.disk, file);
}

static void
take(enum spool_dir dir, uint64_t time_ms)
{
    char id[ID_LENGTH + 1], name[100];
    id_format((struct id){.time_ms = time_ms, .hash = 1}, id);
    snprintf(name, sizeof(name), "%s/%s", spool_dir_name(dir), id);
    if (disk_unlink(spool.disk, name) != 0)
        abort();
}

static void
is_count(size_t held, size_t quarantined, int64_t oldest_ms, const char *what)
{
    struct queue_apart apart = queue_apart_count(&count);
    ok_named(apart.held == held && apart.quarantined == quarantined && apart.oldest_held_ms == oldest_ms, what);
    if (apart.held != held || apart.quarantined != quarantined)
        printf("# %zu and %zu, not %zu and %zu\n", apart.held, apart.quarantined, held, quarantined);
}

TEST(few)
{
    is_count(0, 0, 0, "none");
    put(SPOOL_HOLD, 5000, "");
    put(SPOOL_HOLD, 3000, "");
    put(SPOOL_HOLD, 4000, ".other");
    put(SPOOL_CORRUPT, 1000, ".note");
    put(SPOOL_CORRUPT, 1000, ".mess");
    is_count(2, 1, 3000, "few are counted immediately");
    take(SPOOL_HOLD, 3000);
    is_count(1, 1, 5000, "also when one goes");
    sim_loop_advance(loop, 1000);
    is_count(1, 1, 5000, "the same");
    uint64_t calls = sim_disk_calls();
    for (unsigned i = 0; i < 10; i++)
        is_count(1, 1, 5000, "nothing has changed");
    is_number((long)(sim_disk_calls() - calls), 20, "then no directory is read");
    put(SPOOL_HOLD, 2000, "");
    is_count(2, 1, 2000, "until it changes");
    sim_loop_step_wall(loop, -3600 * 1000);
    sim_loop_advance(loop, 1);
    put(SPOOL_HOLD, 1000, "");
    is_count(3, 1, 1000, "the clock is set back");
}

TEST(many)
{
    for (unsigned i = 0; i < MANY; i++)
        put(SPOOL_HOLD, 10000 + i, "");
    is_count(3, 1, 1000, "many: the count before");
    loop_turn(loop, 0);
    is_count(3, 1, 1000, "a thousand names in a turn");
    sim_loop_advance(loop, 1000);
    is_count(MANY + 3, 1, 1000, "then they are counted");
    for (unsigned i = 0; i < MANY; i++)
        take(SPOOL_HOLD, 10000 + i);
    sim_loop_advance(loop, 1000);
    is_count(3, 1, 1000, "few again");
    for (unsigned i = 0; i < MANY; i++)
        put(SPOOL_CORRUPT, 10000 + i, ".note");
    is_count(3, 1, 1000, "many are quarantined");
    sim_loop_advance(loop, 1000);
    is_count(3, MANY + 1, 1000, "and counted");
}

TEST(troubles)
{
    sim_loop_advance(loop, 1000);
    put(SPOOL_HOLD, 1, "");
    sim_disk_count_anew();
    sim_disk_fail_at(2, EIO);
    is_count(3, MANY + 1, 1000, "a directory that cannot be opened");
    is_count(4, MANY + 1, 1, "is tried again");
    for (unsigned i = 0; i < MANY; i++)
        put(SPOOL_HOLD, 20000 + i, "");
    is_count(4, MANY + 1, 1, "it is stopped while it counts");
    queue_apart_stop(&count);
    sim_loop_advance(loop, 1000);
}

/* Also the first count of many, which a program may ask for at startup, takes a thousand
 * names of each directory in a turn. */
TEST(first)
{
    count = (struct queue_apart_count){.spool = &spool, .loop = loop};
    size_t held = 0;
    for (unsigned steps = 1; steps <= 2; steps++) {
        struct queue_apart apart = queue_apart_count(&count);
        ok_named(apart.held > held && apart.held <= steps * QUEUE_APART_STEP && apart.is_partial,
                 "a turn counts a step, and says that there is more");
        ok_named(apart.quarantined > 0 && apart.quarantined <= steps * QUEUE_APART_STEP, "of both directories");
        held = apart.held;
        loop_turn(loop, 0);
    }
    sim_loop_advance(loop, 1000);
    is_count(MANY + 4, MANY + 1, 1, "then the first count is whole");
    ok_named(!queue_apart_count(&count).is_partial, "and says so");
    queue_apart_stop(&count);
    queue_apart_stop(&(struct queue_apart_count){0});
}

int
main(void)
{
    char error[300];
    sim_disk_reset();
    loop = sim_loop_new(1);
    log_ = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    if (spool_open(&spool, "/spool", true, log_, error, sizeof(error)) != 0)
        abort();
    size_t open_files = sim_disk_open_files();
    count = (struct queue_apart_count){.spool = &spool, .loop = loop};
    tap_tests("");
    is_number((long)sim_disk_open_files(), (long)open_files, "no handle stays open");
    spool_close(&spool);
    log_free(&log_);
    loop_free(&loop);
    return done();
}
