/* link: t/sim/loop.c */
/* The manager tells a sender of a success if the sender asked for it: once, over
 * restarts, and only when nobody else does. */
#include "t/support/manager_world.h"

static void
saw(struct world *w, const char *sender, const char *recipients, const char *want,
    const char *name)
{
    world_deliver(w, sender, recipients);
    world_saw(w, want, name);
}

TEST(wishes)
{
    static const struct {
        unsigned notify;
        bool told;
        const char *name;
    } cases[] = {
        {NOTIFY_SUCCESS,                                 true,  "SUCCESS"         },
        {NOTIFY_SUCCESS | NOTIFY_FAILURE | NOTIFY_DELAY, true,  "all three"       },
        {NOTIFY_FAILURE,                                 false, "FAILURE"         },
        {NOTIFY_DELAY,                                   false, "DELAY"           },
        {NOTIFY_NEVER,                                   false, "NEVER"           },
        {NOTIFY_DEFAULT,                                 false, "no word about it"},
    };
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        w.notify = cases[i].notify;
        saw(&w, "ann@a.test", "good@b.test",
            cases[i].told ? "ann@a.test>good@b.test >ann@a.test "
                          : "ann@a.test>good@b.test ",
            cases[i].name);
    }
    ok(world_logged(&w, "sender notified of the delivery: "));
    w.notify = NOTIFY_SUCCESS;
    saw(&w, "", "good@b.test", ">good@b.test ", "a null sender hears nothing");
    saw(&w, "ann@a.test", "bad@b.test", "ann@a.test>bad@b.test ",
        "of a failure nobody wanted to hear");
    w.notifies = true;
    saw(&w, "ann@a.test", "good@b.test", "ann@a.test>good@b.test ",
        "the next hop tells it");
    ok(world_is_empty(&w));
}

/* One notification for each round; what was reported survives restarts. */
TEST(restart)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.notify = NOTIFY_SUCCESS;
    saw(&w, "ann@a.test", "good@b.test later@c.test good@d.test",
        "ann@a.test>good@b.test ann@a.test>later@c.test ann@a.test>good@d.test "
        ">ann@a.test ",
        "both successes, while one recipient is late");
    is_number(world_files(&w, "bounce"), 1, "it is written down");
    world_restart(&w);
    world_restart(&w);
    buffer_clear(&w.seen);
    w.all_good = true;
    ok(world_operate(&w, MANAGER_RETRY) != MANAGER_UNKNOWN);
    world_turns(&w);
    world_saw(&w, "ann@a.test>later@c.test >ann@a.test ", "then that of the last, once");
    world_restart(&w);
    sim_loop_advance(w.loop, 400 * 1000);
    world_saw(&w, "", "and never again");
    ok(world_is_empty(&w));
}

/* Routes without a session. */
TEST(immediate)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "gone.test discard\n* smtp://sink.test");
    w.notify = NOTIFY_SUCCESS;
    saw(&w, "ann@a.test", "x@gone.test", ">ann@a.test ", "discarded is delivered");
    ok(world_is_empty(&w));
}
