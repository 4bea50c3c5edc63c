/* One view of the hosts of a group: the description of this host, and the hosts that the
 * control socket asks when a request says "cluster": true.
 *
 * The question `summary`, which other hosts may ask, is answered by one object:
 *   version, uptime_s, accepting, reason, queue, oldest_ms, sessions   as in the status
 *   state      running, leaving, closing, emptying, giving, gone
 *   waiting    messages that are incoming, active or deferred
 *   busy       0 to 1, the mean of a minute; omitted where nobody measures it
 *   settings   digests by their names (settings_digest.h)
 *   group      as in the status; null: there is none
 *   sites      those with shared limits and most mail, at most CLUSTER_SITES: site, limit,
 *              shared_tokens, lease_tokens, lease_sessions, sessions, busy, waiting,
 *              backlogged, bound */
#ifndef ADMIN_STARTUP_CLUSTER_WIRING_H
#define ADMIN_STARTUP_CLUSTER_WIRING_H

#include "admin/control/control_server.h"
#include "admin/control/fan_out.h"
#include "admin/startup/configuration.h"
#include "queue/group/group.h"

struct metrics;

enum { CLUSTER_SITES = 100 };

struct cluster_wiring {
    /* Set by the owner before the start. */
    struct manager *manager;
    struct control_server *control;
    struct group *const *group;                 /* it is NULL: there is none */
    struct configuration *const *configuration; /* the one in force */
    const struct sibling_calls *calls;          /* NULL: there is no peer door */
    const char *(*state)(void *context);
    void *context;
    struct metrics *const *metrics; /* it is NULL: nobody measures how busy we are */
    /* Private. */
    struct cluster_hosts hosts;
    char host[GROUP_HOST_MAX + 1];
};

/* With a group or without one. */
void cluster_wiring_start(struct cluster_wiring *wiring);
/* Nobody is asked any more: before the peer door is closed. */
void cluster_wiring_stop(struct cluster_wiring *wiring);

#endif
