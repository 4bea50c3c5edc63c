/* Files of ended messages: when they go, and some in a turn. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/recovery/removal.h"

#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

enum { MANY = 250 };

struct bench {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
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
    b->log = log_new(b->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&b->lines, 1 << 20);
    log_capture(b->log, &b->lines);
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
    buffer_free(&b->lines);
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

TEST(hurry)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    removal_settled(&b.removal, 1, 0, 0);
    removal_hurry(&b.removal);
    is_number(files(), MANY, "at the end there are no more turns");
    removal_settled(&b.removal, 2, 0, 0);
    is_number(files(), 0, "also for the last ones");
}

/* Otherwise the next start would deliver the message again. */
TEST(refused)
{
    FIXTURE(bench, b, bench_begin, bench_end);
    sim_disk_fail_calls(5);
    removal_settled(&b.removal, 1, 0, 0);
    for (int i = 0; i < 10; i++)
        loop_turn(b.loop, 0);
    sim_disk_fail_calls(0);
    is_number(files(), 2 * MANY, "a disk that fails removes nothing");
    ok_named(!removal_are_removed(&b.removal, 1), "and the journal is still needed");
    sim_loop_advance(b.loop, 11 * 1000);
    is_number(files(), MANY, "the files go once it is good");
    ok(removal_are_removed(&b.removal, 1) && b.first_is_removed);
    sim_disk_fail_calls(5);
    removal_settled(&b.removal, 2, 0, 0);
    sim_disk_fail_calls(0);
    removal_hurry(&b.removal);
    is_number(files(), 0, "or at the stop");
}
