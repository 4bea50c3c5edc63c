/* Lines and pieces of an actor's connection. */
#include "t/roof/peer.h"

#include "t/roof/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 16 << 20, PIECE = 16 * 1024 };

/* The first bytes are done: they are moved out of it at times. */
static void
take_first(struct buffer *b, size_t *taken, size_t size)
{
    *taken += size;
    if (*taken <= b->length / 2)
        return;
    buffer_take(b, *taken);
    *taken = 0;
}

static struct text
rest_of(const struct buffer *b, size_t taken)
{
    return b->at != NULL ? text_of(b->at + taken, b->length - taken) : TEXT("");
}

static struct text
peer_output(const struct peer *p)
{
    return rest_of(&p->out, p->out_taken);
}

static void
peer_end(struct peer *p)
{
    roof_timer_stop(&p->timer);
    network_close(&p->end);
    buffer_free(&p->out);
    buffer_free(&p->plain);
    tls_session_free(&p->tls);
    p->over(p->context);
}

void
peer_cut(struct peer *p, enum peer_end how)
{
    if (p->end == NULL)
        return;
    switch (how) {
    case PEER_FIN:
    case PEER_ENDS:
        break;
    case PEER_RESET:
        network_reset(&p->end);
        break;
    case PEER_SILENCE:
        network_vanish(&p->end);
        break;
    }
    peer_end(p);
}

static void peer_pump(void *context);

static size_t
next_piece(const struct peer *p)
{
    size_t size = peer_output(p).length;
    if (p->piece > 0 && size > p->piece)
        size = p->piece;
    if (p->cut_at > 0 && p->sent + size > p->cut_at)
        size = p->cut_at - p->sent;
    return size;
}

static void
peer_pump(void *context)
{
    struct peer *p = context;
    p->waits = false;
    while (p->end != NULL && peer_output(p).length > 0) {
        size_t want = next_piece(p);
        size_t got = network_write(p->end, text_before(peer_output(p), want));
        p->sent += got;
        take_first(&p->out, &p->out_taken, got);
        if (p->cut_at > 0 && p->sent >= p->cut_at) {
            peer_cut(p, p->cut_how);
            return;
        }
        p->waits = got < want || (p->pause_ms > 0 && peer_output(p).length > 0);
        if (got < want) /* NETWORK_SPACE comes */
            return;
        if (p->waits) {
            roof_timer_start(&p->timer, p->pause_ms, peer_pump, p);
            return;
        }
    }
    if (p->end != NULL && p->closes)
        peer_end(p);
}

/* --- TLS --- */

static ssize_t
peer_receive(void *context, char *to, size_t size)
{
    struct peer *p = context;
    struct text some = text_before(network_read(p->end), size);
    if (some.length == 0)
        return -EAGAIN;
    memcpy(to, some.at, some.length);
    network_consume(p->end, some.length);
    return (ssize_t)some.length;
}

static bool
peer_transmit(void *context, struct text records)
{
    struct peer *p = context;
    return buffer_add(&p->out, records);
}

void
peer_start_tls(struct peer *p, struct tls_server *server, struct tls_client *client)
{
    struct tls_pipe pipe = {peer_receive, peer_transmit, p};
    struct tls_client_options options = {.level = TLS_LEVEL_NONE};
    buffer_init(&p->plain, OUT_MAX);
    p->plain_taken = 0;
    p->secured = false;
    p->tls = server != NULL ? tls_session_serve(server, TLS_MAIL, &pipe)
                            : tls_session_call(client, &options, &pipe);
}

/* False: it has ended. */
static bool
shake_peer(struct peer *p)
{
    enum progress progress = tls_session_shake(p->tls);
    if (progress == PROGRESS_BAD)
        roof_note("peer: %s", tls_session_error(p->tls));
    peer_send(p);
    if (p->end == NULL)
        return false;
    if (progress == PROGRESS_BAD) {
        peer_end(p);
        return false;
    }
    if (progress == PROGRESS_DONE) {
        p->secured = true;
        if (p->on_secured != NULL)
            p->on_secured(p->context);
    }
    return p->end != NULL;
}

