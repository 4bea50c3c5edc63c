/* Readiness: all conditions hold, and what is said of those that do not. */
#include "admin/control/health.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static struct health_check given[2];

static size_t
look(void *context, struct health_check checks[HEALTH_CHECKS_MAX])
{
    memcpy(checks, given, sizeof(given));
    return *(size_t *)context;
}

static void
says(struct health *h, bool ready, const char *want)
{
    struct health_check checks[HEALTH_CHECKS_MAX];
    size_t count;
    json_t *answer = health_answer(h, NULL);
    char *got = json_dumps(json_object_get(answer, "checks"), JSON_COMPACT);
    is_string(got, want, want);
    ok(json_is_true(json_object_get(answer, "ready")) == ready);
    ok(health_is_ready(h, &count, checks) == ready);
    free(got);
    json_decref(answer);
}

int
main(void)
{
    size_t count = 0;
    struct health h = {look, &count};
    says(&h, true, "[]");
    given[0] = (struct health_check){"accepting", true, "not shown"};
    given[1] = (struct health_check){"upstream", false, "535 no"};
    count = 1;
    says(&h, true, "[{\"name\":\"accepting\",\"ok\":true,\"why\":\"\"}]");
    count = 2;
    says(&h, false, "[{\"name\":\"accepting\",\"ok\":true,\"why\":\"\"},{\"name\":\"upstream\",\"ok\":false,\"why\":\"535 no\"}]");
    return done();
}
