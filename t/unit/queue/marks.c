/* Results of deliveries: the time at which they are written, and that a full disk does
 * not lose them.
 */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/marks.h"
#include "queue/queue_barrier.h"
#include "queue/queue_internal.h"
#include "queue/queue_operator.h"

#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

static const char *const four[] = {"a@x", "b@x", "c@x", "d@x", NULL};
static struct kit kit;

static struct envelope *
start(void)
{
    sim_disk_reset();
    if (queue_kit_open(&kit, "/spool") != 0)
        ok_named(false, kit.error);
    return queue_kit_accept(&kit, kit_envelope("s@x", four), TEXT("x"));
}

static void
settle(struct envelope *e, unsigned index)
{
    queue_settle(kit.queue, e, index, NULL);
}

static void
fail(struct envelope *e, unsigned index)
{
    struct failure failure = {.recipient = index,
                              .expired = false,
                              .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE,
                                                      550, "5.1.1", "no %u", index)};
    queue_settle(kit.queue, e, index, &failure);
}

static void
set_over(void *context)
{
    bool *over = context;
    *over = true;
}

static void
refuse_next(int error)
{
    sim_disk_count_anew();
    sim_disk_fail_at(1, error);
}

TEST(delay)
{
    struct envelope *e = start();
    settle(e, 0);
    sim_loop_advance(kit.loop, 99);
    is_number(sim_disk_count("/spool/info"), 0, "nothing is written before 100 ms");
    settle(e, 1);
    sim_loop_advance(kit.loop, 1);
    is_number(sim_disk_count("/spool/info"), 1, "then it is, counted from the first");
    ok(e->storage.preprocessed && e->delivery.done == 2);
    uint64_t syncs = queue_health(kit.queue).syncs;
    settle(e, 2);
    sim_loop_advance(kit.loop, 100);
    is_number(queue_health(kit.queue).syncs - syncs, 1, "a mark in S5 costs one sync");
    fail(e, 3);
    sim_loop_advance(kit.loop, 100);
    is_number(queue_health(kit.queue).syncs - syncs, 3, "with a bounce text two");
    syncs = queue_health(kit.queue).syncs;
    sim_disk_count_anew();
    queue_defer(kit.queue, &e, 5, 5);
    is_number(sim_disk_calls(), 0, "a deferral waits for the end of the turn");
    loop_turn(kit.loop, 0);
    is_number(queue_health(kit.queue).syncs - syncs, 0, "a due time costs no sync");
    is_number(sim_disk_calls(), 2, "it is open and overwrite");
    kit_close(&kit);
}

TEST(shared_syncs)
{
    struct envelope *e[10];
    e[0] = start();
    for (unsigned i = 1; i < 10; i++)
        e[i] = queue_kit_accept(&kit, kit_envelope("s@x", four), TEXT("x"));
    uint64_t syncs = queue_health(kit.queue).syncs;
    for (unsigned i = 0; i < 10; i++)
        settle(e[i], 0);
    sim_loop_advance(kit.loop, 100);
    is_number(queue_health(kit.queue).syncs - syncs, 10 * 3 + 6,
              "ten S5: three files each, and at first all six rooms once");
    for (unsigned i = 0; i < 10; i++)
        queue_retire(kit.queue, &e[i]);
    kit_close(&kit);
}

TEST(retired_costs_nothing)
{
    struct envelope *e = start();
    settle(e, 0);
    fail(e, 1);
    queue_retire(kit.queue, &e);
    uint64_t syncs = queue_health(kit.queue).syncs;
    sim_loop_advance(kit.loop, 1000);
    is_number(queue_health(kit.queue).syncs - syncs, 0, "no sync");
    is_number(sim_disk_count("/spool/info") + sim_disk_count("/spool/bounce"), 0,
              "no file");
    kit_close(&kit);
}

/* That the sender was warned costs one sync, and is not lost with the power; what the
 * disk refuses of it is kept. */
