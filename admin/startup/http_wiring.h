/* The HTTP server of the daemon with its answers: routes and metrics. Nothing is made
 * unless `http` is set, or a client of the control socket asks for it. */
#ifndef ADMIN_STARTUP_HTTP_WIRING_H
#define ADMIN_STARTUP_HTTP_WIRING_H

#include "admin/startup/group_wiring.h"
#include "admin/control/control_server.h"
#include "admin/history/history.h"
#include "admin/http/http_routes.h"
#include "admin/http/http_server.h"
#include "admin/startup/configuration.h"
#include "admin/startup/findings_wiring.h"
#include "admin/startup/upstream_wiring.h"

struct http_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct manager *manager;
    struct listener *listener;
    struct event_hub *events;
    struct control_server *control;
    struct history *history;
    const struct delivery *delivery;
    struct findings_wiring *findings; /* may start later */
    const struct upstream_wiring *upstreams;
    const struct group_wiring *group;
    size_t (*count_sessions)(void *context, bool *stressed); /* of the listener */
    bool (*is_draining)(void *context);
    const struct health *health;
    struct trials *trials;
    void *context;
    /* Private. */
    const struct configuration *configuration; /* in force */
    struct questions *questions;
    struct http_server *server;
    struct metrics *metrics; /* NULL: no place has them */
    struct live *live;
    struct series *series;
    struct http_routes routes;
};

/* Before the sandbox. False with one line in error. */
bool http_wiring_start(struct http_wiring *wiring,
                       const struct configuration *configuration, char *error,
                       size_t error_size) __attribute__((warn_unused_result));
/* NULL: the reload was refused. */
void http_wiring_reload(struct http_wiring *wiring,
                        const struct configuration *configuration);
void http_wiring_stop(struct http_wiring *wiring);

#endif
