/* Active mail is taken back from the scheduler: nothing of it is left there. */
#include "t/support/sched_world.h"

static struct id
id_of(const struct world *w, unsigned number)
{
    return w->mails[number].id;
}

/* The world must not hear of it any more. */
static void
gone(struct world *w, unsigned number)
{
    w->mails[number].gone = true;
    if (w->mails[number].loaded)
        w->active--;
    w->mails[number].loaded = false;
}

static bool
withdraw(struct world *w, unsigned number)
{
    bool done = sched_withdraw(w->s, id_of(w, number));
    if (done)
        gone(w, number);
    return done;
}

TEST(waiting)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 1);
    unsigned first = world_add(&w, "a.test", 0, 0), many = world_add(&w, "a.test b.test", 0, 0),
             last = world_add(&w, "a.test", 0, 0), later = world_add(&w, "a.test", 5000, 2);
    world_run(&w);
    struct channel *c = world_channel(&w, "a.test", 0);
    ok(c != NULL && channel_take(&w, c));
    ok_named(!withdraw(&w, first), "a session has it");
    ok_named(withdraw(&w, many), "it waits for two sites");
    ok_named(withdraw(&w, later), "it waits for its time");
    ok(!sched_withdraw(w.s, id_of(&w, many)));
    ok(sched_find(w.s, id_of(&w, many)).place == SCHED_UNKNOWN);
    is_number(sched_count(w.s).active, 2, "two are left");
    is_number(sched_count(w.s).recipients, 2, "with a recipient each");
    channel_send(&w, c);
    world_run(&w);
    ok(channel_take(&w, c) && channel_mail(&w, c) == &w.mails[last]);
    channel_send(&w, c);
    world_run(&w);
    ok(!channel_take(&w, c));
    channel_end(&w, c, NULL);
    world_run(&w);
}

/* Known again it is loaded as any other. */
TEST(again)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 1);
    unsigned one = world_add(&w, "a.test", 0, 3);
    world_run(&w);
    ok(withdraw(&w, one));
    is_number(sched_count(w.s).active, 0, "nothing is active");
    w.mails[one].gone = false;
    sched_add(w.s, id_of(&w, one), w.now, 3);
    is_number(sched_find(w.s, id_of(&w, one)).attempts, 3, "its attempts");
    world_run(&w);
    struct channel *c = world_channel(&w, "a.test", 0);
    ok(c != NULL && channel_take(&w, c) && channel_mail(&w, c) == &w.mails[one]);
    channel_send(&w, c);
    channel_end(&w, c, NULL);
    world_run(&w);
}

/* Jobs of several transactions keep their accounts without the one that goes. */
TEST(jobs)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 1);
    w.target.transport.recipient_limit = 1;
    unsigned number[20], taken = 0;
    for (unsigned i = 0; i < 20; i++)
        number[i] = world_add(&w, i % 3 == 0 ? "a.test a.test a.test" : "a.test", 0, 0);
    world_run(&w);
    for (unsigned i = 1; i < 20; i += 2)
        ok(withdraw(&w, number[i]));
    struct channel *c = world_channel(&w, "a.test", 0);
    while (c != NULL && channel_take(&w, c)) {
        channel_send(&w, c);
        taken++;
        world_run(&w);
    }
    is_number(taken, 18, "the transactions of the others");
    channel_end(&w, c, NULL);
    world_run(&w);
}
