/* The queue manager with a real queue, virtual time and a channel that obeys: every way
 * a message can go. */
/* link: t/sim/loop.c */
#include "queue/queue_internal.h"
#include "t/support/manager_world.h"

TEST(delivery)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_send(&w, "ann@a.test", "good@b.test good2@c.test");
    is_number(w.attempts, 0, "nothing before it is durable");
    world_turns(&w);
    ok(w.accepted);
    world_saw(&w, "ann@a.test>good@b.test ann@a.test>good2@c.test ", "both are served");
    is_number(w.opened, 1, "by one session: one next hop");
    ok_named(world_is_empty(&w), "all files are gone");
    ok(manager_active(w.manager, w.id) == NULL && world_place(&w) == SCHED_UNKNOWN);
    char id[ID_LENGTH + 1], line[200];
    id_format(w.id, id);
    snprintf(line, sizeof(line),
             " smtp: %s: to=<good@b.test>, relay=none, delay=0, "
             "delays=0/0/0.01/0.02, dsn=2.0.0, status=sent (Ok)\n",
             id);
    if (!ok_named(world_logged(&w, line), "a line for each"))
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&w.lines)));
}

TEST(bounce)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "good@b.test bad@b.test bad2@b.test");
    world_saw(&w,
              "ann@a.test>good@b.test ann@a.test>bad@b.test ann@a.test>bad2@b.test "
              ">ann@a.test ",
              "the sender is told once");
    ok(world_is_empty(&w));
    ok(world_logged(&w, "to=<bad@b.test>") &&
       world_logged(&w, "status=bounced (no such "
                        "user)"));
    ok(world_logged(&w, ": sender notified: "));
    world_deliver(&w, "bad@a.test", "bad@b.test");
    world_saw(&w, "bad@a.test>bad@b.test >bad@a.test >postmaster@h.test ",
              "a bounce that bounces is told to postmaster");
    ok(world_logged(&w, "sender is null; postmaster notified: "));
    ok(world_is_empty(&w));
}

/* REQUIRETLS: what was accepted, and what came back for it. */
TEST(required_tls)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "clear.test smtp://x.test?tls=none, * smtp://sink.test");
    world_deliver(&w, "ann@a.test", "good@clear.test");
    is_number((long)manager_required(w.manager).accepted, 0, "other mail");
    w.tls = ENVELOPE_TLS_REQUIRED;
    world_deliver(&w, "ann@a.test", "good@clear.test good@b.test bad@b.test");
    is_number((long)manager_required(w.manager).accepted, 1, "its notification is not counted");
    is_number((long)manager_required(w.manager).returned, 1, "nor a refusal for another reason");
    ok(world_logged(&w, "to=<good@clear.test>") && world_logged(&w, "dsn=5.7.10, status=bounced (the sender requires TLS"));
    w.tls = ENVELOPE_TLS_WAIVED;
    world_deliver(&w, "ann@a.test", "good@clear.test");
    is_number((long)manager_required(w.manager).accepted, 1, "the contrary is not counted");
    ok(world_is_empty(&w));
}

TEST(double_bounce)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "h.test smtp://other.test, * smtp://sink.test");
    world_deliver(&w, "", "bad@b.test");
    world_saw(&w, ">bad@b.test >postmaster@h.test ", "postmaster, and no further");
    ok(world_logged(&w, "warning: notification to postmaster failed; discarded: no such user\n"));
    ok_named(!world_logged(&w, ": \n"), "no line says nothing");
    ok(world_is_empty(&w));
}

