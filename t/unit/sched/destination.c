/* Destinations: death, suspension, revival, permanent trouble, forgetting, the clock.
 */
#include "sched/destination.h"

#include "t/support/sched_world.h"

static void
test_dead_at_once(void)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 50);
    world_add_many(&w, "good.example", 5);
    world_run(&w);
    struct channel *c = world_channel(&w, "dead.example", 0);
    channel_refuse(&w, c);
    struct world_site_query q = world_site(&w, "smtp:dead.example");
    is_number(q.site.dead_until_ms, w.now + 300000, "dead for minimal_backoff_time");
    is_string(q.text, "connection refused", "for that reason");
    is_number(q.site.window, 0, "no window");
    is_number(w.settles, 50, "all that waits is settled at once");
    is_number(w.waits, 50, "and waits for later");
    is_string(w.mails[7].to[0].last->text, "connection refused", "with the reason");
    ok(w.mails[7].to[0].last->verdict == VERDICT_DEFERRED);
    ok(w.mails[7].attempts == 1 && w.mails[7].due >= w.now + 300000);
    is_number(sched_count(w.s).dead, 1, "one dead destination");
    is_number(w.mails[52].deferrals, 0, "mail for others is not touched");
    is_number(world_channels(&w, "good.example"), 5, "nor are its sessions");
    is_number(w.opens, 10, "no session is opened to the dead");
}

static void
test_suspended(void)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 3);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    w.now += 100000;
    unsigned late = world_add(&w, "dead.example other.example", 0, 0);
    world_run(&w);
    is_string(w.mails[late].to[0].last->text,
              "delivery temporarily suspended: connection refused",
              "new mail for a dead site is settled without a session");
    is_string(w.mails[late].to[0].last->enhanced, "4.4.1", "with the same code");
    is_number(world_channels(&w, "dead.example"), 0, "no session");
    is_number(world_channels(&w, "other.example"), 1, "the other recipient has one");
    is_number(w.waits, 3, "the message waits for it");
    channel_drain(&w, world_channel(&w, "other.example", 0));
    is_number(w.waits, 4, "and then for its next round");
}

/* Also when the share of a site in the active set is not limited. */
static void
test_revival(int share)
{
    bool ordered = true;
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    sched_change(w.s, &(struct sched_settings){
                          .active_limit = 1000, .session_limit = 1000, .site_share = share});
    w.may_be_early = true; /* when the site lives */
    world_add_many(&w, "dead.example", 40);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    unsigned opens = w.opens;
    world_pass(&w, 299999);
    is_number(w.opens, opens, "nothing happens while it is dead");
    is_number(sched_count(w.s).dead, 1, "it is dead");
    world_pass(&w, 1);
    is_number(sched_count(w.s).dead, 0, "alive again in time");
    world_pass(&w, 30000);
    ok_named(w.active <= 1 && w.backlogged > 30,
             "its mail came due, and waits behind older mail for a greeting");
    is_number(w.opens, opens + 1, "one session");
    is_number(world_site(&w, "smtp:dead.example").site.window, 1, "a probe");
    struct channel *c = world_channel(&w, "", 0);
    (void)!channel_take(&w, c);
    ok_named(w.active <= 2, "a greeting alone is not yet a success: one message waits");
    is_number(w.opens, opens + 1, "nor a second session");
    if (!c->busy)
        ok(channel_take(&w, c));
    ok(channel_mail(&w, c) == &w.mails[0]);
    channel_send(&w, c);
    is_number(world_site(&w, "smtp:dead.example").site.window, 5,
              "a success: all of it");
    is_number(w.active, 39, "all that waits is loaded");
    for (unsigned next = 1; channel_take(&w, c); channel_send(&w, c))
        ordered &= channel_mail(&w, c) == &w.mails[next++];
    ok_named(ordered, "then it drains in order of arrival");
    is_number(w.finishes, 40, "all of it");
}

/* Postfix's rules: nothing is probed before mail is due. */
TEST(no_early_probe)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 3);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    int64_t first = w.mails[0].due;
    for (unsigned i = 1; i < 3; i++)
        if (w.mails[i].due < first)
            first = w.mails[i].due;
    unsigned opens = w.opens;
    world_pass(&w, first - 1 - w.now);
    ok(sched_count(w.s).dead == 0 && w.opens == opens);
    is_number(world_site(&w, "smtp:dead.example").site.backlogged, 3, "all wait on disk");
    world_pass(&w, 1);
    is_number(w.opens, opens + 1, "a probe with the first that is due");
}

