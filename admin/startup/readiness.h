/* Readiness: the conditions of `ready_when`, for HTTP, `petrel health` and status; and
 * the state in a line, for the service manager. */
#ifndef ADMIN_STARTUP_READINESS_H
#define ADMIN_STARTUP_READINESS_H

#include "admin/control/health.h"
#include "admin/findings/findings.h"
#include "admin/startup/notify.h"
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
    /* Where the findings are; NULL: not yet. */
    struct findings *const *findings;
    int64_t age_ms; /* of the oldest mail, at most; 0: no condition */
};

/* A health.look, whose context is a struct readiness. */
size_t readiness_look(void *readiness, struct health_check checks[HEALTH_CHECKS_MAX]);
/* A status of struct notify: "accepting mail; 3 waiting, oldest 2 min; 1 finding".
 * Hints do not count. context: a struct readiness. */
void readiness_describe(void *context, char out[NOTIFY_STATUS_MAX]);

#endif
