/* The scheduler: a session that takes its next work before the last is settled. */
#include "t/support/sched_world.h"

static struct channel *
first_channel(struct world *w)
{
    world_run(w);
    return world_channel(w, "", 0);
}

/* The session with one work taken: the one behind it. */
static struct channel
second(const struct channel *c)
{
    struct channel two = *c;
    two.busy = false;
    return two;
}

static bool
take_second(struct world *w, struct channel *two)
{
    two->busy = sched_take(w->s, two->session, &two->work);
    world_run(w);
    return two->busy;
}

TEST(second_work)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.initial_concurrency = 1;
    for (int i = 0; i < 4; i++)
        world_add(&w, "a.example a.example", 0, 0);
    struct channel *c = first_channel(&w);
    ok(channel_take(&w, c) && sched_has_work(w.s, c->session));
    struct channel two = second(c);
    ok_named(take_second(&w, &two), "a second work behind the first");
    ok_named(two.work.message != c->work.message && two.work.indexes != c->work.indexes,
             "is another one, beside it");
    ok_named(!sched_has_work(w.s, c->session), "but no third");
    is_number(world_site(&w, "smtp:a.example").site.sessions, 1, "it is one session");
    struct outcome sent =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "taken");
    channel_settle(&w, c, 0, &sent);
    ok_named(!sched_has_work(w.s, c->session),
             "no third while the first has open ones");
    channel_settle(&w, c, 1, &sent);
    world_run(&w);
    is_number(w.finishes, 1, "the first is settled first");
    ok_named(sched_has_work(w.s, c->session), "then there is room again");
    channel_send(&w, &two);
    is_number(w.finishes, 2, "then the second");
    channel_drain(&w, c);
    is_number(w.finishes, 4, "and all others");
}

/* New mail must not find all sessions bound to a flush twice. */
TEST(deferred)
{
    enum { OLD = 1100 };
    FIXTURE(world, w, sched_world_start, sched_world_end, 2000, 1000);
    w.target.transport.initial_concurrency = 1;
    for (unsigned i = 0; i < 2; i++)
        world_add(&w, "a.example", 0, 0);
    for (unsigned i = 0; i < OLD; i++)
        world_add(&w, "a.example", 0, 1);
    struct channel *c = first_channel(&w);
    ok_named(channel_take(&w, c) && !sched_has_work(w.s, c->session),
             "no second work while new and deferred mail wait");
    channel_send(&w, c);
    for (unsigned i = 0; i < 3; i++)
        if (channel_take(&w, c) && i < 2)
            channel_send(&w, c);
    ok_named(!sched_has_work(w.s, c->session), "nor soon after the last new mail");
    unsigned alone = 2; /* new mail went first */
    for (; !sched_has_work(w.s, c->session) && alone < OLD; alone++) {
        channel_send(&w, c);
        (void)channel_take(&w, c);
    }
    is_number(alone, 1000, "but when there has been no new mail for a long time");
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    ok_named(!sched_has_work(w.s, c->session), "until there is");
    channel_send(&w, c);
    channel_drain(&w, c);
    is_number(w.finishes, OLD + 3, "all are sent");
}

TEST(each_its_own)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.initial_concurrency = 1;
    w.target.transport.failed_cohort_limit = 100;
    world_add(&w, "a.example", 0, 0);
    world_add(&w, "a.example", 0, 0);
    struct channel *c = first_channel(&w);
    channel_take(&w, c);
    struct channel two = second(c);
    take_second(&w, &two);
    channel_answer(&w, c, VERDICT_DEFERRED, BLAME_MESSAGE);
    is_number(w.finishes, 0, "the first is deferred");
    channel_answer(&w, &two, VERDICT_DELIVERED, BLAME_NONE);
    is_number(w.finishes, 1, "and the second is sent all the same");
    is_number(sched_count(w.s).deferred, 1, "one waits");
    channel_end(&w, c, NULL);
}

