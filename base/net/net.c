/* Connections: opening them, and closing them without loss of the last reply.
 *
 * A connection is connecting, then open, then failed or closing, then gone. A closing
 * one (net_close()) has no user: it sends the rest of its output, closes its half, and
 * reads and drops input until the peer closes, too. close() with unread input would
 * send RST, and the peer could lose our last reply. Only the memory of one that is gone
 * is left, until the end of the turn.
 *
 * A call of the user never emits an event (law 1 of the loop): an event within it is
 * noted in `notify`, and emitted in the next turn. */
#include "base/net/net.h"

#include "base/memory.h"
#include "base/net/net_internal.h"
#include "base/net/socket.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { LINGER_MS = 30000 };

static void
fail_to_connect(struct net_connection *c, int error_number)
{
    char to[NET_ADDRESS_TEXT_MAX];
    net_address_format(&c->peer, to);
    net_stream_fail(c, error_number, "cannot connect to %s: %s", to,
                    strerror(error_number));
}

static void
finish_connecting(struct net_connection *c)
{
    int error_number = -socket_result(c->out);
    if (error_number) {
        fail_to_connect(c, error_number);
        return;
    }
    c->connecting = false;
    c->active_ms = loop_monotonic_ms(c->net->loop);
    (void)socket_local(c->out, &c->local);
    /* net_stream_mark() did nothing while it was connecting. */
    if (net_unsent(c) || c->tls)
        net_stream_mark(c);
    net_stream_update(c);
    net_stream_emit(c, NET_CONNECTED);
}

static void
net_on_ready(void *context, int events)
{
    struct net_connection *c = context;
    if (c->connecting) {
        finish_connecting(c);
        return;
    }
    if (events & LOOP_READ)
        net_stream_receive(c);
    /* The event of the input may have closed it. */
    if (events & LOOP_WRITE && !c->gone && c->blocked)
        net_stream_flush(c);
}

static bool
net_is_notified(struct net_connection *c, unsigned what)
{
    bool notified = c->notify & what;
    c->notify &= ~what;
    return notified && !c->gone;
}

/* Each event may close or free the connection, so that net_is_notified() asks again. */
static void
net_on_notify(void *context)
{
    struct net_connection *c = context;
    if (net_is_notified(c, NOTIFY_CONNECTED))
        net_stream_emit(c, NET_CONNECTED);
    if (net_is_notified(c, NOTIFY_MORE) && c->tls && !c->ended && !c->failed &&
        (!c->paused || !c->secured))
        net_stream_receive(c);
    if (net_is_notified(c, NOTIFY_INPUT) && !c->paused && net_input(c).length)
        net_stream_emit(c, NET_INPUT);
    if (net_is_notified(c, NOTIFY_DRAINED) && !c->failed)
        net_stream_emit(c, NET_DRAINED);
    if (!net_is_notified(c, NOTIFY_FAILED))
        return;
    /* A peer that refuses our bytes may have sent the reason: first read that. */
    if (!c->ended && !c->paused)
        net_stream_receive(c);
    if (!c->gone)
        net_stream_emit(c, NET_FAILED);
}

/* Bytes do not restart the timer, which would be work for each piece. Once it fires, it
 * is set again for the rest of the time-out. */
static void
net_on_timer(void *context)
{
    struct net_connection *c = context;
    int64_t idle_ms = loop_monotonic_ms(c->net->loop) - c->active_ms;
    if (c->closing)
        net_stream_destroy(c);
    else if (idle_ms >= c->timeout_ms)
        net_stream_emit(c, NET_TIMED_OUT);
    else
        loop_timer_start(c->net->loop, &c->timer, c->timeout_ms - idle_ms, net_on_timer,
                         c);
}

static struct net_connection *
connection_new(struct net *net)
{
    struct net_connection *c = memory_new(sizeof(*c));
    c->net = net;
    c->in = c->out = -1;
    c->active_ms = loop_monotonic_ms(net->loop);
    c->notifying.run = net_on_notify;
    buffer_init(&c->input.bytes, NET_INPUT_MAX);
    buffer_init(&c->output.bytes, NET_UNSENT_MAX);
    buffer_init(&c->wire.bytes, NET_UNSENT_MAX);
    c->low_water = NET_LOW_WATER;
    DL_APPEND(net->connections, c);
    net->connection_count++;
    return c;
}

static void
use_descriptors(struct net_connection *c, int in, bool in_is_socket, int out,
                bool out_is_socket)
{
    c->in = in;
    c->out = out;
    c->in_is_socket = in_is_socket;
    c->out_is_socket = out_is_socket;
    c->watch_in = loop_watch_new(c->net->loop, in, 0, net_on_ready, c);
    if (out != in)
        c->watch_out = loop_watch_new(c->net->loop, out, 0, net_on_ready, c);
}

/* 0 or an errno. */
static int
try_connect(struct net_connection *c, const struct net_address *bind_to)
{
    int fd = socket_open(c->peer.family);
    if (fd < 0)
        return -fd;
    use_descriptors(c, fd, true, fd, true);
    int result = bind_to != NULL ? socket_bind_source(fd, bind_to) : 0;
    return result != 0 ? -result : -socket_connect(fd, &c->peer);
}

struct net_connection *
net_connection_accepted(struct net *net, int socket, const struct net_address *peer)
{
    struct net_connection *c = connection_new(net);
    use_descriptors(c, socket, true, socket, true);
    c->peer = *peer;
    (void)socket_local(socket, &c->local);
    net_stream_update(c);
    return c;
}

bool
net_connection_is_settled(const struct net_connection *c)
{
    return c->gone || c->closing || c->on_event;
}

/* At the end of the turn: net_free() may be called within an event, whose connection
 * still uses the scratch buffer. */
