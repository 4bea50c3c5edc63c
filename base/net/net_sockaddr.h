/* Addresses for system calls, and from them. */
#ifndef BASE_NET_NET_SOCKADDR_H
#define BASE_NET_NET_SOCKADDR_H

#include "base/net_address.h"

#include <sys/socket.h>

/* Returns the length of the filled part. */
socklen_t net_sockaddr_fill(const struct net_address *a, struct sockaddr_storage *out);
/* NET_NONE for unknown families; mapped IPv4 becomes IPv4. */
void net_sockaddr_read(const struct sockaddr_storage *from, socklen_t length,
                       struct net_address *out);
/* AF_INET, AF_INET6 or AF_UNIX. */
int net_sockaddr_family(enum net_family family);

#endif
