/* The source addresses of a session, and the families that it may connect to. */
#include "base/net/net.h"
#include "smtp/delivery/delivery_internal.h"

#include <string.h>

static bool
is_permitted(const struct delivery_session *s, enum target_family family)
{
    enum target_family wanted = s->target->family;
    if (wanted == TARGET_FAMILY_UNSET)
        wanted = s->delivery->settings.smtp_family;
    return wanted == TARGET_FAMILY_UNSET || wanted == TARGET_FAMILY_ANY ||
           wanted == family;
}

/* Whether the source address of that family exists; missing gets one that does not. */
static bool
is_there(const struct delivery_session *s, enum net_family family,
         char missing[NET_ADDRESS_TEXT_MAX])
{
    struct net_address address;
    if (!bind_address_for(&s->sources, family, &address))
        return false;
    if (net_can_bind(&address))
        return true;
    net_address_ip(&address, missing);
    return false;
}

bool
delivery_choose_source(struct delivery_session *s, struct outcome *why)
{
    struct delivery *d = s->delivery;
    char missing[NET_ADDRESS_TEXT_MAX] = "";
    s->sources = s->target->bind;
    /* Other hosts of ours may know this one by its source address. */
    bind_address_complete(&s->sources,
                          target_peer(s->target) ? &d->peer_sources : &d->sources);
    s->skip_v4 = !is_permitted(s, TARGET_FAMILY_IPV4);
    s->skip_v6 = !is_permitted(s, TARGET_FAMILY_IPV6);
    bool v4 = !s->skip_v4 && is_there(s, NET_IPV4, missing);
    bool v6 = !s->skip_v6 && is_there(s, NET_IPV6, missing);
    if (missing[0] == '\0')
        return true;
    /* Mail must not leave from an address that the settings do not name. */
    s->skip_v4 = !v4;
    s->skip_v6 = !v6;
    *why = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.3.5",
                        "this host does not have the source address %s of %s", missing,
                        s->target->bind.has_v4 || s->target->bind.has_v6 ? "bind="
                                                                         : "smtp_bind");
    return v4 || v6;
}
