/* link: t/sim/loop.c */
/* The conditions of readiness: mail is accepted, no mail is too old. */
#include "admin/startup/parts.h"

#include "t/support/manager_world.h"

enum { MINUTE_MS = 60 * 1000 };

static char ready_when[40];
static struct configuration configuration = {.options = {.ready_when = ready_when}};

TEST(conditions)
{
    struct world w;
    struct health_check checks[HEALTH_CHECKS_MAX];
    char why[MANAGER_WHY_MAX];
    manager_world_begin(&w, "* smtp://sink.test");
    struct daemon d = {.configuration = &configuration, .loop = w.loop, .manager = w.manager};
    is_number(part_answers_look(&d, checks), 1, "one condition by default");
    ok_named(strcmp(checks[0].name, "accepting") == 0 && checks[0].good, "accepting");
    d.draining = 1;
    is_number(part_answers_look(&d, checks), 1, "while it drains");
    ok_named(!checks[0].good && strcmp(checks[0].why, "the daemon stops") == 0, "it fails, and says why");
    d.draining = 0;

    snprintf(ready_when, sizeof(ready_when), "accepting, age:30m");
    is_number(part_answers_look(&d, checks), 2, "with age:30m");
    ok_named(strcmp(checks[1].name, "age") == 0 && checks[1].good, "an empty queue");
    world_send(&w, "ann@a.test", "later@b.test");
    struct id id = w.id;
    sim_loop_advance(w.loop, 29 * MINUTE_MS);
    part_answers_look(&d, checks);
    ok_named(checks[1].good, "29 minutes");
    sim_loop_advance(w.loop, 2 * MINUTE_MS);
    part_answers_look(&d, checks);
    ok_named(!checks[1].good, "31 minutes");
    ok_named(strcmp(checks[1].why, "the oldest message has waited for 31 min") == 0, checks[1].why);
    (void)!manager_operate(w.manager, MANAGER_HOLD, id, why);
    sim_loop_advance(w.loop, MINUTE_MS);
    part_answers_look(&d, checks);
    ok_named(checks[1].good, "held mail does not count");
    manager_world_end(&w);
}

static bool is_paused;

static void
collect(void *context, struct finding_facts *facts)
{
    (void)context;
    facts->history_paused = is_paused;
    facts->is_root = true; /* a hint */
    facts->health.accepting = true;
}

static void
is_line(struct daemon *d, const char *want)
{
    char line[NOTIFY_STATUS_MAX];
    part_answers_describe(d, line);
    is_string(line, want, want);
}

TEST(line)
{
    struct world w;
    manager_world_begin(&w, "* smtp://sink.test");
    struct daemon d = {.configuration = &configuration, .loop = w.loop, .manager = w.manager};
    is_line(&d, "accepting mail; nothing waiting");
    struct event_hub *events = event_hub_new(NULL);
    struct findings_setup setup = {.loop = w.loop, .events = events, .collect = collect};
    d.findings.findings = findings_new(&setup);
    world_send(&w, "ann@a.test", "later@b.test");
    sim_loop_advance(w.loop, 2 * MINUTE_MS);
    is_line(&d, "accepting mail; 1 waiting, oldest 2 min");
    is_paused = true;
    findings_look(d.findings.findings);
    is_line(&d, "accepting mail; 1 waiting, oldest 2 min; 1 finding");
    d.draining = 1;
    is_line(&d, "not accepting mail: the daemon stops; 1 waiting, oldest 2 min; 1 finding");
    d.draining = 0;
    findings_free(&d.findings.findings);
    event_hub_free(&events);
    manager_world_end(&w);
}

static void
ask(void *context)
{
    const struct daemon *d = context;
    char line[NOTIFY_STATUS_MAX];
    part_answers_describe(context, line);
    ok_named(d->draining == 1 && strstr(line, "not accepting mail: the daemon stops; ") == line, line);
}

/* The service manager is told that the daemon still stops, while a disk makes it slow. */
TEST(line_at_the_end)
{
    struct world w;
    struct loop_task task = {0};
    manager_world_begin(&w, "* smtp://sink.test");
    struct daemon d = {.configuration = &configuration, .loop = w.loop, .manager = w.manager, .draining = 1};
    struct delivery_request request;
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "later@b.test");
    ok(manager_take(w.manager, w.fakes->session, &request) && world_operate(&w, MANAGER_BOUNCE) == MANAGER_LATER);
    fake_settle(w.fakes, &request);
    manager_fake_end(w.fakes);
    loop_post(w.loop, &task, ask, &d);
    part_manager_stop(&d);
    ok_named(d.manager == NULL, "the bounce is written, for which the loop is turned");
    w.manager = NULL;
    manager_world_end(&w);
}