TEST(deferral)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test good@b.test");
    world_saw(&w, "ann@a.test>later@b.test ann@a.test>good@b.test ", "a round");
    ok(world_place(&w) == SCHED_DEFERRED);
    ok(manager_active(w.manager, w.id) == NULL);
    is_string(manager_reason(w.manager, w.id, 0), "come again", "the reason is known");
    is_number(world_files(&w, "info"), 1, "it is written down");
    is_number(world_files(&w, "todo"), 0, "and no longer new");
    ok(world_logged(&w, "status=deferred (come again)"));
    sim_loop_advance(w.loop, 200 * 1000);
    world_saw(&w, "", "it waits");
    sim_loop_advance(w.loop, 200 * 1000);
    world_saw(&w, "ann@a.test>later@b.test ", "five minutes, for who has not got it");
    is_number(sched_find(manager_sched(w.manager), w.id).attempts, 2, "rounds so far");
    w.all_good = true;
    sim_loop_advance(w.loop, 2000 * 1000);
    world_saw(&w, "ann@a.test>later@b.test ", "until it is delivered");
    ok(world_is_empty(&w));
    is_string(manager_reason(w.manager, w.id, 0), "", "nothing is left to say");
}

static void
count_deferrals(void *context, const struct event *event)
{
    unsigned *counts = context;
    counts[event->is_again]++;
}

/* The log gives only the first deferral of a message its line in any case. */
TEST(deferred_again)
{
    unsigned counts[2] = {0};
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    event_read(w.events, EVENT_BIT(EVENT_DEFERRED), count_deferrals, counts);
    world_deliver(&w, "ann@a.test", "later@b.test later@b.test");
    ok_named(counts[0] == 2 && counts[1] == 0, "the first deferral of each recipient");
    sim_loop_advance(w.loop, 400 * 1000);
    ok_named(counts[0] == 2 && counts[1] == 2, "the second");
}

/* One next hop with options of two routes, within a message: the last one counts. */
TEST(options_of_two_routes)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "one.test smtp://sink.test?recipients=1, two.test "
                            "smtp://sink.test?recipients=2, * smtp://sink.test");
    world_deliver(&w, "ann@a.test", "good@b.test later@one.test good@two.test");
    world_saw(&w,
              "ann@a.test>good@b.test ann@a.test>later@one.test "
              "ann@a.test>good@two.test ",
              "each is served");
    w.all_good = true;
    world_deliver(&w, "ann@a.test", "good@two.test good@one.test good@c.test");
    sim_loop_advance(w.loop, 3600 * 1000);
    is_number(w.attempts, 7, "and who was deferred, too");
    ok(world_is_empty(&w));
}

TEST(immediate)
{
    struct world w;
    manager_world_begin(&w, "drop.test discard\nno.test error:5.7.13 not, today\n"
                            "* smtp://sink.test");
    w.routes_text.local = TEXT("");
    world_deliver(&w, "ann@a.test", "x@drop.test");
    world_saw(&w, "", "no session for that");
    ok(world_logged(&w, "to=<x@drop.test>") &&
       world_logged(&w, "status=sent (discarded)"));
    ok(world_is_empty(&w));
    world_deliver(&w, "ann@a.test", "x@no.test y@drop.test good@b.test");
    ok(world_logged(&w, "dsn=5.7.13, status=bounced (not, today)"));
    world_saw(&w, "ann@a.test>good@b.test >ann@a.test ", "the others as usual");
    ok(world_is_empty(&w));
    manager_world_end(&w);

    manager_world_begin(&w, "* mx");
    world_deliver(&w, "ann@a.test", "x@h.test");
    ok(world_logged(&w, "dsn=5.1.1, status=bounced (unknown user"));
    world_saw(&w, ">ann@a.test ", "a local domain without mailboxes");
    ok(world_is_empty(&w));
    manager_world_end(&w);
}

TEST(hold)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "keep.test hold\ndrop.test discard\n* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "good@b.test x@keep.test y@drop.test");
    world_saw(&w, "ann@a.test>good@b.test ", "a route holds its own recipients alone");
    ok(world_logged(&w, "held by a route"));
    is_number(world_files(&w, "hold"), 1, "marked");
    is_number(world_files(&w, "mess"), 1, "kept");
    ok(world_place(&w) == SCHED_UNKNOWN && manager_active(w.manager, w.id) == NULL);
    ok_named(world_operate(&w, MANAGER_RETRY) == MANAGER_REFUSED, "not retried");
    manager_retry_all(w.manager);
    world_restart(&w);
    sim_loop_advance(w.loop, 3600 * 1000);
    world_saw(&w, "", "whatever happens");
    is_number(world_files(&w, "mess"), 1, "kept");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    ok(world_is_empty(&w));
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_UNKNOWN);
}

