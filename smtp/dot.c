/* Removes and adds dot-stuffing: a state machine on bytes. */
#include "smtp/dot.h"

#include "smtp/line.h"

enum state {
    LINE_START, /* after CRLF, and at the very start */
    IN_LINE,
    AFTER_CR,
    AFTER_DOT,   /* a dot at the start of a line, always dropped */
    AFTER_DOT_CR /* a CR kept back: only LF may follow, as the end of the content */
};

/* Takes one byte that may change the state. Only CRLF ends a line. A server that sees
 * the end of the content elsewhere than the one before or behind it can be made to read
 * content as commands (SMTP smuggling), so bare CR, bare LF and NUL are errors, not
 * line ends. */
static enum progress
dot_step(struct dot_decoder *d, char c)
{
    switch ((enum state)d->state) {
    case LINE_START:
    case IN_LINE:
        d->state = c == '\r' ? AFTER_CR : IN_LINE;
        return c == '\n' || c == '\0' ? PROGRESS_BAD : PROGRESS_MORE;
    case AFTER_CR:
        d->state = LINE_START;
        return c == '\n' ? PROGRESS_MORE : PROGRESS_BAD;
    case AFTER_DOT:
        d->state = c == '\r' ? AFTER_DOT_CR : IN_LINE;
        return c == '\n' || c == '\0' ? PROGRESS_BAD : PROGRESS_MORE;
    case AFTER_DOT_CR:
        return c == '\n' ? PROGRESS_DONE : PROGRESS_BAD;
    }
    return PROGRESS_BAD;
}

void
dot_decode_start(struct dot_decoder *d)
{
    d->state = LINE_START;
}

enum progress
dot_decode(struct dot_decoder *d, struct text *input, struct text *content)
{
    struct text all = *input;
    enum progress progress = PROGRESS_MORE;
    /* The dot, and the CR after it, are not content. */
    size_t start = 0;
    if (d->state == LINE_START && all.length > 0 && all.at[0] == '.') {
        d->state = AFTER_DOT;
        start = 1;
    }
    if (d->state == AFTER_DOT && all.length > start && all.at[start] == '\r') {
        d->state = AFTER_DOT_CR;
        start++;
    }
    size_t end = start;
    while (progress == PROGRESS_MORE && end < all.length) {
        if (d->state == IN_LINE)
            end += line_run(text_after(all, end));
        if (end == all.length)
            break;
        char c = all.at[end];
        if (d->state == LINE_START && c == '.')
            break; /* the next slice begins behind it */
        progress = dot_step(d, c);
        end++;
    }
    *input = text_after(all, end);
    bool whole = progress == PROGRESS_MORE;
    *content = text_of(all.at, 0);
    if (whole && end > start)
        *content = text_before(text_after(all, start), end - start);
    return progress;
}

bool
dot_check(struct dot_checker *c, struct text chunk)
{
    for (size_t i = 0; i < chunk.length; i++) {
        if (!c->after_cr)
            i += line_run(text_after(chunk, i));
        if (i == chunk.length)
            break;
        char byte = chunk.at[i];
        if (c->after_cr ? byte != '\n' : byte == '\n' || byte == '\0')
            return false;
        c->after_cr = byte == '\r';
    }
    return true;
}

bool
dot_check_end(const struct dot_checker *c)
{
    return !c->after_cr;
}

void
dot_encode_start(struct dot_encoder *e)
{
    *e = (struct dot_encoder){.in_line = false};
}

/* run has no CR, LF or NUL. A line that begins with a dot gets another one (RFC 5321
 * §4.5.2). */
static bool
encode_run(struct dot_encoder *e, struct text run, struct buffer *out)
{
    bool stuffed = !e->in_line && run.at[0] == '.';
    e->in_line = true;
    return (!stuffed || buffer_add_byte(out, '.')) && buffer_add(out, run);
}

/* Content that has bare CR or LF nevertheless, from before it was refused or from a
 * file, leaves with CRLF. */
static bool
encode_special(struct dot_encoder *e, char c, struct buffer *out)
{
    bool ended = e->after_cr && c == '\n'; /* its CR has already ended the line */
    if (c == '\0')
        return true;
    e->after_cr = c == '\r';
    e->in_line = false;
    return ended || buffer_add(out, TEXT("\r\n"));
}

bool
dot_encode(struct dot_encoder *e, struct text content, struct buffer *out)
{
    size_t at = 0;
    while (at < content.length) {
        size_t end = at + line_run(text_after(content, at));
        if (end > at) {
            e->after_cr = false;
            if (!encode_run(e, text_of(content.at + at, end - at), out))
                return false;
        }
        if (end < content.length && !encode_special(e, content.at[end++], out))
            return false;
        at = end;
    }
    return true;
}

bool
dot_encode_end(struct dot_encoder *e, struct buffer *out)
{
    bool open = e->in_line;
    dot_encode_start(e);
    return (!open || buffer_add(out, TEXT("\r\n"))) && buffer_add(out, TEXT(".\r\n"));
}
