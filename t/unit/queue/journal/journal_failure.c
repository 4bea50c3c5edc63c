/* When the disk fails, the journal writes elsewhere what it had to tell, its clients hear
 * of it, and nothing is lost. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/loop.c */
#include "t/support/journal_kit.h"

/* The call-th call after the start of a batch fails. */
static void
test_failure(uint64_t call, const char *what)
{
    struct kit *k = kit_start(16, 4, false);
    journal_kit_accept(k, 100);
    journal_kit_accept(k, 100);
    journal_kit_accept(k, 100);
    kit_calm(k);
    journal_kit_accept(k, 200);
    kit_mark(k, 1, 10);
    kit_end(k, 2, RECORD_END);
    sim_disk_count_anew();
    sim_disk_fail_at(call, EIO);
    kit_turn(k);
    kit_turn(k);
    is_number(k->failures, 1, what);
    ok(k->messages[4].refused && !k->messages[4].acked && k->spool.trouble[0] != '\0');
    kit_drain(k);
    ok_named(k->failures == 1 && k->in_order && k->messages[2].ended,
             "its ends are durable with the next one");
    journal_kit_accept(k, 10);
    is_number(k->messages[5].place.sequence, 2, "in the next segment");
    kit_drain(k);
    for (unsigned i = 0; i < 200; i++) {
        kit_end_spool(k);
        kit_drain(k);
    }
    kit_restart(k);
    ok_named(k->found[4].accepts == 0 || k->found[4].ends > 0, "does not come back");
    is_number(k->found[1].marks[0], 1, "a mark is there, once");
    kit_stop(&k);
}

/* Marks that fill a batch before the end comes: the end is in the very next batch. */
static void
test_ends_first(void)
{
    struct kit *k = kit_start(16, 8, false);
    journal_kit_accept(k, 100);
    journal_kit_accept(k, 100);
    kit_calm(k);
    for (unsigned i = 0; i < 4; i++)
        kit_mark(k, 2, 12000);
    kit_end(k, 1, RECORD_END);
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    journal_hurry(k->journal);
    for (unsigned i = 0; i < 9 && !k->messages[1].ended; i++)
        kit_turn(k);
    ok(k->failures > 0 && k->messages[1].ended && !journal_is_quiet(k->journal));
    sim_disk_power_cut();
    struct journal_reading reading = journal_kit_reading(k);
    is_number(journal_read(k->disk, k->settings.directory, &reading, &k->summary), 0, "reads");
    ok_named(k->found[1].ends == 1 && k->found[2].marks[3] == 0, "the end, not all marks");
    kit_bury(k);
    kit_begin_process(k, false, 2);
    is_number(journal_kit_open(k), 0, "opens");
    kit_stop(&k);
}

static void
fail_again(void *context, uint64_t batch, int error)
{
    struct kit *k = context;
    kit_settled(context, batch, error);
    if (error < 0 && k->failures == 1) {
        sim_disk_count_anew();
        sim_disk_fail_at(2, EIO);
    }
}

static int
open_with(struct kit *k, void (*settled)(void *context, uint64_t batch, int error))
{
    struct journal_reading reading = journal_kit_reading(k);
    struct journal_events events = {
        .context = k, .settled = settled, .space = kit_on_space};
    sim_disk_reset();
    kit_begin_process(k, false, 1);
    return journal_open(&k->journal, &k->spool, k->loop, &k->settings, &reading,
                        &events, &k->summary, k->error, sizeof(k->error));
}

static void
test_failing_often(unsigned times)
{
    struct kit *k = kit_new(16, 8);
    is_number(open_with(k, fail_again), 0, "without events that nobody needs");
    journal_kit_accept(k, 100);
    kit_calm(k);
    kit_mark(k, 1, 10);
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO);
    journal_hurry(k->journal);
    kit_turn(k);
    is_number(k->failures, 2, "two in a row");
    uint64_t batches = kit_figures(k).batches;
    sim_loop_advance(k->loop, 9000);
    is_number(kit_figures(k).batches, batches, "waits for 10 s");
    is_number(journal_kit_accept(k, 10), 0, "nothing comes in meanwhile");
    kit_mark(k, 1, 10);
    for (unsigned i = 2; i < times; i++) {
        for (unsigned turn = 0; turn < 9; turn++)
            kit_turn(k); /* another segment is made */
        sim_disk_count_anew();
        sim_disk_fail_at(i, EIO);
        sim_loop_advance(k->loop, 2000);
        is_number(k->failures, i + 1, "once every 10 s");
        sim_loop_advance(k->loop, 8000);
    }
    is_number(k->space_events, 0, "no space");
    sim_loop_advance(k->loop, 2000);
    kit_turn(k);
    is_number(k->failures, times, "then it goes on");
    is_number(k->space_events, 1, "with space");
    kit_drain(k);
    ok(journal_is_quiet(k->journal) && k->in_order);
    kit_restart(k);
    ok_named(k->found[1].marks[0] == 1 && k->found[1].marks[1] == 1, "nothing is lost");
    kit_stop(&k);
}