/* Mail that has gone by another way is forgotten, and the site with it. */
TEST(backlog_forgotten)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 3);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    world_pass(&w, 299999);
    for (unsigned i = 0; i < 3; i++)
        ok(sched_forget(w.s, w.mails[i].id));
    world_pass(&w, 3 * 3600000);
    is_number(sched_count(w.s).sites, 0, "no site waits for mail that is gone");
}

TEST(probe_fails)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 20);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    world_pass(&w, 330000);
    unsigned opens = w.opens;
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(sched_count(w.s).dead, 1, "a failed probe: dead again");
    world_pass(&w, 60000);
    is_number(w.opens, opens, "one connection a period, not one a message");
    ok(w.mails[3].attempts == 2);
}

TEST(living_sessions)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "a.example", 50);
    world_run(&w);
    struct channel *one = world_channel(&w, "", 0), *two = world_channel(&w, "", 1);
    channel_take(&w, one);
    channel_refuse(&w, two);
    is_number(sched_count(w.s).dead, 0,
              "a refusal while another session lives: not dead");
    is_number(world_site(&w, "smtp:a.example").site.window, 4, "only feedback");
    is_number(w.waits, 0, "and no mail is deferred");
    is_number(w.opens, 5, "no new session in the same moment");
    channel_refuse(&w, world_channel(&w, "", 1));
    channel_refuse(&w, world_channel(&w, "", 1));
    is_number(world_site(&w, "smtp:a.example").site.window, 2, "step by step");
    channel_send(&w, one);
    channel_refuse(&w, world_channel(&w, "", 1));
    is_number(sched_count(w.s).dead, 0, "a success forgives: the cohort begins anew");
    channel_end(&w, one, NULL);
    world_pass(&w, 1000);
    ok_named(w.opens > 5, "a second later it is tried again");
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(sched_count(w.s).dead, 1, "the last session gone: dead");
    is_number(w.waits, 49, "the rest is deferred");
}

TEST(cohort_death)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.may_be_early = true;
    world_add_many(&w, "a.example", 50);
    world_run(&w);
    for (int i = 0; i < 5; i++)
        channel_take(&w, world_channel(&w, "", i));
    for (int i = 0; i < 3; i++)
        channel_answer(&w, world_channel(&w, "", i), VERDICT_DEFERRED, BLAME_SITE);
    is_number(sched_count(w.s).dead, 0, "three of five: alive");
    channel_answer(&w, world_channel(&w, "", 3), VERDICT_DEFERRED, BLAME_SITE);
    is_number(sched_count(w.s).dead, 1, "the fourth: 1/5 + 1/4 + 1/3 + 1/2 >= 1");
    is_number(w.settles, 45, "what waits is settled, what is under way is not");
    ok(!channel_take(&w, world_channel(&w, "", 0)));
    channel_send(&w, world_channel(&w, "", 4));
    is_number(sched_count(w.s).dead, 0, "a late success revives");
    is_number(world_site(&w, "smtp:a.example").site.window, 5,
              "with the initial window");
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    ok(channel_take(&w, world_channel(&w, "", 0)));
}

TEST(late_answers)
{
    struct world w;
    sched_world_start(&w, 1000, 1000);
    w.may_be_early = true;
    world_add_many(&w, "a.example", 5);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(sched_count(w.s).dead, 1, "dead while four still connect");
    ok_named(!channel_take(&w, world_channel(&w, "", 0)),
             "one of them greets: no mail left");
    is_number(sched_count(w.s).dead, 0, "but the site lives");
    is_number(world_site(&w, "smtp:a.example").site.window, 1, "on probation");
    channel_refuse(&w, world_channel(&w, "", 1));
    is_number(sched_count(w.s).dead, 1, "a refusal on probation is a whole cohort");
    channel_refuse(&w, world_channel(&w, "", 1));
    is_number(sched_count(w.s).dead, 1, "more of them change nothing");
    sched_world_end(&w);
    sched_world_start(&w, 1000, 1000);
    w.may_be_early = true;
    world_add_many(&w, "a.example", 6);
    world_run(&w);
    for (int i = 0; i < 5; i++)
        channel_take(&w, world_channel(&w, "", i));
    for (int i = 0; i < 4; i++)
        channel_answer(&w, world_channel(&w, "", i), VERDICT_DEFERRED, BLAME_SITE);
    is_number(sched_count(w.s).dead, 1, "dead");
    channel_answer(&w, world_channel(&w, "", 4), VERDICT_DEFERRED, BLAME_MESSAGE);
    is_number(sched_count(w.s).dead, 0, "greylisting is an answer too");
    sched_world_end(&w);
}

