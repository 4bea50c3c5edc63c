/* Datagrams to a local service, without waiting. */
#include "base/net/net_datagram.h"

#include "base/net/socket.h"

#include <errno.h>

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
