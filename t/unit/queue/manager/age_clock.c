/* A step of the clock forward makes no mail older, in this boot, also over a restart. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/manager/age_clock.h"

#include "queue/spool/spool.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)
#define NOW     INT64_C(1700000000000)
#define PATH    "lock/clock"

static struct disk *disk;

static struct age_clock
begin(const char *boot, int64_t now_ms, int64_t steady_ms)
{
    struct age_clock clock;
    age_clock_start(&clock, disk, PATH, boot, now_ms, steady_ms);
    return clock;
}

static void
write_clock(const char *content)
{
    ok(spool_write_path(disk, PATH, text_from(content)) == 0);
}

/* A boot in the past, mail, then the right time. */
TEST(steps)
{
    struct age_clock c = begin("boot-1", NOW, 1000);
    is_number(age_clock_birth_ms(&c, NOW + 500, NOW + 500), NOW + 500,
              "no step: as it is");
    age_clock_note(&c, disk, PATH, NOW + HOUR_MS, 1000 + HOUR_MS);
    age_clock_note(&c, disk, PATH, NOW + 2 * HOUR_MS, 1001 + HOUR_MS + 1);
    is_number(c.count, 0, "time that passes, and a step below an hour, are none");
    int64_t now_ms = NOW + 10 * DAY_MS, steady_ms = 1000 + HOUR_MS;
    age_clock_note(&c, disk, PATH, now_ms, steady_ms);
    is_number(c.count, 1, "ten days in an hour");
    is_number(now_ms - age_clock_birth_ms(&c, NOW, now_ms), HOUR_MS,
              "the mail is an hour old");
    is_number(age_clock_birth_ms(&c, now_ms, now_ms), now_ms,
              "later mail is not moved");
    c = begin("boot-1", now_ms + 5000, steady_ms + 5000);
    is_number(now_ms - age_clock_birth_ms(&c, NOW, now_ms), HOUR_MS,
              "after a restart, too");
    c = begin("boot-2", now_ms + 5000, 50);
    is_number(age_clock_birth_ms(&c, NOW, now_ms), NOW,
              "of another boot nothing is known");
}

/* Mail that waits for seven days, and a step of forty on the sixth. */
TEST(release)
{
    struct age_clock c = begin("boot-1", NOW, 1000);
    int64_t steady_ms = 1000 + 6 * DAY_MS, now_ms = NOW + 46 * DAY_MS;
    is_number(age_clock_release_ms(&c, NOW + 7, NOW + 8), NOW + 7, "no step: as it is");
    is_number(age_clock_release_ms(&c, NOW + 9, NOW + 8), NOW + 8, "it has not come");
    age_clock_note(&c, disk, PATH, now_ms, steady_ms);
    is_number(age_clock_release_ms(&c, NOW + 7 * DAY_MS, now_ms + 9), now_ms, "it came with the step");
    is_number(age_clock_release_ms(&c, NOW + DAY_MS, now_ms), NOW + 41 * DAY_MS, "it had come before");
    is_number(age_clock_release_ms(&c, now_ms + 5, now_ms + 9), now_ms + 5, "it comes behind it");
    age_clock_note(&c, disk, PATH, now_ms - 2 * DAY_MS, steady_ms + DAY_MS);
    is_number(age_clock_release_ms(&c, NOW + 7 * DAY_MS, now_ms), now_ms - 3 * DAY_MS, "and moves by a step back");
}

/* A step ahead, and back by so little that it is time that has passed: what comes then
 * seems to come in the time that the step ahead has left out. */
TEST(left_out)
{
    struct age_clock c = begin("boot-5", NOW, 0);
    int64_t ahead_ms = NOW - 40 * DAY_MS + 26 * HOUR_MS;
    age_clock_note(&c, disk, PATH, NOW - 40 * DAY_MS, 0);
    age_clock_note(&c, disk, PATH, ahead_ms, 0);
    int64_t now_ms = ahead_ms - HOUR_MS + 12000;
    age_clock_note(&c, disk, PATH, now_ms, 10000);
    is_number(c.count, 2, "an hour back, nearly");
    is_number(age_clock_birth_ms(&c, now_ms, now_ms), now_ms, "new mail is new");
    is_number(age_clock_birth_ms(&c, NOW, now_ms), ahead_ms,
              "the first mail is moved by both steps");
}

