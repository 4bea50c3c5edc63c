/* Warnings of file systems: which, when, how often, and that each names its remedy. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/spool/filesystem_check.h"

#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>

struct bench {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    char unsafe[FILESYSTEM_CHECK_TEXT_MAX];
};

static void
bench_begin(struct bench *b)
{
    b->loop = sim_loop_new(1);
    b->log = log_new(b->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&b->lines, 100000);
    log_capture(b->log, &b->lines);
}

static void
bench_end(struct bench *b)
{
    log_free(&b->log);
    loop_free(&b->loop);
    buffer_free(&b->lines);
}

static size_t
count_lines(const struct bench *b)
{
    size_t lines = 0;
    for (size_t i = 0; i < b->lines.length; i++)
        lines += b->lines.at[i] == '\n';
    return lines;
}

static bool
says(const struct bench *b, const char *words)
{
    return b->lines.length > 0 &&
           memmem(b->lines.at, b->lines.length, words, strlen(words)) != NULL;
}

static size_t
lines_for(struct bench *b, const struct disk_traits *nature, enum disk_syncing way)
{
    struct disk *disk;
    buffer_clear(&b->lines);
    sim_disk_reset();
    sim_disk_set_nature(nature);
    if (disk_open(&disk, "spool", true) < 0)
        abort();
    if (way == DISK_SYNC_AIO)
        (void)disk_sync_on(disk, b->loop);
    struct filesystem_check n = {.disk = disk, .log = b->log, .loop = b->loop};
    filesystem_check_start(&n);
    ok_named(n.unsafe[0] == '\0', "nothing is said before the check");
    sim_loop_advance(b->loop, FILESYSTEM_CHECK_AFTER_MS + 1);
    disk_close(&disk);
    text_copy(b->unsafe, sizeof(b->unsafe), text_from(n.unsafe));
    return count_lines(b);
}

TEST(each)
{
    static const struct {
        struct disk_traits nature;
        enum disk_syncing way;
        size_t lines;
        const char *what, *remedy;
    } rows[] = {
        {{.type = "ext4", .sync_us = 500},                      DISK_SYNC_AIO, 0, NULL,      NULL                     },
        {{.type = "ext4", .sync_us = 15},                       DISK_SYNC_AIO, 0, NULL,      NULL                     },
        {{.type = "ext4", .sync_us = FILESYSTEM_CHECK_SYNC_MIN_US},       DISK_SYNC_AIO, 0, NULL,      NULL                     },
        {{.type = "?", .sync_us = -1},                          DISK_SYNC_AIO, 0, NULL,      NULL                     },
        {{.type = "ext4", .sync_us = FILESYSTEM_CHECK_SYNC_MIN_US - 1},
         DISK_SYNC_AIO,                                                        1,
         "nothing is really written",                                                        "barrier=0"              },
        {{.type = "ext4", .sync_us = 0},                        DISK_SYNC_AIO, 1, "in 0 us", "nobarrier"              },
        {{.type = "tmpfs", .forgets = true, .sync_us = 1},
         DISK_SYNC_AIO,                                                        1,
         "does not survive a reboot",                                                        "set `spool`"            },
        {{.type = "ext4", .fast_commit = true, .sync_us = 500},
         DISK_SYNC_AIO,                                                        1,
         "fast_commit",                                                                      "tune2fs -O ^fast_commit"},
        {{.type = "btrfs", .copies = true, .sync_us = 500},
         DISK_SYNC_AIO,                                                        1,
         "is on btrfs",                                                                      "chattr +C"              },
        {{.type = "zfs", .copies = true, .sync_us = 500},
         DISK_SYNC_AIO,                                                        1,
         "is on zfs",                                                                        "another file system"    },
        {{.type = "nfs", .shared = true, .soft = true, .sync_us = 500},
         DISK_SYNC_AIO,                                                        1,
         "with soft",                                                        "with hard"    },
        {{.type = "nfs", .shared = true, .locks_stay = true, .sync_us = 500},
         DISK_SYNC_AIO,                                                        1,
         "locks outlive",                                                        "vers=4.2"    },
        {{.type = "xfs", .sync_us = 500},
         DISK_SYNC_BLOCKS,                                                     1,
         "cannot be synced in the background",                                               "fs.aio-max-nr"          },
        {{.type = "btrfs", .copies = true, .sync_us = 2},
         DISK_SYNC_BLOCKS,                                                     3,
         "background",                                                                       "chattr"                 },
    };
    FIXTURE(bench, b, bench_begin, bench_end);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        is_number(lines_for(&b, &rows[i].nature, rows[i].way), rows[i].lines,
                  rows[i].what ? rows[i].what : "nothing is wrong");
        const struct disk_traits *t = &rows[i].nature;
        bool loses = t->forgets || t->fast_commit || (t->sync_us >= 0 && t->sync_us < FILESYSTEM_CHECK_SYNC_MIN_US);
        is_number(b.unsafe[0] != '\0', loses, "what may lose mail is kept for findings");
        ok_named(!loses || strstr(b.unsafe, t->type) != NULL, b.unsafe);
        if (rows[i].what == NULL)
            continue;
        ok(says(&b, rows[i].what) && says(&b, rows[i].remedy));
        ok(says(&b, "spool spool") && says(&b, "warning"));
    }
}

TEST(once)
{
    struct disk *disk;
    FIXTURE(bench, b, bench_begin, bench_end);
    sim_disk_reset();
    sim_disk_set_nature(&(struct disk_traits){.type = "tmpfs", .forgets = true});
    if (disk_open(&disk, "spool", true) < 0)
        abort();
    (void)disk_sync_on(disk, b.loop);
    struct filesystem_check n = {.disk = disk, .log = b.log, .loop = b.loop};
    filesystem_check_start(&n);
    loop_turn(b.loop, 0);
    is_number(b.lines.length, 0, "the start comes first");
    sim_loop_advance(b.loop, FILESYSTEM_CHECK_AFTER_MS + 1);
    is_number(count_lines(&b), 1, "then one line");
    sim_loop_advance(b.loop, 24 * 3600 * 1000);
    is_number(count_lines(&b), 1, "once");

    filesystem_check_start(&n);
    filesystem_check_stop(&n);
    sim_loop_advance(b.loop, 2 * FILESYSTEM_CHECK_AFTER_MS);
    is_number(count_lines(&b), 1, "not after the end");
    filesystem_check_start(&n);
    sim_disk_fail_at(sim_disk_calls() + 1, EIO);
    sim_loop_advance(b.loop, 2 * FILESYSTEM_CHECK_AFTER_MS);
    is_number(count_lines(&b), 1, "what cannot be asked is not warned about");
    disk_close(&disk);
}
