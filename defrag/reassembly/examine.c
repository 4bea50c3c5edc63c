/* Reads the header of a message, and the digest of a fragment's body.
 *
 * Most messages are not fragments, so the header decides first, and only fragments are
 * read to their end. The content of a journaled message is in memory, and is used in
 * place (queue_content_bytes()); that of others is read in pieces. */
#include "defrag/reassembly/examine.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum { PIECE = 64 * 1024 };

void
examine_end(struct examine *l)
{
    if (l->content >= 0)
        queue_content_close(l->queue, l->content);
    l->content = -1;
    tag_end(&l->tag, NULL);
}

/* False: the content cannot be read. */
static bool
examine_read_header(struct examine *l, const struct fragment_envelope *envelope)
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

/* The next bytes of the body. < 0: they cannot be read, 0: there are no more. */
static int64_t
add_piece(struct examine *l, size_t budget)
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

enum examine_result
examine_go(struct examine *l, size_t budget)
{
    assert(l->content >= 0 && l->tag != NULL && budget > 0);
    while (l->at < l->size && budget > 0) {
        int64_t got = add_piece(l, budget);
        /* 0, too: the file is shorter than its envelope says. */
        if (got <= 0) {
            examine_end(l);
            return EXAMINE_FAILED;
        }
        l->at += got;
        budget -= (size_t)got;
    }
    if (l->at < l->size)
        return EXAMINE_MORE;
    tag_end(&l->tag, l->digest);
    examine_end(l);
    return EXAMINE_DONE;
}

enum examine_result
examine_start(struct examine *l, const struct examine_setup *setup,
              const struct envelope *e, size_t budget)
{
    struct fragment_envelope envelope = {
        .sender = e->sender, .binary = e->binary, .parts_max = setup->parts_max};
    *l = (struct examine){.queue = setup->queue, .size = e->content_size};
    l->content = queue_content_open(l->queue, e);
    if (l->content < 0 || !examine_read_header(l, &envelope)) {
        examine_end(l);
        return EXAMINE_FAILED;
    }
    if (l->reading.kind != FRAGMENT_GOOD) {
        examine_end(l);
        return EXAMINE_NONE;
    }
    l->at = (int64_t)l->reading.body;
    l->body_size = l->size - l->at;
    l->tag = tag_new(&setup->key);
    return examine_go(l, budget);
}