TEST(warned)
{
    struct envelope *e = start();
    struct id id = e->id;
    settle(e, 0);
    sim_loop_advance(kit.loop, 100);
    uint64_t syncs = queue_health(kit.queue).syncs;
    e->delivery.warned_s = 1;
    queue_defer(kit.queue, &e, 5, 5);
    loop_turn(kit.loop, 0);
    is_number(queue_health(kit.queue).syncs - syncs, 1, "one sync");
    kit_close(&kit);
    sim_disk_power_cut();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    sim_loop_advance(kit.loop, 10);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.warned_s != 0 && e->delivery.warned_kept_s != 0,
             "kept over a power cut");
    syncs = queue_health(kit.queue).syncs;
    queue_defer(kit.queue, &e, 6, 6);
    loop_turn(kit.loop, 0);
    is_number(queue_health(kit.queue).syncs - syncs, 0, "and none again");
    e = queue_load(kit.queue, id);
    ok(e != NULL && e->delivery.warned_s != 0 && e->delivery.attempts == 6);
    queue_retire(kit.queue, &e);
    kit_close(&kit);

    for (int preprocessed = 0; preprocessed < 2; preprocessed++) {
        e = start();
        id = e->id;
        if (preprocessed)
            settle(e, 0);
        sim_loop_advance(kit.loop, 100);
        e->delivery.warned_s = 1;
        queue_defer(kit.queue, &e, 7, 7);
        refuse_next(ENOSPC);
        loop_turn(kit.loop, 0);
        if (preprocessed) /* to load it writes first; else that waits for the preprocessor */
            refuse_next(ENOSPC);
        e = queue_load(kit.queue, id);
        ok_named(e != NULL && e->delivery.warned_s != 0 &&
                     e->delivery.warned_kept_s == 0,
                 "refused, but known");
        envelope_free(&e);
        sim_loop_advance(kit.loop, 11000);
        e = queue_load(kit.queue, id);
        ok_named(e != NULL && e->delivery.warned_kept_s != 0 &&
                     e->delivery.attempts == 7,
                 "written later");
        queue_retire(kit.queue, &e);
        kit_close(&kit);
    }
}

/* Two envelopes of one message: what the disk refused from the first goes on with the
 * second. */
TEST(adoption)
{
    struct envelope *e = start();
    struct id id = e->id;
    settle(e, 0);
    fail(e, 1);
    queue_defer(kit.queue, &e, 1000, 1);
    refuse_next(ENOSPC);
    loop_turn(kit.loop, 0);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && !e->storage.preprocessed && e->delivery.done == 2,
             "not written, but known");
    settle(e, 2);
    sim_loop_advance(kit.loop, 100);
    ok_named(e->storage.preprocessed, "with space all is written");
    ok(e->recipients[0].mark.channel == CHANNEL_LOCAL &&
       e->recipients[1].mark.channel == CHANNEL_REMOTE);
    queue_defer(kit.queue, &e, 2000, 2);
    loop_turn(kit.loop, 0);
    kit_close(&kit);
    sim_disk_power_cut();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    sim_loop_advance(kit.loop, 10);
    is_number(kit.found_count, 1, "after a power cut");
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 3 && e->delivery.failure_count == 1,
             "every mark is there");
    ok(e != NULL && !e->recipients[3].done);

    /* The same in S5, twice refused. */
    settle(e, 3);
    queue_defer(kit.queue, &e, 3000, 3);
    refuse_next(ENOSPC);
    loop_turn(kit.loop, 0);
    refuse_next(ENOSPC);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->delivery.done == 4,
             "known in S5 too");
    envelope_free(&e);
    sim_loop_advance(kit.loop, 11000);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 4 && e->delivery.attempts == 3,
             "written by itself later");
    queue_retire(kit.queue, &e);
    is_number(sim_disk_count("/spool/mess"), 0, "and retired");
    kit_close(&kit);
}

TEST(removed_while_pending)
{
    struct envelope *e = start();
    struct id id = e->id;
    settle(e, 0);
    queue_defer(kit.queue, &e, 1000, 1);
    refuse_next(ENOSPC);
    loop_turn(kit.loop, 0);
    ok(queue_remove(kit.queue, id));
    sim_loop_advance(kit.loop, 30000);
    is_number(sim_disk_count("/spool/info") + sim_disk_count("/spool/mess"), 0,
              "removed is removed");
    kit_close(&kit);
}

static struct envelope *
again(struct id id)
{
    kit_close(&kit);
    sim_disk_power_cut();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    sim_loop_advance(kit.loop, 10);
    return queue_load(kit.queue, id);
}