TEST(never_dead)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.failed_cohort_limit = 0;
    world_add_many(&w, "a.example", 10);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(sched_count(w.s).dead, 0, "cohort limit 0: never dead");
    is_number(w.waits, 10, "the mail that waited has had its attempt");
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    is_number(w.waits, 10, "new mail is not suspended");
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    is_number(w.opens, 5, "not in the same second");
    world_pass(&w, 1000);
    is_number(w.opens, 6, "but in the next");
}

TEST(permanent)
{
    struct outcome nowhere = world_trouble(VERDICT_FAILED, "no such domain");
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "typo.example", 10);
    world_add_many(&w, "good.example typo.example", 1);
    world_run(&w);
    channel_end(&w, world_channel(&w, "typo.example", 0), &nowhere);
    is_number(w.settles, 11, "every waiting recipient has failed");
    is_number(w.finishes, 10, "without a retry");
    ok(w.mails[3].to[0].fate == FATE_FAILED);
    is_string(w.mails[3].to[0].last->enhanced, "5.1.2", "with that code");
    channel_drain(&w, world_channel(&w, "good.example", 0));
    ok(w.mails[10].to[0].fate == FATE_SENT && w.mails[10].to[1].fate == FATE_FAILED);
    while (world_channel(&w, "typo.example", 0))
        channel_end(&w, world_channel(&w, "typo.example", 0), &nowhere);
    ok_named(!world_site(&w, "smtp:typo.example").site.key,
             "the destination is forgotten");
    world_add_many(&w, "typo.example", 1);
    world_run(&w);
    is_number(world_channels(&w, "typo.example"), 1,
              "and tried afresh with the next mail");
}

TEST(retry_all)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 3);
    unsigned later = world_add(&w, "dead.example", 9999999, 2);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    unsigned opens = w.opens;
    w.now += 1000;
    for (unsigned i = 0; i < w.count; i++)
        w.mails[i].due = w.now;
    sched_retry_all(w.s);
    world_run(&w);
    is_number(w.active, 4, "retry all: everything is due");
    is_number(sched_count(w.s).dead, 0, "nothing is dead");
    is_number(w.opens, opens + 1, "and one session probes");
    channel_drain(&w, world_channel(&w, "", 0));
    ok(w.mails[later].gone);
}

TEST(retry_one)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 3);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    w.now += 1000;
    w.mails[1].due = w.now;
    ok(sched_retry(w.s, w.mails[1].id));
    ok(!sched_retry(w.s, (struct id){99, 99}));
    world_run(&w);
    is_number(w.active, 1, "one is due");
    is_number(world_channels(&w, ""), 1, "its dead site is probed");
    ok_named(sched_retry(w.s, w.mails[1].id),
             "active mail is being tried already");
    channel_refuse(&w, world_channel(&w, "", 0));
    is_number(w.waits, 4, "in vain");
    world_run(&w);
    is_number(sched_count(w.s).dead, 1, "dead again");
    world_pass(&w, 300000);
    world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    unsigned opens = w.opens;
    world_pass(&w, 31000);
    is_number(w.mails[1].attempts, 3, "its next round comes while the site is dead");
    is_number(w.opens, opens, "and revives nothing: the force is spent");
}

