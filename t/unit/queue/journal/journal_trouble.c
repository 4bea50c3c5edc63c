/* A journal in trouble: records saved from a damaged one stay, nothing is missed that
 * was never written, and an owner that does not move its mail is asked again. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/loop.c */
#include "t/support/journal_kit.h"

static const char second[] = "/s/journal/000-255/0001";

/* The process is killed; another one reads what is there. */
static void
kill_and_open(struct kit *k)
{
    sim_disk_die_at(1);
    kit_end_process(k);
    sim_disk_restart();
    kit_begin_process(k, false, 9);
    is_number(journal_kit_open(k), 0, "opens again");
}

/* A batch is damaged, and the one behind it was cut off by a crash: so it is the last
 * that counts, in a segment of its own. */
TEST(damaged_before_torn)
{
    struct kit *k = kit_start(16, 4, false);
    size_t max = journal_payload_max(k->journal);
    for (unsigned i = 0; i < 3; i++) {
        journal_kit_accept(k, max);
        kit_drain(k);
    }
    journal_kit_accept(k, 9000);
    kit_drain(k);
    is_number(k->messages[4].place.sequence, 1, "the first segment is full");
    unsigned lost = journal_kit_accept(k, 3000), saved = journal_kit_accept(k, 3000);
    kit_drain(k);
    ok(k->messages[saved].acked && k->messages[saved].place.sequence == 2);
    size_t offset = k->messages[lost].place.offset;
    for (unsigned i = 0; i < 20; i++)
        kit_turn(k); /* another segment is made */
    unsigned torn = journal_kit_accept(k, 9000);
    sim_disk_count_anew();
    sim_disk_die_at(1); /* the write gets half of it done */
    kit_turn(k);
    ok(sim_disk_damage(second, offset + 5));
    kill_and_open(k);
    is_number(k->damages, 1, "one record is damaged");
    ok(k->summary.torn && k->found[saved].accepts == 1 && k->found[lost].accepts == 0);
    ok(k->found[torn].accepts == 0 && k->found[3].accepts == 1);
    k->messages[lost].acked = false;
    kit_adopt(k); /* keeps what it has read */
    unsigned more = journal_kit_accept(k, 3000);
    kit_drain(k);
    ok_named(k->messages[more].place.offset > k->messages[saved].place.offset + 3000 &&
                 k->messages[more].place.sequence == 2,
             "goes on behind what was saved");
    kill_and_open(k);
    ok(k->found[saved].accepts == 1 && k->found[more].accepts == 1);
    ok(!k->found[saved].wrong && !k->found[more].wrong);
    kit_adopt(k);
    kit_stop(&k);
}

static void
answer_later(void *context)
{
    struct kit *k = context;
    k->checkpoint_waits = true;
}

/* The first batch of a segment fails: nothing durable is in it, and nobody may miss it.
 */
static unsigned
test_unused_segment(uint64_t call)
{
    struct kit *k = kit_start(16, 8, false);
    size_t max = journal_payload_max(k->journal);
    journal_on_checkpoint(k->journal, answer_later, k);
    for (unsigned i = 0; i < 8; i++)
        kit_turn(k);
    for (unsigned i = 0; i < 3; i++) {
        unsigned number = journal_kit_accept(k, max);
        kit_drain(k);
        kit_end(k, number, RECORD_END);
    }
    kit_drain(k);
    for (unsigned i = 0; i < 20; i++)
        kit_turn(k);
    sim_disk_count_anew();
    sim_disk_fail_at(call, EIO);
    unsigned refused = journal_kit_accept(k, max);
    uint64_t sequence = k->messages[refused].place.sequence;
    ok(k->messages[refused].place.offset == 96 && sequence > 1);
    kit_turn(k);
    kit_turn(k);
    unsigned failures = k->failures;
    if (k->checkpoint_waits)
        journal_checkpointed(k->journal, 0); /* of what was closed before */
    for (unsigned i = 0; i < 20; i++)
        kit_turn(k);
    kit_drain(k);
    unsigned after = journal_kit_accept(k, 100);
    kit_drain(k);
    ok(k->messages[after].acked);
    ok((k->messages[after].place.sequence > sequence) == (failures > 0));
    kill_and_open(k);
    is_number(k->damages, 0, "nothing is missing");
    ok(journal_kit_check(k, 0, "after the failure"));
    kit_adopt(k);
    kit_stop(&k);
    return failures;
}

/* The owner moves nothing: it is asked again, and not in every turn. */
TEST(ask_again)
{
    struct kit *k = kit_start(16, 4, false);
    for (unsigned i = 0; i < 40 && k->refusals == 0; i++) {
        journal_kit_accept(k, 9000);
        kit_drain(k);
        for (unsigned turn = 0; turn < 8; turn++)
            kit_turn(k);
    }
    ok_named(k->refusals > 0 && k->crowds > 0, "full, and asked");
    sim_loop_advance(k->loop, 10000);
    unsigned asked = k->crowds;
    sim_loop_advance(k->loop, 100000);
    is_number(k->crowds - asked, 10, "again every 10 s");
    ok(k->crowded > 0);
    k->ends_crowded = true;
    sim_loop_advance(k->loop, 60000);
    kit_drain(k);
    is_number(k->space_events, 1, "then there is space");
    sim_loop_advance(k->loop, 60000);
    asked = k->crowds;
    uint64_t turns = sim_loop_turns(k->loop);
    sim_loop_advance(k->loop, 3600000);
    is_number(k->crowds, asked, "and nobody is asked");
    ok_named(sim_loop_turns(k->loop) - turns <= 2, "nor woken up");
    ok_named(journal_kit_accept(k, 9000) > 0, "messages come in");
    kit_drain(k);
    kit_stop(&k);
}

int
main(void)
{
    tap_tests("");
    unsigned failures = 0;
    for (uint64_t call = 1; call <= 12; call++)
        failures += test_unused_segment(call);
    ok_named(failures >= 3, "the copy, the batch and the sync have failed");
    return done();
}
