/* link: t/sim/loop.c */
/* The conditions of readiness: mail is accepted, no mail is too old. */
#include "admin/startup/readiness.h"

#include "t/support/manager_world.h"

enum { MINUTE_MS = 60 * 1000 };

static const char *leaving;

static const char *
leaves(void *context)
{
    (void)context;
    return leaving;
}

static void
test_conditions(void)
{
    struct world w;
    struct upstream_wiring upstreams = {0};
    struct health_check checks[HEALTH_CHECKS_MAX];
    char why[MANAGER_WHY_MAX];
    manager_world_begin(&w, "* smtp://sink.test");
    struct readiness r = {.loop = w.loop, .manager = w.manager, .upstreams = &upstreams, .leaves = leaves};
    is_number(readiness_look(&r, checks), 1, "one condition by default");
    ok_named(strcmp(checks[0].name, "accepting") == 0 && checks[0].good, "accepting");
    leaving = "it drains";
    is_number(readiness_look(&r, checks), 1, "while it drains");
    ok_named(!checks[0].good && strcmp(checks[0].why, "it drains") == 0, "it fails, and says why");
    leaving = NULL;

    r.age_ms = 30 * (int64_t)MINUTE_MS;
    is_number(readiness_look(&r, checks), 2, "with age:30m");
    ok_named(strcmp(checks[1].name, "age") == 0 && checks[1].good, "an empty queue");
    world_send(&w, "ann@a.test", "later@b.test");
    struct id id = w.id;
    sim_loop_advance(w.loop, 29 * MINUTE_MS);
    readiness_look(&r, checks);
    ok_named(checks[1].good, "29 minutes");
    sim_loop_advance(w.loop, 2 * MINUTE_MS);
    readiness_look(&r, checks);
    ok_named(!checks[1].good, "31 minutes");
    ok_named(strcmp(checks[1].why, "the oldest message has waited for 31 min") == 0, checks[1].why);
    (void)!manager_operate(w.manager, MANAGER_HOLD, id, why);
    sim_loop_advance(w.loop, MINUTE_MS);
    readiness_look(&r, checks);
    ok_named(checks[1].good, "held mail does not count");
    manager_world_end(&w);
}

int
main(void)
{
    test_conditions();
    return done();
}