/* The records that have come. False: it has ended. */
static bool
open_records(struct peer *p)
{
    char piece[PIECE];
    ssize_t got;
    if (!p->secured && (!shake_peer(p) || !p->secured))
        return p->end != NULL;
    while ((got = tls_session_read(p->tls, piece, sizeof(piece))) > 0)
        if (!buffer_add(&p->plain, text_of(piece, (size_t)got)))
            abort();
    /* an end that comes with lines is seen behind them */
    if (got != -EAGAIN && p->plain.length == p->plain_taken) {
        peer_end(p);
        return false;
    }
    return true;
}

/* --- Input --- */

static struct text
peer_input(const struct peer *p)
{
    return p->tls != NULL ? rest_of(&p->plain, p->plain_taken) : network_read(p->end);
}

static void
consume_input(struct peer *p, size_t size, bool is_plain)
{
    if (is_plain)
        take_first(&p->plain, &p->plain_taken, size);
    else
        network_consume(p->end, size);
}

static void
hear_raw(struct peer *p, struct text bytes)
{
    p->hears = true;
    p->raw(p->context, bytes);
    p->hears = false;
}

static bool
hear_line(struct peer *p, struct text line)
{
    p->hears = true;
    bool goes_on = p->line(p->context, line);
    p->hears = false;
    return goes_on;
}

/* False: there is no more for now, or nobody who wants it. */
static bool
take_input(struct peer *p)
{
    bool is_plain = p->tls != NULL;
    struct text input = peer_input(p);
    if (p->raw_left > 0) {
        struct text some = text_before(input, p->raw_left);
        if (some.length == 0)
            return false;
        p->raw_left -= some.length;
        hear_raw(p, some);
        if (p->end != NULL)
            consume_input(p, some.length, is_plain);
        return true;
    }
    size_t end = text_find(input, '\n');
    if (end == TEXT_NONE)
        return false;
    size_t length = end > 0 && input.at[end - 1] == '\r' ? end - 1 : end;
    if (!hear_line(p, text_before(input, length)))
        return false;
    if (p->end != NULL)
        consume_input(p, end + 1, is_plain);
    return true;
}

void
peer_go_on(struct peer *p)
{
    while (p->end != NULL && !p->closes) {
        if (p->tls != NULL && !open_records(p))
            return;
        if (!take_input(p))
            break;
    }
    if (p->end == NULL || !p->closes)
        return;
    network_consume(p->end, network_read(p->end).length);
    if (peer_output(p).length == 0)
        peer_end(p);
}

static void
peer_on_event(void *context, enum network_event event)
{
    struct peer *p = context;
    switch (event) {
    case NETWORK_CONNECTED:
        if (p->connected != NULL)
            p->connected(p->context);
        break;
    case NETWORK_INPUT:
        peer_go_on(p);
        break;
    case NETWORK_SPACE:
        peer_pump(p);
        break;
    case NETWORK_REFUSED:
    case NETWORK_ENDED:
    case NETWORK_BROKEN:
        peer_end(p);
        break;
    }
}

void
peer_take(struct peer *p, struct network_end *end)
{
    p->end = end;
    buffer_init(&p->out, OUT_MAX);
    network_attach(end, peer_on_event, p);
}

void
peer_connect(struct peer *p, const struct net_address *from,
             const struct net_address *to)
{
    buffer_init(&p->out, OUT_MAX);
    p->end = network_connect(from, to, peer_on_event, p);
}

void
peer_add(struct peer *p, struct text bytes)
{
    if (p->end == NULL || p->closes)
        return;
    if (p->tls != NULL ? !tls_session_write(p->tls, bytes)
                       : !buffer_add(&p->out, bytes))
        peer_cut(p, PEER_RESET);
}

size_t
peer_last(const struct peer *p)
{
    return p->sent + peer_output(p).length;
}

void
peer_send(struct peer *p)
{
    if (p->end != NULL && !p->waits)
        peer_pump(p);
}

void
peer_say(struct peer *p, struct text bytes)
{
    peer_add(p, bytes);
    peer_send(p);
}

/* One time in two. */
static bool
reads_before_end(void)
{
    static uint64_t chance;
    if (chance == 0)
        chance = roof_fork("ends of peers");
    return plan_takes("fin", 0) && roof_below_of(&chance, 2) == 0;
}

void
peer_close(struct peer *p)
{
    if (p->end == NULL)
        return;
    if (p->secured)
        tls_session_end(p->tls);
    p->closes = true;
    /* what is being heard is unread, and resets: peer_go_on() reads it before the end */
    if (peer_output(p).length == 0 && !(p->hears && reads_before_end()))
        peer_end(p);
}
