/* Taking over a slice must not disturb the mail of our own. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "queue/recovery/share.h"

#include "base/log/log_internal.h"
#include "t/support/slices_kit.h"

#include <errno.h>
#include <string.h>

enum { MANY = 600 };

static struct kit kit;
static struct dead dead;

/* Until one of them is of slice 0. */
static struct id
inject(void)
{
    static const char *const one[] = {"a@x", NULL};
    struct kit injector;
    struct id id = {0};
    bool ours = false;
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    while (!ours) {
        struct envelope *e =
            queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("x\r\n"));
        id = e->id;
        ours = id_slice(id, 2) == 0;
        envelope_free(&e);
    }
    kit_close(&injector);
    sim_loop_ready(kit.loop, sim_disk_fifo_reader("/spool/lock/trigger.0000-0511"),
                   LOOP_READ);
    return id;
}

/* Another petrel is at the journal that we want, for long. */
TEST(busy)
{
    struct answer a = {0};
    struct disk *disk;
    slices_begin(&kit, &dead);
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    int lock = disk_lock(disk, "lock/adopt", 512, 512);
    ok(lock >= 0 && queue_adopt(kit.queue, 1, on_adopted, &a) == NULL);
    sim_loop_advance(kit.loop, 1000);
    struct id id = inject();
    sim_loop_advance(kit.loop, 1500);
    ok_named(kit_entry(&kit, id) != NULL, "what is injected meanwhile is ours at once");
    is_number(a.count, 0, "and the other journal is waited for");
    disk_close_file(disk, lock);
    sim_loop_advance(kit.loop, 5000);
    is_number(a.count, 1, "until it is ours");
    is_string(a.error, "", "well");
    is_number(dead_check(&dead, &kit, 2, 1), 0, "all of it");
    disk_close(&disk);
    kit_close(&kit);
}

/* The disk refuses a part of the journal that we want: each call once. */
TEST(refused)
{
    unsigned late = 0, refusals = 0;
    bool failed = true;
    for (uint64_t call = 1; failed && call < 1000; call++) {
        struct answer a = {0};
        slices_begin(&kit, &dead);
        sim_disk_count_anew();
        sim_disk_fail_at(call, ENOMEM);
        bool asked = queue_adopt(kit.queue, 1, on_adopted, &a) == NULL;
        sim_loop_advance(kit.loop, 1000);
        failed = sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        if (asked && a.count == 1 && a.error[0] != '\0') {
            refusals++;
            struct id id = inject();
            sim_loop_advance(kit.loop, 1500);
            late += kit_entry(&kit, id) == NULL;
        }
        kit_close(&kit);
    }
    ok(refusals > 5);
    is_number(late, 0, "what is injected then is ours at once");
}

/* While the first listing of our own is under way, in any state. */
TEST(early)
{
    static const char *const one[] = {"a@x", NULL};
    static struct id ids[MANY];
    unsigned wrong = 0;
    struct answer a;
    for (unsigned turns = 0; turns < 14; turns++) {
        dead_make(&dead, 2, 1);
        if (!slices_start(&kit, 2, 0, 4 * SEGMENT))
            abort();
        for (unsigned i = 0; i < MANY; i++) {
            struct envelope *e =
                queue_kit_accept(&kit, kit_envelope("s@x", one), TEXT("x\r\n"));
            ids[i] = e->id;
            if (i % 2 == 0)
                queue_defer(kit.queue, &e, loop_now_ms(kit.loop), 1);
            else
                envelope_free(&e);
        }
        sim_loop_advance(kit.loop, 5000);
        kit_close(&kit);

        struct queue_settings settings = {.spool = "/spool",
                                          .slices = 2,
                                          .journal_size = 4 * SEGMENT,
                                          .journal_segment = SEGMENT,
                                          .journal_message_max = 8192};
        kit = (struct kit){.loop = loop_new()};
        kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
        buffer_init(&kit.lines, 16 * 1024 * 1024);
        log_capture(kit.log, &kit.lines);
        if (queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit,
                       kit.error, sizeof(kit.error)) != 0)
            abort();
        for (unsigned i = 0; i < turns; i++)
            loop_turn(kit.loop, 0);
        a = (struct answer){0};
        wrong += queue_adopt(kit.queue, 1, on_adopted, &a) != NULL;
        sim_loop_advance(kit.loop, 5000);
        wrong += a.count != 1 || a.error[0] != '\0';
        wrong += dead_check(&dead, &kit, 2, 1);
        wrong += kit.found_count != MANY + 4;
        for (unsigned i = 0; i < MANY; i++)
            wrong += kit_entry(&kit, ids[i]) == NULL;
        if (wrong > 0)
            printf("# after %u turns: %zu found\n", turns, kit.found_count);
        kit_close(&kit);
    }
    is_number(wrong, 0, "each message is found once, ours and theirs");
}

