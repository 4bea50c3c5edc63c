/* Listeners: bind, accept in bursts, and tell which addresses belong to this host. */
#include "base/net/net_internal.h"

#include "base/disk/disk.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

enum {
    /* accepted in a turn, so that new clients do not starve others */
    ACCEPTS_PER_TURN = 64,
    BACKLOG = SOMAXCONN, /* of connections that wait to be accepted */
    PAUSE_MS = 100,      /* when there are no descriptors left */
    UNIX_MODE = 0666,
    SEND_BUFFER = 64 * 1024 /* of replies, by the kernel */
};

/* watch is NULL once the listener is freed: net_listener_on_ready() may be running. */
struct net_listener {
    struct net *net;
    struct net_listener *prev, *next;
    int socket;
    struct loop_watch *watch;
    struct loop_timer pause;
    unsigned number;
    uint64_t accepted;
    uint64_t pauses; /* for want of descriptors or memory */
    net_accepted *on_accept;
    void *context;
    struct net_address address;
    bool is_passed; /* its file is the service manager's */
    bool is_dual;   /* [::] that IPv4 reaches, too */
};

static void
net_listener_on_pause_over(void *context)
{
    struct net_listener *l = context;
    loop_watch_set(l->watch, LOOP_READ);
}

static bool
is_exhausted(int error_number)
{
    return error_number == EMFILE || error_number == ENFILE ||
           error_number == ENOBUFS || error_number == ENOMEM;
}

/* 0 or an errno. */
static int
net_listener_accept(struct net_listener *l)
{
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    struct net_connection *c;
    struct net_address peer;
    int fd = accept4(l->socket, (struct sockaddr *)&name, &length,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return errno;
    net_sockaddr_read(&name, length, &peer);
    c = net_connection_accepted(l->net, fd, &peer);
    c->listener = l->number;
    l->accepted++;
    l->on_accept(l->context, c);
    assert(net_connection_is_settled(c));
    return 0;
}

static void
net_listener_on_ready(void *context, int events)
{
    struct net_listener *l = context;
    struct net *net = l->net;
    (void)events;
    /* A callback may free the listener; its memory is valid until the end of this
     * turn. */
    for (int i = 0; i < ACCEPTS_PER_TURN && l->watch; i++) {
        int error = net_listener_accept(l);

        if (error == EAGAIN)
            return;
        /* Other errors concern one client, and there may be others; but if every
         * accept4() fails, the listener would be ready again immediately, forever. */
        if (error && (is_exhausted(error) || i + 1 == ACCEPTS_PER_TURN)) {
            l->pauses += is_exhausted(error);
            loop_watch_set(l->watch, 0);
            loop_timer_start(net->loop, &l->pause, PAUSE_MS, net_listener_on_pause_over,
                             l);
            return;
        }
    }
}

/* Clients that come meanwhile are not waited for, so it ends. */
void
net_listener_accept_rest(struct net_listener *l)
{
    int error = 0;
    for (int i = 0; i <= BACKLOG && l->watch && !l->is_passed; i++) {
        error = net_listener_accept(l);
        if (error == EAGAIN || is_exhausted(error))
            return;
    }
}

/* Opens the socket's directory and finds its name there: the working directory may be
 * one that `user` cannot enter. 0 or -errno. */
static int
open_directory_of(const struct net_address *address, struct disk **directory,
                  const char **name)
{
    struct text path = text_from(address->path);
    size_t slash = text_find_last(path, '/');
    char *above;
    int result;
    *name = address->path;
    if (slash == TEXT_NONE)
        return disk_open(directory, ".", false);
    above = text_string(text_before(path, slash + 1));
    *name = address->path + slash + 1;
    result = disk_open(directory, above, false);
    free(above);
    return result;
}

static bool
remove_socket(const struct net_address *address)
{
    struct disk_info info;
    struct disk *directory;
    const char *name;
    bool removed;
    if (open_directory_of(address, &directory, &name) < 0)
        return false;
    /* Never a file, a link or a device of the same name: connect() refuses those, too. */
    removed = disk_inspect(directory, name, &info) == 0 && info.kind == DISK_SOCKET &&
              disk_unlink(directory, name) == 0;
    disk_close(&directory);
    return removed;
}

/* A socket in the file system without a listener remains after a crash. One that
 * refuses connections has no listener; one that answers belongs to a program that runs,
 * and stays. */
static bool
net_listener_remove_stale(const struct net_address *address,
                          const struct sockaddr_storage *name, socklen_t length)
{
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool stale = probe >= 0 &&
                 connect(probe, (const struct sockaddr *)name, length) < 0 &&
                 errno == ECONNREFUSED;
    if (probe >= 0)
        close(probe);
    return stale && remove_socket(address);
}

/* 0 or an errno. */
static int
bind_to(int fd, const struct net_address *address, unsigned unix_mode)
{
    struct sockaddr_storage name;
    socklen_t length = net_sockaddr_fill(address, &name);
    mode_t mask;
    int result;
    if (address->family != NET_UNIX)
        return bind(fd, (struct sockaddr *)&name, length) < 0 ? errno : 0;
    /* Linux gives the file the mode of the socket, so it never has another one. */
    if (fchmod(fd, unix_mode ? unix_mode : UNIX_MODE) < 0)
        return errno;
    /* bind() would apply it to the mode of the file. */
    mask = umask(0);
    result = bind(fd, (struct sockaddr *)&name, length) < 0 ? errno : 0;
    if (result == EADDRINUSE && net_listener_remove_stale(address, &name, length))
        result = bind(fd, (struct sockaddr *)&name, length) < 0 ? errno : 0;
    umask(mask);
    return result;
}

/* Accepted sockets inherit these. Without a limit the kernel would buffer megabytes for a
 * peer that does not read. */
static void
set_inherited(int fd)
{
    int one = 1, unread = SEND_BUFFER;
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static bool
is_dual_stack(int fd)
{
    int only = 1, family = 0;
    socklen_t length = sizeof(int);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 &&
           family == AF_INET6 &&
           getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length) == 0 && !only;
}

/* The socket, or a negative errno. */
static int
open_listening(const struct net_address *address, unsigned unix_mode, bool is_shared)
{
    int one = 1, family = net_sockaddr_family(address);
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int result;
    if (fd < 0)
        return -errno;
    if (family != AF_UNIX) {
        /* Otherwise connections of the last process in TIME_WAIT would hinder a
         * restart. */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        set_inherited(fd);
    }
    if (is_shared && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) < 0) {
        result = errno;
        close(fd);
        return -result;
    }
    /* So that [::] and 0.0.0.0 can use the same port, with any default of the
     * system. */
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
    result = bind_to(fd, address, unix_mode);
    if (!result && listen(fd, BACKLOG) < 0)
        result = errno;
    if (result)
        close(fd);
    return result ? -result : fd;
}

