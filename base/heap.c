/* A binary heap of embedded nodes, each of which knows its place. */
#include "base/heap.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

/* nodes[0] is place 1: the parent of place p is p / 2, its children 2p and 2p + 1. */
static void
heap_put(struct heap *h, size_t place, struct heap_node *n)
{
    h->nodes[place - 1] = n;
    n->place = place;
}

static void
rise(struct heap *h, struct heap_node *n)
{
    size_t place = n->place;
    while (place > 1 && h->before(n, h->nodes[place / 2 - 1])) {
        heap_put(h, place, h->nodes[place / 2 - 1]);
        place /= 2;
    }
    heap_put(h, place, n);
}

static void
sink(struct heap *h, struct heap_node *n)
{
    size_t place = n->place;
    for (;;) {
        size_t child = place * 2;
        if (child > h->count)
            break;
        if (child < h->count && h->before(h->nodes[child], h->nodes[child - 1]))
            child++;
        if (!h->before(h->nodes[child - 1], n))
            break;
        heap_put(h, place, h->nodes[child - 1]);
        place = child;
    }
    heap_put(h, place, n);
}

void
heap_init(struct heap *h,
          bool (*before)(const struct heap_node *, const struct heap_node *))
{
    *h = (struct heap){.before = before};
}

bool
heap_due_before(const struct heap_node *a, const struct heap_node *b)
{
    return memory_container(a, struct heap_due, node)->due_ms <
           memory_container(b, struct heap_due, node)->due_ms;
}

void
heap_free(struct heap *h)
{
    free(h->nodes);
    heap_init(h, h->before);
}

void
heap_add(struct heap *h, struct heap_node *n)
{
    assert(n->place == 0);
    if (h->count == h->capacity) {
        h->capacity = h->capacity == 0 ? FIRST_CAPACITY : h->capacity * 2;
        h->nodes = memory_resize(h->nodes, h->capacity * sizeof(*h->nodes));
    }
    h->count++;
    heap_put(h, h->count, n);
    rise(h, n);
}

void
heap_remove(struct heap *h, struct heap_node *n)
{
    assert(n->place > 0 && n->place <= h->count && h->nodes[n->place - 1] == n);
    struct heap_node *last = h->nodes[h->count - 1];
    size_t place = n->place;
    h->count--;
    n->place = 0;
    if (last == n)
        return;
    heap_put(h, place, last);
    /* It comes from another branch, and may belong above or below. */
    rise(h, last);
    sink(h, last);
}

struct heap_node *
heap_first(const struct heap *h)
{
    return h->count == 0 ? NULL : h->nodes[0];
}

bool
heap_has(const struct heap_node *n)
{
    return n->place != 0;
}
