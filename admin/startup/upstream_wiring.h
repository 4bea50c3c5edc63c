/* The smarthosts for status, readiness and metrics. */
#ifndef ADMIN_STARTUP_UPSTREAM_WIRING_H
#define ADMIN_STARTUP_UPSTREAM_WIRING_H

#include "admin/control/health.h"
#include "admin/control/questions.h"
#include "admin/startup/configuration.h"
#include "smtp/delivery/upstreams.h"

struct upstream_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct delivery *delivery;
    struct questions *questions;
    /* Private. */
    struct upstreams *upstreams;
    bool is_condition; /* of readiness */
    int64_t grace_ms;
};

void upstream_wiring_start(struct upstream_wiring *wiring,
                           const struct configuration *configuration);
/* Before the old configuration is freed, after delivery_reload(). */
void upstream_wiring_reload(struct upstream_wiring *wiring,
                            const struct configuration *configuration);
/* Before delivery_free(). */
void upstream_wiring_stop(struct upstream_wiring *wiring);
/* False: upstreams are no condition of readiness. */
bool upstream_wiring_check(const struct upstream_wiring *wiring,
                           struct health_check *check);

#endif
