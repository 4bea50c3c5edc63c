/* The spool's space: what is kept, when mail is refused and taken again, what is told. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/spool/space.h"

#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>

#define MEGA INT64_C(1000000)

struct bench {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct spool spool;
    struct space space;
};

static void
bench_start(struct bench *b)
{
    b->space = (struct space){.spool = &b->spool, .loop = b->loop, .logs = true};
    space_start(&b->space);
}

static void
bench_begin(struct bench *b, int64_t bytes, int64_t inodes)
{
    char error[300];
    sim_disk_reset();
    sim_disk_set_space(bytes, inodes);
    b->loop = sim_loop_new(1);
    b->log = log_new(b->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&b->lines, 100000);
    log_capture(b->log, &b->lines);
    if (spool_open(&b->spool, "/spool", false, b->log, error, sizeof(error)) != 0)
        abort();
    bench_start(b);
}

static void
bench_end(struct bench *b)
{
    space_stop(&b->space);
    spool_close(&b->spool);
    log_free(&b->log);
    loop_free(&b->loop);
    buffer_free(&b->lines);
}

/* How many lines of the log have these words. */
static long
told(const struct bench *b, const char *words)
{
    long count = 0;
    const char *at = b->lines.at, *end = b->lines.length > 0 ? at + b->lines.length : at;
    while (at < end && (at = memmem(at, (size_t)(end - at), words, strlen(words)))) {
        count++;
        at++;
    }
    return count;
}

/* The free space, a little later. */
static void
set_free(struct bench *b, int64_t bytes, int64_t inodes)
{
    sim_disk_set_space(bytes, inodes);
    sim_loop_advance(b->loop, SPACE_EVERY_MS);
}

TEST(reserve)
{
    static const struct {
        int64_t bytes, inodes, bytes_reserve, inodes_reserve, journal;
    } rows[] = {
        {1000 * MEGA, 100000, SPACE_RESERVE, 200, 64 * MEGA},
        {64 << 20,    6000,   SPACE_RESERVE, 200, 16 << 20 },
        {24 << 20,    6000,   6 << 20,       200, 6 << 20  },
        {8 << 20,     400,    2 << 20,       100, 2 << 20  },
        {1 << 20,     4,      1 << 18,       1,   1 << 18  },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        FIXTURE(bench, b, bench_begin, bench_end, rows[i].bytes, rows[i].inodes);
        is_number(b.space.bytes_reserve, rows[i].bytes_reserve, "bytes that are kept");
        is_number(b.space.inodes_reserve, rows[i].inodes_reserve, "files");
        is_number(b.spool.bytes_reserve, rows[i].bytes_reserve, "of copies, too");
        is_number(space_journal(&b.space, 64 * MEGA, 1), rows[i].journal, "a journal");
        ok(told(&b, "is limited to a quarter") == (rows[i].journal < 64 * MEGA));
        is_number(space_journal(&b.space, 64 * MEGA, 4),
                  rows[i].bytes / 16 < 64 * MEGA ? rows[i].bytes / 16 : 64 * MEGA,
                  "of each slice");
    }
}

TEST(set)
{
    FIXTURE(bench, b, bench_begin, bench_end, 1000 * MEGA, 1000);
    b.space = (struct space){.spool = &b.spool,
                             .loop = b.loop,
                             .bytes_reserve = 7,
                             .inodes_reserve = 9};
    space_start(&b.space);
    is_number(b.space.bytes_reserve, 7, "what is set");
    is_number(b.space.inodes_reserve, 9, "stays");
}

TEST(bytes)
{
    FIXTURE(bench, b, bench_begin, bench_end, 24 << 20, 6000);
    ok(space_has(&b.space, 0) && space_has(&b.space, 18 << 20));
    ok_named(!space_has(&b.space, (18 << 20) + 1), "but the reserve");
    ok(!space_has(&b.space, INT64_MAX));
    is_number(told(&b, "mail is refused"), 0, "one large message is not all mail");
    set_free(&b, (6 << 20) - 1, 6000);
    ok(!space_has(&b.space, 0) && !space_has(&b.space, 0));
    is_number(told(&b,
                   "queue: warning: spool /spool: 6.3 MB free: mail is refused until "
                   "7.1 MB are free"),
              1, "told once");
    set_free(&b, 6 << 20, 6000);
    ok_named(!space_has(&b.space, 0), "no flicker");
    set_free(&b, 7 << 20, 6000);
    ok(space_has(&b.space, 0));
    is_number(told(&b, "spool /spool: 7.3 MB and 6000 files free: accepting mail again"),
              1, "and when it goes on");
    set_free(&b, 6 << 20, 6000);
    ok_named(space_has(&b.space, 0), "nor flicker there");
    is_number(told(&b, "mail is refused"), 1, "not told again");
}

