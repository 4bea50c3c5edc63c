/* Quoted-printable: readable where possible, and safe in any transport.
 *
 * A byte can be written only when the next one is known: a CR may begin a line end, and
 * white space at the end of a line must be encoded (RFC 2045 §6.7 (3)). So one byte is
 * held. */
#include "mime/parts/quoted.h"

#include <assert.h>
#include <string.h>

/* Space for "=" at the end of a line. */
enum { TEXT_MAX = QUOTED_LINE_MAX - 1 };

static void
quoted_flush(struct quoted *q)
{
    if (q->used > 0)
        q->write(q->context, text_of(q->chunk, q->used));
    q->used = 0;
}

static void
quoted_put(struct quoted *q, const char *at, size_t length)
{
    if (length > QUOTED_CHUNK - q->used)
        quoted_flush(q);
    memcpy(q->chunk + q->used, at, length);
    q->used += length;
}

/* The byte held at the end is encoded: nobody knows which bytes will follow. */
static void
quoted_end_line(struct quoted *q, struct text end)
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
is_risky(const struct quoted *q, char c)
{
    return (q->column == 0 && c == '.') || (q->dash && c == '-') ||
           (q->from == 4 && q->column == 4 && c == ' ');
}

static void
put_byte(struct quoted *q, char c, bool encode)
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
quoted_put_run(struct quoted *q, struct text bytes)
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
quoted_start(struct quoted *q, void (*write)(void *context, struct text bytes),
             void *context)
{
    q->write = write;
    q->context = context;
    q->held = 0;
    q->column = q->used = q->from = 0;
    q->dash = false;
}

static void
add_byte(struct quoted *q, char c)
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
quoted_add(struct quoted *q, struct text bytes)
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
quoted_end(struct quoted *q)
{
    if (q->held != 0)
        put_byte(q, q->held, true);
    q->held = 0;
    quoted_flush(q);
    return q->column;
}

uint64_t
quoted_size_max(uint64_t bytes, uint64_t special, uint64_t lines)
{
    /* Two bytes of a line, at its start and end, can be encoded without being special.
     */
    uint64_t text = bytes + 2 * special + 4 * (lines + 2);
    /* A soft line break comes after at least 73 bytes, also with an encoded byte at
     * the start. */
    return text + (text / 70 + 1) * 5;
}
