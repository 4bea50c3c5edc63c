/* A clock that was wrong: mail does not wait for the difference, nor expire by it. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

/* Another daemon, by another clock. */
static void
restart_at(struct world *w, int64_t by_ms)
{
    world_stop(w);
    sim_loop_step_wall(w->loop, by_ms);
    manager_world_start(w);
    world_turns(w);
}

/* quotas: the setting, which can ask again, so that its longest wait is not trusted. */
static void
test_ahead_with(const char *routes, const char *quotas, int64_t by_ms, bool is_tried)
{
    struct world w = {0};
    manager_world_begin(&w, routes);
    w.settings.quotas = text_from(quotas);
    world_deliver(&w, "me@x.test", "later@a.test");
    world_saw(&w, "me@x.test>later@a.test ", "deferred");
    restart_at(&w, by_ms);
    world_saw(&w, is_tried ? "me@x.test>later@a.test " : "",
              is_tried ? "tried by the right clock" : "waits its time");
    manager_world_end(&w);
}

static void
test_ahead(const char *routes, int64_t by_ms, bool is_tried)
{
    test_ahead_with(routes, "", by_ms, is_tried);
}

/* The clock was days behind, also the daemon's own. */
static void
test_behind(bool by_restart)
{
    struct world w = {0};
    manager_world_begin(&w, "* smtp://127.0.0.1:1");
    world_deliver(&w, "me@x.test", "later@a.test");
    world_saw(&w, "me@x.test>later@a.test ", "deferred");
    if (by_restart)
        restart_at(&w, 10 * DAY_MS);
    else
        sim_loop_step_wall(w.loop, 10 * DAY_MS);
    world_turns(&w);
    world_saw(&w, "me@x.test>later@a.test ", "due by the right clock");
    ok_named(!world_logged(&w, "status=expired"), "it has not expired");
    for (int i = 0; i < 7 && !world_logged(&w, "status=expired"); i++) {
        sim_loop_advance(w.loop, DAY_MS);
        ok_named(i >= 3 || !world_logged(&w, "status=expired"), "nor in three days");
    }
    ok_named(world_logged(&w, "status=expired"), "but in time");
    manager_world_end(&w);
}

/* The clock was right, is set back, and is right again. */
static void
test_back_and_ahead(int64_t before_ms)
{
    struct world w = {0};
    manager_world_begin(&w, "* smtp://127.0.0.1:1");
    sim_loop_step_wall(w.loop, before_ms);
    world_deliver(&w, "me@x.test", "good@a.test");
    world_saw(&w, "me@x.test>good@a.test ", "an earlier step");
    sim_loop_step_wall(w.loop, -40 * DAY_MS);
    world_turns(&w);
    world_deliver(&w, "me@x.test", "later@a.test");
    world_saw(&w, "me@x.test>later@a.test ", "deferred");
    sim_loop_step_wall(w.loop, 40 * DAY_MS);
    world_turns(&w);
    world_saw(&w, "me@x.test>later@a.test ", "due by the right clock");
    ok_named(!world_logged(&w, "status=expired"), "not as old as the step");
    manager_world_end(&w);
}

/* It is set while the message is in memory, in an attempt. */
TEST(in_memory)
{
    struct world w = {.stalled = true};
    manager_world_begin(&w, "* smtp://127.0.0.1:1");
    w.stalled = true;
    world_deliver(&w, "me@x.test", "later@a.test");
    world_saw(&w, "", "the session has it not yet");
    sim_loop_step_wall(w.loop, 10 * DAY_MS);
    world_turns(&w);
    w.stalled = false;
    world_unstall(&w);
    world_turns(&w);
    ok_named(world_logged(&w, "status=deferred"), "deferred");
    ok_named(!world_logged(&w, "status=expired"), "not expired");
    manager_world_end(&w);
}

/* Files that are written after the step do not count it twice. */
TEST(once)
{
    struct world w = {0};
    manager_world_begin(&w, "* smtp://127.0.0.1:1");
    w.stalled = true;
    world_deliver(&w, "me@x.test", "later@a.test");
    sim_loop_advance(w.loop, 3 * DAY_MS);
    sim_loop_step_wall(w.loop, DAY_MS);
    w.stalled = false;
    world_unstall(&w);
    world_turns(&w);
    ok_named(world_logged(&w, "status=deferred"), "three days old");
    restart_at(&w, 0);
    sim_loop_advance(w.loop, 2 * DAY_MS - 3 * HOUR_MS);
    ok_named(!world_logged(&w, "status=expired"), "nearly five");
    sim_loop_advance(w.loop, 6 * HOUR_MS);
    ok_named(world_logged(&w, "status=expired"), "five are enough");
    manager_world_end(&w);
}

/* It is set while messages are on their way to the disk; what comes first shows it to the
 * scheduler. */
TEST(before_stored)
{
    struct world w = {0};
    manager_world_begin(&w, "* smtp://127.0.0.1:1");
    world_send(&w, "me@x.test", "later@a.test");
    world_send(&w, "me@x.test", "later@b.test");
    sim_loop_step_wall(w.loop, 10 * DAY_MS);
    world_turns(&w);
    ok_named(world_logged(&w, "status=deferred"), "tried and deferred");
    ok_named(!world_logged(&w, "status=expired"), "as young as they are");
    manager_world_end(&w);
}

/* It is held before its first attempt, and released behind the step. */
TEST(released)
{
    struct world w = {0};
    manager_world_begin(&w, "* smtp://127.0.0.1:1");
    w.settings.sched.active_limit = 1;
    world_restart(&w);
    w.stalled = true;
    world_deliver(&w, "me@x.test", "good@a.test");
    world_deliver(&w, "me@x.test", "later@b.test");
    is_number(world_operate(&w, MANAGER_HOLD), MANAGER_DONE, "it is not in memory");
    w.stalled = false;
    world_unstall(&w);
    sim_loop_step_wall(w.loop, 10 * DAY_MS);
    world_turns(&w);
    is_number(world_operate(&w, MANAGER_RELEASE), MANAGER_DONE, "released");
    world_turns(&w);
    ok_named(world_logged(&w, "status=deferred"), "tried and deferred");
    ok_named(!world_logged(&w, "status=expired"), "not older than it is");
    manager_world_end(&w);
}

int
main(void)
{
    tap_tests("");
    test_ahead("* smtp://127.0.0.1:1", -10 * DAY_MS, true);
    test_ahead("* smtp://127.0.0.1:1", -5 * HOUR_MS, true);
    test_ahead("* smtp://127.0.0.1:1", -HOUR_MS, false);
    test_ahead("* smtp://127.0.0.1:1?maximal_backoff=10h", -5 * HOUR_MS, false);
    test_ahead_with("* smtp://127.0.0.1:1", "domain:* 1000/d", -20 * HOUR_MS, true);
    test_behind(false);
    test_behind(true);
    test_back_and_ahead(0);
    test_back_and_ahead(26 * HOUR_MS);
    return done();
}
