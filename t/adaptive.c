/* The whole scheduler with all that it learns: shared sites, reloads, parking, bounds.
 */
#include "sched/sched.h"

#include "t/sched_world.h"

static void
start(struct world *w, int active_limit, int share)
{
    world_start(w, active_limit, 100);
    sched_change(w->s, &(struct sched_settings){.active_limit = active_limit,
                                                .session_limit = 100,
                                                .site_share = share});
    w->target.transport.adaptive = 1;
    w->may_be_early = true;
}

static void
add_many(struct world *w, const char *domains, int count)
{
    for (int i = 0; i < count; i++)
        world_add(w, domains, 0, 0);
}

/* Its servers are known. */
static bool
found(struct world *w, struct channel *c, const char *key)
{
    bool good = sched_session_found(w->s, w->now, c->session, text_from(key));
    if (good)
        world_run(w);
    else
        channel_end(w, c, NULL);
    return good;
}

static void
nowhere(struct world *w, struct channel *c)
{
    struct outcome failed = world_trouble(VERDICT_FAILED, "no such domain");
    channel_end(w, c, &failed);
}

static unsigned
with_verdict(const struct world *w)
{
    unsigned count = 0;
    for (unsigned i = 0; i < w->count; i++)
        count += w->mails[i].deferrals + w->mails[i].finals > 0;
    return count;
}

/* --- Shared sites ----------------------------------------------------------------- */

static void
test_roll_up(void)
{
    struct world w;
    start(&w, 1000, 0);
    world_add(&w, "a.example b.example", 0, 0);
    add_many(&w, "a.example", 3);
    add_many(&w, "b.example", 3);
    world_run(&w);
    is_number(sched_count(w.s).sites, 2, "domains are sites of their own at first");
    is_number(w.open_now, 8, "each with its sessions");
    ok(found(&w, world_channel(&w, "a.example", 0), "mx:10 m"));
    is_number(sched_count(w.s).sites, 3, "the first is known; others still look");
    is_number(world_site(&w, "mx:10 m").site.waiting, 4, "its mail has moved along");
    ok(found(&w, world_channel(&w, "b.example", 0), "mx:10 m"));
    is_number(world_site(&w, "mx:10 m").site.waiting, 8, "the other's, too");
    is_number(world_site(&w, "mx:10 m").site.destinations, 2, "two domains share it");
    is_number(world_site(&w, "mx:10 m").site.sessions, 5, "and one window");
    for (int i = 0; i < 3; i++) {
        ok_named(!found(&w, world_channel(&w, "a.example", 1), "mx:10 m"),
                 "who comes late finds no room");
        ok(!found(&w, world_channel(&w, "b.example", 1), "mx:10 m"));
    }
    is_number(w.open_now, 5, "no more than the window");
    is_number(sched_count(w.s).sites, 1, "one site is left");
    struct channel *c = world_channel(&w, "a.example", 0);
    while (channel_take(&w, c))
        channel_send(&w, c);
    is_number(w.finishes, 7, "any session carries the mail of all");
    is_number(w.mails[0].finals, 2, "that of both, too");
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    world_end(&w);
}

static void
test_found_dead(void)
{
    struct world w;
    start(&w, 1000, 0);
    add_many(&w, "a.example", 1);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(found(&w, c, "mx:10 m"));
    channel_refuse(&w, c);
    ok(world_site(&w, "mx:10 m").site.dead_until_ms > 0);
    add_many(&w, "b.example", 4);
    world_run(&w);
    ok(w.open_now == 4 && w.waits == 1);
    ok_named(!found(&w, world_channel(&w, "b.example", 0), "mx:10 m"),
             "a dead site has no room");
    is_number(w.waits, 5, "and all that came along is settled at once");
    is_string(w.mails[2].to[0].last->text,
              "delivery temporarily suspended: connection refused", "with its reason");
    is_number(world_site(&w, "mx:10 m").site.parked, 5, "it waits for the probe");
    while (world_channel(&w, "", 0))
        ok(!found(&w, world_channel(&w, "", 0), "mx:10 m"));
    is_number(sched_count(w.s).sites, 1, "one site");
    world_pass(&w, 11000);
    is_number(w.open_now, 1, "one probes, without mail");
    c = world_channel(&w, "", 0);
    ok_named(!channel_take(&w, c) && channel_take(&w, c),
             "it lives: the mail is loaded at once");
    unsigned order = 0;
    bool in_order = true;
    do {
        unsigned number = (unsigned)(uintptr_t)c->work.owner - 1;
        in_order &= number == order++;
        channel_send(&w, c);
    } while (channel_take(&w, c));
    ok_named(in_order && order == 5, "in its order");
    channel_end(&w, c, NULL);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    world_end(&w);
}

