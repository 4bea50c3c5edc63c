/* Repairs line ends and NULs: in a whole stream, or in content alone.
 *
 * Content is not copied: slices of the input go to smtp/dot.h as they are, and
 * constants (`more`) take the place of what is repaired. So the strict decoder, to which
 * CRLF alone is a line end, decides for all clients where content ends. */
#include "smtp/server/normalize_newlines.h"

#include "smtp/line.h"

#include <assert.h>

/* --- A stream --------------------------------------------------------------------- */

/* Takes a run, or a byte, off *bytes, by the rule NEWLINES_LF. */
static bool
stream_step(struct newlines_stream *n, struct text *bytes, struct buffer *out)
{
    size_t run = line_run(*bytes);
    char first = bytes->at[0];
    bool fits = true;
    if (first == '\n') {
        fits = buffer_add(out, TEXT("\r\n"));
        n->after_cr = false;
    } else if (first != '\r') {
        run = run > 0 ? run : 1; /* NUL */
        fits = (!n->after_cr || buffer_add_byte(out, '\r')) &&
               buffer_add(out, text_before(*bytes, run));
        n->after_cr = false;
    } else {
        n->after_cr = true;
    }
    *bytes = text_after(*bytes, run > 0 ? run : 1);
    return fits;
}

/* The same by the other two: a line as it is. */
static bool
stream_line(struct newlines_stream *n, struct text *bytes, struct buffer *out)
{
    size_t at = text_find(*bytes, '\n');
    size_t length = at == TEXT_NONE ? bytes->length : at;
    struct text line = text_before(*bytes, length);
    /* The CR of this LF may have been the last byte of the previous read. */
    if (line.length > 0)
        n->after_cr = line.at[line.length - 1] == '\r';
    *bytes = text_after(*bytes, at == TEXT_NONE ? length : at + 1);
    if (at == TEXT_NONE)
        return buffer_add(out, line);
    if (n->rule == NEWLINES_FIRST)
        n->rule = n->after_cr ? NEWLINES_CRLF : NEWLINES_LF;
    bool bare = n->rule == NEWLINES_LF && !n->after_cr;
    n->after_cr = false;
    return buffer_add(out, line) && buffer_add(out, bare ? TEXT("\r\n") : TEXT("\n"));
}

void
normalize_stream(struct newlines_stream *n, struct text bytes, struct buffer *out)
{
    bool fits = true;
    while (bytes.length > 0 && fits)
        fits = n->rule == NEWLINES_LF ? stream_step(n, &bytes, out)
                                      : stream_line(n, &bytes, out);
    assert(fits);
}

/* --- Content ---------------------------------------------------------------------- */

enum { LINE_EMPTY, LINE_DOT, LINE_LONGER };

void
normalize_content_start(struct newlines_content *n, bool repairs)
{
    *n = (struct newlines_content){.repairs = repairs, .line = LINE_EMPTY};
}

/* Notes bytes that were passed on unchanged. A line is compared with "." only as far as
 * it matters: a repair beside it makes it content. */
static void
normalize_newlines_note_bytes(struct newlines_content *n, struct text t)
{
    if (t.length == 0)
        return;
    size_t at = text_find_last(t, '\n');
    struct text line = at == TEXT_NONE ? t : text_after(t, at + 1);
    if (at != TEXT_NONE) {
        n->line = LINE_EMPTY;
        n->tainted = false;
    }
    if (line.length > 0)
        n->line = n->line == LINE_EMPTY && text_equal(line, TEXT(".")) ? LINE_DOT
                                                                       : LINE_LONGER;
}

/* The number of bytes at the front that stand for themselves; the first clean ones do. */
static size_t
normalize_newlines_run(struct text t, size_t clean)
{
    size_t at = clean;
    for (;;) {
        at += line_run(text_after(t, at));
        if (at + 1 >= t.length || t.at[at] != '\r' || t.at[at + 1] != '\n')
            return at;
        at += 2;
    }
}

