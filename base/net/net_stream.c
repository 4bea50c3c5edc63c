/* The bytes of connections (reading, writing, waiting) and their events.
 *
 * All connections read into one buffer, net->scratch, so that an idle connection holds
 * no memory for input. During NET_INPUT net_input() is a view of it, and only input
 * that the user has not consumed is copied. Output is in up to three parts, in this
 * order on the wire: cleartext from before net_start_tls() (the first `clear` bytes of
 * output), TLS records (wire), and bytes that are not encrypted yet (the rest of
 * output). */
#include "base/net/net_internal.h"

#include "base/memory.h"
#include "base/net/socket.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

size_t
net_waiting_length(const struct net_waiting *w)
{
    return w->bytes.length - w->taken;
}

struct text
net_waiting_text(const struct net_waiting *w)
{
    return text_after(buffer_text(&w->bytes), w->taken);
}

void
net_waiting_clear(struct net *net, struct net_waiting *w)
{
    struct buffer *b = &w->bytes;
    size_t limit = b->limit;
    w->taken = b->length = 0;
    /* A buffer that has grown is freed: spares would keep its memory for good. */
    if (b->at != NULL && b->capacity <= NET_SPARE_MAX &&
        net->spare_count < NET_SPARES) {
        net->spare[net->spare_count++] = *b;
        buffer_init(b, limit);
    } else {
        buffer_free(b);
    }
}

bool
net_waiting_add(struct net *net, struct net_waiting *w, struct text t)
{
    if (w->bytes.at == NULL && net->spare_count > 0) {
        size_t limit = w->bytes.limit;
        w->bytes = net->spare[--net->spare_count];
        w->bytes.limit = limit;
    }
    /* Moved only when more than half is free, so that each byte moves seldom. */
    if (w->taken > w->bytes.length / 2 || t.length > w->bytes.limit - w->bytes.length) {
        buffer_take(&w->bytes, w->taken);
        w->taken = 0;
    }
    return buffer_add(&w->bytes, t);
}

void
net_waiting_take(struct net *net, struct net_waiting *w, size_t size)
{
    assert(size <= net_waiting_length(w));
    w->taken += size;
    if (net_waiting_length(w) == 0)
        net_waiting_clear(net, w);
}

enum {
    /* PIPE_BUF: a pipe that is reported writable accepts this much */
    PIPE_CHUNK = 4096,
    DROPPED_MAX = 16 << 20, /* read from a peer while we close */
    ERROR_MAX = 256
};

static bool
wants_read(const struct net_connection *c)
{
    if (c->connecting || c->ended || c->failed)
        return false;
    if (c->closing) /* input is read and dropped, so that close() does not reset */
        return c->in_is_socket && c->dropped < DROPPED_MAX;
    /* The handshake continues while input is not wanted. */
    if (c->tls && !c->secured)
        return true;
    return !c->paused && net_waiting_length(&c->input) < NET_INPUT_MAX;
}

static void
unmark_dirty(struct net_connection *c)
{
    if (!c->dirty)
        return;
    c->dirty = false;
    DL_DELETE2(c->net->dirty, c, dirty_prev, dirty_next);
}

static void
connection_release(void *object)
{
    struct net_connection *c = object;
    buffer_free(&c->input.bytes);
    buffer_free(&c->output.bytes);
    buffer_free(&c->wire.bytes);
    buffer_free(&c->early.bytes);
    tls_session_free(&c->tls);
    free(c->error);
    free(c);
}

/* Adopted pipes and terminals stay in blocking mode, which they share with other
 * programs: each call is preceded by a question whether it would wait. */
ssize_t
net_stream_read(const struct net_connection *c, char *to, size_t size)
{
    if (c->in_is_socket)
        return socket_receive(c->in, to, size);
    return socket_wait_read(c->in, 0) ? socket_read(c->in, to, size) : -EAGAIN;
}

/* The number of bytes accepted, or a negative errno. */
static ssize_t
net_stream_write_some(const struct net_connection *c, struct text t)
{
    if (c->out_is_socket)
        return socket_send(c->out, t);
    return socket_wait_write(c->out, 0)
               ? socket_write(c->out, text_before(t, PIPE_CHUNK))
               : -EAGAIN;
}

void
net_stream_emit(struct net_connection *c, enum net_event event)
{
    if (c->on_event)
        c->on_event(c->context, event);
}

void
net_stream_notify(struct net_connection *c, unsigned what)
{
    c->notify |= what;
    loop_post(c->net->loop, &c->notifying, c->notifying.run, c);
}

