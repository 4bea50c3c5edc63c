/* Looks into a message of the queue: is it a fragment, and what is the digest of its
 * body? The header at once, the body in pieces. */
#ifndef DEFRAG_LOOK_H
#define DEFRAG_LOOK_H

#include "base/tag.h"
#include "defrag/reassembly/fragment.h"
#include "queue/queue.h"

struct look {
    struct fragment_reading reading;
    unsigned char digest[TAG_SIZE]; /* DONE: of the body */
    int64_t body_size;
    /* look.c's own: */
    struct queue *queue;
    int content; /* handle; < 0: none */
    int64_t at, size;
    struct tag *tag;
};

enum look_result {
    LOOK_NONE, /* no fragment: reading.kind and reading.why tell more */
    LOOK_MORE, /* look_go() */
    LOOK_DONE,
    LOOK_FAILED /* the disk did not answer */
};

/* What all looks have in common; borrowed for the call. */
struct look_setup {
    struct queue *queue;
    struct tag_key key;
    uint32_t parts_max;
};

/* A fragment of which at most `budget` bytes are read now. After MORE alone look_end()
 * is needed, and harmless after all others. */
enum look_result look_start(struct look *l, const struct look_setup *setup,
                            const struct envelope *e, size_t budget);
enum look_result look_go(struct look *l, size_t budget);
void look_end(struct look *l);

#endif
