/* manager_overdue.c: the sender of mail that waits for its turn in memory, without an
 * attempt, is notified of the delay in time, once a time of its route. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

#include <string.h>

enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS, HOUR_MS = 60 * MINUTE_MS };

#define ROUTES                                                                         \
    "slow.test smtp://sink.test?rate=1/d&notices=1h,3h&lifetime=10h\n* smtp://x"

/* How often that was logged since startup. */
static unsigned
waiting_logged(const struct world *w, const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text((struct buffer *)&w->lines), line;
    while (text_cut(&rest, '\n', &line))
        count += memmem(line.at, line.length, words, strlen(words)) != NULL;
    return count;
}

static void
notified(const struct world *w, unsigned wanted, const char *name)
{
    is_number(waiting_logged(w, ": sender notified of the delay: "), wanted, name);
}

/* One message has the day's only turn; the next ones wait. */
static void
begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    world_deliver(w, "bob@a.test", "good@slow.test");
    is_number(w->attempts, 1, "the rate allows one");
}

TEST(times)
{
    FIXTURE(world, w, begin, manager_world_end, ROUTES);
    world_deliver(&w, "ann@a.test", "good@slow.test good@slow.test");
    is_number(world_place(&w), SCHED_ACTIVE, "it waits in memory");
    sim_loop_advance(w.loop, HOUR_MS - MINUTE_MS);
    notified(&w, 0, "before the time nothing");
    sim_loop_advance(w.loop, 2 * MINUTE_MS);
    notified(&w, 1, "within a minute");
    ok(world_logged(&w, "it waits for its turn at "));
    is_number(world_place(&w), SCHED_ACTIVE, "it waits for its turn again");
    sim_loop_advance(w.loop, 2 * HOUR_MS - 3 * MINUTE_MS);
    notified(&w, 1, "once");
    sim_loop_advance(w.loop, 2 * MINUTE_MS);
    notified(&w, 2, "and at the next time");
    sim_loop_advance(w.loop, 6 * HOUR_MS);
    notified(&w, 2, "there is no other");
    world_restart(&w);
    sim_loop_advance(w.loop, 10 * MINUTE_MS);
    notified(&w, 2, "nor after a restart");
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(world_place(&w), SCHED_UNKNOWN, "then its lifetime is over");
}

/* The time passed while no daemon ran, or while it waited on the disk. */
TEST(late)
{
    FIXTURE(world, w, begin, manager_world_end, ROUTES);
    world_deliver(&w, "ann@a.test", "good@slow.test");
    world_stop(&w);
    sim_loop_advance(w.loop, 4 * HOUR_MS);
    w.stalled = true; /* a session is open, and takes nothing */
    manager_world_start(&w);
    sim_loop_advance(w.loop, MINUTE_MS);
    notified(&w, 1, "one for two times that have passed");
}

TEST(nobody)
{
    FIXTURE(world, w, begin, manager_world_end, ROUTES);
    world_deliver(&w, "", "good@slow.test");
    w.notify = NOTIFY_NEVER;
    world_deliver(&w, "ann@a.test", "good@slow.test");
    sim_loop_advance(w.loop, 4 * HOUR_MS);
    notified(&w, 0, "not the null sender, nor with NOTIFY=NEVER");
    is_number(waiting_logged(&w, "it waits for its turn at "), 0,
              "and these wait without a pause");
}

TEST(reload)
{
    FIXTURE(world, w, begin, manager_world_end,
          "slow.test smtp://sink.test?rate=1/d&notices=9h&lifetime=10h\n* smtp://x");
    world_deliver(&w, "ann@a.test", "good@slow.test");
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    notified(&w, 0, "its time is far");
    struct route_table *before = w.routes;
    w.routes_text.routes = TEXT(ROUTES);
    struct route_table *fresh = world_routes(&w);
    manager_reload(w.manager, &w.settings, fresh);
    sim_loop_advance(w.loop, 11 * MINUTE_MS);
    notified(&w, 1, "a reload brings it nearer");
    manager_reload(w.manager, &w.settings, before);
    route_free(&fresh);
}
