/* Writes to an inherited descriptor, such as standard error, without waiting.
 *
 * Other processes may share its open file description, so its flags are never changed.
 * A socket is written with MSG_DONTWAIT. A pipe or a terminal is reopened through
 * /proc/self/fd; where that is refused, poll() precedes each write, and a write is
 * small. A regular file never answers EAGAIN. */
#ifndef BASE_NET_NET_OUTLET_H
#define BASE_NET_NET_OUTLET_H

#include "base/text.h"

struct net_outlet {
    int descriptor; /* to watch: our own, or the given one */
    bool is_socket, is_ours, asks;
};

/* The caller keeps the descriptor. */
void net_outlet_open(struct net_outlet *o, int descriptor);
void net_outlet_close(struct net_outlet *o);

/* The number of bytes written, or -errno. -EAGAIN: full, watch the descriptor. -EPIPE:
 * the pipe has no reader (net_new() ignores SIGPIPE). */
int64_t net_outlet_write(struct net_outlet *o, struct text bytes)
    __attribute__((warn_unused_result));
/* Waits until it is writable or has failed, for the end of a program. False: timed
 * out. */
bool net_outlet_wait(const struct net_outlet *o, int timeout_ms)
    __attribute__((warn_unused_result));

/* Whether the descriptor is of that file: fstat(2)'s st_dev and st_ino. */
bool net_outlet_is(int descriptor, uint64_t device, uint64_t inode);

/* A Unix datagram socket that is connected to a local service: syslog, the service
 * manager. It is made before the sandbox is entered, and never waits.
 *
 * A service that is restarted has a new socket at the same path: net_datagram_connect()
 * finds it again without making a socket. */
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
