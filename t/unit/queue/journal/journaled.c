/* Young mail: how it gets into the journal and out, large or small, told or failed; its
 * drafts, its content in memory, and the files that go after its end. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/journal/journaled.h"

#include "queue/content.h"
#include "queue/draft.h"
#include "queue/queue_operator.h"
#include "queue/recovery/removal.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum { LARGE = 20000, SEGMENT = 65536 };

static const char *const three[] = {"a@x", "b@x", "c@x", NULL};
static struct kit kit;

static unsigned asked;

static bool
count_route(void *context, const struct envelope *e, const struct recipient *r)
{
    (void)context;
    (void)e;
    (void)r;
    asked++;
    return false;
}

static void
start_with(int64_t journal_size)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .is_local = count_route,
                                      .journal_size = journal_size,
                                      .journal_segment = SEGMENT,
                                      .journal_message_max = 8192};
    if (kit_open_with(&kit, &settings) != 0)
        ok_named(false, kit.error);
    sim_loop_advance(kit.loop, 10);
}

static void
start(void)
{
    start_with(4 * SEGMENT);
}

static void
stop(void)
{
    kit_close(&kit);
}

/* No call works any more: the stop frees the memory alone. */
static void
lose_power(void)
{
    sim_disk_die_at(1);
    stop();
    sim_disk_power_cut();
}

/* SIGKILL, and a new start. */
static void
again(void)
{
    sim_disk_restart();
    stop();
    start();
}

static struct text
content_of(size_t size)
{
    static char bytes[LARGE];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)('a' + i * 7 % 26);
    return text_of(bytes, size);
}

static struct envelope *
take(size_t size)
{
    return queue_kit_accept(&kit, kit_envelope("s@x", three), content_of(size));
}

static size_t
files(void)
{
    return sim_disk_count("/spool") - sim_disk_count("/spool/journal") -
           sim_disk_count("/spool/lock");
}

static void
test_small(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(5000);
    struct id id = e->id;
    is_number(files(), 0, "a small message is no file");
    is_number(queue_health(kit.queue).journaled, 1, "but young");
    int content = queue_content_open(kit.queue, e);
    struct text bytes = queue_content_bytes(kit.queue, content);
    is_text(bytes, content_of(5000), "its content is in memory");
    int second = queue_content_open(kit.queue, e);
    ok_named(second != content && queue_content_bytes(kit.queue, second).at == bytes.at,
             "once, however often it is open");
    queue_content_close(kit.queue, second);
    queue_retire(kit.queue, &e);
    is_text(queue_content_bytes(kit.queue, content), content_of(5000),
            "who reads goes on reading when it has ended");
    queue_content_close(kit.queue, content);
    is_number(queue_health(kit.queue).journaled, 0, "it is young no more");
    sim_loop_advance(kit.loop, 200);
    again();
    is_number(kit.found_count, 0, "and does not come back");
    ok(queue_load(kit.queue, id) == NULL);
    stop();
}

/* One call fails on the way to S5, then the power does: what was done stays done.
 * False: there were fewer calls. */
static bool
fail_to_move(uint64_t call, unsigned *stayed)
{
    struct failure failure = {.recipient = 1,
                              .expired = false,
                              .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE,
                                                      550, "5.1.1", "unknown")};
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    queue_settle(kit.queue, e, 0, NULL);
    queue_settle(kit.queue, e, 1, &failure);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 3600 * 1000, 1);
    sim_disk_count_anew();
    sim_disk_fail_at(call, ENOSPC);
    sim_loop_advance(kit.loop, 300);
    bool failed = sim_disk_has_failed();
    *stayed += sim_disk_count("/spool/info") == 0;
    lose_power();
    start();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 2 && e->recipients[0].done &&
                 e->delivery.failure_count == 1,
             "whatever fails, the marks are kept, with what is to be told");
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 3600 * 1000, 1);
    sim_loop_advance(kit.loop, 300);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->delivery.done == 2 && e->delivery.failure_count == 1,
             "with space it moves, and they with it");
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 300);
    is_number(files(), 0, "and nothing is left");
    stop();
    return failed;
}

static void
test_no_space_to_move(void)
{
    unsigned stayed = 0;
    uint64_t call = 1;
    while (fail_to_move(call, &stayed))
        call++;
    ok(call > 10 && stayed > 5);
}

