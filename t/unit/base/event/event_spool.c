/* Kept events: written before what they tell of, in order, at least once; a disk that
 * fails, is full or stalls costs mail a second at most; every crash leaves them. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "t/support/kept.h"

#include <errno.h>
#include <string.h>

/* --- The gate --------------------------------------------------------------------- */

TEST(gate)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    ok(event_are_kept(k.hub) && gate_is_open(k.gate, gate_number(k.gate)));
    is_number(sim_disk_count("/spool/events"), 0, "no file before the first event");
    kept_tell(&k, 1);
    kept_tell(&k, 2);
    uint64_t number = gate_number(k.gate);
    ok_named(!gate_is_open(k.gate, number), "results wait");
    kept_turn(&k);
    ok_named(!gate_is_open(k.gate, number), "the sync goes on");
    is_number(sim_disk_count("/spool/events"), 1, "a file");
    kept_tell(&k, 3);
    kept_turn(&k);
    ok_named(gate_is_open(k.gate, number) && !gate_is_open(k.gate, gate_number(k.gate)),
             "the first two are durable, the third is not");
    kept_turn(&k);
    ok_named(gate_is_open(k.gate, gate_number(k.gate)), "now it is");
    struct text content = kept_lines("/spool/events/00000001");
    size_t lines = 0;
    for (size_t i = 0; i < content.length; i++)
        lines += content.at[i] == '\n';
    is_number((int64_t)lines, 3, "three lines");
    is_number((int64_t)event_spool_figures(k.spool).pending_bytes, (int64_t)content.length,
              "they wait");
    ok(k.more > 0);
    uint64_t turns = sim_loop_turns(k.loop);
    sim_loop_advance(k.loop, 3600000);
    ok_named(sim_loop_turns(k.loop) - turns <= 2, "without events nothing wakes up");
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 1, 100, &repeated), 4, "they are taken");
    is_number(event_spool_figures(k.spool).pending_bytes, 0, "none waits");
    kept_tell(&k, 4);
    gate_wait(k.gate);
    ok_named(gate_is_open(k.gate, gate_number(k.gate)), "who waits gets it at once");
    kept_leave(&k, false);
}

/* Off: nothing is made, nothing waits. */
TEST(off)
{
    struct event_hub *hub = event_hub_new(NULL);
    struct gate *gate = event_hub_gate(hub);
    ok(!event_are_kept(hub) && gate_is_open(gate, gate_number(gate)));
    gate_write(gate);
    gate_wait(gate);
    ok(gate_is_open(NULL, 7) && gate_number(NULL) == 0);
    gate_write(NULL);
    gate_wait(NULL);
    event_hub_free(&hub);
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    kept_tell(&k, 1);
    event_spool_close(&k.spool);
    ok_named(!event_are_kept(k.hub) && gate_is_open(k.gate, gate_number(k.gate)),
             "turned off: what was there is written");
    kept_tell(&k, 2);
    ok(gate_is_open(k.gate, gate_number(k.gate)));
    is_number(event_spool_open(&k.spool, &k.settings), 0, "and on again");
    event_spool_on_more(k.spool, kept_on_more, &k);
    kept_tell(&k, 2);
    kept_turn(&k);
    kept_turn(&k);
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 1, 1, &repeated), 3, "none is missing");
    kept_leave(&k, false);
}

/* --- Disks ------------------------------------------------------------------------ */

