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

/* --- Datagrams --------------------------------------------------------------------- */

static_assert(sizeof(((struct net_datagram *)0)->path) == SOCKET_PATH_MAX,
              "a path fits");

int
net_datagram_connect(struct net_datagram *d)
{
    return socket_datagram_connect(d->descriptor, text_from(d->path));
}

int
net_datagram_open(struct net_datagram *d, const char *path)
{
    struct text t = text_from(path);
    *d = (struct net_datagram){.descriptor = -1};
    bool is_path = text_starts(t, TEXT("/")) || text_starts(t, TEXT("@"));
    if (!is_path || t.length < 2 || !text_copy(d->path, sizeof(d->path), t))
        return -EINVAL;
    int opened = socket_datagram_open();
    if (opened < 0)
        return opened;
    d->descriptor = opened;
    return net_datagram_connect(d);
}

void
net_datagram_close(struct net_datagram *d)
{
    if (d->descriptor >= 0)
        socket_close(d->descriptor);
    d->descriptor = -1;
}

int
net_datagram_send(const struct net_datagram *d, struct text message)
{
    ssize_t sent = socket_send(d->descriptor, message);
    return sent < 0 ? (int)sent : 0;
}

void
net_datagram_wait(const struct net_datagram *d, int timeout_ms)
{
    (void)socket_wait_write(d->descriptor, timeout_ms);
}

bool
net_datagram_is_gone(int error)
{
    return error == -ECONNREFUSED || error == -ENOTCONN || error == -ENOENT ||
           error == -ECONNRESET || error == -EPIPE;
}
