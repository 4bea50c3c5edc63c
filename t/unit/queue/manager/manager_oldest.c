/* link: t/sim/loop.c */
/* The oldest mail: by its id, without what is held, and without what its receiver has asked
 * to come again. */
#include "t/support/manager_world.h"

#include "queue/queue_operator.h"

enum { MINUTE_MS = 60 * 1000 };

static int64_t
birth(struct id id)
{
    return (int64_t)id.time_ms;
}

TEST(oldest)
{
    struct manager_oldest oldest = {.birth_ms = 7, .behind_ms = 7};
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    manager_find_oldest(w.manager, &oldest);
    ok_named(oldest.birth_ms == 0 && oldest.behind_ms == 0, "an empty queue");

    world_send(&w, "ann@a.test", "later@b.test");
    struct id refused = w.id;
    world_turns(&w);
    sim_loop_advance(w.loop, MINUTE_MS);
    manager_find_oldest(w.manager, &oldest);
    ok_named(oldest.birth_ms == birth(refused), "deferred mail");
    ok_named(oldest.behind_ms == 0, "but its receiver has asked to come again");

    w.stalled = true;
    world_send(&w, "ann@a.test", "good@b.test");
    struct id waiting = w.id;
    world_turns(&w);
    sim_loop_advance(w.loop, MINUTE_MS);
    world_send(&w, "ann@a.test", "good@b.test");
    world_turns(&w);
    manager_find_oldest(w.manager, &oldest);
    ok_named(oldest.birth_ms == birth(refused), "still the oldest");
    ok_named(oldest.behind_ms == birth(waiting) && id_compare(oldest.behind, waiting) == 0,
             "behind: the oldest that waits for something else");

    (void)!manager_operate(w.manager, MANAGER_HOLD, refused, why);
    world_turns(&w);
    manager_find_oldest(w.manager, &oldest);
    ok_named(oldest.birth_ms == birth(waiting), "held mail is not waiting");
    struct queue_apart apart = queue_count_apart(manager_queue(w.manager));
    ok_named(apart.held == 1 && apart.oldest_held_ms == birth(refused), "it is the oldest held");

    world_unstall(&w);
    sim_loop_advance(w.loop, 5 * MINUTE_MS);
    manager_find_oldest(w.manager, &oldest);
    ok_named(oldest.birth_ms == 0, "all is delivered");
}

/* A site that does not answer is not its receiver's word. */
TEST(dead_site)
{
    struct manager_oldest oldest;
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    world_send(&w, "ann@a.test", "site@b.test");
    world_turns(&w);
    sim_loop_advance(w.loop, MINUTE_MS);
    manager_find_oldest(w.manager, &oldest);
    ok_named(oldest.behind_ms == birth(w.id), "mail of a dead site");
}