static void
test_no_space_for_a_text(void)
{
    struct failure failure = {.recipient = 1,
                              .expired = false,
                              .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE,
                                                      550, "5.1.1", "unknown")};
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 3600 * 1000, 1);
    sim_loop_advance(kit.loop, 200);
    e = queue_load(kit.queue, id);
    ok(e != NULL && e->storage.preprocessed && e->delivery.done == 0);
    queue_settle(kit.queue, e, 0, NULL);
    queue_settle(kit.queue, e, 1, &failure);
    sim_disk_count_anew();
    sim_disk_fail_at(2, ENOSPC); /* the first looks for an older text */
    sim_loop_advance(kit.loop, 200);
    ok(sim_disk_has_failed());
    is_number(sim_disk_count("/spool/bounce"), 0, "there is no space for a text");
    lose_power();
    envelope_free(&e);
    start();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 1 && e->recipients[0].done,
             "who has got it is marked, who failed is tried again");
    queue_retire(kit.queue, &e);
    stop();
}

/* The route of a recipient may be the crash that the message is quarantined for. */
static void
test_quarantine_asks_no_route(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    queue_settle(kit.queue, e, 0, NULL);
    sim_loop_advance(kit.loop, 300);
    lose_power();
    envelope_free(&e);
    start();
    asked = 0;
    queue_quarantine(kit.queue, id, "for a test");
    sim_loop_advance(kit.loop, 300);
    is_number(asked, 0, "quarantine asks no route");
    is_number(queue_release(kit.queue, id), 0, "and is released");
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 1, "with its mark");
    if (e != NULL)
        queue_retire(kit.queue, &e);
    stop();
}

/* Killed while it moved: half of it is in the spool, or in corrupt/, and the journal
 * has it all. Quarantined and released it is whole. */
static void
test_quarantine_half_moved(const char *directory, const char *suffix)
{
    struct disk *disk;
    char path[80], name[ID_LENGTH + 1];
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    id_format(id, name);
    snprintf(path, sizeof(path), "%s/%s%s", directory, name, suffix);
    if (disk_open(&disk, "/spool", false) != 0)
        abort();
    int file = disk_create(disk, path, 0600);
    if (file < 0 || disk_write(disk, file, TEXT("half")) != 0)
        abort();
    disk_close_file(disk, file);
    disk_close(&disk);
    envelope_free(&e);
    queue_quarantine(kit.queue, id, "for a test");
    sim_loop_advance(kit.loop, 300);
    sim_disk_power_cut();
    stop();
    start();
    is_number((int64_t)kit.found_count, 0, "quarantined");
    is_number(queue_release(kit.queue, id), 0, directory);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->content_size == 3000 &&
                 queue_content_open(kit.queue, e) >= 0,
             "released it is whole");
    if (e != NULL)
        queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 300);
    is_number(files(), 0, "and nothing is left");
    stop();
}

TEST(from_disk)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    envelope_free(&e);
    again();
    is_number(kit.found_count, 1, "a start finds it");
    e = queue_load(kit.queue, id);
    ok(e != NULL && e->count == 3 && !e->storage.preprocessed &&
       text_equal(e->prefix, TEXT("Received: by test\r\n")));
    ok_named(kit_content_is(&kit, e, content_of(3000)), "whole, from the journal");
    queue_retire(kit.queue, &e);
    stop();
}

TEST(from_memory)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(3000);
    struct id id = e->id;
    envelope_free(&e);
    sim_disk_count_anew();
    for (int i = 0; i < 2; i++) {
        e = queue_load(kit.queue, id);
        ok(e != NULL && e->count == 3 && e->content_size == 3000 && !e->delivery.held &&
           text_equal(e->prefix, TEXT("Received: by test\r\n")));
        ok(kit_content_is(&kit, e, content_of(3000)));
        envelope_free(&e);
    }
    is_number((int64_t)sim_disk_calls(), 0, "new mail is not read from the disk");
    stop();
}

/* 6 MB of it; 4 are kept in memory. */
TEST(from_both)
{
    struct id ids[800];
    size_t count = sizeof(ids) / sizeof(ids[0]), wrong = 0;
    struct envelope *e;
    sim_disk_reset();
    start_with(512 * SEGMENT);
    for (size_t i = 0; i < count; i++) {
        e = take(7500 + i % 100);
        ids[i] = e->id;
        envelope_free(&e);
    }
    sim_disk_count_anew();
    for (size_t i = 0; i < count; i++) {
        e = queue_load(kit.queue, ids[i]);
        wrong += e == NULL || e->count != 3 ||
                 !kit_content_is(&kit, e, content_of(7500 + i % 100));
        envelope_free(&e);
    }
    is_number((int64_t)wrong, 0, "all are whole");
    int64_t calls = (int64_t)sim_disk_calls();
    ok_named(calls > 0 && calls < (int64_t)count * 2, "from memory and from the disk");
    stop();
}

