/* Converts addresses from and to those of system calls. */
#include "base/net/net_sockaddr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

static_assert(NET_PATH_MAX <= sizeof((struct sockaddr_un *)0)->sun_path, "a path fits");

int
net_sockaddr_family(enum net_family family)
{
    assert(family != NET_NONE);
    return family == NET_IPV4 ? AF_INET : family == NET_IPV6 ? AF_INET6 : AF_UNIX;
}

socklen_t
net_sockaddr_fill(const struct net_address *a, struct sockaddr_storage *out)
{
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)out;
    struct sockaddr_un *local = (struct sockaddr_un *)out;
    memset(out, 0, sizeof(*out));
    out->ss_family = (sa_family_t)net_sockaddr_family(a->family);
    switch (a->family) {
    case NET_IPV4:
        ipv4->sin_port = htons(a->port);
        memcpy(&ipv4->sin_addr, a->ip, sizeof(ipv4->sin_addr));
        return sizeof(*ipv4);
    case NET_IPV6:
        ipv6->sin6_port = htons(a->port);
        memcpy(&ipv6->sin6_addr, a->ip, sizeof(ipv6->sin6_addr));
        return sizeof(*ipv6);
    case NET_UNIX:
        memcpy(local->sun_path, a->path, NET_PATH_MAX);
        return sizeof(*local);
    case NET_PASSED:
    case NET_NONE:
        break;
    }
    return 0;
}

void
net_sockaddr_read(const struct sockaddr_storage *from, socklen_t length,
                  struct net_address *out)
{
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)from;
    const struct sockaddr_un *local = (const struct sockaddr_un *)from;
    size_t path_offset = offsetof(struct sockaddr_un, sun_path);
    *out = (struct net_address){0};
    if (length < sizeof(from->ss_family))
        return;
    if (from->ss_family == AF_INET) {
        out->family = NET_IPV4;
        out->port = ntohs(ipv4->sin_port);
        memcpy(out->ip, &ipv4->sin_addr, sizeof(ipv4->sin_addr));
    } else if (from->ss_family == AF_INET6) {
        out->family = NET_IPV6;
        out->port = ntohs(ipv6->sin6_port);
        memcpy(out->ip, &ipv6->sin6_addr, sizeof(ipv6->sin6_addr));
        /* One host has one address, in any family of sockets. */
        net_address_unmap(out);
    } else if (from->ss_family == AF_UNIX) {
        out->family = NET_UNIX;
        /* A client's socket has no name: no path was set. */
        if (length > path_offset)
            text_copy(out->path, sizeof(out->path),
                      text_of(local->sun_path,
                              strnlen(local->sun_path, length - path_offset)));
    }
}