TEST(stalled)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    sim_disk_set_syncing(DISK_SYNC_AIO, 60000);
    kept_tell(&k, 1);
    int64_t before = loop_monotonic_ms(k.loop);
    kept_turn(&k);
    sim_loop_advance(k.loop, EVENT_GATE_MS - 1);
    kept_tell(&k, 2);
    ok_named(!gate_is_open(k.gate, gate_number(k.gate)), "mail waits");
    sim_loop_advance(k.loop, 2);
    ok_named(gate_is_open(k.gate, gate_number(k.gate)), "for a second");
    ok(loop_monotonic_ms(k.loop) - before < EVENT_GATE_MS + 10);
    is_number(event_spool_figures(k.spool).lost, 2, "events_lost counts");
    ok_named(event_spool_figures(k.spool).failing && kept_has_said(&k, "error: the disk is too slow"),
             "a line says so");
    kept_tell(&k, 3);
    ok_named(gate_is_open(k.gate, gate_number(k.gate)), "later mail does not wait");
    sim_loop_advance(k.loop, 60000);
    sim_disk_set_syncing(DISK_SYNC_AIO, 0);
    sim_loop_advance(k.loop, 60000);
    ok_named(!event_spool_figures(k.spool).failing && kept_has_said(&k, "takes events again"),
             "the disk is back");
    kept_tell(&k, 4);
    ok_named(!gate_is_open(k.gate, gate_number(k.gate)), "and mail waits for it");
    kept_turn(&k);
    kept_turn(&k);
    ok(gate_is_open(k.gate, gate_number(k.gate)));
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 1, 100, &repeated), 5, "nothing was lost after all");
    kept_leave(&k, false);
}

/* Every call of the disk fails once: old or new state, mail goes on, and what was told is
 * there in the end. */
TEST(failures)
{
    static const int errors[] = {ENOSPC, EIO};
    unsigned missing = 0, waiting = 0, calls = 0;
    for (size_t e = 0; e < 2; e++)
        for (uint64_t at = 1;; at++) {
            struct kept k;
            sim_disk_reset();
            kept_begin(&k, 1 << 26);
            sim_disk_count_anew();
            sim_disk_fail_at(at, errors[e]);
            unsigned next = 1, repeated = 0;
            for (unsigned n = 1; n <= 6; n++) {
                kept_tell(&k, n);
                kept_turn(&k);
                sim_loop_advance(k.loop, 2 * EVENT_GATE_MS);
                waiting += !gate_is_open(k.gate, gate_number(k.gate));
                if (n % 2 == 0)
                    next = kept_take_all(&k, next, 2, &repeated);
                sim_loop_advance(k.loop, 10000);
            }
            next = kept_take_all(&k, next, 2, &repeated);
            missing += next != 7;
            bool failed = sim_disk_has_failed();
            kept_leave(&k, true);
            kept_begin(&k, 1 << 26);
            next = kept_take_all(&k, next, 2, &repeated);
            missing += next != 7;
            kept_leave(&k, false);
            calls++;
            if (!failed)
                break;
        }
    is_number(missing, 0, "no event is missing, whatever call fails");
    is_number(waiting, 0, "and mail never waits longer");
    ok_named(calls > 60, "many calls were tried");
}

TEST(full)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    kept_tell(&k, 1);
    sim_disk_fail_at(sim_disk_calls() + 2, ENOSPC);
    kept_turn(&k);
    ok_named(gate_is_open(k.gate, gate_number(k.gate)), "a full disk does not stop mail");
    ok(kept_has_said(&k, "error: cannot write events (No space left on device); mail is not affected"));
    is_number(event_spool_figures(k.spool).lost, 1, "counted");
    sim_loop_advance(k.loop, 1500);
    sim_loop_advance(k.loop, 1500);
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 1, 10, &repeated), 2, "later it is written");
    kept_leave(&k, false);
}

/* Killed at each call, and the power cut: what the gate has let pass is there. */
TEST(crashes)
{
    unsigned missing = 0, early = 0, points = 0;
    for (int power = 0; power < 2; power++)
        for (uint64_t at = 1;; at++) {
            struct kept k;
            unsigned repeated = 0, next = 1, passed = 0;
            sim_disk_reset();
            kept_begin(&k, 1 << 26);
            sim_disk_count_anew();
            sim_disk_die_at(at);
            for (unsigned n = 1; n <= 8 && !sim_disk_is_dead(); n++) {
                kept_tell(&k, n);
                kept_turn(&k);
                kept_turn(&k);
                if (!sim_disk_is_dead() && gate_is_open(k.gate, gate_number(k.gate)))
                    passed = n;
                if (n % 3 == 0)
                    next = kept_take_all(&k, next, 2, &repeated);
            }
            bool died = sim_disk_is_dead();
            sim_disk_die_at(1);
            event_spool_close(&k.spool);
            disk_close(&k.disk);
            event_hub_free(&k.hub);
            log_free(&k.log);
            buffer_free(&k.said);
            loop_free(&k.loop);
            if (power)
                sim_disk_power_cut();
            else
                sim_disk_restart();
            kept_begin(&k, 1 << 26);
            unsigned from = next;
            next = kept_take_all(&k, next, 2, &repeated);
            missing += next <= passed;
            early += from > next;
            kept_leave(&k, false);
            points++;
            if (!died)
                break;
        }
    is_number(missing, 0, "what has passed the gate is never missing");
    is_number(early, 0, "nothing goes back");
    ok_named(points > 60, "many points were tried");
}

