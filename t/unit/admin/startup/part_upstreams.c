/* Smarthosts in status and readiness. */
#include "admin/startup/parts.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/must.h"

#include <string.h>

static struct configuration configuration;
static struct daemon d;

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
    struct world w;
    char folder[40];
    struct health_check check = {.good = true};
    folder_make(folder, sizeof(folder), "upstreams");
    control_world_begin(&w, folder, TEXT("* hold"));
    d = (struct daemon){.configuration = &configuration, .loop = w.loop, .log = w.log, .events = w.events, .control = w.control};
    read_routes("* mx", "accepting");
    is_number(part_upstreams_start(&d), 0, "it starts");
    ok_named(!part_upstreams_check(&d, &check), "no condition");
    read_routes("* mx", "accepting, upstream");
    part_upstreams_reload(&d, &configuration);
    ok_named(part_upstreams_check(&d, &check) && check.good && strcmp(check.name, "upstream") == 0, "one that holds without smarthosts");
    part_upstreams_stop(&d);
    ok_named(part_upstreams_check(&d, &check) && check.good, "and at the end");
    part_upstreams_stop(&d);
    route_free(&configuration.routes);
    control_turns(&w, 5);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
