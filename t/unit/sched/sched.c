/* The scheduler: windows, turns, the active set, recipients, sessions kept open. */
#include "sched/destination.h"

#include "t/support/sched_world.h"

#include <malloc.h>

TEST(one)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    is_number(sched_wake_ms(w.s), INT64_MAX, "nothing known: no wake-up");
    unsigned mail = world_add(&w, "a.example", 0, 0);
    is_number(sched_find(w.s, w.mails[mail].id).place, SCHED_INCOMING, "new mail");
    world_run(&w);
    is_number(sched_find(w.s, w.mails[mail].id).place, SCHED_ACTIVE, "is loaded");
    is_number(w.opens, 1, "one session is asked for");
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(c && sched_has_work(w.s, c->session));
    ok(channel_take(&w, c));
    is_number(c->work.count, 1, "one recipient");
    ok(!sched_has_work(w.s, c->session));
    channel_send(&w, c);
    is_number(w.finishes, 1, "finished");
    is_number(sched_find(w.s, w.mails[mail].id).place, SCHED_UNKNOWN, "forgotten");
    ok(!channel_take(&w, c));
    channel_end(&w, c, NULL);
    struct sched_counts n = sched_count(w.s);
    ok(n.incoming == 0 && n.active == 0 && n.deferred == 0 && n.sessions == 0);
    is_number(n.destinations, 1, "the destination keeps its window for a while");
    world_pass(&w, DESTINATION_KEEP_MS);
    is_number(sched_count(w.s).destinations, 0, "and is freed");
    is_number(sched_wake_ms(w.s), INT64_MAX, "nothing is left to wake for");
}

TEST(add)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    unsigned mail = world_add(&w, "a.example", 5000, 3);
    struct id id = w.mails[mail].id;
    sched_add(w.s, id, w.now, 0);
    struct sched_state state = sched_find(w.s, id);
    ok_named(state.place == SCHED_DEFERRED && state.attempts == 3 &&
                 state.due_ms == w.now + 5000,
             "adding a known id does nothing");
    world_pass(&w, 4999);
    is_number(w.loads, 0, "not before it is due");
    world_pass(&w, 1);
    is_number(w.loads, 1, "but then");
    ok(!sched_forget(w.s, id));
    state = sched_find(w.s, id);
    ok(state.place == SCHED_ACTIVE && state.attempts == 3);
    unsigned other = world_add(&w, "a.example", 9000, 1);
    ok(sched_forget(w.s, w.mails[other].id));
    ok(!sched_forget(w.s, w.mails[other].id));
    is_number(sched_count(w.s).deferred, 0, "a forgotten message is no more");
    world_pass(&w, 10000);
    is_number(w.loads, 1, "and never loaded");
}

/* A running action ends; nothing new begins. */
TEST(drain)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    ok(c && channel_take(&w, c));
    sched_drain(w.s);
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    ok_named(w.loads == 1 && w.opens == 1, "neither load nor open");
    channel_send(&w, c);
    is_number(w.finishes, 1, "the message in the middle finishes");
    channel_end(&w, c, NULL);
    world_pass(&w, 10000);
    ok_named(w.loads == 1 && w.opens == 1, "and that was all");
    ok(sched_wake_ms(w.s) == INT64_MAX);
    sched_cancel_drain(w.s);
    world_run(&w);
    ok_named(w.loads == 2 && w.opens == 2, "until it is cancelled");
}

TEST(unloaded)
{
    int64_t now = 1000;
    struct sched *s = sched_new(&(struct sched_settings){.active_limit = 1, .session_limit = 1, .seed = 1}, &now);
    struct sched_action a;
    struct id id = {1, 1}, next = {2, 2};
    sched_add(s, id, -99, 0);
    sched_add(s, next, 0, 0);
    ok(sched_next(s, &a) && a.verb == SCHED_LOAD && a.id.hash == 1);
    ok(!sched_next(s, &a));
    ok_named(!sched_forget(s, id), "what is being loaded is active");
    sched_unloaded(s, id);
    is_number(sched_find(s, id).place, SCHED_UNKNOWN, "unloaded: forgotten");
    ok_named(sched_next(s, &a) && a.id.hash == 2, "and its place is free");
    sched_free(&s);
    ok(s == NULL);
    sched_free(&s);
}

