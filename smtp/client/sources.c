/* Reads the list of source addresses and finds the one for a family. */
#include "smtp/client/sources.h"

#include <assert.h>
#include <string.h>

static bool
sources_complain(struct buffer *mistakes, struct text word, const char *why)
{
    /* Above the buffer's limit there are mistakes enough. */
    bool told = mistakes != NULL && buffer_format(mistakes, "smtp_bind: '%.*s': %s\n",
                                                  TEXT_ARGS(word), why);
    (void)told;
    return false;
}

static void
prefer(struct sources *s, const struct net_address *address)
{
    assert(address->family == NET_IPV4 || address->family == NET_IPV6);
    bool is_v6 = address->family == NET_IPV6;
    struct net_address *place = is_v6 ? &s->v6 : &s->v4;
    *(is_v6 ? &s->has_v6 : &s->has_v4) = true;
    *place = *address;
    place->port = 0;
}

static bool
sources_add(struct sources *s, struct text word, struct buffer *mistakes)
{
    struct net_address address;
    if (!net_address_parse_ip(word, &address))
        return sources_complain(mistakes, word, "not an IP address");
    if (address.family == NET_IPV6 ? s->has_v6 : s->has_v4)
        return sources_complain(mistakes, word, "a second address of its family");
    prefer(s, &address);
    return true;
}

bool
sources_read(struct sources *sources, struct text list, struct buffer *mistakes)
{
    struct text word;
    bool good = true;
    memset(sources, 0, sizeof(*sources));
    while (text_word(&list, ", \t\r\n", &word))
        good = sources_add(sources, word, mistakes) && good;
    return good;
}

void
sources_for_peers(struct sources *sources, const struct sources *others,
                  const struct peers *peers)
{
    const struct net_address *own = peers != NULL ? peers_own_address(peers) : NULL;
    *sources = *others;
    if (own != NULL)
        prefer(sources, own);
}

const struct net_address *
sources_for(const struct sources *sources, enum net_family family)
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
