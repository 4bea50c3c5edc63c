/* Journals of other settings: turned off, other slices, killed at every call. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/recovery/adopt.h"

#include "t/support/slices_kit.h"

#include <errno.h>

static struct kit kit;
static struct dead dead;

static void
test_turned_off(void)
{
    dead_make(&dead, 1, 0);
    ok(slices_start(&kit, 1, 0, 0));
    is_number(dead_check(&dead, &kit, 1, 0), 0,
              "a journal that was turned off comes out");
    is_number(sim_disk_count("/spool/journal"), 0, "and is gone");
    is_number(sim_disk_count("/spool/info"), 5, "all of it is in files now");
    ok(kit_logged(&kit, "5 messages moved to files"));
    kit_close(&kit);
    ok(slices_start(&kit, 1, 0, 4 * SEGMENT));
    is_number(dead_check(&dead, &kit, 1, 0), 0,
              "turned on again: nothing twice, nothing lost");
    kit_close(&kit);
}

static void
test_slices(unsigned before, unsigned after)
{
    unsigned wrong = 0, found = 0;
    dead_make(&dead, 1, 0);
    for (unsigned n = before;; n = after) {
        found = 0;
        for (unsigned slice = 0; slice < n; slice++) {
            wrong += !slices_start(&kit, n, slice, 4 * SEGMENT);
            wrong += dead_check(&dead, &kit, n, slice);
            found += (unsigned)kit.found_count;
            sim_disk_restart();
            kit_close(&kit);
        }
        wrong += found != MESSAGES - 2;
        if (n == after)
            break;
    }
    char label[80];
    snprintf(label, sizeof(label), "1, then %u, then %u slices: each message once",
             before, after);
    is_number(wrong, 0, label);
}

/* Two starts at the same time: the second goes on without what the first one moves. */
static void
test_busy(void)
{
    struct disk *disk;
    dead_make(&dead, 1, 0);
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    int lock = disk_lock(disk, "lock/adopt", 0, ID_SLICES_MAX);
    ok(lock >= 0 && slices_start(&kit, 2, 0, 4 * SEGMENT));
    is_number(kit.found_count, 0, "it is at work: the second one starts without");
    disk_close_file(disk, lock);
    sim_loop_advance(kit.loop, 3000);
    is_number(dead_check(&dead, &kit, 2, 0), 0, "and looks again when that has ended");
    disk_close(&disk);
    kit_close(&kit);
}

/* Both slices start: so much is wrong then. */
static unsigned
both_start(void)
{
    unsigned wrong = 0;
    for (unsigned slice = 0; slice < 2; slice++) {
        wrong += !slices_start(&kit, 2, slice, 4 * SEGMENT);
        wrong += dead_check(&dead, &kit, 2, slice);
        kit_close(&kit);
    }
    return wrong;
}

static void
test_death(bool power)
{
    unsigned wrong = 0;
    uint64_t at = 0;
    for (bool died = true; died && at < 2000; at++) {
        dead_make(&dead, 1, 0);
        sim_disk_count_anew();
        sim_disk_die_at(at + 1);
        (void)slices_start(&kit, 2, 1, 4 * SEGMENT);
        died = sim_disk_is_dead();
        kit_close(&kit);
        if (power)
            sim_disk_power_cut();
        else
            sim_disk_restart();
        wrong += both_start();
        if (wrong > 0)
            break;
    }
    printf("# %u calls\n", (unsigned)at);
    is_number(wrong, 0, power ? "power cut at every call" : "killed at every call");
    ok(at > 50);
}

static void
test_errors(int error)
{
    unsigned wrong = 0;
    uint64_t at = 0;
    for (bool failed = true; failed && at < 2000; at++) {
        dead_make(&dead, 1, 0);
        sim_disk_count_anew();
        sim_disk_fail_at(at + 1, error);
        (void)slices_start(&kit, 2, 1, 4 * SEGMENT);
        failed = sim_disk_has_failed();
        kit_close(&kit);
        sim_disk_restart();
        wrong += both_start();
        if (wrong > 0)
            break;
    }
    printf("# error %d, %u calls\n", error, (unsigned)at);
    is_number(wrong, 0, "a failing disk: the next start does the rest");
}

int
main(void)
{
    test_turned_off();
    test_slices(2, 1);
    test_slices(4, 2);
    test_slices(1, 8);
    test_busy();
    test_death(false);
    test_death(true);
    test_errors(EIO);
    test_errors(ENOSPC);
    sim_disk_reset();
    return done();
}
