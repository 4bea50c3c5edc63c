/* The whole scheduler with all that it learns: shared sites, reloads, the backlog, bounds.
 */
#include "sched/sched.h"

#include "sched/limits/ceiling.h"

#include "t/support/sched_world.h"

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

TEST(roll_up)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add(&w, "a.example b.example", 0, 0);
    world_add_many(&w, "a.example", 3);
    world_add_many(&w, "b.example", 3);
    world_run(&w);
    is_number(sched_count(w.s).sites, 2, "domains are sites of their own at first");
    is_number(w.open_now, 8, "each with its sessions");
    ok(channel_found(&w, world_channel(&w, "a.example", 0), "mx:10 m"));
    is_number(sched_count(w.s).sites, 3, "the first is known; others still look");
    is_number(world_site(&w, "mx:10 m").site.waiting, 4, "its mail has moved along");
    ok(channel_found(&w, world_channel(&w, "b.example", 0), "mx:10 m"));
    is_number(world_site(&w, "mx:10 m").site.waiting, 8, "the other's, too");
    is_number(world_site(&w, "mx:10 m").site.destinations, 2, "two domains share it");
    is_number(world_site(&w, "mx:10 m").site.sessions, 5, "and one window");
    for (int i = 0; i < 3; i++) {
        ok_named(!channel_found(&w, world_channel(&w, "a.example", 1), "mx:10 m"),
                 "who comes late finds no room");
        ok(!channel_found(&w, world_channel(&w, "b.example", 1), "mx:10 m"));
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
}

TEST(found_dead)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(channel_found(&w, c, "mx:10 m"));
    channel_refuse(&w, c);
    ok(world_site(&w, "mx:10 m").site.dead_until_ms > 0);
    world_add_many(&w, "b.example", 4);
    world_run(&w);
    ok(w.open_now == 4 && w.waits == 1);
    ok_named(!channel_found(&w, world_channel(&w, "b.example", 0), "mx:10 m"),
             "a dead site has no room");
    is_number(w.waits, 5, "and all that came along is settled at once");
    is_string(w.mails[2].to[0].last->text,
              "delivery temporarily suspended: connection refused", "with its reason");
    is_number(world_site(&w, "mx:10 m").site.backlogged, 5, "it waits for the probe");
    while (world_channel(&w, "", 0))
        ok(!channel_found(&w, world_channel(&w, "", 0), "mx:10 m"));
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
}

/* --- A delay of the transport -------------------------------------------------------
 */

TEST(transport_delay)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    w.target.transport.transport_rate_delay_ms = 5000;
    world_add_many(&w, "a.example", 1);
    world_add_many(&w, "b.example", 1);
    world_add_many(&w, "c.example", 1);
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
}

/* An idle session holds up nobody, and a site that waits for another's turn has that
 * bound. */
TEST(transport_delay_idle)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    w.target.transport.transport_rate_delay_ms = 5000;
    world_add_many(&w, "a.example", 1);
    world_add_many(&w, "b.example", 1);
    world_run(&w);
    struct sched_site b = world_site(&w, "smtp:b.example").site;
    is_number(b.bound, SCHED_BOUND_TRANSPORT_DELAY, "another's session has the turn");
    is_number(b.bound_until_ms, INT64_MAX, "until it has");
    is_number(world_site(&w, "smtp:a.example").site.bound, SCHED_BOUND_NONE, "its own");
    struct channel *idle = world_channel(&w, "a.example", 0);
    ok(channel_take(&w, idle));
    channel_send(&w, idle);
    ok(!channel_take(&w, idle) && world_site(&w, "smtp:a.example").site.idle == 1);
    world_pass(&w, 5000);
    struct channel *c = world_channel(&w, "b.example", 0);
    ok_named(c != NULL, "another site has its turn meanwhile");
    world_add_many(&w, "a.example", 2);
    world_run(&w);
    is_number(world_channels(&w, "a.example"), 1, "the idle one is enough there");
    ok(channel_take(&w, c) && !channel_take(&w, idle));
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    world_pass(&w, 5000);
    ok_named(channel_take(&w, idle), "it goes on in its turn");
}

/* --- The backlog -------------------------------------------------------------------- */

/* Its end comes while a session is at a site that its domain has left. */
TEST(end_between_sites)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 100, 0);
    world_add_many(&w, "a.example", 2);
    world_run(&w);
    is_number(w.open_now, 2, "two look its servers up");
    ok(channel_found(&w, world_channel(&w, "", 0), "mx:10 m"));
    is_number(sched_count(w.s).sites, 2, "where one is still where they began");
}

