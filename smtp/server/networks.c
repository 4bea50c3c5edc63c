/* Reads lists of networks and searches them. */
#include "smtp/server/networks.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { WHY_MAX = 200 };

/* For "192.168.1.1/24" the error names the network of the address. */
static const char *
why_none(struct text word, char space[WHY_MAX])
{
    struct net_network network;
    char spelt[NET_ADDRESS_TEXT_MAX];
    size_t slash = text_find(word, '/');
    if (slash == TEXT_NONE || !net_network_around(word, &network))
        return "not a network (ADDRESS or ADDRESS/BITS)";
    net_address_ip(&network.base, spelt);
    snprintf(space, WHY_MAX, "has bits behind the mask: write %s%.*s", spelt,
             TEXT_ARGS(text_after(word, slash)));
    return space;
}

/* NULL, or the error. */
static const char *
read_network(struct networks *networks, struct text word, const char *all_is_wrong,
             char space[WHY_MAX])
{
    struct net_network *network = &networks->list[networks->count];
    if (networks->count == NETWORKS_MAX)
        return "too many networks";
    if (!net_network_parse(word, network))
        return why_none(word, space);
    if (network->bits == 0 && all_is_wrong != NULL)
        return all_is_wrong;
    networks->count++;
    return NULL;
}

bool
networks_read(struct networks *networks, const char *key, struct text list,
              const char *all_is_wrong, struct buffer *errors)
{
    char space[WHY_MAX];
    struct text word;
    bool good = true;
    assert(networks->list == NULL);
    networks->list = memory_array(NETWORKS_MAX + 1, sizeof(*networks->list));
    while (text_word(&list, ", \t\r\n", &word)) {
        const char *why = read_network(networks, word, all_is_wrong, space);
        if (why == NULL)
            continue;
        good = buffer_add_error(errors, key, word, why);
    }
    size_t kept = networks->count > 0 ? networks->count : 1;
    networks->list = memory_resize(networks->list, kept * sizeof(*networks->list));
    return good;
}

void
networks_free(struct networks *networks)
{
    free(networks->list);
    *networks = (struct networks){0};
}

bool
networks_have(const struct networks *networks, const struct net_address *address)
{
    for (size_t i = 0; i < networks->count; i++)
        if (net_network_has(&networks->list[i], address))
            return true;
    return false;
}