static void
net_release(void *object)
{
    struct net *net = object;
    for (size_t i = 0; i < net->spare_count; i++)
        buffer_free(&net->spare[i]);
    net_passed_free(net);
    free(net->scratch);
    free(net);
}

struct net *
net_new(struct loop *loop)
{
    struct net *net = memory_new(sizeof(*net));
    net->loop = loop;
    net->scratch = memory_new(NET_INPUT_MAX);
    loop_at_end(loop, LOOP_SEND_NET, net_stream_flush_all, net);
    socket_ignore_broken_pipes(); /* write() to an adopted pipe */
    return net;
}

void
net_free(struct net **net)
{
    struct net *n = *net;
    struct net_connection *c, *next;
    if (!n)
        return;
    while (n->listeners) {
        struct net_listener *listener = n->listeners;

        net_listener_free(&listener);
    }
    for (c = n->lingering; c; c = next) {
        next = c->lingering_next;
        net_stream_flush(c);
    }
    while (n->connections)
        net_stream_destroy(n->connections);
    loop_unpost(n->loop, &n->wake);
    loop_at_end_remove(n->loop, LOOP_SEND_NET, net_stream_flush_all, n);
    loop_release(n->loop, net_release, n);
    *net = NULL;
}

size_t
net_connections(const struct net *net)
{
    return net->connection_count;
}

struct net_connection *
net_connect(struct net *net, const struct net_address *to,
            const struct net_address *bind_to, net_happened *on_event, void *context)
{
    struct net_connection *c = connection_new(net);
    int error_number;
    c->peer = *to;
    c->connecting = true;
    net_attach(c, on_event, context);
    error_number = try_connect(c, bind_to);
    if (error_number == 0) {
        c->connecting = false;
        (void)socket_local(c->out, &c->local);
        net_stream_notify(c, NOTIFY_CONNECTED);
    } else if (error_number != EINPROGRESS) {
        fail_to_connect(c, error_number);
    }
    net_stream_update(c);
    return c;
}

struct net_connection *
net_adopt(struct net *net, int in, int out, net_happened *on_event, void *context)
{
    struct net_connection *c = connection_new(net);
    assert(in >= 0 && out >= 0);
    use_descriptors(c, in, socket_kind(in) == SOCKET_SOCKET, out,
                    socket_kind(out) == SOCKET_SOCKET);
    if (c->in_is_socket) {
        (void)socket_peer(in, &c->peer);
        (void)socket_local(in, &c->local);
    }
    net_attach(c, on_event, context);
    net_stream_update(c);
    return c;
}

void
net_attach(struct net_connection *c, net_happened *on_event, void *context)
{
    assert(on_event && !c->gone && !c->closing);
    c->on_event = on_event;
    c->context = context;
}

bool
net_peer_is_gone(const struct net_connection *c)
{
    return c->in_is_socket && socket_is_gone(c->in);
}

void
net_set_low_water(struct net_connection *c, size_t bytes)
{
    assert(bytes > 0 && bytes <= NET_LOW_WATER);
    assert(!net_unsent(c));
    c->low_water = bytes;
}

void
net_set_timeout(struct net_connection *c, int64_t timeout_ms)
{
    struct loop *loop = c->net->loop;
    assert(timeout_ms >= 0);
    c->timeout_ms = timeout_ms;
    c->active_ms = loop_monotonic_ms(loop);
    if (!timeout_ms || c->failed)
        loop_timer_stop(loop, &c->timer);
    /* A timer that fires earlier is sufficient: net_on_timer() sets it again. */
    else if (!heap_has(&c->timer.node) || c->timer.due_ms > c->active_ms + timeout_ms)
        loop_timer_start(loop, &c->timer, timeout_ms, net_on_timer, c);
}

const char *
net_error(const struct net_connection *c)
{
    return c->error ? c->error : "";
}

int
net_errno(const struct net_connection *c)
{
    return c->error_number;
}

const struct net_address *
net_peer(const struct net_connection *c)
{
    return &c->peer;
}

bool
net_peer_credentials(const struct net_connection *c, struct net_credentials *out)
{
    return c->peer.family == NET_UNIX && c->in >= 0 && socket_credentials(c->in, out);
}

const struct net_address *
net_local(const struct net_connection *c)
{
    return &c->local;
}

void
net_set_peer(struct net_connection *c, const struct net_address *peer)
{
    c->peer = *peer;
}

/* From now on it is closing. The oldest gives way: it had the most time to take its
 * last reply. */
static void
linger(struct net_connection *c)
{
    struct net *net = c->net;
    if (net->lingering_count == NET_LINGERING_MAX)
        net_stream_destroy(net->lingering);
    c->closing = true;
    DL_APPEND2(net->lingering, c, lingering_prev, lingering_next);
    net->lingering_count++;
}

void
net_close(struct net_connection **connection)
{
    struct net_connection *c = *connection;
    if (!c)
        return;
    *connection = NULL;
    if (c->tls && !c->secured) /* never send in cleartext bytes meant for TLS */
        net_tls_drop_output(c);
    /* One that still connects goes on if it has bytes to send. */
    if (c->failed || (c->connecting && !net_unsent(c))) {
        net_stream_destroy(c);
        return;
    }
    linger(c);
    c->on_event = NULL;
    c->notify = 0;
    net_stream_drop_input(c);
    loop_unpost(c->net->loop, &c->notifying);
    loop_timer_start(c->net->loop, &c->timer, LINGER_MS, net_on_timer, c);
    net_stream_update(c);
    net_stream_settle(c);
}

void
net_abort(struct net_connection **connection)
{
    if (*connection)
        net_stream_destroy(*connection);
    *connection = NULL;
}
