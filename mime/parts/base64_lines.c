/* Base64 in lines, as mail requires. */
#include "mime/parts/base64_lines.h"

#include "base/crypto/base64.h"

#include <assert.h>
#include <string.h>

enum { COLUMNS = BASE64_LENGTH(BASE64_LINE_BYTES) };

static void
base64_lines_flush(struct base64_lines *b)
{
    if (b->out.length > 0)
        b->write(b->context, buffer_text(&b->out));
    b->out.length = 0;
}

/* bytes: those of a whole line, except for the last one. The line end is written before
 * a line, because the last line has none: the line end behind it belongs to the
 * delimiter. */
static void
put_line(struct base64_lines *b, struct text bytes)
{
    assert(bytes.length > 0 && bytes.length <= BASE64_LINE_BYTES);
    if (b->out.length + COLUMNS + 3 > BASE64_CHUNK) /* mbedTLS needs space for a NUL */
        base64_lines_flush(b);
    bool good = (!b->begun || buffer_add(&b->out, TEXT("\r\n"))) &&
                base64_encode(bytes, &b->out);
    assert(good);
    b->begun = true;
}

void
base64_lines_start(struct base64_lines *b,
                   void (*write)(void *context, struct text bytes), void *context)
{
    b->write = write;
    b->context = context;
    b->begun = false;
    b->held_length = 0;
    buffer_init(&b->out, BASE64_CHUNK);
}

/* Bytes are held only until they make a whole line: a short line within the output
 * would end with padding, and base64 behind padding is invalid. */
void
base64_lines_add(struct base64_lines *b, struct text bytes)
{
    while (bytes.length > 0) {
        if (b->held_length == 0 && bytes.length >= BASE64_LINE_BYTES) {
            put_line(b, text_before(bytes, BASE64_LINE_BYTES));
            bytes = text_after(bytes, BASE64_LINE_BYTES);
            continue;
        }
        struct text part = text_before(bytes, BASE64_LINE_BYTES - b->held_length);
        memcpy(b->held + b->held_length, part.at, part.length);
        b->held_length += part.length;
        bytes = text_after(bytes, part.length);
        if (b->held_length == BASE64_LINE_BYTES) {
            put_line(b, text_of(b->held, b->held_length));
            b->held_length = 0;
        }
    }
}

void
base64_lines_end(struct base64_lines *b)
{
    if (b->held_length > 0)
        put_line(b, text_of(b->held, b->held_length));
    base64_lines_flush(b);
    base64_lines_free(b);
}

void
base64_lines_free(struct base64_lines *b)
{
    b->held_length = 0;
    buffer_free(&b->out);
}

uint64_t
base64_lines_size(uint64_t bytes)
{
    uint64_t lines = (bytes + BASE64_LINE_BYTES - 1) / BASE64_LINE_BYTES;
    return BASE64_LENGTH(bytes) + (lines > 0 ? 2 * (lines - 1) : 0);
}