TEST(slow_start)
{
    int most = 0;
    bool within = true;
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    for (int i = 0; i < 300; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(world_channels(&w, ""), 5, "the first sessions: initial concurrency");
    for (int i = 0; i < 5; i++)
        channel_take(&w, world_channel(&w, "", i));
    is_number(world_channels(&w, ""), 5, "more mail alone opens none");
    channel_send(&w, world_channel(&w, "", 0));
    is_number(world_channels(&w, ""), 6, "a success opens one more");
    for (int turn = 0; turn < 30; turn++) {
        for (int i = 0; i < world_channels(&w, ""); i++) {
            struct channel *c = world_channel(&w, "", i);
            if (c->busy)
                channel_send(&w, c);
            channel_take(&w, c);
            struct sched_site site = world_site(&w, "smtp:a.example").site;
            within &= site.sessions <= site.window && site.window <= 20;
            most = site.sessions > most ? site.sessions : most;
        }
    }
    is_number(most, 20, "up to the limit");
    ok_named(within, "sessions <= window <= limit all the time");
    is_number(w.finishes, 300, "all delivered");
}

TEST(window_shrinks)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1000);
    w.target.transport.failed_cohort_limit = 10;
    for (int i = 0; i < 100; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int i = 0; i < 5; i++)
        channel_take(&w, world_channel(&w, "", i));
    channel_answer(&w, world_channel(&w, "", 0), VERDICT_DEFERRED, BLAME_SITE);
    channel_answer(&w, world_channel(&w, "", 1), VERDICT_DEFERRED, BLAME_SITE);
    is_number(world_site(&w, "smtp:a.example").site.window, 3, "two failures: 5 to 3");
    is_number(world_channels(&w, ""), 5, "the sessions live");
    ok_named(!channel_take(&w, world_channel(&w, "", 0)),
             "but only as many as the window carry mail");
    channel_answer(&w, world_channel(&w, "", 2), VERDICT_DEFERRED, BLAME_MESSAGE);
    is_number(world_site(&w, "smtp:a.example").site.window, 3,
              "a deferral that blames the message changes nothing");
    ok(channel_take(&w, world_channel(&w, "", 0)));
    channel_answer(&w, world_channel(&w, "", 3), VERDICT_FAILED, BLAME_MESSAGE);
    is_number(world_site(&w, "smtp:a.example").site.window, 4,
              "a refusal is a success");
}

TEST(worst_counts)
{
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct outcome slow =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.1", "slow");
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    world_add(&w, "a.example a.example a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    ok(channel_take(&w, c));
    is_number(c->work.count, 3, "recipients of a message share a transaction");
    channel_settle(&w, c, 2, &slow);
    channel_settle(&w, c, 0, &good);
    is_number(world_site(&w, "smtp:a.example").site.window, 5,
              "not before all are settled");
    channel_settle(&w, c, 1, &slow);
    is_number(world_site(&w, "smtp:a.example").site.window, 4, "once, and the worst");
    world_run(&w);
    is_number(w.waits, 1, "the message waits");
    is_number(w.mails[0].finals, 1, "one recipient is done");
    world_pass(&w, 400000);
    channel_take(&w, c);
    is_number(c->work.count, 2, "the next round has the others only");
    ok(c->work.indexes[0] == 1 && c->work.indexes[1] == 2);
}

TEST(round_robin)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 6);
    for (int i = 0; i < 50; i++)
        world_add(&w, "a.example", 0, 0);
    for (int i = 0; i < 50; i++)
        world_add(&w, "b.example", 0, 0);
    world_run(&w);
    is_number(world_channels(&w, "a.example"), 5, "the first fills its window");
    is_number(world_channels(&w, "b.example"), 1, "the second gets the rest");
    for (int i = 0; i < 6; i++)
        channel_take(&w, world_channel(&w, "", i));
    int turns = 0;
    while (world_channels(&w, "b.example") < 3 && turns++ < 20) {
        struct channel *c = world_channel(&w, "a.example", 0);
        channel_send(&w, c);
        if (!channel_take(&w, c))
            channel_end(&w, c, NULL);
        for (int i = 0; i < 6; i++)
            if (!world_channel(&w, "", i)->busy)
                channel_take(&w, world_channel(&w, "", i));
    }
    is_number(world_channels(&w, "b.example"), 3, "sessions move to who has fewer");
    is_number(turns, 2, "at once");
    int sent = 0;
    for (int i = 0; i < 60; i++) {
        struct channel *c = world_channel(&w, "", i % 6);
        sent += !strcmp(c->domain, "a.example");
        channel_send(&w, c);
        if (!channel_take(&w, c))
            channel_end(&w, c, NULL);
        for (int j = 0; j < world_channels(&w, ""); j++)
            if (!world_channel(&w, "", j)->busy)
                channel_take(&w, world_channel(&w, "", j));
    }
    ok_named(sent >= 27 && sent <= 33, "and the two are served alike from then on");
    printf("# %d of 60 transactions for the first\n", sent);
}