TEST(domain_vanishes)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example", 10);
    world_run(&w);
    while (w.open_now > 0)
        channel_refuse(&w, world_channel(&w, "", 0));
    is_number(world_site(&w, "smtp:a.example").site.backlogged, 10, "mail waits on disk");
    world_pass(&w, 11000);
    unsigned opens = 0;
    for (struct channel *c; opens < 50 && (c = world_channel(&w, "", 0)); opens++)
        nowhere(&w, c);
    ok_named(opens < 10, "a domain that is no more is not asked for ever");
    is_number(w.finishes, 10, "its mail has failed");
}

/* is_probe: the time of the first probe comes before the success. */
static void
late_success(bool is_probe)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    w.target.transport.initial_concurrency = 1;
    world_add_many(&w, "a.example", 3);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    ok(channel_take(&w, c));
    c->has_second = sched_take(w.s, c->session, &c->second);
    ok(c->has_second);
    channel_answer(&w, c, VERDICT_DEFERRED, BLAME_SITE);
    int64_t until = world_site(&w, "smtp:a.example").site.dead_until_ms;
    ok(until > 0);
    is_number(world_site(&w, "smtp:a.example").site.backlogged, 2, "it waits on disk");
    world_pass(&w, is_probe ? until - w.now + 1 : 0);
    ok(world_site(&w, "smtp:a.example").site.probing == is_probe);
    c->work = c->second;
    channel_send(&w, c);
    is_number(world_site(&w, "smtp:a.example").site.dead_until_ms, 0, "it lives");
    ok_named(channel_take(&w, c), "and its mail comes back at once");
    channel_send(&w, c);
    channel_drain(&w, c);
    is_number(w.finishes, 3, "all are delivered");
}

TEST(late_success)
{
    late_success(false);
    late_success(true); /* the session that is left is the probe */
}

TEST(excess)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 100, 20);
    world_add_many(&w, "big.example", 1000);
    world_run(&w);
    is_number(w.active, 50, "one site alone has half of the active set");
    is_number(world_site(&w, "smtp:big.example").site.backlogged, 950,
              "the rest is backlogged");
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
    printf("# %u loads, %u backlogged\n", w.loads, w.backlogged);
}

TEST(excess_operator)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 100, 20);
    world_add_many(&w, "big.example", 200);
    world_run(&w);
    ok_named(!w.mails[150].loaded, "backlogged");
    ok(sched_retry(w.s, w.mails[150].id));
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
}

/* One message for several domains of a site is more than its share by itself: it has
 * its turn all the same. */
TEST(excess_alone)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 4, 25);
    world_add(&w, "a.example b.example c.example", 0, 0);
    world_run(&w);
    ok(channel_found(&w, world_channel(&w, "a.example", 0), "mx:10 m"));
    ok(channel_found(&w, world_channel(&w, "b.example", 0), "mx:10 m"));
    ok(channel_found(&w, world_channel(&w, "c.example", 0), "mx:10 m"));
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    world_add_many(&w, "other.example", 2);
    unsigned wide = world_add(&w, "a.example b.example c.example", 0, 0);
    unsigned next = world_add(&w, "a.example b.example c.example", 0, 0);
    world_run(&w);
    ok_named(w.mails[wide].loaded, "it is in memory");
    ok_named(sched_find(w.s, w.mails[next].id).excess, "the next has to wait");
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 5, "all are delivered");
}

TEST(excess_dies)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 100, 20);
    w.target.transport.lifetime_ms = 86400000;
    world_add_many(&w, "big.example", 300);
    world_run(&w);
    while (w.open_now > 0)
        channel_refuse(&w, world_channel(&w, "", 0));
    ok(world_site(&w, "smtp:big.example").site.dead_until_ms > 0);
    is_number(with_verdict(&w), 300, "dead: all have a verdict, those on disk, too");
    is_number(w.active, 0, "and wait");
    is_number(world_site(&w, "smtp:big.example").site.backlogged, 300, "for it to live");
    for (int i = 0; i < 5000 && w.finishes < 300; i++) {
        while (world_channel(&w, "", 0))
            channel_refuse(&w, world_channel(&w, "", 0));
        world_pass(&w, 60000);
    }
    is_number(w.finishes, 300, "it never does: all expire");
}

/* A message that left while it was backlogged does not use up the space of those behind
 * it. */
