/* Journals of other settings: turned off, other slices, killed at every call. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/adopt.h"

#include "t/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { MESSAGES = 6, SEGMENT = 65536, LARGE = 20000 };

static const char *const three[] = {"a@x", "b@x", "c@x", NULL};
static struct kit kit;
static struct id ids[MESSAGES];

static bool
start(unsigned slices, unsigned slice, int64_t journal_size)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = slices,
                                      .slice = slice,
                                      .journal_size = journal_size,
                                      .journal_segment = SEGMENT,
                                      .journal_message_max = 8192};
    kit = (struct kit){.loop = loop_new()};
    kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&kit.lines, 16 * 1024 * 1024);
    log_capture(kit.log, &kit.lines);
    if (queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit, kit.error,
                   sizeof(kit.error)) != 0)
        return false;
    sim_loop_advance(kit.loop, 10);
    return true;
}

static void
stop(void)
{
    kit_close(&kit);
}

static struct text
content_of(unsigned message)
{
    static char bytes[LARGE];
    memset(bytes, 'a' + (int)message, sizeof(bytes));
    return text_of(bytes, message == 1 ? LARGE : 500);
}

/* Small ones; 1 is large, 2 has marks, 3 is held, 4 has ended. */
static void
fill(void)
{
    sim_disk_reset();
    if (!start(1, 0, 4 * SEGMENT))
        abort();
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct envelope *e = kit_accept(&kit, kit_envelope("s@x", three), content_of(i));
        ids[i] = e->id;
        struct failure failure = {
            1, false, outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no")};
        if (i == 2) {
            queue_settle(kit.queue, e, 0, CHANNEL_REMOTE, NULL);
            queue_settle(kit.queue, e, 1, CHANNEL_REMOTE, &failure);
        }
        if (i == 3)
            (void)queue_hold(kit.queue, e, "for a test");
        if (i == 4)
            queue_retire(kit.queue, &e);
        else
            envelope_free(&e);
        sim_loop_advance(kit.loop, 200);
    }
    sim_disk_restart();
    stop();
}

/* Of the open queue: which of them were reported, and that they are whole. */
static unsigned
check_found(unsigned slices, unsigned slice)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        bool ours = id_slice(ids[i], slices) == slice;
        bool wanted = ours && i != 3 && i != 4;
        if ((kit_entry(&kit, ids[i]) != NULL) != wanted)
            printf("# message %u: %s found\n%.*s", i, wanted ? "not" : "wrongly",
                   TEXT_ARGS(buffer_text(&kit.lines)));
        wrong += (kit_entry(&kit, ids[i]) != NULL) != wanted;
        if (!wanted)
            continue;
        struct envelope *e = queue_load(kit.queue, ids[i]);
        wrong += e == NULL || !kit_content_is(&kit, e, content_of(i));
        if (e != NULL && i == 2)
            wrong += e->done != 2 || e->failure_count != 1 || e->recipients[2].done;
        envelope_free(&e);
    }
    return wrong;
}

static void
test_turned_off(void)
{
    fill();
    ok(start(1, 0, 0));
    is_number(check_found(1, 0), 0, "a journal that was turned off comes out");
    is_number(sim_disk_count("/spool/journal"), 0, "and is gone");
    is_number(sim_disk_count("/spool/info"), 5, "all of it is in files now");
    ok(kit_logged(&kit, "5 messages moved to files"));
    stop();
    ok(start(1, 0, 4 * SEGMENT));
    is_number(check_found(1, 0), 0, "turned on again: nothing twice, nothing lost");
    stop();
}

static void
test_slices(unsigned before, unsigned after)
{
    unsigned wrong = 0, found = 0;
    fill();
    for (unsigned n = before;; n = after) {
        found = 0;
        for (unsigned slice = 0; slice < n; slice++) {
            wrong += !start(n, slice, 4 * SEGMENT);
            wrong += check_found(n, slice);
            found += (unsigned)kit.found_count;
            sim_disk_restart();
            stop();
        }
        wrong += found != MESSAGES - 2;
        if (n == after)
            break;
    }
    char label[80];
    snprintf(label, sizeof(label), "1, then %u, then %u slices: each message once", before,
             after);
    is_number(wrong, 0, label);
}

/* Two starts at the same time: the second goes on without what the first one moves. */
static void
test_busy(void)
{
    struct disk *disk;
    fill();
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    int lock = disk_lock(disk, "lock/adopt", 0, ID_SLICES_MAX);
    ok(lock >= 0 && start(2, 0, 4 * SEGMENT));
    is_number(kit.found_count, 0, "it is at work: the second one starts without");
    disk_close_file(disk, lock);
    sim_loop_advance(kit.loop, 3000);
    is_number(check_found(2, 0), 0, "and looks again when that has ended");
    disk_close(&disk);
    stop();
}

static void
test_death(bool power)
{
    unsigned wrong = 0;
    uint64_t at = 0;
    for (bool died = true; died && at < 2000; at++) {
        fill();
        sim_disk_count_anew();
        sim_disk_die_at(at + 1);
        (void)start(2, 1, 4 * SEGMENT);
        died = sim_disk_is_dead();
        stop();
        if (power)
            sim_disk_power_cut();
        else
            sim_disk_restart();
        for (unsigned slice = 0; slice < 2; slice++) {
            wrong += !start(2, slice, 4 * SEGMENT);
            wrong += check_found(2, slice);
            stop();
        }
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
        fill();
        sim_disk_count_anew();
        sim_disk_fail_at(at + 1, error);
        (void)start(2, 1, 4 * SEGMENT);
        failed = sim_disk_has_failed();
        stop();
        sim_disk_restart();
        for (unsigned slice = 0; slice < 2; slice++) {
            wrong += !start(2, slice, 4 * SEGMENT);
            wrong += check_found(2, slice);
            stop();
        }
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
