/* link: t/sim/loop.c */
/* A drain that is cancelled, and a daemon that stops. */
#include "t/support/group_world.h"

#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/support/must.h"

/* A daemon that stops takes everything back. A clock that was set back while a message was
 * lent does not make it wait for that. */
static void
test_stopped(int64_t step_ms)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.host->weather = KIT_STUCK;
    group_world_defer(&g);
    group_world_start(&g);
    group_world_pass(&g, 1000);
    is_number(give_progress(g.give).sent, 1, "sent");
    char why[MANAGER_WHY_MAX];
    ok(manager_operate(g.a.manager, MANAGER_REMOVE, g.a.id, why) == MANAGER_REFUSED);
    sim_loop_step_wall(g.a.loop, step_ms);
    group_world_pass(&g, 1000);
    give_free(&g.give);
    kit_wire_end(&g.wire);
    struct sched_state known = sched_find(manager_sched(g.a.manager), g.a.id);
    ok(known.place == SCHED_DEFERRED && known.attempts == 2);
    int64_t by_ms = known.due_ms - ((int64_t)g.due_ms + step_ms);
    ok_named(by_ms >= 0 && by_ms <= 2000, "due as long from then as before");
}

static void
cancel_giving(struct group_world *g)
{
    give_rest(g->give);
    manager_cancel_drain(g->a.manager);
}

/* Two messages are to go, to a host that takes one and does not answer yet. */
static void
begin_two(struct group_world *g)
{
    g->host->most = 1;
    g->host->weather = KIT_STUCK;
    group_world_defer(g);
    world_deliver(&g->a, "me@a.test", "later@b.test");
    group_world_start(g);
    group_world_pass(g, 1000);
}

/* Mail that was not sent is here again immediately, and mail that a sibling may have once it has
 * answered. */
TEST(cancelled)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    begin_two(&g);
    is_number(give_progress(g.give).sent, 1, "one is sent");
    cancel_giving(&g);
    group_world_pass(&g, 40);
    struct sched_counts counts = sched_count(manager_sched(g.a.manager));
    is_number(counts.deferred + counts.incoming + counts.active, 1,
              "the other is here");
    g.host->weather = KIT_FAIR;
    group_world_pass(&g, 1000);
    is_number(give_progress(g.give).given, 1, "the answer is heard");
    is_number(g.over, 0, "of no drain");
    ok(world_logged(&g.a, "status=given"));
    g.a.all_good = g.b.all_good = true;
    buffer_clear(&g.a.seen);
    sim_loop_advance(g.a.loop, 3600 * 1000);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.a, "me@a.test>later@b.test ", "one is delivered here");
    world_saw(&g.b, "me@a.test>later@b.test ", "one there");
}

/* While the manager is paused our mail may be another host's: what is under way goes on, and no more
 * is given. */
TEST(paused)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    begin_two(&g);
    manager_pause(g.a.manager, true);
    g.host->weather = KIT_FAIR;
    group_world_pass(&g, 60 * 1000);
    is_number(give_progress(g.give).given, 1, "the one that was sent");
    is_number(g.over, 0, "it is not over");
    manager_pause(g.a.manager, false);
    group_world_pass(&g, 60 * 1000);
    is_number(give_progress(g.give).given, 2, "the other follows");
    is_number(g.over, 1, "then it is over");
}

/* It is not delivered here while another host may have it, nor given to a third one. */
TEST(cancelled_lost)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.b.stalled = true;
    g.host->weather = KIT_SILENT;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 2000);
    buffer_clear(&g.a.seen);
    cancel_giving(&g);
    g.a.all_good = true;
    manager_retry_all(g.a.manager);
    group_world_pass(&g, 10 * 1000);
    world_saw(&g.a, "", "not delivered here");
    struct kit_host *other = kit_wire_add(&g.wire, "relay3");
    g.host = &g.wire.hosts[0];
    manager_drain(g.a.manager, 0, group_world_drained, NULL);
    give_again(g.give, TEXT(""));
    group_world_pass(&g, 10 * 1000);
    is_number(g.over, 0, "unknown");
    is_number(other->asked, 0, "no other host is asked");
    g.host->weather = KIT_FAIR;
    group_world_pass(&g, 2000);
    group_world_is_given(&g);
}

/* A host that does not come back keeps no mail here for longer. */
TEST(cancelled_gone)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    g.host->weather = KIT_CUT;
    group_world_defer(&g);
    group_world_start(&g);
    group_world_pass(&g, 2000);
    cancel_giving(&g);
    group_world_pass(&g, 50 * 1000);
    ok_named(manager_is_lent(g.a.manager, g.a.id), "it may be there");
    group_world_pass(&g, 10 * 1000);
    struct sched_state known = sched_find(manager_sched(g.a.manager), g.a.id);
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
}

int
main(void)
{
    test_stopped(0);
    test_stopped(INT64_C(-40) * 24 * 3600 * 1000);
    tap_tests("");
    return done();
}