/* --- Files and batches ------------------------------------------------------------- */

TEST(files)
{
    struct kept k;
    unsigned repeated = 0;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    for (unsigned n = 1; n <= 20000; n++) {
        kept_tell(&k, n);
        if (n % 1000 == 0) {
            kept_turn(&k);
            kept_turn(&k);
        }
    }
    sim_loop_advance(k.loop, 100);
    size_t files = sim_disk_count("/spool/events");
    ok_named(files >= 4 && files <= 8, "some files");
    struct text first = sim_disk_content("/spool/events/00000001");
    ok_named(first.length > 0 && first.length <= EVENT_FILE_BYTES, "of a mebibyte");
    is_number(kept_take_all(&k, 1, 100, &repeated), 20001, "all of them, in order");
    is_number(repeated, 0, "each once");
    is_number(sim_disk_count("/spool/events"), 2, "taken files go; `done` is left");
    kept_leave(&k, false);
}

/* The batch under way is the same after a restart, although more events have come. */
TEST(same_batch)
{
    struct kept k;
    struct event_batch first = {0}, again = {0};
    buffer_init(&first.lines, EVENT_BATCH_BYTES);
    buffer_init(&again.lines, EVENT_BATCH_BYTES);
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    for (unsigned n = 1; n <= 3; n++)
        kept_tell(&k, n);
    kept_turn(&k);
    kept_turn(&k);
    is_number(event_spool_offer(k.spool, 10), EVENT_OFFER_FEW, "fewer than a batch");
    is_number(event_spool_offer(k.spool, 3), EVENT_OFFER_WHOLE, "a whole one");
    ok_named(!event_spool_batch(k.spool, 10, &first), "its extent is noted first");
    is_number(event_spool_offer(k.spool, 10), EVENT_OFFER_BUSY, "which takes a sync");
    kept_turn(&k);
    kept_turn(&k);
    ok(event_spool_batch(k.spool, 10, &first));
    is_number(first.count, 3, "three events");
    kept_tell(&k, 4);
    kept_turn(&k);
    kept_turn(&k);
    kept_leave(&k, true);
    kept_begin(&k, 1 << 26);
    is_number(event_spool_offer(k.spool, 10), EVENT_OFFER_WHOLE, "it is under way");
    ok(event_spool_batch(k.spool, 10, &again));
    ok_named(text_equal(buffer_text(&first.lines), buffer_text(&again.lines)) &&
                 strcmp(first.id, again.id) == 0 && first.time_ms == again.time_ms,
             "the same batch");
    event_spool_taken(k.spool);
    unsigned repeated = 0;
    is_number(kept_take_all(&k, 4, 10, &repeated), 5, "then the rest");
    buffer_free(&first.lines);
    buffer_free(&again.lines);
    kept_leave(&k, false);
}

TEST(limit)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 2 * EVENT_FILE_BYTES);
    for (unsigned n = 1; n <= 40000; n++) {
        kept_tell(&k, n);
        if (n % 500 == 0) {
            kept_turn(&k);
            kept_turn(&k);
        }
    }
    sim_loop_advance(k.loop, 100);
    struct event_spool_figures f = event_spool_figures(k.spool);
    ok_named(f.lost > 20000 && f.lost < 40000, "the oldest are lost");
    ok_named(f.pending_bytes <= 3 * EVENT_FILE_BYTES, "the limit holds");
    ok(kept_has_said(&k, "more events wait than events_max"));
    unsigned repeated = 0;
    is_number(kept_take_all(&k, (unsigned)f.lost + 1, 100, &repeated), 40001,
              "exactly as many as were counted");
    kept_leave(&k, false);
}