/* Sessions that end their works in one turn, before a place that one of them leaves is
 * taken. */
static unsigned
yields_together(struct world *w, int sessions)
{
    unsigned yielded = 0;
    struct outcome sent =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "taken");
    for (int i = 0; i < sessions; i++) {
        struct channel *c = world_channel(w, "a.example", i);
        channel_settle(w, c, 0, &sent);
        c->busy = false;
    }
    for (int i = 0; i < sessions; i++) {
        struct channel *c = world_channel(w, "a.example", i);
        c->busy = sched_take(w->s, c->session, &c->work);
        c->idle = !c->busy;
        yielded += c->idle;
    }
    world_run(w);
    return yielded;
}

TEST(yield_together)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 10);
    w.target.transport.initial_concurrency = 10;
    w.target.transport.concurrency_limit = 10;
    for (int i = 0; i < 50; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int i = 0; i < 10; i++)
        channel_take(&w, world_channel(&w, "a.example", i));
    is_number(yields_together(&w, 10), 0, "nobody waits");
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    is_number(yields_together(&w, 10), 1, "one yields to a single message");
    is_number(world_channels(&w, "b.example"), 1, "which has the place");
    channel_drain(&w, world_channel(&w, "b.example", 0));
    for (int i = 0; i < 10; i++)
        if (world_channel(&w, "a.example", i)->idle)
            ok(channel_take(&w, world_channel(&w, "a.example", i)));
    for (int i = 0; i < 20; i++)
        world_add(&w, "b.example", 0, 0);
    world_run(&w);
    is_number(yields_together(&w, 10), 5, "to many messages half of the sessions yield");
    is_number(world_channels(&w, "b.example"), 5, "in one turn");
}

TEST(open_in_turn)
{
    char order[16] = "";
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1);
    for (int i = 0; i < 3; i++)
        world_add(&w, "a.example b.example c.example", 0, 0);
    for (int i = 0; i < 6; i++) {
        world_run(&w);
        struct channel *c = world_channel(&w, "", 0);
        order[i] = c->domain[0];
        channel_take(&w, c);
        channel_send(&w, c);
        channel_end(&w, c, NULL);
    }
    is_string(order, "abcabc", "with one session for all: in turn");
}

TEST(time_slices)
{
    int before = 0;
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1);
    for (int i = 0; i < 100; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    while (channel_take(&w, c)) {
        channel_send(&w, c);
        before++;
    }
    is_number(before, 20, "a long queue yields after 20 transactions");
    ok_named(world_channels(&w, "b.example") == 1, "to who has no session");
    ok_named(!sched_has_work(w.s, c->session), "and waits for a place");
    channel_drain(&w, world_channel(&w, "b.example", 0));
    ok_named(sched_has_work(w.s, c->session), "which comes");
    channel_drain(&w, c);
    is_number(w.finishes, 101, "all delivered");
}

TEST(time_slices_of_slow_servers)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 1);
    for (int i = 0; i < 100; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    int before = 0;
    for (; channel_take(&w, c); before++) {
        world_pass(&w, 4000);
        channel_send(&w, c);
    }
    is_number(before, 3, "transactions of 4 s: it yields after the third");
    is_number(world_channels(&w, "b.example"), 1, "to the site without a session");
    channel_drain(&w, world_channel(&w, "b.example", 0));
    channel_drain(&w, c);
    is_number(w.finishes, 101, "all delivered");
}

