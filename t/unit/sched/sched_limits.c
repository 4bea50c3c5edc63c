/* An operator ends what a site has taught: rate, death, the state from before a restart. */
#include "sched/site_memory.h"
#include "t/support/sched_world.h"

static void
begin(struct world *w)
{
    sched_world_start(w, 100, 100);
    w->target.transport.adaptive = true;
}

/* One message passes, the next is told to slow down. */
static void
slow_down(struct world *w)
{
    struct outcome slow =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 421, "4.7.0", "too fast, slow down");
    for (int i = 0; i < 20; i++)
        world_add(w, "a.example", 0, 0);
    world_run(w);
    struct channel *c = world_channel(w, "", 0);
    world_must(channel_take(w, c), "mail");
    channel_send(w, c);
    world_must(channel_take(w, c), "more");
    channel_settle(w, c, 0, &slow);
    c->busy = false;
    world_run(w);
}

TEST(rate)
{
    FIXTURE(world, w, begin, sched_world_end);
    slow_down(&w);
    struct sched_site site = world_site(&w, "smtp:a.example").site;
    ok_named(site.rate > 0 && site.rate_since_ms == w.now, "a rate is learnt");
    ok_named(site.bound == SCHED_BOUND_LEARNT_RATE, "and binds");
    ok_named(!sched_forget_limits(w.s, "smtp:b.example"), "no such site");
    is_number(world_site(&w, "smtp:a.example").site.rate, site.rate, "nothing changes");
    ok_named(sched_forget_limits(w.s, "SMTP:A.example"), "by its name");
    site = world_site(&w, "smtp:a.example").site;
    is_number(site.rate, 0, "there is none");
    ok_named(site.bound != SCHED_BOUND_LEARNT_RATE, "and mail is not bound");
    world_run(&w);
    ok_named(channel_take(&w, world_channel(&w, "", 0)), "it leaves in this turn");
}

TEST(dead)
{
    FIXTURE(world, w, begin, sched_world_end);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(sched_count(w.s).dead, 1, "a dead site");
    w.may_be_early = true;
    ok_named(sched_forget_limits(w.s, "smtp:a.example"), "is known");
    world_run(&w);
    is_number(sched_count(w.s).dead, 0, "and lives");
    is_number(world_channels(&w, "a.example"), 1, "one session tries");
}

TEST(state)
{
    struct world w;
    struct site_state r = {
        .key = "smtp: smtp:a.example",
        .learnt = {.phase = LEARNT_HELD, .rate = LEARNT_MIN, .known = LEARNT_MIN}
    };
    for (int forgets = 0; forgets < 2; forgets++) {
        begin(&w);
        r.at_ms = r.learnt.refused_at_ms = r.learnt.next_at_ms = w.now;
        sched_recall(w.s, &r);
        ok(!sched_forget_limits(w.s, "smtp:a"));
        if (forgets)
            ok_named(sched_forget_limits(w.s, "smtp:a.example"),
                     "a site without mail since startup");
        world_add(&w, "a.example", 0, 0);
        world_run(&w);
        is_number(world_site(&w, "smtp:a.example").site.rate, forgets ? 0 : LEARNT_MIN,
                  forgets ? "begins without a rate" : "a rate is recalled");
        sched_world_end(&w);
    }
}

/* The key of a site by MX has spaces. */
TEST(state_by_mx)
{
    struct site_state r = {.key = "smtp: mx:10 m.example,20 n.example"};
    FIXTURE(world, w, begin, sched_world_end);
    r.at_ms = w.now;
    sched_recall(w.s, &r);
    ok_named(!sched_forget_limits(w.s, "n.example"),
             "a part of its name is none");
    ok_named(sched_forget_limits(w.s, "mx:10 m.example,20 N.example"),
             "by its whole name");
}
