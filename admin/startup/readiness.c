/* Asks the queue, the age of its mail and the smarthosts. */
#include "admin/startup/readiness.h"

#include "queue/queue_operator.h"

#include <inttypes.h>
#include <stdio.h>

enum { READINESS_MINUTE_MS = 60 * 1000 };

/* Mail that is held waits on purpose, and fragments wait for others. */
static bool
readiness_look_at_age(const struct readiness *r, struct health_check *check)
{
    struct manager_oldest oldest;
    if (r->age_ms == 0)
        return false;
    manager_find_oldest(r->manager, &oldest);
    int64_t age_ms = oldest.birth_ms != 0 ? loop_now_ms(r->loop) - oldest.birth_ms : 0;
    *check = (struct health_check){.name = "age", .good = age_ms <= r->age_ms};
    if (!check->good)
        snprintf(check->why, sizeof(check->why),
                 "the oldest message has waited for %" PRId64 " min",
                 age_ms / READINESS_MINUTE_MS);
    return true;
}

size_t
readiness_look(void *context, struct health_check checks[HEALTH_CHECKS_MAX])
{
    const struct readiness *r = context;
    struct queue_health health = queue_health(manager_queue(r->manager));
    const char *leaves = r->leaves(r->context);
    size_t count = 0;
    struct health_check *accepting = &checks[count++];
    *accepting = (struct health_check){.name = "accepting",
                                       .good = health.accepting && leaves == NULL};
    text_copy(accepting->why, sizeof(accepting->why),
              text_from(leaves != NULL ? leaves : health.reason));
    count += upstream_wiring_check(r->upstreams, &checks[count]);
    count += readiness_look_at_age(r, &checks[count]);
    return count;
}
