/* The oldest mail, for checks whether mail flows. */
#include "queue/manager/manager_internal.h"

enum { TRANSIENT_LOW = 400, TRANSIENT_HIGH = 499, UNAVAILABLE = 421 };

/* The receiver has answered, and asked to come again: greylisting, a full mailbox. 421
 * is a host that ends its service (RFC 5321, 3.8). */
static bool
manager_oldest_is_refused(const struct manager *m, struct id id)
{
    int code = deferral_reasons_code(m->reasons, id);
    return code >= TRANSIENT_LOW && code <= TRANSIENT_HIGH && code != UNAVAILABLE;
}

void
manager_find_oldest(struct manager *m, struct manager_oldest *out)
{
    struct id ids[MANAGER_OLDEST_MAX];
    size_t count = sched_oldest(m->sched, ids, MANAGER_OLDEST_MAX);
    int64_t now_ms = loop_now_ms(m->loop);
    *out = (struct manager_oldest){0};
    for (size_t i = 0; i < count && out->behind_ms == 0; i++) {
        if (manager_is_awaiting(m, ids[i]))
            continue;
        if (out->birth_ms == 0)
            out->birth_ms =
                age_clock_birth_ms(&m->age, (int64_t)ids[i].time_ms, now_ms);
        if (manager_oldest_is_refused(m, ids[i]))
            continue;
        out->behind_ms = age_clock_birth_ms(&m->age, (int64_t)ids[i].time_ms, now_ms);
        out->behind = ids[i];
    }
}
