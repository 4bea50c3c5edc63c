/* The tail of a ring: what the next process finds there, and what it must not believe. */
#include "admin/history/tail.h"

#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */

enum { SIZE = 20000 };

static struct disk *disk;
static const char PATH[] = "lock/history.mail", BOOT[] = "11111111-1111-1111-1111-111111111111";

static void
fresh(void)
{
    sim_disk_reset();
    ok_named(disk_open(&disk, "/spool", true) == 0 && disk_make_directory(disk, "lock", 0700) == 0, "a spool");
}

/* The lines that a process finds when it starts now. */
static struct text
found(struct tail *t, const char *boot)
{
    tail_open(t, disk, PATH, SIZE, boot);
    return tail_lines(t);
}

TEST(kept)
{
    struct tail t;
    fresh();
    is_number(found(&t, BOOT).length, 0, "at first it is empty");
    ok(t.is_shared && tail_put(&t, TEXT("one\n")) && tail_put(&t, TEXT("two\n")));
    tail_set_mark(&t, 7, 100, tail_lines(&t).at + 4);
    tail_close(&t);
    is_text(found(&t, BOOT), TEXT("one\ntwo\n"), "the next process finds the lines");
    struct tail_mark mark = tail_mark(&t);
    ok_named(mark.first_ms == 7 && mark.offset == 100 && mark.from == 4, "and where they go");
    tail_clear(&t);
    ok(tail_lines(&t).length == 0 && tail_mark(&t).first_ms == 0);
    ok(tail_put(&t, TEXT("three\n")));
    tail_close(&t);
    is_text(found(&t, BOOT), TEXT("three\n"), "none twice");
    tail_close(&t);
    is_number(found(&t, "22222222-2222-2222-2222-222222222222").length, 0, "but none from before the system's start");
    tail_close(&t);
    is_number(found(&t, BOOT).length, 0, "for ever");
    tail_close(&t);
    disk_close(&disk);
}

TEST(full)
{
    struct tail t;
    fresh();
    (void)found(&t, BOOT);
    size_t count = 0;
    while (tail_put(&t, TEXT("0123456789\n")))
        count++;
    is_number(count, (SIZE - TAIL_HEAD) / 11, "it takes what fits");
    is_number(sim_disk_content("/spool/lock/history.mail").length, SIZE, "and is no larger");
    tail_clear(&t);
    ok_named(tail_put(&t, TEXT("0123456789\n")), "then more, when it was cleared");
    tail_close(&t);
    disk_close(&disk);
}

TEST(alone)
{
    struct tail t;
    fresh();
    is_number(found(&t, "").length, 0, "a system that does not tell when it started");
    ok_named(!t.is_shared && tail_put(&t, TEXT("one\n")), "has lines in memory");
    is_text(tail_lines(&t), TEXT("one\n"), "which it finds");
    tail_close(&t);
    is_number(sim_disk_count("/spool/lock"), 0, "and no file");
    tail_open(&t, disk, "none/tail", SIZE, BOOT);
    ok_named(!t.is_shared && tail_put(&t, TEXT("one\n")), "the same where no file can be made");
    tail_close(&t);
    disk_close(&disk);
}

/* Somebody writes into the file while no daemon runs. */
TEST(damaged)
{
    const struct {
        const char *name;
        int64_t offset;
        struct text bytes;
    } cases[] = {
        {"another file",      0,  TEXT("x")               },
        {"more than it has",  56, TEXT("\xff\xff\xff\x7f")},
        {"a third mark",      60, TEXT("\x02")            },
        {"a mark behind all", 80, TEXT("\xff\xff")        },
        {"no end of a line",  56, TEXT("\x03\0\0\0")      },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tail t;
        fresh();
        (void)found(&t, BOOT);
        ok(tail_put(&t, TEXT("one\n")));
        tail_close(&t);
        int file = disk_open_file(disk, PATH, true);
        ok(disk_write_at(disk, file, cases[i].offset, cases[i].bytes) == 0);
        disk_close_file(disk, file);
        is_number(found(&t, BOOT).length, 0, cases[i].name);
        ok(tail_mark(&t).from == 0 && tail_put(&t, TEXT("two\n")));
        tail_close(&t);
        is_text(found(&t, BOOT), TEXT("two\n"), "it begins anew");
        tail_close(&t);
        disk_close(&disk);
    }
}