TEST(active_limit)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 50);
    for (int i = 0; i < 10000; i++)
        world_add(&w, i % 2 ? "a.example" : "b.example", 0, i % 3 == 0);
    world_run(&w);
    is_number(w.active, 100, "10000 known, 100 in memory");
    is_number(sched_count(w.s).incoming + sched_count(w.s).deferred, 9900,
              "the rest is not");
    is_number(sched_wake_ms(w.s), INT64_MAX, "a full set is woken by events");
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
    is_number(w.finishes, 10000, "all delivered");
    is_number(w.active_max, 100, "never more than the limit in memory");
}

/* The kinds of the last loads, newest last: n = new, o = old. */
static void
last_loads(const struct world *w, char *kinds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        kinds[i] =
            w->mails[w->loaded[(w->loads - count + i) % 64]].attempts ? 'o' : 'n';
    kinds[count] = '\0';
}

TEST(feed)
{
    struct world w;
    char kinds[16];
    sched_world_start(&w, 8, 1);
    for (int i = 0; i < 30; i++)
        world_add(&w, "a.example", 0, 2);
    for (int i = 0; i < 30; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    last_loads(&w, kinds, 8);
    is_string(kinds, "nononono", "new and deferred mail in turn, new first");
    struct channel *c = world_channel(&w, "", 0);
    for (int i = 0; i < 8; i++) {
        channel_take(&w, c);
        channel_send(&w, c);
    }
    last_loads(&w, kinds, 8);
    is_string(kinds, "nnnonnno", "a full set: new first, but three in a row at most");
    sched_world_end(&w);
    sched_world_start(&w, 2, 1);
    for (int i = 0; i < 6; i++)
        world_add(&w, "a.example", 0, 1);
    world_run(&w);
    is_number(w.loads, 2, "only deferred mail: it takes every place");
    sched_world_end(&w);
}

TEST(order)
{
    bool ordered = true;
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 1);
    for (int i = 0; i < 50; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    for (unsigned i = 0; channel_take(&w, c); i++) {
        ordered &= channel_mail(&w, c) == &w.mails[i];
        channel_send(&w, c);
    }
    ok_named(ordered, "first in, first out");
}

TEST(recipient_limit)
{
    struct world w;
    sched_world_start(&w, 100, 100);
    w.target.transport.recipient_limit = 3;
    world_add(&w,
              "a.example a.example b.example a.example a.example a.example a.example "
              "a.example",
              0, 0);
    world_run(&w);
    is_number(world_channels(&w, "a.example"), 3, "7 recipients by 3: three sessions");
    is_number(world_channels(&w, "b.example"), 1, "1 recipient: one");
    is_number(world_site(&w, "smtp:a.example").site.waiting, 7, "recipients waiting");
    unsigned seen = 0;
    static const size_t counts[3] = {3, 3, 1};
    for (int i = 0; i < 3; i++) {
        struct channel *c = world_channel(&w, "a.example", i);
        ok(channel_take(&w, c));
        is_number(c->work.count, counts[i], "at most the limit, in parallel");
        for (size_t j = 0; j < c->work.count; j++)
            seen |= 1u << c->work.indexes[j];
    }
    is_number(seen, 0xfb, "every recipient once");
    is_number(world_site(&w, "smtp:a.example").site.waiting, 0, "nobody waits");
    for (int i = 2; i >= 0; i--)
        channel_send(&w, world_channel(&w, "a.example", i));
    is_number(w.finishes, 0, "not finished while one is open");
    channel_drain(&w, world_channel(&w, "b.example", 0));
    is_number(w.finishes, 1, "finished with the last");
    sched_world_end(&w);
    sched_world_start(&w, 100, 100);
    w.target.transport.recipient_limit = 0;
    world_add(&w, "a.example a.example a.example a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    channel_take(&w, c);
    is_number(c->work.count, 4, "limit 0: all at once");
    sched_world_end(&w);
}

TEST(partial)
{
    struct outcome good =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    struct outcome later =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 452, "4.2.2", "full");
    struct outcome never =
        outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no");
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    world_add(&w, "a.example a.example a.example b.example", 0, 0);
    world_run(&w);
    struct channel *a = world_channel(&w, "a.example", 0);
    channel_take(&w, a);
    channel_settle(&w, a, 0, &good);
    channel_settle(&w, a, 1, &later);
    channel_settle(&w, a, 2, &never);
    world_run(&w);
    is_number(w.waits, 0, "the round lasts until the other destination is through");
    channel_drain(&w, world_channel(&w, "b.example", 0));
    is_number(w.waits, 1, "then the message waits");
    is_number(w.mails[0].attempts, 1, "one attempt");
    ok_named(w.mails[0].due >= w.now + 3600000 && w.mails[0].due <= w.now + 3960000,
             "a full mailbox is left alone for an hour");
    is_number(sched_find(w.s, w.mails[0].id).place, SCHED_DEFERRED, "as deferred mail");
    world_pass(&w, 3960000);
    channel_take(&w, a);
    ok(a->work.count == 1 && a->work.indexes[0] == 1);
    channel_send(&w, a);
    is_number(w.finishes, 1, "and is finished the second time");
}

TEST(session_limit)
{
    char domain[24];
    bool within = true;
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 10);
    for (int i = 0; i < 200; i++) {
        snprintf(domain, sizeof(domain), "d%d.example", i % 40);
        world_add(&w, domain, 0, 0);
    }
    world_run(&w);
    is_number(w.open_now, 10, "as many sessions as allowed");
    for (struct channel *c; (c = world_channel(&w, "", 0));) {
        within &= w.open_now <= 10;
        channel_drain(&w, c);
    }
    ok_named(within, "never more");
    is_number(w.finishes, 200, "all delivered");
    world_add(&w, "a.example b.example c.example", 0, 0);
    sched_change(w.s, &(struct sched_settings){.active_limit = 1000, .session_limit = 2, .seed = 1});
    world_run(&w);
    is_number(w.open_now, 2, "a reload changes the limit");
}

