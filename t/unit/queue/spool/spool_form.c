/* The form of a spool: raised once, durably, whatever call of the disk fails; never for an older version. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/spool/spool_form.h"

#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
#include "t/support/lock_file.h"

#include <errno.h>
#include <sysexits.h>

static struct disk *disk;
static char error[200];

static int
start(unsigned own)
{
    error[0] = '\0';
    return spool_form_raise(disk, own, "0000-1023", error, sizeof(error));
}

TEST(raised)
{
    disk = lock_file_home();
    is_number(start(1), 0, "the first form");
    is_number(sim_disk_count("/spool"), 0, "leaves no file");
    is_number(start(3), 0, "a newer version");
    is_number(sim_disk_count("/spool"), 1, "one file");
    is_number(start(3), 0, "the same version");
    is_number(start(4), 0, "the next");
    disk_close(&disk);
    sim_disk_power_cut();
    ok(disk_open(&disk, "/spool", true) >= 0);
    is_number(start(3), EX_CONFIG, "an older one ends, even after a power cut");
    is_string(error, "a newer version of Petrel has written this spool (form 4; this version reads up to 3): start that version", "with one line");
    is_number(start(4), 0, "and changes nothing");
    disk_close(&disk);
}

TEST(damaged)
{
    static const char *const odd[] = {"", "2", "0\n", "2\n\n", "a\n", "12\n"};
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        disk = lock_file_home();
        lock_file_put(disk, "lock/form", odd[i]);
        is_number(start(9), EX_CONFIG, "a damaged one is not replaced");
        ok_named(strstr(error, "lock/form of the spool: ") == error, "and named");
        disk_close(&disk);
    }
}

TEST(faults)
{
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; call++) {
        disk = lock_file_home();
        sim_disk_fail_at(call, EIO);
        int code = start(2);
        has_failed = sim_disk_has_failed();
        ok(code == 0 || (code == EX_IOERR && error[0] != '\0'));
        sim_disk_fail_at(0, 0);
        is_number(start(2), 0, "the next start goes on");
        is_number(sim_disk_count("/spool"), 1, "no draft is left");
        is_number(start(1), EX_CONFIG, "raised");
        disk_close(&disk);
    }
    for (uint64_t call = 1; call < 12; call++) {
        disk = lock_file_home();
        sim_disk_die_at(call);
        int code = start(2);
        disk_close(&disk);
        sim_disk_power_cut();
        if (disk_open(&disk, "/spool", true) < 0)
            abort();
        ok_named(code != 0 || start(1) == EX_CONFIG, "what was raised stays so");
        is_number(start(2), 0, "after a crash it starts");
        disk_close(&disk);
    }
}
