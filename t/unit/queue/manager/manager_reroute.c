/* link: t/sim/loop.c */
/* After a reload mail that waits in memory for the target of an old route goes by the new
 * one: whatever holds it back there, and whatever has become of its route. */
#include "t/support/manager_world.h"
#include "t/support/sites_look.h"

#include <limits.h>

static char last_host[TARGET_HOST_MAX];

static void
open_noted(void *context, struct sched_session *session, const struct target *target,
           const char *domain)
{
    snprintf(last_host, sizeof(last_host), "%s", target->host);
    fake_open(context, session, target, domain);
}

static void
note_hosts(struct world *w)
{
    manager_set_channel(w->manager, TARGET_SMTP, open_noted, w);
}

static void
begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    w->plug = note_hosts;
    world_restart(w);
}

static void
reload(struct world *w, const char *text)
{
    struct route_table *was = w->routes;
    w->routes_text.routes = text_from(text);
    w->routes = world_routes(w);
    manager_reload(w->manager, &w->settings, w->routes);
    route_free(&was);
}

/* One goes, the others wait for a day in memory. */
static void
begin_bound(struct world *w, const char *routes)
{
    begin(w, routes);
    world_deliver(w, "ann@a.test", "good@x.test");
    world_deliver(w, "ann@a.test", "good@x.test");
    world_deliver(w, "bob@a.test", "good@y.test");
    is_number(w->attempts, 1, "the rate permits one");
    is_number(sched_count(manager_sched(w->manager)).active, 2, "two wait in memory");
}

static void
is_done(struct world *w, unsigned attempts, const char *name)
{
    world_turns(w);
    sim_loop_advance(w->loop, 2000);
    is_number(w->attempts, attempts, name);
    ok_named(world_is_empty(w), "the queue is empty");
    ok_named(!world_logged(w, "status=deferred"), "none was deferred");
}

TEST(kinds)
{
    static const struct {
        const char *from, *to, *host;
        unsigned attempts;
    } cases[] = {
        {"* smtp://a.test?rate=1/d",  "* smtp://b.test",                  "b.test", 3},
        {"* smtp://a.test?rate=1/d",  "* smtp://a.test?tls=none",         "a.test", 3},
        {"* smtp://a.test?quota=1/d", "* smtp://b.test",                  "b.test", 3},
        {"* smtp://a.test?rate=1/d",  "* discard",                        "a.test", 1},
        {"* smtp://a.test?rate=1/d",
         "x.test smtp://a.test, y.test smtp://a.test?recipients=2",       "a.test", 3},
        {"* smtp://a.test?rate=1/d",  "* smtp://a.test?rate=1/s,burst=9", "a.test", 3},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        FIXTURE(world, w, begin_bound, manager_world_end, cases[i].from);
        reload(&w, cases[i].to);
        is_done(&w, cases[i].attempts, cases[i].to);
        is_string(last_host, cases[i].host, "its host");
    }
}

/* Two targets become one, or one becomes two of which one is the old one. */
TEST(merged_and_split)
{
    struct world w;
    begin(&w, "x.test smtp://a.test?rate=1/d, y.test smtp://a.test?rate=1/d&reuse=1");
    for (int i = 0; i < 3; i++) {
        world_deliver(&w, "ann@a.test", "good@x.test");
        world_deliver(&w, "ann@a.test", "good@y.test");
    }
    is_number(w.attempts, 2, "one each");
    reload(&w, "* smtp://a.test?concurrency=3");
    is_done(&w, 6, "merged");
    manager_world_end(&w);
    begin_bound(&w, "* smtp://a.test?rate=1/d");
    reload(&w, "y.test smtp://a.test, * smtp://a.test?rate=1/d");
    world_turns(&w);
    is_number(w.attempts, 2, "split: that of y.test goes");
    reload(&w, "* smtp://a.test");
    is_done(&w, 3, "and then all");
    manager_world_end(&w);
}

/* A message of which a session has had a part: the attempt ends, and the rest goes at
 * once by the new route. */
TEST(touched)
{
    FIXTURE(world, w, begin, manager_world_end, "* smtp://a.test?rate=1/d&recipients=1");
    world_deliver(&w, "ann@a.test", "good@x.test good@y.test good@z.test");
    is_number(w.attempts, 1, "one recipient is served");
    reload(&w, "* smtp://b.test");
    world_turns(&w);
    sim_loop_advance(w.loop, 100);
    is_number(w.attempts, 3, "each once");
    is_string(last_host, "b.test", "by the new route");
    ok(world_is_empty(&w));
    ok_named(world_logged(&w, "its route has changed"), "the log says why");
}

