/* Writes to a shared descriptor without waiting and without changing it for others. */
#include "base/net/net_outlet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 40 };

/* A separate open file description, or -1. */
static int
open_again(int descriptor)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

void
net_outlet_open(struct net_outlet *o, int descriptor)
{
    struct stat info;
    *o = (struct net_outlet){.descriptor = descriptor};
    if (fstat(descriptor, &info) != 0)
        return; /* each write will return the error */
    o->is_socket = S_ISSOCK(info.st_mode);
    if (!S_ISFIFO(info.st_mode) && !isatty(descriptor))
        return;
    int own = open_again(descriptor);
    o->is_ours = own >= 0;
    o->asks = own < 0;
    if (own >= 0)
        o->descriptor = own;
}

void
net_outlet_close(struct net_outlet *o)
{
    if (o->is_ours)
        close(o->descriptor);
    *o = (struct net_outlet){.descriptor = -1};
}

bool
net_outlet_wait(const struct net_outlet *o, int timeout_ms)
{
    struct pollfd asked = {.fd = o->descriptor, .events = POLLOUT};
    return poll(&asked, 1, timeout_ms) > 0;
}

int64_t
net_outlet_write(struct net_outlet *o, struct text bytes)
{
    ssize_t wrote;
    if (o->asks && !net_outlet_wait(o, 0))
        return -EAGAIN;
    if (o->asks) /* POSIX: a pipe that is ready accepts this much */
        bytes = text_before(bytes, PIPE_BUF);
    do
        wrote = o->is_socket ? send(o->descriptor, bytes.at, bytes.length,
                                    MSG_DONTWAIT | MSG_NOSIGNAL)
                             : write(o->descriptor, bytes.at, bytes.length);
    while (wrote < 0 && errno == EINTR);
    return wrote < 0 ? -errno : wrote;
}

bool
net_outlet_is(int descriptor, uint64_t device, uint64_t inode)
{
    struct stat info;
    return fstat(descriptor, &info) == 0 && info.st_dev == device &&
           info.st_ino == inode;
}
