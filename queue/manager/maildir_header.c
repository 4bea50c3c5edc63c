/* Reads the header of a message, prefix and content, and writes the one that is kept. */
#include "queue/manager/maildir_header.h"

#include "base/memory.h"
#include "mime/header.h"

#include <stdlib.h>

enum { PIECE = 16 * 1024 };

/* False: it is too long, or cannot be read; the reader of the content will say so. */
static bool
maildir_read_header(struct queue *queue, int content, const struct envelope *e,
                    struct buffer *head, struct header_scan *scan)
{
    char *piece = memory_new(PIECE);
    int64_t at = 0, got = 1;
    bool good = buffer_add(head, e->prefix);
    header_scan_add(scan, e->prefix);
    while (good && !scan->ended && got > 0) {
        got = queue_content_read(queue, content, at, piece, PIECE);
        struct text bytes = text_of(piece, got > 0 ? (size_t)got : 0);
        header_scan_add(scan, bytes);
        good = got >= 0 && buffer_add(head, bytes);
        at += got;
    }
    free(piece);
    return good;
}

/* At the end of a message without a body, the line that is no field is body. */
static bool
maildir_write_fields(struct text header, bool ours, bool unseparated,
                     struct buffer *out)
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
maildir_header(struct queue *queue, int content, const struct envelope *e,
               struct buffer *out)
{
    struct buffer head;
    struct header_scan scan;
    buffer_init(&head, MAILDIR_HEADER_MAX + PIECE);
    header_scan_start(&scan);
    bool good = maildir_read_header(queue, content, e, &head, &scan);
    struct text all = buffer_text(&head);
    /* One that ends within the prefix: the message came without a header. */
    size_t length = scan.ended ? scan.length : all.length;
    good =
        good && length >= e->prefix.length && length <= MAILDIR_HEADER_MAX &&
        maildir_write_fields(text_before(all, length), e->ours, scan.unseparated, out);
    buffer_free(&head);
    return good ? (int64_t)(length - e->prefix.length) : -1;
}
