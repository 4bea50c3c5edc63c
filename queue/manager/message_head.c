/* Reads a message up to the end of its header; writes the header for a mailbox. */
#include "queue/manager/message_head.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

enum { HEAD_PIECE = 16 * 1024 };

static bool
message_head_add(struct message_head *h, struct text bytes)
{
    header_scan_add(&h->scan, bytes);
    return buffer_add(&h->bytes, bytes);
}

bool
message_head_read(struct message_head *h, struct queue *queue, int content,
                  const struct envelope *e)
{
    char *piece = memory_new(HEAD_PIECE);
    int64_t at = 0, got = content < 0 ? content : 1;
    buffer_init(&h->bytes, MESSAGE_HEAD_MAX + HEAD_PIECE);
    header_scan_start(&h->scan);
    bool good = got > 0 && message_head_add(h, e->prefix);
    while (good && !h->scan.ended && got > 0) {
        got = queue_content_read(queue, content, at, piece, HEAD_PIECE);
        good =
            got >= 0 && message_head_add(h, text_of(piece, got > 0 ? (size_t)got : 0));
        at += got;
    }
    h->error = got < 0 ? (int)got : 0;
    free(piece);
    return good && h->scan.length <= MESSAGE_HEAD_MAX;
}

void
message_head_free(struct message_head *h)
{
    buffer_free(&h->bytes);
}

/* At the end of a message without a body, the line that is no field is body. */
static bool
message_head_write(struct text header, bool ours, bool unseparated, struct buffer *out)
{
    struct header_field f;
    bool good = true;
    while (header_next(&header, &f))
        if (!text_equal_nocase(f.name, TEXT("Return-Path")))
            good = good && buffer_add(out, f.whole);
    if (ours && (unseparated || header.length > 0))
        good = good && buffer_add(out, TEXT("\r\n"));
    return good && buffer_add(out, header);
}

int64_t
message_head_for_mailbox(struct queue *queue, int content, const struct envelope *e,
                         struct buffer *out)
{
    struct message_head h;
    size_t before = out->length;
    bool good = message_head_read(&h, queue, content, e);
    struct text all = buffer_text(&h.bytes);
    /* One that ends within the prefix: the message came without a header. */
    size_t length = h.scan.ended ? h.scan.length : all.length;
    good =
        good && length >= e->prefix.length && length <= MESSAGE_HEAD_MAX &&
        message_head_write(text_before(all, length), e->ours, h.scan.unseparated, out);
    message_head_free(&h);
    if (good)
        return (int64_t)(length - e->prefix.length);
    if (h.error != 0)
        return h.error;
    out->length = before;
    return buffer_add(out, e->prefix) ? 0 : -EMSGSIZE;
}
