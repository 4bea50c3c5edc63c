/* `done`: one write for the end of a batch and the extent of the next one, in place; the files of events grow ahead. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "t/support/kept.h"

#include <errno.h>
#include <string.h>

enum { BATCH = 10, OWED_MS = 100, DONE_SIZE = 128 };

static struct text
done_text(void)
{
    return sim_disk_content("/spool/events/done");
}

static void
tell_some(struct kept *k, unsigned from, unsigned count)
{
    for (unsigned n = from; n < from + count; n++)
        kept_tell(k, n);
    kept_turn(k);
    kept_turn(k);
}

static bool
batch_is(struct kept *k, struct event_batch *batch, const char *first)
{
    for (int i = 0; i < 10 && !event_spool_batch(k->spool, BATCH, batch); i++)
        kept_turn(k);
    return batch->lines.length > 0 &&
           memmem(batch->lines.at, batch->lines.length, first, strlen(first)) != NULL;
}

/* The end of a batch waits for the next one, which comes soon or not. */
TEST(owed)
{
    struct kept k;
    struct event_batch batch = {0};
    buffer_init(&batch.lines, EVENT_BATCH_BYTES);
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    tell_some(&k, 1, BATCH);
    ok_named(batch_is(&k, &batch, "\"r1@a.example\""), "a batch");
    size_t size = done_text().length;
    ok_named(size > 0 && size < 512, "`done` has its extent, in one sector");
    event_spool_taken(k.spool);
    kept_turn(&k);
    ok_named(text_find_last(done_text(), '0') != TEXT_NONE &&
                 event_spool_offer(k.spool, BATCH) == EVENT_OFFER_NONE,
             "taken");
    char before[100];
    snprintf(before, sizeof(before), "%.*s", (int)size, done_text().at);
    sim_loop_advance(k.loop, OWED_MS / 2);
    is_text(done_text(), text_from(before), "`done` does not say so at once");
    tell_some(&k, BATCH + 1, BATCH);
    uint64_t calls = sim_disk_calls();
    ok_named(batch_is(&k, &batch, "\"r11@a.example\""), "another comes");
    ok_named(done_text().length == size && strncmp(done_text().at, before, size) != 0,
             "one write for both, in place");
    ok_named(sim_disk_calls() - calls <= 9, "one write, and the batch read twice");
    sim_loop_advance(k.loop, 2 * OWED_MS);
    is_number((long)sim_disk_count("/spool/events"), 2, "no other file is made");
    event_spool_taken(k.spool);
    sim_loop_advance(k.loop, 2 * OWED_MS);
    kept_turn(&k);
    kept_leave(&k, true);
    kept_begin(&k, 1 << 26);
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 21, BATCH, &repeated), 21,
              "a moment later it is durable");
    is_number(repeated, 0, "nothing comes again");
    kept_leave(&k, false);

    /* A crash in that moment repeats the batch, as it was; a stop does not. */
    for (int killed = 0; killed < 2; killed++) {
        sim_disk_reset();
        kept_begin(&k, 1 << 26);
        tell_some(&k, 1, BATCH);
        ok(batch_is(&k, &batch, "\"r1@a.example\""));
        event_spool_taken(k.spool);
        kept_leave(&k, killed);
        kept_begin(&k, 1 << 26);
        repeated = 0;
        is_number(
            kept_take_all(&k, killed ? 1 : BATCH + 1, BATCH, &repeated), BATCH + 1,
            killed ? "killed then: all of it again" : "stopped then: nothing again");
        is_number(repeated, 0, "once");
        kept_leave(&k, false);
    }
    buffer_free(&batch.lines);
}

/* A crash in the middle of a write in place leaves a part of the new line before the rest
 * of the old one. */
TEST(torn)
{
    struct kept k;
    struct event_batch batch = {0};
    char old[DONE_SIZE], fresh[DONE_SIZE];
    unsigned lost = 0, repeated = 0;
    buffer_init(&batch.lines, EVENT_BATCH_BYTES);
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    tell_some(&k, 1, 2 * BATCH + 1);
    ok(batch_is(&k, &batch, "\"r1@a.example\""));
    size_t size = done_text().length;
    memcpy(old, done_text().at, size);
    event_spool_taken(k.spool);
    ok(batch_is(&k, &batch, "\"r11@a.example\""));
    ok(done_text().length == size && size < DONE_SIZE);
    memcpy(fresh, done_text().at, size);
    kept_leave(&k, true);
    for (size_t cut = 1; cut <= size; cut++) {
        memcpy(old, fresh, cut);
        kept_begin(&k, 1 << 26);
        int file = disk_open_file(k.disk, "events/done", true);
        ok_named(file >= 0 && disk_write_at(k.disk, file, 0, text_of(old, size)) == 0,
                 "torn");
        kept_leave(&k, true);
        kept_begin(&k, 1 << 26);
        lost += kept_take_all(&k, BATCH + 1, BATCH, &repeated) != 2 * BATCH + 2;
        kept_leave(&k, true);
    }
    is_number((long)lost, 0, "no event is lost, wherever the write was cut");
    /* an earlier version has written no sum */
    fresh[size - sizeof(" 01234567")] = '\n';
    kept_begin(&k, 1 << 26);
    (void)!disk_unlink(k.disk, "events/done");
    int file = disk_create(k.disk, "events/done", 0600);
    ok(disk_write(k.disk, file, text_of(fresh, size - sizeof("01234567"))) == 0);
    kept_leave(&k, true);
    kept_begin(&k, 1 << 26);
    repeated = 0;
    is_number(kept_take_all(&k, BATCH + 1, BATCH, &repeated), 2 * BATCH + 2,
              "all come");
    is_number(repeated, 0, "and nothing twice");
    kept_leave(&k, true);
    buffer_free(&batch.lines);
}

