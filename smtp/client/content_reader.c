/* Reads the content of a message from the queue, and checks it.
 *
 * A file may be damaged on disk. Its checksum is known only at the end, when most of it
 * is sent already: the caller completes the message only after PROGRESS_DONE. */
#include "smtp/client/content_reader.h"

#include "base/crc.h"

#include <assert.h>
#include <string.h>

bool
content_reader_open(struct content_reader *c, struct queue *queue,
                    const struct envelope *e, const struct outgoing *outgoing,
                    const char **why)
{
    assert(!c->open);
    c->queue = queue;
    c->envelope = e;
    c->outgoing = outgoing;
    c->handle = outgoing != NULL && outgoing->error != 0 ? outgoing->error
                                                         : queue_content_open(queue, e);
    c->open = c->handle >= 0;
    c->prefix_read = 0;
    c->offset = 0;
    c->crc = 0;
    if (!c->open)
        *why = strerror(-c->handle);
    return c->open;
}

static bool
is_intact(const struct content_reader *c)
{
    return c->offset == c->envelope->content_size && c->crc == c->envelope->content_crc;
}

/* Replaced bytes are read nevertheless: the checksum is that of all. */
static struct text
content_reader_take(struct content_reader *c, int64_t got)
{
    struct text piece = text_of(c->piece, got > 0 ? (size_t)got : 0);
    int64_t skip = c->outgoing != NULL ? c->outgoing->skip - c->offset : 0;
    c->crc = crc_add(c->crc, piece.at, piece.length);
    c->offset += (int64_t)piece.length;
    return skip > 0 ? text_after(piece, (size_t)skip) : piece;
}

enum progress
content_reader_read(struct content_reader *c, struct text *piece, const char **why)
{
    assert(c->open);
    struct text prefix =
        c->outgoing != NULL ? buffer_text(&c->outgoing->header) : c->envelope->prefix;
    prefix = text_after(prefix, c->prefix_read);
    if (prefix.length > 0) {
        *piece = text_before(prefix, CONTENT_READER_PIECE);
        c->prefix_read += piece->length;
        return PROGRESS_MORE;
    }
    int64_t got;
    do {
        got = queue_content_read(c->queue, c->handle, c->offset, c->piece,
                                 sizeof(c->piece));
        *piece = content_reader_take(c, got);
    } while (got > 0 && piece->length == 0);
    if (got > 0)
        return PROGRESS_MORE;
    if (got == 0 && is_intact(c))
        return PROGRESS_DONE;
    *why = got < 0 ? strerror((int)-got) : "it differs from the stored content";
    return PROGRESS_BAD;
}

void
content_reader_close(struct content_reader *c)
{
    if (c->open)
        queue_content_close(c->queue, c->handle);
    c->open = false;
}
