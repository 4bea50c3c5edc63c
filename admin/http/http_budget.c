/* Counts the handshakes of a second, by client. */
#include "admin/http/http_budget.h"

static bool
http_budget_take_distant(struct http_budget *b, const struct net_address *peer)
{
    struct net_address own = *peer;
    unsigned same = 0;
    own.port = 0;
    for (unsigned i = 0; i < b->distant_count; i++)
        same += net_address_equal(&b->distant[i], &own);
    if (same >= HTTP_TLS_OF_CLIENT || b->distant_count == HTTP_TLS_DISTANT)
        return false;
    b->distant[b->distant_count++] = own;
    return true;
}

bool
http_budget_take(struct http_budget *b, const struct net_address *peer, int64_t now_ms)
{
    bool is_near = peer->family == NET_UNIX || net_address_is_loopback(peer);
    if (now_ms - b->second_ms >= 1000) {
        b->second_ms = now_ms;
        b->count = b->distant_count = 0;
    }
    if (b->count == HTTP_TLS_A_SECOND ||
        (!is_near && !http_budget_take_distant(b, peer)))
        return false;
    b->count++;
    return true;
}
