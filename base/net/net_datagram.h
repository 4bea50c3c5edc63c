/* A Unix datagram socket that is connected to a local service: syslog, the service
 * manager. It is made before the sandbox is entered, and never waits.
 *
 * A service that is restarted has a new socket at the same path: net_datagram_connect()
 * finds it again without making a socket. */
#ifndef BASE_NET_NET_DATAGRAM_H
#define BASE_NET_NET_DATAGRAM_H

#include "base/text.h"

enum { NET_DATAGRAM_PATH_MAX = 108 };

struct net_datagram {
    int descriptor; /* -1: closed */
    char path[NET_DATAGRAM_PATH_MAX];
};

/* path: absolute, or "@NAME" in the abstract namespace. 0 or -errno: -EINVAL is a path
 * that is neither or too long. After a failed connection the socket stays open. */
int net_datagram_open(struct net_datagram *d, const char *path)
    __attribute__((warn_unused_result));
int net_datagram_connect(struct net_datagram *d) __attribute__((warn_unused_result));
void net_datagram_close(struct net_datagram *d);
/* 0; -EAGAIN: the service is slow, watch the descriptor for LOOP_WRITE; otherwise -errno:
 * nobody listens, connect again later. */
int net_datagram_send(const struct net_datagram *d, struct text message)
    __attribute__((warn_unused_result));
/* For the end of a program: until there may be space, for timeout_ms at most. */
void net_datagram_wait(const struct net_datagram *d, int timeout_ms);
/* Whether the service is not there (any more); otherwise the message was at fault. */
bool net_datagram_is_gone(int error);

#endif