/* The same, and few enough to see each dot at the start of a line behind a repair. */
static size_t
run_to_pass(const struct newlines_content *n, struct text t)
{
    if (!n->tainted || n->line == LINE_LONGER)
        return normalize_newlines_run(t, n->clean);
    return t.at[0] == '\r' ? 2 : 1;
}

/* A line ends, by CRLF or by what stands for it. The decoder has dropped a dot that is
 * alone in its line: unless nothing was repaired there, it is content. */
static void
normalize_newlines_end_line(struct newlines_content *n, bool repaired)
{
    bool is_content = n->line == LINE_DOT && (repaired || n->tainted);
    n->more = is_content ? TEXT(".\r\n") : TEXT("\r\n");
    n->line = LINE_EMPTY;
    n->tainted = repaired;
    n->held = n->several = false;
}

/* A CR is held back, and the next byte says what it is. Returns how many bytes are read. */
static size_t
settle_cr(struct newlines_content *n, char next)
{
    if (next == '\r') {
        n->several = n->had_cr = true;
        return 1;
    }
    n->had_cr = n->had_cr || next != '\n';
    normalize_newlines_end_line(n, n->several || next != '\n');
    return next == '\n' ? 1 : 0;
}

/* Takes bytes off the front that are not passed on as they are, up to the first that
 * makes output: then `more` has it. */
static void
look_at_front(struct newlines_content *n, struct text *input)
{
    while (input->length > 0 && n->more.length == 0) {
        char c = input->at[0];
        bool is_crlf = text_starts(*input, TEXT("\r\n"));
        size_t read = 1;
        if (n->held)
            read = settle_cr(n, c);
        else if (c == '\0')
            n->tainted = n->had_nul = true;
        else if (c == '\n')
            normalize_newlines_end_line(n, true);
        else if (c == '\r' && (!is_crlf || (n->line == LINE_DOT && n->tainted)))
            n->held = true;
        else
            return;
        *input = text_after(*input, read);
    }
}

enum progress
normalize_data(struct newlines_content *n, struct dot_decoder *d, struct text *input,
               struct text *content)
{
    if (!n->repairs)
        return dot_decode(d, input, content);
    if (n->more.length == 0 && n->clean == 0)
        look_at_front(n, input);
    /* The output that replaces input comes before the rest of the input. */
    if (n->more.length > 0)
        return dot_decode(d, &n->more, content);
    struct text none = text_before(*input, 0);
    struct text piece =
        input->length > 0 ? text_before(*input, run_to_pass(n, *input)) : none;
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

/* Takes one byte that is not passed on as it is off *chunk; *content takes its place. */
static void
normalize_newlines_odd(struct newlines_content *n, struct text *chunk,
                       struct text *content)
{
    char c = chunk->at[0];
    size_t read = 1; /* the client has counted one byte */
    if (n->held) {
        read = settle_cr(n, c);
    } else if (c == '\n') {
        n->more = TEXT("\r\n");
    } else {
        n->held = c == '\r';
        n->had_nul = n->had_nul || c == '\0';
    }
    *content = n->more;
    n->more = TEXT("");
    *chunk = text_after(*chunk, read);
}

bool
normalize_chunk(struct newlines_content *n, struct dot_checker *c, struct text *chunk,
                struct text *content)
{
    size_t size = !n->repairs ? chunk->length
                  : n->held   ? 0
                              : normalize_newlines_run(*chunk, 0);
    *content = text_before(*chunk, size);
    if (size == 0 && chunk->length > 0)
        normalize_newlines_odd(n, chunk, content);
    else
        *chunk = text_after(*chunk, size);
    return dot_check(c, *content);
}

struct text
normalize_chunk_end(struct newlines_content *n)
{
    bool ends = n->held;
    n->held = false;
    n->had_cr = n->had_cr || ends;
    return ends ? TEXT("\r\n") : TEXT("");
}