/* The others are retried, reported and expire as ever; then the rest is held. */
TEST(hold_beside_others)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "keep.test hold\n* smtp://sink.test?lifetime=2h");
    world_deliver(&w, "ann@a.test", "later@b.test bad@b.test x@keep.test");
    world_saw(&w, "ann@a.test>later@b.test ann@a.test>bad@b.test >ann@a.test ",
              "one is deferred, one has bounced");
    ok_named(world_files(&w, "hold") == 0 && world_place(&w) == SCHED_DEFERRED,
             "the message is not held while another recipient is open");
    world_restart(&w);
    sim_loop_advance(w.loop, 3 * 3600 * 1000);
    ok(world_logged(&w, "status=expired"));
    is_number(world_files(&w, "hold"), 1, "when that one is over it is held");
    ok(world_place(&w) == SCHED_UNKNOWN);
    buffer_clear(&w.seen);
    world_restart(&w);
    sim_loop_advance(w.loop, 24 * 3600 * 1000);
    world_saw(&w, "", "for as long as it takes; the expiry was reported before");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    w.all_good = true;
    world_turns(&w);
    world_saw(&w, "ann@a.test>x@keep.test ", "the operator lets it go");
    ok(world_is_empty(&w));
}

/* A route that no longer holds frees them with the next attempt. */
TEST(hold_until_reload)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "keep.test hold\n* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test good@keep.test");
    world_saw(&w, "ann@a.test>later@b.test ", "held back");
    w.routes_text.routes = TEXT("* smtp://sink.test");
    world_stop(&w);
    route_free(&w.routes);
    w.routes = world_routes(&w);
    manager_world_start(&w);
    w.all_good = true;
    sim_loop_advance(w.loop, 3600 * 1000);
    world_saw(&w, "ann@a.test>later@b.test ann@a.test>good@keep.test ", "both go");
    ok(world_is_empty(&w));
}

TEST(retry)
{
    struct id first;
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test");
    first = w.id;
    world_deliver(&w, "ann@a.test", "later2@b.test");
    buffer_clear(&w.seen);
    ok(manager_operate(w.manager, MANAGER_RETRY, first, why) == MANAGER_DONE);
    world_turns(&w);
    world_saw(&w, "ann@a.test>later@b.test ", "one");
    manager_retry_all(w.manager);
    world_turns(&w);
    world_saw(&w, "ann@a.test>later@b.test ann@a.test>later2@b.test ", "all");
    w.all_good = true;
    manager_retry_all(w.manager);
    world_turns(&w);
    ok(world_is_empty(&w));
    ok_named(manager_operate(w.manager, MANAGER_RETRY, first, why) == MANAGER_UNKNOWN,
             "an unknown one");
}

TEST(remove)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test bad@b.test");
    buffer_clear(&w.seen);
    ok_named(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE, "deferred");
    ok(world_is_empty(&w));
    ok(world_place(&w) == SCHED_UNKNOWN);
    is_string(manager_reason(w.manager, w.id, 0), "", "forgotten");
    sim_loop_advance(w.loop, 3600 * 1000);
    world_saw(&w, "", "and nobody is told");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_UNKNOWN);
    ok(world_logged(&w, "removed by the operator"));
    char last[ID_LENGTH + 20];
    id_format(w.id, last);
    strcat(last, ": removed\n");
    ok_named(world_logged(&w, last), "its last line, as of each message");

    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    ok_named(world_operate(&w, MANAGER_REMOVE) == MANAGER_LATER,
             "waiting for a session");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_LATER);
    world_unstall(&w);
    world_turns(&w);
    world_saw(&w, "", "is not delivered any more");
    ok(world_is_empty(&w) && world_place(&w) == SCHED_UNKNOWN);
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_UNKNOWN);
}

