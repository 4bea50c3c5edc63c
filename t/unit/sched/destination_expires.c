/* The result of a look-up holds for some time only: then a session of its own looks it up. */
#include "sched/destination.h"

#include "t/support/sched_world.h"

/* The demand of a domain may change while sessions of other domains could carry its mail: after some time it
 * is looked up again. */
TEST(expires)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example b.example", 1);
    world_run(&w);
    struct channel *a = world_channel(&w, "a.example", 0), *b = world_channel(&w, "b.example", 0);
    sched_session_demand(w.s, a->session, 0, 3600000);
    ok(channel_found(&w, a, "mx:10 m") && channel_found(&w, b, "mx:10 m"));
    channel_drain(&w, a);
    while (channel_take(&w, b))
        channel_send(&w, b);
    is_number(w.open_now, 1, "the session of the other domain stays");
    w.now += 3599000;
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    is_number(w.open_now, 1, "while the answer holds it may carry mail");
    ok(sched_has_work(w.s, b->session) && channel_take(&w, b));
    channel_send(&w, b);
    w.now += 1000;
    world_add_many(&w, "a.example", 2);
    world_add_many(&w, "b.example", 1);
    world_run(&w);
    is_number(world_channels(&w, "a.example"), 2, "then the domain gets sessions of its own");
    ok_named(channel_take(&w, b), "the other domain's mail");
    channel_send(&w, b);
    ok_named(!sched_has_work(w.s, b->session) && !channel_take(&w, b), "but no mail of this one");
    is_number(world_site(&w, "smtp:a.example").site.waiting, 2, "which waits at its own site");
    a = world_channel(&w, "a.example", 0);
    sched_session_demand(w.s, a->session, 77, 3600000);
    ok(channel_found(&w, a, "mx:10 m"));
    is_number(world_site(&w, "mx:10 m").site.waiting, 2, "until it is known what it demands now");
    ok_named(!sched_has_work(w.s, b->session) && !channel_take(&w, b), "the other session carries none of it");
    is_number(channel_drain(&w, a), 2, "its own does");
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
}

/* A dead site stays the site of its domains, and a clock that is set back does not prolong an answer. */
TEST(expires_dead)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    struct channel *a = world_channel(&w, "a.example", 0);
    sched_session_demand(w.s, a->session, 0, 1000);
    ok(channel_found(&w, a, "mx:10 m"));
    channel_refuse(&w, a);
    ok(world_site(&w, "mx:10 m").site.dead_until_ms > 0);
    w.now += 2000;
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    is_number(w.open_now, 0, "mail for a dead site opens no session");
    is_number(world_site(&w, "mx:10 m").site.backlogged, 2, "and waits for it");
}
