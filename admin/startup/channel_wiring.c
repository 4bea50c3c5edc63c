/* The channel and its registry: start, reload, stop. */
#include "admin/startup/channel_wiring.h"

#include "sched/route/peers.h"

static struct channel_settings
channel_wiring_settings(const struct channel_wiring *w, const struct configuration *c)
{
    return configuration_channel(c, w->registry, queue_disk(manager_queue(w->manager)));
}

static void
on_registry(void *context, bool is_empty)
{
    const struct channel_wiring *w = context;
    channel_recover(w->channel, is_empty);
}

static bool
channel_wiring_register(struct channel_wiring *w, const struct configuration *c,
                        char *error, size_t size)
{
    char place[TRUST_ANCHORS_PLACE_MAX];
    struct redis *redis = group_wiring_redis(w->group, c);
    if (c->registry.redis.tls && redis == NULL) {
        w->anchors = configuration_anchors(c, place, error, size);
        if (w->anchors == NULL)
            return false;
    }
    struct registry_setup setup = {.loop = w->loop,
                                   .log = w->log,
                                   .redis = redis,
                                   .net = w->net,
                                   .dns = w->dns,
                                   .tls = w->anchors,
                                   .host = peers_own_name(route_peers(c->routes)),
                                   .recovered = on_registry,
                                   .context = w};
    w->registry = registry_new(&setup, &c->registry, error, size);
    return w->registry != NULL;
}

bool
channel_wiring_start(struct channel_wiring *w, const struct configuration *c,
                     char *error, size_t size)
{
    if (c->registry.kind != REGISTRY_LOCAL &&
        !channel_wiring_register(w, c, error, size))
        return false;
    struct channel_settings settings = channel_wiring_settings(w, c);
    w->channel = channel_new(w->loop, w->events, w->manager, &settings);
    return true;
}

void
channel_wiring_reload(struct channel_wiring *w, const struct configuration *c)
{
    struct channel_settings settings = channel_wiring_settings(w, c);
    channel_reload(w->channel, &settings);
}

void
channel_wiring_stop(struct channel_wiring *w)
{
    channel_free(&w->channel);
    registry_free(&w->registry);
    tls_client_free(&w->anchors);
}
