/* A descriptor that was given to us, such as standard error, written without waiting.
 *
 * Other processes may share its open file description (a terminal, a pipe), so its
 * flags are never changed: a socket is told with each write (MSG_DONTWAIT), of a pipe
 * or a terminal we open a description of our own (/proc/self/fd), and where that is
 * refused the descriptor is asked before each write (poll) and given little. A regular
 * file is never "not now". */
#ifndef BASE_NET_OUTLET_H
#define BASE_NET_OUTLET_H

#include "base/text.h"

struct net_outlet {
    int descriptor; /* to watch: ours, or the one that was given */
    bool is_socket, is_ours, asks;
};

/* The descriptor stays the caller's. */
void net_outlet_open(struct net_outlet *o, int descriptor);
void net_outlet_close(struct net_outlet *o);

/* How many bytes it took, or -errno: -EAGAIN when it takes none now, then watch it. A
 * pipe that is gone is -EPIPE (net_new() ignores SIGPIPE). */
int64_t net_outlet_write(struct net_outlet *o, struct text bytes)
    __attribute__((warn_unused_result));
/* Waits until it takes some, or fails: for the end of a program. False: time is over.
 */
bool net_outlet_wait(const struct net_outlet *o, int timeout_ms)
    __attribute__((warn_unused_result));

#endif
