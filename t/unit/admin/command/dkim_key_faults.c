/* `petrel dkim-key` that fails or is killed at any system call: the daemon reads all keys of
 * the directory, so that a half one would keep it from its start. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
#include "admin/tool/dkim_key.h"

#include "base/disk/disk.h"
#include "t/sim/sim_disk.h"
#include "t/support/command_world.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#define KEY "/keys/s._domainkey.a.test.pem"

static struct command_world world;

static int
make(void)
{
    return run(dkim_key_command, "a.test s --bits 1024 --directory /keys");
}

/* It is not there, or whole. */
static bool
is_good(void)
{
    struct text content = sim_disk_content(KEY);
    return content.at == NULL ||
           text_ends_nocase(content, TEXT("-----END RSA PRIVATE KEY-----\n"));
}

/* The next one must not be stopped by what is left. False: something is wrong. */
static bool
survives(uint64_t call, int fault, bool *reached)
{
    struct disk *disk;
    sim_disk_reset();
    if (disk_open(&disk, "/keys", true) != 0)
        return false;
    disk_close(&disk);
    sim_disk_count_anew();
    if (fault == 0)
        sim_disk_fail_at(call, EIO);
    else
        sim_disk_die_at(call);
    int code = make();
    *reached = fault == 0 ? sim_disk_has_failed() : sim_disk_is_dead();
    bool told = code == 0 ? sim_disk_content(KEY).at != NULL : *reached;
    if (fault == 2)
        sim_disk_power_cut();
    else
        sim_disk_restart();
    bool had = sim_disk_content(KEY).at != NULL;
    bool good = told && is_good() && (code != 0 || had);
    code = make();
    return good && is_good() && code == (had ? EX_CANTCREAT : 0) &&
           sim_disk_count("/keys") == 1;
}

/* Another one at work. Its file is not touched. */
static void
test_lock(void)
{
    struct disk *disk;
    sim_disk_reset();
    if (disk_open(&disk, "/keys", true) != 0)
        return;
    int lock = disk_lock(disk, KEY ".lock", 0, 1);
    int half = disk_create(disk, KEY ".new", 0600);
    ok(lock >= 0 && half >= 0 && disk_write(disk, half, TEXT("half of it")) == 0);
    is_number(make(), EX_TEMPFAIL, "two at a time: the second gives up");
    ok_named(sim_disk_content(KEY).at == NULL, "without a key");
    is_text(sim_disk_content(KEY ".new"), TEXT("half of it"), "the first goes on");
    disk_close_file(disk, half);
    disk_close_file(disk, lock);
    is_number(make(), 0, "after a kill of the first");
    ok_named(is_good() && sim_disk_count("/keys") == 1, "nothing but the key is left");
    disk_close(&disk);
}

int
main(void)
{
    static const char *const names[] = {"an error", "a kill", "a power cut"};
    command_world_begin(&world, "dkim_faults");
    for (int fault = 0; fault < 3; fault++) {
        bool reached = true;
        unsigned wrong = 0;
        uint64_t call = 1;
        for (; reached && call < 100; call++)
            wrong += !survives(call, fault, &reached);
        is_number(wrong, 0, names[fault]);
        ok_named(call > 6 && !reached, "  at each call");
    }
    test_lock();
    command_world_end(&world);
    return done();
}
