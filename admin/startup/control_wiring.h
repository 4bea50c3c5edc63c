/* Connects the control socket to the parts of the daemon that it reports. */
#ifndef ADMIN_STARTUP_CONTROL_WIRING_H
#define ADMIN_STARTUP_CONTROL_WIRING_H

#include "admin/control/control_server.h"
#include "smtp/client/delivery.h"
#include "smtp/server/listener.h"

struct control_wiring {
    /* Set by the owner before the start. */
    struct listener *listener;
    struct delivery *delivery;
    struct control_server *control;
};

void control_wiring_start(struct control_wiring *wiring);
/* The sessions of a listener, and whether there are nearly too many of them. */
size_t control_wiring_sessions(void *listener, bool *stressed);

#endif
