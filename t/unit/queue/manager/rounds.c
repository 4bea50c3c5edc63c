/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
/* Bounces at the end of the round in which a recipient fails, beside holds, releases and reloads while other
 * recipients stay open, and on a full disk. Restarts and power cuts: t/crash/, t/roof/. */
#include "sched/route/aliases.h"
#include "t/support/manager_disk.h"
#include "t/sim/sim_disk.h"
#include "t/support/aliases_whole.h"

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS };

/* How often that was tried since the last call. */
static unsigned
tries(struct world *w, const char *what)
{
    unsigned count = 0;
    struct text rest = buffer_text(&w->seen), word;
    while (text_word(&rest, " ", &word))
        count += text_equal(word, text_from(what));
    buffer_clear(&w->seen);
    return count;
}

/* How often the sender was written to since the last call. */
static unsigned
bounces(struct world *w)
{
    return tries(w, ">ann@a.test");
}

/* Failures of the message accepted last that are on the disk, and of these notified. */
static unsigned
failures(const struct world *w, unsigned *notified)
{
    struct envelope *e = queue_load(manager_queue(w->manager), w->id);
    unsigned count = e != NULL ? e->delivery.failure_count : 0;
    *notified = 0;
    for (unsigned i = 0; i < count; i++)
        *notified += e->delivery.failures[i].notified;
    envelope_free(&e);
    return count;
}

/* A full disk: the report comes with a later round, the retries go on. */
TEST(refused)
{
    unsigned notified;
    FIXTURE(world, w, world_begin_afresh, manager_world_end, "* smtp://sink.test", 0);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "bad@b.test later@b.test");
    world_stop(&w);
    w.stalled = false;
    w.settings.queue.bytes_reserve = INT64_MAX / 4;
    manager_world_start(&w);
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    ok(w.attempts > 3 && bounces(&w) == 0);
    ok(world_logged(&w, "cannot write the notification now: "));
    is_number(failures(&w, &notified), 1, "it is kept");
    is_number(notified, 0, "to be told");
    w.settings.queue.bytes_reserve = 0;
    world_restart(&w);
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    is_number(bounces(&w), 1, "told after all");
}

TEST(who_is_told)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end, "* smtp://sink.test", 1024 * 1024);
    w.notify = NOTIFY_NEVER;
    world_deliver(&w, "ann@a.test", "bad@b.test later@b.test");
    is_number(bounces(&w), 0, "NOTIFY=NEVER");
    w.notify = NOTIFY_SUCCESS;
    world_deliver(&w, "ann@a.test", "good@b.test bad@b.test later@b.test");
    is_number(bounces(&w), 1, "NOTIFY=SUCCESS: the success, in its round");
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    is_number(bounces(&w), 0, "once");
    w.notify = NOTIFY_DEFAULT;
    world_deliver(&w, "", "bad@b.test later@b.test");
    ok(world_logged(&w, "postmaster"));
}

/* Both notifications of a round: the bounce first, then the delay. */
TEST(with_delay)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
            "* smtp://sink.test?delay_warning=1s", 1024 * 1024);
    world_deliver(&w, "ann@a.test", "later@b.test later@c.test");
    buffer_clear(&w.seen);
    w.routes_text.routes =
        TEXT("c.test error:5.7.1 no\n* smtp://sink.test?delay_warning=1s");
    world_stop(&w);
    route_free(&w.routes);
    w.routes = world_routes(&w);
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(bounces(&w), 2, "a bounce and a delay warning");
    ok(world_logged(&w, "sender notified of the delay: "));
    ok(world_place(&w) == SCHED_DEFERRED);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(bounces(&w), 0, "and no more");
}

/* Brings the report of what a route refused, before the rest is held, under way. */
static void
begin_report_before_hold(struct world *w)
{
    world_begin_afresh(w, "keep.test hold\nbad.test error:5.7.1 no\n* smtp://sink.test",
          1024 * 1024);
    world_send(w, "ann@a.test", "x@bad.test good@keep.test");
    struct manager_notifications n = {0};
    for (unsigned i = 0; i < 10000 && n.begun == n.ended; i++) {
        loop_turn(w->loop, 0);
        n = manager_notifications(w->manager);
    }
    ok_named(n.begun > n.ended, "the report is being committed");
}

