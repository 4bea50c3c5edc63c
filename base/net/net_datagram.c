/* Datagrams to a local service, without waiting. */
#include "base/net/net_datagram.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

int
net_datagram_connect(struct net_datagram *d)
{
    return connect(d->descriptor, (const struct sockaddr *)&d->address, d->length) == 0
               ? 0
               : -errno;
}

int
net_datagram_open(struct net_datagram *d, const char *path)
{
    size_t length = strlen(path);
    *d = (struct net_datagram){.descriptor = -1};
    if ((path[0] != '/' && path[0] != '@') || length < 2 ||
        length >= sizeof(d->address.sun_path))
        return -EINVAL;
    d->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->descriptor < 0)
        return -errno;
    d->address.sun_family = AF_UNIX;
    memcpy(d->address.sun_path, path, length);
    if (path[0] == '@')
        d->address.sun_path[0] = '\0';
    d->length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length +
                            (path[0] == '/' ? 1 : 0));
    return net_datagram_connect(d);
}

void
net_datagram_close(struct net_datagram *d)
{
    if (d->descriptor >= 0)
        close(d->descriptor);
    d->descriptor = -1;
}

int
net_datagram_send(const struct net_datagram *d, struct text message)
{
    ssize_t sent;
    do
        sent = send(d->descriptor, message.at, message.length,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

void
net_datagram_wait(const struct net_datagram *d, int timeout_ms)
{
    struct pollfd asked = {.fd = d->descriptor, .events = POLLOUT};
    (void)!poll(&asked, 1, timeout_ms);
}

bool
net_datagram_is_gone(int error)
{
    return error == -ECONNREFUSED || error == -ENOTCONN || error == -ENOENT ||
           error == -ECONNRESET || error == -EPIPE;
}
