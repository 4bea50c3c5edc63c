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

#endif
