/* Mail that waits for a slow site while the journal goes round: it is copied ahead and
 * needs no files, unless files are what costs less. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/journal/journaled.h"

#include "queue/queue_operator.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { SEGMENT = 65536, SEGMENTS = 8, PASSING = 8000, ROUND = 40, BEFORE_COPY = 20 };

static const char *const two[] = {"a@x", "b@x", NULL};
static struct kit kit;

static void
start(void)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size = SEGMENTS * SEGMENT,
                                      .journal_segment = SEGMENT,
                                      .journal_message_max = 16000};
    if (kit_open_with(&kit, &settings) != 0)
        ok_named(false, kit.error);
    sim_loop_advance(kit.loop, 10);
}

static void
again(void)
{
    sim_loop_advance(kit.loop, 200);
    sim_disk_power_cut();
    kit_close(&kit);
    start();
}

static struct text
content_of(size_t size)
{
    static char bytes[20000];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)('a' + i * 7 % 26);
    return text_of(bytes, size);
}

/* Mail that waited for space is stored after its turn. */
static void
drop_late(void)
{
    if (kit.stored != NULL)
        queue_retire(kit.queue, &kit.stored);
}

static struct envelope *
take(size_t size)
{
    drop_late();
    return queue_kit_accept(&kit, kit_envelope("s@x", two), content_of(size));
}

static size_t
files(void)
{
    return sim_disk_count("/spool") - sim_disk_count("/spool/journal") -
           sim_disk_count("/spool/lock");
}

/* Mail that is delivered at once. */
static void
pass(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct envelope *e = take(PASSING);
        if (e == NULL) {
            ok_named(false, "there is space in the journal");
            return;
        }
        queue_retire(kit.queue, &e);
        sim_loop_advance(kit.loop, 20);
    }
}

static bool
is_whole(struct envelope *e, size_t size)
{
    return e != NULL && kit_content_is(&kit, e, content_of(size));
}

TEST(waits_in_the_journal)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    for (unsigned i = 0; i < 4; i++) {
        pass(ROUND);
        is_number((int64_t)files(), 0, "the journal went round, and there is no file");
        ok_named(is_whole(e, 3000), "what waits can be delivered");
    }
    envelope_free(&e);
    again();
    is_number((int64_t)kit.found_count, 1, "found after a power cut");
    e = queue_load(kit.queue, id);
    ok_named(is_whole(e, 3000), "whole");
    queue_settle(kit.queue, e, 1, NULL);
    sim_loop_advance(kit.loop, 200);
    envelope_free(&e);
    again();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 1 && e->recipients[1].done,
             "and gets its marks");
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 200);
    again();
    is_number((int64_t)kit.found_count, 0, "its end is the end of all copies");
    kit_close(&kit);
}

/* At a dead site for hours: files cost as much as some copies, once. */
TEST(waits_for_long)
{
    unsigned rounds = 0;
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    while (rounds < 20 && files() == 0) {
        pass(ROUND);
        rounds++;
    }
    printf("# %u rounds\n", rounds);
    ok_named(rounds > 4 && rounds < 12, "in the end it moves to files");
    ok_named(is_whole(e, 3000), "and is whole");
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 200);
    is_number((int64_t)files(), 0, "which go with it");
    kit_close(&kit);
}

TEST(what_moves)
{
    sim_disk_reset();
    start();
    struct envelope *marked = take(3000), *held = take(3000);
    queue_settle(kit.queue, marked, 0, NULL);
    ok(queue_hold(kit.queue, held, "for a test", 10) == 0);
    sim_loop_advance(kit.loop, 200);
    is_number((int64_t)sim_disk_count("/spool/mess"), 0, "in the journal");
    pass(ROUND);
    is_number((int64_t)sim_disk_count("/spool/mess"), 2,
              "mail with marks and held mail move to files");
    queue_retire(kit.queue, &marked);
    queue_retire(kit.queue, &held);
    sim_loop_advance(kit.loop, 200);
    kit_close(&kit);
}