/* The operator comes between take and verdict. */
TEST(remove_in_delivery)
{
    static const char *const fates[] = {"good@b.test", "bad@b.test", "later@b.test"};
    for (size_t i = 0; i < 3; i++) {
        struct delivery_request request;
        FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
        w.stalled = true;
        world_deliver(&w, "ann@a.test", fates[i]);
        ok(w.fakes && manager_take(w.manager, w.fakes->session, &request));
        ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_LATER);
        ok_named(manager_active(w.manager, w.id) != NULL, "its request is still good");
        fake_settle(w.fakes, &request);
        world_unstall(&w);
        world_turns(&w);
        ok_named(world_is_empty(&w), fates[i]);
        ok_named(!world_logged(&w, "notified"), "nobody is told");
    }
}

TEST(drain)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    world_send(&w, "ann@a.test", "good2@b.test");
    ok(w.fakes && manager_take(w.manager, w.fakes->session, &request));
    manager_drain(w.manager, 60 * 1000, world_drained, &w);
    sim_loop_advance(w.loop, 1000);
    is_number(w.drained, 0, "a session is in the middle");
    ok(!manager_has_work(w.manager, w.fakes->session));
    fake_settle(w.fakes, &request);
    world_unstall(&w);
    sim_loop_advance(w.loop, 1000);
    is_number(w.drained, 1, "it has ended, and takes nothing new");
    world_saw(&w, "ann@a.test>good@b.test ", "its mail is delivered");
    is_number(world_files(&w, "mess"), 1, "and gone; only the other one is left");
    sim_loop_advance(w.loop, 100 * 1000);
    is_number(w.drained, 1, "told once");
    world_restart(&w);
    world_saw(&w, "ann@a.test>good2@b.test ", "the other one after the next start");
    ok(world_is_empty(&w));

    manager_drain(w.manager, 60 * 1000, world_drained, &w);
    sim_loop_advance(w.loop, 100);
    is_number(w.drained, 2, "at once when nothing runs");
}

/* The end waits for a bounce that is being written. */
TEST(drain_notice)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "never@b.test");
    ok(w.fakes && manager_take(w.manager, w.fakes->session, &request));
    manager_drain(w.manager, 60 * 1000, world_drained, &w);
    fake_settle(w.fakes, &request);
    world_unstall(&w);
    sim_loop_advance(w.loop, 1000);
    is_number(w.drained, 1, "drained");
    ok_named(world_logged(&w, "notified"), "the sender's bounce is in the queue");
    is_number(world_files(&w, "mess"), 1, "in place of the message");
    world_restart(&w);
    world_saw(&w, "ann@a.test>never@b.test >ann@a.test ",
              "and delivered after the next start");
    ok(world_is_empty(&w));
}

TEST(drain_patience)
{
    struct delivery_request request;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    ok(w.fakes && manager_take(w.manager, w.fakes->session, &request));
    manager_drain(w.manager, 20 * 1000, world_drained, &w);
    sim_loop_advance(w.loop, 19 * 1000);
    is_number(w.drained, 0, "patience");
    sim_loop_advance(w.loop, 2 * 1000);
    is_number(w.drained, 1, "has an end");
    struct outcome cut =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2", "shutting down");
    manager_settled(w.manager, &request, 0, &cut, NULL);
    world_stop(&w);
    w.stalled = false;
    manager_world_start(&w);
    world_saw(&w, "ann@a.test>good@b.test ", "what was cut off is delivered later");
    ok(world_is_empty(&w));
}

TEST(reload)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test");
    buffer_clear(&w.seen);
    struct route_table *old = w.routes;
    w.routes_text.routes = TEXT("b.test discard\n* smtp://sink.test");
    w.routes = world_routes(&w);
    w.settings.hostname = "new.test";
    manager_reload(w.manager, &w.settings, w.routes);
    route_free(&old);
    manager_retry_all(w.manager);
    world_turns(&w);
    world_saw(&w, "", "the new route");
    ok(world_logged(&w, "status=sent (discarded)") && world_is_empty(&w));
    world_deliver(&w, "ann@a.test", "bad@c.test");
    ok(world_is_empty(&w));
}