TEST(idle)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 2);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.example", 0);
    channel_take(&w, c);
    channel_send(&w, c);
    ok_named(!channel_take(&w, c), "nothing more: kept idle");
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(w.opens, 1, "new mail opens no second connection beside an idle one");
    ok_named(sched_has_work(w.s, c->session), "which is told that there is work");
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(w.opens, 2, "a second mail does");
    channel_take(&w, c);
    channel_send(&w, c);
    channel_take(&w, c);
    channel_send(&w, c);
    ok(!channel_take(&w, c));
    struct channel *late = world_channel(&w, "a.example", 1);
    ok_named(!channel_take(&w, late), "one that greets too late gets nothing");
    world_add(&w, "b.example c.example d.example", 0, 0);
    world_run(&w);
    is_number(w.opens, 4, "two idle sessions stop nobody elsewhere");
    ok(world_channels(&w, "b.example") == 1 && world_channels(&w, "c.example") == 1);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    ok_named(!sched_has_work(w.s, c->session) && !channel_take(&w, c),
             "but come back only when there is room");
    struct channel *b = world_channel(&w, "b.example", 0);
    channel_take(&w, b);
    channel_send(&w, b);
    ok(!channel_take(&w, b));
    is_number(w.opens, 4, "twice the limit is the most there ever are");
    ok_named(!sched_session_is_spent(c->session) &&
                 !sched_session_is_spent(late->session),
             "those that mail waits for stay");
    ok_named(sched_session_is_spent(b->session), "of the others one is to end");
    channel_end(&w, b, NULL);
    is_number(world_channels(&w, "d.example"), 1, "and the next is served");
    channel_drain(&w, world_channel(&w, "c.example", 0));
    ok_named(sched_has_work(w.s, c->session) && channel_take(&w, c),
             "another ends: the idle one comes back");
    channel_send(&w, c);
    channel_drain(&w, world_channel(&w, "d.example", 0));
    is_number(w.finishes, 5, "all delivered");
}

TEST(idle_ends)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 10);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    struct channel *c = world_channel(&w, "", 0);
    channel_take(&w, c);
    channel_send(&w, c);
    channel_take(&w, c);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(w.opens, 1, "the idle session is waited for");
    channel_end(&w, c, NULL);
    is_number(w.opens, 2, "it ends instead: a new one is opened");
    struct channel *fresh = world_channel(&w, "", 0);
    channel_end(&w, fresh, NULL);
    is_number(w.opens, 2, "one that ends before it greets is not repeated at once");
    world_pass(&w, 1000);
    is_number(w.opens, 3, "but after a second");
}

