/* The queue and its manager, and the channel that reassembles fragments, with the registry
 * that says which host has which set, if several do. */
#include "admin/startup/parts.h"

#include "admin/settings/about.h"
#include "queue/queue_operator.h"
#include "sched/route/peers.h"

#include <sysexits.h>

enum { FRAGMENT_RECIPIENTS = 1000000 /* of all that wait: 100 MB */ };

/* --- The manager ------------------------------------------------------------------- */

int
part_manager_start(struct daemon *d)
{
    struct manager_settings settings = d->configuration->options.manager;
    settings.sched.seed = loop_random(d->loop);
    int code = manager_new(&d->manager, d->loop, d->events, &settings,
                           d->configuration->routes, d->error, DAEMON_ERROR_MAX);
    if (code == 0)
        about_write(queue_disk(manager_queue(d->manager)), &d->configuration->options);
    return code;
}

void
part_manager_reload(struct daemon *d, struct configuration *fresh)
{
    struct manager_settings settings = fresh->options.manager;
    settings.sched.seed = loop_random(d->loop);
    manager_reload(d->manager, &settings, fresh->routes);
    about_write(queue_disk(manager_queue(d->manager)), &fresh->options);
}

/* Not NULL before it has ended: it may turn the loop, whose timers ask the manager. */
void
part_manager_stop(struct daemon *d)
{
    struct manager *manager = d->manager;
    if (manager != NULL)
        manager_conclude(manager); /* some mail ends, and the history has it */
    part_history_stop(d);
    manager_free(&manager);
    d->manager = NULL;
}

/* --- Fragments --------------------------------------------------------------------- */

static struct channel_settings
part_fragments_settings(const struct daemon *d, const struct configuration *c)
{
    struct channel_settings settings = c->options.fragments;
    settings.registry = d->fragments.registry;
    settings.peers = route_peers(c->routes);
    settings.limits.bytes = options_fragments_max(
        &c->options, c->settings, queue_disk(manager_queue(d->manager)));
    settings.limits.recipients = FRAGMENT_RECIPIENTS;
    return settings;
}

static void
part_fragments_recovered(void *context, bool is_empty)
{
    const struct daemon *d = context;
    channel_recover(d->fragments.channel, is_empty);
}

static bool
part_fragments_register(struct daemon *d)
{
    struct configuration *c = d->configuration;
    struct part_fragments *f = &d->fragments;
    f->anchors = tls_client_keep(c->anchors);
    struct registry_setup setup = {.loop = d->loop,
                                   .log = d->log,
                                   .redis = part_group_redis(d),
                                   .net = d->net,
                                   .dns = d->dns,
                                   .tls = f->anchors,
                                   .host = peers_own_name(route_peers(c->routes)),
                                   .recovered = part_fragments_recovered,
                                   .context = d};
    f->registry = registry_new(&setup, &c->registry, d->error, DAEMON_ERROR_MAX);
    return f->registry != NULL;
}

int
part_fragments_start(struct daemon *d)
{
    if (d->configuration->registry.kind != REGISTRY_LOCAL &&
        !part_fragments_register(d))
        return EX_CONFIG;
    struct channel_settings settings = part_fragments_settings(d, d->configuration);
    d->fragments.channel = channel_new(d->loop, d->events, d->manager, &settings);
    return 0;
}

void
part_fragments_reload(struct daemon *d, struct configuration *fresh)
{
    struct channel_settings settings = part_fragments_settings(d, fresh);
    channel_reload(d->fragments.channel, &settings);
}

void
part_fragments_stop(struct daemon *d)
{
    channel_free(&d->fragments.channel);
    registry_free(&d->fragments.registry);
    tls_client_free(&d->fragments.anchors);
}