/* A message that has ended here is not damaged for a daemon after a power cut, with any
 * part of its end that has survived. False: there is no such cut. */
static bool
cut_after_end(enum sim_cut_kind kind, size_t item, int64_t after_ms, unsigned *wrong)
{
    struct answer a = {0};
    slices_begin(&kit, &dead);
    *wrong += queue_adopt(kit.queue, 1, on_adopted, &a) != NULL;
    sim_loop_advance(kit.loop, 1000);
    struct envelope *e = queue_load(kit.queue, dead.ids[0]);
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, after_ms);
    bool there = item < sim_disk_cuts(kind);
    if (there)
        sim_disk_cut((struct sim_cut){kind, item});
    else
        sim_disk_restart();
    kit_close(&kit);
    *wrong += !slices_start(&kit, 2, 1, 4 * SEGMENT);
    sim_loop_advance(kit.loop, 1000);
    *wrong += sim_disk_count("/spool/corrupt") > 0;
    *wrong += after_ms > 200 && kit_entry(&kit, dead.ids[0]) != NULL;
    if (kit_entry(&kit, dead.ids[0]) != NULL) {
        e = queue_load(kit.queue, dead.ids[0]);
        *wrong += e == NULL || !kit_content_is(&kit, e, dead_content(0));
        envelope_free(&e);
    }
    kit_close(&kit);
    return there;
}

TEST(cuts_after_end)
{
    static const int64_t moments[] = {0, 50, 101, 150, 250, 1000};
    unsigned wrong = 0, cuts = 0;
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++)
        for (int kind = 0; kind < SIM_CUT_GARBAGE; kind++)
            for (size_t item = 0;
                 cut_after_end((enum sim_cut_kind)kind, item, moments[i], &wrong);
                 item++)
                cuts++;
    is_number(wrong, 0, "what has ended is gone, or whole; and never damaged");
    printf("# %u cuts\n", cuts);
    ok(cuts > 30);
}

/* Large content of our own is not yet found, because a call has failed, when the other
 * slice is listed. */
TEST(not_found_yet)
{
    static const char *const one[] = {"a@x", NULL};
    static char large[20000];
    unsigned wrong = 0, calls = 0;
    bool failed = true;
    memset(large, 'x', sizeof(large));
    memcpy(large + sizeof(large) - 2, "\r\n", 2);
    for (uint64_t call = 1; failed && call < 1000; call++) {
        dead_make(&dead, 2, 1);
        if (!slices_start(&kit, 2, 0, 4 * SEGMENT))
            abort();
        struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", one),
                                              text_of(large, sizeof(large)));
        struct id id = e->id;
        envelope_free(&e);
        kit_close(&kit);
        sim_disk_count_anew();
        sim_disk_fail_at(call, EIO);
        bool opened = slices_start(&kit, 2, 0, 4 * SEGMENT);
        failed = sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        struct answer a = {0};
        if (opened && queue_adopt(kit.queue, 1, on_adopted, &a) == NULL) {
            calls++;
            sim_loop_advance(kit.loop, 60000);
            wrong += sim_disk_count("/spool/corrupt") > 0 || kit_entry(&kit, id) == NULL;
        }
        kit_close(&kit);
    }
    printf("# %u calls\n", calls);
    ok(calls > 5);
    is_number(wrong, 0, "it is found later, and not taken for damaged");
}

int
main(void)
{
    tap_tests("");
    sim_disk_reset();
    return done();
}