/* A hint for errors that do not suggest the remedy. */
static const char *
listening_remedy(const struct net_address *address, bool is_shared, int error)
{
    bool is_unix = address->family == NET_UNIX;
    if (address->family == NET_PASSED)
        return " (FileDescriptorName= in the socket unit; is the unit active?)";
    if (error == EADDRINUSE && is_shared)
        return " (a program listens there without ?share, or as another user: `ss "
               "-ltnp` "
               "shows it)";
    if (error == EADDRINUSE)
        return is_unix ? " (a program answers there, or the socket of one that died "
                         "cannot be removed)"
                       : " (`ss -ltnp` shows which program listens there)";
    if (error == EACCES && !is_unix)
        return " (ports below 1024 need a start as root or CAP_NET_BIND_SERVICE)";
    return "";
}

static void
net_listener_explain(const struct net_address *address, bool is_shared,
                     int error_number, char *error, size_t error_size)
{
    char text[NET_ADDRESS_TEXT_MAX];
    net_address_format(address, text);
    snprintf(error, error_size, "cannot listen on %s: %s%s", text,
             address->family == NET_PASSED ? "no socket with that name was passed"
                                           : strerror(error_number),
             listening_remedy(address, is_shared, error_number));
}

/* A listener for a listening socket. */
static struct net_listener *
net_listener_new(struct net *net, const struct net_address *address, int fd,
                 net_accepted *on_accept, void *context)
{
    bool is_passed = address->family == NET_PASSED;
    struct sockaddr_storage name;
    socklen_t length = sizeof(name);
    struct net_listener *l = memory_new(sizeof(*l));
    assert(on_accept);
    l->number = ++net->listener_last;
    l->net = net;
    l->socket = fd;
    l->on_accept = on_accept;
    l->context = context;
    l->address = *address;
    l->is_passed = is_passed;
    l->is_dual = is_passed && is_dual_stack(fd);
    if (is_passed)
        set_inherited(fd);
    if (address->family != NET_UNIX &&
        getsockname(fd, (struct sockaddr *)&name, &length) == 0)
        net_sockaddr_read(&name, length, &l->address);
    l->watch = loop_watch_new(net->loop, fd, LOOP_READ, net_listener_on_ready, l);
    DL_APPEND(net->listeners, l);
    return l;
}