TEST(files)
{
    FIXTURE(bench, b, bench_begin, bench_end, 1000 * MEGA, 100000);
    set_free(&b, 900 * MEGA, 199);
    ok(!space_has(&b.space, 0));
    is_number(told(&b, "199 files free: mail is refused until 225 files are free"), 1,
              "files");
    set_free(&b, 900 * MEGA, 225);
    ok(space_has(&b.space, 0));
    set_free(&b, 0, 0);
    ok(!space_has(&b.space, 0));
    is_number(told(&b,
                   "spool /spool: 0.0 MB and 0 files free: mail is refused until 18.9 MB "
                   "and 225 files are free"),
              1, "both");
}

/* Nobody asks: the daemon does. */
TEST(alone)
{
    FIXTURE(bench, b, bench_begin, bench_end, 1000 * MEGA, 100000);
    sim_loop_advance(b.loop, 1000 * 1000);
    set_free(&b, 0, 100000);
    is_number(told(&b, "mail is refused"), 0, "an idle daemon does not look");
    ok(!space_has(&b.space, 0));
    set_free(&b, 500 * MEGA, 100000);
    is_number(told(&b, "accepting"), 0, "not yet");
    sim_loop_advance(b.loop, SPACE_AGAIN_MS);
    is_number(told(&b, "accepting mail again"), 1, "while it refuses it does");
    ok(space_has(&b.space, 0));
}

TEST(start)
{
    struct bench b;
    bench_begin(&b, 24 << 20, 6000);
    space_check(&b.space, true);
    is_number((long)b.lines.length, 0, "all is well: no word");
    sim_disk_set_space(0, 6000);
    space_check(&b.space, true);
    is_number(told(&b, "mail is refused until"), 1, "full at the start");
    bench_end(&b);

    bench_begin(&b, (6 << 20) - 1, 63);
    space_check(&b.space, true);
    is_number(told(&b,
                   "queue: error: spool /spool: its file system is too small: it has "
                   "6.3 MB and 63 files, a spool needs 6.3 MB and 64 files; set `spool` "
                   "to a directory on a larger one"),
              1, "never large enough");
    bench_end(&b);

    bench_begin(&b, 2 << 20, 6000);
    space_check(&b.space, false);
    is_number(told(&b, "too small"), 0, "without a journal it takes less");
    space_check(&b.space, true);
    is_number(told(&b, "too small"), 1, "than with one");
    bench_end(&b);
}

TEST(described)
{
    char text[SPACE_TEXT_MAX];
    FIXTURE(bench, b, bench_begin, bench_end, 24 << 20, 6000);
    sim_disk_set_space(3 << 20, 77);
    ok(!space_has(&b.space, 0));
    space_describe(&b.space, text);
    is_string(text,
              "3.1 MB and 77 files are free in /spool; 6.3 MB and 200 files are "
              "reserved for accepted mail",
              "for users");
    b.space.now = (struct disk_space){INT64_MAX, INT64_MAX, 0, 0};
    space_describe(&b.space, text);
    is_string(text, "the disk of /spool is full", "nothing is known");
}

/* A disk that does not tell takes mail until it refuses some. */
TEST(unknown)
{
    FIXTURE(bench, b, bench_begin, bench_end, 24 << 20, 6000);
    sim_disk_fail_at(sim_disk_calls() + 1, EIO);
    ok(space_has(&b.space, 1 << 30));
    is_number(told(&b, "error: cannot ask for free space"), 1, "told");
    space_stop(&b.space);
    sim_disk_fail_at(sim_disk_calls() + 1, EIO);
    bench_start(&b);
    is_number(b.space.bytes_reserve, SPACE_RESERVE, "nor at the start");
}
