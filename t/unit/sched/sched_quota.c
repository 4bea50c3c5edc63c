/* A provider that limits our account: nothing leaves for it until the limit may be over. */
#include "sched/route/target.h"
#include "t/support/sched_world.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)

static void
start(struct world *w, const char *target)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    sched_world_start(w, 100, 100);
    transport_params_default(&base);
    world_must(target_parse(text_from(target), 25, &base, &w->target, problem), problem);
}

/* In one session: the mail is sent (NULL) or refused with that reply. */
static void
answer(struct world *w, int code, const char *words)
{
    struct channel *c = world_channel(w, "", 0);
    world_must(c != NULL && channel_take(w, c), "a session takes mail");
    struct outcome o = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, code, "4.4.5",
                                    "host smtp.gmail.com[192.0.2.1] said: %d %s (in reply to MAIL FROM)", code, words);
    if (words == NULL)
        o = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "250 taken");
    channel_settle(w, c, 0, &o);
    c->busy = false;
    world_run(w);
    channel_end(w, c, NULL);
}

static void
is_paused(struct world *w, int64_t ms, const char *name)
{
    struct sched_site site = world_last_site(w);
    is_string(sched_bound_word(site.bound), "quota", name);
    is_number((long)(site.bound_until_ms - w->now), (long)ms, "for that time");
}

static const char limit[] = "5.4.5 Daily user sending limit exceeded";

TEST(doubled)
{
    static const int hours[] = {1, 2, 4, 6, 6};
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    for (size_t i = 0; i < sizeof(hours) / sizeof(*hours); i++) {
        unsigned opens = w.opens, attempts = w.mails[mail].attempts;
        answer(&w, 550, limit);
        is_paused(&w, hours[i] * HOUR, "it pauses");
        world_pass(&w, hours[i] * HOUR - 1000);
        is_number(w.opens, opens, "no session until then");
        ok_named(w.mails[mail].attempts <= attempts + 1, "one attempt");
        world_pass(&w, 10 * MINUTE);
        is_number(w.opens, opens + 1, "then it is tried");
    }
    answer(&w, 250, NULL);
    ok_named(w.mails[mail].gone, "sent");
    world_add(&w, "b.test", 0, 0);
    world_run(&w);
    answer(&w, 550, limit);
    is_paused(&w, HOUR, "after a success it begins with an hour");
}

/* The time that the provider gives; mail for other domains goes there, too. */
TEST(asked)
{
    static const struct {
        const char *words;
        int64_t ms;
    } all[] = {
        {"4.4.5 Daily message quota exceeded, try again in 3 hours", 3 * HOUR},
        {"4.4.5 Daily message quota exceeded, wait 90 minutes", 90 * MINUTE},
        {"4.4.5 Daily message quota exceeded, try again in 500 hours", 24 * HOUR},
        {"4.4.5 Daily message quota exceeded, try again in 1 second", MINUTE},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test");
        world_add(&w, "a.test", 0, 0);
        world_run(&w);
        answer(&w, 454, all[i].words);
        unsigned opens = w.opens, other = world_add(&w, "b.test", 0, 0);
        world_run(&w);
        is_paused(&w, all[i].ms, all[i].words);
        is_number(w.opens, opens, "mail that comes later waits");
        is_number(w.mails[other].deferrals, 0, "without an attempt");
        is_number((long)sched_crowd(w.s, w.mails[other].id), 0, "clients are not slowed");
    }
}

/* No pause after another refusal, and after one of a host that we do not log in to. */
TEST(others)
{
    struct world w;
    start(&w, "smtps://joe@h.test");
    world_add(&w, "a.test", 0, 0);
    world_run(&w);
    answer(&w, 450, "4.3.0 not today");
    is_string(sched_bound_word(world_last_site(&w).bound), "nothing", "another refusal");
    sched_world_end(&w);
    start(&w, "smtp://h.test");
    world_add(&w, "a.test", 0, 0);
    world_run(&w);
    answer(&w, 450, limit);
    ok_named(world_last_site(&w).bound != SCHED_BOUND_QUOTA, "no account");
    sched_world_end(&w);
}

/* Over a step of the clock, and to the end of its lifetime. */
TEST(time)
{
    struct world w;
    start(&w, "smtps://joe@h.test?lifetime=2h");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    world_add(&w, "b.test", 0, 0);
    world_run(&w);
    answer(&w, 454, "4.4.5 Daily message quota exceeded, try again in 20 hours");
    w.now -= 3 * HOUR;
    world_run(&w);
    is_paused(&w, 20 * HOUR, "the clock is set back");
    sched_world_end(&w);
    start(&w, "smtps://joe@h.test?lifetime=2h");
    mail = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    answer(&w, 454, "4.4.5 Daily message quota exceeded, try again in 20 hours");
    unsigned other = world_add(&w, "c.test", 0, 0);
    world_run(&w);
    world_pass(&w, 22 * HOUR);
    answer(&w, 454, "4.4.5 Daily message quota exceeded, try again in 20 hours");
    world_pass(&w, MINUTE);
    is_number(w.mails[mail].to[0].fate, FATE_EXPIRED, "its lifetime ends");
    is_number(w.mails[other].to[0].fate, FATE_EXPIRED, "that of the next mail, too");
    ok_named(w.mails[other].attempts <= 1, "which had no attempt");
    sched_world_end(&w);
}

TEST(reload)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test");
    world_add(&w, "a.test", 0, 0);
    world_run(&w);
    answer(&w, 550, limit);
    unsigned opens = w.opens;
    world_add(&w, "b.test", 0, 0);
    world_run(&w);
    is_number(w.opens, opens, "waits");
    struct route_table *table = route_new(&(struct route_settings){.relay = TEXT("[h.test]")}, NULL);
    world_must(table != NULL, "routes");
    sched_rerouted(w.s, NULL, table);
    world_run(&w);
    route_free(&table);
    is_number(w.opens, opens + 1, "a reload ends the pause");
    answer(&w, 250, NULL);
}
