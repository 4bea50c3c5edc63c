/* A removed message leaves the backlogs of sites some time later, whether or not somebody
 * asks. */
/* link: t/sim/loop.c */
#include "t/support/manager_world.h"

enum { MAIL = 12 };

static struct id ids[MAIL];

static bool
is_swept(const struct world *w)
{
    return sched_backlog_is_swept(manager_sched(w->manager));
}

static void
begin_dead(struct world *w)
{
    manager_world_begin(w, "* smtp://sink.test");
    for (int i = 0; i < MAIL; i++) {
        world_deliver(w, "ann@a.test", "site@b.test");
        ids[i] = w->id;
    }
    is_number((long)sched_count(manager_sched(w->manager)).dead, 1, "the site is dead");
    ok_named(is_swept(w), "nothing was removed");
}

static void
take_away(const struct world *w, int i)
{
    char why[MANAGER_WHY_MAX];
    ok(sched_find(manager_sched(w->manager), ids[i]).backlogged);
    is_number(manager_operate(w->manager, MANAGER_REMOVE, ids[i], why), MANAGER_DONE, "removed");
    ok_named(!is_swept(w), "not immediately");
    loop_turn(w->loop, 0); /* an operator's command comes in one */
}

TEST(sweep)
{
    FIXTURE(world, w, begin_dead, manager_world_end);
    take_away(&w, MAIL - 1);
    world_turns(&w);
    ok_named(is_swept(&w), "soon");
    take_away(&w, MAIL - 2);
    world_turns(&w);
    ok_named(!is_swept(&w), "the next sweep begins after a pause");
    sim_loop_advance(w.loop, 11 * 1000);
    ok_named(is_swept(&w), "it comes");
    take_away(&w, MAIL - 3);
}
