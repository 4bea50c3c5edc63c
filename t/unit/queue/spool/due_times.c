/* Due times that are asked for together. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/spool/due_times.h"

#include "base/log/log_internal.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

enum { MANY = DUE_TIMES_MAX };

static struct spool spool;

static struct id
an_id(unsigned n)
{
    return (struct id){.time_ms = 1750000000000 + n, .hash = n * 77u};
}

static int64_t
due_of(unsigned n)
{
    return 1750000000000 + 1000 * (int64_t)n;
}

static void
put_info(unsigned n)
{
    char bytes[ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE] = "";
    struct envelope e = {.id = an_id(n),
                         .delivery = {.due_ms = due_of(n), .attempts = n % 5}};
    envelope_write_due(&e, bytes + ENVELOPE_DUE_OFFSET);
    int file = spool_write_new(&spool, SPOOL_INFO, e.id,
                               text_of(bytes, sizeof(bytes)), false);
    if (file < 0)
        abort();
    disk_close_file(spool.disk, file);
}

static bool
takes(struct due_times *d, unsigned n)
{
    int64_t due_ms = -1;
    unsigned attempts = 99;
    due_times_take(d, &spool, an_id(n), &due_ms, &attempts);
    return due_ms == due_of(n) && attempts == n % 5;
}

static void
test_in_order(bool cold)
{
    struct due_times d = {0};
    unsigned asked = 0, wrong = 0;
    size_t open = sim_disk_open_files();
    sim_disk_set_cold(cold);
    while (due_times_ask(&d, &spool, an_id(asked)))
        asked++;
    is_number(asked, MANY, "asked for together");
    is_number((int64_t)(sim_disk_open_files() - open), cold ? MANY : 0,
              "files are open while the device reads");
    for (unsigned i = 0; i < MANY; i++)
        wrong += !takes(&d, i);
    is_number(wrong, 0, "each is taken");
    is_number((int64_t)sim_disk_open_files(), (int64_t)open, "none is open afterwards");
    due_times_drop(&d, &spool);
    ok_named(due_times_ask(&d, &spool, an_id(3)), "and there is room again");
    due_times_drop(&d, &spool);
    is_number((int64_t)sim_disk_open_files(), (int64_t)open, "dropped: closed");
}

static void
test_some(bool cold)
{
    struct due_times d = {0};
    unsigned wrong = 0;
    size_t open = sim_disk_open_files();
    sim_disk_set_cold(cold);
    for (unsigned i = 0; i < 20; i++)
        wrong += !due_times_ask(&d, &spool, an_id(i));
    wrong += !takes(&d, 5);
    ok_named(takes(&d, MANY + 1), "one that nobody asked for, between them");
    wrong += (unsigned)!takes(&d, 6) + (unsigned)!takes(&d, 19);
    ok_named(takes(&d, 2), "one that was passed over, read again");
    is_number(wrong, 0, "others are passed over");
    is_number((int64_t)sim_disk_open_files(), (int64_t)open, "and closed");
}

static void
test_unreadable(bool cold)
{
    struct due_times d = {0};
    char path[SPOOL_PATH_MAX], full[SPOOL_PATH_MAX + 10];
    int64_t due_ms = 1;
    unsigned attempts = 1;
    sim_disk_set_cold(cold);
    due_times_take(&d, &spool, an_id(9999), &due_ms, &attempts);
    ok_named(due_ms == 0 && attempts == 0, "no file: now");
    put_info(MANY + 2);
    spool_path(SPOOL_INFO, an_id(MANY + 2), path);
    snprintf(full, sizeof(full), "/spool/%s", path);
    ok(sim_disk_damage(full, ENVELOPE_DUE_OFFSET + 3));
    due_times_take(&d, &spool, an_id(MANY + 2), &due_ms, &attempts);
    ok_named(due_ms == 0 && attempts == 0, "damaged: now");
    is_number(spool_remove(&spool, SPOOL_INFO, an_id(MANY + 2)), 0, "away with it");
    put_info(MANY + 2);
    ok(sim_disk_wear(full, 1));
    due_times_take(&d, &spool, an_id(MANY + 2), &due_ms, &attempts);
    ok_named(due_ms == 0 && attempts == 0, "a bad sector: now");
    is_number(spool_remove(&spool, SPOOL_INFO, an_id(MANY + 2)), 0, "away with it");
}

int
main(void)
{
    char error[300] = "";
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    is_number(spool_open(&spool, "/spool", false, log, error, sizeof(error)), 0, error);
    for (unsigned i = 0; i < MANY + 2; i++)
        put_info(i);
    for (int cold = 0; cold < 2; cold++) {
        test_in_order(cold);
        test_some(cold);
        test_unreadable(cold);
    }
    spool_close(&spool);
    log_free(&log);
    return done();
}
