/* A message reported to an operator as removed stays removed, after any event. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue.h"
#include "queue/queue_barrier.h"
#include "queue/queue_copier.h"
#include "queue/queue_operator.h"

#include "base/log/log_internal.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum state { YOUNG, LARGE, HELD, DEFERRED, MOVING, STATES };
static const char *const names[] = {"young", "large", "held", "deferred", "moving"};

static struct kit kit;

static void
set_over(void *context)
{
    bool *over = context;
    *over = true;
}
static int64_t moving_ms = 5; /* so long the preprocessor has been at it */

static void
start(bool journal)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size = journal ? 4 * 65536 : 0,
                                      .journal_segment = 65536,
                                      .journal_message_max = 8192};
    kit = (struct kit){.loop = loop_new()};
    kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&kit.lines, 1024 * 1024);
    log_capture(kit.log, &kit.lines);
    if (queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit, kit.error,
                   sizeof(kit.error)) != 0)
        abort();
    sim_loop_advance(kit.loop, 10);
}

/* A message in this state. */
static struct id
make(enum state state)
{
    static const char *const two[] = {"a@x", "b@x", NULL};
    static char bytes[20000];
    memset(bytes, 'x', sizeof(bytes));
    struct text content = text_of(bytes, state == LARGE ? sizeof(bytes) : 100);
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", two), content);
    struct id id = e->id;
    if (state == HELD && queue_hold(kit.queue, e, "for a test", true) != 0)
        abort();
    if (state == DEFERRED || state == MOVING) {
        queue_settle(kit.queue, e, 0, NULL);
        queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 3600 * 1000, 1);
        sim_loop_advance(kit.loop, state == MOVING ? moving_ms : 5000);
    } else {
        envelope_free(&e);
    }
    return id;
}

/* Removes it, waits until that is over, and loses power: true: it is back. */
static bool
comes_back(enum state state, bool journal, int64_t *waited_ms)
{
    struct queue_barrier barrier = {0};
    bool over = false;
    sim_disk_reset();
    sim_disk_set_syncing(DISK_SYNC_AIO, 7);
    start(journal);
    struct id id = make(state);
    (void)queue_remove(kit.queue, id);
    int64_t before = loop_monotonic_ms(kit.loop);
    queue_barrier(kit.queue, &barrier, set_over, &over);
    while (!over) {
        sim_loop_advance(kit.loop, 1);
        if (loop_monotonic_ms(kit.loop) - before > 60000)
            abort();
    }
    *waited_ms = loop_monotonic_ms(kit.loop) - before;
    sim_disk_power_cut();
    kit_close(&kit);
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    start(journal);
    struct envelope *e = queue_load(kit.queue, id);
    bool is_back = e != NULL || kit_entry(&kit, id) != NULL;
    envelope_free(&e);
    kit_close(&kit);
    return is_back;
}

static void
test_power_cut(void)
{
    for (int journal = 0; journal < 2; journal++)
        for (enum state state = YOUNG; state < STATES; state++) {
            char name[80];
            int64_t waited_ms;
            bool back = comes_back(state, journal != 0, &waited_ms);
            snprintf(name, sizeof(name), "%s, %s: removed for good", names[state],
                     journal ? "journal" : "files");
            ok_named(!back, name);
            ok_named(waited_ms < 100, "without the usual delay");
        }
}

/* A removed message, or one that ends otherwise, is no message any more, while its END
 * is under way and after. */
static void
test_once(void)
{
    for (int how = 0; how < 4 * 20; how++)
        for (enum state state = YOUNG; state < STATES; state++) {
            bool journal = how % 2 != 0, retires = how / 2 % 2 != 0;
            moving_ms = how / 4 * 2;
            if (how >= 4 && state != MOVING)
                continue;
            struct queue_barrier barrier = {0};
            bool over = false;
            sim_disk_reset();
            sim_disk_set_syncing(DISK_SYNC_AIO, 7);
            start(journal);
            struct id id = make(state);
            struct envelope *e = retires ? queue_load(kit.queue, id) : NULL;
            if (e != NULL)
                queue_retire(kit.queue, &e);
            else
                ok(queue_remove(kit.queue, id));
            unsigned again = 0;
            queue_barrier(kit.queue, &barrier, set_over, &over);
            while (!over) {
                again += queue_remove(kit.queue, id);
                e = queue_load(kit.queue, id);
                again += e != NULL;
                envelope_free(&e);
                sim_loop_advance(kit.loop, 1);
            }
            again += queue_remove(kit.queue, id);
            is_number(again, 0, names[state]);
            kit_close(&kit);
        }
}

static bool
note_place(void *context, struct id id, enum queue_place place)
{
    unsigned *count = context;
    (void)id;
    (void)place;
    ++*count;
    return true;
}

/* Before its owner has heard, it is no message: its record may not even be written, and
 * would look damaged. */
