/* An arena: chunks that are filled in order and freed together. */
#include "base/arena.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { CHUNK_MIN = 256, CHUNK_MAX = 64 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t filled, size;
    _Alignas(max_align_t) char bytes[];
};

static size_t
round_up(size_t size)
{
    size_t unit = _Alignof(max_align_t);
    return (size + unit - 1) / unit * unit;
}

/* Chunks grow with the arena: a small transaction stays small, a large one has few
 * chunks. */
static struct arena_chunk *
chunk_new(const struct arena *a, size_t need)
{
    size_t size = a->used > CHUNK_MIN ? a->used : CHUNK_MIN;
    if (size > CHUNK_MAX)
        size = CHUNK_MAX;
    size = round_up(need > size ? need : size);
    struct arena_chunk *chunk = memory_new(sizeof(*chunk) + size);
    chunk->size = size;
    return chunk;
}

void
arena_init(struct arena *a, size_t limit)
{
    assert(limit < SIZE_MAX / 2);
    *a = (struct arena){.limit = limit};
}

void *
arena_get(struct arena *a, size_t size)
{
    assert(a->used <= a->limit);
    size_t left = a->limit - a->used;
    if (size == 0)
        size = 1; /* empty requests must not be unlimited either */
    if (size > left)
        return NULL;
    size_t whole = round_up(size);
    struct arena_chunk *chunk = a->chunks;
    if (chunk == NULL || chunk->size - chunk->filled < whole) {
        chunk = chunk_new(a, whole);
        chunk->next = a->chunks;
        a->chunks = chunk;
    }
    char *at = chunk->bytes + chunk->filled;
    chunk->filled += whole;
    /* Rounding up may exceed the limit by less than one unit. */
    a->used += whole < left ? whole : left;
    return at;
}

struct text
arena_copy(struct arena *a, struct text t)
{
    char *at = t.length < a->limit ? arena_get(a, t.length + 1) : NULL;
    if (at == NULL)
        return text_of(NULL, 0);
    bool whole = text_copy(at, t.length + 1, t);
    assert(whole);
    return text_of(at, t.length);
}

void
arena_free(struct arena *a)
{
    while (a->chunks != NULL) {
        struct arena_chunk *next = a->chunks->next;
        free(a->chunks);
        a->chunks = next;
    }
    arena_init(a, a->limit);
}
