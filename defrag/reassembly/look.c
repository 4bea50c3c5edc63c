/* Reads the header of a message, and the digest of a fragment's body. */
#include "defrag/reassembly/look.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { PIECE = 64 * 1024 };

void
look_end(struct look *l)
{
    if (l->content >= 0)
        queue_content_close(l->queue, l->content);
    l->content = -1;
    tag_end(&l->tag, NULL);
}

/* False: the disk did not answer. */
static bool
look_read_header(struct look *l, const struct fragment_envelope *envelope)
{
    struct text bytes = queue_content_bytes(l->queue, l->content);
    if (bytes.at != NULL) {
        fragment_read(bytes, envelope, &l->reading);
        return true;
    }
    size_t size = l->size < FRAGMENT_HEADER_MAX ? (size_t)l->size : FRAGMENT_HEADER_MAX;
    char *start = memory_array(size + 1, 1);
    int64_t got = queue_content_read(l->queue, l->content, 0, start, size);
    if (got >= 0)
        fragment_read(text_of(start, (size_t)got), envelope, &l->reading);
    free(start);
    return got >= 0;
}

/* The next bytes of the body. < 0: the disk did not answer, 0: there are no more. */
static int64_t
add_piece(struct look *l, size_t budget)
{
    char piece[PIECE];
    struct text bytes = queue_content_bytes(l->queue, l->content);
    if (bytes.at != NULL) {
        bytes = text_before(text_after(bytes, (size_t)l->at), budget);
        tag_add(l->tag, bytes);
        return (int64_t)bytes.length;
    }
    size_t size = budget < sizeof(piece) ? budget : sizeof(piece);
    int64_t got = queue_content_read(l->queue, l->content, l->at, piece, size);
    if (got > 0)
        tag_add(l->tag, text_of(piece, (size_t)got));
    return got;
}

enum look_result
look_go(struct look *l, size_t budget)
{
    assert(l->content >= 0 && l->tag != NULL && budget > 0);
    while (l->at < l->size && budget > 0) {
        int64_t got = add_piece(l, budget);
        if (got <= 0) {
            look_end(l);
            return LOOK_FAILED;
        }
        l->at += got;
        budget -= (size_t)got;
    }
    if (l->at < l->size)
        return LOOK_MORE;
    tag_end(&l->tag, l->digest);
    look_end(l);
    return LOOK_DONE;
}

enum look_result
look_start(struct look *l, const struct look_setup *setup, const struct envelope *e,
           size_t budget)
{
    struct fragment_envelope envelope = {
        .sender = e->sender, .binary = e->binary, .parts_max = setup->parts_max};
    *l = (struct look){.queue = setup->queue, .size = e->content_size};
    l->content = queue_content_open(l->queue, e);
    if (l->content < 0 || !look_read_header(l, &envelope)) {
        look_end(l);
        return LOOK_FAILED;
    }
    if (l->reading.kind != FRAGMENT_GOOD) {
        look_end(l);
        return LOOK_NONE;
    }
    l->at = (int64_t)l->reading.body;
    l->body_size = l->size - l->at;
    l->tag = tag_new(&setup->key);
    return look_go(l, budget);
}
