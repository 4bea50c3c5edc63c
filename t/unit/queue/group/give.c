/* link: t/sim/loop.c */
/* queue/group/give.c and take.c: the queue of one host goes to others, with its due times,
 * attempts, marks, failures and holds. */
#include "t/support/group_world.h"

#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/support/injected.h"
#include "t/support/must.h"

#include <sys/resource.h>

TEST(deferred)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    group_world_defer(&g);
    group_world_start(&g);
    group_world_pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    is_number((int64_t)give_progress(g.give).given, 1, "given");
    ok(world_is_empty(&g.a));
    ok(world_logged(&g.a, "to=relay2, as=") && world_logged(&g.a, "status=given"));
    group_world_check(&g);
    struct sched_state known = sched_find(manager_sched(g.b.manager), group_world_id(&g.b));
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    world_saw(&g.b, "", "no attempt was made");
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    known = sched_find(manager_sched(g.b.manager), group_world_id(&g.b));
    ok_named(known.place == SCHED_DEFERRED && known.attempts == 2 &&
                 known.due_ms == (int64_t)g.due_ms,
             "nor does a restart change that");
    group_world_check(&g);
    g.b.all_good = true;
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.b, "me@a.test>later@b.test ", "then to whom it is open");
    ok(world_is_empty(&g.b));
}

/* In files it is the same. */
TEST(files)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    kit_host_stop(g.host);
    g.b.settings.queue.journal_size = 0;
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    group_world_defer(&g);
    group_world_start(&g);
    group_world_pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    is_number(world_files(&g.b, "todo"), 1, "in todo/");
    group_world_check(&g);
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    struct sched_state known = sched_find(manager_sched(g.b.manager), group_world_id(&g.b));
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    group_world_check(&g);
}

TEST(held)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.a.stalled = true;
    world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_LATER);
    manager_fake_end(g.a.fakes);
    world_turns(&g.a);
    group_world_start(&g);
    group_world_pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    struct id id = group_world_id(&g.b);
    char note[QUEUE_NOTE_MAX];
    is_number(queue_note(manager_queue(g.b.manager), id, QUEUE_HOLD, note), 0, "held");
    ok(strstr(note, "held by the operator") != NULL);
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.b, "", "not delivered");
    g.b.id = id;
    ok(world_operate(&g.b, MANAGER_RELEASE) == MANAGER_DONE);
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.b, "me@a.test>good@b.test ", "released, and that stays so");
}

/* A message in memory, whose session never opens. */
TEST(waiting)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end,
            "* smtp://smtp.b.test?concurrency=1");
    g.a.stalled = true;
    for (int i = 0; i < 300; i++)
        world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    group_world_start(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    group_world_pass(&g, 5000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 300, "given");
    ok_named(g.wire.sent_most <= SIBLING_UNANSWERED, "few without an answer");
    ok(world_is_empty(&g.a));
    is_number(g.b.attempts, 300, "B has delivered them");
}

/* The same host is asked again, and has it already. */
TEST(lost_answer)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *other = kit_wire_add(&g.wire, "relay3");
    g.b.stalled = true;
    g.host->weather = KIT_SILENT;
    other->weather = KIT_CLOSED;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 10 * 1000);
    is_number(g.over, 0, "unknown");
    ok(g.host->asked > 5);
    is_number(other->asked, 0, "no other host is asked");
    g.host->weather = KIT_FAIR;
    group_world_pass(&g, 2000);
    group_world_is_given(&g);
}

/* B knows it after a restart, though it has delivered it. */
TEST(recalled)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.host->weather = KIT_SILENT;
    g.a.stalled = true;
    world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    group_world_start(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    group_world_pass(&g, 2000);
    world_saw(&g.b, "me@a.test>good@b.test ", "delivered");
    kit_host_stop(g.host);
    group_world_pass(&g, 2000);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    g.host->weather = KIT_FAIR;
    group_world_pass(&g, 3000);
    is_number(g.over, 1, "given");
    world_saw(&g.b, "", "not delivered again");
}

