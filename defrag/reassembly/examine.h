/* Examines a message of the queue: whether it is a fragment, and the digest of its body.
 * The header is read in one piece, the body in several turns. */
#ifndef DEFRAG_REASSEMBLY_EXAMINE_H
#define DEFRAG_REASSEMBLY_EXAMINE_H

#include "base/crypto/tag.h"
#include "defrag/reassembly/fragment.h"
#include "queue/queue.h"

struct examine {
    struct fragment_reading reading;
    unsigned char digest[TAG_SIZE]; /* DONE: of the body */
    int64_t body_size;
    /* examine.c's own: */
    struct queue *queue;
    int content; /* handle; < 0: none */
    int64_t at, size;
    struct tag *tag;
};

enum examine_result {
    EXAMINE_NONE, /* not a fragment, see reading.kind and reading.why */
    EXAMINE_MORE, /* examine_go() */
    EXAMINE_DONE,
    EXAMINE_FAILED /* the content cannot be read */
};

/* Values that all messages share; borrowed for the call. */
struct examine_setup {
    struct queue *queue;
    struct tag_key key;
    uint32_t parts_max;
};

/* Both read at most `budget` bytes. examine_end() is needed after MORE, and harmless
 * after the others. */
enum examine_result examine_start(struct examine *l, const struct examine_setup *setup,
                                  const struct envelope *e, size_t budget);
enum examine_result examine_go(struct examine *l, size_t budget);
void examine_end(struct examine *l);

#endif