enum { LOADS = 300 };

/* How many of them were read back from the disk in one turn, at most. */
struct loads {
    struct world *world;
    struct id ids[LOADS];
    unsigned before, most;
};

static void
count_loads(void *context)
{
    struct loads *l = context;
    unsigned loaded = 0;
    for (unsigned i = 0; i < LOADS; i++)
        loaded += manager_active(l->world->manager, l->ids[i]) != NULL;
    if (loaded > l->before && loaded - l->before > l->most)
        l->most = loaded - l->before;
    l->before = loaded;
}

static void
count_from_start(struct world *w)
{
    loop_at_end(w->loop, LOOP_SEND_DISK, count_loads, w->channel);
}

/* A queue full of mail must not keep a turn for itself. */
TEST(loads)
{
    struct world w;
    struct loads l = {.world = &w};
    manager_world_begin(&w, "* smtp://sink.test");
    w.stalled = true;
    for (unsigned i = 0; i < LOADS; i++) {
        world_send(&w, "ann@a.test", "good@b.test");
        l.ids[i] = w.id;
    }
    world_turns(&w);
    world_stop(&w);
    is_number(world_files(&w, "todo"), LOADS, "all are on disk");
    w.plug = count_from_start;
    w.channel = &l;
    manager_world_start(&w);
    is_number(l.before, LOADS, "all are loaded");
    ok_named(l.most > 0 && l.most <= 64, "not too many in a turn");
    loop_at_end_remove(w.loop, LOOP_SEND_DISK, count_loads, &l);
    world_unstall(&w);
    world_turns(&w);
    ok_named(world_is_empty(&w), "and delivered");
    manager_world_end(&w);
}

TEST(active_limit)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.settings.sched.active_limit = 3;
    world_restart(&w);
    w.stalled = true;
    struct id ids[20];
    int in_memory = 0;
    for (int i = 0; i < 20; i++) {
        world_send(&w, "ann@a.test", "good@b.test");
        ids[i] = w.id;
    }
    world_turns(&w);
    struct sched_counts counts = sched_count(manager_sched(w.manager));
    is_number(counts.active, 3, "so many at work");
    is_number(counts.incoming, 17, "the others on disk");
    for (int i = 0; i < 20; i++)
        in_memory += manager_active(w.manager, ids[i]) != NULL;
    ok_named(in_memory >= 3 && in_memory <= 6, "few envelopes are ready besides");
    world_unstall(&w);
    sim_loop_advance(w.loop, 10 * 1000);
    is_number(w.attempts, 20, "all are delivered");
    ok(world_is_empty(&w));
}

/* One recipient of a message has its verdict by the route alone, while the site of the
 * other has more than its share: it leaves memory with a mark that is not written
 * yet. */
TEST(share)
{
    struct world w;
    manager_world_begin(
        &w, "gone.test discard\nno.test error:5.1.1 nobody\n* smtp://sink.test");
    w.settings.sched.active_limit = 8;
    w.settings.sched.site_share = 25;
    world_restart(&w);
    w.stalled = true;
    for (int i = 0; i < 6; i++)
        world_deliver(&w, "ann@a.test", "good@b.test");
    world_deliver(&w, "ann@a.test", "x@gone.test good@b.test y@no.test");
    struct sched_state state = sched_find(manager_sched(w.manager), w.id);
    ok_named(state.excess, "the last is too many");
    ok_named(manager_active(w.manager, w.id) == NULL, "it is not in memory");
    struct envelope *e = queue_load(manager_queue(w.manager), w.id);
    is_number(e->delivery.done, 2, "two have their verdict");
    ok(e->recipients[0].done && !e->recipients[1].done && e->recipients[2].done);
    envelope_free(&e);
    world_unstall(&w);
    sim_loop_advance(w.loop, 600 * 1000);
    /* The bounce goes to ann@, which is good, too. */
    is_number(w.attempts, 8, "all are delivered, and one bounce");
    ok(world_is_empty(&w));
    manager_world_end(&w);
}

