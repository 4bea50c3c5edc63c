/* After a reload: mail that waits for a next hop to which no route leads goes the new
 * way at once. And hosts that refuse our password are asked seldom. */
#include "sched/site.h"

#include "t/support/sched_world.h"

static struct route_table *
table_of(const char *relay, const char *passwords)
{
    struct route_settings s = {.relay = text_from(relay),
                               .passwords = text_from(passwords)};
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    transport_params_default(&s.base);
    struct route_table *t = route_new(&s, &mistakes);
    if (!t)
        printf("# %.*s", TEXT_ARGS(buffer_text(&mistakes)));
    buffer_free(&mistakes);
    return t;
}

static void
world_route(struct world *w, struct route_table **table, const char *relay,
            const char *passwords)
{
    struct address address;
    struct sched_settings settings = {
        .active_limit = 100, .session_limit = 100, .seed = 7};
    struct route_table *was = *table;
    *table = table_of(relay, passwords);
    world_must(*table && address_parse(TEXT("x@a.example"), &address), "routes");
    memcpy(&w->target, route_find(*table, &address), sizeof(w->target));
    if (!was)
        return;
    sched_change(w->s, &settings);
    sched_rerouted(w->s, was, *table);
    route_free(&was);
    world_run(w);
}

/* Nobody answers there. */
static void
refuse_all(struct world *w)
{
    while (world_channels(w, "") > 0)
        channel_refuse(w, world_channel(w, "", 0));
}

/* Other limits of the same route hold at once, for mail that is in memory, too. */
TEST(limits)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 100);
    world_route(&w, &table, "smtp://a.example?rate=1/h&concurrency=1", "");
    for (int i = 0; i < 6; i++)
        world_add(&w, "x.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    world_must(c && channel_take(&w, c), "the first is taken");
    channel_send(&w, c);
    is_number(w.finishes, 1, "one in the hour");
    world_pass(&w, 10000);
    is_number(world_channels(&w, ""), 1, "a session stays");
    ok(!channel_take(&w, world_channel(&w, "", 0)));
    world_route(&w, &table, "smtp://a.example?rate=1/s&concurrency=3", "");
    is_number(w.loads, 6, "no mail is loaded anew");
    ok_named(world_channel(&w, "", 0) == c, "the session stays");
    for (int i = 0; i < 2; i++) {
        ok(!channel_take(&w, c));
        world_pass(&w, 1000);
        ok_named(channel_take(&w, c), "by the new rate the next passes within a second");
        channel_send(&w, c);
    }
    is_number(world_site(&w, "smtp:[a.example]:25").site.window, 3, "within the new concurrency");
    world_route(&w, &table, "smtp://a.example?rate=1/s&concurrency=1", "");
    is_number(world_site(&w, "smtp:[a.example]:25").site.window, 1, "and it can be lowered");
    world_route(&w, &table, "smtp://a.example", "");
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 6, "without a rate all go");
    sched_world_end(&w);
    route_free(&table);
}

/* A quota that a reload adds counts from then on, one that it changes holds immediately. */
TEST(quota)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 100);
    world_route(&w, &table, "smtp://a.example", "");
    world_add(&w, "x.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    world_must(c && channel_take(&w, c), "the first is taken");
    world_route(&w, &table, "smtp://a.example?quota=2/d", "");
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    is_number(w.finishes, 1, "one is sent before, which does not count");
    for (int i = 0; i < 6; i++)
        world_add(&w, "x.example", 0, 0);
    world_run(&w);
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 3, "the quota counts");
    world_route(&w, &table, "smtp://a.example?quota=3/d", "");
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 4, "another one holds for the mail that waits");
    world_route(&w, &table, "smtp://a.example", "");
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 7, "and its end, too");
    sched_world_end(&w);
    route_free(&table);
}