/* A message whose files of S5 are being synced: b is done in them, the others are open. */
static struct envelope *
start_moving(int64_t sync_ms)
{
    struct envelope *e = start();
    sim_disk_set_syncing(DISK_SYNC_AIO, sync_ms);
    queue_settle(kit.queue, e, 1, NULL);
    sim_loop_advance(kit.loop, 101);
    ok(sim_disk_count("/spool/info") == 1 && sim_disk_count("/spool/todo") == 1 &&
       !e->storage.preprocessed);
    return e;
}

/* Results while the files are already written, at each step of the move. */
TEST(result_while_moving)
{
    for (unsigned ms = 0; ms < 12; ms++) {
        struct envelope *e = start_moving(3);
        struct id id = e->id;
        char label[80];
        sim_loop_advance(kit.loop, ms);
        settle(e, 0);
        sim_loop_advance(kit.loop, 300);
        ok(e->storage.preprocessed && sim_disk_count("/spool/todo") == 0);
        settle(e, 2);
        sim_loop_advance(kit.loop, 300);
        is_number(sim_disk_count("/spool/local") + sim_disk_count("/spool/remote"), 2,
                  "the files are those of the move");
        queue_defer(kit.queue, &e, 1000, 1);
        e = again(id);
        snprintf(label, sizeof(label), "%u ms later: all marks are right", ms);
        ok_named(e != NULL && e->delivery.done == 3 && e->recipients[0].done &&
                     e->recipients[1].done && e->recipients[2].done &&
                     !e->recipients[3].done,
                 label);
        envelope_free(&e);
        kit_close(&kit);
    }
}

/* A move reads the envelope no more when its files are written: the message is deferred
 * under it, and tried again with another envelope. */
TEST(other_envelope_while_moving)
{
    struct envelope *e = start_moving(3);
    struct id id = e->id;
    queue_defer(kit.queue, &e, 1000, 1);
    e = queue_load(kit.queue, id);
    ok(e != NULL && !e->storage.preprocessed && e->delivery.done == 1);
    settle(e, 0);
    fail(e, 3);
    sim_loop_advance(kit.loop, 300);
    ok_named(e->storage.preprocessed && e->recipients[0].mark.offset > 0,
             "the envelope in use learns where its marks are");
    queue_defer(kit.queue, &e, 2000, 2);
    e = again(id);
    ok_named(e != NULL && e->delivery.done == 3 && e->delivery.failure_count == 1 &&
                 !e->recipients[2].done,
             "every result is there");
    envelope_free(&e);
    kit_close(&kit);

    for (unsigned call = 1; call < 12; call++) {
        e = start_moving(3);
        id = e->id;
        queue_defer(kit.queue, &e, 1000, 1);
        e = queue_load(kit.queue, id);
        sim_disk_count_anew();
        sim_disk_fail_at(call, ENOSPC);
        sim_loop_advance(kit.loop, 20);
        settle(e, 0);
        sim_loop_advance(kit.loop, 11000);
        sim_disk_fail_at(0, 0);
        sim_loop_advance(kit.loop, 11000);
        queue_defer(kit.queue, &e, 2000, 2);
        e = again(id);
        ok_named(e != NULL && e->delivery.done == 2 && e->recipients[0].done &&
                     e->recipients[1].done,
                 "nor is one lost when the move fails");
        envelope_free(&e);
        kit_close(&kit);
    }

    e = start_moving(3);
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 300);
    is_number(sim_disk_count("/spool/mess") + sim_disk_count("/spool/info"), 0,
              "one that is retired under it goes");
    kit_close(&kit);
}

static struct envelope *in_use;

static struct envelope *
which_in_use(void *context, struct id id)
{
    (void)context;
    return in_use != NULL && id_compare(in_use->id, id) == 0 ? in_use : NULL;
}

static void
open_in_use(bool journal)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size = journal ? 4 * 65536 : 0,
                                      .journal_segment = 65536,
                                      .journal_message_max = 8192,
                                      .in_use = which_in_use};
    if (kit_open_with(&kit, &settings) != 0)
        abort();
}

/* A message that is in memory when it becomes files, with and without a result that
 * these have, and one whose move has begun before it was loaded: a result after that
 * goes into these files. */
