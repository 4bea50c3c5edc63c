/* Sessions that are kept for more mail, with the real scheduler in virtual time: the end
 * of a pause makes a turn, and nothing else does. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

enum { KEPT_MAX = 4, TAKEN_MAX = 8 };

/* It asks as smtp/delivery/delivery.c does: in a hook after the manager's. */
struct keeper {
    struct world *w;
    struct sched_session *kept[KEPT_MAX];
    size_t count, greeted;
    bool busy[KEPT_MAX];
    struct delivery_request requests[KEPT_MAX];
    bool holds; /* the verdicts */
    int64_t taken_ms[TAKEN_MAX];
    size_t taken;
    struct loop_task task;
};

static void
keeper_work(void *context)
{
    struct keeper *c = context;
    struct world *w = c->w;
    for (; c->greeted < c->count; c->greeted++) {
        size_t i = c->greeted;
        c->busy[i] = manager_take(w->manager, c->kept[i], &c->requests[i]);
    }
    for (size_t i = 0; i < c->count && !c->holds; i++) {
        struct fake f = {.world = w, .session = c->kept[i]};
        while (c->busy[i]) {
            fake_settle(&f, &c->requests[i]);
            c->busy[i] = manager_take(w->manager, c->kept[i], &c->requests[i]);
        }
    }
}

static void
keeper_open(void *context, struct sched_session *session, const struct target *target,
            const char *domain)
{
    struct keeper *c = context;
    (void)target;
    (void)domain;
    c->kept[c->count++] = session;
    loop_post(c->w->loop, &c->task, keeper_work, c);
}

static void
keeper_ask(void *context)
{
    struct keeper *c = context;
    for (size_t i = 0; i < c->greeted; i++) {
        if (c->busy[i] || !manager_has_work(c->w->manager, c->kept[i]))
            continue;
        c->busy[i] = manager_take(c->w->manager, c->kept[i], &c->requests[i]);
        ok_named(c->busy[i], "there is work where the manager says so");
        c->taken_ms[c->taken++] = loop_now_ms(c->w->loop);
        if (!c->holds)
            loop_post(c->w->loop, &c->task, keeper_work, c);
    }
}

static void
keeper_start(struct keeper *c, struct world *w, const char *routes)
{
    *c = (struct keeper){.w = w};
    manager_world_begin(w, routes);
    w->all_good = true;
    manager_set_channel(w->manager, TARGET_SMTP, keeper_open, c);
    loop_at_end(w->loop, LOOP_ANSWER_DELIVERY, keeper_ask, c);
}

static void
keeper_stop(struct keeper *c)
{
    struct world *w = c->w;
    c->holds = false;
    keeper_work(c);
    for (size_t i = 0; i < c->count; i++)
        manager_session_ended(w->manager, c->kept[i], &outcome_no_trouble);
    loop_unpost(w->loop, &c->task);
    loop_at_end_remove(w->loop, LOOP_ANSWER_DELIVERY, keeper_ask, c);
    manager_world_end(w);
}

TEST(rate_delay)
{
    struct world w;
    FIXTURE(keeper, c, keeper_start, keeper_stop, &w, "* smtp://sink.test?rate_delay=30s");
    world_send(&w, "ann@a.test", "good@b.test");
    world_send(&w, "ann@a.test", "good2@b.test");
    int64_t from_ms = loop_now_ms(w.loop);
    world_turns(&w);
    is_number(w.attempts, 1, "the site pauses after the first");
    uint64_t before = sim_loop_turns(w.loop);
    sim_loop_advance(w.loop, 29000);
    is_number((long)(sim_loop_turns(w.loop) - before), 1,
              "no turn but the one in which the test ends the wait");
    sim_loop_advance(w.loop, 10000);
    is_number((long)c.taken, 1, "the second is taken over the kept session");
    is_number((long)(c.taken_ms[0] - from_ms), 30000, "at the end of the pause");
    is_number(w.attempts, 2, "and delivered");
    is_number((long)c.count, 1, "over the same session");
}

/* The second message is taken after the pump of its turn has set the timer. */
TEST(rate)
{
    enum { SESSIONS = 3 };
    struct world w;
    FIXTURE(keeper, c, keeper_start, keeper_stop, &w, "* smtp://sink.test?rate=4/s");
    c.holds = true;
    for (int i = 0; i < SESSIONS; i++)
        world_send(&w, "ann@a.test", "good@b.test");
    sim_loop_advance(w.loop, 100);
    c.holds = false;
    keeper_work(&c);
    is_number((long)c.count, SESSIONS, "a session for each");
    is_number(w.attempts, SESSIONS, "which is idle now");
    c.holds = true;
    for (int i = 0; i < SESSIONS; i++)
        world_send(&w, "ann@a.test", "good@b.test");
    sim_loop_advance(w.loop, 100);
    is_number((long)c.taken, 1, "one more is permitted, and its host is slow");
    uint64_t before = sim_loop_turns(w.loop);
    sim_loop_advance(w.loop, 1000);
    is_number((long)c.taken, 3, "the others are taken over the idle sessions");
    is_number((long)(c.taken_ms[2] - c.taken_ms[1]), 250, "when the rate permits it");
    is_number((long)(sim_loop_turns(w.loop) - before), 3,
              "in a turn each, before that in which the test ends the wait");
}
