/* Socket addresses and networks: parse, format, compare. */
#include "base/net_address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { IPV4_BYTES = 4, IPV6_BYTES = 16, MAPPED_BYTES = 12, MAPPED_BITS = 96 };

static const unsigned char mapped_prefix[MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};
static const unsigned char zeros[IPV6_BYTES];

static size_t
ip_bytes(enum net_family family)
{
    switch (family) {
    case NET_IPV4:
        return IPV4_BYTES;
    case NET_IPV6:
        return IPV6_BYTES;
    case NET_NONE:
    case NET_UNIX:
    case NET_PASSED:
        break;
    }
    return 0;
}

static bool
parse_literal(struct text t, enum net_family family, struct net_address *out)
{
    char literal[INET6_ADDRSTRLEN];
    /* A NUL would end the literal for inet_pton(). */
    if (text_has_control(t) || !text_copy(literal, sizeof(literal), t))
        return false;
    *out = (struct net_address){.family = family};
    return inet_pton(family == NET_IPV4 ? AF_INET : AF_INET6, literal, out->ip) == 1;
}

static bool
parse_path(struct text path, enum net_family family, struct net_address *out)
{
    *out = (struct net_address){.family = family};
    return path.length > 0 && !text_has_control(path) &&
           text_copy(out->path, sizeof(out->path), path);
}

static bool
parse_port(struct text t, uint16_t *port)
{
    uint64_t value;
    if (t.length > 5 || !text_number(t, UINT16_MAX, &value))
        return false;
    *port = (uint16_t)value;
    return true;
}

bool
net_address_parse(struct text t, uint16_t default_port, struct net_address *out)
{
    struct text unix_prefix = TEXT("unix:");
    size_t colon = text_find_last(t, ':');
    struct text host = t;
    uint16_t port = default_port;
    if (text_starts(t, unix_prefix))
        return parse_path(text_after(t, unix_prefix.length), NET_UNIX, out);
    /* The colon before a port: the one after a bracket, or the only one. */
    if (colon != TEXT_NONE && colon > 0 &&
        (t.at[colon - 1] == ']' || text_find(t, ':') == colon)) {
        if (!parse_port(text_after(t, colon + 1), &port))
            return false;
        host = text_before(t, colon);
    } else if (!default_port) {
        return false;
    }
    if (host.length >= 2 && host.at[0] == '[' && host.at[host.length - 1] == ']') {
        host = text_after(text_before(host, host.length - 1), 1);
        if (!parse_literal(host, NET_IPV6, out))
            return false;
    } else if (!net_address_parse_ip(host, out)) {
        return false;
    }
    out->port = port;
    return true;
}

bool
net_address_parse_listening(struct text t, struct net_address *out)
{
    struct text prefix = TEXT("fd:");
    if (text_starts(t, prefix))
        return parse_path(text_after(t, prefix.length), NET_PASSED, out);
    return net_address_parse(t, 0, out);
}

bool
net_address_parse_ip(struct text t, struct net_address *out)
{
    return parse_literal(t, NET_IPV4, out) || parse_literal(t, NET_IPV6, out);
}

void
net_address_format(const struct net_address *a, char out[NET_ADDRESS_TEXT_MAX])
{
    char ip[NET_ADDRESS_TEXT_MAX];
    net_address_ip(a, ip);
    switch (a->family) {
    case NET_IPV4:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "%.15s:%u", ip, a->port);
        break;
    case NET_IPV6:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "[%.45s]:%u", ip, a->port);
        break;
    case NET_UNIX:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "unix:%.*s", NET_PATH_MAX - 1, a->path);
        break;
    case NET_PASSED:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "fd:%.*s", NET_PATH_MAX - 1, a->path);
        break;
    case NET_NONE:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "%.20s", ip);
        break;
    }
}

void
net_address_ip(const struct net_address *a, char out[NET_ADDRESS_TEXT_MAX])
{
    switch (a->family) {
    case NET_IPV4:
        inet_ntop(AF_INET, a->ip, out, NET_ADDRESS_TEXT_MAX);
        break;
    case NET_IPV6:
        inet_ntop(AF_INET6, a->ip, out, NET_ADDRESS_TEXT_MAX);
        break;
    case NET_UNIX:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "unix");
        break;
    case NET_PASSED:
    case NET_NONE:
        snprintf(out, NET_ADDRESS_TEXT_MAX, "unknown");
        break;
    }
}

bool
net_address_equal(const struct net_address *a, const struct net_address *b)
{
    if (a->family != b->family)
        return false;
    if (a->family == NET_UNIX || a->family == NET_PASSED)
        return strcmp(a->path, b->path) == 0;
    return a->port == b->port && memcmp(a->ip, b->ip, ip_bytes(a->family)) == 0;
}

