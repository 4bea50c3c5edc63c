/* Lines and pieces of an actor's connection. */
#include "t/roof/peer.h"

#include <string.h>

enum { OUT_MAX = 16 << 20 };

static void
peer_end(struct peer *p)
{
    roof_timer_stop(&p->timer);
    network_close(&p->end);
    buffer_free(&p->out);
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
    size_t size = p->out.length;
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
    while (p->end != NULL && p->out.length > 0) {
        size_t want = next_piece(p);
        size_t got = network_write(p->end, text_of(p->out.at, want));
        p->sent += got;
        buffer_take(&p->out, got);
        if (p->cut_at > 0 && p->sent >= p->cut_at) {
            peer_cut(p, p->cut_how);
            return;
        }
        if (got < want) /* NETWORK_SPACE comes */
            return;
        if (p->pause_ms > 0 && p->out.length > 0) {
            roof_timer_start(&p->timer, p->pause_ms, peer_pump, p);
            return;
        }
    }
    if (p->end != NULL && p->closes)
        peer_end(p);
}

void
peer_go_on(struct peer *p)
{
    while (p->end != NULL && !p->closes) {
        struct text input = network_read(p->end);
        if (p->raw_left > 0) {
            struct text some = text_before(input, p->raw_left);
            if (some.length == 0)
                return;
            p->raw_left -= some.length;
            p->raw(p->context, some);
            if (p->end != NULL)
                network_consume(p->end, some.length);
            continue;
        }
        size_t end = text_find(input, '\n');
        if (end == TEXT_NONE)
            return;
        size_t length = end > 0 && input.at[end - 1] == '\r' ? end - 1 : end;
        if (!p->line(p->context, text_before(input, length)))
            return;
        if (p->end != NULL)
            network_consume(p->end, end + 1);
    }
    if (p->end != NULL)
        network_consume(p->end, network_read(p->end).length);
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
peer_connect(struct peer *p, const struct net_address *from, const struct net_address *to)
{
    buffer_init(&p->out, OUT_MAX);
    p->end = network_connect(from, to, peer_on_event, p);
}

void
peer_say(struct peer *p, struct text bytes)
{
    if (p->end == NULL || p->closes)
        return;
    bool waits = p->out.length > 0;
    if (!buffer_add(&p->out, bytes))
        peer_cut(p, PEER_RESET);
    else if (!waits)
        peer_pump(p);
}

void
peer_close(struct peer *p)
{
    if (p->end == NULL)
        return;
    p->closes = true;
    if (p->out.length == 0)
        peer_end(p);
}
