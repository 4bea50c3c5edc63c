/* lock/quotas: what is used of quotas, over a restart. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "queue/manager/manager_quotas.h"

#include "queue/spool/spool.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
#include "t/support/lock_file.h"

#include <errno.h>

#define DAY_MS  INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)
#define NOW     INT64_C(1700000000000)
/* The clock of a boot, and what the wall clock is ahead of it. */
#define BOOT  (5 * HOUR_MS)
#define AHEAD (NOW - BOOT)

static struct sched *sched;

static int
keep(struct disk *disk, const char *path, struct quotas *q, int64_t now, int64_t ahead)
{
    struct quota_file file = {
        .quotas = q, .sched = sched, .now_ms = now + ahead, .ahead_ms = ahead};
    return quota_file_write(disk, path, &file);
}

static int
get(struct disk *disk, const char *path, struct quotas *q, int64_t now, int64_t ahead)
{
    struct quota_file file = {
        .quotas = q, .sched = sched, .now_ms = now + ahead, .ahead_ms = ahead};
    return quota_file_read(disk, path, &file);
}

static const char PATH[] = "lock/quotas", TABLE[] = "user:* 5/d,4/h\nsender:* 9/m,7/s";

static struct quotas *
table(const char *text)
{
    struct quotas *q = quotas_new();
    struct buffer errors;
    buffer_init(&errors, 1000);
    if (!quotas_set(q, text_from(text), &errors))
        abort();
    buffer_free(&errors);
    return q;
}

static int
passes(struct quotas *q, const char *user, const char *address, int64_t now)
{
    struct quotas_sender who = {
        .user = text_from(user), .uid = QUOTAS_NO_UID, .address = text_from(address)};
    int passed = 0;
    for (bool good = true; good && passed < 100; passed += good) {
        struct quotas_claim claim = {.parts = {{NULL, 0}}};
        struct quotas_refusal refusal;
        good = quotas_take(q, &who, 1, now, &claim, &refusal);
        quotas_settle(q, &claim, good, now);
    }
    return passed;
}

TEST(round)
{
    struct disk *disk = lock_file_home();
    struct quotas *q = table(TABLE), *after = table(TABLE);
    is_number(keep(disk, PATH, q, BOOT, AHEAD), 0, "nothing is used");
    is_number(sim_disk_count(""), 0, "and no file made");
    is_number(get(disk, PATH, after, BOOT, AHEAD), -ENOENT, "none to read");
    is_number(passes(q, "alice", "", BOOT), 4, "alice sends");
    is_number(passes(q, "bob smith", "\"a b\"@example.org", BOOT), 4, "so does bob");
    is_number(keep(disk, PATH, q, BOOT, AHEAD), 0, "written");
    is_number(sim_disk_count(""), 1, "as one file, no draft of it");
    /* A new boot, whose clock begins anew, two hours later. */
    int64_t start = 1000, ahead = NOW + 2 * HOUR_MS - start;
    is_number(get(disk, PATH, after, start, ahead), 0, "read");
    is_number(passes(after, "alice", "", start), 1, "the day's last one is left");
    is_number(passes(after, "carol", "", start), 4, "others have theirs");
    is_number(passes(after, "bob smith", "", start), 1, "names may have blanks");
    is_number(passes(after, NULL, "\"a b\"@example.org", start), 7, "the minute is over");
    is_number(passes(after, "alice", "", start + 25 * HOUR_MS), 4, "a day later");
    is_number(keep(disk, PATH, q, BOOT + 2 * DAY_MS, AHEAD), 0, "all is over");
    is_number(sim_disk_count(""), 0, "the file goes");
    quotas_free(&q);
    quotas_free(&after);
    disk_close(&disk);
}

TEST(removed_rows)
{
    struct disk *disk = lock_file_home();
    struct quotas *q = table(TABLE), *other = table("all 3/d"), *after = table(TABLE);
    passes(q, "alice", "", BOOT);
    is_number(keep(disk, PATH, q, BOOT, AHEAD), 0, "written");
    is_number(get(disk, PATH, other, BOOT, AHEAD), 0, "of no other table");
    is_number(passes(other, "alice", "", BOOT), 3, "which has all");
    quotas_free(&q);
    quotas_free(&other);
    quotas_free(&after);
    disk_close(&disk);
}

