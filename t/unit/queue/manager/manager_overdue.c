/* link: t/sim/loop.c */
/* Mail whose lifetime ends while it waits in memory for its turn. */
#include "t/support/manager_world.h"

static const char waited[] = "status=expired (it has waited for its turn at ";

/* A session that is being opened is an attempt, however long that takes. */
TEST(attempted)
{
    static const struct {
        const char *routes, *name;
    } cases[] = {
        {"* smtp://a.test?lifetime=0",               "0 ends with the first attempt"      },
        {"* smtp://a.test?lifetime=0&concurrency=1",
         "also where it is the only session"                                              },
        {"* smtp://a.test?lifetime=20s",             "no lifetime ends before the attempt"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        FIXTURE(world, w, manager_world_begin, manager_world_end, cases[i].routes);
        w.stalled = true;
        world_deliver(&w, "ann@a.test", "good@x.test");
        sim_loop_advance(w.loop, 60000);
        ok_named(!world_logged(&w, "status=expired"), "it is being served");
        world_unstall(&w);
        world_turns(&w);
        is_number(w.attempts, 1, cases[i].name);
        ok(world_is_empty(&w));
    }
}

TEST(rate)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://a.test?lifetime=0&rate=1/h");
    world_deliver(&w, "ann@a.test", "good@x.test");
    world_deliver(&w, "ann@a.test", "good@x.test");
    sim_loop_advance(w.loop, 3000000);
    is_number(w.attempts, 1, "the rate permits one");
    sim_loop_advance(w.loop, 700000);
    is_number(w.attempts, 2, "the other one has its first attempt, too");
    ok(world_is_empty(&w));
}

/* All that is overdue ends at once, not one message a moment. */
TEST(many)
{
    enum { MANY = 400, MINUTE_MS = 60000 };
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://a.test?lifetime=60m&rate=1/d");
    for (int i = 0; i < MANY; i++)
        world_send(&w, "ann@a.test", "good@x.test");
    world_turns(&w);
    is_number(w.attempts, 1, "the rate permits one");
    sim_loop_advance(w.loop, 59 * MINUTE_MS);
    ok_named(!world_logged(&w, waited), "none is too early");
    sim_loop_advance(w.loop, MINUTE_MS + 2000);
    ok_named(world_logged(&w, waited), "the log says what it waited for");
    is_number(sched_count(manager_sched(w.manager)).active, MANY - 1,
              "its reports wait there now");
}

/* The first that the host hears of a step is the mail itself; and steps of less than an hour,
 * as those look that came while it slept, are large together. */
TEST(clock_was_set)
{
    enum { HOUR_MS = 3600000 };
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://a.test");
    world_turns(&w);
    sim_loop_step_wall(w.loop, INT64_C(-40) * 24 * HOUR_MS);
    for (int i = 0; i < 4; i++) {
        world_deliver(&w, "ann@a.test", "later@x.test");
        ok_named(!world_logged(&w, "status=expired"), "it is new, and waits");
        (void)world_operate(&w, MANAGER_REMOVE);
        sim_loop_advance(w.loop, HOUR_MS / 3);
        sim_loop_step_wall(w.loop, -HOUR_MS);
    }
}
