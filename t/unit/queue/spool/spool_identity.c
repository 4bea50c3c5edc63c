/* The identity of a spool: made once, whole or not at all, with an error at any call of the
 * disk. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/spool/spool_identity.h"

#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
#include "t/support/lock_file.h"

#include <errno.h>

static const uint64_t first[2] = {0x0123456789abcdef, 0xfedcba9876543210}, second[2] = {7, 8};
static struct disk *disk;

TEST(made)
{
    char id[SPOOL_IDENTITY_DIGITS + 1];
    disk = lock_file_home();
    is_number(spool_identity(disk, first, id), 0, "made");
    is_string(id, "0123456789abcdeffedcba9876543210", "of what is random");
    is_number(spool_identity(disk, second, id), 0, "another start, or a slice");
    is_string(id, "0123456789abcdeffedcba9876543210", "has the same");
    is_number(sim_disk_count("/spool"), 1, "nothing else is left");
    disk_close(&disk);
    sim_disk_power_cut();
    ok(disk_open(&disk, "/spool", true) >= 0);
    is_number(spool_identity(disk, second, id), 0, "after a power cut");
    is_string(id, "0123456789abcdeffedcba9876543210", "too: it is durable before it is used");
    disk_close(&disk);
}

TEST(damaged)
{
    static const char *const odd[] = {"", "0123", "0123456789abcdeffedcba987654321g\n", "0123456789ABCDEFFEDCBA9876543210\n"};
    char id[SPOOL_IDENTITY_DIGITS + 1];
    for (size_t i = 0; i < 4; i++) {
        disk = lock_file_home();
        lock_file_put(disk, "lock/identity", odd[i]);
        is_number(spool_identity(disk, first, id), -EILSEQ, "a damaged one is not replaced");
        is_string(id, "", "nor used");
        disk_close(&disk);
    }
}

TEST(faults)
{
    char id[SPOOL_IDENTITY_DIGITS + 1], again[SPOOL_IDENTITY_DIGITS + 1];
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; call++) {
        disk = lock_file_home();
        sim_disk_fail_at(call, EIO);
        int error = spool_identity(disk, first, id);
        has_failed = sim_disk_has_failed();
        ok(error == 0 || id[0] == '\0');
        sim_disk_fail_at(0, 0);
        is_number(spool_identity(disk, second, again), 0, "the next start has one");
        ok(error != 0 || strcmp(id, again) == 0);
        disk_close(&disk);
    }
    for (uint64_t call = 1; call < 20; call++) {
        disk = lock_file_home();
        sim_disk_die_at(call);
        int error = spool_identity(disk, first, id);
        disk_close(&disk);
        sim_disk_power_cut();
        if (disk_open(&disk, "/spool", true) < 0)
            abort();
        is_number(spool_identity(disk, second, again), 0, "after a crash there is one");
        ok_named(error != 0 || strcmp(id, again) == 0, "and the one that was used stays");
        disk_close(&disk);
    }
}