/* The loop is level-triggered: a watch that is on without need would keep it awake. */
void
net_stream_update(struct net_connection *c)
{
    int reading = wants_read(c) ? LOOP_READ : 0;
    int writing = c->connecting || c->blocked ? LOOP_WRITE : 0;
    if (c->gone || !c->watch_in)
        return;
    if (c->in == c->out) {
        loop_watch_set(c->watch_in, reading | writing);
    } else {
        loop_watch_set(c->watch_in, reading);
        loop_watch_set(c->watch_out, writing);
    }
    if (c->tls && wants_read(c) && net_tls_has_more(c))
        net_stream_notify(c, NOTIFY_MORE);
}

void
net_stream_mark(struct net_connection *c)
{
    struct net *net = c->net;
    if (c->dirty || c->blocked || c->connecting)
        return;
    /* Outside of a turn, too, the sending turn must come. */
    if (!net->dirty)
        loop_wake(net->loop, &net->wake);
    c->dirty = true;
    DL_APPEND2(net->dirty, c, dirty_prev, dirty_next);
}

/* Closes now, and frees at the end of the turn: an event of this connection may be
 * running. */
void
net_stream_destroy(struct net_connection *c)
{
    struct net *net = c->net;
    assert(!c->gone);
    c->gone = true;
    c->on_event = NULL;
    unmark_dirty(c);
    if (c->closing) {
        DL_DELETE2(net->lingering, c, lingering_prev, lingering_next);
        net->lingering_count--;
    }
    loop_timer_stop(net->loop, &c->timer);
    loop_unpost(net->loop, &c->notifying);
    loop_watch_free(&c->watch_in);
    loop_watch_free(&c->watch_out);
    if (c->in >= 0)
        socket_close(c->in);
    if (c->out != c->in)
        socket_close(c->out);
    DL_DELETE(net->connections, c);
    net->connection_count--;
    loop_release(net->loop, connection_release, c);
}

/* net_send() may notice the failure, and the user does not expect events within it:
 * NET_FAILED comes in the next turn. A closing connection has no user to inform. */
void
net_stream_fail(struct net_connection *c, int error_number, const char *format, ...)
{
    char text[ERROR_MAX];
    va_list list;
    if (c->gone || c->failed)
        return;
    if (c->closing) {
        net_stream_destroy(c);
        return;
    }
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    c->error = memory_string(text);
    c->error_number = error_number;
    c->failed = true;
    if (c->shaking && !c->clear && !c->blocked)
        /* the TLS alert, if possible */
        net_stream_write_some(c, net_waiting_text(&c->wire));
    c->connecting = c->blocked = false;
    net_waiting_clear(c->net, &c->output);
    net_waiting_clear(c->net, &c->wire);
    c->clear = 0;
    unmark_dirty(c);
    loop_timer_stop(c->net->loop, &c->timer);
    net_stream_update(c);
    net_stream_notify(c, NOTIFY_FAILED);
}

/* FIN follows the last byte of output, with close_notify under TLS. Then the peer's end
 * is awaited: see net.c on RST. */
void
net_stream_settle(struct net_connection *c)
{
    if (!c->closing || c->gone || c->connecting || net_unsent(c))
        return;
    if (c->tls) {
        net_tls_end(c);
        if (net_unsent(c)) {
            net_stream_mark(c);
            return;
        }
    }
    if (c->ended || !c->in_is_socket || !c->out_is_socket)
        net_stream_destroy(c);
    else if (!c->shut && socket_shut(c->out) != 0)
        net_stream_destroy(c);
    else
        c->shut = true;
}

void
net_stream_deliver(struct net_connection *c, size_t held, size_t got)
{
    char *scratch = c->net->scratch;
    struct text rest;
    if (held)
        memcpy(scratch, net_waiting_text(&c->input).at, held);
    c->view = text_of(scratch, held + got);
    net_stream_emit(c, NET_INPUT);
    if (c->gone || c->closing)
        return;
    rest = c->view;
    c->view = (struct text){0};
    /* Nothing was consumed: the held bytes are still in c->input. */
    if (rest.length == held + got)
        rest = text_after(rest, held);
    else
        net_waiting_clear(c->net, &c->input);
    if (rest.length) {
        /* Fits: net_stream_receive() and receive_data() read at most the rest below
         * NET_INPUT_MAX. */
        bool added = net_waiting_add(c->net, &c->input, rest);

        assert(added);
    }
}

