/* Fuzz target: scenarios, and short runs of those that are small enough. */
#include "t/simulation/simulation.h"

#include "t/support/must.h"

#include <stdlib.h>

enum { SMALL = 2000, RUN_US_MAX = 20000000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
is_small(const struct scenario *s)
{
    uint64_t recipients = 0, domains = s->domain_count;
    for (size_t i = 0; i < s->arrival_count; i++)
        recipients += (uint64_t)s->arrivals[i].messages * s->arrivals[i].recipients;
    return recipients <= SMALL && domains <= SMALL && s->site_count <= SMALL;
}

static void
run(struct scenario *s)
{
    if (s->until_us > RUN_US_MAX)
        s->until_us = RUN_US_MAX;
    struct simulation_result *r = simulation_run(s, NULL, NULL);
    must(r->messages_delivered + r->messages_failed <= r->messages);
    must(!r->finished || r->messages_delivered + r->messages_failed == r->messages);
    must(r->peak_active <= (size_t)s->sched.active_limit);
    struct buffer report;
    buffer_init(&report, 1 << 20);
    simulation_report(r, s, &report);
    buffer_free(&report);
    simulation_free(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer mistakes;
    struct scenario_defaults defaults = scenario_defaults();
    buffer_init(&mistakes, 64 * 1024);
    struct scenario *s =
        scenario_new(text_of(data, size), "fuzz", &defaults, &mistakes);
    must((s == NULL) == (mistakes.length > 0));
    if (s && is_small(s))
        run(s);
    scenario_free(&s);
    buffer_free(&mistakes);
    return 0;
}
