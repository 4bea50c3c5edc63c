/* The journal's writer keeps what its header promises: one sync for all of a turn,
 * never two in flight, marks within 100 ms, a ring that goes round, space for ends when
 * there is none for messages, and nothing lost when the disk fails. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/loop.c */
#include "t/support/journal_kit.h"

static bool
reads_back(struct kit *k, unsigned number)
{
    const struct kit_message *m = &k->messages[number];
    char *bytes = calloc(1, m->size + 1);
    bool good = journal_read_place(k->disk, k->settings.directory, &m->place, 0, bytes,
                                   m->size) == (int64_t)m->size &&
                kit_is_payload(number, m->size, text_of(bytes, m->size));
    free(bytes);
    return good;
}

TEST(first_open)
{
    struct kit *k = kit_start(16, 4, false);
    struct text content = sim_disk_content("/s/journal/000-255/0000");
    is_number(content.length, 16 * KIT_BLOCK, "a segment of the size");
    bool zero = true;
    for (size_t i = 0; i < content.length; i++)
        zero = zero && content.at[i] == '\0';
    ok_named(zero, "filled with zeros");
    is_number(sim_disk_count("/s/journal/000-255"), 2, "two are made");
    is_number(kit_figures(k).segments, 2, "two");
    is_number(kit_figures(k).free_segments, 2, "both unused");
    is_number(k->summary.segments + k->summary.records, 0, "nothing to read");
    ok(journal_is_quiet(k->journal) && !k->summary.torn && k->damages == 0);
    is_number(journal_payload_max(k->journal), KIT_LARGE, "a quarter less the headers");
    uint64_t turns = sim_loop_turns(k->loop);
    sim_loop_advance(k->loop, 3600000);
    ok_named(sim_loop_turns(k->loop) - turns <= 2, "an idle journal does not wake up");
    kit_stop(&k);
}

TEST(group_commit)
{
    struct kit *k = kit_start(64, 4, false);
    for (unsigned i = 0; i < 50; i++)
        journal_kit_accept(k, 1000);
    ok(k->messages[1].place.sequence == 1 && k->messages[1].place.offset == 96);
    is_number(k->messages[50].place.offset, 96 + 49 * 1032, "known at once");
    is_number(k->messages[50].batch, k->messages[1].batch, "all in one batch");
    kit_turn(k);
    is_number(k->settles, 0, "the sync goes on");
    ok(!journal_is_quiet(k->journal));
    journal_kit_accept(k, 10);
    ok_named(k->messages[51].batch == k->messages[1].batch + 1, "the next one gathers");
    kit_turn(k);
    is_number(k->settles, 1, "durable");
    ok(k->messages[50].acked && !k->messages[51].acked);
    is_number(kit_figures(k).batches, 2, "the next one is on its way in the same turn");
    kit_turn(k);
    ok(k->messages[51].acked && k->in_order && journal_is_quiet(k->journal));
    is_number(k->messages[51].place.offset % KIT_BLOCK, 96, "at a block of its own");
    is_number(kit_figures(k).syncs, 2, "two syncs");
    is_number(kit_figures(k).records, 51, "records");
    bool good = true;
    for (unsigned i = 1; i <= 51; i++)
        good = good && reads_back(k, i);
    ok_named(good, "all of it can be read");
    char some[4];
    is_number(journal_read_place(k->disk, k->settings.directory, &k->messages[51].place, 8,
                                 some, 2),
              2, "a part of it");
    struct journal_place nowhere = k->messages[51].place;
    nowhere.segment = 99;
    is_number(journal_read_place(k->disk, k->settings.directory, &nowhere, 0, some, 1),
              -ENOENT, "no such segment");
    kit_calm(k); /* the third segment is made */
    journal_kit_accept(k, 10);
    journal_kit_accept(k, 10);
    sim_disk_count_anew();
    kit_drain(k);
    is_number(sim_disk_calls(), 3, "one write, one sync (which begins and ends)");
    kit_restart(k);
    is_number(k->summary.records, 53, "read back");
    ok(!k->summary.torn);
    kit_stop(&k);
}