/* Torn, damaged or foreign files: what can be read is offered. */
static void
put(struct kept *k, const char *path, struct text content)
{
    (void)disk_unlink(k->disk, path);
    int file = disk_create(k->disk, path, 0600);
    if (file < 0 || disk_write(k->disk, file, content) < 0)
        abort();
    disk_close_file(k->disk, file);
}

TEST(damage)
{
    static const char *const dones[] = {"", "x", "petrel events 1\n", "petrel events 1\n1 2\n",
                                        "petrel events 1\n1 5 4\n", "petrel events 1\n1 0 0\nx",
                                        "petrel events 1\n1 99999999 99999999\n",
                                        "petrel events 1\n-1 0 0\n"};
    struct kept k;
    for (size_t i = 0; i < sizeof(dones) / sizeof(*dones); i++) {
        unsigned repeated = 0;
        sim_disk_reset();
        kept_begin(&k, 1 << 26);
        kept_tell(&k, 1);
        kept_leave(&k, false);
        kept_begin(&k, 1 << 26);
        put(&k, "events/done", text_from(dones[i]));
        put(&k, "events/00000000", TEXT("foreign"));
        put(&k, "events/README", TEXT("foreign"));
        static char torn[300000];
        memcpy(torn, "{\"id\":\"torn", 11);
        put(&k, "events/00000002", text_of(torn, sizeof(torn)));
        put(&k, "events/00000003", TEXT("\n\nno JSON\n{\"id\":\"x\"}\n"));
        kept_leave(&k, false);
        kept_begin(&k, 1 << 26);
        kept_tell(&k, 2);
        kept_turn(&k);
        kept_turn(&k);
        unsigned from = i == 6 ? 2 : 1;
        is_number(kept_take_all(&k, from, 7, &repeated), 3, dones[i]);
        ok(sim_disk_content("/spool/events/README").at != NULL);
        kept_leave(&k, false);
    }
}

/* A power cut or a full disk has cut the file, or `done`, off at any byte. */
TEST(torn)
{
    struct kept k;
    char lines[4096], done_text[100];
    unsigned repeated = 0, wrong = 0;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    for (unsigned n = 1; n <= 3; n++)
        kept_tell(&k, n);
    kept_leave(&k, false);
    struct text whole = kept_lines("/spool/events/00000001");
    char ahead[sizeof(lines)] = {0}; /* zeros follow */
    memcpy(lines, whole.at, whole.length);
    whole.at = lines;
    for (size_t length = 0; length <= 2 * whole.length; length++) {
        unsigned complete = 0;
        size_t cut = length % (whole.length + 1);
        for (size_t i = 0; i < cut; i++)
            complete += lines[i] == '\n';
        memset(ahead, 0, sizeof(ahead));
        memcpy(ahead, lines, cut);
        sim_disk_reset();
        kept_begin(&k, 1 << 26);
        put(&k, "events/00000001", text_of(ahead, length > whole.length ? sizeof(ahead) : cut));
        kept_leave(&k, true);
        kept_begin(&k, 1 << 26);
        wrong += kept_take_all(&k, 1, 2, &repeated) != complete + 1;
        kept_tell(&k, complete + 1);
        kept_turn(&k);
        kept_turn(&k);
        wrong += kept_take_all(&k, complete + 1, 2, &repeated) != complete + 2;
        kept_leave(&k, false);
    }
    is_number(wrong, 0, "whole lines come, half a line does not, and later ones do");
    is_number(repeated, 0, "none twice");
    snprintf(done_text, sizeof(done_text), "petrel events 1\n00000001 %zu %zu\n",
             whole.length / 3, whole.length / 3 * 2);
    for (size_t length = 0; length <= strlen(done_text); length++) {
        sim_disk_reset();
        kept_begin(&k, 1 << 26);
        put(&k, "events/00000001", whole);
        put(&k, "events/done", text_of(done_text, length));
        kept_leave(&k, true);
        kept_begin(&k, 1 << 26);
        wrong += kept_take_all(&k, length < strlen(done_text) ? 1 : 2, 2, &repeated) != 4;
        kept_leave(&k, false);
    }
    is_number(wrong, 0, "half a `done` counts as none");
}

