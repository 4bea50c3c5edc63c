/* Reports to the service manager that started the daemon: systemd, or another one with
 * its protocol (sd_notify(3); OpenRC's notify=socket:ready).
 *
 * NOTIFY_SOCKET names the socket, WATCHDOG_USEC and WATCHDOG_PID ask for signs of life,
 * which a timer of the loop sends: a loop that hangs sends none. Without NOTIFY_SOCKET
 * nothing is made. */
#ifndef ADMIN_STARTUP_NOTIFY_H
#define ADMIN_STARTUP_NOTIFY_H

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/net/net_outlet.h"

enum { NOTIFY_STATUS_MAX = 200 };

struct notify {
    struct loop *loop;
    struct net_datagram socket; /* closed: no service manager */
    /* One line about the daemon's state. */
    void (*status)(void *context, char out[NOTIFY_STATUS_MAX]);
    void *context;
    int64_t watchdog_ms; /* 0: none */
    struct loop_timer watchdog, refresh;
    const char *state; /* READY=1 and the like, sent last; NULL: startup */
    bool unsent;       /* the socket was full */
    char shown[NOTIFY_STATUS_MAX];
};

/* Before the sandbox, which makes no sockets. The variables are removed: they are
 * of this process alone. A socket that cannot be used is a warning. */
void notify_open(struct notify *notify, struct loop *loop, struct log *log);
/* All ports are bound: READY, in the first turn of the loop, and the signs of life.
 * status and context as in the struct. */
void notify_start(struct notify *notify,
                  void (*status)(void *context, char out[NOTIFY_STATUS_MAX]),
                  void *context);
/* The settings are being read again; until notify_reloaded(). */
void notify_reloading(struct notify *notify);
void notify_reloaded(struct notify *notify);
/* The daemon stops: the manager's patience is extended while sessions end. */
void notify_stopping(struct notify *notify);
void notify_close(struct notify *notify);

#endif