TEST(slow_sync)
{
    struct kit *k = kit_start(64, 4, false);
    sim_disk_set_syncing(DISK_SYNC_AIO, 50);
    journal_kit_accept(k, 10);
    kit_turn(k);
    for (unsigned i = 0; i < 4; i++) {
        journal_kit_accept(k, 10);
        sim_loop_advance(k->loop, 10);
    }
    is_number(kit_figures(k).batches, 1, "never two in flight");
    is_number(k->settles, 0, "nobody is told");
    sim_loop_advance(k->loop, 10);
    is_number(kit_figures(k).batches, 2, "then all that has gathered");
    sim_loop_advance(k->loop, 50);
    ok(k->settles == 2 && k->messages[5].acked);
    kit_stop(&k);
}

TEST(blocking)
{
    struct kit *k = kit_start(16, 4, true);
    journal_kit_accept(k, 10);
    journal_kit_accept(k, KIT_LARGE);
    journal_kit_accept(k, KIT_LARGE);
    kit_turn(k);
    is_number(k->settles, 3, "each limit makes a batch; all settled in this turn");
    ok(k->in_order && k->messages[3].acked);
    kit_restart(k);
    kit_stop(&k);
}

TEST(lazy)
{
    struct kit *k = kit_start(64, 4, false);
    struct id spool_id = kit_id(5000);
    journal_kit_accept(k, 10);
    kit_drain(k);
    kit_mark(k, 1, 10);
    kit_turn(k);
    sim_loop_advance(k->loop, 98);
    is_number(kit_figures(k).batches, 1, "a mark waits for company");
    sim_loop_advance(k->loop, 3);
    is_number(kit_figures(k).batches, 2, "but 100 ms");
    uint64_t turns = sim_loop_turns(k->loop);
    sim_loop_advance(k->loop, 60000);
    ok_named(sim_loop_turns(k->loop) - turns <= 3, "then no timer");
    ok(journal_is_quiet(k->journal));
    kit_mark(k, 1, 10);
    journal_kit_accept(k, 10);
    kit_turn(k);
    is_number(kit_figures(k).batches, 3, "a message takes it along");
    sim_loop_advance(k->loop, 200);
    is_number(kit_figures(k).batches, 3, "once");
    for (unsigned i = 0; i < 63; i++)
        journal_mark(k->journal, spool_id, TEXT("x"));
    kit_turn(k);
    is_number(kit_figures(k).batches, 3, "63 wait");
    journal_mark(k->journal, spool_id, TEXT("x"));
    kit_turn(k);
    is_number(kit_figures(k).batches, 4, "64 do not");
    kit_drain(k);
    kit_end(k, 1, RECORD_END);
    kit_turn(k);
    is_number(kit_figures(k).batches, 4, "an end is lazy");
    journal_hurry(k->journal);
    kit_turn(k);
    is_number(kit_figures(k).batches, 5, "unless there is a hurry");
    kit_drain(k);
    journal_hurry(k->journal);
    kit_turn(k);
    is_number(kit_figures(k).batches, 5, "for nothing: nothing");
    ok(k->messages[1].ended);
    kit_stop(&k);
}

TEST(limits)
{
    struct kit *k = kit_start(64, 4, false);
    for (unsigned i = 0; i < 3; i++)
        journal_kit_accept(k, 30000);
    ok_named(k->messages[2].batch == k->messages[1].batch &&
                 k->messages[3].batch == k->messages[1].batch + 1,
             "a quarter of a segment");
    journal_kit_accept(k, journal_payload_max(k->journal));
    ok(k->messages[4].batch == k->messages[3].batch + 1);
    kit_drain(k);
    ok(k->in_order && k->messages[4].acked && reads_back(k, 4));
    /* The records about mail may be longer than any mail. */
    kit_mark(k, 1, 63 * KIT_BLOCK - 97);
    kit_calm(k);
    journal_kit_accept(k, 0);
    kit_drain(k);
    kit_restart(k);
    is_number(k->found[1].marks[0], 1, "a mark as large as a segment");
    ok(k->found[5].accepts == 1);
    kit_stop(&k);
    k = kit_start(2048, 4, false);
    for (unsigned i = 0; i < 4; i++)
        journal_kit_accept(k, 300 * 1000);
    ok_named(k->messages[3].batch == k->messages[1].batch &&
                 k->messages[4].batch != k->messages[1].batch,
             "a MiB");
    kit_calm(k); /* the third segment is made */
    unsigned before = k->count;
    for (unsigned i = 0; i < 60 && k->refusals == 0; i++)
        journal_kit_accept(k, 300 * 1000);
    ok_named(k->refusals == 1 && k->count - before == 27 &&
                 k->messages[k->count].place.sequence == 2,
             "8 MiB in memory, then they wait");
    kit_calm(k);
    is_number(k->space_events, 1, "until those are written");
    kit_stop(&k);
}

