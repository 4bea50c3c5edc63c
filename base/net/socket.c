/* The calls of the system for sockets. */
#include "base/net/socket.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Connections that may wait to be accepted; the kernel takes no more than its own limit
 * (net.core.somaxconn). Not SOMAXCONN, which is 128 in musl and 4096 in glibc. */
enum { SOCKET_BACKLOG = 4096 };

static_assert(NET_PATH_MAX <= sizeof((struct sockaddr_un *)0)->sun_path, "a path fits");

/* AF_INET, AF_INET6 or AF_UNIX. */
static int
socket_address_family(enum net_family family)
{
    assert(family != NET_NONE);
    return family == NET_IPV4 ? AF_INET : family == NET_IPV6 ? AF_INET6 : AF_UNIX;
}

/* Returns the length of the filled part. */
static socklen_t
socket_address_fill(const struct net_address *a, struct sockaddr_storage *out)
{
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)out;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)out;
    struct sockaddr_un *local = (struct sockaddr_un *)out;
    memset(out, 0, sizeof(*out));
    out->ss_family = (sa_family_t)socket_address_family(a->family);
    switch (a->family) {
    case NET_IPV4:
        ipv4->sin_port = htons(a->port);
        memcpy(&ipv4->sin_addr, a->ip, sizeof(ipv4->sin_addr));
        return sizeof(*ipv4);
    case NET_IPV6:
        ipv6->sin6_port = htons(a->port);
        memcpy(&ipv6->sin6_addr, a->ip, sizeof(ipv6->sin6_addr));
        return sizeof(*ipv6);
    case NET_UNIX:
        memcpy(local->sun_path, a->path, NET_PATH_MAX);
        return sizeof(*local);
    case NET_PASSED:
    case NET_NONE:
        break;
    }
    return 0;
}

/* NET_NONE for unknown families; mapped IPv4 becomes IPv4. */
static void
socket_address_read(const struct sockaddr_storage *from, socklen_t length,
                    struct net_address *out)
{
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)from;
    const struct sockaddr_un *local = (const struct sockaddr_un *)from;
    size_t path_offset = offsetof(struct sockaddr_un, sun_path);
    *out = (struct net_address){0};
    if (length < sizeof(from->ss_family))
        return;
    if (from->ss_family == AF_INET) {
        out->family = NET_IPV4;
        out->port = ntohs(ipv4->sin_port);
        memcpy(out->ip, &ipv4->sin_addr, sizeof(ipv4->sin_addr));
    } else if (from->ss_family == AF_INET6) {
        out->family = NET_IPV6;
        out->port = ntohs(ipv6->sin6_port);
        memcpy(out->ip, &ipv6->sin6_addr, sizeof(ipv6->sin6_addr));
        /* One host has one address, in any family of sockets. */
        net_address_unmap(out);
    } else if (from->ss_family == AF_UNIX) {
        out->family = NET_UNIX;
        /* A client's socket has no name: no path was set. */
        if (length > path_offset)
            text_copy(out->path, sizeof(out->path),
                      text_of(local->sun_path,
                              strnlen(local->sun_path, length - path_offset)));
    }
}

enum {
    UNIX_MODE = 0666,
    SEND_BUFFER = 64 * 1024, /* of replies, by the kernel */
    AGAIN_PATH = 40
};

static_assert(SOCKET_PATH_MAX == sizeof((struct sockaddr_un *)0)->sun_path,
              "a path fits");

static void
socket_set(int socket, int level, int option, int value)
{
    (void)setsockopt(socket, level, option, &value, sizeof(value));
}

static bool
socket_get(int socket, int option, int *value)
{
    socklen_t length = sizeof(*value);
    return getsockopt(socket, SOL_SOCKET, option, value, &length) == 0;
}

int
socket_open(enum net_family family)
{
    int domain = socket_address_family(family);
    int fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (domain != AF_UNIX)
        socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    return fd;
}

static int
socket_bind(int socket, const struct net_address *to)
{
    struct sockaddr_storage name;
    socklen_t length = socket_address_fill(to, &name);
    return bind(socket, (struct sockaddr *)&name, length) < 0 ? -errno : 0;
}

