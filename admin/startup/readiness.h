/* Readiness: the conditions of `ready_when`, for HTTP, `petrel health` and status. */
#ifndef ADMIN_STARTUP_READINESS_H
#define ADMIN_STARTUP_READINESS_H

#include "admin/control/health.h"
#include "admin/startup/upstream_wiring.h"
#include "queue/manager/manager.h"

struct readiness {
    /* Set by the owner before the first question. */
    struct loop *loop;
    struct manager *manager;
    const struct upstream_wiring *upstreams;
    /* Why no mail should come, on purpose; NULL: it may. */
    const char *(*leaves)(void *context);
    void *context;
    int64_t age_ms; /* of the oldest mail, at most; 0: no condition */
};

/* A health.look, whose context is a struct readiness. */
size_t readiness_look(void *readiness, struct health_check checks[HEALTH_CHECKS_MAX]);

#endif
