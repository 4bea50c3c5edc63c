/* The channel that reassembles fragments, with the registry that says which host has which
 * set, if several do. */
#ifndef ADMIN_STARTUP_CHANNEL_WIRING_H
#define ADMIN_STARTUP_CHANNEL_WIRING_H

#include "admin/startup/configuration.h"
#include "admin/startup/group_wiring.h"
#include "defrag/channel.h"
#include "defrag/registry/registry.h"

struct channel_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct dns *dns;
    struct event_hub *events;
    struct manager *manager;
    const struct group_wiring *group; /* whose connection may serve both */
    /* Private. */
    struct defragmenter *channel;
    struct registry *registry;  /* NULL: local */
    struct tls_client *anchors; /* separate, since a reload does not change it */
};

/* False with one line in error: it can never work. */
bool channel_wiring_start(struct channel_wiring *wiring, const struct configuration *c,
                          char *error, size_t size) __attribute__((warn_unused_result));
void channel_wiring_reload(struct channel_wiring *wiring,
                           const struct configuration *c);
void channel_wiring_stop(struct channel_wiring *wiring);

#endif