/* A `done` of another spool, or a damaged one. */
TEST(cursor_ahead)
{
    static const char *const numbers[] = {"00000007", "99999998", "99999999", "4294967295",
                                          "4294967296"};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        struct kept k;
        char text[100];
        unsigned repeated = 0;
        sim_disk_reset();
        kept_begin(&k, 1 << 26);
        snprintf(text, sizeof(text), "petrel events 1\n%s 10 20\n", numbers[i]);
        put(&k, "events/done", text_from(text));
        kept_leave(&k, true);
        kept_begin(&k, 1 << 26);
        for (unsigned n = 1; n <= 5; n++) {
            kept_tell(&k, n);
            kept_turn(&k);
            kept_turn(&k);
        }
        is_number(kept_take_all(&k, 1, 2, &repeated), 6, numbers[i]);
        kept_leave(&k, true);
        kept_begin(&k, 1 << 26);
        kept_tell(&k, 6);
        kept_turn(&k);
        kept_turn(&k);
        is_number(kept_take_all(&k, 6, 2, &repeated), 7, "after a restart, too");
        is_number(event_spool_figures(k.spool).lost, 0, "nothing is lost");
        kept_leave(&k, false);
    }
}

/* A directory, or a file of another user's, has the name of the next file. */
TEST(name_taken)
{
    struct kept k;
    unsigned repeated = 0;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    if (disk_make_directory(k.disk, "events/00000001", 0700) < 0 ||
        disk_make_directory(k.disk, "events/00000002", 0700) < 0)
        abort();
    kept_tell(&k, 1);
    kept_turn(&k);
    sim_loop_advance(k.loop, 100);
    ok_named(gate_is_open(k.gate, gate_number(k.gate)) && event_spool_figures(k.spool).lost == 0,
             "another name is taken");
    is_number(kept_take_all(&k, 1, 2, &repeated), 2, "and it comes");
    kept_leave(&k, false);
}

/* `done` cannot be written: what is taken is removed all the same, or a full disk stays full. */
TEST(done_fails)
{
    struct kept k;
    unsigned repeated = 0, next = 1, said = 0;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    if (disk_make_directory(k.disk, "events/done.new", 0700) < 0)
        abort();
    for (unsigned n = 1; n <= 16000; n++) {
        kept_tell(&k, n);
        if (n % 1000 == 0) {
            kept_turn(&k);
            kept_turn(&k);
            next = kept_take_all(&k, next, 100, &repeated);
        }
    }
    is_number(next, 16001, "all are taken");
    is_number(sim_disk_count("/spool/events"), 1, "taken files go");
    struct text rest = buffer_text(&k.said), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        said += memmem(line.at, line.length, "cannot write events/done", 24) != NULL;
    ok_named(said >= 1 && said <= 2, "the log says so once a minute");
    kept_leave(&k, false);
}

