/* Conversion checked from outside: what was decoded before must be decoded after. */
#include "t/support/downgrade_kit.h"

void
kit_put(struct buffer *b, struct text bytes)
{
    if (!buffer_add(b, bytes))
        abort();
}

static int
kit_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

void
kit_decode_quoted(struct text t, struct buffer *out)
{
    size_t line = 0;
    for (size_t at = 0; at < t.length; at++, line++) {
        char c = t.at[at];
        if (c == '=' && text_starts(text_after(t, at + 1), TEXT("\r\n"))) {
            line = SIZE_MAX;
            at += 2;
        } else if (c == '=') {
            if (at + 2 >= t.length || kit_hex(t.at[at + 1]) < 0 ||
                kit_hex(t.at[at + 2]) < 0)
                abort();
            char byte = (char)(kit_hex(t.at[at + 1]) * 16 + kit_hex(t.at[at + 2]));
            kit_put(out, text_of(&byte, 1));
            at += 2;
            line += 2;
        } else {
            bool end = at + 1 == t.length || t.at[at + 1] == '\r';
            if ((c == '\r') != (at + 1 < t.length && t.at[at + 1] == '\n') ||
                ((c == ' ' || c == '\t') && end) || c < 0 ||
                (c < ' ' && c != '\t' && c != '\r' && c != '\n'))
                abort();
            kit_put(out, text_of(&c, 1));
            if (c == '\n')
                line = SIZE_MAX;
        }
        if (line != SIZE_MAX && line > 76)
            abort();
    }
}

void
kit_decode_base64(struct text t, struct buffer *out)
{
    struct buffer plain;
    size_t length;
    buffer_init(&plain, t.length);
    for (size_t at = 0; at < t.length; at++)
        if (t.at[at] != '\r' && t.at[at] != '\n')
            kit_put(&plain, text_of(t.at + at, 1));
    char *to = buffer_reserve(out, plain.length);
    if (to == NULL || !base64_decode(buffer_text(&plain), to, plain.length, &length))
        abort();
    out->length += length;
    buffer_free(&plain);
}

/* Without CR and LF: folding may differ. */
static void
kit_put_flat(struct buffer *b, struct text t)
{
    for (size_t at = 0; at < t.length; at++)
        if (t.at[at] != '\r' && t.at[at] != '\n')
            kit_put(b, text_of(t.at + at, 1));
}

static void
kit_read_field(struct reading *r, const struct structure_event *e)
{
    if (text_equal_nocase(e->name, TEXT("content-transfer-encoding")) ||
        text_equal_nocase(e->name, TEXT("mime-version")) ||
        text_equal_nocase(e->name, TEXT("content-type")))
        return;
    kit_put(&r->out, TEXT("f["));
    kit_put_flat(&r->out, e->bytes);
    kit_put(&r->out, TEXT("]"));
}

static void
kit_read_header(struct reading *r, const struct structure_event *e)
{
    bool global = text_equal(e->part->type->type, TEXT("message")) &&
                  text_equal(e->part->type->subtype, TEXT("global"));
    kit_put(&r->out, TEXT("h<"));
    kit_put(&r->out, e->part->type->type);
    kit_put(&r->out, TEXT("/"));
    kit_put(&r->out, e->part->type->subtype);
    kit_put(&r->out, TEXT(">"));
    if (e->part->holds != STRUCTURE_LEAF && !global)
        return;
    r->number = e->part->number;
    r->whole = true;
    r->encoding = e->part->encoding;
}

/* Encoded now and not before: what was labelled already is the same on both sides. */
static bool
kit_is_converted(const struct reading *r)
{
    size_t index = r->encodings.length - 1;
    return r->original != NULL && r->encoding > ENCODING_BINARY &&
           index < r->original->encodings.length &&
           r->original->encodings.at[index] <= ENCODING_BINARY;
}

static void
kit_read_end(struct reading *r)
{
    struct text body = buffer_text(&r->body);
    char encoding = (char)r->encoding;
    kit_put(&r->encodings, text_of(&encoding, 1));
    kit_put(&r->out, TEXT("b["));
    if (!kit_is_converted(r))
        kit_put(&r->out, body);
    else if (r->encoding == ENCODING_QUOTED)
        kit_decode_quoted(body, &r->out);
    else
        kit_decode_base64(body, &r->out);
    kit_put(&r->out, TEXT("]"));
    buffer_clear(&r->body);
    r->whole = false;
}

static void
kit_read(void *context, const struct structure_event *e)
{
    struct reading *r = context;
    if (r->whole) {
        if (e->kind == STRUCTURE_END && e->part->number == r->number)
            kit_read_end(r);
        else
            kit_put(&r->body, e->bytes);
        return;
    }
    if (e->kind == STRUCTURE_BEGIN)
        kit_put(&r->out, TEXT("("));
    else if (e->kind == STRUCTURE_FIELD)
        kit_read_field(r, e);
    else if (e->kind == STRUCTURE_HEADER)
        kit_read_header(r, e);
    else if (e->kind == STRUCTURE_END)
        kit_put(&r->out, TEXT(")"));
}