/* Commands of the operator during the report that comes before a hold. */
TEST(operator_before_hold)
{
    struct world w;
    begin_report_before_hold(&w);
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_LATER);
    world_turns(&w);
    is_number(bounces(&w), 1, "reported; then removed");
    ok(world_place(&w) == SCHED_UNKNOWN && world_disk_files(&w, "info") == 0);
    manager_world_end(&w);

    begin_report_before_hold(&w);
    ok(world_operate(&w, MANAGER_BOUNCE) == MANAGER_LATER);
    world_turns(&w);
    is_number(bounces(&w), 2, "reported; then the rest is returned");
    ok(world_place(&w) == SCHED_UNKNOWN && world_disk_files(&w, "info") == 0);
    manager_world_end(&w);

    begin_report_before_hold(&w);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
    world_turns(&w);
    is_number(bounces(&w), 1, "reported; then held by the operator");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>good@keep.test ", "and released");
    manager_world_end(&w);

    begin_report_before_hold(&w);
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>good@keep.test >ann@a.test ",
              "a release during the report is past the route");
    ok(world_place(&w) == SCHED_UNKNOWN && world_disk_files(&w, "info") == 0);
    manager_world_end(&w);
}

/* A full disk: the rest is held only when what failed has been reported. */
TEST(refused_before_hold)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
            "bad.test error:5.7.1 no\nkeep.test hold\n* smtp://sink.test", 0);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "x@bad.test y@keep.test good@b.test");
    world_stop(&w);
    w.stalled = false;
    w.settings.queue.bytes_reserve = INT64_MAX / 4;
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    ok(world_logged(&w, "cannot write the notification now: "));
    is_number(world_disk_files(&w, "hold"), 0, "not held while the report is refused");
    is_number(bounces(&w), 0, "and not reported");
    w.settings.queue.bytes_reserve = 0;
    world_restart(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(bounces(&w), 1, "with space it is reported");
    is_number(world_disk_files(&w, "hold"), 1, "and then held");
}

/* Held and released while it is delivered: the route does not hold the rest again, also
 * when the next attempt begins before the release is written. */
static void
test_release_beside_hold(int64_t journal_size)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
            "keep.test hold\n* smtp://sink.test", journal_size);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "later@b.test good@keep.test");
    ok(world_operate(&w, MANAGER_HOLD) == MANAGER_LATER);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_unstall(&w);
    world_turns(&w);
    w.all_good = true;
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    is_number(world_disk_files(&w, "hold"), 0, "released");
    ok_named(world_place(&w) == SCHED_UNKNOWN && world_disk_files(&w, "info") == 0,
             "and delivered past the route");
}

/* Recipients that a route holds beside others that are deferred: released alone, once;
 * the others go on, also over a power cut. */
static void
test_release_held_recipients(int64_t journal_size)
{
    static const char kept[] = "ann@a.test>good@keep.test";
    struct world w;
    world_begin_afresh(&w, "keep.test hold\n* smtp://sink.test", journal_size);
    world_deliver(&w, "ann@a.test", "later@b.test good@keep.test");
    ok(world_place(&w) == SCHED_DEFERRED && world_disk_files(&w, "hold") == 0);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(tries(&w, kept), 0, "held beside one that is deferred");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    is_number(tries(&w, kept), 1, "released: it leaves");
    ok_named(world_place(&w) == SCHED_DEFERRED, "the other is still deferred");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_ALREADY);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(tries(&w, kept), 0, "once");
    world_stop(&w);
    sim_disk_power_cut();
    manager_world_start(&w);
    w.all_good = true;
    sim_loop_advance(w.loop, 3 * HOUR_MS);
    is_number(tries(&w, kept), 0, "and not again");
    ok(world_place(&w) == SCHED_UNKNOWN && world_disk_files(&w, "info") == 0);
    manager_world_end(&w);

    world_begin_afresh(&w, "* smtp://sink.test", journal_size);
    world_deliver(&w, "ann@a.test", "later@b.test");
    ok_named(world_operate(&w, MANAGER_RELEASE) == MANAGER_ALREADY,
             "no route holds any of it");
    manager_world_end(&w);
}

