/* Smarthosts in status and readiness. */
#include "admin/startup/upstream_wiring.h"

#include "base/event/event.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <string.h>

static struct configuration configuration;
static struct questions *questions;

static void
read_routes(const char *routes, const char *ready_when)
{
    struct buffer errors;
    static char ready[60];
    buffer_init(&errors, 1000);
    route_free(&configuration.routes);
    configuration.routes = route_new(&(struct route_settings){.routes = text_from(routes), .without_secrets = true, .smtp_port = 25}, &errors);
    must(configuration.routes != NULL);
    snprintf(ready, sizeof(ready), "%s", ready_when);
    configuration.options.ready_when = ready;
    configuration.options.hostname = (char *)(uintptr_t) "petrel.test";
    configuration.options.canary_interval_ms = 0;
    configuration.options.canary_grace_ms = -1;
}

int
main(void)
{
    struct loop *loop = loop_new();
    struct log *log = log_new(loop, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct event_hub *events = event_hub_new(NULL);
    questions = questions_new(loop, NULL);
    struct upstream_wiring w = {.loop = loop, .log = log, .events = events, .questions = questions};
    struct health_check check = {.good = true};
    read_routes("* mx", "accepting");
    upstream_wiring_start(&w, &configuration);
    ok_named(!upstream_wiring_check(&w, &check), "no condition");
    read_routes("* mx", "accepting, upstream");
    upstream_wiring_reload(&w, &configuration);
    ok_named(upstream_wiring_check(&w, &check) && check.good && strcmp(check.name, "upstream") == 0, "one that holds without smarthosts");
    upstream_wiring_stop(&w);
    ok_named(upstream_wiring_check(&w, &check) && check.good, "and at the end");
    upstream_wiring_stop(&w);
    route_free(&configuration.routes);
    questions_free(&questions);
    event_hub_free(&events);
    log_free(&log);
    loop_free(&loop);
    return done();
}
