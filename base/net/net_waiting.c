/* Bytes that wait, in spare buffers that busy connections take over. */
#include "base/net/net_internal.h"

#include <assert.h>

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