/* One that is held and released before its first attempt passes the routes that hold,
 * too, though the active set has no space for it. */
TEST(release_early)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "held.test hold\n* smtp://sink.test");
    w.settings.sched.active_limit = 2;
    world_restart(&w);
    w.stalled = true;
    for (int i = 0; i < 2; i++)
        world_deliver(&w, "ann@a.test", "good@b.test");
    world_deliver(&w, "ann@a.test", "good@held.test");
    is_number(world_place(&w), SCHED_INCOMING, "it has no place yet");
    is_number(world_operate(&w, MANAGER_HOLD), MANAGER_DONE, "held before its attempt");
    is_number(world_operate(&w, MANAGER_RELEASE), MANAGER_DONE, "and released");
    world_unstall(&w);
    sim_loop_advance(w.loop, 600 * 1000);
    is_number(w.attempts, 3, "all are delivered");
    ok(world_is_empty(&w));
}

/* The same in memory alone, while a full journal moves it to files that do not say so: it
 * is released when it comes back. */
TEST(release_while_moving)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "held.test hold\n* smtp://sink.test");
    struct manager_loan loan;
    int64_t budget = 1 << 20;
    w.settings.queue.journal_size = 4 << 20;
    w.settings.sched.active_limit = 1;
    world_restart(&w);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    world_deliver(&w, "ann@a.test", "good@held.test");
    is_number(world_operate(&w, MANAGER_HOLD), MANAGER_DONE, "held before its attempt");
    w.settings.sched.active_limit = 20;
    world_restart(&w);
    is_number(world_operate(&w, MANAGER_RELEASE), MANAGER_DONE, "released into memory");
    sim_loop_advance(w.loop, 1000);
    marks_move(&manager_queue(w.manager)->marks, w.id);
    sim_loop_advance(w.loop, 1000);
    is_number(world_files(&w, "info"), 1, "moved");
    is_number(manager_lend(w.manager, w.id, &budget, &loan), MANAGER_LENT, "lent");
    manager_take_back(w.manager, w.id);
    world_unstall(&w);
    sim_loop_advance(w.loop, 600 * 1000);
    is_number(w.attempts, 2, "all are delivered");
    ok(world_is_empty(&w));
}

/* The disk has the due time of a clock that was ahead: mail that is due is so when a giver
 * takes it, and gives it back. */
TEST(lent_after_step)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    struct manager_loan loan = {0};
    int64_t budget = 1 << 20;
    world_deliver(&w, "ann@a.test", "later@b.test");
    sim_loop_step_wall(w.loop, -3600 * 1000);
    w.stalled = true;
    sim_loop_advance(w.loop, 400 * 1000);
    is_number(world_place(&w), SCHED_ACTIVE, "due by its clock, and in memory");
    is_number(manager_lend(w.manager, w.id, &budget, &loan), MANAGER_LENT, "lent");
    ok(loan.envelope->delivery.due_ms <= loop_now_ms(w.loop));
    manager_take_back(w.manager, w.id);
    sim_loop_advance(w.loop, 1000);
    is_number(world_place(&w), SCHED_ACTIVE, "due, when it is given back");
}

/* Where the n-th attempt for this sender's mail stands; at the end: there is none. */
static size_t
place_of(const struct world *w, const char *sender, int n)
{
    struct text seen = buffer_text(&w->seen), word;
    while (text_word(&seen, " ", &word))
        if (text_starts(word, text_from(sender)) && --n == 0)
            break;
    return w->seen.length - seen.length;
}

/* The order of three senders with some messages each; read from the disk again if
 * restart. */
