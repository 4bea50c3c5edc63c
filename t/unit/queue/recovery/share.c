/* Daemons beside each other: owners of slices, and taking over that of a dead one.
 */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "queue/recovery/share.h"
#include "queue/spool/spool_form.h"

#include "t/support/slices_kit.h"

#include <errno.h>
#include <sysexits.h>

static struct kit kit;
static struct dead dead;

static const char *
refused(unsigned slice)
{
    struct answer none = {0};
    const char *error = queue_adopt(kit.queue, slice, on_adopted, &none);
    return error ? error : "(taken)";
}

static void
take_over(struct answer *a)
{
    *a = (struct answer){0};
    const char *error = queue_adopt(kit.queue, 1, on_adopted, a);
    if (!ok_named(error == NULL, "the dead one's may be taken"))
        printf("# %s\n", error);
    is_number(a->count, 0, "told later");
    sim_loop_advance(kit.loop, 1000);
}

/* --- Taking over -------------------------------------------------------------------
 */

static void
test_take_over(void)
{
    struct answer a;
    slices_begin(&kit, &dead);
    is_number(kit.found_count, 0, "at first nothing of it is ours");
    ok(!queue_handles(kit.queue, dead.ids[0]));
    ok(sim_disk_count("/spool/journal/0512-1023") > 0);
    take_over(&a);
    is_number(a.count, 1, "told once");
    is_string(a.error, "", "and it went well");
    is_number(a.messages, 5, "all but the one that had ended");
    is_number(dead_check(&dead, &kit, 2, 1), 0, "each is reported, whole");
    is_number(kit.found_count, 4, "once; but not what is held");
    is_number(sim_disk_count("/spool/journal/0512-1023"), 0, "its journal is gone");
    ok(queue_handles(kit.queue, dead.ids[0]));
    ok(kit_logged(&kit, "serving slice 1 of 2 until this daemon stops"));
    is_string(refused(1), "slice 1 of 2 is handled here already", "twice");
    kit_close(&kit);
}

/* A message that ends here does not come back when its own daemon does. */
static void
test_return(bool power)
{
    struct answer a;
    slices_begin(&kit, &dead);
    take_over(&a);
    for (unsigned i = 0; i < 3; i++) {
        struct envelope *e = queue_load(kit.queue, dead.ids[i]);
        queue_retire(kit.queue, &e);
    }
    struct envelope *e = queue_load(kit.queue, dead.ids[5]);
    queue_settle(kit.queue, e, 1, NULL);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 5000, 1);
    sim_loop_advance(kit.loop, 500);
    if (power)
        sim_disk_power_cut();
    else
        sim_disk_restart();
    kit_close(&kit);
    ok_named(slices_start(&kit, 2, 1, 4 * SEGMENT), "its own daemon is back");
    is_number(kit.found_count, 1, "only what is left of it");
    ok(kit_entry(&kit, dead.ids[5]) != NULL);
    e = queue_load(kit.queue, dead.ids[5]);
    ok(e != NULL && e->recipients[1].done && !e->recipients[0].done);
    envelope_free(&e);
    is_number(sim_disk_count("/spool/hold"), 1, "and the held one");
    kit_close(&kit);
}

TEST(new_mail)
{
    static const char *const one[] = {"a@x", NULL};
    struct answer a;
    unsigned wrong = 0;
    slices_begin(&kit, &dead);
    take_over(&a);
    for (int i = 0; i < 20; i++) {
        struct envelope *e =
            queue_kit_accept(&kit, kit_envelope("s@x", one), TEXT("x\r\n"));
        wrong += e == NULL || id_slice(e->id, 2) != 0;
        envelope_free(&e);
    }
    is_number(wrong, 0, "new names stay in our own slice");
    kit_close(&kit);

    struct kit injector;
    slices_begin(&kit, &dead);
    take_over(&a);
    kit.found_count = 0;
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    for (int i = 0; i < 20; i++) {
        struct envelope *e =
            queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("x\r\n"));
        envelope_free(&e);
    }
    kit_close(&injector);
    is_number(sim_disk_fifo_pulled("/spool/lock/trigger.0000-0511") +
                  sim_disk_fifo_pulled("/spool/lock/trigger.0512-1023"),
              20, "injectors wake us for both");
    sim_loop_ready(kit.loop, sim_disk_fifo_reader("/spool/lock/trigger.0512-1023"),
                   LOOP_READ);
    sim_loop_advance(kit.loop, 500);
    is_number(kit.found_count, 20, "and all of it is ours");
    kit_close(&kit);
}

