/* Writes to a shared descriptor without waiting and without changing it for others. */
#include "base/net/net_outlet.h"

#include "base/net/socket.h"

#include <errno.h>
#include <limits.h>

void
net_outlet_open(struct net_outlet *o, int descriptor)
{
    enum socket_kind kind = socket_kind(descriptor);
    *o = (struct net_outlet){.descriptor = descriptor,
                             .is_socket = kind == SOCKET_SOCKET};
    if (kind != SOCKET_PIPE && kind != SOCKET_TERMINAL)
        return; /* one that is not open: each write will return the error */
    int own = socket_open_again(descriptor);
    o->is_ours = own >= 0;
    o->asks = own < 0;
    if (own >= 0)
        o->descriptor = own;
}

void
net_outlet_close(struct net_outlet *o)
{
    if (o->is_ours)
        socket_close(o->descriptor);
    *o = (struct net_outlet){.descriptor = -1};
}

bool
net_outlet_wait(const struct net_outlet *o, int timeout_ms)
{
    return socket_wait_write(o->descriptor, timeout_ms);
}

int64_t
net_outlet_write(struct net_outlet *o, struct text bytes)
{
    if (o->asks && !net_outlet_wait(o, 0))
        return -EAGAIN;
    if (o->asks) /* POSIX: a pipe that is ready accepts this much */
        bytes = text_before(bytes, PIPE_BUF);
    return o->is_socket ? socket_send(o->descriptor, bytes)
                        : socket_write(o->descriptor, bytes);
}

bool
net_outlet_is(int descriptor, uint64_t device, uint64_t inode)
{
    return socket_is_file(descriptor, device, inode);
}