/* --- The ring -------------------------------------------------------------------- */

TEST(many_rounds)
{
    struct kit *k = kit_start(16, 4, false);
    unsigned waited = 0, accepted = 0;
    uint64_t last = 0;
    k->ends_crowded = true;
    k->checkpoints = true;
    journal_on_checkpoint(k->journal, kit_checkpoint, k);
    while (accepted < 4000 && waited < 4000) {
        size_t size = accepted % 7 == 0 ? KIT_LARGE : accepted * 37 % 3000;
        unsigned number = journal_kit_accept(k, size);
        if (number == 0) {
            waited++;
            kit_turn(k);
            continue;
        }
        accepted++;
        last = k->messages[number].place.sequence;
        if (number % 5 == 0)
            kit_turn(k);
        /* One in a hundred stays. */
        unsigned old = number > 12 ? number - 12 : 0;
        if (old > 0 && old % 100 != 0 && kit_is_live(&k->messages[old]))
            kit_end(k, old, RECORD_END);
        for (unsigned i = 1; number % 200 == 0 && i < old; i++)
            if (i % 100 != 0 && kit_is_live(&k->messages[i]))
                kit_end(k, i, RECORD_END);
    }
    is_number(accepted, 4000, "4000 messages through a tiny ring");
    ok(k->in_order && k->failures == 0);
    is_number(sim_disk_count("/s/journal/000-255"), 4, "four files");
    printf("# %u segments\n", (unsigned)last);
    ok_named(last > 250, "many times round");
    ok_named(k->crowds > 0, "asked to move what stays");
    ok_named(k->checkpoints_asked > 100, "checked before each is overwritten");
    kit_drain(k);
    kit_restart(k);
    kit_stop(&k);
}

TEST(no_space)
{
    struct kit *k = kit_start(16, 4, false);
    for (unsigned i = 0; i < 30; i++) {
        journal_kit_accept(k, KIT_LARGE);
        kit_turn(k);
    }
    is_number(k->count, 9, "all but the last segment");
    ok(kit_figures(k).full && k->refusals == 21 && k->crowds > 0);
    is_number(k->crowded, 1, "what is in the oldest should move");
    is_number(k->space_events, 0, "no space");
    ok(kit_accept_as(k, KIT_LARGE, true) > 0 && kit_accept_as(k, KIT_LARGE, true) > 0 &&
       kit_accept_as(k, KIT_LARGE, true) > 0);
    is_number(kit_accept_as(k, KIT_LARGE, true), 0, "not even for our own");
    kit_drain(k);
    is_number(kit_figures(k).free_segments, 0, "nothing is left");
    /* The marks need more than the last segment has. */
    for (unsigned i = 1; i <= 9; i++)
        kit_mark(k, i, 1500);
    ok_named(kit_said(k, "journal full") > 0, "said");
    for (unsigned i = 1; i <= 3; i++)
        kit_end(k, i, RECORD_MOVED);
    kit_drain(k);
    ok_named(journal_is_quiet(k->journal) && k->messages[3].ended,
             "ends find their way, since they make space");
    is_number(k->space_events, 0, "no space yet");
    for (unsigned i = 4; i <= 6; i++)
        kit_end(k, i, RECORD_MOVED);
    kit_drain(k);
    kit_turn(k);
    kit_turn(k);
    is_number(k->space_events, 1, "now there is");
    ok(!kit_figures(k).full && journal_kit_accept(k, 100) > 0);
    kit_drain(k);
    kit_restart(k);
    is_number(k->found[9].marks[0], 1, "the marks are there");
    kit_stop(&k);
}

/* Nothing ends, the reserve is full of marks: one more segment is made, and goes. */
TEST(one_more)
{
    struct kit *k = kit_start(16, 4, false);
    while (kit_accept_as(k, KIT_LARGE, true) > 0)
        kit_drain(k);
    is_number(k->count, 12, "a full ring");
    for (unsigned i = 1; i <= 12; i++)
        kit_mark(k, i, 3000);
    for (unsigned i = 0; i < 20; i++)
        kit_turn(k);
    sim_loop_advance(k->loop, 1000);
    kit_note_quiet(k);
    ok(journal_is_quiet(k->journal));
    is_number(kit_figures(k).segments, 5, "one more than there may be");
    kit_restart(k);
    is_number(k->found[12].marks[0], 1, "the marks are durable");
    for (unsigned i = 1; i <= 12; i++)
        kit_end(k, i, RECORD_END);
    kit_drain(k);
    for (unsigned i = 0; i < 8; i++) {
        kit_end_spool(k);
        kit_drain(k);
    }
    is_number(kit_figures(k).segments, 4, "as many as there may be");
    kit_restart(k);
    kit_stop(&k);
}