/* The same during an attempt, and before the report of what failed in it. */
static void
test_release_during_attempt(void)
{
    static const char kept[] = "ann@a.test>good@keep.test";
    struct world w;
    world_begin_afresh(&w, "keep.test hold\n* smtp://sink.test", 1024 * 1024);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "later@b.test bad@b.test good@keep.test");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_ALREADY);
    world_unstall(&w);
    world_turns(&w);
    is_number(tries(&w, kept), 1, "released at its end");
    ok(world_place(&w) == SCHED_DEFERRED && world_disk_files(&w, "hold") == 0);
    manager_world_end(&w);

    begin_report_before_hold(&w);
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>good@keep.test >ann@a.test ", "or of the report");
    ok(world_place(&w) == SCHED_UNKNOWN && world_disk_files(&w, "info") == 0);
    manager_world_end(&w);
}

static struct aliases *
owned_by(const struct world *w, const char *file)
{
    struct aliases_file one = {"aliases", text_from(file)};
    struct buffer errors;
    buffer_init(&errors, 1000);
    struct aliases *made = aliases_whole(
        &(struct aliases_settings){.files = &one, .file_count = 1, .routes = w->routes},
        &errors);
    if (made == NULL)
        abort();
    buffer_free(&errors);
    return made;
}

static void
plug_aliases(struct world *w)
{
    manager_set_aliases(w->manager, w->channel, NULL);
}

/* Its failures are reported to its sender, and to the owner of the list. */
static void
send_to_list(struct world *w)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("ann@a.test"));
    if (!envelope_add(e, TEXT("bad@b.test"), NOTIFY_DEFAULT, TEXT("")) ||
        !envelope_add(e, TEXT("list@h.test"), NOTIFY_DEFAULT, TEXT("")))
        abort();
    manager_expand_own(w->manager, e);
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    (void)!queue_write(draft, TEXT("Subject: x\r\n\r\nbody\r\n"));
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
}

/* The second notification of a round is composed turns after the first: with the
 * aliases, the routes and the hostname of then, as the others are freed. */
static void
test_reload_within_round(void)
{
    struct world w;
    sim_disk_reset();
    manager_world_begin(&w, "* smtp://sink.test");
    w.settings.queue.journal_size = 0;
    struct aliases *old = owned_by(&w, "list: bad@c.test\nowner-list: boss@a.test\n");
    w.channel = old;
    w.plug = plug_aliases;
    world_restart(&w);
    struct manager_settings settings = w.settings;
    char *hostname = memory_string("old.test");
    settings.hostname = hostname;
    manager_reload(w.manager, &settings, w.routes);
    send_to_list(&w);
    struct manager_notifications n = {0};
    for (unsigned i = 0; i < 10000 && n.begun == n.ended; i++) {
        loop_turn(w.loop, 0);
        n = manager_notifications(w.manager);
    }
    ok_named(n.begun > n.ended, "the first is being committed");

    struct route_table *routes = w.routes;
    w.routes = world_routes(&w);
    w.channel = owned_by(&w, "list: bad@c.test\nowner-list: chief@a.test\n");
    manager_reload(w.manager, &w.settings, w.routes);
    manager_set_aliases(w.manager, w.channel, NULL);
    free(hostname);
    aliases_free(&old);
    route_free(&routes);
    world_turns(&w);
    is_number(bounces(&w), 1, "the sender is notified");

    ok(world_logged(&w, "<chief@a.test>") && !world_logged(&w, "<boss@a.test>"));
    is_number(world_place(&w) + world_disk_files(&w, "info"), SCHED_UNKNOWN, "all is over");
    struct aliases *table = w.channel;
    manager_world_end(&w);
    aliases_free(&table);
}

int
main(void)
{
    tap_tests("");
    test_release_beside_hold(0);
    test_release_beside_hold(1024 * 1024);
    test_release_held_recipients(0);
    test_release_held_recipients(1024 * 1024);
    test_release_during_attempt();
    test_reload_within_round();
    sim_disk_reset();
    return done();
}
