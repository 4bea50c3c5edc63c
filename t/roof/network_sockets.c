/* The calls of base/net/socket.h, by processes of the network. */
#include "t/roof/network_internal.h"

#include "t/roof/roof.h"

#include <errno.h>
#include <string.h>
#include <utlist.h>

int
socket_open(enum net_family family)
{
    if (network_is_dead())
        return -EMFILE;
    struct network_end *e = network_end_new(net.process);
    e->local.family = family;
    return e->descriptor;
}

int
socket_bind_source(int socket, const struct net_address *from)
{
    if (!socket_can_bind(from))
        return -EADDRNOTAVAIL;
    network_end_of(socket)->local = *from;
    return 0;
}

static void
name_client(struct network_end *e, const struct net_address *to)
{
    if (to->family == NET_UNIX) {
        e->local = (struct net_address){.family = NET_UNIX};
        return;
    }
    if (net_address_is_wildcard(&e->local) || e->local.family == NET_NONE ||
        e->local.ip[0] == 0)
        for (size_t i = net.address_count[e->process]; i > 0; i--)
            if (net.addresses[e->process][i - 1].family == to->family)
                e->local = net.addresses[e->process][i - 1];
    e->local.port = (uint16_t)(20000 + net.ports++ % 40000);
}

int
socket_connect(int socket, const struct net_address *to)
{
    if (network_is_dead())
        return -ENETDOWN;
    struct network_end *e = network_end_of(socket);
    name_client(e, to);
    if (to->family == NET_UNIX) {
        struct network_end *l = network_listener_at(to);
        if (l == NULL)
            return -ENOENT;
    }
    network_begin_connecting(e, to);
    return -EINPROGRESS;
}

int
socket_result(int socket)
{
    struct network_end *e = network_end_of(socket);
    int error = e->error;
    net.calls++;
    e->error = 0;
    return -error;
}

ssize_t
socket_receive(int socket, char *to, size_t size)
{
    struct network_end *e = network_end_of(socket);
    if (network_is_dead())
        return -EAGAIN;
    if (e->state == BROKEN && e->error != 0) {
        int error = e->error;
        e->error = 0;
        return -error;
    }
    if (e->state == BROKEN)
        return 0;
    if (e->arrived == 0)
        return e->ended ? 0 : -EAGAIN;
    size_t got = size < e->arrived ? size : e->arrived;
    if (e->path.choppy && got > 1)
        got = 1 + roof_below((unsigned)got);
    memcpy(to, network_input(e).at, got);
    network_taken(e, got);
    return (ssize_t)got;
}

ssize_t
socket_send(int socket, struct text bytes)
{
    if (network_is_dead())
        return -EAGAIN;
    return network_write_end(network_end_of(socket), bytes);
}

int
socket_shut(int socket)
{
    struct network_end *e = network_end_of(socket);
    if (network_is_dead())
        return 0;
    if (e->state != CONNECTED)
        return -ENOTCONN;
    if (!e->shut && e->peer != NULL)
        network_send_segment(e->peer, TEXT(""), false);
    e->shut = true;
    return 0;
}

void
socket_close(int descriptor)
{
    struct network_end *e = network_end_of(descriptor);
    if (e == NULL || network_is_dead())
        return;
    if (e->state == LISTENING)
        network_forget_waiting(e);
    network_close_end(e, false);
}

bool
socket_is_gone(int socket)
{
    const struct network_end *e = network_end_of(socket);
    net.calls++;
    return e->state == BROKEN || (e->ended && e->shut) ||
           (e->state == CONNECTED && e->peer == NULL && !e->vanished &&
            e->segments == NULL && e->ended);
}

bool
socket_local(int socket, struct net_address *out)
{
    *out = network_end_of(socket)->local;
    return true;
}

bool
socket_peer(int socket, struct net_address *out)
{
    *out = network_end_of(socket)->peer_address;
    return true;
}

bool
socket_credentials(int socket, struct net_credentials *out)
{
    (void)socket;
    *out = (struct net_credentials){.pid = 1};
    return true;
}

int
socket_listen(const struct net_address *address, unsigned unix_mode, bool is_shared)
{
    (void)unix_mode;
    if (network_is_dead())
        return -EMFILE;
    if (!is_shared && network_listener_at(address) != NULL)
        return -EADDRINUSE;
    struct network_end *e = network_end_new(net.process);
    e->local = *address;
    e->state = LISTENING;
    return e->descriptor;
}

void
socket_set_inherited(int socket)
{
    (void)socket;
}

int
socket_accept(int socket, struct net_address *peer)
{
    struct network_end *l = network_end_of(socket), *e = l->waiting;
    if (network_is_dead() || e == NULL)
        return -EAGAIN;
    if (net.accepts_failing > 0) {
        net.accepts_failing--;
        return -EMFILE;
    }
    DL_DELETE(l->waiting, e);
    l->waiting_count--;
    e->listed = false;
    *peer = e->peer_address;
    return e->descriptor;
}

int
socket_backlog(void)
{
    return BACKLOG;
}

bool
socket_is_dual(int socket)
{
    (void)socket;
    return false;
}

int
socket_adopt_listening(int descriptor)
{
    (void)descriptor;
    return -EBADF;
}

bool
socket_can_bind(const struct net_address *address)
{
    struct net_address a = *address;
    net.calls++;
    for (size_t i = 0; i < net.address_count[net.process]; i++) {
        a.port = net.addresses[net.process][i].port;
        if (net_address_equal(&a, &net.addresses[net.process][i]))
            return true;
    }
    return false;
}

bool
socket_source(const struct net_address *to, struct net_address *source)
{
    if (net.address_count[net.process] == 0)
        return false;
    *source = socket_can_bind(to) ? *to : net.addresses[net.process][0];
    return true;
}

int
socket_datagram_open(void)
{
    return -EAFNOSUPPORT;
}

int
socket_datagram_connect(int socket, struct text path)
{
    (void)socket;
    (void)path;
    return -ENOENT;
}

enum socket_kind
socket_kind(int descriptor)
{
    return network_end_of(descriptor) != NULL ? SOCKET_SOCKET : SOCKET_FILE;
}

bool
socket_is_file(int descriptor, uint64_t device, uint64_t inode)
{
    (void)descriptor;
    (void)device;
    (void)inode;
    return false;
}

int
socket_open_again(int descriptor)
{
    (void)descriptor;
    return -EBADF;
}

ssize_t
socket_read(int descriptor, char *to, size_t size)
{
    (void)descriptor;
    (void)to;
    (void)size;
    return -EBADF;
}

ssize_t
socket_write(int descriptor, struct text bytes)
{
    (void)descriptor;
    if (!network_is_dead() && net.take != NULL)
        net.take(net.process, bytes);
    return (ssize_t)bytes.length;
}

bool
socket_wait_read(int descriptor, int timeout_ms)
{
    (void)timeout_ms;
    return (network_ask(descriptor) & LOOP_READ) != 0;
}

bool
socket_wait_write(int descriptor, int timeout_ms)
{
    (void)timeout_ms;
    return descriptor < NETWORK_FIRST || (network_ask(descriptor) & LOOP_WRITE) != 0;
}

void
socket_ignore_broken_pipes(void)
{
}
