/* An arena: memory that is freed as a whole, such as that of a transaction. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/text.h"

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks;
    size_t used, limit;
};

/* limit: the number of bytes that may be handed out; beyond it arena_get() returns
 * NULL. */
void arena_init(struct arena *a, size_t limit);
/* size bytes, zeroed, aligned for any type; NULL when the limit is reached. */
void *arena_get(struct arena *a, size_t size);
/* A copy with a NUL behind it (not counted in length); at == NULL at the limit. */
struct text arena_copy(struct arena *a, struct text t);
void arena_free(struct arena *a); /* may be used again */

#endif