TEST(rate_delay)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.rate_delay_ms = 5000;
    for (int i = 0; i < 4; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(w.opens, 1, "a rate delay: one session");
    is_number(world_site(&w, "smtp:a.example").site.limit, 1, "its limit");
    struct channel *c = world_channel(&w, "", 0);
    channel_take(&w, c);
    w.now += 2000;
    channel_send(&w, c);
    ok_named(!channel_take(&w, c), "then a pause");
    is_number(sched_wake_ms(w.s), w.now + 5000, "counted from the end of the delivery");
    world_pass(&w, 4999);
    ok(!sched_has_work(w.s, c->session));
    world_pass(&w, 1);
    ok_named(sched_has_work(w.s, c->session), "the idle session goes on");
    channel_take(&w, c);
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    is_number(w.opens, 1, "none is opened in the pause");
    world_pass(&w, 5000);
    is_number(w.opens, 2, "but after it");
}

TEST(targets)
{
    struct world w;
    sched_world_start(&w, 100, 100);
    world_add(&w, "A.Example", 0, 0);
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(sched_count(w.s).destinations, 1, "domains have no case");
    is_string(world_channel(&w, "", 0)->domain, "a.example",
              "lower case for the channel");
    w.target.transport.concurrency_limit = 1;
    sched_change(w.s, &(struct sched_settings){.active_limit = 100, .session_limit = 100, .seed = 1});
    world_add(&w, "a.example", 0, 0);
    world_run(&w);
    is_number(sched_count(w.s).destinations, 1, "other settings, as after a reload");
    is_number(sched_count(w.s).sites, 2, "make another site");
    is_number(w.opens, 3, "to which it goes at once");
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
    is_number(w.finishes, 3, "nothing is lost between them");
    is_number(world_site(&w, "smtp:a.example").site.limit, 1, "the old one is gone");
    is_number(sched_count(w.s).sites, 1, "with its sessions");
    sched_world_end(&w);
    sched_world_start(&w, 100, 100);
    w.target.kind = TARGET_SMTP;
    w.target.port = 25;
    snprintf(w.target.host, sizeof(w.target.host), "smart.example");
    world_add(&w, "a.example b.example", 0, 0);
    world_run(&w);
    is_number(sched_count(w.s).destinations, 1, "a smarthost is one destination");
    is_string(world_channel(&w, "", 0)->domain, "", "without a domain");
    channel_take(&w, world_channel(&w, "", 0));
    is_number(world_channel(&w, "", 0)->work.count, 2, "and one transaction");
    sched_world_end(&w);
}

TEST(memory)
{
    enum { MESSAGES = 30000 };
    int64_t now = 1000;
    struct sched *s = sched_new(&(struct sched_settings){.active_limit = 1, .session_limit = 1, .seed = 1}, &now);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < MESSAGES; i++)
        sched_add(s, (struct id){1000 + i / 4, i}, 5000 + i, 1);
    double each = (double)(mallinfo2().uordblks - before) / MESSAGES;
    printf("# %.1f bytes for each message that is known and not loaded\n", each);
    ok_named(each < 40, "a known message costs less than 40 bytes");
    sched_free(&s);
}

/* Mail of a site whose idle session finds no free place. */
TEST(idle_beside_busy)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 1000, 2);
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    struct channel *idle = world_channel(&w, "b.example", 0), *busy[2];
    ok(channel_take(&w, idle));
    channel_send(&w, idle);
    ok(!channel_take(&w, idle));
    for (unsigned i = 0; i < 10; i++)
        world_add(&w, "a.example", 0, 0);
    world_run(&w);
    for (int i = 0; i < 2; i++) {
        busy[i] = world_channel(&w, "a.example", i);
        ok(busy[i] && channel_take(&w, busy[i]));
    }
    world_add(&w, "b.example", 0, 0);
    world_run(&w);
    ok_named(!sched_has_work(w.s, idle->session), "all sessions are in use");
    channel_send(&w, busy[0]);
    ok_named(!channel_take(&w, busy[0]), "one gives way");
    ok_named(!sched_has_work(w.s, busy[0]->session), "and does not take it back");
    ok_named(channel_take(&w, idle), "but leaves the place to the idle one");
    channel_send(&w, busy[1]);
    ok_named(channel_take(&w, busy[1]), "the other goes on");
    channel_send(&w, idle);
    ok(!channel_take(&w, idle));
    ok_named(channel_take(&w, busy[0]), "and when nobody waits, the first, too");
    channel_send(&w, busy[0]);
    channel_send(&w, busy[1]);
    channel_drain(&w, busy[0]);
    is_number(w.finishes, 12, "all are sent");
}