TEST(in_use_while_moving)
{
    for (unsigned i = 0; i < 3; i++) {
        bool journal = i < 2;
        sim_disk_reset();
        open_in_use(journal);
        in_use = queue_kit_accept(&kit, kit_envelope("s@x", four), TEXT("x"));
        struct id id = in_use->id;
        sim_disk_set_syncing(DISK_SYNC_AIO, 3);
        if (i != 0)
            settle(in_use, 1);
        if (journal)
            marks_move(&kit.queue->marks, id); /* as a full journal does */
        else
            queue_defer(kit.queue, &in_use, 1000, 1);
        sim_loop_advance(kit.loop, 2);
        if (!journal)
            in_use = queue_load(kit.queue, id);
        ok(sim_disk_count("/spool/info") == 1 && !in_use->storage.preprocessed);
        sim_loop_advance(kit.loop, 300);
        ok_named(in_use->storage.preprocessed, "it learns where its marks are");
        settle(in_use, 0);
        sim_loop_advance(kit.loop, 300);
        queue_defer(kit.queue, &in_use, 2000, 2);
        kit_close(&kit);
        sim_disk_power_cut();
        open_in_use(journal);
        sim_loop_advance(kit.loop, 10);
        struct envelope *e = queue_load(kit.queue, id);
        ok_named(e != NULL && e->recipients[0].done &&
                     e->recipients[1].done == (i != 0) && !e->recipients[2].done,
                 "and its results are there");
        envelope_free(&e);
        kit_close(&kit);
    }
}

static bool
is_moved(struct id id)
{
    char path[60];
    snprintf(path, sizeof(path), "/spool/info/%s", ID_TEXT(id));
    return sim_disk_content(path).at != NULL;
}

static struct envelope *
inject(void)
{
    struct kit injector;
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    struct envelope *e =
        queue_kit_accept(&injector, kit_envelope("s@x", four), TEXT("x"));
    struct id id = e->id;
    envelope_free(&e);
    kit_close(&injector);
    return queue_load(kit.queue, id);
}

/* While a move is under way on a slow disk many others line up, and at last one of another
 * kind: results that only the files can have are in those of the next round, whatever waits
 * before them, and no number of these keeps mail of the journal from its move. */
TEST(line_of_moves)
{
    enum { LINED = 40, BUSY = LINED + 1, MESSAGES };
    for (int bare_last = 0; bare_last < 2; bare_last++) {
        struct envelope *e[MESSAGES];
        sim_disk_reset();
        open_in_use(true);
        sim_loop_advance(kit.loop, 10);
        for (unsigned i = 0; i < MESSAGES; i++)
            e[i] = i == BUSY || (i == LINED) != bare_last
                       ? queue_kit_accept(&kit, kit_envelope("s@x", four), TEXT("x"))
                       : inject();
        struct id last = e[LINED]->id;
        sim_disk_set_syncing(DISK_SYNC_AIO, 1000);
        queue_defer(kit.queue, &e[BUSY], 1000000, 1);
        sim_loop_advance(kit.loop, 10);
        for (unsigned i = 0; i <= LINED; i++) {
            settle(e[i], 1);
            queue_defer(kit.queue, &e[i], 1000000, 1);
            sim_loop_advance(kit.loop, 10);
        }
        struct queue_barrier barrier = {0};
        bool over = false;
        queue_barrier(kit.queue, &barrier, set_over, &over);
        is_number(sim_disk_count("/spool/info"), 1, "the first is still on its way");
        while (sim_disk_count("/spool/info") == 1)
            sim_loop_advance(kit.loop, 10);
        is_number(sim_disk_count("/spool/info"), 33, "then 32 others are");
        ok_named(is_moved(last), "the last one with them");
        ok(!over);
        sim_loop_advance(kit.loop, 10 * 1000);
        ok_named(over && sim_disk_count("/spool/info") == MESSAGES,
                 "a barrier waits for all, and no longer");
        kit_close(&kit);
        sim_disk_power_cut();
        open_in_use(true);
        sim_loop_advance(kit.loop, 10);
        struct envelope *again = queue_load(kit.queue, last);
        ok(again != NULL && again->delivery.done == 1 && again->recipients[1].done);
        envelope_free(&again);
        kit_close(&kit);
    }
}

