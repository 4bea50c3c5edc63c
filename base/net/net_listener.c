/* Listeners: bind, accept in bursts, and tell which addresses belong to this host. */
#include "base/net/net_internal.h"
#include "base/net/socket.h"

#include "base/disk/disk.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    /* accepted in a turn, so that new clients do not starve others */
    ACCEPTS_PER_TURN = 64,
    PAUSE_MS = 100 /* when there are no descriptors left */
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
    struct net_connection *c;
    struct net_address peer;
    int fd = socket_accept(l->socket, &peer);
    if (fd < 0)
        return -fd;
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
         * socket_accept() fails, the listener would be ready again immediately, forever. */
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
    for (int i = 0; i <= socket_backlog() && l->watch && !l->is_passed; i++) {
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
net_listener_remove_stale(const struct net_address *address)
{
    int probe = socket_open(address->family);
    bool stale = probe >= 0 && socket_connect(probe, address) == -ECONNREFUSED;
    if (probe >= 0)
        socket_close(probe);
    return stale && remove_socket(address);
}

/* The socket, or a negative errno. */
static int
open_listening(const struct net_address *address, unsigned unix_mode, bool is_shared)
{
    int fd = socket_listen(address, unix_mode, is_shared);
    if (fd == -EADDRINUSE && address->family == NET_UNIX &&
        net_listener_remove_stale(address))
        fd = socket_listen(address, unix_mode, is_shared);
    return fd;
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
    struct net_listener *l = memory_new(sizeof(*l));
    assert(on_accept);
    l->number = ++net->listener_last;
    l->net = net;
    l->socket = fd;
    l->on_accept = on_accept;
    l->context = context;
    l->address = *address;
    l->is_passed = is_passed;
    l->is_dual = is_passed && socket_is_dual(fd);
    if (is_passed)
        socket_set_inherited(fd);
    if (address->family != NET_UNIX)
        (void)socket_local(fd, &l->address);
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
    if (fd < 0)
        net_listener_explain(address, false, -fd, error, error_size);
    return fd < 0 ? NULL : net_listener_new(net, address, fd, on_accept, context);
}

struct net_listener *
net_listen_shared(struct net *net, const struct net_address *address,
                  net_accepted *on_accept, void *context, char *error,
                  size_t error_size)
{
    assert(address->family == NET_IPV4 || address->family == NET_IPV6);
    int fd = open_listening(address, 0, true);
    if (fd < 0)
        net_listener_explain(address, true, -fd, error, error_size);
    return fd < 0 ? NULL : net_listener_new(net, address, fd, on_accept, context);
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
    socket_close(l->socket);
    DL_DELETE(l->net->listeners, l);
    loop_release(l->net->loop, free, l);
}

bool
net_can_bind(const struct net_address *address)
{
    return socket_can_bind(address);
}

/* True if packets to address would have it as their source; nothing is sent. */
static bool
leads_to_itself(const struct net_address *address)
{
    struct net_address source;
    if (!socket_source(address, &source))
        return false;
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
