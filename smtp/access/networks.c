/* Reads lists of networks and searches them. */
#include "smtp/access/networks.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
read_network(struct networks *networks, struct text word, char space[WHY_MAX])
{
    struct net_network *network = &networks->list[networks->count];
    if (networks->count == NETWORKS_MAX)
        return "too many networks";
    if (!net_network_parse(word, network))
        return why_none(word, space);
    networks->count++;
    return NULL;
}

/* Parts of the address space that are not the Internet; of IPv6 2000::/3 alone is. */
static const struct {
    unsigned char ip[2], bits;
} ipv4_private[] = {
    {{0},        8 },
    {{10},       8 },
    {{100, 64},  10},
    {{127},      8 },
    {{169, 254}, 16},
    {{172, 16},  12},
    {{192, 168}, 16},
    {{224},      3 },
};

/* 2^-bits: the share of a network in all addresses of its family. */
static double
network_share(unsigned bits)
{
    double share = 1;
    while (bits-- > 0)
        share /= 2;
    return share;
}

/* Networks lie within each other, or apart. */
static bool
network_is_within(const struct net_network *inner, const struct net_network *outer)
{
    return inner->bits >= outer->bits && net_network_has(outer, &inner->base);
}

/* The share of the Internet in all addresses of the family that lies in the network. */
static double
network_public_share(const struct net_network *n)
{
    if (n->base.family == NET_IPV6) {
        const struct net_network internet = {
            {.family = NET_IPV6, .ip = {0x20}},
            3
        };
        return network_is_within(n, &internet)   ? network_share(n->bits)
               : network_is_within(&internet, n) ? network_share(internet.bits)
                                                 : 0;
    }
    double share = network_share(n->bits);
    for (size_t i = 0; i < sizeof(ipv4_private) / sizeof(ipv4_private[0]); i++) {
        struct net_network own = {{.family = NET_IPV4}, ipv4_private[i].bits};
        memcpy(own.base.ip, ipv4_private[i].ip, sizeof(ipv4_private[i].ip));
        if (network_is_within(n, &own))
            return 0;
        if (network_is_within(&own, n))
            share -= network_share(own.bits);
    }
    return share;
}

/* It lies in another one of the list, or is a copy of an earlier one. */
static bool
network_is_counted(const struct networks *networks, size_t at)
{
    const struct net_network *n = &networks->list[at];
    for (size_t i = 0; i < networks->count; i++)
        if (i != at && network_is_within(n, &networks->list[i]) &&
            (i < at || networks->list[i].bits < n->bits))
            return true;
    return false;
}

static const struct net_network *
networks_open_in(const struct networks *networks, enum net_family family)
{
    const struct net_network all = {{.family = family}, 0}, *largest = NULL;
    double covered = 0;
    for (size_t i = 0; i < networks->count; i++) {
        const struct net_network *n = &networks->list[i];
        double share = n->base.family == family ? network_public_share(n) : 0;
        if (share <= 0 || network_is_counted(networks, i))
            continue;
        covered += share;
        if (largest == NULL || n->bits < largest->bits)
            largest = n;
    }
    return covered > network_public_share(&all) / NETWORKS_OPEN_PART ? largest : NULL;
}

const struct net_network *
networks_open(const struct networks *networks)
{
    const struct net_network *n = networks_open_in(networks, NET_IPV4);
    return n != NULL ? n : networks_open_in(networks, NET_IPV6);
}

static bool
networks_refuse(const struct net_network *large, const char *key, const char *wrong,
                struct buffer *errors)
{
    char address[NET_ADDRESS_TEXT_MAX], word[NET_ADDRESS_TEXT_MAX + 8], why[WHY_MAX];
    net_address_ip(&large->base, address);
    snprintf(word, sizeof(word), "%s/%u", address, large->bits);
    snprintf(why, sizeof(why), "%s%s",
             large->bits == 0 ? "" : "with the networks beside it ", wrong);
    return buffer_add_error(errors, key, text_from(word), why);
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
        const char *why = read_network(networks, word, space);
        if (why == NULL)
            continue;
        good = buffer_add_error(errors, key, word, why);
    }
    size_t kept = networks->count > 0 ? networks->count : 1;
    networks->list = memory_resize(networks->list, kept * sizeof(*networks->list));
    const struct net_network *large = networks_open(networks);
    return all_is_wrong == NULL || large == NULL
               ? good
               : networks_refuse(large, key, all_is_wrong, errors);
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