/* --- Refusals ----------------------------------------------------------------------
 */

TEST(refusals)
{
    struct kit other;
    slices_begin(&kit, &dead);
    is_string(refused(0), "slice 0 of 2 is handled here already", "our own");
    is_string(refused(2), "no such slice: there are 0 to 1", "none");
    ok_named(slices_start(&other, 2, 1, 4 * SEGMENT), "its daemon is alive again");
    is_string(refused(1), "slice 1 of 2 is handled by another petrel, which runs",
              "and keeps it");
    kit_close(&other);
    is_string(refused(1), "(taken)", "until it stops");
    is_string(refused(1), "another slice is just being taken over", "one at a time");
    queue_adopt_ignore(kit.queue, NULL); /* another's: nothing happens */
    kit_close(&kit);

    slices_begin(&kit, &dead);
    struct answer a;
    take_over(&a);
    ok_named(!slices_start(&other, 2, 1, 4 * SEGMENT),
             "while we have it, it must wait");
    ok(strstr(other.error, "slice 1 of 2 is handled by another petrel") != NULL);
    kit_close(&other);
    kit_close(&kit);
    ok_named(slices_start(&other, 2, 1, 4 * SEGMENT), "until we stop");
    kit_close(&other);
}

/* Another slice has been upgraded already, and has died: what it has written is damage to us. */
TEST(newer)
{
    struct kit other;
    char error[200];
    slices_begin(&kit, &dead);
    is_number(
        spool_form_raise(queue_disk(kit.queue), 2, "0512-1023", error, sizeof(error)),
        0, "a newer version");
    is_string(refused(1),
              "a newer version of Petrel has written this spool (form 2; this version "
              "reads up to 1): start that version",
              "is not taken over");
    kit_close(&kit);
    ok_named(!slices_start(&other, 2, 1, 4 * SEGMENT), "nor started");
    ok(strstr(other.error, "a newer version") == other.error);
    kit_close(&other);
    is_number(sim_disk_count("/spool/journal/0512-1023") > 0, 1, "its journal stays");
}

struct locker {
    struct disk *disk;
    int lock;
    struct loop_timer timer;
};

static void
let_go(void *context)
{
    struct locker *h = context;
    disk_close_file(h->disk, h->lock);
    h->lock = -1;
}

/* An operator's command, which is no daemon, has the lock for hold_ms. */
static int
start_beside(int64_t hold_ms, int64_t *waited_ms)
{
    struct locker h = {0};
    struct queue_settings settings = {.spool = "/spool", .slices = 1};
    sim_disk_reset();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    kit_close(&kit);
    if (disk_open(&h.disk, "/spool", false) != 0)
        abort();
    h.lock = disk_lock(h.disk, "lock/daemon", 0, ID_SLICES_MAX);
    kit = (struct kit){.loop = loop_new()};
    kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    loop_timer_start(kit.loop, &h.timer, hold_ms, let_go, &h);
    int64_t before = loop_monotonic_ms(kit.loop);
    int code = queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit,
                          kit.error, sizeof(kit.error));
    *waited_ms = loop_monotonic_ms(kit.loop) - before;
    loop_timer_stop(kit.loop, &h.timer);
    if (h.lock >= 0)
        let_go(&h);
    disk_close(&h.disk);
    kit_close(&kit);
    return code;
}

TEST(patience)
{
    int64_t waited_ms;
    is_number(start_beside(1500, &waited_ms), 0, "a command has the lock: we wait");
    ok(waited_ms >= 1500 && waited_ms < 2500);
    is_number(start_beside(60 * 1000, &waited_ms), EX_TEMPFAIL, "not for ever");
    ok(waited_ms >= 9000 && waited_ms < 15000);
}

