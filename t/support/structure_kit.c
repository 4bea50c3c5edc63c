/* Events of the structure parser as one text, and what must hold of any of them. */
#include "t/support/structure_kit.h"

const char *
structure_problem_text(enum structure_problem problem)
{
    static const char *const texts[] = {
        [PROBLEM_NONE] = "none",
        [PROBLEM_ODD_LINE] = "a line that is no field ends the header",
        [PROBLEM_LONG_HEADER] = "the header is too long to be read whole",
        [PROBLEM_BROKEN_TYPE] = "Content-Type is malformed",
        [PROBLEM_TWO_TYPES] = "two fields Content-Type",
        [PROBLEM_TWO_ENCODINGS] = "two different fields Content-Transfer-Encoding",
        [PROBLEM_UNKNOWN_ENCODING] = "Content-Transfer-Encoding is unknown",
        [PROBLEM_ENCODED_COMPOSITE] = "a multipart or message is labelled as encoded",
        [PROBLEM_NO_BOUNDARY] = "a boundary is missing",
        [PROBLEM_LONG_BOUNDARY] = "the boundary is too long",
        [PROBLEM_TOO_DEEP] = "nested too deep",
        [PROBLEM_TOO_MANY_PARTS] = "too many parts",
        [PROBLEM_ALMOST] = "a line begins as a delimiter, but goes on",
        [PROBLEM_NO_PARTS] = "the boundary never comes",
        [PROBLEM_NOT_CLOSED] = "the closing boundary is missing"};
    return texts[problem];
}

static void
trace_put(struct trace *t, struct text bytes)
{
    if (!buffer_add(&t->text, bytes))
        abort();
}

static void
trace_close(struct trace *t)
{
    if (t->open != 0)
        trace_put(t, TEXT("]"));
    t->open = 0;
}

static void
trace_bytes(struct trace *t, char mark, struct text bytes, bool joined)
{
    if (!joined || t->open != mark) {
        trace_close(t);
        trace_put(t, text_of(&mark, 1));
        trace_put(t, TEXT("["));
    }
    t->open = mark;
    trace_put(t, bytes);
}

static void
trace_word(struct trace *t, const char *word)
{
    trace_close(t);
    trace_put(t, text_from(word));
}

static void
trace_header(struct trace *t, const struct structure_event *e)
{
    static const char *const holds[] = {
        [STRUCTURE_LEAF] = "", [STRUCTURE_MULTIPART] = "*", [STRUCTURE_MESSAGE] = "@"};
    t->headers++;
    trace_word(t, "h<");
    trace_put(t, text_from(holds[e->part->holds]));
    trace_put(t, e->part->type->type);
    trace_put(t, TEXT("/"));
    trace_put(t, e->part->type->subtype);
    trace_put(t, TEXT(">"));
    trace_bytes(t, '-', e->bytes, false);
    if (e->part->body_at != e->offset + e->bytes.length)
        t->broken = true;
}

static void
trace_event(void *context, const struct structure_event *e)
{
    struct trace *t = context;
    if (e->offset != t->content.length || !buffer_add(&t->content, e->bytes))
        t->broken = true;
    if (e->kind != STRUCTURE_BEGIN && e->part->depth + 1 != t->depth)
        t->broken = true;
    switch (e->kind) {
    case STRUCTURE_BEGIN:
        if (e->part->depth != t->depth || e->part->number != t->begun ||
            e->part->header_at != e->offset)
            t->broken = true;
        t->depth++;
        t->begun++;
        trace_word(t, "(");
        break;
    case STRUCTURE_FIELD:
        trace_bytes(t, e->name.length > 0 ? 'f' : 'x', e->bytes, e->name.length == 0);
        break;
    case STRUCTURE_HEADER:
        trace_header(t, e);
        break;
    case STRUCTURE_BODY:
        trace_bytes(t, 'b', e->bytes, true);
        break;
    case STRUCTURE_OUTSIDE:
        trace_bytes(t, 'o', e->bytes, true);
        break;
    case STRUCTURE_DELIMITER:
        trace_bytes(t, 'd', e->bytes, false);
        break;
    case STRUCTURE_END:
        t->depth--;
        t->ended++;
        trace_word(t, ")");
        break;
    case STRUCTURE_PROBLEM:
        trace_word(t, "!");
        trace_put(t, text_from(structure_problem_text(e->problem)));
        trace_put(t, TEXT("."));
        break;
    }
}

struct trace
trace_of(struct text content, size_t first, size_t piece)
{
    struct trace t = {.depth = 0};
    buffer_init(&t.text, 64 * content.length + 1000000);
    buffer_init(&t.content, content.length);
    struct structure *s = structure_new(trace_event, &t);
    struct text rest = content;
    for (size_t size = first > 0 ? first : piece; rest.length > 0; size = piece) {
        structure_add(s, text_before(rest, size));
        rest = text_after(rest, size);
    }
    structure_end(s);
    structure_free(&s);
    trace_close(&t);
    if (t.depth != 0 || t.begun != t.ended || t.begun != t.headers ||
        !text_equal(buffer_text(&t.content), content))
        t.broken = true;
    return t;
}

void
trace_free(struct trace *t)
{
    buffer_free(&t->text);
    buffer_free(&t->content);
}
