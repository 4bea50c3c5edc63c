/* Mail in: the listener. */
#include "admin/startup/parts.h"

#include <sysexits.h>

/* A session_flush(). */
static enum server_flush
part_listener_flush(void *context, const char *node, const char *client)
{
    switch (flush_ask(context, node, client)) {
    case FLUSH_STARTED:
        return SERVER_FLUSH_STARTED;
    case FLUSH_RECENT:
        return SERVER_FLUSH_RECENT;
    case FLUSH_FULL:
        break;
    }
    return SERVER_FLUSH_UNABLE;
}

int
part_listener_start(struct daemon *d)
{
    const struct configuration *c = d->configuration;
    part_tls_note(d, &c->options.server);
    d->listener = listener_new(d->loop, d->net, d->events, d->manager, c->routes,
                               &c->options.server, d->error, DAEMON_ERROR_MAX);
    if (d->listener == NULL)
        return net_passed_is_missing(d->net) ? EX_CONFIG : EX_UNAVAILABLE;
    listener_on_flush(d->listener, part_listener_flush, d->flush);
    return 0;
}

void
part_listener_reload(struct daemon *d, struct configuration *fresh)
{
    const struct listener_settings *settings = &fresh->options.server;
    part_tls_note(d, settings);
    listener_reload(d->listener, fresh->routes, settings);
    (void)part_tls_start(d);
}

void
part_listener_stop(struct daemon *d)
{
    listener_free(&d->listener);
}
