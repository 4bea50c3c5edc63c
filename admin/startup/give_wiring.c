/* The neighbours of give.h and take.h. */
#include "admin/startup/give_wiring.h"

static void
give_wiring_each(void *context, bool (*each)(void *context, const struct sibling *s),
                 void *each_context)
{
    const struct give_wiring *w = context;
    group_siblings(*w->group, each, each_context);
}

void
give_wiring_start(struct give_wiring *w, const struct configuration *c)
{
    if (*w->group == NULL || text_trim(configuration_peer(c).secret).length == 0)
        return;
    w->take = take_new(
        &(struct take_setup){.loop = w->loop,
                             .events = w->events,
                             .manager = w->manager,
                             .message_size_limit = c->options.message_size_limit,
                             .closed = w->leaves,
                             .context = w->context});
    take_serve(w->take, &w->peer->take);
}

const struct give_setup *
give_wiring_siblings(struct give_wiring *w)
{
    const struct sibling_calls *calls = peer_wiring_calls(w->peer);
    if (calls == NULL)
        return NULL;
    w->give = (struct give_setup){.loop = w->loop,
                                  .events = w->events,
                                  .manager = w->manager,
                                  .calls = calls,
                                  .host = w->peer->host,
                                  .siblings = give_wiring_each,
                                  .context = w};
    return &w->give;
}

void
give_wiring_reload(struct give_wiring *w, const struct configuration *c)
{
    if (w->take != NULL)
        take_reload(w->take, c->options.message_size_limit);
}

void
give_wiring_stop(struct give_wiring *w)
{
    take_free(&w->take);
}