TEST(told)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(100);
    struct id id = e->id;
    struct failure failure = {.recipient = 2,
                              .expired = false,
                              .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE,
                                                      550, "5.1.1", "unknown")};
    queue_settle(kit.queue, e, 0, NULL);
    queue_settle(kit.queue, e, 2, &failure);
    sim_loop_advance(kit.loop, 99);
    is_number(queue_health(kit.queue).batches, 1, "marks wait for company");
    sim_loop_advance(kit.loop, 10);
    is_number(queue_health(kit.queue).batches, 2, "but not longer than 100 ms");
    is_number(files(), 0, "and need no file");
    envelope_free(&e);
    sim_disk_power_cut();
    stop();
    start();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.done == 2 && e->recipients[0].done &&
                 !e->recipients[1].done && e->recipients[2].done,
             "a power cut forgets none of them");
    ok_named(e->delivery.failure_count == 1 && e->delivery.failures[0].recipient == 2 &&
                 strcmp(e->delivery.failures[0].outcome.text, "unknown") == 0,
             "nor what a bounce must say");
    queue_defer(kit.queue, &e, 5000, 3);
    sim_loop_advance(kit.loop, 50);
    is_number(queue_health(kit.queue).journaled, 0, "what waits moves out");
    is_number(sim_disk_count("/spool/info") + sim_disk_count("/spool/mess") +
                  sim_disk_count("/spool/bounce"),
              3, "to its files");
    sim_disk_power_cut();
    stop();
    start();
    is_number(kit.found_count, 1, "where the next start finds it, once");
    ok(kit.found[0].due_ms == 5000 && kit.found[0].attempts == 3);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->delivery.done == 2 && e->delivery.failure_count == 1,
             "with all that was known");
    ok(kit_content_is(&kit, e, content_of(100)));
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 300);
    is_number(files(), 0, "its files go after its END");
    stop();
}

static void
on_report(void *context, struct envelope *e, const struct outcome *refusal)
{
    *(bool *)context = refusal == NULL;
    envelope_free(&e);
}

/* A notification of the message's failures; it is stored. */
static struct id
report(const struct envelope *reports, struct text content)
{
    struct outcome refusal;
    struct envelope *made = kit_envelope("", three);
    struct queue_draft *draft = queue_begin_own(kit.queue, (int64_t)content.length, &refusal);
    if (draft == NULL || !queue_write(draft, content))
        abort();
    queue_name(draft, made);
    struct id id = made->id;
    queue_reports(draft, reports);
    bool is_stored = false;
    queue_commit(&draft, &made, on_report, &is_stored);
    sim_loop_advance(kit.loop, 300);
    ok(is_stored);
    return id;
}

static void
fails(struct envelope *e, unsigned index, const char *text)
{
    struct failure failure = {.recipient = index,
                              .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE,
                                                      550, "5.1.1", "%s", text)};
    queue_settle(kit.queue, e, index, &failure);
}

static void
cut_power(void)
{
    sim_disk_power_cut();
    stop();
    start();
}

/* The record of a notification notes what it reports, so that a power cut right behind it
 * repeats nothing. */
static void
test_note(size_t size)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(100);
    struct id id = e->id, notice;
    fails(e, 2, "unknown");
    notice = report(e, content_of(size));
    envelope_free(&e);
    cut_power();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.failure_count == 1 &&
                 e->delivery.failures[0].notified && e->delivery.done == 1 &&
                 strcmp(e->delivery.failures[0].outcome.text, "unknown") == 0,
             "what was reported is known to be");
    struct envelope *n = queue_load(kit.queue, notice);
    ok_named(n != NULL && kit_content_is(&kit, n, content_of(size)),
             "the notification is whole");
    envelope_free(&n);
    fails(e, 0, "unknown");
    (void)report(e, content_of(size - 1)); /* another name */
    queue_defer(kit.queue, &e, 5000, 1);
    sim_loop_advance(kit.loop, 300);
    cut_power();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->delivery.failure_count == 2 &&
                 e->delivery.failures[0].notified && !e->delivery.failures[1].notified,
             "files have it, but for a report that is not yet noted");
    notice = report(e, content_of(size));
    envelope_free(&e);
    cut_power();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && !e->delivery.failures[1].notified,
             "a note is for journaled mail alone");
    queue_notified(kit.queue, e);
    sim_loop_advance(kit.loop, 300);
    queue_retire(kit.queue, &e);
    n = queue_load(kit.queue, notice);
    ok(n != NULL && kit_content_is(&kit, n, content_of(size)));
    queue_defer(kit.queue, &n, 5000, 1);
    sim_loop_advance(kit.loop, 300);
    n = queue_load(kit.queue, notice);
    ok_named(n != NULL && n->storage.preprocessed &&
                 kit_content_is(&kit, n, content_of(size)),
             "and becomes files as any mail");
    queue_retire(kit.queue, &n);
    ok(!kit_logged(&kit, "damaged") && sim_disk_count("/spool/corrupt") == 0);
    stop();
}