TEST(ignored)
{
    struct answer a = {0};
    slices_begin(&kit, &dead);
    ok(queue_adopt(kit.queue, 1, on_adopted, &a) == NULL);
    queue_adopt_ignore(kit.queue, &a);
    sim_loop_advance(kit.loop, 1000);
    is_number(a.count, 0, "who went away is not told");
    is_number(dead_check(&dead, &kit, 2, 1), 0, "it is done all the same");
    kit_close(&kit);

    slices_begin(&kit, &dead);
    ok(queue_adopt(kit.queue, 1, on_adopted, &a) == NULL);
    loop_turn(kit.loop, 0);
    kit_close(&kit);
    is_number(a.count, 0, "nor when the daemon ends");
    ok(slices_start(&kit, 2, 1, 4 * SEGMENT));
    is_number(dead_check(&dead, &kit, 2, 1), 0, "nothing is lost");
    kit_close(&kit);
}

/* Another petrel moves the same journal: it is waited for. */
TEST(busy)
{
    struct answer a = {0};
    struct disk *disk;
    slices_begin(&kit, &dead);
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    int lock = disk_lock(disk, "lock/adopt", 0, ID_SLICES_MAX);
    ok(lock >= 0 && queue_adopt(kit.queue, 1, on_adopted, &a) == NULL);
    sim_loop_advance(kit.loop, 5000);
    is_number(a.count, 0, "not yet");
    is_number(kit.found_count, 0, "nothing is reported");
    disk_close_file(disk, lock);
    sim_loop_advance(kit.loop, 5000);
    is_number(a.count, 1, "now");
    is_string(a.error, "", "well");
    is_number(dead_check(&dead, &kit, 2, 1), 0, "all of it");
    disk_close(&disk);
    kit_close(&kit);
}

/* --- Faults ------------------------------------------------------------------------
 */

enum fault { KILLED, POWER, FAILED_EIO, FAILED_ENOSPC };

/* At that call after the question. False: the last one was before it. */
static bool
fault_at(uint64_t at, enum fault fault, unsigned *wrong)
{
    struct answer a = {0};
    slices_begin(&kit, &dead);
    sim_disk_count_anew();
    if (fault == KILLED || fault == POWER)
        sim_disk_die_at(at);
    else
        sim_disk_fail_at(at, fault == FAILED_EIO ? EIO : ENOSPC);
    bool asked = queue_adopt(kit.queue, 1, on_adopted, &a) == NULL;
    sim_loop_advance(kit.loop, 130 * 1000); /* what failed is tried again */
    bool dead_now = sim_disk_is_dead(), happened = dead_now || sim_disk_has_failed();
    if (!happened) { /* nor while we look */
        sim_disk_die_at(0);
        sim_disk_fail_at(0, 0);
    }
    *wrong += asked && a.count == 1 && a.error[0] == '\0' && !dead_now &&
              dead_check(&dead, &kit, 2, 1) > 0;
    *wrong += a.count > 1;
    if (fault == POWER)
        sim_disk_power_cut();
    else
        sim_disk_restart();
    kit_close(&kit);
    for (unsigned slice = 0; slice < 2; slice++) {
        *wrong += !slices_start(&kit, 2, slice, 4 * SEGMENT);
        *wrong += dead_check(&dead, &kit, 2, slice);
        kit_close(&kit);
    }
    return happened;
}

static void
test_faults(enum fault fault, const char *name)
{
    unsigned wrong = 0;
    uint64_t at = 1;
    while (at < 2000 && fault_at(at, fault, &wrong) && wrong == 0)
        at++;
    printf("# %u calls\n", (unsigned)at);
    is_number(wrong, 0, name);
    ok(at > 50);
}

int
main(void)
{
    test_take_over();
    test_return(false);
    test_return(true);
    tap_tests("");
    test_faults(KILLED, "killed at every call");
    test_faults(POWER, "a power cut at every call");
    test_faults(FAILED_EIO, "EIO at every call");
    test_faults(FAILED_ENOSPC, "ENOSPC at every call");
    sim_disk_reset();
    return done();
}
