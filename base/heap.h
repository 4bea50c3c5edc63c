/* A binary heap of nodes embedded in their owners: timers and due times. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    size_t place; /* 1-based; 0 = in no heap. Zero the struct before first use. */
};

/* A node with a time, for heaps by heap_due_before(). */
struct heap_due {
    struct heap_node node;
    int64_t due_ms;
};

struct heap {
    struct heap_node **nodes;
    size_t count, capacity;
    bool (*before)(const struct heap_node *a, const struct heap_node *b);
};

void heap_init(struct heap *h,
               bool (*before)(const struct heap_node *, const struct heap_node *));
/* For heap_init(): the earliest time of struct heap_due first. */
bool heap_due_before(const struct heap_node *a, const struct heap_node *b);
void heap_free(struct heap *h); /* the nodes are the owners' */
void heap_add(struct heap *h, struct heap_node *n);
void heap_remove(struct heap *h, struct heap_node *n);
/* The node before all others, or NULL. */
struct heap_node *heap_first(const struct heap *h);
bool heap_has(const struct heap_node *n);

#endif