TEST(excess_gone)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 2, 50);
    world_add_many(&w, "big.example", 50);
    world_run(&w);
    for (unsigned i = 0; i < 49; i++)
        if (!w.mails[i].loaded && sched_forget(w.s, w.mails[i].id))
            w.mails[i].gone = true;
    while (world_channel(&w, "", 0))
        channel_drain(&w, world_channel(&w, "", 0));
    ok_named(w.mails[49].gone, "the last one, too");
    is_number(world_site(&w, "smtp:big.example").site.backlogged, 0, "nobody is left");
}

/* --- Reload -------------------------------------------------------------------------
 */

TEST(reload)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example", 10);
    world_run(&w);
    struct channel *first = world_channel(&w, "", 0),
                   *second = world_channel(&w, "", 1);
    ok(channel_take(&w, first));
    sched_change(w.s, &(struct sched_settings){.active_limit = 1000, .session_limit = 1000, .seed = 7});
    w.target.transport.concurrency_limit = 3;
    w.target.transport.rate =
        (struct rate){.amount = 60, .burst = 60, .period_ms = 60000};
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    struct world_site_query q = world_site(&w, "smtp:a.example");
    ok_named(!channel_found(&w, second, "mx:10 m"),
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
}

/* --- Bounds ------------------------------------------------------------------------- */

struct explained {
    int calls;
    unsigned waiting, taken;
    enum sched_bound bound;
    int64_t until;
};

static void
explain_each(void *context, const struct sched_wait *wait)
{
    struct explained *e = context;
    e->calls++;
    e->waiting += wait->waiting;
    e->taken += wait->taken;
    e->bound = wait->site->bound;
    e->until = wait->site->bound_until_ms;
}

static struct explained
explain(struct world *w, unsigned mail)
{
    struct explained e = {.bound = SCHED_BOUNDS};
    ok_named(sched_explain(w->s, w->mails[mail].id, explain_each, &e), "it is known");
    return e;
}

/* The bound of the last mail; and that it lasts until the reported time, not longer.
 */
static void
is_bound(struct world *w, enum sched_bound bound, int64_t until)
{
    struct explained e = explain(w, w->count - 1);
    ok_named(e.calls == 1 && e.waiting == 1 && e.bound == bound,
             sched_bound_word(bound));
    is_number(e.until, until, "until then");
}

TEST(bounds_of_sessions)
{
    struct world w;
    sched_world_learns(&w, 1000, 0);
    world_add_many(&w, "a.example", 6);
    world_run(&w);
    is_bound(&w, SCHED_BOUND_WINDOW, INT64_MAX);
    ok(channel_take(&w, world_channel(&w, "", 0)));
    is_number(explain(&w, 0).taken, 1, "a session has the first");
    is_number(explain(&w, 0).waiting, 0, "it waits no more");
    sched_world_end(&w);
    sched_world_learns(&w, 1000, 0);
    sched_change(w.s,
                 &(struct sched_settings){.active_limit = 100, .session_limit = 2});
    world_add_many(&w, "a.example", 3);
    world_run(&w);
    is_bound(&w, SCHED_BOUND_BUDGET, INT64_MAX);
    channel_end(&w, world_channel(&w, "", 0), NULL);
    is_bound(&w, SCHED_BOUND_PAUSE, w.now + 1000);
    world_pass(&w, 999);
    is_number(w.opens, 2, "a session that never greeted makes a pause");
    world_pass(&w, 1);
    is_number(w.opens, 3, "of a second");
    sched_world_end(&w);
}

TEST(bounds_of_rates)
{
    struct world w;
    sched_world_learns(&w, 1000, 0);
    w.target.transport.rate =
        (struct rate){.amount = 6, .burst = 1, .period_ms = 60000};
    world_add_many(&w, "a.example", 2);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    ok(channel_take(&w, c));
    channel_send(&w, c);
    ok(!channel_take(&w, c));
    is_bound(&w, SCHED_BOUND_RATE, w.now + 10000);
    is_number(sched_wake_ms(w.s), w.now + 10000, "it is woken then");
    world_pass(&w, 9999);
    ok(!sched_has_work(w.s, c->session));
    world_pass(&w, 1);
    ok_named(channel_take(&w, c), "and goes");
    sched_world_end(&w);
    sched_world_learns(&w, 1000, 0);
    w.target.transport.rate_delay_ms = 4000;
    world_add_many(&w, "a.example", 2);
    world_run(&w);
    c = world_channel(&w, "", 0);
    ok(channel_take(&w, c));
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    is_bound(&w, SCHED_BOUND_RATE_DELAY, w.now + 4000);
    world_pass(&w, 4000);
    is_number(w.opens, 2, "then a session is opened");
    sched_world_end(&w);
    sched_world_learns(&w, 1000, 0);
    w.target.transport.transport_rate_delay_ms = 4000;
    world_add_many(&w, "a.example", 1);
    world_add_many(&w, "b.example", 1);
    world_run(&w);
    ok(channel_take(&w, world_channel(&w, "", 0)));
    is_bound(&w, SCHED_BOUND_TRANSPORT_DELAY, w.now + 4000);
    sched_world_end(&w);
}