/* After a minute it goes elsewhere. */
TEST(gone_host)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *dead = kit_wire_add(&g.wire, "relay3");
    g.host->weather = KIT_CLOSED;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 3000);
    ok(dead->asked > 0);
    g.host->weather = KIT_FAIR;
    group_world_pass(&g, 40 * 1000);
    is_number(g.over, 0, "it may be there");
    group_world_pass(&g, 30 * 1000);
    is_number(g.over, 1, "given to another");
}

TEST(refused)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.host->weather = KIT_REFUSING;
    group_world_defer(&g);
    group_world_start(&g);
    group_world_pass(&g, 2000);
    is_number(g.over, 1, "nothing more can be given");
    is_number(give_progress(g.give).refused, 1, "it stays");
    struct sched_state known = sched_find(manager_sched(g.a.manager), g.a.id);
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    give_free(&g.give);
    manager_cancel_drain(g.a.manager);
    g.a.all_good = true;
    sim_loop_advance(g.a.loop, 3600 * 1000);
    world_saw(&g.a, "me@a.test>later@b.test ", "and is delivered here");
}

TEST(local)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end,
            "local.test lmtp://unix:/nowhere\n* smtp://smtp.b.test");
    manager_set_channel(g.a.manager, TARGET_LMTP, fake_open, &g.a);
    world_deliver(&g.a, "me@a.test", "later@local.test later@b.test");
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 2000);
    is_number(g.over, 1, "nothing more can be given");
    is_number(give_progress(g.give).local, 1, "one stays");
    is_number(give_progress(g.give).given, 1, "one went");
}

/* A failure that no notification has reported yet is reported by the taker, once. */
TEST(unreported)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    world_send(&g.a, "me@a.test", "bad@b.test later@b.test");
    for (int i = 0; i < 3; i++)
        loop_turn(g.a.loop, 0);
    group_world_start(&g);
    group_world_pass(&g, 2000);
    g.b.all_good = true;
    sim_loop_advance(g.b.loop, 3600 * 1000);
    g.a.all_good = true;
    is_number(g.over, 1, "given");
    struct text seen = buffer_text(&g.b.seen);
    unsigned reports = 0;
    for (const char *at = seen.at;
         (at = memmem(at, (size_t)(seen.at + seen.length - at), ">me@a.test", 10)) !=
         NULL;
         at++)
        reports++;
    is_number(reports +
                  (world_logged(&g.a, "sender non-delivery notification") ? 0 : 0),
              1, "one report in all");
}

/* A message that is on its way to the disk when the walk begins is given, too. */
TEST(storing)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    manager_drain(g.a.manager, 0, group_world_drained, NULL);
    world_turns(&g.a);
    world_send(&g.a, "me@a.test", "later@b.test");
    ok(!g.a.accepted);
    g.give = give_new(&(struct give_setup){.loop = g.a.loop,
                                           .events = g.a.events,
                                           .manager = g.a.manager,
                                           .calls = &g.wire.calls,
                                           .host = "relay1",
                                           .siblings = kit_wire_siblings,
                                           .context = &g.wire},
                      TEXT(""), group_world_given, &g);
    group_world_pass(&g, 5000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 1, "given");
    ok(world_is_empty(&g.a));
}

/* Siblings take turns, but only those that are named and take mail. */
TEST(turns)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *third = kit_wire_add(&g.wire, "relay3"),
                    *other = kit_wire_add(&g.wire, "relay4");
    kit_host_start(third, g.b.loop, g.b.events, g.b.manager);
    kit_host_start(other, g.b.loop, g.b.events, g.b.manager);
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    manager_drain(g.a.manager, 0, group_world_drained, NULL);
    third->state = "leaving";
    g.give = give_new(&(struct give_setup){.loop = g.a.loop,
                                           .events = g.a.events,
                                           .manager = g.a.manager,
                                           .calls = &g.wire.calls,
                                           .host = "relay1",
                                           .siblings = kit_wire_siblings,
                                           .context = &g.wire},
                      TEXT("relay2, RELAY3"), group_world_given, &g);
    group_world_pass(&g, 200);
    is_number(third->asked, 0, "it leaves");
    is_number(g.host->taken, 20, "one takes all");
    give_free(&g.give);
    manager_cancel_drain(g.a.manager);
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    third->state = "running";
    group_world_start(&g);
    group_world_pass(&g, 1000);
    ok(g.host->taken > 20 && third->taken > 0 && other->taken > 0);
    is_number(g.host->taken + third->taken + other->taken, 40, "all in turn");
    kit_host_stop(third);
    kit_host_stop(other);
}