/* An operator removes what is not yet durable, and then it fails. */
static void
test_end_before_durable(bool fails)
{
    struct kit *k = kit_start(16, 4, false);
    journal_kit_accept(k, 0);
    kit_calm(k);
    for (unsigned i = 0; i < 6; i++)
        journal_kit_accept(k, KIT_LARGE);
    is_number(k->count, 7, "in two segments");
    uint64_t batch = kit_end(k, 2, RECORD_END);
    ok(batch >= k->messages[7].batch && k->messages[7].batch > k->messages[2].batch);
    kit_end(k, 7, RECORD_END);
    if (fails) {
        sim_disk_count_anew();
        sim_disk_fail_at(3, EIO);
    }
    kit_drain(k);
    ok(k->in_order && journal_is_quiet(k->journal));
    for (unsigned i = 1; i <= 6; i++)
        if (kit_is_live(&k->messages[i]))
            kit_end(k, i, RECORD_END);
    for (unsigned i = 0; i < 100; i++) {
        kit_end_spool(k);
        kit_drain(k);
    }
    ok_named(kit_figures(k).free_segments >= 2, "no segment is kept for them");
    k->messages[2].ended = k->messages[7].ended = true;
    kit_restart(k);
    kit_stop(&k);
}

/* All that is gathered behind it fails, too; each is told in turn, and ends what it
 * pleases meanwhile. */
static struct kit *ending;
static void
end_next(void *context, uint64_t batch, int error)
{
    kit_settled(context, batch, error);
    if (error < 0 && ending->failures == 1)
        kit_end(ending, 4, RECORD_END);
}

TEST(failing_many)
{
    struct kit *k = ending = kit_new(16, 4);
    is_number(open_with(k, end_next), 0, "opens");
    journal_kit_accept(k, 0);
    kit_calm(k);
    for (unsigned i = 0; i < 3; i++)
        journal_kit_accept(k, KIT_LARGE);
    sim_disk_count_anew();
    sim_disk_fail_at(3, EIO);
    kit_turn(k);
    kit_turn(k);
    is_number(k->failures, 3, "all that has gathered");
    kit_drain(k);
    ok(k->in_order && journal_is_quiet(k->journal) && k->settles == 5);
    kit_restart(k);
    for (unsigned i = 2; i <= 4; i++)
        ok(k->found[i].accepts == 0 || k->found[i].ends > 0);
    kit_stop(&k);
}

TEST(no_space)
{
    struct kit *k = kit_start(16, 8, false);
    unsigned warned = 0;
    /* The next one is made when the first is taken: create it, write it. */
    for (unsigned i = 0; i < 6; i++) {
        journal_kit_accept(k, 100);
        kit_drain(k);
        sim_disk_count_anew();
        sim_disk_fail_at(i % 2 == 0 ? 1 : 2, ENOSPC);
        kit_turn(k);
        kit_turn(k);
        sim_disk_fail_at(0, 0);
    }
    warned = kit_said(k, "stays at");
    ok_named(warned <= 1, "at most one line");
    ok_named(k->spool.trouble[0] == '\0', "a full disk is no trouble");
    ok(k->messages[6].acked && k->in_order);
    sim_loop_advance(k->loop, 10001);
    for (unsigned i = 0; i < 10; i++)
        kit_turn(k);
    ok_named(kit_figures(k).free_segments >= 2, "made when there is space again");
    kit_restart(k);
    kit_stop(&k);
}

TEST(open_failures)
{
    unsigned calls = 0, wrong = 0;
    for (uint64_t call = 1; calls == 0; call++) {
        struct kit *k = kit_start(16, 4, false);
        journal_kit_accept(k, 100);
        kit_drain(k);
        kit_end_process(k);
        kit_begin_process(k, false, 1);
        sim_disk_count_anew();
        sim_disk_fail_at(call, EIO);
        int result = journal_kit_open(k);
        if (!sim_disk_has_failed())
            calls = (unsigned)call;
        else
            wrong += result != 0 && (k->journal != NULL || k->error[0] == '\0');
        if (result == 0)
            wrong += !journal_kit_check(k, 0, "open");
        kit_stop(&k);
    }
    ok_named(wrong == 0 && calls > 10, "each call of a start may fail");
    struct kit *k = kit_new(16, 4);
    sim_disk_reset();
    kit_begin_process(k, false, 1);
    disk_make_directory(k->disk, "journal", 0700);
    disk_close_file(k->disk, disk_create(k->disk, k->settings.directory, 0600));
    ok(journal_kit_open(k) < 0 && k->journal == NULL);
    ok_named(strstr(k->error, k->settings.directory) != NULL, "the error names the directory");
    kit_stop(&k);
}

int
main(void)
{
    test_ends_first();
    test_failure(1, "the write fails");
    test_failure(2, "the sync fails at once");
    test_failure(3, "the sync fails later");
    test_failing_often(2);
    test_failing_often(4);
    test_end_before_durable(false);
    test_end_before_durable(true);
    tap_tests("");
    return done();
}