TEST(bound_learnt)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    w.target.transport.initial_concurrency = 1;
    world_add_many(&w, "a.example", 100);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    for (int i = 0; i < 50; i++, w.now += 10)
        if (channel_take(&w, c))
            channel_send(&w, c);
    ok(channel_take(&w, c));
    struct outcome slow = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 421, "4.7.28",
                                       "too many messages from you: slow down");
    channel_settle(&w, c, 0, &slow);
    c->busy = false;
    world_run(&w);
    struct explained e = explain(&w, 99);
    ok_named(e.bound == SCHED_BOUND_LEARNT_RATE && e.until > w.now, "a rate is learnt");
    ok(world_site(&w, "smtp:a.example").site.rate > 0);
    ok_named(!channel_take(&w, c), "and kept");
    int64_t until = e.until;
    world_pass(&w, until - w.now);
    ok_named(channel_take(&w, c), "until then");
    is_number(sched_count(w.s).dead, 0, "nothing is dead");
}

TEST(bounds_of_greetings)
{
    struct world w;
    sched_world_learns(&w, 1000, 0);
    world_add_many(&w, "a.example", 20);
    world_run(&w);
    ok(channel_take(&w, world_channel(&w, "", 0)));
    ok(channel_take(&w, world_channel(&w, "", 1)));
    for (int i = 0; i < CEILING_REFUSALS; i++) {
        if (!world_channel(&w, "", 2))
            world_pass(&w, 1000);
        channel_refuse(&w, world_channel(&w, "", 2));
    }
    is_number(world_site(&w, "smtp:a.example").site.ceiling, 2, "two are let in");
    struct explained e = explain(&w, 19);
    ok_named(e.bound == SCHED_BOUND_CEILING && e.until > w.now, "that is the ceiling");
    int64_t until = e.until;
    unsigned opens = w.opens;
    world_pass(&w, until - 1 - w.now);
    is_number(w.opens, opens, "no session more");
    world_pass(&w, 1);
    is_number(w.opens, opens + 1, "by time one is tried");
    channel_take(&w, world_channel(&w, "", 2));
    is_number(world_site(&w, "smtp:a.example").site.ceiling, 3, "three");
    sched_world_end(&w);
    sched_world_learns(&w, 1000, 0);
    w.target.transport.initial_concurrency = 3;
    world_add_many(&w, "a.example", 20);
    world_run(&w);
    ok(channel_take(&w, world_channel(&w, "", 0)));
    for (int i = 0; i < 5; i++) {
        channel_send(&w, world_channel(&w, "", 0));
        ok(channel_take(&w, world_channel(&w, "", 0)));
    }
    w.now += 3000;
    world_run(&w);
    channel_end(&w, world_channel(&w, "", 2), NULL);
    w.now += 3000;
    world_run(&w);
    is_bound(&w, SCHED_BOUND_CONGESTED, INT64_MAX);
    sched_world_end(&w);
}

/* It became so while all sessions were out: nothing told the site. */
TEST(congested_in_line)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    sched_change(w.s,
                 &(struct sched_settings){.active_limit = 100, .session_limit = 3});
    world_add(&w, "b.example", 0, 0);
    world_add_many(&w, "a.example", 20);
    world_run(&w);
    is_number(world_channels(&w, "a.example"), 2, "two of three are there");
    ok(channel_take(&w, world_channel(&w, "a.example", 0)));
    w.now += 3000;
    channel_drain(&w, world_channel(&w, "b.example", 0));
    is_bound(&w, SCHED_BOUND_CONGESTED, INT64_MAX);
    is_number(world_channels(&w, "a.example"), 2,
              "none is opened where one waits long");
    ok(channel_take(&w, world_channel(&w, "a.example", 1)));
    is_number(world_channels(&w, "a.example"), 3, "until it is greeted");
}

