/* link: t/sim/loop.c */
/* A site that clogs the active queue is logged: after five minutes, every five minutes,
 * and not when it takes its mail or is dead. */
#include "t/support/manager_world.h"

enum { MINUTE_MS = 60 * 1000, MANY = 30 };

static const char warned[] = "mail has waited on disk for ";

static unsigned
warnings(const struct world *w)
{
    struct text rest = buffer_text(&w->lines);
    unsigned count = 0;
    for (const char *at; rest.length > 0 && (at = memmem(rest.at, rest.length, warned,
                                                         strlen(warned))) != NULL;) {
        count++;
        rest = text_after(rest, (size_t)(at - rest.at) + 1);
    }
    return count;
}

static void
begin(struct world *w)
{
    manager_world_begin(w, "* smtp://sink.test");
    w->settings.sched.active_limit = 10;
    w->settings.sched.site_share = 50;
    world_restart(w);
}

static void
test_clogged(void)
{
    struct world w;
    begin(&w);
    w.stalled = true;
    for (int i = 0; i < MANY; i++)
        world_send(&w, "ann@a.test", "good@b.test");
    sim_loop_advance(w.loop, 4 * MINUTE_MS);
    is_number(warnings(&w), 0, "a burst is no clog");
    sim_loop_advance(w.loop, 3 * MINUTE_MS);
    is_number(warnings(&w), 1, "after five minutes it is logged");
    ok_named(world_logged(&w, "site=smtp:[sink.test]:25 ("), "with its name");
    ok(world_logged(&w, "25 messages there"));
    sim_loop_advance(w.loop, 3 * MINUTE_MS);
    is_number(warnings(&w), 1, "not every minute");
    sim_loop_advance(w.loop, 3 * MINUTE_MS);
    is_number(warnings(&w), 2, "but again while it lasts");
    world_unstall(&w);
    sim_loop_advance(w.loop, 20 * MINUTE_MS);
    ok(world_is_empty(&w));
    is_number(warnings(&w), 2, "never when it is over");
    manager_world_end(&w);
}

/* Mail of a dead site waits on disk for another reason, which is logged already. */
static void
test_dead(void)
{
    struct world w;
    begin(&w);
    for (int i = 0; i < MANY; i++)
        world_send(&w, "ann@a.test", "site@b.test");
    sim_loop_advance(w.loop, 20 * MINUTE_MS);
    is_number(warnings(&w), 0, "a dead site clogs nothing");
    manager_world_end(&w);
}

int
main(void)
{
    test_clogged();
    test_dead();
    return done();
}
