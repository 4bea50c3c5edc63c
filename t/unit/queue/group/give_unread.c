/* link: t/sim/loop.c */
/* A taker that cannot read the form of what it is given: the next one gets it. */
#include "t/support/group_world.h"

#include "t/support/must.h"

/* B cannot read the form; C, of a newer version, can. */
TEST(older)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *older = kit_wire_add(&g.wire, "relay3");
    g.b.all_good = true;
    older->weather = KIT_OLDER;
    for (int i = 0; i < 100; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 10 * 1000);
    is_number(g.over, 1, "nothing is left");
    struct give_progress p = give_progress(g.give);
    ok(p.given == 100 && p.refused == 0 && p.refusal[0] == '\0');
    ok_named(older->asked > 30 && older->asked <= 100, "once each, in turn");
    ok(world_is_empty(&g.a) && older->taken == 0);
}

/* Until the one that can is back; others are given meanwhile. What none can read stays, and
 * is not refused over and over. */
TEST(older_waits)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *older = kit_wire_add(&g.wire, "relay3");
    older->weather = KIT_OLDER;
    g.host->weather = KIT_CLOSED;
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 10 * 1000);
    is_number(g.over, 0, "it goes on");
    is_number(give_progress(g.give).refused, 0, "nothing stays");
    ok_named(older->asked >= 20 && older->asked <= 20 * 11, "all are tried, once a second");
    g.host->weather = KIT_OLDER;
    group_world_pass(&g, 10 * 1000);
    is_number(g.over, 1, "no host can");
    struct give_progress p = give_progress(g.give);
    ok(p.given == 0 && p.refused == 20);
    ok_named(strstr(p.refusal, ": not here") != NULL, "and why");
    give_free(&g.give);
    g.host->weather = KIT_FAIR;
    group_world_start(&g);
    group_world_pass(&g, 10 * 1000);
    ok(g.over == 2 && give_progress(g.give).given == 20);
}

/* The one that can read it goes for good: what the others refused stays. */
TEST(older_alone)
{
    FIXTURE(group_world, g, group_world_begin, group_world_end, GROUP_WORLD_ROUTE);
    struct kit_host *older = kit_wire_add(&g.wire, "relay3");
    older->weather = KIT_OLDER;
    g.host->weather = KIT_STUCK;
    g.host->most = 1;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    world_deliver(&g.a, "me@a.test", "later@b.test");
    group_world_start(&g);
    group_world_pass(&g, 2000);
    is_number(give_progress(g.give).left, 2, "one is at the newer host, one waits for it");
    g.host->state = "leaving";
    group_world_pass(&g, 2000);
    is_number(give_progress(g.give).refused, 1, "the other one stays");
    g.host->weather = KIT_OLDER;
    group_world_pass(&g, 2000);
    is_number(g.over, 1, "nothing more can be given");
    is_number(give_progress(g.give).refused, 2, "both stay");
}
