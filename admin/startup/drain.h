/* `petrel drain`: takes the daemon out of service, and back.
 *
 *   running    mail comes and goes
 *   leaving    readiness fails; mail is accepted for drain_delay more, because load
 *              balancers lag
 *   emptying   if requested: clients get 421 4.3.2 after their transaction, deliveries go
 *              on, and deferred mail is due now and every 10 s, until none is left but
 *              held mail, quarantined mail and fragments, or the time is over
 *   closing    clients get 421 4.3.2; no session out begins, and those that run end, at
 *              the latest after drain_timeout
 *   gone       closed until SIGTERM, or until the drain is cancelled
 *
 * Questions of the control socket:
 *   drain      {wait_ms, empty}: begins, or {cancel}: ends, or {progress}: neither.
 *              Answered by state, left (the messages by place, as `queue` of the status),
 *              sessions_in, sessions_out */
#ifndef ADMIN_STARTUP_DRAIN_H
#define ADMIN_STARTUP_DRAIN_H

#include "admin/control/questions.h"
#include "admin/startup/configuration.h"
#include "base/loop/loop.h"
#include "smtp/server/listener.h"

enum drain_state {
    DRAIN_RUNNING,
    DRAIN_LEAVING,
    DRAIN_EMPTYING,
    DRAIN_CLOSING,
    DRAIN_GONE
};

struct drain {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct event_hub *events;
    struct manager *manager;
    struct listener *listener;
    struct questions *questions;
    struct configuration *const *configuration; /* the one in force */
    /* Private. */
    enum drain_state state;
    bool empties, manager_drained;
    int64_t until_ms, retry_ms; /* monotonic: end of emptying or closing; next retry */
    struct loop_timer timer;
};

void drain_start(struct drain *drain);
/* The daemon stops. */
void drain_stop(struct drain *drain);
/* Why no mail should come, for health, status and log; NULL: it is running. */
const char *drain_reason(const struct drain *drain);

#endif
