/* Mail for a site that lacks a token: it waits without attempts, expires in time, and
 * leaves when there is one. */
#include "sched/route/target.h"
#include "t/support/sched_world.h"
#include "t/support/sites_look.h"

static void
start(struct world *w, const char *target)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    sched_world_start(w, 100, 100);
    transport_params_default(&base);
    world_must(target_parse(text_from(target), 25, &base, &w->target, problem),
               problem);
    w->may_be_early = true;
}

static void
set(struct world *w, enum sched_token token, const char *why)
{
    struct sched_login login = {TEXT("h.test"), TEXT("joe"), 0};
    sched_set_token(w->s, &login, token, why);
    world_run(w);
}

struct seen {
    unsigned count;
    struct sched_site site;
    char why[OUTCOME_TEXT_MAX];
};

static void
keep_site(void *context, const struct sched_site *site)
{
    struct seen *seen = context;
    seen->count++;
    seen->site = *site;
    snprintf(seen->why, sizeof(seen->why), "%s",
             site->reason ? site->reason->text : "");
}

static struct seen
look(struct world *w)
{
    struct seen seen = {0};
    sites_look(w->s, keep_site, &seen);
    return seen;
}

static void
is_bound(struct world *w, enum sched_bound bound, const char *why)
{
    struct seen seen = look(w);
    is_string(sched_bound_word(seen.site.bound), sched_bound_word(bound), "what binds");
    is_string(seen.why, why, "why");
    ok_named(seen.site.dead_until_ms == 0, "it is not dead");
    is_number((long)sched_count(w->s).dead, 0, "and not counted as such");
}

/* Mail that waits for the first token stays in memory. */
TEST(awaited)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test");
    set(&w, SCHED_TOKEN_AWAITED, "waits for a token");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    world_pass(&w, 60000);
    is_number(w.opens, 0, "no session");
    is_bound(&w, SCHED_BOUND_TOKEN, "waits for a token");
    is_number(w.mails[mail].deferrals, 0, "no verdict");
    is_number((long)sched_crowd(w.s, w.mails[mail].id), 0, "clients are not slowed");
    set(&w, SCHED_TOKEN_THERE, "");
    is_number(w.opens, 1, "a session");
    channel_drain(&w, world_channel(&w, "", 0));
    ok(w.mails[mail].gone);
}

TEST(failed)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    set(&w, SCHED_TOKEN_FAILED, "no token: nobody has logged in");
    world_run(&w);
    is_number(w.opens, 0, "no session");
    is_number(w.mails[mail].deferrals, 1, "it is deferred");
    is_string(w.mails[mail].to[0].last->text, "no token: nobody has logged in", "why");
    is_string(w.mails[mail].to[0].last->enhanced, "4.7.0", "its code");
    is_number(w.mails[mail].attempts, 1, "it is deferred mail now");
    world_pass(&w, 4 * 3600 * 1000);
    is_number(w.mails[mail].attempts, 1, "but has no further attempts");
    ok_named(w.mails[mail].deferrals > 3, "however often it is due");
    is_number(w.opens, 0, "and no session");
    set(&w, SCHED_TOKEN_FAILED, "no token: refused");
    unsigned second = world_add(&w, "b.test", 0, 0);
    world_run(&w);
    is_string(w.mails[second].to[0].last->text, "no token: refused",
              "the newest reason");
    set(&w, SCHED_TOKEN_AWAITED, "asked again");
    is_bound(&w, SCHED_BOUND_TOKEN, "no token: refused");
    set(&w, SCHED_TOKEN_THERE, "");
    world_pass(&w, 1000);
    is_number(w.opens, 1, "then one session tries");
    channel_drain(&w, world_channel(&w, "", 0));
    world_pass(&w, 1000);
    for (struct channel *c; (c = world_channel(&w, "", 0)) != NULL;)
        channel_drain(&w, c);
    ok_named(w.mails[mail].gone && w.mails[second].gone, "all mail leaves");
}

/* Neither an operator nor a reload makes a token. */
TEST(forced)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test");
    set(&w, SCHED_TOKEN_FAILED, "no token");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    is_number(w.mails[mail].deferrals, 1, "deferred");
    sched_retry_all(w.s);
    world_run(&w);
    is_number(w.mails[mail].deferrals, 2, "deferred again");
    ok(sched_retry(w.s, w.mails[mail].id));
    world_run(&w);
    is_number(w.mails[mail].deferrals, 3, "and again");
    is_number(w.opens, 0, "without a session");
    is_bound(&w, SCHED_BOUND_TOKEN, "no token");
}

TEST(expiry)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test?lifetime=2h");
    unsigned mail = world_add(&w, "a.test", 0, 0);
    set(&w, SCHED_TOKEN_FAILED, "no token");
    world_pass(&w, 6 * 3600 * 1000);
    is_number(w.mails[mail].to[0].fate, FATE_EXPIRED, "its lifetime runs on");
    is_string(w.mails[mail].to[0].last->text, "no token", "the sender learns why");
}

/* A site that is dead for another reason, and the clock. */
TEST(dead)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test?cohort=1");
    w.target.transport.adaptive = 0;
    unsigned mail = world_add(&w, "a.test", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number((long)sched_count(w.s).dead, 1, "it is dead");
    set(&w, SCHED_TOKEN_FAILED, "no token");
    is_bound(&w, SCHED_BOUND_TOKEN, "no token");
    w.now -= 3600 * 1000;
    world_run(&w);
    world_pass(&w, 2 * 3600 * 1000);
    is_bound(&w, SCHED_BOUND_TOKEN, "no token");
    set(&w, SCHED_TOKEN_NONE, "");
    world_pass(&w, 1000);
    is_number(w.opens, 2, "the account is gone: it is tried");
    channel_drain(&w, world_channel(&w, "", 0));
    ok(w.mails[mail].gone);
}

/* A session that is open goes on. */
TEST(open)
{
    FIXTURE(world, w, start, sched_world_end, "smtps://joe@h.test?concurrency=1");
    unsigned first = world_add(&w, "a.test", 0, 0);
    unsigned second = world_add(&w, "b.test", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    world_must(channel_take(&w, c), "it takes the first");
    set(&w, SCHED_TOKEN_FAILED, "no token");
    is_number(w.mails[second].deferrals, 1, "what waits is deferred");
    channel_send(&w, c);
    ok_named(w.mails[first].gone, "what is being sent is sent");
    channel_drain(&w, c);
    is_bound(&w, SCHED_BOUND_TOKEN, "no token");
    set(&w, SCHED_TOKEN_THERE, "");
    world_pass(&w, 1000);
    channel_drain(&w, world_channel(&w, "", 0));
    ok_named(w.mails[second].gone, "then the other one");
}
