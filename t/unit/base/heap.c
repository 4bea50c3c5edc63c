/* The heap against a plain search through all nodes, over a long random walk. */
#include "base/heap.h"
#include "base/memory.h"
#include "t/support/tap.h"

enum { NODES = 300, STEPS = 60000 };

struct item {
    int value;
    struct heap_node node;
};

static int
value_of(const struct heap_node *n)
{
    return memory_container(n, const struct item, node)->value;
}

static bool
is_before(const struct heap_node *a, const struct heap_node *b)
{
    return value_of(a) < value_of(b);
}

/* No node is before its parent, and every node knows its place. */
static bool
is_heap(const struct heap *h)
{
    for (size_t place = 1; place <= h->count; place++) {
        if (h->nodes[place - 1]->place != place)
            return false;
        if (place > 1 && is_before(h->nodes[place - 1], h->nodes[place / 2 - 1]))
            return false;
    }
    return true;
}

static uint32_t
next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

TEST(walk)
{
    static struct item items[NODES];
    uint32_t state = 42;
    size_t inside = 0;
    bool whole = true, first = true, has = true;
    FIXTURE(heap, h, heap_init, heap_free, is_before);
    for (size_t step = 0; step < STEPS; step++) {
        struct item *item = &items[next_random(&state) % NODES];
        if (heap_has(&item->node)) {
            heap_remove(&h, &item->node);
            inside--;
            has = has && !heap_has(&item->node);
        } else {
            item->value = (int)(next_random(&state) % 100); /* many are equal */
            heap_add(&h, &item->node);
            inside++;
            has = has && heap_has(&item->node);
        }
        whole = whole && h.count == inside && is_heap(&h);
        int least = 1000;
        for (size_t i = 0; i < NODES; i++)
            if (heap_has(&items[i].node) && items[i].value < least)
                least = items[i].value;
        const struct heap_node *top = heap_first(&h);
        first = first && (top == NULL ? inside == 0 : value_of(top) == least);
    }
    ok_named(whole, "the heap is one after each of 60000 steps");
    ok_named(first, "the first is before all others");
    ok_named(has, "a node knows whether it is in");

    int last = -1;
    bool sorted = true;
    for (struct heap_node *n; (n = heap_first(&h)) != NULL; heap_remove(&h, n)) {
        sorted = sorted && value_of(n) >= last;
        last = value_of(n);
    }
    ok_named(sorted, "what is taken from the top comes out sorted");
    is_number(h.count, 0, "and it is empty at last");
}

TEST(edges)
{
    struct heap h;
    struct item one = {.value = 1}, two = {.value = 2};
    heap_init(&h, is_before);
    ok(heap_first(&h) == NULL);
    ok(!heap_has(&one.node));
    heap_free(&h);

    heap_add(&h, &two.node);
    heap_add(&h, &one.node);
    ok(heap_first(&h) == &one.node);
    heap_remove(&h, &two.node);
    ok(heap_first(&h) == &one.node);
    heap_remove(&h, &one.node);
    ok(heap_first(&h) == NULL);
    heap_free(&h);
    ok(h.nodes == NULL && h.count == 0);
}