/* So much waits that copies alone would fill the journal. */
TEST(too_much)
{
    struct envelope *waiting[20];
    unsigned whole = 0;
    sim_disk_reset();
    start();
    for (unsigned i = 0; i < 20; i++)
        waiting[i] = take(PASSING);
    pass(ROUND);
    ok_named(sim_disk_count("/spool/mess") >= 4, "some of it moves to files");
    pass(ROUND);
    ok_named(sim_disk_count("/spool/mess") < 20, "the rest stays");
    for (unsigned i = 0; i < 20; i++) {
        whole += is_whole(waiting[i], PASSING);
        queue_retire(kit.queue, &waiting[i]);
    }
    is_number(whole, 20, "all is whole");
    sim_loop_advance(kit.loop, 200);
    kit_close(&kit);
}

/* Its end comes at any time, also while a copy is being written: then it leaves both
 * places, and the journal does not fill up with nothing. */
TEST(ends_while_copied)
{
    enum { WAITING = 60 };
    struct envelope *waiting[WAITING];
    uint64_t random = 1;
    sim_disk_reset();
    start();
    sim_disk_set_syncing(DISK_SYNC_AIO, 50);
    for (unsigned i = 0; i < WAITING; i++)
        waiting[i] = take(300);
    for (unsigned i = 0; i < 600; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned which = (unsigned)(random >> 33) % WAITING;
        if (waiting[which] == NULL)
            break;
        queue_retire(kit.queue, &waiting[which]);
        waiting[which] = take(300);
        pass(1);
    }
    unsigned whole = 0;
    for (unsigned i = 0; i < WAITING; i++) {
        whole += is_whole(waiting[i], 300);
        if (waiting[i] != NULL)
            queue_retire(kit.queue, &waiting[i]);
    }
    is_number(whole, WAITING, "what waits is whole");
    sim_loop_advance(kit.loop, 1000);
    pass(2 * ROUND);
    is_number((int64_t)files(), 0, "no file was needed");
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    again();
    is_number((int64_t)kit.found_count, 0, "all have ended");
    kit_close(&kit);
}

/* Some of it may be refused. */
static unsigned
offer(unsigned count)
{
    unsigned taken = 0;
    for (unsigned i = 0; i < count; i++) {
        struct envelope *e = take(PASSING);
        taken += e != NULL;
        if (e != NULL)
            queue_retire(kit.queue, &e);
        sim_loop_advance(kit.loop, 20);
    }
    drop_late();
    return taken;
}

/* A copy that cannot be written is none: the message is where it was. */
static void
test_fails_while_copied(int error)
{
    unsigned lost = 0, failed = 0, goes_on = 0;
    for (uint64_t call = 1; call <= 36; call++) {
        sim_disk_reset();
        start();
        struct envelope *e = take(3000);
        struct id id = e->id;
        pass(BEFORE_COPY);
        sim_disk_count_anew();
        sim_disk_fail_at(call, error);
        offer(12);
        failed += sim_disk_has_failed();
        sim_loop_advance(kit.loop, 30000);
        goes_on += offer(ROUND) > ROUND / 2;
        lost += !is_whole(e, 3000);
        envelope_free(&e);
        drop_late();
        again();
        e = queue_load(kit.queue, id);
        lost += !is_whole(e, 3000);
        if (e != NULL)
            queue_retire(kit.queue, &e);
        kit_close(&kit);
    }
    is_number(failed, 36, "each call failed once");
    if (error == ENOSPC) /* after EIO there is no new mail until a restart */
        is_number(goes_on, 36, "and the journal went round again");
    is_number(lost, 0, "and the message is whole, before and after a power cut");
}

int
main(void)
{
    tap_tests("");
    test_fails_while_copied(EIO);
    test_fails_while_copied(ENOSPC);
    return done();
}