/* Mail that one refuses for now goes to another. */
static void
test_later(void)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *other = kit_wire_add(&g.wire, "relay3");
    other->weather = KIT_CLOSED;
    for (int i = 0; i < 10; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 3000);
    is_number(g.over, 1, "nothing is left");
    is_number(g.host->taken, 10, "the other has them");
    give_free(&g.give);
    manager_cancel_drain(g.a.manager);
    g.host->weather = KIT_CLOSED;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 3000);
    ok_named(give_progress(g.give).why[0] != '\0', "nobody takes mail");
    is_number((int64_t)give_progress(g.give).left, 1, "it is left");
    ok(g.host->asked < 10 + 8);
    other->is_lost = true;
    g.host->state = "closing";
    group_world_pass(&g, 1000);
    is_text(text_from(give_progress(g.give).why), TEXT("no other host takes mail"),
            "why");
}

/* The one that is due soonest goes first, held mail last. */
static void
test_order(void)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct id ids[3];
    for (int i = 0; i < 3; i++) {
        world_deliver(&g.a, "me@a.test", "later@b.test");
        ids[i] = g.a.id;
        sim_loop_advance(g.a.loop, 1000);
    }
    g.a.id = ids[0];
    ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_DONE);
    ok(sched_retry(manager_sched(g.a.manager), ids[2]));
    g.host->most = 1;
    group_world_start(&g);
    group_world_pass(&g, 2000);
    is_number(g.over, 1, "nothing is left");
    const char *at[3];
    for (int i = 0; i < 3; i++) {
        char line[60], id[ID_LENGTH + 1];
        id_format(ids[i], id);
        snprintf(line, sizeof(line), "%s: to=relay2", id);
        at[i] = memmem(g.a.lines.at, g.a.lines.length, line, strlen(line));
    }
    ok(at[2] != NULL && at[1] > at[2] && at[0] > at[1]);
}

static void
send_large(struct world *w)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char line[1002];
    memset(line, 'x', 1000);
    memcpy(line + 1000, "\r\n", 2);
    e->sender = envelope_text(e, TEXT("me@a.test"));
    ok(envelope_add(e, TEXT("later@b.test"), 0, TEXT("")));
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    for (int i = 0; i < 300; i++)
        (void)!queue_write(draft, text_of(line, sizeof(line)));
    queue_name(draft, e);
    queue_commit(&draft, &e, world_stored, w);
    world_turns(w);
}

/* Large content waits for its connection; small mail does not wait behind it. */
TEST(large)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    for (int i = 0; i < 3; i++)
        send_large(&g.a);
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    g.host->bytes_max = 256 * 1024;
    group_world_start(&g);
    group_world_pass(&g, 2000);
    is_number(g.host->taken, 20, "the small ones");
    is_number(g.over, 0, "three wait");
    g.host->bytes_max = 0;
    group_world_pass(&g, 2000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 23, "given");
}

/* A hold whose delivery has not ended, and a message that is being removed. */
static void
test_commands(void)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.a.stalled = true;
    world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_LATER);
    group_world_start(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    group_world_pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    is_number(world_files(&g.b, "hold"), 1, "held there");
}

