/* Connections under TLS: records between the socket and the buffers.
 *
 * mbedTLS decrypts whole records, so that it may hold input while the socket has none:
 * code that stops reading early asks for NOTIFY_MORE, or the rest would wait for the
 * next byte of the peer. Output is encrypted only when no record waits: for a slow peer
 * only about SEALED_AT_ONCE bytes are encrypted. */
#include "base/net/net_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { SEALED_AT_ONCE = 64 * 1024 }; /* bytes of output that one write encrypts */

static ssize_t
net_tls_receive_more(void *context, char *to, size_t size)
{
    struct net_connection *c = context;
    struct text early = text_before(net_waiting_text(&c->early), size);
    if (!early.length)
        return net_stream_read(c, to, size);
    memcpy(to, early.at, early.length);
    net_waiting_take(c->net, &c->early, early.length);
    return (ssize_t)early.length;
}

static bool
net_tls_transmit(void *context, struct text records)
{
    struct net_connection *c = context;
    return net_waiting_add(c->net, &c->wire, records);
}

static void
net_tls_fail(struct net_connection *c, int error_number)
{
    net_stream_fail(c, error_number, "%s", tls_session_error(c->tls));
}

/* True when it is over. */
static bool
shake(struct net_connection *c)
{
    c->shaking = true;
    switch (tls_session_shake(c->tls)) {
    case PROGRESS_DONE:
        return true;
    case PROGRESS_MORE:
        if (net_waiting_length(&c->wire))
            net_stream_mark(c);
        return false;
    case PROGRESS_BAD:
        net_tls_fail(c, EPROTO);
        return false;
    }
    return false;
}

/* False when there is nothing more to do for now. */
static bool
finish_handshake(struct net_connection *c)
{
    if (c->failed || !shake(c))
        return false;
    c->secured = true;
    c->active_ms = loop_monotonic_ms(c->net->loop);
    if (net_unsent(c))
        net_stream_mark(c);
    net_stream_emit(c, NET_SECURED);
    return !c->gone && !c->closing && !c->paused && !c->failed;
}

/* Decrypts as much as fits: the bytes, or the result of tls_session_read(). An end or
 * an error behind bytes is returned by the next call: both are final. */
static ssize_t
open_records(struct net_connection *c, size_t held)
{
    char *to = c->net->scratch + held;
    size_t space = NET_INPUT_MAX - held, total = 0;
    ssize_t got = 1;
    while (total < space) {
        got = tls_session_read(c->tls, to + total, space - total);
        if (got <= 0)
            break;
        total += (size_t)got;
    }
    return total ? (ssize_t)total : got;
}

static void
receive_data(struct net_connection *c)
{
    size_t held = net_waiting_length(&c->input);
    ssize_t got;
    if (held == NET_INPUT_MAX)
        return;
    got = open_records(c, held);
    if (got == -EAGAIN)
        return;
    if (got < 0) {
        net_tls_fail(c, (int)-got);
        return;
    }
    c->active_ms = loop_monotonic_ms(c->net->loop);
    if (got > 0) {
        net_stream_deliver(c, held, (size_t)got);
    } else {
        c->ended = true;
        if (!c->failed)
            net_stream_emit(c, NET_ENDED);
    }
}

void
net_tls_receive(struct net_connection *c)
{
    assert(c->tls && !c->closing && !c->ended);
    if (c->secured || finish_handshake(c))
        receive_data(c);
    net_stream_update(c);
}

void
net_tls_seal(struct net_connection *c)
{
    struct text bytes = text_before(net_waiting_text(&c->output), SEALED_AT_ONCE);
    assert(!c->clear);
    if (net_waiting_length(&c->wire))
        return;
    if (!c->shaking && shake(c)) /* no space; net_tls_receive() reports it */
        net_stream_notify(c, NOTIFY_MORE);
    if (!c->secured || !bytes.length)
        return;
    if (!tls_session_write(c->tls, bytes))
        net_tls_fail(c, EPROTO);
    else
        net_waiting_take(c->net, &c->output, bytes.length);
}

void
net_tls_drop_output(struct net_connection *c)
{
    struct buffer *b = &c->output.bytes;
    /* Bytes sent before net_start_tls() may go in cleartext: the reply to STARTTLS.
     */
    b->length = c->output.taken + c->clear;
    if (!c->clear)
        net_waiting_clear(c->net, &c->output);
}

static void
release_session(void *object)
{
    struct tls_session *s = object;
    tls_session_free(&s);
}

void
net_tls_end(struct net_connection *c)
{
    if (c->secured)
        tls_session_end(c->tls);
    /* Freed early: the buffers are large, and the peer may take long. */
    loop_release(c->net->loop, release_session, c->tls);
    c->tls = NULL;
}

bool
net_tls_has_more(const struct net_connection *c)
{
    return c->secured && tls_session_has_more(c->tls);
}

/* The socket does not report bytes that were already read, so an event does. */
static void
keep_input(struct net_connection *c)
{
    struct text input = net_input(c);
    bool added;
    buffer_init(&c->early.bytes, NET_INPUT_MAX);
    added = !input.length || net_waiting_add(c->net, &c->early, input);
    /* Fits: NET_INPUT_MAX is the limit of both. */
    assert(added);
    if (input.length)
        net_stream_notify(c, NOTIFY_MORE);
}

void
net_start_tls(struct net_connection *c, const struct net_tls *tls)
{
    struct tls_pipe pipe = {net_tls_receive_more, net_tls_transmit, c};
    assert(!c->gone && !c->closing && !c->tls && !c->shaking);
    assert(!tls->server != !tls->client);
    if (tls->begun)
        keep_input(c);
    /* Cleartext must not count as secured (RFC 3207 §4.2). */
    net_stream_drop_input(c);
    if (tls->server)
        c->tls = tls_session_serve(tls->server, tls->protocol, &pipe);
    else
        c->tls = tls_session_call(tls->client, &tls->options, &pipe);
    c->clear = net_waiting_length(&c->output);
    c->active_ms = loop_monotonic_ms(c->net->loop);
    if (!c->failed)
        net_stream_mark(c);
    net_stream_update(c);
}

bool
net_is_secured(const struct net_connection *c)
{
    return c->secured;
}

struct tls_facts
net_tls_facts(const struct net_connection *c)
{
    static const struct tls_facts none = {.version = "", .cipher = "", .peer_name = ""};
    return c->secured && c->tls ? tls_session_facts(c->tls) : none;
}

enum tls_client_standing
net_tls_judge_client(const struct net_connection *c, const struct tls_server *server,
                     char out[TLS_CLIENT_TEXT_MAX])
{
    return c->secured && c->tls ? tls_session_judge_client(c->tls, server, out)
                                : TLS_CLIENT_ANONYMOUS;
}