/* Damage that is noticed under a move waits for its end: nothing is removed. */
TEST(damaged_while_moving)
{
    struct envelope *e = start_moving(3);
    struct id id = e->id;
    queue_defer(kit.queue, &e, 1000, 1);
    queue_quarantine(kit.queue, id, "for a test");
    sim_loop_advance(kit.loop, 300);
    is_number(sim_disk_count("/spool/info") + sim_disk_count("/spool/corrupt"), 1,
              "it is still a message");
    sim_loop_advance(kit.loop, 61 * 1000);
    is_number(kit.found_count, 1, "and is reported later");
    kit_close(&kit);
}

/* Nor does recovery judge files that are being made: it would let todo/ID go, and the move
 * would remove them when it fails. */
TEST(recovery_while_moving)
{
    for (unsigned call = 1; call < 8; call++) {
        struct envelope *e = start_moving(90 * 1000);
        struct id id = e->id;
        queue_defer(kit.queue, &e, 1000, 1);
        queue_quarantine(kit.queue, id, "for a test");
        sim_loop_advance(kit.loop, 61 * 1000);
        sim_disk_count_anew();
        sim_disk_fail_at(call, EIO);
        sim_loop_advance(kit.loop, 30 * 1000);
        ok_named(sim_disk_count("/spool/todo") + sim_disk_count("/spool/info") > 0,
                 "it is a message all the time");
        sim_disk_fail_at(0, 0);
        e = again(id);
        ok_named(e != NULL, "a move that fails loses nothing");
        envelope_free(&e);
        kit_close(&kit);
    }
}

enum { MANY = 10000, IN_A_TURN = 4096 };

/* Very many recipients in S5, all with a verdict that is not yet written. */
static struct envelope *
settle_many(void)
{
    sim_disk_reset();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    struct envelope *e = envelope_new();
    for (unsigned i = 0; i < MANY; i++)
        if (!envelope_add(e, TEXT("a@x"), 0, TEXT("")))
            abort();
    e = queue_kit_accept(&kit, e, TEXT("x"));
    settle(e, 0);
    sim_loop_advance(kit.loop, 100);
    for (unsigned i = 1; i < MANY; i++)
        i % 2 == 0 ? settle(e, i) : fail(e, i);
    return e;
}

/* They are written some in a turn, those of a turn with one sync for each file. */
TEST(many)
{
    struct envelope *e = settle_many();
    struct id id = e->id;
    for (unsigned turn = 0; turn < 3; turn++) {
        uint64_t syncs = queue_health(kit.queue).syncs;
        sim_disk_count_anew();
        loop_turn(kit.loop, 0);
        uint64_t calls = sim_disk_calls();
        ok_named(calls > 100 && calls < IN_A_TURN + 20, "not too many in a turn");
        ok_named(queue_health(kit.queue).syncs - syncs <= 3, "few syncs for them");
    }
    sim_disk_count_anew();
    loop_turn(kit.loop, 0);
    is_number(sim_disk_calls(), 0, "then all are written");
    queue_defer(kit.queue, &e, 1000, 1);
    kit_close(&kit);
    sim_disk_power_cut();
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    sim_loop_advance(kit.loop, 10);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == MANY &&
                 e->delivery.failure_count == MANY / 2,
             "durably");
    queue_retire(kit.queue, &e);
    kit_close(&kit);
}

/* In the midst of it: a reader writes the rest first; a mark that the disk refuses is
 * known, and written later. */
TEST(many_interrupted)
{
    for (int refused = 0; refused < 2; refused++) {
        struct envelope *e = settle_many();
        struct id id = e->id;
        loop_turn(kit.loop, 0);
        if (refused)
            refuse_next(ENOSPC);
        queue_defer(kit.queue, &e, 1000, 1);
        e = queue_load(kit.queue, id);
        ok_named(e != NULL && e->delivery.done == MANY &&
                     e->delivery.failure_count == MANY / 2,
                 "all are known");
        envelope_free(&e);
        sim_loop_advance(kit.loop, 11000);
        kit_close(&kit);
        sim_disk_power_cut();
        if (queue_kit_open(&kit, "/spool") != 0)
            abort();
        sim_loop_advance(kit.loop, 10);
        e = queue_load(kit.queue, id);
        ok_named(e != NULL && e->delivery.done == MANY &&
                     e->delivery.failure_count == MANY / 2,
                 "and written");
        queue_retire(kit.queue, &e);
        kit_close(&kit);
    }
}