/* A file grows by doubling, up to a limit, and what is written ahead is overwritten. */
TEST(ahead)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    size_t sizes = 0, last = 0, count = 0;
    for (unsigned n = 1; n <= 1000; n++) {
        kept_tell(&k, n);
        kept_turn(&k);
        kept_turn(&k);
        size_t size = sim_disk_content("/spool/events/00000001").length;
        sizes += size != last;
        last = size;
    }
    struct text lines = kept_lines("/spool/events/00000001");
    for (size_t i = 0; i < lines.length; i++)
        count += lines.at[i] == '\n';
    is_number((long)count, 1000, "every event is there");
    ok_named(sizes <= 14, "the file grew a few times");
    ok_named(last <= 2 * lines.length, "to less than twice its lines");
    is_number(event_spool_figures(k.spool).pending_bytes, (int64_t)lines.length,
              "zeros do not wait for anybody");
    kept_leave(&k, true);
    kept_begin(&k, 1 << 26);
    is_number(event_spool_figures(k.spool).pending_bytes, (int64_t)lines.length,
              "nor after a crash");
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 1, 100, &repeated), 1001, "all come, in order");
    kept_leave(&k, false);
}

/* A file whose end cannot be read at startup keeps its events: they are read later. */
TEST(unreadable_end)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    tell_some(&k, 1, 20);
    int64_t bytes = (int64_t)kept_lines("/spool/events/00000001").length;
    ok_named(bytes > 4096, "more than what is read at a time");
    event_spool_close(&k.spool);
    for (uint64_t call = 1; call <= 10; call++) {
        sim_disk_count_anew();
        sim_disk_fail_at(call, EIO);
        if (event_spool_open(&k.spool, &k.settings) != 0)
            continue;
        sim_disk_fail_at(0, 0);
        int64_t pending = (int64_t)event_spool_figures(k.spool).pending_bytes;
        ok_named(pending >= bytes || pending == 0 /* not even its name */,
                 "all of it waits");
        event_spool_close(&k.spool);
    }
    is_number(event_spool_open(&k.spool, &k.settings), 0, "open");
    event_spool_on_more(k.spool, kept_on_more, &k);
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 1, BATCH, &repeated), 21, "and comes");
    kept_leave(&k, false);
}

static void
sync_names(void)
{
    struct disk *disk;
    if (disk_open(&disk, "/spool", false) != 0 ||
        disk_sync_directory(disk, "events") != 0)
        abort();
    disk_close(&disk);
}

/* The name of a new `done` is durable as soon as a batch behind the first is. */
TEST(name)
{
    struct kept k;
    struct event_batch batch = {0};
    unsigned repeated = 0;
    buffer_init(&batch.lines, EVENT_BATCH_BYTES);
    for (int before = 0; before < 2; before++) {
        sim_disk_reset();
        kept_begin(&k, 1 << 26);
        tell_some(&k, 1, BATCH);
        if (before) { /* there is a `done` of an older process, durably */
            is_number(kept_take_all(&k, 1, BATCH, &repeated), BATCH + 1, "taken");
            kept_leave(&k, false);
            sync_names();
            kept_begin(&k, 1 << 26);
        }
        tell_some(&k, BATCH + 1, 4 * BATCH);
        for (unsigned n = before ? 1 : 0; n < 4; n++) {
            char first[40];
            snprintf(first, sizeof(first), "\"r%u@a.example\"",
                     n * (unsigned)BATCH + 1);
            ok_named(batch_is(&k, &batch, first), first);
            event_spool_taken(k.spool);
        }
        sim_loop_advance(k.loop, 2 * OWED_MS);
        kept_leave(&k, true);
        sim_disk_power_cut();
        kept_begin(&k, 1 << 26);
        repeated = 0;
        is_number(kept_take_all(&k, 4 * BATCH + 1, BATCH, &repeated), 5 * BATCH + 1,
                  "the rest comes");
        is_number(repeated, 0, "and nothing again");
        kept_leave(&k, false);
    }
    buffer_free(&batch.lines);
}
