/* Messages whose form some host cannot read: a version is older than ours, and another host
 * may have a newer one. */
#include "queue/group/give_internal.h"

bool
give_unread_by(const struct gift *x, size_t host)
{
    return (x->unread[host / 64] >> (host % 64) & 1) != 0;
}

void
give_unread_note(struct gift *x)
{
    const struct give *g = x->give;
    for (size_t i = 0; i < g->host_count; i++)
        if (g->hosts[i] == x->host)
            x->unread[i / 64] |= UINT64_C(1) << (i % 64);
    x->is_unread = true;
}

enum give_unread
give_unread_hope(const struct gift *x)
{
    const struct give *g = x->give;
    enum give_unread hope = GIVE_UNREAD_BY_ALL;
    for (size_t i = 0; i < g->host_count; i++) {
        const struct give_host *h = g->hosts[i];
        if (!h->is_there || give_unread_by(x, i))
            continue;
        if (!h->is_silent && give_is_open(g, h))
            return GIVE_UNREAD_SOON;
        hope = GIVE_UNREAD_LATER;
    }
    return hope;
}