bool
net_address_is_loopback(const struct net_address *a)
{
    struct net_address plain = *a;
    net_address_unmap(&plain);
    switch (plain.family) {
    case NET_IPV4:
        return plain.ip[0] == 127;
    case NET_IPV6:
        return memcmp(plain.ip, zeros, IPV6_BYTES - 1) == 0 && plain.ip[15] == 1;
    case NET_UNIX:
        return true;
    case NET_PASSED:
    case NET_NONE:
        break;
    }
    return false;
}

static bool
ipv4_is_public(const unsigned char *ip)
{
    return ip[0] != 0 && ip[0] != 10 && ip[0] != 127 && ip[0] < 224 &&
           !(ip[0] == 100 && (ip[1] & 0xc0) == 64) && !(ip[0] == 169 && ip[1] == 254) &&
           !(ip[0] == 172 && (ip[1] & 0xf0) == 16) && !(ip[0] == 192 && ip[1] == 168);
}

/* Global unicast is 2000::/3 so far; 64:ff9b::/96 (RFC 6052) and 2002::/16 (RFC 3056) have an
 * IPv4 address in them. */
static bool
ipv6_is_public(const unsigned char *ip)
{
    static const unsigned char nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    if (memcmp(ip, nat64, sizeof(nat64)) == 0)
        return ipv4_is_public(ip + 12);
    if (ip[0] == 0x20 && ip[1] == 0x02)
        return ipv4_is_public(ip + 2);
    return (ip[0] & 0xe0) == 0x20;
}

bool
net_address_is_public(const struct net_address *a)
{
    struct net_address plain = *a;
    net_address_unmap(&plain);
    switch (plain.family) {
    case NET_IPV4:
        return ipv4_is_public(plain.ip);
    case NET_IPV6:
        return ipv6_is_public(plain.ip);
    case NET_UNIX:
    case NET_PASSED:
    case NET_NONE:
        break;
    }
    return false;
}

bool
net_address_is_wildcard(const struct net_address *a)
{
    return ip_bytes(a->family) && memcmp(a->ip, zeros, ip_bytes(a->family)) == 0;
}

void
net_address_unmap(struct net_address *a)
{
    if (a->family != NET_IPV6 || memcmp(a->ip, mapped_prefix, MAPPED_BYTES) != 0)
        return;
    a->family = NET_IPV4;
    memmove(a->ip, a->ip + MAPPED_BYTES, IPV4_BYTES);
    memset(a->ip + IPV4_BYTES, 0, IPV6_BYTES - IPV4_BYTES);
}

/* True if base has no bits beyond the mask; or clears them. */
static bool
network_read(struct text t, bool clears, struct net_network *out)
{
    size_t slash = text_find(t, '/');
    struct text ip = text_before(t, slash);
    uint64_t bits, bits_max;
    if (ip.length > 2 && ip.at[0] == '[' && ip.at[ip.length - 1] == ']' &&
        text_find(ip, ':') != TEXT_NONE)
        ip = text_of(ip.at + 1, ip.length - 2);
    if (!net_address_parse_ip(ip, &out->base))
        return false;
    bits = bits_max = ip_bytes(out->base.family) * 8;
    if (slash != TEXT_NONE && (t.length - slash > 4 ||
                               !text_number(text_after(t, slash + 1), bits_max, &bits)))
        return false;
    for (size_t bit = (size_t)bits; bit < bits_max; bit++)
        if (clears)
            out->base.ip[bit / 8] &= (unsigned char)~(0x80 >> bit % 8);
        else if (out->base.ip[bit / 8] & 0x80 >> bit % 8)
            return false;
    /* Debian's main.cf has [::ffff:127.0.0.0]/104 in mynetworks. */
    if (bits >= MAPPED_BITS && out->base.family == NET_IPV6) {
        net_address_unmap(&out->base);
        bits -= out->base.family == NET_IPV4 ? MAPPED_BITS : 0;
    }
    out->bits = (unsigned)bits;
    return true;
}

bool
net_network_parse(struct text t, struct net_network *out)
{
    return network_read(t, false, out);
}

bool
net_network_around(struct text t, struct net_network *out)
{
    return network_read(t, true, out);
}

bool
net_network_has(const struct net_network *n, const struct net_address *a)
{
    struct net_address plain = *a;
    size_t whole = n->bits / 8;
    unsigned rest = n->bits % 8;
    net_address_unmap(&plain);
    if (plain.family != n->base.family || !ip_bytes(plain.family))
        return false;
    if (memcmp(plain.ip, n->base.ip, whole) != 0)
        return false;
    return !rest || (plain.ip[whole] ^ n->base.ip[whole]) >> (8 - rest) == 0;
}
