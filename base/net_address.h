/* Socket addresses and networks: parse, format, compare. */
#ifndef BASE_NET_ADDRESS_H
#define BASE_NET_ADDRESS_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum net_family { NET_NONE, NET_IPV4, NET_IPV6, NET_UNIX, NET_PASSED };
enum { NET_PATH_MAX = 104, NET_ADDRESS_TEXT_MAX = 112 };

struct net_address {
    enum net_family family;
    unsigned char ip[16]; /* 4 or 16 bytes, network order */
    uint16_t port;
    char path[NET_PATH_MAX]; /* NET_UNIX; NET_PASSED: the name (net_take_passed()) */
};

/* "1.2.3.4:25", "[::1]:25", "unix:/path"; without a port when default_port != 0.
 * Numbers only: names are for dns.h. */
bool net_address_parse(struct text t, uint16_t default_port, struct net_address *out);
/* An address with a port, or "fd:NAME": a socket that a service manager passes. */
bool net_address_parse_listening(struct text t, struct net_address *out);
/* An IP literal without a port, as within the brackets of RFC 5321 [1.2.3.4] and
 * [IPv6:::1]. */
bool net_address_parse_ip(struct text t, struct net_address *out);
/* "1.2.3.4:25", "[::1]:25", "unix:/path", "fd:name". */
void net_address_format(const struct net_address *a, char out[NET_ADDRESS_TEXT_MAX]);
/* "1.2.3.4", "::1"; a Unix socket is "unix". */
void net_address_ip(const struct net_address *a, char out[NET_ADDRESS_TEXT_MAX]);
bool net_address_equal(const struct net_address *a, const struct net_address *b);
bool net_address_is_loopback(const struct net_address *a);
/* Whether the address may be a host of the Internet: not loopback, private (RFC 1918,
 * RFC 4193), shared (RFC 6598), link-local, multicast, reserved or unspecified; an IPv6
 * address that carries an IPv4 address counts as that. */
bool net_address_is_public(const struct net_address *a);
bool net_address_is_wildcard(const struct net_address *a); /* 0.0.0.0 or :: */
/* ::ffff:1.2.3.4 becomes 1.2.3.4; everything else stays. */
void net_address_unmap(struct net_address *a);

struct net_network {
    struct net_address base;
    unsigned bits;
};
/* "10.0.0.0/8", "::1", "2001:db8::/32" or, as in Postfix, "[2001:db8::]/32". Bits
 * beyond the mask must be 0. */
bool net_network_parse(struct text t, struct net_network *out);
/* As net_network_parse(), but bits beyond the mask are cleared: "192.168.1.1/24" is
 * 192.168.1.0/24. */
bool net_network_around(struct text t, struct net_network *out)
    __attribute__((warn_unused_result));
/* ::ffff:1.2.3.4 matches as 1.2.3.4. */
bool net_network_has(const struct net_network *n, const struct net_address *a);

#endif