static void
check_priority(bool restart)
{
    static const struct {
        const char *sender;
        int priority;
    } mail[] = {
        {"slow@", -1},
        {"ann@",  0 },
        {"bob@",  1 },
    };
    enum { EACH = 4 };
    char sender[40];
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.stalled = true;
    for (int i = 0; i < 3 * EACH; i++) {
        snprintf(sender, sizeof(sender), "%sa.test", mail[i / EACH].sender);
        w.priority = mail[i / EACH].priority;
        world_send(&w, sender, "good@b.test");
    }
    world_turns(&w);
    if (restart) {
        world_restart(&w);
        const struct envelope *e = manager_active(w.manager, w.id);
        ok_named(e && e->priority == 1, "it is on disk");
    }
    world_unstall(&w);
    world_turns(&w);
    is_number(w.attempts, 3 * EACH, "all are served");
    ok_named(place_of(&w, "bob@", EACH) < place_of(&w, "ann@", 2),
             "urgent mail passes what waits of another sender");
    ok_named(place_of(&w, "ann@", EACH) < place_of(&w, "slow@", 2),
             "that passes what may wait");
    ok(world_is_empty(&w));
}

TEST(priority)
{
    check_priority(false);
    check_priority(true);
}

/* One sender sends five, another sends one after them. */
static void
check_turns(bool turns)
{
    enum { MANY = 5 };
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test?concurrency=1");
    w.settings.sender_turns = turns;
    world_restart(&w);
    w.stalled = true;
    for (int i = 0; i < MANY; i++) {
        world_send(&w, "ann@a.test", "good@b.test");
        world_turns(&w); /* ids of one moment are in no order */
    }
    world_send(&w, "bob@a.test", "good@b.test");
    world_turns(&w);
    world_unstall(&w);
    world_turns(&w);
    is_number(w.attempts, MANY + 1, "all are served");
    if (turns)
        ok_named(place_of(&w, "bob@", 1) < place_of(&w, "ann@", 3),
                 "senders take turns");
    else
        ok_named(place_of(&w, "bob@", 1) > place_of(&w, "ann@", MANY),
                 "or all goes in the order it came");
}

TEST(turns)
{
    check_turns(true);
    check_turns(false);
}

/* No space for the notice: the failure is kept until there is. */
TEST(notice_refused)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "later@b.test");
    w.settings.queue.bytes_reserve = INT64_MAX / 4;
    w.routes_text.routes = TEXT("b.test error:5.7.1 no\n* smtp://sink.test");
    world_stop(&w);
    route_free(&w.routes);
    w.routes = world_routes(&w);
    buffer_clear(&w.seen);
    manager_world_start(&w);
    sim_loop_advance(w.loop, 400 * 1000);
    ok(world_logged(&w, "status=bounced (no)"));
    ok(world_logged(&w, "cannot write the notification now: "));
    is_number(world_files(&w, "mess"), 1, "the message stays");
    is_number(world_files(&w, "bounce"), 1, "with what is to be told");
    world_send(&w, "ann@a.test", "good@b.test");
    ok_named(!w.accepted, "no new mail either");
    w.settings.queue.bytes_reserve = 0;
    world_restart(&w);
    sim_loop_advance(w.loop, 400 * 1000);
    world_saw(&w, ">ann@a.test ", "told after all");
    ok(world_is_empty(&w));

    /* And the operator may end that wait. */
    world_deliver(&w, "ann@a.test", "later@c.test");
    w.settings.queue.bytes_reserve = INT64_MAX / 4;
    w.routes_text.routes = TEXT("* error:5.7.1 no");
    world_stop(&w);
    route_free(&w.routes);
    w.routes = world_routes(&w);
    manager_world_start(&w);
    sim_loop_advance(w.loop, 400 * 1000);
    is_number(world_files(&w, "mess"), 1, "waiting again");
    ok(world_operate(&w, MANAGER_REMOVE) == MANAGER_DONE);
    ok(world_is_empty(&w));
}

TEST(start_errors)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* discard");
    char error[300] = "";
    struct manager *second = NULL;
    ok(manager_new(&second, w.loop, w.events, &w.settings, w.routes, error,
                   sizeof(error)) != 0);
    ok(second == NULL && strstr(error, "another petrel") != NULL);
    manager_free(&second);
}