/* --- A delay of the transport -------------------------------------------------------
 */

static void
test_transport_delay(void)
{
    struct world w;
    start(&w, 1000, 0);
    w.target.transport.transport_rate_delay_ms = 5000;
    add_many(&w, "a.example", 1);
    add_many(&w, "b.example", 1);
    add_many(&w, "c.example", 1);
    world_run(&w);
    is_number(w.open_now, 1, "one session in all of the transport");
    struct channel *c = world_channel(&w, "", 0);
    ok(channel_take(&w, c));
    world_pass(&w, 20000);
    is_number(w.opens, 1, "as long as its delivery runs");
    channel_send(&w, c);
    ok(!channel_take(&w, c));
    channel_end(&w, c, NULL);
    world_pass(&w, 0);
    is_number(w.opens, 2, "then another site has its turn");
    c = world_channel(&w, "", 0);
    int64_t began = w.now;
    ok(channel_take(&w, c));
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    is_number(w.open_now, 0, "a pause");
    world_pass(&w, 60000);
    is_number(w.open_now, 1, "by itself it ends");
    c = world_channel(&w, "", 0);
    is_number(c->opened - began, 5000, "in time");
    channel_drain(&w, c);
    is_number(w.finishes, 3, "all are delivered");
    world_end(&w);
}

/* --- Parking ------------------------------------------------------------------------
 */

static void
test_domain_vanishes(void)
{
    struct world w;
    start(&w, 1000, 0);
    add_many(&w, "a.example", 10);
    world_run(&w);
    while (w.open_now > 0)
        channel_refuse(&w, world_channel(&w, "", 0));
    is_number(world_site(&w, "smtp:a.example").site.parked, 10, "mail waits on disk");
    world_pass(&w, 11000);
    unsigned opens = 0;
    for (struct channel *c; opens < 50 && (c = world_channel(&w, "", 0)); opens++)
        nowhere(&w, c);
    ok_named(opens < 10, "a domain that is no more is not asked for ever");
    is_number(w.finishes, 10, "its mail has failed");
    world_end(&w);
}

static void
test_late_success(void)
{
    struct world w;
    start(&w, 1000, 0);
    w.target.transport.initial_concurrency = 1;
    add_many(&w, "a.example", 3);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    ok(channel_take(&w, c));
    c->has_second = sched_take(w.s, w.now, c->session, &c->second);
    ok(c->has_second);
    channel_answer(&w, c, VERDICT_DEFERRED, BLAME_SITE);
    ok(world_site(&w, "smtp:a.example").site.dead_until_ms > 0);
    is_number(world_site(&w, "smtp:a.example").site.parked, 2, "it waits on disk");
    c->work = c->second;
    channel_send(&w, c);
    is_number(world_site(&w, "smtp:a.example").site.dead_until_ms, 0, "it lives");
    ok_named(channel_take(&w, c), "and its mail comes back at once");
    channel_send(&w, c);
    channel_drain(&w, c);
    is_number(w.finishes, 3, "all are delivered");
    world_end(&w);
}