/* Instances of one spool: each has files, an order and a `done` of its own. */
TEST(slices)
{
    struct kept k;
    struct event_spool *other;
    struct event_hub *hub;
    struct event_spool_settings settings;
    unsigned repeated = 0;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    event_spool_close(&k.spool);
    k.settings.directory = "events/0000-0511";
    is_number(event_spool_open(&k.spool, &k.settings), 0, "the first");
    event_spool_on_more(k.spool, kept_on_more, &k);
    hub = event_hub_new(k.log);
    settings = k.settings;
    settings.hub = hub;
    settings.directory = "events/0512-1023";
    is_number(event_spool_open(&other, &settings), 0, "the second");
    struct kept l = k;
    l.spool = other;
    l.hub = hub;
    l.gate = event_hub_gate(hub);
    for (unsigned n = 1; n <= 6; n++) {
        kept_tell(&k, n);
        if (n % 2 == 0)
            kept_tell(&l, n / 2);
        kept_turn(&k);
        gate_write(l.gate);
        kept_turn(&k);
    }
    sim_loop_advance(k.loop, 100);
    is_number(sim_disk_count("/spool/events/0000-0511"), 1, "a file of its own");
    is_number(sim_disk_count("/spool/events/0512-1023"), 1, "each");
    is_number(kept_take_all(&k, 1, 2, &repeated), 7, "the events of one");
    is_number(kept_take_all(&l, 1, 2, &repeated), 4, "and of the other");
    is_number(repeated, 0, "each once");
    event_spool_close(&other);
    event_hub_free(&hub);
    kept_leave(&k, false);
}

/* A million recipients, while the receiver takes what it can: nothing grows. */
TEST(million)
{
    struct kept k;
    unsigned repeated = 0, next = 1, n = 0;
    uint64_t most = 0;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    while (n < 1000000) {
        for (int i = 0; i < 20000; i++)
            kept_tell(&k, ++n);
        for (int i = 0; i < 8; i++)
            kept_turn(&k);
        next = kept_take_all(&k, next, 1000, &repeated);
        buffer_clear(&k.said);
        uint64_t pending = event_spool_figures(k.spool).pending_bytes;
        most = pending > most ? pending : most;
        if (sim_disk_count("/spool/events") > 10)
            n = 1000001;
    }
    is_number(next, 1000001, "each, in order");
    is_number(repeated, 0, "once");
    ok(most < 16u << 20 && event_spool_figures(k.spool).lost == 0);
    kept_leave(&k, false);
}

/* A recipient's first deferral, then one a day. */
TEST(deferrals)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    for (int hour = 0; hour < 50; hour++) {
        kept_tell_deferred(&k, 1, 1);
        kept_tell_deferred(&k, 1, 2);
        sim_loop_advance(k.loop, 3600000);
    }
    is_number((int64_t)gate_number(k.gate), 6, "three for each of two recipients");
    for (unsigned n = 0; n < 200; n++)
        kept_tell_deferred(&k, 2, n + 1);
    is_number((int64_t)gate_number(k.gate), 206, "recipients are told apart");
    kept_leave(&k, false);
}

/* The wall clock says when, never how long. */
TEST(clock)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    sim_disk_set_syncing(DISK_SYNC_AIO, 400);
    kept_tell(&k, 1);
    kept_turn(&k);
    sim_loop_step_wall(k.loop, -10 * 86400000LL);
    kept_tell_deferred(&k, 1, 1);
    sim_loop_advance(k.loop, 100);
    ok_named(!gate_is_open(k.gate, gate_number(k.gate)), "the clock went back");
    sim_loop_step_wall(k.loop, 20 * 86400000LL);
    sim_loop_advance(k.loop, 300);
    ok(event_spool_figures(k.spool).lost == 0);
    kept_tell_deferred(&k, 1, 1);
    sim_loop_advance(k.loop, 1000);
    is_number((int64_t)gate_number(k.gate), 2, "a day has not gone by");
    ok(gate_is_open(k.gate, 2) && event_spool_figures(k.spool).lost == 0);
    kept_leave(&k, false);
}

/* Nobody takes them for long: memory has a limit. */
TEST(memory)
{
    struct kept k;
    sim_disk_reset();
    kept_begin(&k, 1 << 26);
    sim_disk_set_syncing(DISK_SYNC_AIO, 600000);
    kept_tell(&k, 1);
    kept_turn(&k);
    for (unsigned n = 2; n <= 60000; n++)
        kept_tell(&k, n);
    sim_loop_advance(k.loop, 1100);
    ok_named(event_spool_figures(k.spool).pending_bytes <= EVENT_GATHERED_MAX, "8 MiB");
    is_number((int64_t)event_spool_figures(k.spool).lost, 60000, "all of them are counted once");
    kept_leave(&k, false);
}
