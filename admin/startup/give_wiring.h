/* Mail that goes from host to host: takes mail that siblings give by the peer door, and
 * chooses the hosts that a drain may give to. */
#ifndef ADMIN_STARTUP_GIVE_WIRING_H
#define ADMIN_STARTUP_GIVE_WIRING_H

#include "admin/startup/peer_wiring.h"
#include "queue/group/give.h"
#include "queue/group/take.h"

struct give_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct event_hub *events;
    struct manager *manager;
    struct group *const *group; /* it is NULL: there is none */
    struct peer_wiring *peer;
    /* Why no mail comes, on purpose; NULL: it comes. */
    const char *(*leaves)(void *context);
    void *context;
    /* Private. */
    struct take *take;
    struct give_setup give;
};

/* Before the peer door opens. Without a group and a secret nothing is there. */
void give_wiring_start(struct give_wiring *wiring, const struct configuration *c);
/* Once it is open: to whom mail may be given; NULL: there is no peer door. */
const struct give_setup *give_wiring_siblings(struct give_wiring *wiring);
void give_wiring_reload(struct give_wiring *wiring, const struct configuration *c);
/* After the peer door is closed. */
void give_wiring_stop(struct give_wiring *wiring);

#endif
