/* Reads the list of source addresses and finds the one for a family. */
#include "sched/route/bind_address.h"

#include "sched/route/peers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void
prefer(struct bind_address *s, const struct net_address *address)
{
    assert(address->family == NET_IPV4 || address->family == NET_IPV6);
    if (address->family == NET_IPV6) {
        s->has_v6 = true;
        memcpy(s->v6, address->ip, sizeof(s->v6));
    } else {
        s->has_v4 = true;
        memcpy(s->v4, address->ip, sizeof(s->v4));
    }
}

/* NULL, or why not. */
static const char *
bind_address_add(struct bind_address *s, struct text word)
{
    struct net_address address;
    if (!net_address_parse_ip(word, &address))
        return "not an IP address";
    if (address.family == NET_IPV6 ? s->has_v6 : s->has_v4)
        return "a second address of its family";
    prefer(s, &address);
    return NULL;
}

const char *
bind_address_parse(struct bind_address *sources, struct text list, struct text *word)
{
    const char *why = NULL;
    memset(sources, 0, sizeof(*sources));
    while (why == NULL && text_word(&list, ", \t\r\n", word))
        why = bind_address_add(sources, *word);
    return why;
}

bool
bind_address_read(struct bind_address *sources, struct text list, struct buffer *errors)
{
    struct text word;
    bool good = true;
    memset(sources, 0, sizeof(*sources));
    while (text_word(&list, ", \t\r\n", &word)) {
        const char *why = bind_address_add(sources, word);
        if (why != NULL)
            good = buffer_add_error(errors, "smtp_bind", word, why);
    }
    return good;
}

void
bind_address_format(const struct bind_address *sources, char out[BIND_ADDRESS_TEXT_MAX])
{
    static const enum net_family families[] = {NET_IPV4, NET_IPV6};
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) {
        struct net_address address;
        char text[NET_ADDRESS_TEXT_MAX];
        if (!bind_address_for(sources, families[i], &address))
            continue;
        net_address_ip(&address, text);
        int written = snprintf(out + length, BIND_ADDRESS_TEXT_MAX - length, "%s%s",
                               length > 0 ? "," : "", text);
        assert(written > 0 && length + (size_t)written < BIND_ADDRESS_TEXT_MAX);
        length += (size_t)written;
    }
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

void
bind_address_complete(struct bind_address *sources, const struct bind_address *others)
{
    struct net_address address;
    if (!sources->has_v4 && bind_address_for(others, NET_IPV4, &address))
        prefer(sources, &address);
    if (!sources->has_v6 && bind_address_for(others, NET_IPV6, &address))
        prefer(sources, &address);
}

bool
bind_address_for(const struct bind_address *sources, enum net_family family,
                 struct net_address *out)
{
    *out = (struct net_address){.family = family};
    if (family == NET_IPV4 && sources->has_v4)
        memcpy(out->ip, sources->v4, sizeof(sources->v4));
    else if (family == NET_IPV6 && sources->has_v6)
        memcpy(out->ip, sources->v6, sizeof(sources->v6));
    else
        return false;
    return true;
}