/* All slices are in one spool: what is of another one, only its daemon gives away. */
TEST(slices)
{
    enum { MAILS = 16 };
    unsigned others = 0, held = 0;
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    world_stop(&g.a);
    g.a.settings.queue.journal_size = 0;
    manager_world_start(&g.a);
    for (int i = 0; i < MAILS; i++) {
        world_deliver(&g.a, "me@a.test", "later@b.test");
        others += id_slice(g.a.id, 2);
        if (i % 2 == 0)
            continue;
        ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_DONE);
        held += id_slice(g.a.id, 2);
    }
    ok_named(held > 0 && held < others && others < MAILS, "of both slices");
    world_stop(&g.a);
    g.a.settings.queue.slices = 2;
    manager_world_start(&g.a);
    group_world_start(&g);
    group_world_pass(&g, 3000);
    is_number(g.over, 1, "nothing of its own is left");
    is_number(give_progress(g.give).given, MAILS - others, "given");
    is_number(world_files(&g.a, "mess"), others, "the others stay");
    is_number(world_files(&g.a, "hold"), held, "as they were");
}

/* The disk cannot be read for a moment: what was about to be given then goes later. */
TEST(unreadable)
{
    struct rlimit before, none;
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    world_stop(&g.a);
    g.a.settings.queue.journal_size = 0;
    manager_world_start(&g.a);
    g.host->state = "leaving";
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 1000);
    is_number(give_progress(g.give).left, 1, "listed");
    must(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    must(setrlimit(RLIMIT_NOFILE, &none) == 0);
    g.host->state = "running";
    group_world_pass(&g, 400);
    must(setrlimit(RLIMIT_NOFILE, &before) == 0);
    ok(world_logged(&g.a, "cannot read the message now"));
    group_world_pass(&g, 5000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 1, "given");
}

static struct aliases *aliases;

static void
plug_aliases(struct world *w)
{
    manager_set_aliases(w->manager, aliases, NULL);
}

/* Mail of sendmail(1) that no daemon has seen: its alias stands for its members, and goes
 * to them alone. */
static void
test_injected(int64_t journal)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    aliases = injected_aliases(&g.a, "list: good1@b.test, later2@b.test\n");
    g.a.plug = plug_aliases;
    world_stop(&g.a);
    injected_add(&g.a, "me@h.test", "list@h.test");
    kit_host_stop(g.host);
    g.b.settings.queue.journal_size = journal;
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    g.a.stalled = true;
    manager_world_start(&g.a);
    group_world_start(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    group_world_pass(&g, 2000);
    is_number(g.over, 1, "given");
    ok(world_is_empty(&g.a));
    struct text seen = buffer_text(&g.b.seen);
    ok_named(
        text_equal(seen, TEXT("me@h.test>good1@b.test me@h.test>later2@b.test ")) ||
            text_equal(seen, TEXT("me@h.test>later2@b.test me@h.test>good1@b.test ")),
        "to the members");
    ok(!world_logged(&g.b, "sendmail: "));
    give_free(&g.give);
    world_stop(&g.a);
    aliases_free(&aliases);
    g.a.plug = NULL;
    manager_world_start(&g.a);
}

/* Mail that waits for a quota here goes by the quotas of that host. */
static void
test_quota(void)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    kit_host_stop(g.host);
    g.b.settings.quotas = TEXT("sender:me@h.test 2/d");
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    world_stop(&g.a);
    g.a.settings.quotas = TEXT("sender:me@h.test 1/d");
    for (int i = 0; i < 4; i++)
        injected_add(&g.a, "me@h.test", "good@b.test");
    manager_world_start(&g.a);
    world_saw(&g.a, "me@h.test>good@b.test ", "one may go");
    group_world_start(&g);
    group_world_pass(&g, 2000);
    is_number(give_progress(g.give).given, 3, "three wait, and are given");
    is_number(g.b.attempts, 2, "two may go there: no wait of a day for our quota is believed");
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    is_number(g.b.attempts, 2, "also after a restart");
    sim_loop_advance(g.b.loop, INT64_C(26) * 3600 * 1000);
    is_number(g.b.attempts, 3, "the third a day later");
}

int
main(void)
{
    tap_tests("");
    test_injected(8 * 1024 * 1024);
    test_injected(0);
    test_quota();
    test_later();
    test_order();
    test_commands();
    return done();
}
