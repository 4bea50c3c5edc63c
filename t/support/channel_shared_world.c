/* A host of several. */
#include "t/support/channel_shared_world.h"

void
shared_begin(struct shared *h, const char *routes)
{
    memset(h, 0, sizeof(*h));
    stage_begin(&h->s, routes);
    stage_stop(&h->s);
    h->s.settings.registry = &h->registry;
    route_free(&h->s.w.routes);
    h->s.w.routes_text.defrag_host = TEXT("a.test");
    h->s.w.routes_text.defrag_peers = TEXT("a.test=127.0.0.1, b.test=127.0.0.2");
    h->s.w.routes = world_routes(&h->s.w);
    manager_world_start(&h->s.w);
}

void
shared_start(struct shared *h)
{
    route_free(&h->s.w.routes);
    h->s.w.routes = world_routes(&h->s.w);
    manager_world_start(&h->s.w);
    world_turns(&h->s.w);
}

void
shared_end(struct shared *h)
{
    stage_end(&h->s);
    is_number(h->registry.count, 0, "no claim is left behind");
}

void
shared_tell(struct shared *h, enum registry_answer is, const char *host)
{
    answer(&h->registry, is, host);
    world_turns(&h->s.w);
}

const char *
shared_peer(const struct shared *h, unsigned which)
{
    return which < h->s.count ? h->s.delivered[which].peer : "nothing came";
}