static void
test_early(bool journal, enum state state)
{
    static const char *const one[] = {"a@x", NULL};
    static char bytes[20000];
    unsigned listed = 0, seen = 0;
    sim_disk_reset();
    sim_disk_set_syncing(DISK_SYNC_AIO, 7);
    start(journal);
    struct envelope *first = kit_envelope("s@x", one), *e = kit_envelope("t@x", one);
    struct text content = text_of(bytes, state == LARGE ? sizeof(bytes) : 100);
    memset(bytes, 'x', sizeof(bytes));
    /* Its batch is being synced while that of the other one gathers. */
    ok(kit_commit(&kit, first, TEXT("first\r\n")));
    loop_turn(kit.loop, 0);
    ok(kit_commit(&kit, e, content));
    struct id id = e->id;
    while (kit.answers < 2) {
        struct envelope *loaded = queue_load(kit.queue, id);
        seen += loaded != NULL;
        envelope_free(&loaded);
        seen += queue_remove(kit.queue, id);
        if (kit.answers == 0)
            is_number(queue_each(kit.queue, note_place, &listed), 0, "a list");
        if (kit.stored != NULL && kit.answers == 1)
            envelope_free(&kit.stored);
        sim_loop_advance(kit.loop, 1);
    }
    is_number(seen, 0, names[state]);
    is_number(listed, 0, "nor is it listed");
    ok_named(!kit.refused && !kit_logged(&kit, "corrupt"), "it is stored");
    struct envelope *loaded = queue_load(kit.queue, id);
    ok_named(loaded != NULL, "then it is there");
    envelope_free(&loaded);
    is_number(queue_each(kit.queue, note_place, &listed), 0, "a list");
    is_number(listed, 2, "both are listed");
    ok_named(queue_remove(kit.queue, id), "and may be removed");
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    kit_close(&kit);
}

/* Others end all the time: that is no reason to wait. */
TEST(busy)
{
    static const char *const one[] = {"a@x", NULL};
    struct queue_barrier barrier = {0};
    bool over = false;
    unsigned turns = 0;
    sim_disk_reset();
    sim_disk_set_syncing(DISK_SYNC_AIO, 3);
    start(true);
    struct id id = make(YOUNG);
    (void)queue_remove(kit.queue, id);
    queue_barrier(kit.queue, &barrier, set_over, &over);
    while (!over && turns++ < 1000) {
        struct envelope *e =
            queue_kit_accept(&kit, kit_envelope("s@x", one), TEXT("x\r\n"));
        queue_retire(kit.queue, &e);
        sim_loop_advance(kit.loop, 1);
    }
    ok_named(turns < 20, "a busy queue answers, too");
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    kit_close(&kit);
}

/* More marks than are moved to files at once: all of them are waited for. */
TEST(marks)
{
    enum { MANY = 80 };
    static const char *const two[] = {"a@x", "b@x", NULL};
    struct queue_barrier barrier = {0};
    bool over = false;
    struct id ids[MANY];
    unsigned kept = 0;
    sim_disk_reset();
    sim_disk_set_syncing(DISK_SYNC_AIO, 3);
    start(true);
    for (unsigned i = 0; i < MANY; i++) {
        struct envelope *e =
            queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("bytes\r\n"));
        ids[i] = e->id;
        queue_settle(kit.queue, e, 0, NULL);
        queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 3600 * 1000, 1);
    }
    queue_barrier(kit.queue, &barrier, set_over, &over);
    ok_named(!over, "never within the call");
    while (!over)
        sim_loop_advance(kit.loop, 1);
    struct world *then = sim_disk_copy();
    kit_close(&kit);
    struct world *before = sim_disk_exchange(then);
    sim_disk_power_cut();
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    start(true);
    for (unsigned i = 0; i < MANY; i++) {
        struct envelope *e = queue_load(kit.queue, ids[i]);
        kept += e != NULL && e->delivery.done == 1;
        envelope_free(&e);
    }
    is_number(kept, MANY, "marks made before are durable");
    kit_close(&kit);
    (void)sim_disk_exchange(before);
    sim_disk_free(&then);
}

/* A startup reads what is durable: it waits for no sync, also while nothing new comes. */
TEST(restart)
{
    sim_disk_reset();
    start(true);
    (void)make(YOUNG);
    kit_close(&kit);
    start(true);
    ok_named(queue_batch(kit.queue) > 0, "batches have numbers");
    ok_named(queue_batch_durable(kit.queue) == queue_batch(kit.queue), "all are durable");
    kit_close(&kit);
}

/* The disk fails: nobody is told that it is over. */
TEST(failure)
{
    struct queue_barrier barrier = {0};
    bool over = false;
    sim_disk_reset();
    start(true);
    struct id id = make(YOUNG);
    (void)queue_remove(kit.queue, id);
    sim_disk_die_at(sim_disk_calls() + 1);
    queue_barrier(kit.queue, &barrier, set_over, &over);
    for (int i = 0; i < 100; i++)
        sim_loop_advance(kit.loop, 20);
    ok_named(!over, "a dead disk: never");
    sim_disk_restart();
    kit_close(&kit);
}

