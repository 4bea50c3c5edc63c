/* Files of ended messages: when they go, and some in a turn. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/recovery/removal.h"

#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>

enum { MANY = 250 };

struct bench {
    struct loop *loop;
    struct log *log;
    struct spool spool;
    struct journaled journaled;
    struct id_set seen;
    struct removal removal;
    unsigned calls; /* of removed */
    bool first_is_removed;
};

static void
on_removed(void *context)
{
    struct bench *b = context;
    b->calls++;
    b->first_is_removed = removal_are_removed(&b->removal, 1);
}

static void
plant(struct bench *b, uint64_t number)
{
    struct id id = {.time_ms = 1, .hash = number};
    int file = spool_write_new(&b->spool, SPOOL_MESS, id, TEXT("x"), false);
    if (file < 0)
        abort();
    disk_close_file(b->spool.disk, file);
}

/* Half of them end with batch 1, half with batch 2. */
static void
bench_begin(struct bench *b)
{
    char error[300];
    *b = (struct bench){0};
    sim_disk_reset();
    b->loop = sim_loop_new(1);
    b->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    if (spool_open(&b->spool, "/spool", false, b->log, error, sizeof(error)) != 0)
        abort();
    b->removal = (struct removal){.spool = &b->spool,
                                  .journaled = &b->journaled,
                                  .seen = &b->seen,
                                  .loop = b->loop,
                                  .removed = on_removed,
                                  .context = b};
    for (uint64_t i = 0; i < 2 * MANY; i++) {
        plant(b, i);
        removal_add(&b->removal, (struct id){.time_ms = 1, .hash = i},
                    i < MANY ? 1 : 2);
    }
}

static void
bench_end(struct bench *b)
{
    removal_stop(&b->removal);
    id_set_free(&b->seen);
    spool_close(&b->spool);
    log_free(&b->log);
    loop_free(&b->loop);
}

static size_t
files(void)
{
    return sim_disk_count("/spool/mess");
}

TEST(turns)
{
    struct bench b;
    bench_begin(&b);
    is_number(removal_count(&b.removal), 2 * MANY, "all are known");
    ok_named(removal_are_removed(&b.removal, 2), "none is due");
    removal_settled(&b.removal, 1, 0, 0);
    size_t left = files();
    ok_named(left < 2 * MANY && left > MANY, "some go at once, not all");
    ok(!removal_are_removed(&b.removal, 1) && !b.first_is_removed);
    ok(removal_have(&b.removal, (struct id){.time_ms = 1, .hash = MANY - 1}));
    for (int i = 0; i < 100 && files() > MANY; i++) {
        left = files();
        loop_turn(b.loop, 0);
        ok_named(files() >= left - 100, "a turn does not take long");
    }
    is_number(files(), MANY, "those of the batch that is durable go");
    ok(removal_are_removed(&b.removal, 1) && b.first_is_removed && b.calls > 1);
    is_number(removal_count(&b.removal), MANY, "the others wait");
    ok(!removal_have(&b.removal, (struct id){.time_ms = 1, .hash = MANY - 1}));
    removal_settled(&b.removal, 2, -5, 4);
    is_number(files(), MANY, "a batch that failed is written anew");
    bench_end(&b);
    is_number(files(), MANY, "what is not durable stays");
}

/* Without a journal the files alone say that a message lives. */
TEST(refused)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    struct id id = {.time_ms = 2, .hash = 1};
    for (int round = 0; round < 2; round++) {
        for (int place = 0; place < 2; place++) {
            int file = spool_write_new(&b.spool, place == 0 ? SPOOL_MESS : SPOOL_TODO, id,
                                       TEXT("x"), false);
            if (file < 0)
                abort();
            disk_close_file(b.spool.disk, file);
        }
        sim_disk_fail_calls(EIO);
        (void)removal_end(&b.removal, id, SPOOL_ANYWHERE);
        sim_loop_advance(b.loop, 60000);
        sim_disk_fail_calls(0);
        is_number(sim_disk_count("/spool/todo"), 1, "the disk refuses to remove it");
        ok_named(removal_have(&b.removal, id), "no scan takes it for a message");
        if (round == 0) {
            sim_loop_advance(b.loop, 5000);
        } else {
            removal_hurry(&b.removal);
        }
        is_number(sim_disk_count("/spool/todo"), 0,
                  round == 0 ? "it goes 5 s later" : "it goes at the stop");
        ok(!removal_have(&b.removal, id));
    }
}

TEST(hurry)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    removal_settled(&b.removal, 1, 0, 0);
    removal_hurry(&b.removal);
    is_number(files(), MANY, "at the end there are no more turns");
    removal_settled(&b.removal, 2, 0, 0);
    is_number(files(), 0, "also for the last ones");
}