struct net_listener *
net_listen(struct net *net, const struct net_address *address, unsigned unix_mode,
           net_accepted *on_accept, void *context, char *error, size_t error_size)
{
    int fd = address->family == NET_PASSED ? net_passed_take(net, address->path)
                                           : open_listening(address, unix_mode, false);
    if (fd >= 0)
        return net_listener_new(net, address, fd, on_accept, context);
    net_listener_explain(address, false, -fd, error, error_size);
    return NULL;
}

struct net_listener *
net_listen_shared(struct net *net, const struct net_address *address,
                  net_accepted *on_accept, void *context, char *error,
                  size_t error_size)
{
    assert(address->family == NET_IPV4 || address->family == NET_IPV6);
    int fd = open_listening(address, 0, true);
    if (fd >= 0)
        return net_listener_new(net, address, fd, on_accept, context);
    net_listener_explain(address, true, -fd, error, error_size);
    return NULL;
}

struct net_listener_counts
net_listener_counts(const struct net_listener *l)
{
    struct net_listener_counts counts = {.accepted = l->accepted};
    const struct net_connection *c;
    DL_FOREACH (l->net->connections, c)
        counts.open += c->listener == l->number && !c->closing;
    return counts;
}

uint64_t
net_listener_pauses(const struct net_listener *l)
{
    return l->pauses;
}

const struct net_address *
net_listener_address(const struct net_listener *l)
{
    return &l->address;
}

void
net_listener_free(struct net_listener **listener)
{
    struct net_listener *l = *listener;
    if (!l)
        return;
    *listener = NULL;
    loop_watch_free(&l->watch);
    loop_timer_stop(l->net->loop, &l->pause);
    if (l->address.family == NET_UNIX && !l->is_passed)
        /* if this fails, the next start replaces it */
        (void)!remove_socket(&l->address);
    close(l->socket);
    DL_DELETE(l->net->listeners, l);
    loop_release(l->net->loop, free, l);
}

bool
net_can_bind(const struct net_address *address)
{
    struct sockaddr_storage name;
    socklen_t length = net_sockaddr_fill(address, &name);
    int family = net_sockaddr_family(address);
    int probe = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool can = probe >= 0 && bind(probe, (struct sockaddr *)&name, length) == 0;
    if (probe >= 0)
        close(probe);
    return can;
}

/* True if packets to address would have it as their source; nothing is sent. */
static bool
leads_to_itself(const struct net_address *address)
{
    struct sockaddr_storage name;
    socklen_t length = net_sockaddr_fill(address, &name);
    int family = net_sockaddr_family(address);
    int probe = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct net_address source;
    bool same = probe >= 0 && connect(probe, (struct sockaddr *)&name, length) == 0;
    length = sizeof(name);
    same = same && getsockname(probe, (struct sockaddr *)&name, &length) == 0;
    if (probe >= 0)
        close(probe);
    if (!same)
        return false;
    net_sockaddr_read(&name, length, &source);
    source.port = address->port;
    return net_address_equal(&source, address);
}

/* By binding, not by a list of interfaces: that would need a netlink socket, which the
 * sandbox forbids. */
static bool
is_local(struct net_address address)
{
    struct net_address nobodys; /* RFC 5737, RFC 3849 */
    if (net_address_is_loopback(&address))
        return true;
    address.port = 0;
    if (!net_can_bind(&address))
        return false;
    net_address_parse_ip(
        address.family == NET_IPV4 ? TEXT("192.0.2.1") : TEXT("2001:db8::1"), &nobodys);
    if (net_address_equal(&nobodys, &address) || !net_can_bind(&nobodys))
        return true;
    /* With ip_nonlocal_bind any address can be bound here. */
    address.port = 9; /* a port is required: discard */
    return leads_to_itself(&address);
}

bool
net_is_own(struct net *net, const struct net_address *address)
{
    struct net_address plain = *address;
    struct net_listener *l;
    net_address_unmap(&plain);
    if (net_address_is_wildcard(&plain)) /* connecting to it reaches the loopback */
        net_address_parse_ip(plain.family == NET_IPV4 ? TEXT("127.0.0.1") : TEXT("::1"),
                             &plain);
    plain.port = address->port;
    DL_FOREACH (net->listeners, l) {
        struct net_address mine = l->address;

        if (l->is_dual && net_address_is_wildcard(&mine))
            mine.family = plain.family;
        if (mine.family != plain.family || mine.port != plain.port)
            continue;
        if (net_address_equal(&mine, &plain))
            return true;
        if (net_address_is_wildcard(&mine) && is_local(plain))
            return true;
    }
    return false;
}
