/* Limits that all sites of a transport share. */
#include "sched/site.h"

/* Several transports may lead to one account. */
static void
update_namesakes(struct sites *set, const struct transport *c, int64_t now_ms)
{
    struct transport *other, *next;
    HASH_ITER (hh, set->transports.by_target, other, next)
        if (other != c && other->hop == c->hop &&
            hop_quota_update(&set->transports.hops, other))
            sites_update(set, other, now_ms);
}

void
sites_transport_changed(struct sites *set, struct transport *transport, int64_t now_ms)
{
    bool is_shared = transport->hop != NULL && transport->hop->holders > 1;
    bool changed = hop_quota_update(&set->transports.hops, transport);
    if (is_shared)
        update_namesakes(set, transport, now_ms);
    if (changed || transport->target.transport.transport_rate_delay_ms > 0)
        sites_update(set, transport, now_ms);
}