/* More failures than fit are noted afterwards alone. */
static void
test_long_note(void)
{
    sim_disk_reset();
    start();
    struct envelope *many = kit_envelope("s@x", three);
    char address[40], text[OUTCOME_TEXT_MAX] = "";
    memset(text, 'x', sizeof(text) - 1);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(address, sizeof(address), "%u@x", i);
        (void)!envelope_add(many, text_from(address), NOTIFY_DEFAULT, TEXT(""));
    }
    struct envelope *e = queue_kit_accept(&kit, many, content_of(100));
    struct id id = e->id;
    for (unsigned i = 0; i < 100; i++)
        fails(e, i, text);
    (void)report(e, content_of(100));
    is_number(queue_health(kit.queue).journaled, 2, "both are journaled");
    envelope_free(&e);
    cut_power();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && (e->delivery.failure_count == 0 ||
                           !e->delivery.failures[0].notified),
             "a long note is not in the record");
    envelope_free(&e);
    stop();
}

static void
test_large(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(LARGE);
    struct id id = e->id;
    is_number(sim_disk_count("/spool/mess"), 1, "a large content is a file at once");
    is_number(files(), 1, "its envelope is not");
    int content = queue_content_open(kit.queue, e);
    ok_named(queue_content_bytes(kit.queue, content).at == NULL, "not in memory");
    queue_content_close(kit.queue, content);
    envelope_free(&e);
    sim_disk_power_cut();
    stop();
    start();
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && kit_content_is(&kit, e, content_of(LARGE)),
             "durable with its answer");
    queue_retire(kit.queue, &e);
    is_number(sim_disk_count("/spool/mess"), 1, "the file waits for the END");
    sim_loop_advance(kit.loop, 300);
    is_number(files(), 0, "and goes");
    stop();

    sim_disk_reset();
    start();
    e = take(LARGE);
    id = e->id;
    envelope_free(&e);
    char path[100], name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(path, sizeof(path), "/spool/mess/%s", name);
    struct disk *disk;
    if (disk_open(&disk, "/spool", false) != 0 || disk_unlink(disk, path) != 0)
        abort();
    disk_close(&disk);
    again();
    is_number(kit.found_count, 0, "without its content it is no message");
    ok_named(kit_logged(&kit, "the content is missing") &&
                 sim_disk_count("/spool/corrupt") == 2,
             "but quarantined, with its envelope and a note");
    stop();
}

static void
test_refused(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(100);
    struct id id = e->id;
    uint64_t calls;
    sim_disk_count_anew();
    queue_retire(kit.queue, &e);
    e = take(200);
    envelope_free(&e);
    calls = sim_disk_calls();
    stop();
    for (uint64_t at = 1; at <= calls; at++) {
        sim_disk_reset();
        start();
        e = take(100);
        id = e->id;
        sim_disk_count_anew();
        sim_disk_fail_at(at, EIO);
        queue_retire(kit.queue, &e);
        e = take(200);
        ok_named((e != NULL) != (kit.refused && kit.refusal.code == 451),
                 "stored, or 451");
        bool stored = e != NULL;
        if (stored)
            envelope_free(&e);
        sim_loop_advance(kit.loop, 30000);
        again();
        ok_named(kit.found_count == stored && kit_entry(&kit, id) == NULL,
                 "what was refused does not come back, nor what has ended");
        stop();
    }
}

static void
test_held(void)
{
    sim_disk_reset();
    start();
    struct envelope *e = take(100);
    struct id id = e->id;
    is_number(queue_hold(kit.queue, e, "for a test", true), 0, "held while young");
    envelope_free(&e);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->delivery.held, "so it says at once");
    envelope_free(&e);
    again();
    is_number(kit.found_count, 0, "held mail is not reported");
    is_number(queue_health(kit.queue).journaled, 1, "though it is there");
    is_number(queue_release(kit.queue, id), 0, "released");
    again();
    is_number(kit.found_count, 1, "and reported");
    ok(queue_remove(kit.queue, id));
    sim_loop_advance(kit.loop, 300);
    is_number(files(), 0, "removed is removed");
    stop();
}

int
main(void)
{
    test_small();
    test_no_space_to_move();
    test_no_space_for_a_text();
    test_quarantine_asks_no_route();
    test_quarantine_half_moved("mess", "");
    test_quarantine_half_moved("corrupt", ".mess");
    test_quarantine_half_moved("corrupt", ".todo");
    test_quarantine_half_moved("info", "");
    tap_tests("");
    test_note(100);
    test_note(LARGE); /* in a file */
    test_long_note();
    test_large();
    test_refused();
    test_held();
    sim_disk_reset();
    return done();
}