TEST(dead)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 100);
    w.may_be_early = true;
    world_route(&w, &table, "smtp://a.example", "");
    for (int i = 0; i < 10; i++)
        world_add(&w, "x.example y.example", 0, 0);
    world_run(&w);
    refuse_all(&w);
    ok_named(world_site(&w, "smtp:[a.example]:25").site.dead_until_ms > 0, "A is dead");
    is_number(w.waits, 10, "its mail waits");
    world_pass(&w, 1000);
    world_route(&w, &table, "smtp://a.example", "");
    is_number(w.loads, 10, "a reload that changes nothing moves nothing");
    world_route(&w, &table, "smtp://b.example", "");
    is_number(w.loads, 20, "all come at once for B");
    ok(world_channels(&w, "") > 0);
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 10, "and are delivered");
    sched_world_end(&w);
    route_free(&table);
}

/* Those that are connecting when the reload comes. */
TEST(under_way)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 100);
    w.may_be_early = true;
    world_route(&w, &table, "smtp://a.example", "");
    for (int i = 0; i < 3; i++)
        world_add(&w, "x.example", 0, 0);
    world_run(&w);
    world_route(&w, &table, "smtp://b.example", "");
    is_number(w.loads, 3, "what is in memory stays there");
    refuse_all(&w);
    world_pass(&w, 10);
    is_number(w.loads, 6, "but comes back at once when A cannot be reached");
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 3, "for B");
    world_route(&w, &table, "smtp://a.example", "");
    world_add(&w, "x.example", 0, 0);
    world_run(&w);
    refuse_all(&w);
    world_pass(&w, 10);
    is_number(w.loads, 7, "A again, which fails: that mail waits as ever");
    sched_world_end(&w);
    route_free(&table);
}

static void
refuse_login(struct world *w, struct channel *c)
{
    struct outcome o =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 535, "4.7.8", "refuses our user");
    channel_end(w, c, &o);
}

TEST(login)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 100);
    w.may_be_early = true;
    world_route(&w, &table, "smtp://joe@a.example", "a.example joe wrong");
    for (int i = 0; i < 10; i++)
        world_add(&w, "x.example", 0, 0);
    world_run(&w);
    is_number(world_channels(&w, ""), 1, "nobody has tried the password yet: one does");
    refuse_login(&w, world_channel(&w, "", 0));
    is_number(w.waits, 10, "all wait after the first refusal");
    unsigned tries = w.opens;
    for (int minute = 0; minute < 24 * 60; minute++) {
        world_pass(&w, 60000);
        world_must(world_channels(&w, "") <= 1, "one at a time");
        while (world_channels(&w, "") > 0)
            refuse_login(&w, world_channel(&w, "", 0));
    }
    tries = w.opens - tries;
    printf("# %u in a day\n", tries);
    ok_named(tries >= 10 && tries <= 30, "some tries in a day, not hundreds");
    w.now += 1;
    world_route(&w, &table, "smtp://joe@a.example", "a.example joe right");
    is_number(world_channels(&w, ""), 1, "another password is tried at once, by one");
    struct channel *c = world_channel(&w, "", 0);
    ok_named(channel_take(&w, c), "it is right");
    channel_send(&w, c);
    ok_named(world_channels(&w, "") > 1, "others follow");
    while (world_channels(&w, "") > 0)
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 10, "all are delivered");
    sched_world_end(&w);
    route_free(&table);
}

/* After it has greeted five failures are forgiven; a refused login is not. */
TEST(login_later)
{
    struct world w;
    struct route_table *table = NULL;
    sched_world_start(&w, 100, 100);
    w.may_be_early = true;
    world_route(&w, &table, "smtp://joe@a.example", "a.example joe right");
    world_add(&w, "x.example", 0, 0);
    world_run(&w);
    channel_drain(&w, world_channel(&w, "", 0));
    world_pass(&w, 1000);
    world_add(&w, "x.example", 0, 0);
    world_run(&w);
    refuse_login(&w, world_channel(&w, "", 0));
    ok_named(world_site(&w, "smtp:joe@[a.example]:25?tls=verify").site.dead_until_ms >=
                 w.now + 240000,
             "once is enough, for minutes");
    sched_world_end(&w);
    route_free(&table);
}