/* While a session has some of it, and twice in a turn. */
TEST(in_session)
{
    FIXTURE(world, w, begin, manager_world_end, "* smtp://a.test?concurrency=1");
    w.stalled = true;
    for (int i = 0; i < 5; i++)
        world_deliver(&w, "ann@a.test", "good@x.test");
    reload(&w, "* smtp://b.test");
    reload(&w, "* smtp://c.test");
    world_turns(&w);
    w.stalled = false;
    world_unstall(&w);
    is_done(&w, 5, "each once");
    is_string(last_host, "c.test", "by the last route");
}

/* Held by a new route, and released by the next. */
TEST(hold)
{
    struct world w;
    begin_bound(&w, "* smtp://a.test?rate=1/d");
    reload(&w, "* hold");
    world_turns(&w);
    is_number(world_files(&w, "hold"), 2, "held");
    is_number(sched_count(manager_sched(w.manager)).active, 0, "none in memory");
    manager_world_end(&w);
    begin_bound(&w, "* smtp://a.test?rate=1/d");
    reload(&w, "y.test error:5.1.1 gone, * smtp://a.test");
    world_turns(&w);
    ok_named(world_logged(&w, "status=bounced") && world_is_empty(&w),
             "refused by a new route");
    manager_world_end(&w);
}

struct waiting {
    const char *key;
    size_t recipients;
};

static void
count_waiting(void *context, const struct sched_site *site)
{
    struct waiting *waiting = context;
    if (strcmp(site->key, waiting->key) == 0)
        waiting->recipients += site->waiting;
}

static size_t
waits_for(const struct world *w, const char *key)
{
    struct waiting waiting = {.key = key};
    sites_look(manager_sched(w->manager), count_waiting, &waiting);
    return waiting.recipients;
}

/* Many messages: the turn is not longer for it. */
TEST(many)
{
    enum { MANY = 6000 };
    FIXTURE(world, w, begin, manager_world_end, "* smtp://a.test?rate=1/d");
    w.settings.sched.active_limit = MANY + 1;
    w.settings.sched.recipient_limit = MANY + 1;
    reload(&w, "* smtp://a.test?rate=1/d");
    for (int i = 0; i < MANY; i++)
        world_send(&w, "ann@a.test", "good@x.test");
    world_turns(&w);
    is_number(sched_count(manager_sched(w.manager)).active, MANY - 1,
              "all wait in memory");
    w.stalled = true;
    reload(&w, "* smtp://b.test");
    loop_turn(w.loop, 0);
    ok_named(waits_for(&w, "smtp:[a.test]:25") > MANY / 2, "a turn moves some of them");
    w.stalled = false;
    world_unstall(&w);
    is_done(&w, MANY, "all");
}

static bool
is_any_astray(void *context, unsigned index, const struct target *target)
{
    (void)context, (void)index, (void)target;
    return true;
}

/* A message that has been seen in part, and has come back with fewer recipients. */
TEST(fewer)
{
    unsigned slot = 100000;
    FIXTURE(world, w, begin_bound, manager_world_end, "* smtp://a.test?rate=1/d");
    ok_named(!sched_seek_astray(manager_sched(w.manager), w.id, &slot, 9, is_any_astray,
                                NULL),
             "there is no such place");
    ok_named(slot == UINT_MAX, "so all have been seen");
}

static void
on_drained(void *context)
{
    struct world *w = context;
    w->drained++;
}

/* The daemon drains, reloads again or stops at each turn while mail is being rerouted. */
TEST(ends_meanwhile)
{
    enum { MAIL = 1500, ROUNDS = 3 };
    for (int turns = 0; turns < ROUNDS; turns++) {
        for (int how = 0; how < 3; how++) {
            FIXTURE(world, w, begin, manager_world_end, "* smtp://a.test?rate=1/d&recipients=9");
            w.settings.sched.active_limit = w.settings.sched.recipient_limit = 9 * MAIL;
            reload(&w, "* smtp://a.test?rate=1/d&recipients=9");
            for (int i = 0; i < MAIL; i++)
                world_send(&w, "ann@a.test", "good@x.test good@y.test good@z.test");
            world_turns(&w);
            reload(&w, "* smtp://b.test");
            for (int i = 0; i < turns; i++)
                loop_turn(w.loop, 0);
            if (how > 0)
                reload(&w, "* smtp://c.test");
            if (how == 1)
                manager_drain(w.manager, 1000, on_drained, &w);
            for (int i = 0; how == 1 && i < 50; i++)
                sim_loop_advance(w.loop, 100);
            if (how == 1 && w.drained == 0)
                ok_named(false, "it does not drain");
            world_stop(&w);
            w.routes_text.routes = TEXT("* smtp://d.test");
            manager_world_start(&w);
            sim_loop_advance(w.loop, 30 * 60 * 1000);
            is_number(w.attempts, 3 * MAIL, "each once");
        }
    }
}