void
downgrade_kit_reading(struct reading *r, struct text content, const struct reading *original)
{
    *r = (struct reading){.original = original};
    buffer_init(&r->out, KIT_SIZE_MAX);
    buffer_init(&r->body, KIT_SIZE_MAX);
    buffer_init(&r->encodings, STRUCTURE_PARTS_MAX);
    struct structure *s = structure_new(kit_read, r);
    structure_add(s, content);
    structure_end(s);
    structure_free(&s);
}

static void
kit_reading_free(struct reading *r)
{
    buffer_free(&r->out);
    buffer_free(&r->body);
    buffer_free(&r->encodings);
}

/* --- Promises */

bool
kit_is_clean(struct text t, bool may_8bit)
{
    size_t line = 0;
    for (size_t at = 0; at < t.length; at++) {
        char c = t.at[at];
        bool pair = c == '\r' && at + 1 < t.length && t.at[at + 1] == '\n';
        bool paired = c == '\n' && at > 0 && t.at[at - 1] == '\r';
        if (c == '\0' || (c < 0 && !may_8bit) || (c == '\r' && !pair) ||
            (c == '\n' && !paired))
            return false;
        line = c == '\n' ? 0 : line + (c != '\r');
        if (line > DOWNGRADE_LINE_MAX)
            return false;
    }
    return true;
}

void
kit_write(void *context, struct text bytes)
{
    if (bytes.length == 0)
        abort();
    kit_put(context, bytes);
}

struct conversion
kit_convert(struct text content, const struct downgrade_way *way, size_t first,
            size_t piece)
{
    struct conversion c = {.verdict = DOWNGRADE_NOT_NEEDED};
    struct downgrade *d = downgrade_new(way);
    struct text rest = content;
    for (size_t size = first > 0 ? first : piece; rest.length > 0; size = piece) {
        downgrade_scan(d, text_before(rest, size));
        rest = text_after(rest, size);
    }
    c.verdict = downgrade_scan_end(d);
    c.reason = downgrade_reason(d);
    c.dkim = downgrade_breaks_dkim(d);
    c.size_max = downgrade_size_max(d);
    buffer_init(&c.out, KIT_SIZE_MAX);
    rest = content;
    if (c.verdict == DOWNGRADE_CONVERTIBLE) {
        downgrade_start(d, kit_write, &c.out);
        for (size_t size = first > 0 ? first : piece; rest.length > 0; size = piece) {
            downgrade_add(d, text_before(rest, size));
            rest = text_after(rest, size);
        }
        downgrade_end(d);
    }
    downgrade_free(&d);
    return c;
}

/* Lone LF become CRLF, and a last line end is taken off. */
static struct buffer
kit_canonical(const struct buffer *b, bool line_ends)
{
    struct buffer out;
    buffer_init(&out, 2 * b->length + 1);
    for (size_t at = 0; at < b->length; at++) {
        if (line_ends && b->at[at] == '\n' && (at == 0 || b->at[at - 1] != '\r'))
            kit_put(&out, TEXT("\r"));
        kit_put(&out, text_of(b->at + at, 1));
    }
    return out;
}

/* Ends in "b[...\r\n])))": the line end that the conversion may have added is the last
 * before the brackets. */
static void
kit_drop_last_line_end(struct buffer *b)
{
    size_t end = b->length;
    while (end > 0 && b->at[end - 1] == ')')
        end--;
    if (end < 3 || b->at[end - 1] != ']' || b->at[end - 2] != '\n' ||
        b->at[end - 3] != '\r')
        return;
    memmove(b->at + end - 3, b->at + end - 1, b->length - end + 1);
    b->length -= 2;
}

bool
kit_is_same_reading(struct text before, struct text after, bool from_binary)
{
    struct reading raw[2];
    downgrade_kit_reading(&raw[0], before, NULL);
    downgrade_kit_reading(&raw[1], after, &raw[0]);
    struct buffer read[2] = {kit_canonical(&raw[0].out, !from_binary),
                             kit_canonical(&raw[1].out, !from_binary)};
    kit_drop_last_line_end(&read[0]);
    kit_drop_last_line_end(&read[1]);
    bool same = text_equal(buffer_text(&read[0]), buffer_text(&read[1]));
    if (!same)
        fprintf(stderr, "# before: %.*s\n# after:  %.*s\n",
                TEXT_ARGS(buffer_text(&read[0])), TEXT_ARGS(buffer_text(&read[1])));
    for (int i = 0; i < 2; i++) {
        kit_reading_free(&raw[i]);
        buffer_free(&read[i]);
    }
    return same;
}