void
net_stream_receive(struct net_connection *c)
{
    size_t held = net_waiting_length(&c->input);
    ssize_t got;
    if (c->tls && !c->closing) {
        net_tls_receive(c);
        return;
    }
    /* The user pauses: TCP's window then slows the peer. */
    if (held == NET_INPUT_MAX)
        return;
    got = net_stream_read(c, c->net->scratch + held, NET_INPUT_MAX - held);
    if (got == -EAGAIN)
        return;
    if (got < 0) {
        net_stream_fail(c, (int)-got, "receiving: %s", strerror((int)-got));
        return;
    }
    c->active_ms = loop_monotonic_ms(c->net->loop);
    if (got == 0) {
        c->ended = true;
        if (c->closing)
            net_stream_settle(c);
        else if (!c->failed)
            net_stream_emit(c, NET_ENDED);
    } else if (c->closing) {
        c->dropped += (size_t)got;
    } else {
        net_stream_deliver(c, held, (size_t)got);
    }
    net_stream_update(c);
}

void
net_stream_drop_input(struct net_connection *c)
{
    c->view = (struct text){0};
    net_waiting_clear(c->net, &c->input);
}

/* The next bytes to write. */
static struct net_waiting *
next_output(struct net_connection *c, struct text *bytes)
{
    struct net_waiting *w = &c->output;
    if (c->tls && !c->clear)
        net_tls_seal(c);
    /* Records may be left although TLS has ended: net_tls_end(). */
    if (c->tls || net_waiting_length(&c->wire))
        w = c->clear ? &c->output : &c->wire;
    *bytes = net_waiting_text(w);
    if (c->clear)
        *bytes = text_before(*bytes, c->clear);
    return w;
}

/* False when it has failed. Once the socket is full, net_on_ready() continues. */
static bool
write_output(struct net_connection *c)
{
    struct text bytes;
    for (;;) {
        struct net_waiting *w = next_output(c, &bytes);
        ssize_t taken;

        if (c->failed || c->gone)
            return false;
        if (!bytes.length)
            return true;
        taken = net_stream_write_some(c, bytes);
        c->blocked = taken == -EAGAIN;
        if (c->blocked)
            return true;
        if (taken < 0) {
            net_stream_fail(c, (int)-taken, "sending: %s", strerror((int)-taken));
            return false;
        }
        if (!c->tls || c->secured) /* the time-out covers the whole handshake */
            c->active_ms = loop_monotonic_ms(c->net->loop);
        c->clear -= c->clear ? (size_t)taken : 0;
        net_waiting_take(c->net, w, (size_t)taken);
        c->blocked = c->out_is_socket && (size_t)taken < bytes.length;
        if (c->blocked) /* a short write: the socket is full */
            return true;
    }
}

void
net_stream_flush(struct net_connection *c)
{
    if (!write_output(c))
        return;
    if (c->above && net_unsent(c) < c->low_water) {
        c->above = false;
        if (!c->closing)
            net_stream_notify(c, NOTIFY_DRAINED);
    }
    net_stream_update(c);
    net_stream_settle(c);
}

/* At the end of a turn, so that all that the turn said to a peer goes in one write. */
void
net_stream_flush_all(void *context)
{
    struct net *net = context;
    while (net->dirty) {
        struct net_connection *c = net->dirty;

        unmark_dirty(c);
        net_stream_flush(c);
    }
    loop_unpost(net->loop, &net->wake);
}

struct text
net_input(const struct net_connection *c)
{
    return c->view.at ? c->view : net_waiting_text(&c->input);
}

void
net_consume(struct net_connection *c, size_t size)
{
    assert(size <= net_input(c).length);
    if (c->view.at) {
        c->view = text_after(c->view, size);
    } else if (size) {
        net_waiting_take(c->net, &c->input, size);
        net_stream_update(c);
    }
}

void
net_want_input(struct net_connection *c, bool want)
{
    if (c->paused && want && net_input(c).length)
        net_stream_notify(c, NOTIFY_INPUT);
    c->paused = !want;
    net_stream_update(c);
}

void
net_send(struct net_connection *c, struct text bytes)
{
    if (c->failed || !bytes.length)
        return;
    if (!net_waiting_add(c->net, &c->output, bytes)) {
        net_stream_fail(c, ENOBUFS, "the peer does not read: %zu bytes are unsent",
                        net_waiting_length(&c->output));
        return;
    }
    if (net_unsent(c) >= c->low_water)
        c->above = true;
    net_stream_mark(c);
}

size_t
net_unsent(const struct net_connection *c)
{
    return net_waiting_length(&c->output) + net_waiting_length(&c->wire);
}