/* The clock is set while no daemon runs, and back while one does. */
TEST(between)
{
    struct age_clock c = begin("boot-3", NOW, 0);
    c = begin("boot-3", NOW + 10 * DAY_MS, 2000);
    is_number(NOW + 10 * DAY_MS - age_clock_birth_ms(&c, NOW, NOW + 10 * DAY_MS), 2000,
              "two seconds old");
    age_clock_note(&c, disk, PATH, NOW + 5 * DAY_MS, 3000);
    is_number(NOW + 5 * DAY_MS -
                  age_clock_birth_ms(&c, NOW + 10 * DAY_MS, NOW + 5 * DAY_MS),
              1000, "set back: what came before is no younger");
    age_clock_note(&c, disk, PATH, NOW + 10 * DAY_MS, 4000);
    is_number(c.count, 3, "and ahead again");
    is_number(NOW + 10 * DAY_MS -
                  age_clock_birth_ms(&c, NOW + 5 * DAY_MS, NOW + 10 * DAY_MS),
              1000, "of what came between");
    for (int i = 1; i <= 2 * AGE_STEPS_MAX; i++)
        age_clock_note(&c, disk, PATH, NOW + (10 + i) * DAY_MS, 4000);
    is_number(c.count, AGE_STEPS_MAX, "a limit");
    is_number(begin("boot-3", NOW + (10 + 2 * AGE_STEPS_MAX) * DAY_MS, 4000).count,
              AGE_STEPS_MAX, "also in the file");
}

TEST(damage)
{
    static const char *const rows[] = {
        "",
        "petrel clock 2\nboot-4\n1\n",
        "petrel clock 1\nboot-4\n",
        "petrel clock 1\nboot-4\nx\n",
        "petrel clock 1\nboot-4\n1\n5\n",
        "petrel clock 1\nboot-4\n1\n5 -5\n",
        "petrel clock 1\nboot-4\n99999999999999999999\n",
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        write_clock(rows[i]);
        struct age_clock c = begin("boot-4", NOW, 0);
        is_number(c.count, 0, rows[i]);
        is_number(c.lead_ms, NOW, "begun anew");
    }
    struct age_clock c = begin("", NOW, 0);
    age_clock_note(&c, disk, PATH, NOW + DAY_MS, 0);
    is_number(age_clock_birth_ms(&c, NOW, NOW + DAY_MS), NOW + DAY_MS,
              "without a boot: in memory");
    char boot[AGE_BOOT_MAX];
    age_clock_boot(boot);
    ok_named(strchr(boot, '\n') == NULL, "the boot is a word");
}

/* Steps of less than an hour are known as one when they are large together: else new mail
 * would soon seem to be of the clock before. */
TEST(small_steps)
{
    struct age_clock c = begin("boot-6", NOW, 0);
    int64_t now_ms = NOW - 40 * DAY_MS;
    is_number(age_clock_note(&c, disk, PATH, now_ms, 0), -40 * DAY_MS, "a large one is told");
    for (int i = 0; i < 5; i++) {
        now_ms -= HOUR_MS - 1000;
        is_number(age_clock_note(&c, disk, PATH, now_ms, 0),
                  i % 2 == 0 ? 0 : -2 * HOUR_MS + 2000, i % 2 == 0 ? "a small one is not" : "two are");
        is_number(age_clock_birth_ms(&c, now_ms, now_ms), now_ms, "new mail is new");
    }
    is_number(age_clock_birth_ms(&c, NOW, now_ms), now_ms + HOUR_MS - 1000, "mail before them all moves with them");
}

/* Each birth by the clock of now is written so that it is read as this, whatever the steps were. */
TEST(written)
{
    static const int64_t steps[][4] = {
        {-40 * DAY_MS},
        {40 * DAY_MS},
        {-40 * DAY_MS, -40 * DAY_MS, 2 * HOUR_MS, -3 * HOUR_MS},
        {40 * DAY_MS, -80 * DAY_MS, 5 * HOUR_MS, 40 * DAY_MS},
        {-2 * HOUR_MS, 40 * DAY_MS, -40 * DAY_MS, 2 * HOUR_MS},
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct age_clock c = begin("boot-7", NOW, 0);
        int64_t now_ms = NOW, steady_ms = 0;
        unsigned wrong = 0, moved = 0;
        for (size_t n = 0; n < 4 && steps[i][n] != 0; n++) {
            now_ms += DAY_MS + steps[i][n];
            steady_ms += DAY_MS;
            (void)age_clock_note(&c, disk, PATH, now_ms, steady_ms);
        }
        now_ms += DAY_MS;
        for (int64_t age_ms = 0; age_ms < 7 * DAY_MS; age_ms += HOUR_MS / 2) {
            int64_t birth_ms = now_ms - age_ms,
                    written_ms = age_clock_written_ms(&c, birth_ms, now_ms);
            wrong += llabs(age_clock_birth_ms(&c, written_ms, now_ms) - birth_ms) > 6 * HOUR_MS;
            moved += written_ms != birth_ms;
        }
        is_number(wrong, 0, "as it was, but for the small steps");
        ok_named(moved > 0, "those before a step are written by the clock of then");
    }
}

int
main(void)
{
    sim_disk_reset();
    if (disk_open(&disk, "/spool", true) < 0 ||
        disk_make_directory(disk, "lock", 0700) < 0)
        return 1;
    tap_tests("");
    disk_close(&disk);
    return done();
}