static void
test_excess(void)
{
    struct world w;
    start(&w, 100, 20);
    add_many(&w, "big.example", 1000);
    world_run(&w);
    is_number(w.active, 50, "one site alone has half of the active set");
    is_number(world_site(&w, "smtp:big.example").site.parked, 950,
              "the rest is parked");
    ok(sched_find(w.s, w.mails[700].id).place == SCHED_INCOMING);
    is_number(sched_find(w.s, w.mails[700].id).due_ms, w.now, "due, as before");
    is_number(sched_wake_ms(w.s), INT64_MAX, "nothing to be woken for");
    unsigned small = world_add(&w, "small.example", 0, 0);
    world_run(&w);
    ok_named(w.mails[small].loaded, "others have room");
    while (world_channel(&w, "small.example", 0))
        channel_drain(&w, world_channel(&w, "small.example", 0));
    while (world_channel(&w, "big.example", 0)) {
        struct channel *c = world_channel(&w, "big.example", 0);
        if (channel_take(&w, c))
            channel_send(&w, c);
        else
            channel_end(&w, c, NULL);
    }
    is_number(w.finishes, 1001, "all are delivered");
    ok_named(w.loads < 2500, "and each was loaded a few times at most");
    printf("# %u loads, %u parked\n", w.loads, w.parked);
    world_end(&w);
}

static void
test_excess_operator(void)
{
    struct world w;
    start(&w, 100, 20);
    add_many(&w, "big.example", 200);
    world_run(&w);
    ok_named(!w.mails[150].loaded, "parked");
    ok(sched_retry(w.s, w.now, w.mails[150].id));
    world_run(&w);
    ok_named(w.mails[150].loaded, "the operator wants it now");
    ok_named(sched_forget(w.s, w.mails[160].id), "or not at all");
    w.mails[160].gone = true;
    ok(sched_find(w.s, w.mails[160].id).place == SCHED_UNKNOWN);
    sched_change(w.s,
                 &(struct sched_settings){.active_limit = 100, .session_limit = 100});
    world_run(&w);
    is_number(w.active, 100, "without shares the active set is full");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 199, "all are delivered");
    world_end(&w);
}

static void
test_excess_dies(void)
{
    struct world w;
    start(&w, 100, 20);
    w.target.transport.lifetime_ms = 86400000;
    add_many(&w, "big.example", 300);
    world_run(&w);
    while (w.open_now > 0)
        channel_refuse(&w, world_channel(&w, "", 0));
    ok(world_site(&w, "smtp:big.example").site.dead_until_ms > 0);
    is_number(with_verdict(&w), 300, "dead: all have a verdict, those on disk, too");
    is_number(w.active, 0, "and wait");
    is_number(world_site(&w, "smtp:big.example").site.parked, 300, "for it to live");
    for (int i = 0; i < 5000 && w.finishes < 300; i++) {
        while (world_channel(&w, "", 0))
            channel_refuse(&w, world_channel(&w, "", 0));
        world_pass(&w, 60000);
    }
    is_number(w.finishes, 300, "it never does: all expire");
    world_end(&w);
}

/* --- Reload -------------------------------------------------------------------------
 */

static void
test_reload(void)
{
    struct world w;
    start(&w, 1000, 0);
    add_many(&w, "a.example", 10);
    world_run(&w);
    struct channel *first = world_channel(&w, "", 0),
                   *second = world_channel(&w, "", 1);
    ok(channel_take(&w, first));
    w.target.transport.concurrency_limit = 3;
    w.target.transport.rate =
        (struct rate){.amount = 60, .burst = 60, .period_ms = 60000};
    add_many(&w, "a.example", 1);
    world_run(&w);
    struct world_site_query q = world_site(&w, "smtp:a.example");
    ok_named(!found(&w, second, "mx:10 m"),
             "one of old settings that only looks up ends");
    channel_send(&w, first);
    ok_named(!channel_take(&w, first), "one that carried carries no more");
    channel_end(&w, first, NULL);
    while (w.open_now > 0 && w.finishes < 11) {
        world_pass(&w, 0);
        struct channel *c = world_channel(&w, "", 0);
        ok_named(c != NULL, "a session");
        if (!c)
            break;
        if (channel_take(&w, c))
            channel_send(&w, c);
        else
            channel_end(&w, c, NULL);
        world_pass(&w, 1000);
    }
    is_number(w.finishes, 11, "all are delivered");
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    q = world_site(&w, "smtp:a.example");
    is_number(q.site.limit, 3, "under the new settings");
    is_number(sched_count(w.s).sites, 1, "the old site is gone");
    world_end(&w);
}

int
main(void)
{
    test_roll_up();
    test_found_dead();
    test_transport_delay();
    test_domain_vanishes();
    test_late_success();
    test_excess();
    test_excess_operator();
    test_excess_dies();
    test_reload();
    return done();
}
