/* sched/sched_backlog.c: mail to several sites, whose domains come in any order. */
#include "sched/sched.h"

#include "t/support/sched_world.h"

enum { ACTIVE = 40, SHARE = 5 };

static void
excess_start(struct world *w)
{
    sched_world_start(w, ACTIVE, 100);
    sched_change(w->s, &(struct sched_settings){.active_limit = ACTIVE,
                                                .session_limit = 100,
                                                .site_share = SHARE});
    w->target.transport.adaptive = 1;
    w->may_be_early = true;
}

/* Domains b and d are of the site "mx:10 two", all others of "mx:10 one". */
static void
find_sites(struct world *w)
{
    static const struct {
        const char *domain, *site;
    } all[] = {
        {"a.example", "mx:10 one"},
        {"b.example", "mx:10 two"},
        {"c.example", "mx:10 one"},
        {"d.example", "mx:10 two"},
        {"g.example", "mx:10 one"},
        {"h.example", "mx:10 one"},
        {"i.example", "mx:10 one"}
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        world_add(w, all[i].domain, 0, 0);
        world_run(w);
        struct channel *c = world_channel(w, all[i].domain, 0);
        ok(c != NULL &&
           sched_session_found(w->s, c->session, text_from(all[i].site)));
    }
}

/* The domains alternate between the sites: each site is asked once, with what others
 * have. */
TEST(alternating)
{
    FIXTURE(world, w, excess_start, sched_world_end);
    find_sites(&w);
    for (int i = 0; i < 2 * ACTIVE; i++)
        world_add(&w, i % 2 == 0 ? "a.example" : "b.example", 0, 0);
    world_run(&w);
    size_t one = world_site(&w, "mx:10 one").site.backlogged;
    ok_named(one > 0, "the first site has a backlog");
    ok_named(world_site(&w, "mx:10 two").site.backlogged > 0, "the second, too");
    unsigned both = world_add(&w, "a.example b.example c.example d.example", 0, 0);
    unsigned other = world_add(&w, "a.example b.example e.example c.example", 0, 0);
    world_run(&w);
    ok_named(!w.mails[both].loaded, "it waits behind them");
    is_number((long long)world_site(&w, "mx:10 one").site.backlogged, (long long)one + 1,
              "once, for its first site");
    ok_named(w.mails[other].loaded, "with a third site it does not");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, w.count, "all are delivered");
}

/* Alone it stays, however many domains of one site it has. */
TEST(alone)
{
    enum { LIMIT = 8, OTHERS = 5 };
    FIXTURE(world, w, excess_start, sched_world_end);
    find_sites(&w);
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    sched_change(w.s, &(struct sched_settings){.active_limit = LIMIT,
                                               .session_limit = 100,
                                               .site_share = 50});
    for (int i = 0; i < OTHERS; i++) {
        char domain[WORLD_DOMAIN];
        snprintf(domain, sizeof(domain), "f%d.example", i);
        world_add(&w, domain, 0, 0);
    }
    unsigned first = world_add(&w, "a.example c.example g.example h.example i.example", 0, 0);
    unsigned second = world_add(&w, "a.example c.example g.example h.example i.example", 0, 0);
    world_run(&w);
    ok_named(w.mails[first].loaded, "its own domains do not count");
    ok_named(!w.mails[second].loaded, "those of others do");
    is_number(w.backlogged, 1, "only the second was put back");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, w.count, "all are delivered");
}

/* An operator that retries all mail, one by one and again, cannot make a backlog
 * grow. */
TEST(retried_in_vain)
{
    enum { MAILS = 400 };
    FIXTURE(world, w, excess_start, sched_world_end);
    for (int i = 0; i < MAILS; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int round = 0; round < 10; round++) {
        for (unsigned i = 0; i < w.count; i++)
            (void)sched_retry(w.s, w.mails[i].id);
        world_run(&w);
    }
    size_t backlogged = world_site(&w, "smtp:a.example").site.backlogged;
    is_number((long long)backlogged + w.active, MAILS, "each waits once");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, MAILS, "all are delivered");
    ok_named(world_site(&w, "smtp:a.example").site.backlogged == 0, "none waits");
}

/* Mail that came out of turn, by an operator, and was deferred waits for its time: the
 * world aborts if a site recalls it before. */
TEST(retried_and_deferred)
{
    enum { MAILS = 300, CHOSEN = 100 };
    FIXTURE(world, w, excess_start, sched_world_end);
    sched_change(w.s, &(struct sched_settings){.active_limit = 100,
                                               .session_limit = 1,
                                               .site_share = 20});
    w.may_be_early = false;
    for (int i = 0; i < MAILS; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    ok_named(!w.mails[CHOSEN].loaded, "it waits on disk");
    ok(sched_retry(w.s, w.mails[CHOSEN].id));
    world_run(&w);
    ok_named(w.mails[CHOSEN].loaded, "it comes out of turn");
    for (struct channel *c; (c = world_channel(&w, "", 0)) != NULL;) {
        if (!channel_take(&w, c))
            channel_end(&w, c, NULL);
        else if (channel_mail(&w, c) == &w.mails[CHOSEN])
            channel_answer(&w, c, VERDICT_DEFERRED, BLAME_MESSAGE);
        else
            channel_send(&w, c);
    }
    is_number(w.finishes, MAILS - 1, "all others are delivered");
    is_number(w.mails[CHOSEN].deferrals, 1, "it was tried once");
    ok_named(sched_find(w.s, w.mails[CHOSEN].id).due_ms > w.now, "and waits");
}

/* Mail of a dead site goes while it waits: the backlog forgets it although nothing else
 * makes the site prune it. */
TEST(dies_again)
{
    enum { ROUNDS = 60, EACH = 20 };
    unsigned deaths = 0;
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 100);
    w.target.transport.adaptive = 1;
    w.may_be_early = true;
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    ok(sched_session_found(w.s, c->session, TEXT("mx:10 one")));
    channel_refuse(&w, c);
    for (int round = 0; round < ROUNDS; round++) {
        unsigned first = w.count;
        for (int i = 0; i < EACH; i++)
            world_add(&w, "a.example", 0, 0);
        world_run(&w);
        for (unsigned i = first; i < w.count; i++) {
            world_must(sched_forget(w.s, w.mails[i].id), "it waits");
            w.mails[i].gone = true;
        }
        world_pass(&w, 3600000);
        for (; (c = world_channel(&w, "", 0)) != NULL; deaths++)
            channel_refuse(&w, c);
    }
    ok_named(deaths > ROUNDS / 2, "it dies again and again");
    size_t backlogged = world_site(&w, "mx:10 one").site.backlogged;
    printf("# %zu in the backlog\n", backlogged);
    ok_named(backlogged >= 1 && backlogged <= EACH, "what has gone is forgotten");
}
