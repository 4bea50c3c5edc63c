/* Asks the queue, the age of its mail and the smarthosts. */
#include "admin/startup/readiness.h"

#include "admin/control/format_time.h"
#include "queue/queue_operator.h"

#include <inttypes.h>
#include <stdio.h>

enum { READINESS_MINUTE_MS = 60 * 1000, READINESS_MAIL_MAX = 80 };

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

/* --- In a line -------------------------------------------------------------------- */

static void
readiness_describe_mail(const struct readiness *r, char *out, size_t size)
{
    struct sched_counts counts = sched_count(manager_sched(r->manager));
    size_t waiting = (size_t)(counts.incoming + counts.active + counts.deferred);
    struct manager_oldest oldest;
    char age[FORMAT_TIME_MAX];
    manager_find_oldest(r->manager, &oldest);
    if (waiting == 0)
        snprintf(out, size, "nothing waiting");
    else if (oldest.birth_ms == 0)
        snprintf(out, size, "%zu waiting", waiting);
    else
        snprintf(out, size, "%zu waiting, oldest %s", waiting,
                 format_time_span(loop_now_ms(r->loop) - oldest.birth_ms, age));
}

void
readiness_describe(void *context, char out[NOTIFY_STATUS_MAX])
{
    const struct readiness *r = context;
    struct queue_health health = queue_health(manager_queue(r->manager));
    const char *leaves = r->leaves(r->context);
    size_t wrong = r->findings != NULL ? findings_count_wrong(*r->findings) : 0;
    char mail[READINESS_MAIL_MAX], more[32] = "";
    readiness_describe_mail(r, mail, sizeof(mail));
    if (wrong > 0)
        snprintf(more, sizeof(more), "; %zu finding%s", wrong, wrong == 1 ? "" : "s");
    if (leaves != NULL || !health.accepting)
        snprintf(out, NOTIFY_STATUS_MAX, "not accepting mail: %.60s; %s%s",
                 leaves != NULL ? leaves : health.reason, mail, more);
    else
        snprintf(out, NOTIFY_STATUS_MAX, "accepting mail; %s%s", mail, more);
}
