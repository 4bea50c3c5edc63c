/* Encodes content as quoted-printable, readable where possible and safe in any transport,
 * and as base64 in lines. */
#include "mime/parts/encode.h"

#include "base/crypto/base64.h"

#include <assert.h>
#include <string.h>

/* --- Quoted-printable ------------------------------------------------------------- */

/* A byte can be written only when the next one is known: a CR may begin a line end, and
 * white space at the end of a line must be encoded (RFC 2045 §6.7 (3)). So one byte is
 * held. */

/* Space for "=" at the end of a line. */
enum { TEXT_MAX = ENCODE_QUOTED_LINE_MAX - 1 };

static void
quoted_flush(struct encode_quoted *q)
{
    if (q->used > 0)
        q->write(q->context, text_of(q->chunk, q->used));
    q->used = 0;
}

static void
quoted_put(struct encode_quoted *q, const char *at, size_t length)
{
    if (length > ENCODE_QUOTED_CHUNK - q->used)
        quoted_flush(q);
    memcpy(q->chunk + q->used, at, length);
    q->used += length;
}

/* The byte held at the end is encoded: nobody knows which bytes will follow. */
static void
quoted_end_line(struct encode_quoted *q, struct text end)
{
    quoted_put(q, end.at, end.length);
    q->column = q->from = 0;
    q->dash = false;
}

static bool
quoted_is_plain(char c)
{
    return (c >= ' ' && c <= '~' && c != '=') || c == '\t';
}

/* True if some software would give c a meaning at this place of the line. A '.' alone
 * ends DATA if a hop forgets to stuff dots; mailbox files put '>' before "From "; and
 * "--" may begin a delimiter. */
static bool
is_risky(const struct encode_quoted *q, char c)
{
    return (q->column == 0 && c == '.') || (q->dash && c == '-') ||
           (q->from == 4 && q->column == 4 && c == ' ');
}

static void
put_byte(struct encode_quoted *q, char c, bool encode)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t length = encode || is_risky(q, c) ? 3 : 1;
    if (q->column + length > TEXT_MAX) {
        quoted_end_line(q, TEXT("=\r\n"));
        /* The byte is at the start of a line now, where it may be risky. */
        length = encode || is_risky(q, c) ? 3 : 1;
    }
    const char coded[3] = {'=', hex[(unsigned char)c >> 4], hex[c & 15]};
    quoted_put(q, length == 1 ? &c : coded, length);
    if (length == 1 && q->column == q->from && q->from < 4 && c == "From"[q->from])
        q->from++;
    q->dash = q->column == 0 && c == '-' && length == 1;
    q->column += length;
    assert(q->column <= TEXT_MAX);
}

static bool
quoted_is_visible(char c)
{
    return quoted_is_plain(c) && c != ' ' && c != '\t';
}

/* Adds the run of bytes at the front that need no encoding and fit into the line. Most
 * bytes pass here, in one memcpy(). A space in the run has visible text behind it, so
 * it cannot end the line. */
static size_t
quoted_put_run(struct encode_quoted *q, struct text bytes)
{
    size_t run = 0;
    if (q->column < 5) /* encoding may be needed here */
        return 0;
    size_t most = TEXT_MAX - q->column;
    while (run < bytes.length && run < most &&
           (quoted_is_visible(bytes.at[run]) ||
            (bytes.at[run] == ' ' && run + 1 < bytes.length &&
             quoted_is_visible(bytes.at[run + 1]))))
        run++;
    quoted_put(q, bytes.at, run);
    q->column += run;
    return run;
}

void
encode_quoted_start(struct encode_quoted *q,
                    void (*write)(void *context, struct text bytes), void *context)
{
    q->write = write;
    q->context = context;
    q->held = 0;
    q->column = q->used = q->from = 0;
    q->dash = false;
}

static void
add_byte(struct encode_quoted *q, char c)
{
    char held = q->held;
    q->held = 0;
    if (held == '\r' && c == '\n') {
        quoted_end_line(q, TEXT("\r\n"));
        return;
    }
    if (held != 0)
        put_byte(q, held, held == '\r');
    if (c == '\r' || c == ' ' || c == '\t')
        q->held = c;
    else
        put_byte(q, c, !quoted_is_plain(c));
}

