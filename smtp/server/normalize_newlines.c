/* Converts bare LF to CRLF: in a whole stream, or in content alone.
 *
 * Content is not copied: slices of the input go to smtp/dot.h as they are, and
 * constants (`more`) take the place of a bare LF and of a dot after it. So the strict
 * decoder, to which CRLF alone is a line end, decides for all clients where content
 * ends. */
#include "smtp/server/normalize_newlines.h"

#include <assert.h>

/* --- A stream --------------------------------------------------------------------- */

void
normalize_stream(struct newlines_stream *n, struct text bytes, struct buffer *out)
{
    while (bytes.length > 0) {
        size_t at = text_find(bytes, '\n');
        struct text line = text_before(bytes, at == TEXT_NONE ? bytes.length : at);
        /* The CR of this LF may have been the last byte of the previous read. */
        if (line.length > 0)
            n->after_cr = line.at[line.length - 1] == '\r';
        bool fits = buffer_add(out, line);
        if (at != TEXT_NONE) {
            if (n->rule == NEWLINES_FIRST)
                n->rule = n->after_cr ? NEWLINES_CRLF : NEWLINES_LF;
            bool bare = n->rule == NEWLINES_LF && !n->after_cr;
            fits = fits && buffer_add(out, bare ? TEXT("\r\n") : TEXT("\n"));
            n->after_cr = false;
        }
        assert(fits);
        bytes = text_after(bytes, at == TEXT_NONE ? bytes.length : at + 1);
    }
}

/* --- Content ---------------------------------------------------------------------- */

enum { LINE_EMPTY, LINE_DOT, LINE_LONGER };

void
normalize_content_start(struct newlines_content *n, bool repairs)
{
    *n = (struct newlines_content){.repairs = repairs, .line = LINE_EMPTY};
}

/* Notes bytes that were passed on unchanged. A line is compared with "." only as far as
 * it matters: a bare LF after it decides whether the decoder has dropped that dot. */
static void
normalize_newlines_note_bytes(struct newlines_content *n, struct text t)
{
    if (t.length == 0)
        return;
    size_t at = text_find_last(t, '\n');
    struct text line = at == TEXT_NONE ? t : text_after(t, at + 1);
    if (at != TEXT_NONE)
        n->line = LINE_EMPTY;
    if (line.length > 0)
        n->line = n->line == LINE_EMPTY && text_equal(line, TEXT(".")) ? LINE_DOT
                                                                       : LINE_LONGER;
    n->after_cr = t.at[t.length - 1] == '\r';
    n->after_lf = false;
}

/* The number of bytes before the first bare LF; the first clean bytes have none. */
static size_t
before_bare(const struct newlines_content *n, struct text t, size_t clean)
{
    for (size_t from = clean; from < t.length;) {
        size_t at = text_find(text_after(t, from), '\n');
        if (at == TEXT_NONE)
            break;
        at += from;
        if (at > 0 ? t.at[at - 1] != '\r' : !n->after_cr)
            return at;
        from = at + 1;
    }
    return t.length;
}

/* next follows a dot after a bare LF. A dot alone in its line is content, because its
 * line ends with LF or began after one; any other dot is the sender's dot-stuffing. */
static void
let_dot_go(struct newlines_content *n, char next)
{
    bool alone = next == '\r' || next == '\n';
    n->held = false;
    n->more = alone ? TEXT("..") : TEXT(".");
    n->line = LINE_LONGER;
}

/* A bare LF ends the line. The decoder has dropped a dot that is alone in its line. */
static void
normalize_newlines_end_line(struct newlines_content *n)
{
    n->more = n->line == LINE_DOT ? TEXT(".\r\n") : TEXT("\r\n");
    n->line = LINE_EMPTY;
    n->after_cr = false;
    n->after_lf = true;
}

/* Converts the bytes at the front that are not passed on unchanged. A dot after a bare
 * LF is held back: the byte after it decides whether it is content. */
static void
look_at_front(struct newlines_content *n, struct text *input)
{
    if (input->length > 0 && n->after_lf && !n->held && input->at[0] == '.') {
        n->held = true;
        n->after_lf = false;
        *input = text_after(*input, 1);
    }
    if (input->length == 0)
        return;
    if (n->held) {
        let_dot_go(n, input->at[0]);
    } else if (input->at[0] == '\n' && !n->after_cr) {
        normalize_newlines_end_line(n);
        *input = text_after(*input, 1);
    }
}

enum progress
normalize_data(struct newlines_content *n, struct dot_decoder *d, struct text *input,
               struct text *content)
{
    if (!n->repairs)
        return dot_decode(d, input, content);
    if (n->more.length == 0)
        look_at_front(n, input);
    /* The output that replaces input comes before the rest of the input. */
    if (n->more.length > 0)
        return dot_decode(d, &n->more, content);
    struct text piece = text_before(*input, before_bare(n, *input, n->clean));
    struct text rest = piece;
    enum progress progress = dot_decode(d, &rest, content);
    size_t taken = piece.length - rest.length;
    /* The decoder takes a piece in slices: the rest is not searched again for each. */
    n->clean = rest.length;
    normalize_newlines_note_bytes(n, text_before(piece, taken));
    *input = text_after(*input, taken);
    return progress;
}

/* The input may end with a bare LF: its CRLF is then left without input. */
bool
normalize_has_more(const struct newlines_content *n)
{
    return n->more.length > 0;
}

bool
normalize_chunk(struct newlines_content *n, struct dot_checker *c, struct text *chunk,
                struct text *content)
{
    size_t size = n->repairs ? before_bare(n, *chunk, 0) : chunk->length;
    *content = text_before(*chunk, size);
    if (size == 0 && chunk->length > 0) {
        *content = TEXT("\r\n");
        size = 1; /* the client has counted one byte */
    }
    n->after_cr = size > 0 && chunk->at[size - 1] == '\r';
    *chunk = text_after(*chunk, size);
    return dot_check(c, *content);
}