TEST(checkpoint)
{
    struct kit *k = kit_start(16, 4, false);
    k->checkpoints = true;
    k->checkpoint_at_once = false;
    journal_on_checkpoint(k->journal, kit_checkpoint, k);
    for (unsigned i = 0; i < 4; i++) {
        journal_kit_accept(k, KIT_LARGE);
        kit_drain(k);
    }
    unsigned gone = kit_end_spool(k);
    kit_drain(k);
    for (unsigned i = 1; i <= 4; i++)
        kit_end(k, i, RECORD_END);
    kit_drain(k);
    kit_turn(k);
    is_number(k->checkpoints_asked, 1, "asked when a segment could go");
    unsigned unused = kit_figures(k).free_segments;
    kit_turn(k);
    is_number(kit_figures(k).free_segments, unused, "nothing goes before the answer");
    k->checkpoint_result = -EIO;
    kit_answer_checkpoint(k);
    kit_turn(k);
    is_number(k->checkpoints_asked, 1, "it failed: not again at once");
    sim_loop_advance(k->loop, 10001);
    kit_turn(k);
    is_number(k->checkpoints_asked, 2, "but later");
    k->checkpoint_result = 0;
    kit_answer_checkpoint(k);
    ok(k->messages[gone].checkpointed);
    for (unsigned i = 0; i < 4; i++)
        kit_end_spool(k), kit_drain(k);
    ok_named(kit_figures(k).free_segments > unused, "then it is free");
    kit_restart(k);
    kit_stop(&k);
}

/* For a segment whose last batch is not yet durable. */
TEST(checkpoint_waits)
{
    struct kit *k = kit_start(16, 6, false);
    char large[20000] = {0};
    k->checkpoints = true;
    journal_on_checkpoint(k->journal, kit_checkpoint, k);
    journal_kit_accept(k, 100);
    kit_calm(k);
    kit_end(k, 1, RECORD_END);
    kit_drain(k);
    sim_disk_set_syncing(DISK_SYNC_AIO, 50);
    unsigned gone = kit_end_spool(k);
    for (unsigned i = 0; i < 4; i++) /* into the next segment */
        journal_mark(k->journal, kit_id(4000), text_of(large, sizeof(large)));
    journal_hurry(k->journal);
    sim_loop_advance(k->loop, 40);
    is_number(k->checkpoints_asked, 0, "not asked before the END in it is durable");
    sim_loop_advance(k->loop, 400);
    ok_named(k->checkpoints_asked > 0 && k->messages[gone].checkpointed, "then asked");
    kit_stop(&k);
}

/* Nothing but marks, over several segments at once: the header of the first does not
 * say that the next one is the oldest. */
TEST(marks_only)
{
    struct kit *k = kit_start(16, 6, false);
    char large[20000] = {0};
    kit_end_spool(k);
    kit_calm(k);
    for (unsigned i = 0; i < 6; i++)
        journal_mark(k->journal, kit_id(4000), text_of(large, sizeof(large)));
    journal_hurry(k->journal);
    kit_turn(k);
    kit_turn(k);
    kit_turn(k); /* those of the first segment are durable, the third is not */
    sim_disk_power_cut();
    struct journal_reading reading = journal_kit_reading(k);
    is_number(journal_read(k->disk, k->settings.directory, &reading, &k->summary), 0,
              "reads");
    ok(k->damages == 0 && k->summary.records == 3 && !k->summary.torn);
    kit_bury(k);
    kit_begin_process(k, false, 2);
    is_number(journal_kit_open(k), 0, "opens");
    kit_stop(&k);
}

/* --- Changes --------------------------------------------------------------------- */