void
encode_quoted_add(struct encode_quoted *q, struct text bytes)
{
    for (size_t at = 0; at < bytes.length;) {
        char c = bytes.at[at];
        if (q->held == 0) {
            size_t run = quoted_put_run(q, text_after(bytes, at));
            if (run > 0) {
                at += run;
                continue;
            }
        } else if (q->held != '\r' && c == '\r') {
            /* White space before a possible line end: encoded in any case. */
            put_byte(q, q->held, true);
            q->held = 0;
        }
        add_byte(q, c);
        at++;
    }
}

size_t
encode_quoted_end(struct encode_quoted *q)
{
    if (q->held != 0)
        put_byte(q, q->held, true);
    q->held = 0;
    quoted_flush(q);
    return q->column;
}

uint64_t
encode_quoted_size_max(uint64_t bytes, uint64_t special, uint64_t lines)
{
    /* Two bytes of a line, at its start and end, can be encoded without being special.
     */
    uint64_t text = bytes + 2 * special + 4 * (lines + 2);
    /* A soft line break comes after at least 73 bytes, also with an encoded byte at
     * the start. */
    return text + (text / 70 + 1) * 5;
}

/* --- Base64 in lines -------------------------------------------------------------- */

enum { COLUMNS = BASE64_LENGTH(ENCODE_BASE64_LINE_BYTES) };

static void
encode_base64_flush(struct encode_base64 *b)
{
    if (b->out.length > 0)
        b->write(b->context, buffer_text(&b->out));
    b->out.length = 0;
}

/* bytes: those of a whole line, except for the last one. The line end is written before
 * a line, because the last line has none: the line end behind it belongs to the
 * delimiter. */
static void
put_line(struct encode_base64 *b, struct text bytes)
{
    assert(bytes.length > 0 && bytes.length <= ENCODE_BASE64_LINE_BYTES);
    if (b->out.length + COLUMNS + 3 >
        ENCODE_BASE64_CHUNK) /* mbedTLS needs space for a NUL */
        encode_base64_flush(b);
    bool good = (!b->begun || buffer_add(&b->out, TEXT("\r\n"))) &&
                base64_encode(bytes, &b->out);
    assert(good);
    b->begun = true;
}

void
encode_base64_start(struct encode_base64 *b,
                    void (*write)(void *context, struct text bytes), void *context)
{
    b->write = write;
    b->context = context;
    b->begun = false;
    b->held_length = 0;
    buffer_init(&b->out, ENCODE_BASE64_CHUNK);
}

/* Bytes are held only until they make a whole line: a short line within the output
 * would end with padding, and base64 behind padding is invalid. */
void
encode_base64_add(struct encode_base64 *b, struct text bytes)
{
    while (bytes.length > 0) {
        if (b->held_length == 0 && bytes.length >= ENCODE_BASE64_LINE_BYTES) {
            put_line(b, text_before(bytes, ENCODE_BASE64_LINE_BYTES));
            bytes = text_after(bytes, ENCODE_BASE64_LINE_BYTES);
            continue;
        }
        struct text part =
            text_before(bytes, ENCODE_BASE64_LINE_BYTES - b->held_length);
        memcpy(b->held + b->held_length, part.at, part.length);
        b->held_length += part.length;
        bytes = text_after(bytes, part.length);
        if (b->held_length == ENCODE_BASE64_LINE_BYTES) {
            put_line(b, text_of(b->held, b->held_length));
            b->held_length = 0;
        }
    }
}

void
encode_base64_end(struct encode_base64 *b)
{
    if (b->held_length > 0)
        put_line(b, text_of(b->held, b->held_length));
    encode_base64_flush(b);
    encode_base64_free(b);
}

void
encode_base64_free(struct encode_base64 *b)
{
    b->held_length = 0;
    buffer_free(&b->out);
}

uint64_t
encode_base64_size(uint64_t bytes)
{
    uint64_t lines = (bytes + ENCODE_BASE64_LINE_BYTES - 1) / ENCODE_BASE64_LINE_BYTES;
    return BASE64_LENGTH(bytes) + (lines > 0 ? 2 * (lines - 1) : 0);
}
