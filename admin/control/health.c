/* Asks each condition of readiness. */
#include "admin/control/health.h"

bool
health_is_ready(const struct health *h, size_t *count,
                struct health_check checks[HEALTH_CHECKS_MAX])
{
    bool ready = true;
    *count = h->look(h->context, checks);
    for (size_t i = 0; i < *count; i++)
        ready = ready && checks[i].good;
    return ready;
}

json_t *
health_answer(void *context, const json_t *request)
{
    struct health_check checks[HEALTH_CHECKS_MAX];
    json_t *list = json_array();
    size_t count;
    (void)request;
    bool ready = health_is_ready(context, &count, checks);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s,s:b,s:s}", "name", checks[i].name,
                                              "ok", checks[i].good, "why",
                                              checks[i].good ? "" : checks[i].why));
    return json_pack("{s:b,s:b,s:o}", "ok", true, "ready", ready, "checks", list);
}