TEST(changed_settings)
{
    struct kit *k = kit_start(16, 8, false);
    for (unsigned i = 0; i < 14; i++) {
        journal_kit_accept(k, KIT_LARGE);
        kit_drain(k);
    }
    kit_turn(k);
    unsigned before = kit_figures(k).segments;
    kit_end_process(k);
    k->settings.segment_size = 32 * KIT_BLOCK;
    k->settings.segments = 4;
    kit_begin_process(k, false, 1);
    is_number(journal_kit_open(k), 0, "another size");
    ok(journal_kit_check(k, 0, "another size"));
    kit_adopt(k);
    ok_named(before >= 5 && sim_disk_count("/s/journal/000-255") > 5,
             "the old ones are still there");
    journal_kit_accept(k, 20000);
    kit_drain(k);
    ok(k->messages[15].acked && reads_back(k, 15) && reads_back(k, 1));
    for (unsigned i = 1; i <= 14; i++)
        kit_end(k, i, RECORD_MOVED);
    kit_drain(k);
    journal_kit_accept(k, 10);
    kit_drain(k);
    kit_turn(k);
    is_number(sim_disk_count("/s/journal/000-255"), kit_figures(k).segments,
              "then they are gone");
    kit_restart(k);
    kit_stop(&k);
}

TEST(fewer_segments)
{
    struct kit *k = kit_start(16, 12, false);
    for (unsigned i = 0; i < 24; i++) {
        journal_kit_accept(k, KIT_LARGE);
        kit_drain(k);
    }
    k->settings.segments = 4;
    kit_restart(k);
    ok_named(kit_figures(k).segments > 8, "all are needed");
    ok_named(journal_kit_accept(k, 10) > 0, "and there is space for more");
    for (unsigned i = 1; i <= 24; i++)
        kit_end(k, i, RECORD_END);
    kit_drain(k);
    for (unsigned i = 0; i < 40; i++) {
        journal_kit_accept(k, 10);
        kit_drain(k);
    }
    is_number(kit_figures(k).segments, 4, "then no more than there may be");
    is_number(sim_disk_count("/s/journal/000-255"), 4, "as files");
    kit_restart(k);
    kit_stop(&k);
}

TEST(close)
{
    struct kit *k = kit_start(64, 4, false);
    journal_kit_accept(k, 100);
    kit_turn(k); /* in flight */
    journal_kit_accept(k, 200);
    journal_kit_accept(k, 60000);
    journal_kit_accept(k, 300);
    kit_restart(k);
    for (unsigned i = 1; i <= 4; i++)
        ok(k->found[i].accepts == 1);
    kit_mark(k, 1, 5);
    kit_end(k, 2, RECORD_END);
    kit_restart(k);
    ok(k->found[1].marks[0] == 1 && k->found[2].ends == 1);
    sim_disk_restart();
    kit_stop(&k);
    struct journal *none = NULL;
    journal_close(&none);
}

/* Other files in the space are left alone. */
TEST(other_names)
{
    struct kit *k = kit_start(16, 4, false);
    static const char *const names[] = {"README", "00001", "12a4", "0009", "123456789"};
    journal_kit_accept(k, 100);
    kit_drain(k);
    kit_end_process(k);
    kit_begin_process(k, false, 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[80];
        snprintf(path, sizeof(path), "%s/%s", k->settings.directory, names[i]);
        if (i == 3)
            disk_make_directory(k->disk, path, 0700);
        else
            disk_close_file(k->disk, disk_create(k->disk, path, 0600));
    }
    disk_make_directory(k->disk, "journal/000-255/0003", 0700);
    is_number(journal_kit_open(k), 0, "opens");
    kit_adopt(k);
    for (unsigned i = 0; i < 6; i++) {
        journal_kit_accept(k, KIT_LARGE);
        kit_drain(k);
    }
    ok(k->messages[7].acked && k->damages == 0);
    is_number(sim_disk_count("/s/journal/000-255"), 4 + kit_figures(k).segments,
              "files of others");
    kit_restart(k);
    kit_stop(&k);
}

/* Segments are small beside the ring, and large beside a message. */
TEST(division)
{
    static const struct {
        int64_t size, segment, wanted;
        unsigned segments;
    } cases[] = {
        {64 << 20,          0,       4 << 20,  16  },
        {1,                 0,       1 << 20,  4   },
        {INT64_C(1) << 34,  0,       16 << 20, 1024},
        {INT64_C(1) << 40,  0,       16 << 20, 1024},
        {1 << 20,           10000,   8192,     128 },
        {1 << 20,           1,       4096,     256 },
        {INT64_C(64) << 20, 1 << 30, 16 << 20, 4   }
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct journal_settings s =
            journal_divide("directory", cases[i].size, cases[i].segment);
        is_number(s.segment_size, cases[i].wanted, "bytes of a segment");
        is_number(s.segments, cases[i].segments, "segments");
        is_string(s.directory, "directory", "its directory");
    }
}
