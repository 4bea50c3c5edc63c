/* Connects the control socket to the parts of the daemon that it reports and changes.
 *
 * Questions beyond those of control_server.h, each a line of JSON:
 *   health      see admin/control/health.h
 *   log-level   {level, for_ms}: level for that time (0: until a reload); without level
 *               nothing changes. Answered by level, configured, until_ms (since 1970;
 *               0: not limited)
 *   lockouts    the clients that are locked out: count, and lockouts (client, times,
 *               until_ms), latest failure first, at most LOCKOUTS_SHOWN
 *   unlock      {clients}: their failures are forgotten. Answered by clients: for each
 *               client, locked
 *   site        {name}: site (site_view.h) and failed, its last failed conversation:
 *               begun_ms, relay, cut, lines (at_ms, from: we, they or note, text); null:
 *               there is none
 *   canary      a canary to each smarthost now (upstreams_ask()): asked, how many; and
 *               upstreams as in the status, from before
 *   series      what HTTP's /api/series has, counted since the first question if HTTP has
 *               no page
 *   reload      answered when it is done: ok, restart (settings that wait for one); or
 *               errors */
#ifndef ADMIN_STARTUP_CONTROL_WIRING_H
#define ADMIN_STARTUP_CONTROL_WIRING_H

#include "admin/control/control_server.h"
#include "admin/control/health.h"
#include "base/loop/loop.h"
#include "smtp/delivery/delivery.h"
#include "smtp/session/listener.h"

struct control_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct listener *listener;
    struct delivery *delivery;
    struct control_server *control;
    struct health *health;
    void (*reload)(void *context);
    bool (*is_draining)(void *context);
    void *context;
    /* Private. */
    enum log_level level; /* of the settings */
    int64_t level_until_ms;
    struct loop_timer level_timer;
    struct loop_task reload_task;
    bool reloading;
};

void control_wiring_start(struct control_wiring *wiring);
/* A reload has ended; the log has the level of the settings. errors: of the reload,
 * borrowed; NULL: it is in force, restart names the settings that are not. */
void control_wiring_reloaded(struct control_wiring *wiring, const json_t *errors,
                             const char *restart);
/* The daemon stops: no reload will end. */
void control_wiring_stop(struct control_wiring *wiring);
/* The sessions of a listener, and whether there are nearly too many of them. */
size_t control_wiring_sessions(void *listener, bool *stressed);

#endif