/* Without a loop, as the command line uses it. */
TEST(at_once)
{
    struct kit injector;
    sim_disk_reset();
    if (kit_open_injector(&injector, "/spool") != 0)
        abort();
    struct envelope *e =
        queue_kit_accept(&injector, kit_envelope("s@x", four), TEXT("x"));
    struct id id = e->id;
    queue_settle(injector.queue, e, 2, NULL);
    is_number(sim_disk_count("/spool/info"), 1, "written at once");
    queue_defer(injector.queue, &e, 9000, 4);
    e = queue_load(injector.queue, id);
    ok(e != NULL && e->delivery.due_ms == 9000 && e->recipients[2].done);
    queue_retire(injector.queue, &e);
    kit_close(&injector);
}

/* --- Released ---------------------------------------------------------------------- */

/* With its hold/ID gone, a route would hold the message again. */
TEST(released)
{
    struct envelope *e = start();
    struct id id = e->id;
    settle(e, 0);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop), 1);
    sim_loop_advance(kit.loop, 1000);
    e = queue_load(kit.queue, id);
    is_number(queue_hold(kit.queue, e, "by a route", true), 0, "held");
    for (uint64_t call = 1; call < 9; call++) {
        struct world *before = sim_disk_exchange(sim_disk_copy());
        sim_disk_count_anew();
        sim_disk_die_at(call);
        bool good =
            queue_keep_release(kit.queue, e) == 0 && queue_release(kit.queue, id) == 0;
        sim_disk_power_cut();
        struct kit other;
        if (queue_kit_open(&other, "/spool") != 0)
            abort();
        struct envelope *found = queue_load(other.queue, id);
        ok(found != NULL && (found->delivery.held || found->delivery.released));
        ok(found != NULL &&
           (!good || (found->delivery.released && !found->delivery.held)));
        envelope_free(&found);
        kit_close(&other);
        struct world *copy = sim_disk_exchange(before);
        sim_disk_free(&copy);
    }
    envelope_free(&e);
    kit_close(&kit);
}

/* --- Quarantine -------------------------------------------------------------------- */

enum home { IN_TODO, IN_FILES, IN_JOURNAL };

/* A message with two results, of which the disk has refused the second. */
static struct id
start_refused(enum home home)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size =
                                          home == IN_JOURNAL ? 4 * 65536 : 0,
                                      .journal_segment = 65536,
                                      .journal_message_max = 8192};
    sim_disk_reset();
    if (kit_open_with(&kit, &settings) != 0)
        abort();
    struct envelope *e = queue_kit_accept(&kit, kit_envelope("s@x", four), TEXT("x"));
    struct id id = e->id;
    settle(e, 0);
    if (home == IN_FILES)
        sim_loop_advance(kit.loop, 200);
    fail(e, 1);
    refuse_next(ENOSPC);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 1000, 1);
    loop_turn(kit.loop, 0);
    return id;
}

/* The operator releases what was quarantined: nobody gets it again. */
static void
test_quarantined(enum home home)
{
    char note[QUEUE_NOTE_MAX];
    struct id id = start_refused(home);
    refuse_next(ENOSPC);
    queue_quarantine(kit.queue, id, "for a test");
    for (unsigned i = 0; i < 3 && queue_note(kit.queue, id, QUEUE_CORRUPT, note) != 0;
         i++) {
        sim_disk_fail_at(0, 0);
        sim_loop_advance(kit.loop, 61 * 1000);
        queue_quarantine(kit.queue, id, "for a test");
    }
    ok(strstr(note, "for a test") != NULL && strstr(note, "recipients") == NULL);
    is_number(queue_release(kit.queue, id), 0, "released");
    struct envelope *e = queue_load(kit.queue, id);
    ok(e != NULL && e->delivery.done == 2 && e->recipients[0].done &&
       e->recipients[1].done);
    ok(e != NULL && e->delivery.failure_count == 1);
    envelope_free(&e);
    kit_close(&kit);
}

