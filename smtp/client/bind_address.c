/* Reads the list of source addresses and finds the one for a family. */
#include "smtp/client/bind_address.h"

#include <assert.h>
#include <string.h>

static void
prefer(struct bind_address *s, const struct net_address *address)
{
    assert(address->family == NET_IPV4 || address->family == NET_IPV6);
    bool is_v6 = address->family == NET_IPV6;
    struct net_address *place = is_v6 ? &s->v6 : &s->v4;
    *(is_v6 ? &s->has_v6 : &s->has_v4) = true;
    *place = *address;
    place->port = 0;
}

static bool
bind_address_add(struct bind_address *s, struct text word, struct buffer *errors)
{
    struct net_address address;
    if (!net_address_parse_ip(word, &address))
        return buffer_add_error(errors, "smtp_bind", word, "not an IP address");
    if (address.family == NET_IPV6 ? s->has_v6 : s->has_v4)
        return buffer_add_error(errors, "smtp_bind", word,
                                "a second address of its family");
    prefer(s, &address);
    return true;
}

bool
bind_address_read(struct bind_address *sources, struct text list, struct buffer *errors)
{
    struct text word;
    bool good = true;
    memset(sources, 0, sizeof(*sources));
    while (text_word(&list, ", \t\r\n", &word))
        good = bind_address_add(sources, word, errors) && good;
    return good;
}

void
bind_address_for_peers(struct bind_address *sources, const struct bind_address *others,
                       const struct peers *peers)
{
    const struct net_address *own = peers != NULL ? peers_own_address(peers) : NULL;
    *sources = *others;
    if (own != NULL)
        prefer(sources, own);
}

const struct net_address *
bind_address_for(const struct bind_address *sources, enum net_family family)
{
    switch (family) {
    case NET_IPV4:
        return sources->has_v4 ? &sources->v4 : NULL;
    case NET_IPV6:
        return sources->has_v6 ? &sources->v6 : NULL;
    case NET_NONE:
    case NET_UNIX:
        break;
    }
    return NULL;
}