/* A barrier that is cancelled, or whose queue is closed, is never called; others are. */
static void
test_cancel(bool journal)
{
    struct queue_barrier first = {0}, second = {0}, late = {0};
    bool over = false, others = false, never = false;
    sim_disk_reset();
    start(journal);
    (void)queue_remove(kit.queue, make(YOUNG));
    queue_barrier(kit.queue, &first, set_over, &over);
    queue_barrier(kit.queue, &second, set_over, &others);
    queue_barrier_cancel(&first);
    queue_barrier_cancel(&first);
    for (int i = 0; i < 1000 && !others; i++)
        sim_loop_advance(kit.loop, 1);
    ok_named(others && !over, "cancelled: never called, the other is");
    queue_barrier(kit.queue, &first, set_over, &over);
    for (int i = 0; i < 1000 && !over; i++)
        sim_loop_advance(kit.loop, 1);
    ok_named(over, "nothing to wait for: called, too");
    queue_barrier(kit.queue, &late, set_over, &never);
    kit_close(&kit);
    queue_barrier_cancel(&late);
    ok_named(!never, "a closed queue calls nobody");
}

/* A hold that waited for the disk survives; one that did not may be gone, never the
 * message. It costs no sync. */
static void
test_hold(bool durable)
{
    sim_disk_reset();
    start(true);
    struct id id = make(YOUNG);
    struct envelope *e = queue_load(kit.queue, id);
    uint64_t syncs = queue_health(kit.queue).syncs;
    is_number(queue_hold(kit.queue, e, "for a test", durable), 0, "held");
    is_number((int64_t)(queue_health(kit.queue).syncs - syncs), durable,
              durable ? "with a sync" : "without one");
    envelope_free(&e);
    sim_disk_power_cut();
    kit_close(&kit);
    start(true);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.held == durable, "after a power cut");
    is_number(kit_entry(&kit, id) != NULL, !durable, "it is reported, or held");
    envelope_free(&e);
    kit_close(&kit);
}

enum { ENDED = 1200 }; /* a batch takes 510 */

static void
start_with_many(void)
{
    static const char *const one[] = {"a@x", NULL};
    struct kit injector;
    sim_disk_reset();
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    for (unsigned i = 0; i < ENDED; i++) {
        struct envelope *e =
            queue_kit_accept(&injector, kit_envelope("s@x", one), TEXT("x"));
        envelope_free(&e);
    }
    kit_close(&injector);
    sim_disk_set_syncing(DISK_SYNC_AIO, 50);
    start(true);
    sim_loop_advance(kit.loop, 10000);
}

/* Fails that call, and cuts the power when files go, or when all is over. True: the call
 * was that of the batches in memory. */
static bool
many_ends_fail(uint64_t call, bool until_over)
{
    struct queue_barrier barrier = {0};
    bool over = false;
    start_with_many();
    for (unsigned i = 0; i < ENDED; i++) {
        (void)queue_remove(kit.queue, kit.found[i].id);
        if (i == ENDED / 3)
            sim_loop_advance(kit.loop, 1);
    }
    queue_barrier(kit.queue, &barrier, set_over, &over);
    sim_disk_count_anew();
    sim_disk_fail_at(call, ENOSPC);
    sim_loop_advance(kit.loop, 55);
    bool failed = sim_disk_count("/spool/todo") == ENDED;
    sim_disk_fail_at(0, 0);
    unsigned ms = 0;
    while ((until_over ? !over : sim_disk_count("/spool/todo") == ENDED) && ms++ < 5000)
        sim_loop_advance(kit.loop, 1);
    sim_loop_advance(kit.loop, 20);
    size_t gone = until_over ? ENDED : ENDED - sim_disk_count("/spool/todo");
    sim_disk_die_at(sim_disk_calls() + 1);
    kit_close(&kit);
    sim_disk_restart();
    sim_disk_power_cut();
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    start(true);
    sim_loop_advance(kit.loop, 10000);
    ok_named(kit.found_count + gone <= ENDED, until_over
                                                  ? "over means that none comes back"
                                                  : "no file went without its END");
    kit_close(&kit);
    return failed;
}

/* More ENDs than one batch takes are in batches that fail: each file waits for the batch
 * that has its END, and so does the operator. */
static void
test_many_ends_fail(void)
{
    unsigned failed = 0;
    for (uint64_t call = 1; call <= 12; call++)
        failed +=
            many_ends_fail(call, call % 2 == 0) + many_ends_fail(call, call % 2 != 0);
    ok_named(failed > 1, "the batches have failed");
}

int
main(void)
{
    test_hold(true);
    test_hold(false);
    test_power_cut();
    test_once();
    test_early(true, YOUNG);
    test_early(true, LARGE);
    tap_tests("");
    test_cancel(true);
    test_cancel(false);
    sim_disk_reset();
    test_many_ends_fail();
    return done();
}