TEST(waive)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.initial_concurrency = 1;
    for (int i = 0; i < 3; i++)
        world_add(&w, "a.example a.example", 0, 0);
    struct channel *c = first_channel(&w);
    channel_take(&w, c);
    struct channel two = second(c);
    take_second(&w, &two);
    struct outcome no = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.0.0", "no");
    for (size_t i = 0; i < two.work.count; i++)
        world_verdict(channel_mail(&w, &two), two.work.indexes[i], &no, false);
    sched_waive(w.s, c->session, &no);
    world_run(&w);
    is_number(sched_count(w.s).deferred, 1, "the newest is given back");
    ok_named(take_second(&w, &two), "in its place another may be taken");
    channel_send(&w, c);
    channel_send(&w, &two);
    is_number(w.finishes, 2, "the oldest has kept its verdicts");
    channel_end(&w, c, NULL);
}

TEST(limits)
{
    struct world w;
    sched_world_start(&w, 1000, 1000);
    w.target.transport.initial_concurrency = 1;
    w.target.transport.rate_delay_ms = 1000;
    world_add(&w, "a.example", 0, 0);
    world_add(&w, "a.example", 0, 0);
    struct channel *c = first_channel(&w);
    channel_take(&w, c);
    ok_named(!sched_has_work(w.s, c->session),
             "never where a pause is due between two");
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    sched_world_end(&w);

    sched_world_start(&w, 1000, 1000);
    w.target.transport.failed_cohort_limit = 100;
    for (int i = 0; i < 10; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int i = 0; i < 5; i++)
        channel_take(&w, world_channel(&w, "", i));
    channel_answer(&w, world_channel(&w, "", 0), VERDICT_DEFERRED, BLAME_SITE);
    channel_answer(&w, world_channel(&w, "", 1), VERDICT_DEFERRED, BLAME_SITE);
    is_number(world_site(&w, "smtp:a.example").site.window, 3, "the window shrinks");
    ok_named(sched_has_work(w.s, world_channel(&w, "", 2)->session),
             "three sessions may still take a second work");
    sched_world_end(&w);
}

/* The limits that the host announces, RFC 9422. */
TEST(host_limits)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.initial_concurrency = 1;
    world_add(&w, "a.example a.example a.example a.example a.example", 0, 0);
    world_add(&w, "a.example", 0, 0);
    world_add(&w, "a.example", 0, 0);
    struct channel *c = first_channel(&w);
    sched_session_limit(c->session, &(struct session_limits){.recipients = 2});
    for (unsigned i = 0; i < 3; i++) {
        channel_take(&w, c);
        is_number(c->work.count, i < 2 ? 2 : 1, "two at a time of the first");
        channel_send(&w, c);
    }
    is_number(w.finishes, 1, "all of it");
    ok_named(!sched_session_is_spent(c->session), "it goes on");
    sched_session_limit(c->session, &(struct session_limits){.mails = 1});
    ok_named(!sched_session_is_spent(c->session), "what went before does not count");
    channel_take(&w, c);
    ok_named(sched_session_is_spent(c->session), "but that was all");
    ok(!sched_has_work(w.s, c->session));
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    world_run(&w);
    channel_send(&w, first_channel(&w));
}

/* A host took two recipients, and said that the others were too many. */
TEST(learnt_recipients)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.adaptive = true;
    w.target.transport.initial_concurrency = 1;
    for (unsigned i = 0; i < 5; i++)
        world_add(&w, "a.example a.example a.example", 0, 0);
    struct channel *c = first_channel(&w);
    channel_take(&w, c);
    is_number(c->work.count, 3, "all at a time");
    sched_session_takes(w.s, c->session, 2);
    channel_send(&w, c);
    channel_take(&w, c);
    is_number(c->work.count, 2, "the next message goes in two parts");
    channel_send(&w, c);
    ok_named(sched_forget_limits(w.s, "smtp:a.example"), "an operator ends it");
    channel_take(&w, c);
    is_number(c->work.count, 1, "the rest");
    channel_send(&w, c);
    channel_take(&w, c);
    is_number(c->work.count, 3, "all again");
    sched_session_takes(w.s, c->session, 2);
    channel_send(&w, c);
    w.now += 3600000;
    channel_take(&w, c);
    is_number(c->work.count, 3, "an hour later it is forgotten");
    channel_send(&w, c);
    channel_end(&w, c, NULL);
}