TEST(probe)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example", 1);
    world_run(&w);
    channel_refuse(&w, world_channel(&w, "", 0));
    struct world_site_query q = world_site(&w, "smtp:a.example");
    ok(q.site.bound == SCHED_BOUND_DEAD &&
       q.site.bound_until_ms == q.site.dead_until_ms);
    is_string(q.text, "connection refused", "for that reason");
    world_pass(&w, q.site.dead_until_ms - w.now);
    q = world_site(&w, "smtp:a.example");
    ok(q.site.bound == SCHED_BOUND_PROBE && q.site.window == 1 && w.open_now == 1);
    channel_refuse(&w, world_channel(&w, "", 0));
    q = world_site(&w, "smtp:a.example");
    ok_named(q.site.dead_until_ms >= w.now + 18000, "in vain: twice as long");
    is_number(q.site.backlogged, 1, "the mail waits on");
    is_number(w.mails[0].deferrals, 1, "and was not tried");
    ok(sched_find(w.s, w.mails[0].id).attempts == 1);
    struct explained e = {.bound = SCHED_BOUNDS};
    ok(sched_explain(w.s, w.mails[0].id, explain_each, &e) && e.calls == 0);
    ok(!sched_explain(w.s, (struct id){1, 1}, explain_each, &e));
    ok(sched_retry(w.s, w.mails[0].id));
    world_run(&w);
    is_number(w.open_now, 1, "the operator's retry does not wait");
    channel_drain(&w, world_channel(&w, "", 0));
    is_number(w.finishes, 1, "and is delivered");
}

/* Mail that leaves or comes by itself while it is backlogged leaves nothing behind. */
TEST(backlogged_leaves)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 1000, 0);
    world_add_many(&w, "a.example", 20);
    world_run(&w);
    while (w.open_now > 0)
        channel_refuse(&w, world_channel(&w, "", 0));
    for (unsigned i = 0; i < 10; i++) {
        ok_named(sched_forget(w.s, w.mails[i].id), "removed");
        w.mails[i].gone = true;
    }
    for (int cycle = 0; cycle < 300; cycle++) {
        world_pass(&w, 60000);
        while (world_channel(&w, "", 0))
            channel_refuse(&w, world_channel(&w, "", 0));
        if (cycle % 3 == 0)
            sched_retry_all(w.s);
    }
    is_number(world_site(&w, "smtp:a.example").site.backlogged, 10,
              "the ten that are left");
    world_pass(&w, 1000000);
    struct channel *c = world_channel(&w, "", 0);
    ok_named(c != NULL, "a probe");
    channel_take(&w, c);
    is_number(channel_drain(&w, c), 10, "all of them, once");
    is_number(w.finishes, 10, "delivered");
}

TEST(drain)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 100, 20);
    world_add_many(&w, "a.example", 300);
    world_add_many(&w, "dead.example", 3);
    world_run(&w);
    while (world_channel(&w, "dead.example", 0))
        channel_refuse(&w, world_channel(&w, "dead.example", 0));
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(channel_take(&w, c));
    unsigned opens = w.opens, loads = w.loads;
    sched_drain(w.s);
    channel_send(&w, c);
    while (world_channel(&w, "", 0))
        channel_end(&w, world_channel(&w, "", 0), NULL);
    world_pass(&w, 3600000);
    ok_named(w.opens == opens && w.loads == loads, "nothing begins any more");
    is_number(sched_wake_ms(w.s), INT64_MAX, "nor is anything waited for");
    is_number(w.finishes, 1, "what ran has ended");
}

TEST(clock_back)
{
    FIXTURE(world, w, sched_world_learns, sched_world_end, 100, 20);
    world_add_many(&w, "a.example", 200);
    world_run(&w);
    const int64_t back = -86400000;
    w.now += back;
    world_run(&w);
    ok_named(!w.mails[150].loaded, "backlogged");
    while (w.open_now > 0)
        channel_refuse(&w, world_channel(&w, "", 0));
    is_number(with_verdict(&w), 200, "what is backlogged is known as such");
    w.now += back;
    world_run(&w);
    world_pass(&w, 11000);
    is_number(w.open_now, 1, "the probe comes in its time");
    struct channel *c = world_channel(&w, "", 0);
    channel_take(&w, c);
    channel_drain(&w, c);
    is_number(w.finishes, 200, "and all is delivered");
}