int
socket_bind_source(int socket, const struct net_address *from)
{
    /* connect() chooses the port: only the pair of addresses must be unique */
    if (from->family != NET_UNIX)
        socket_set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    return socket_bind(socket, from);
}

int
socket_connect(int socket, const struct net_address *to)
{
    struct sockaddr_storage name;
    socklen_t length = socket_address_fill(to, &name);
    return connect(socket, (struct sockaddr *)&name, length) < 0 ? -errno : 0;
}

int
socket_result(int socket)
{
    int error = 0;
    return socket_get(socket, SO_ERROR, &error) ? -error : -errno;
}

ssize_t
socket_receive(int socket, char *to, size_t size)
{
    ssize_t got;
    do
        got = recv(socket, to, size, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

ssize_t
socket_send(int socket, struct text bytes)
{
    ssize_t taken;
    do
        taken = send(socket, bytes.at, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (taken < 0 && errno == EINTR);
    return taken < 0 ? -errno : taken;
}

int
socket_shut(int socket)
{
    return shutdown(socket, SHUT_WR) < 0 ? -errno : 0;
}

void
socket_close(int descriptor)
{
    close(descriptor);
}

static bool
socket_poll(int descriptor, short events, int timeout_ms)
{
    struct pollfd asked = {.fd = descriptor, .events = events};
    return poll(&asked, 1, timeout_ms) > 0;
}

/* poll() for no events reports errors and the end of both directions only. */
bool
socket_is_gone(int socket)
{
    return socket_poll(socket, 0, 0);
}

static bool
socket_name(int socket, int (*ask)(int, struct sockaddr *, socklen_t *),
            struct net_address *out)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    if (ask(socket, (struct sockaddr *)&name, &length) != 0)
        return false;
    socket_address_read(&name, length, out);
    return true;
}

bool
socket_local(int socket, struct net_address *out)
{
    return socket_name(socket, getsockname, out);
}

bool
socket_peer(int socket, struct net_address *out)
{
    return socket_name(socket, getpeername, out);
}

bool
socket_credentials(int socket, struct net_credentials *out)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return false;
    *out = (struct net_credentials){
        .pid = (unsigned)who.pid, .uid = who.uid, .gid = who.gid};
    return true;
}

static int
socket_bind_listening(int socket, const struct net_address *address, unsigned unix_mode)
{
    if (address->family != NET_UNIX)
        return socket_bind(socket, address);
    /* Linux gives the file the mode of the socket, so it never has another one. */
    if (fchmod(socket, unix_mode ? unix_mode : UNIX_MODE) < 0)
        return -errno;
    /* bind() would apply it to the mode of the file. */
    mode_t mask = umask(0);
    int result = socket_bind(socket, address);
    umask(mask);
    return result;
}

/* Without a limit the kernel would buffer megabytes for a peer that does not read. */
void
socket_set_inherited(int socket)
{
    socket_set(socket, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER);
    socket_set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

static int
socket_prepare_listening(int socket, const struct net_address *address,
                         unsigned unix_mode, bool is_shared)
{
    int one = 1;
    if (address->family != NET_UNIX) {
        /* Otherwise connections of the last process in TIME_WAIT would hinder a
         * restart. */
        socket_set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
        socket_set_inherited(socket);
    }
    if (is_shared &&
        setsockopt(socket, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0)
        return -errno;
    /* So that [::] and 0.0.0.0 can use the same port, with any default of the
     * system. */
    if (address->family == NET_IPV6)
        socket_set(socket, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    int result = socket_bind_listening(socket, address, unix_mode);
    if (result == 0 && listen(socket, SOCKET_BACKLOG) < 0)
        result = -errno;
    return result;
}

int
socket_listen(const struct net_address *address, unsigned unix_mode, bool is_shared)
{
    int fd = socket_open(address->family);
    int result =
        fd < 0 ? fd : socket_prepare_listening(fd, address, unix_mode, is_shared);
    if (fd >= 0 && result != 0)
        socket_close(fd);
    return result != 0 ? result : fd;
}

int
socket_accept(int socket, struct net_address *peer)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    int fd = accept4(socket, (struct sockaddr *)&name, &length,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    socket_address_read(&name, length, peer);
    return fd;
}

int
socket_backlog(void)
{
    return SOCKET_BACKLOG;
}

bool
socket_is_dual(int socket)
{
    int only = 1, domain = 0;
    socklen_t length = sizeof(only);
    return socket_get(socket, SO_DOMAIN, &domain) && domain == AF_INET6 &&
           getsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length) == 0 && !only;
}

int
socket_adopt_listening(int descriptor)
{
    int type = 0, listens = 0, domain = 0;
    if (!socket_get(descriptor, SO_TYPE, &type) ||
        !socket_get(descriptor, SO_ACCEPTCONN, &listens) ||
        !socket_get(descriptor, SO_DOMAIN, &domain))
        return -errno;
    bool known = domain == AF_INET || domain == AF_INET6 || domain == AF_UNIX;
    if (type != SOCK_STREAM || !listens || !known)
        return -EPROTOTYPE;
    int flags = fcntl(descriptor, F_GETFL);
    bool set = flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 &&
               fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0;
    return set ? 0 : -errno;
}

static int
socket_probe(const struct net_address *address)
{
    return socket(socket_address_family(address->family), SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

bool
socket_can_bind(const struct net_address *address)
{
    int probe = socket_probe(address);
    bool can = probe >= 0 && socket_bind(probe, address) == 0;
    if (probe >= 0)
        socket_close(probe);
    return can;
}

bool
socket_source(const struct net_address *to, struct net_address *source)
{
    int probe = socket_probe(to);
    bool known =
        probe >= 0 && socket_connect(probe, to) == 0 && socket_local(probe, source);
    if (probe >= 0)
        socket_close(probe);
    return known;
}

int
socket_datagram_open(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}

int
socket_datagram_connect(int socket, struct text path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (path.length >= sizeof(name.sun_path))
        return -EINVAL;
    memcpy(name.sun_path, path.at, path.length);
    bool is_abstract = text_starts(path, TEXT("@"));
    if (is_abstract)
        name.sun_path[0] = '\0';
    size_t length = offsetof(struct sockaddr_un, sun_path) + path.length + !is_abstract;
    return connect(socket, (struct sockaddr *)&name, (socklen_t)length) < 0 ? -errno
                                                                            : 0;
}

enum socket_kind
socket_kind(int descriptor)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return SOCKET_NONE;
    if (S_ISSOCK(info.st_mode))
        return SOCKET_SOCKET;
    if (S_ISFIFO(info.st_mode))
        return SOCKET_PIPE;
    return isatty(descriptor) ? SOCKET_TERMINAL : SOCKET_FILE;
}

bool
socket_is_file(int descriptor, uint64_t device, uint64_t inode)
{
    struct stat info;
    return fstat(descriptor, &info) == 0 && info.st_dev == device &&
           info.st_ino == inode;
}

int
socket_open_again(int descriptor)
{
    char path[AGAIN_PATH];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* It has waited: somebody else was faster, and the caller asks again. */
static ssize_t
socket_pipe_error(int error)
{
    return error == EINTR ? -EAGAIN : -error;
}

ssize_t
socket_read(int descriptor, char *to, size_t size)
{
    ssize_t got = read(descriptor, to, size);
    return got < 0 ? socket_pipe_error(errno) : got;
}

ssize_t
socket_write(int descriptor, struct text bytes)
{
    ssize_t wrote = write(descriptor, bytes.at, bytes.length);
    return wrote < 0 ? socket_pipe_error(errno) : wrote;
}

bool
socket_wait_read(int descriptor, int timeout_ms)
{
    return socket_poll(descriptor, POLLIN, timeout_ms);
}

bool
socket_wait_write(int descriptor, int timeout_ms)
{
    return socket_poll(descriptor, POLLOUT, timeout_ms);
}

void
socket_ignore_broken_pipes(void)
{
    signal(SIGPIPE, SIG_IGN);
}