TEST(forgetting)
{
    struct world w;
    char domain[24];
    sched_world_start(&w, 10000, 10000);
    for (int i = 0; i < 2500; i++) {
        snprintf(domain, sizeof(domain), "d%d.example", i);
        world_add(&w, domain, 0, 0);
        world_run(&w);
        channel_drain(&w, world_channel(&w, domain, 0));
        free(w.channels);
        w.channels = NULL;
    }
    is_number(sched_count(w.s).destinations, DESTINATION_EMPTY_MAX,
              "empty destinations are kept up to a limit");
    ok(!world_site(&w, "smtp:d0.example").site.key);
    ok(world_site(&w, "smtp:d2499.example").site.key != NULL);
    world_pass(&w, DESTINATION_KEEP_MS);
    is_number(sched_count(w.s).destinations, 0, "and for a time");
    sched_world_end(&w);
    sched_world_start(&w, 10, 10);
    w.target.transport.minimal_backoff_ms = w.target.transport.maximal_backoff_ms =
        7200000;
    world_add(&w, "dead.example", 0, 0);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    world_pass(&w, 7199999);
    is_number(sched_count(w.s).dead, 1, "a dead mark lasts as long as it should");
    world_pass(&w, 1);
    is_number(sched_count(w.s).dead, 0, "and no longer");
    sched_world_end(&w);
}

TEST(clock)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    world_add_many(&w, "dead.example", 3);
    world_add(&w, "other.example", 60000, 0);
    world_run(&w);
    while (world_channel(&w, "", 0))
        channel_refuse(&w, world_channel(&w, "", 0));
    const int64_t day = 86400000;
    w.now -= day;
    for (unsigned i = 0; i < w.count; i++)
        w.mails[i].due -= day;
    world_run(&w);
    is_number(sched_find(w.s, w.mails[3].id).due_ms, w.mails[3].due,
              "the clock goes back a day: due times go with it");
    is_number(world_site(&w, "smtp:dead.example").site.dead_until_ms, w.now + 300000,
              "dead marks too");
    world_pass(&w, 60000);
    is_number(world_channels(&w, "other.example"), 1, "mail is loaded in time");
    world_pass(&w, 270000);
    is_number(world_channels(&w, "dead.example"), 1, "and no message is stuck");
    channel_drain(&w, world_channel(&w, "dead.example", 0));
    is_number(w.finishes, 3, "delivered");
    w.now -= 500;
    world_run(&w);
    channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 4, "a small step back does nothing");
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    w.now += 10 * day;
    world_run(&w);
    is_number(sched_count(w.s).destinations, 0, "a step forward is just time");
}

TEST(names)
{
    struct destinations set;
    struct target target = {.kind = TARGET_MX, .tls = TARGET_TLS_MAY};
    transport_params_default(&target.transport);
    destinations_init(&set, 1);
    struct destination *d = destination_get(&set, &target, TEXT("X.example"), 0);
    ok(d == destination_get(&set, &target, TEXT("x.EXAMPLE"), 0));
    struct destination *other = destination_get(&set, &target, TEXT("y.example"), 0);
    ok(d != other && d->site != other->site);
    is_number(HASH_COUNT(set.sites.transports.by_target), 1, "both share one transport");
    is_string(d->domain, "x.example", "the domain in lower case");
    is_string(d->site->key, "smtp:x.example", "at first a site of its own");
    destination_move(&set, d, d->transport, TEXT("mx:a"), 0);
    destination_move(&set, other, other->transport, TEXT("mx:a"), 0);
    ok_named(d->site == other->site && d->site->destinations == 2, "then a common one");
    is_number(set.sites.count, 1, "the sites they had are gone");
    d->site->window.size = 17;
    destinations_reload(&set);
    target.transport.concurrency_limit = 9;
    ok_named(destination_get(&set, &target, TEXT("x.example"), 0) == d,
             "with other settings it is the same");
    ok_named(d->site != other->site && d->site->window.size == 9 &&
                 d->transport->target.transport.concurrency_limit == 9,
             "at a site that has them, and what was learnt within them");
    is_string(d->site->key, "mx:a", "of the same servers");
    struct target second = target;
    second.transport.concurrency_limit = 4;
    struct destination *apart = destination_get(&set, &second, TEXT("x.example"), 0);
    ok_named(apart != d && apart->site->window.limit == 4,
             "two routes of today to one host are apart");
    ok(destination_get(&set, &target, TEXT("x.example"), 0) == d);
    ok(destination_get(&set, &second, TEXT("x.example"), 0) == apart);
    is_number(set.count, 3, "three");
    destinations_free(&set);
    ok(set.by_key == NULL);
}

int
main(void)
{
    test_dead_at_once();
    test_suspended();
    test_revival(50);
    test_revival(0);
    tap_tests("");
    return done();
}