/* Nothing is there to be marked: the note tells the operator. */
TEST(quarantined_without_place)
{
    char note[QUEUE_NOTE_MAX];
    struct id id = start_refused(IN_FILES);
    struct disk *disk;
    char path[SPOOL_PATH_MAX];
    refuse_next(0);
    spool_path(SPOOL_REMOTE, id, path);
    if (disk_open(&disk, "/spool", false) != 0 || disk_unlink(disk, path) != 0)
        abort();
    disk_close(&disk);
    queue_quarantine(kit.queue, id, "for a test");
    is_number(queue_note(kit.queue, id, QUEUE_CORRUPT, note), 0, "quarantined at once");
    ok(strstr(note, "do not say so: recipients 1") != NULL);
    sim_loop_advance(kit.loop, 30 * 1000);
    kit_close(&kit);
}

/* --- Aliases ----------------------------------------------------------------------- */

/* The lookup of an alias: its members instead of it. */
static void
look_up(struct envelope *e, const char *const *members)
{
    const struct recipient_way *way = envelope_way(e, TEXT("list@x"), TEXT("owner@x"));
    if (e->storage.fixed || e->delivery.done > 0)
        return;
    e->count = 0;
    for (; *members != NULL; members++) {
        if (!envelope_add(e, text_from(*members), NOTIFY_DEFAULT, TEXT("")))
            abort();
        e->recipients[e->count - 1].way = way;
    }
}

static bool
has_members(const struct envelope *e, const char *const *members)
{
    unsigned i = 0;
    for (; members[i] != NULL; i++)
        if (i >= e->count ||
            !text_equal(e->recipients[i].address, text_from(members[i])) ||
            !text_equal(envelope_sender_of(e, &e->recipients[i]), TEXT("owner@x")))
            return false;
    return i == e->count;
}

/* An envelope that is loaded under a result, or a move, has the members of then: those of
 * now may be others, and todo/ has the alias alone. refused: the disk takes nothing for a
 * moment. index: the member that has the message. */
static void
test_alias(bool refused, unsigned index, const char *const *now)
{
    static const char *const list[] = {"list@x", NULL}, *const four_then[] = {
                                                            "a@x", "b@x", "c@x", "d@x",
                                                            NULL};
    struct envelope *e = start();
    envelope_free(&e);
    e = queue_kit_accept(&kit, kit_envelope("s@x", list), TEXT("x"));
    struct id id = e->id;
    envelope_free(&e);
    e = queue_load(kit.queue, id);
    look_up(e, four_then);
    sim_disk_set_syncing(DISK_SYNC_AIO, 50);
    settle(e, index);
    if (refused)
        refuse_next(ENOSPC);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop), 1);
    loop_turn(kit.loop, 0);
    e = queue_load(kit.queue, id);
    look_up(e, now);
    ok_named(has_members(e, four_then), "the members of the first lookup");
    is_number(e->delivery.done, 1, "one has the message");
    ok(e->recipients[index].done);
    settle(e, index == 3 ? 2 : 3);
    sim_loop_advance(kit.loop, 30 * 1000);
    ok_named(e->storage.preprocessed, "and its marks find the files");
    envelope_free(&e);
    kit_close(&kit);
    if (queue_kit_open(&kit, "/spool") != 0)
        abort();
    e = queue_load(kit.queue, id);
    ok(has_members(e, four_then));
    is_number(e->delivery.done, 2, "after a restart, too");
    ok(e->recipients[index].done && e->recipients[index == 3 ? 2 : 3].done);
    envelope_free(&e);
    kit_close(&kit);
}

TEST(aliases)
{
    static const char *const fewer[] = {"b@x", NULL}, *const other[] = {"d@x", "c@x",
                                                                        "b@x", "a@x",
                                                                        NULL};
    for (unsigned i = 0; i < 8; i++)
        test_alias(i % 2 != 0, (i & 2) != 0 ? 3 : 0, (i & 4) != 0 ? fewer : other);
}

int
main(void)
{
    for (enum home home = IN_TODO; home <= IN_JOURNAL; home++)
        test_quarantined(home);
    tap_tests("");
    sim_disk_reset();
    return done();
}