/* The rest of a quota of 100,000,000 a day, after a file with these lines. */
static void
is_read(const char *lines, int want, uint32_t used, const char *name)
{
    struct disk *disk = lock_file_home();
    struct quotas *q = table("all 100000000/d");
    char text[4096];
    snprintf(text, sizeof(text), "petrel quotas 1\n%s", lines);
    if (spool_write_path(disk, PATH, text_from(text)) < 0)
        abort();
    is_number(get(disk, PATH, q, BOOT, AHEAD), want, name);
    is_number(quota_used(quotas_recall(q, TEXT("all")), QUOTA_DAY, BOOT), used, name);
    quotas_free(&q);
    disk_close(&disk);
}

TEST(damage)
{
    char line[600];
    is_read("d 1700000000000 3,4 all\n", 0, 7, "good");
    is_read("d 1700000000000 3,4 all", 0, 7, "without its end");
    is_read("d 1700000000000 3,4 \n", -EILSEQ, 0, "no name");
    is_read("d 1700000000000 3,4\n", -EILSEQ, 0, "cut off");
    is_read("d 17x 3 all\n", -EILSEQ, 0, "no time");
    is_read("d 99999999999999999999 3 all\n", -EILSEQ, 0, "no such time");
    is_read("d 4611686018427387903 3 all\n", 0, 3, "a time far ahead is now");
    is_read("d 0 3 all\n", 0, 0, "long ago");
    is_read("w 1700000000000 3 all\n", -EILSEQ, 0, "no such period");
    is_read("d 1700000000000 3,x all\n", -EILSEQ, 0, "no number");
    is_read("d 1700000000000 100000001 all\n", -EILSEQ, 0, "too many");
    is_read("\n\nd 1700000000000 5 all\n", -EILSEQ, 5, "the rest counts");
    is_read("d 1700000000000 5 nobody\n", 0, 0, "a name of no kind");
    snprintf(line, sizeof(line), "d 1700000000000 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                                 "1,1,1,1 all\n");
    is_read(line, 0, 24, "all slots; the oldest has left");
    snprintf(line, sizeof(line), "d 1700000000000 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                                 "1,1,1,1,1 all\n");
    is_read(line, -EILSEQ, 0, "one too many");
}

TEST(foreign)
{
    struct disk *disk = lock_file_home();
    struct quotas *q = table("all 9/d");
    if (spool_write_path(disk, PATH, TEXT("d 1700000000000 3 all\n")) < 0)
        abort();
    is_number(get(disk, PATH, q, BOOT, AHEAD), -EILSEQ, "no title");
    is_number(passes(q, NULL, "", BOOT), 9, "nothing counts");
    if (spool_write_path(disk, PATH, TEXT("")) < 0)
        abort();
    is_number(get(disk, PATH, q, BOOT, AHEAD), -EILSEQ, "empty");
    quotas_free(&q);
    disk_close(&disk);
}

/* The key of a next hop, which need not be known yet. */
TEST(hops)
{
    struct disk *disk = lock_file_home();
    struct quotas *q = table(TABLE);
    struct quota_use *use = sched_quota_recall(sched, TEXT("smtp:me@[mx]:587"));
    quota_reserve(use, 9);
    quota_settle(use, 9, 7, NOW);
    is_number(keep(disk, PATH, q, BOOT, AHEAD), 0, "written");
    is_number(sim_disk_count(""), 1, "a file");
    ok(sched_quota_reset(sched, TEXT("smtp:me@[mx]:587")));
    ok(!sched_quota_reset(sched, TEXT("smtp:[mx]:587")));
    is_number(quota_used(use, QUOTA_DAY, NOW), 0, "forgotten");
    is_number(get(disk, PATH, q, BOOT, AHEAD), 0, "read");
    use = sched_quota_recall(sched, TEXT("smtp:me@[mx]:587"));
    is_number(quota_used(use, QUOTA_DAY, NOW), 7, "a day's");
    is_number(quota_used(use, QUOTA_HOUR, NOW), 7, "without a quota all periods");
    ok(sched_has_quotas(sched));
    quotas_free(&q);
    disk_close(&disk);
}

/* The use of alice's five a day as a process finds it that starts now: she has used 1,
 * then 4. -1: nothing. */
static int
found_after(struct disk *disk)
{
    struct quotas *q = table(TABLE);
    int result = get(disk, PATH, q, BOOT + 2 * HOUR_MS, AHEAD);
    int left = result < 0 ? -1 : 5 - passes(q, "alice", "", BOOT + 2 * HOUR_MS);
    quotas_free(&q);
    return result == -ENOENT ? 0 : left;
}

/* Uses one, and writes it; the caller uses more. */
static struct quotas *
first_written(struct disk *disk)
{
    struct quotas_sender who = {.user = TEXT("alice"), .uid = QUOTAS_NO_UID};
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas_refusal refusal;
    struct quotas *q = table(TABLE);
    ok(quotas_take(q, &who, 1, BOOT, &claim, &refusal));
    quotas_settle(q, &claim, 1, BOOT);
    is_number(keep(disk, PATH, q, BOOT, AHEAD), 0, "the first state");
    is_number(passes(q, "alice", "", BOOT), 3, "three more");
    return q;
}

/* The n-th call fails once: unlink of a draft, open, write, rename. The old file stays,
 * without a draft beside it, and the next attempt writes the new one. */
static void
test_faults(int error)
{
    bool good = true, over = false;
    unsigned failures = 0;
    for (uint64_t call = 1; !over; call++) {
        struct disk *disk = lock_file_home();
        struct quotas *q = first_written(disk);
        sim_disk_count_anew();
        sim_disk_fail_at(call, error);
        int result = keep(disk, PATH, q, BOOT, AHEAD);
        over = !sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        failures += result < 0;
        good = good && sim_disk_count("") == 1 && sim_disk_open_files() == 0;
        good = good && found_after(disk) == (result < 0 ? 1 : 4);
        good = good && keep(disk, PATH, q, BOOT, AHEAD) == 0 && found_after(disk) == 4;
        quotas_free(&q);
        disk_close(&disk);
    }
    ok_named(good, "the old state or the new one");
    ok_named(failures >= 3, "open, write and rename have failed");
}

/* SIGKILL at the n-th call: the old state or the new one, and a half draft does not count,
 * nor is it in the way. After a power cut, as nothing is synced, perhaps none. */
static void
test_deaths(bool power)
{
    bool good = true, over = false;
    for (uint64_t call = 1; !over; call++) {
        struct disk *disk = lock_file_home();
        struct quotas *q = first_written(disk);
        sim_disk_count_anew();
        sim_disk_die_at(call);
        (void)keep(disk, PATH, q, BOOT, AHEAD);
        over = !sim_disk_is_dead();
        disk_close(&disk);
        if (power)
            sim_disk_power_cut();
        else
            sim_disk_restart();
        if (disk_open(&disk, "/spool", true) < 0)
            abort();
        (void)disk_make_directory(disk, "lock", 0700);
        int found = found_after(disk);
        good = good && (found == 1 || found == 4 || (power && found <= 0));
        good = good && keep(disk, PATH, q, BOOT, AHEAD) == 0 && found_after(disk) == 4;
        good = good && sim_disk_count("") == 1;
        quotas_free(&q);
        disk_close(&disk);
    }
    ok_named(good, power ? "after a power cut" : "after SIGKILL");
}

/* Bytes that are no file of ours: an error, no count that is none, and overwritten. */
static void
test_garbage(void)
{
    static char large[QUOTA_FILE_MAX + 100];
    bool good = true;
    uint64_t random = 17;
    for (int round = 0; round < 300; round++) {
        struct disk *disk = lock_file_home();
        struct quotas *q = first_written(disk);
        size_t length = round == 0 ? sizeof(large) : (size_t)round * 7;
        for (size_t i = 0; i < length; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            large[i] = (char)(random >> 56);
        }
        if (round % 2 == 1 && length > 16)
            memcpy(large, "petrel quotas 1\n", 16);
        if (spool_write_path(disk, PATH, text_of(large, length)) < 0)
            abort();
        good = good && found_after(disk) == -1;
        good = good && keep(disk, PATH, q, BOOT, AHEAD) == 0 && found_after(disk) == 4;
        quotas_free(&q);
        disk_close(&disk);
    }
    ok_named(good, "garbage is an error, and the next write repairs it");
}

int
main(void)
{
    static const int64_t now_ms = NOW;
    sched = sched_new(
        &(struct sched_settings){.active_limit = 10, .session_limit = 10, .seed = 7}, &now_ms);
    ok(!sched_has_quotas(sched));
    tap_tests("");
    test_faults(ENOSPC);
    test_faults(EIO);
    test_deaths(false);
    test_deaths(true);
    test_garbage();
    sched_free(&sched);
    return done();
}
