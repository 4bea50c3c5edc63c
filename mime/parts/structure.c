/* Splits streaming content into parts, header fields, bodies and delimiters.
 *
 * The open parts are a stack, levels[0] to levels[top], in place of recursion: the
 * nesting is in the hands of the client. Each byte is reported in the mode that the top
 * level is in. Two places need bytes that are not there yet. A header collects a whole
 * field, since the next line decides whether the field goes on. A body holds only a
 * line that may become a delimiter, and the line end before it; all other bytes are
 * passed on from the piece without a copy.
 *
 * Limits (depth, parts, header, boundary) end the parsing of a part, never that of the
 * content: an unparsed part is reported as bytes. */
#include "mime/parts/structure.h"

#include "base/buffer.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The line end before, dashes at both ends, white space, the line end after. */
enum {
    LINE_MAX_HELD = 2 + STRUCTURE_BOUNDARY_MAX + 2 + STRUCTURE_PADDING_MAX + 2,
    HELD_MAX = 2 + LINE_MAX_HELD
};

enum mode {
    MODE_HEADER,
    MODE_BODY,    /* of a leaf */
    MODE_OUTSIDE, /* preamble or epilogue */
    MODE_REST     /* too many parts: nothing more is parsed */
};

struct level {
    struct structure_part part;
    char *boundary; /* of a multipart that is not closed; otherwise NULL */
    size_t boundary_length;
    bool digest, seen, closed, almost;
};

struct structure {
    structure_happened *on_event;
    void *context;
    enum mode mode;
    unsigned top, parts, boundaries; /* top: the level that is being read */
    uint64_t told;                   /* bytes in events so far */
    /* Header: the field being read; its last line starts at line_at. */
    struct buffer field;
    size_t line_at, header_size;
    bool first_line, raw_line; /* raw: the field is not parsed */
    bool in_raw;               /* within a line too long for the buffer */
    struct parameters type;
    /* A line that is not a field is read again as body. */
    struct buffer odd;
    /* Body: a possible delimiter at the start of a line, its line end first. */
    bool line_start;
    size_t held_length;
    char held[HELD_MAX];
    struct level levels[STRUCTURE_DEPTH_MAX + 1];
};

/* --- Telling */

static struct level *
structure_current(struct structure *s)
{
    return &s->levels[s->top];
}

static void
structure_tell(struct structure *s, struct structure_event *event)
{
    event->part = &structure_current(s)->part;
    event->offset = s->told;
    s->told += event->bytes.length;
    s->on_event(s->context, event);
}

static void
tell_bytes(struct structure *s, enum structure_kind kind, struct text bytes)
{
    if (bytes.length > 0)
        structure_tell(s, &(struct structure_event){.kind = kind, .bytes = bytes});
}

static void
tell_content(struct structure *s, struct text bytes)
{
    tell_bytes(s, s->mode == MODE_BODY ? STRUCTURE_BODY : STRUCTURE_OUTSIDE, bytes);
}

/* Once for each part, however often it occurs: a client could otherwise cause one event
 * for every line. */
static void
tell_problem(struct structure *s, enum structure_problem problem)
{
    struct structure_part *part = &structure_current(s)->part;
    if ((part->problems & 1u << problem) != 0)
        return;
    part->problems |= 1u << problem;
    structure_tell(
        s, &(struct structure_event){.kind = STRUCTURE_PROBLEM, .problem = problem});
}

/* --- Levels */

static void
start_header(struct structure *s)
{
    assert(s->field.length == 0);
    s->mode = MODE_HEADER;
    s->line_at = s->header_size = 0;
    s->first_line = true;
    s->raw_line = false;
}

/* A part on the new top level. */
static void
structure_begin(struct structure *s, bool is_message)
{
    assert(s->parts < STRUCTURE_PARTS_MAX && s->top <= STRUCTURE_DEPTH_MAX);
    *structure_current(s) = (struct level){
        .part = {.number = s->parts++,
                 .depth = s->top,
                 .is_message = is_message,
                 .header_at = s->told}
    };
    structure_tell(s, &(struct structure_event){.kind = STRUCTURE_BEGIN});
    start_header(s);
}

static void
forget_boundary(struct structure *s, struct level *level)
{
    if (level->boundary == NULL)
        return;
    free(level->boundary);
    level->boundary = NULL;
    s->boundaries--;
}

static void
structure_end_part(struct structure *s)
{
    struct level *level = structure_current(s);
    if (level->part.holds == STRUCTURE_MULTIPART && !level->seen)
        tell_problem(s, PROBLEM_NO_PARTS);
    else if (level->part.holds == STRUCTURE_MULTIPART && !level->closed)
        tell_problem(s, PROBLEM_NOT_CLOSED);
    if (level->almost)
        tell_problem(s, PROBLEM_ALMOST);
    forget_boundary(s, level);
    structure_tell(s, &(struct structure_event){.kind = STRUCTURE_END});
}

static void
end_parts_above(struct structure *s, unsigned level)
{
    while (s->top > level) {
        structure_end_part(s);
        s->top--;
    }
}

/* The innermost multipart that this line delimits; NULL = none. RFC 2046 §5.1.2: the
 * boundaries of all open multiparts count, as the closing delimiter of an inner one may
 * be missing. The innermost is first: with equal boundaries it must be closed before
 * the outer one. */
static struct level *
find_delimited(struct structure *s, struct text line, bool *closes)
{
    if (s->boundaries == 0 || line.length > LINE_MAX_HELD ||
        !text_starts(line, TEXT("--")))
        return NULL;
    struct level *almost = NULL;
    struct text t = text_after(line, 2);
    while (t.length > 0 && text_is_space(t.at[t.length - 1]))
        t.length--;
    for (unsigned i = s->top + 1; i-- > 0;) {
        struct level *level = &s->levels[i];
        if (level->boundary == NULL || t.length < level->boundary_length ||
            memcmp(t.at, level->boundary, level->boundary_length) != 0)
            continue;
        struct text rest = text_after(t, level->boundary_length);
        *closes = rest.length > 0;
        if (rest.length == 0 || text_equal(rest, TEXT("--")))
            return level;
        almost = almost == NULL ? level : almost;
    }
    if (almost != NULL)
        almost->almost = true;
    return NULL;
}

/* line: with the line end before it, if that was not reported yet. Inner parts that
 * were not closed end here. Behind a closing delimiter the boundary is text, so it is
 * forgotten. */
static void
delimit(struct structure *s, struct level *level, bool closes, struct text line)
{
    end_parts_above(s, (unsigned)(level - s->levels));
    level->seen = true;
    tell_bytes(s, STRUCTURE_DELIMITER, line);
    s->line_start = true;
    s->mode = MODE_OUTSIDE;
    if (closes) {
        level->closed = true;
        forget_boundary(s, level);
    } else if (s->parts == STRUCTURE_PARTS_MAX) {
        tell_problem(s, PROBLEM_TOO_MANY_PARTS);
        s->mode = MODE_REST;
    } else {
        s->top++;
        structure_begin(s, false);
    }
}

/* --- The end of a header */

static bool
is_composite(const struct parameters *type)
{
    return text_equal(type->type, TEXT("multipart")) ||
           text_equal(type->type, TEXT("message"));
}

/* The message types that can contain a message in its original form. */
static bool
is_message_type(const struct parameters *type)
{
    return parameters_is(type, "message", "rfc822") ||
           parameters_is(type, "message", "global") ||
           parameters_is(type, "message", "news");
}

static bool
has_room_below(struct structure *s)
{
    if (s->top == STRUCTURE_DEPTH_MAX)
        tell_problem(s, PROBLEM_TOO_DEEP);
    else if (s->parts == STRUCTURE_PARTS_MAX)
        tell_problem(s, PROBLEM_TOO_MANY_PARTS);
    else
        return true;
    return false;
}

/* A multipart without a usable boundary is a leaf: no byte in it can be a delimiter. */
static bool
open_multipart(struct structure *s, struct level *level)
{
    const struct parameter *given = parameters_find(&s->type, "boundary");
    struct text boundary = given == NULL ? TEXT("") : given->value;
    while (boundary.length > 0 && (boundary.at[boundary.length - 1] == ' ' ||
                                   boundary.at[boundary.length - 1] == '\t'))
        boundary.length--; /* RFC 2046 §5.1.1: mail gateways add and take it */
    if (boundary.length == 0 || memchr(boundary.at, '\n', boundary.length) != NULL) {
        tell_problem(s, PROBLEM_NO_BOUNDARY);
        return false;
    }
    if (boundary.length > STRUCTURE_BOUNDARY_MAX) {
        tell_problem(s, PROBLEM_LONG_BOUNDARY);
        return false;
    }
    if (!has_room_below(s))
        return false;
    level->boundary = text_string(boundary);
    level->boundary_length = boundary.length;
    level->digest = text_equal(s->type.subtype, TEXT("digest"));
    s->boundaries++;
    return true;
}

/* Type and encoding decide whether the part can be parsed. RFC 2045 §6.4 forbids
 * encodings of composite types. A multipart is parsed in spite of such a label; an
 * encoded message is a leaf, since its header cannot be read. */
static enum structure_holds
choose_holds(struct structure *s, struct level *level)
{
    bool encoded = level->part.encoding > ENCODING_BINARY;
    if (is_composite(&s->type) && level->part.encoding != ENCODING_OTHER && encoded &&
        !(parameters_is(&s->type, "message", "global")))
        tell_problem(s, PROBLEM_ENCODED_COMPOSITE);
    if (text_equal(s->type.type, TEXT("multipart")))
        return open_multipart(s, level) ? STRUCTURE_MULTIPART : STRUCTURE_LEAF;
    if (is_message_type(&s->type) && !encoded && has_room_below(s))
        return STRUCTURE_MESSAGE;
    return STRUCTURE_LEAF;
}

/* RFC 2046 §5.1.5: in a multipart/digest the default is message/rfc822. */
static void
settle_type(struct structure *s, struct level *level)
{
    if (!level->part.has_type)
        parameters_read(&s->type, s->top > 0 && s->levels[s->top - 1].digest
                                      ? TEXT("message/rfc822")
                                      : TEXT("text/plain"));
    else if (s->type.broken || s->type.subtype.length == 0)
        tell_problem(s, PROBLEM_BROKEN_TYPE);
}

/* All levels share one s->type, which the header of the next part replaces: it is valid
 * in this event alone. */
static void
end_header(struct structure *s, struct text empty_line)
{
    struct level *level = structure_current(s);
    assert(s->mode == MODE_HEADER && s->field.length == 0);
    settle_type(s, level);
    level->part.holds = choose_holds(s, level);
    level->part.type = &s->type;
    level->part.body_at = s->told + empty_line.length;
    structure_tell(
        s, &(struct structure_event){.kind = STRUCTURE_HEADER, .bytes = empty_line});
    level->part.type = NULL;
    parameters_free(&s->type);
    s->line_start = true;
    s->mode = level->part.holds == STRUCTURE_LEAF ? MODE_BODY : MODE_OUTSIDE;
    if (level->part.holds == STRUCTURE_MESSAGE) {
        s->top++;
        structure_begin(s, true);
    }
}

/* --- Fields */

/* The length of "name:", with white space before the colon (RFC 5322 §4.5), or 0. */
static size_t
field_start(struct text line, struct text *name)
{
    size_t at = 0;
    while (at < line.length && line.at[at] > ' ' && line.at[at] < 0x7f &&
           line.at[at] != ':')
        at++;
    *name = text_before(line, at);
    while (at < line.length && (line.at[at] == ' ' || line.at[at] == '\t'))
        at++;
    return name->length > 0 && at < line.length && line.at[at] == ':' ? at + 1 : 0;
}

static enum structure_encoding
read_encoding(struct text value)
{
    static const struct {
        struct text name;
        enum structure_encoding encoding;
    } known[] = {
        {TEXT("7bit"),             ENCODING_7BIT  },
        {TEXT("8bit"),             ENCODING_8BIT  },
        {TEXT("binary"),           ENCODING_BINARY},
        {TEXT("quoted-printable"), ENCODING_QUOTED},
        {TEXT("base64"),           ENCODING_BASE64},
        {TEXT("7-bit"),            ENCODING_7BIT  }, /* as some write */
        {TEXT("8-bit"),            ENCODING_8BIT  },
    };
    struct text word = parameter_token(&value);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (text_equal_nocase(word, known[i].name))
            return known[i].encoding;
    return ENCODING_OTHER;
}

static void
structure_note_type(struct structure *s, struct structure_part *part, struct text value)
{
    if (part->has_type) {
        tell_problem(s, PROBLEM_TWO_TYPES);
        return;
    }
    part->has_type = true;
    parameters_read(&s->type, value);
}

static void
note_encoding(struct structure *s, struct structure_part *part, struct text value)
{
    enum structure_encoding encoding = read_encoding(value);
    if (part->has_encoding) {
        if (encoding != part->encoding)
            tell_problem(s, PROBLEM_TWO_ENCODINGS);
        return;
    }
    part->has_encoding = true;
    part->encoding = encoding;
    if (encoding == ENCODING_OTHER)
        tell_problem(s, PROBLEM_UNKNOWN_ENCODING);
}

static void
structure_note_field(struct structure *s, struct text name, struct text value)
{
    struct structure_part *part = &structure_current(s)->part;
    if (text_equal_nocase(name, TEXT("content-type")))
        structure_note_type(s, part, value);
    else if (text_equal_nocase(name, TEXT("content-transfer-encoding")))
        note_encoding(s, part, value);
    else if (text_equal_nocase(name, TEXT("mime-version")))
        part->has_version = true;
}

/* Reports the lines before line_at. */
static void
flush_field(struct structure *s)
{
    struct text whole = text_before(buffer_text(&s->field), s->line_at);
    struct structure_event event = {.kind = STRUCTURE_FIELD, .bytes = whole};
    if (whole.length == 0)
        return;
    if (!s->raw_line) {
        size_t start = field_start(whole, &event.name);
        assert(start > 0);
        event.value = text_after(text_without_line_end(whole), start);
        structure_note_field(s, event.name, event.value);
    }
    structure_tell(s, &event);
    buffer_take(&s->field, s->line_at);
    s->line_at = 0;
}

/* Handles a field whose last line is complete. A delimiter ends a header, too, even if
 * it looks like a field or a continuation: parts may lack the empty line. */
static void
header_line(struct structure *s)
{
    struct text name, line = text_after(buffer_text(&s->field), s->line_at);
    bool closes, folded = line.at[0] == ' ' || line.at[0] == '\t';
    struct level *delimited = find_delimited(s, line, &closes);
    bool empty = text_equal(line, TEXT("\r\n")) || text_equal(line, TEXT("\n"));
    bool starts = field_start(line, &name) > 0;
    if (delimited == NULL && !empty && folded && !s->first_line) {
        s->line_at = s->field.length;
        return;
    }
    flush_field(s);
    /* Fields beyond the limit are passed on, but not parsed. */
    s->raw_line = s->header_size > STRUCTURE_HEADER_MAX;
    s->first_line = false;
    if (delimited == NULL && !empty && starts) {
        if (s->raw_line)
            tell_problem(s, PROBLEM_LONG_HEADER);
        s->line_at = s->field.length;
        return;
    }
    /* The line leaves the buffer, which the next header needs. */
    struct buffer taken = s->field;
    buffer_init(&s->field, STRUCTURE_HEADER_MAX);
    if (delimited == NULL && !empty)
        tell_problem(s, PROBLEM_ODD_LINE);
    end_header(s, empty && delimited == NULL ? buffer_text(&taken) : TEXT(""));
    if (delimited == NULL && !empty) {
        assert(s->odd.length == 0);
        s->odd = taken;
        return;
    }
    if (delimited != NULL) {
        while (s->mode == MODE_HEADER) /* of an inner message without content */
            end_header(s, TEXT(""));
        delimit(s, delimited, closes, buffer_text(&taken));
    }
    buffer_free(&taken);
}

/* A line longer than the buffer: passed on unread up to its end. */
static void
tell_raw(struct structure *s, struct text bytes, bool whole)
{
    tell_problem(s, PROBLEM_LONG_HEADER);
    tell_bytes(s, STRUCTURE_FIELD, buffer_text(&s->field));
    buffer_clear(&s->field);
    s->line_at = 0;
    s->raw_line = true;
    s->first_line = false;
    s->in_raw = !whole;
    tell_bytes(s, STRUCTURE_FIELD, bytes);
}

/* Handles a line or a part of one. */
static struct text
structure_take_header(struct structure *s, struct text piece)
{
    size_t end = text_find(piece, '\n');
    bool whole = end != TEXT_NONE;
    struct text bytes = text_before(piece, whole ? end + 1 : piece.length);
    s->header_size += bytes.length;
    if (s->in_raw || !buffer_add(&s->field, bytes))
        tell_raw(s, bytes, whole);
    else if (whole)
        header_line(s);
    return text_after(piece, bytes.length);
}

/* --- Bodies */

static size_t
line_end_length(const char *at, size_t length)
{
    if (length > 0 && at[length - 1] == '\n')
        return length > 1 && at[length - 2] == '\r' ? 2 : 1;
    return 0;
}

static bool
may_delimit(const char *line, size_t length)
{
    return (length < 1 || line[0] == '-') && (length < 2 || line[1] == '-');
}

/* The start of the line in the held bytes; a lone CR may become a line end. */
static size_t
held_line(const struct structure *s)
{
    if (s->held_length > 0 && s->held[0] == '\r')
        return s->held_length > 1 ? 2 : 1;
    return s->held_length > 0 && s->held[0] == '\n';
}

/* Emits all but a line end that may belong to a delimiter. */
static void
tell_held(struct structure *s, size_t keep)
{
    char line_end[2];
    size_t length = s->held_length - keep;
    assert(keep <= sizeof(line_end) && keep <= s->held_length);
    memcpy(line_end, s->held + length, keep);
    tell_content(s, text_of(s->held, length));
    memcpy(s->held, line_end, keep);
    s->held_length = keep;
    s->line_start = keep > 0;
}

/* Adds as many bytes of the piece as decide whether the held line is a delimiter. */
static struct text
take_held(struct structure *s, struct text piece)
{
    size_t start = held_line(s), want = 1;
    bool closes;
    char last = s->held[s->held_length - 1], next = piece.at[0];
    /* A CR without LF, or a line end before a line of text. */
    if (start == s->held_length && (last == '\r' ? next != '\n' : next != '-')) {
        tell_held(s, 0);
        s->line_start = last == '\n';
        return piece;
    }
    if (s->held_length >= start + 2) { /* the dashes are there */
        size_t end = text_find(piece, '\n');
        want = end == TEXT_NONE ? piece.length : end + 1;
        if (want > HELD_MAX - s->held_length)
            want = HELD_MAX - s->held_length;
    }
    memcpy(s->held + s->held_length, piece.at, want);
    s->held_length += want;
    piece = text_after(piece, want);
    start = held_line(s);
    struct text line = text_of(s->held + start, s->held_length - start);
    bool whole = line.length > 0 && line.at[line.length - 1] == '\n';
    struct level *delimited = whole ? find_delimited(s, line, &closes) : NULL;
    if (delimited != NULL) {
        size_t length = s->held_length;
        s->held_length = 0;
        delimit(s, delimited, closes, text_of(s->held, length));
    } else if (whole) {
        tell_held(s, line_end_length(s->held, s->held_length));
    } else if (!may_delimit(line.at, line.length) || line.length >= LINE_MAX_HELD) {
        tell_held(s, line.at[line.length - 1] == '\r'); /* it may begin a line end */
    }
    return piece;
}

/* Holds the last bytes of the piece until the next one comes. */
static struct text
structure_hold(struct structure *s, struct text piece, size_t from)
{
    assert(s->held_length == 0 && piece.length - from <= HELD_MAX);
    tell_content(s, text_before(piece, from));
    memcpy(s->held, piece.at + from, piece.length - from);
    s->held_length = piece.length - from;
    return TEXT("");
}

/* From the start of a line: the start of the next line that may be a delimiter, or of
 * the last line. A line end before a line of text cannot belong to a delimiter, so
 * short lines are not held one by one. */
static size_t
skip_lines(struct text piece, size_t at)
{
    while (at < piece.length && piece.at[at] != '-') {
        const char *end = piece.at + at;
        if (*end != '\n')
            end = memchr(end, '\n', piece.length - at);
        if (end == NULL)
            break;
        at = (size_t)(end - piece.at) + 1;
    }
    return at;
}

/* Emits content up to the next delimiter or to the end of the piece; nothing is held.
 */
static struct text
take_lines(struct structure *s, struct text piece)
{
    size_t at = 0;
    bool closes;
    for (;;) {
        at = s->line_start ? skip_lines(piece, at) : at;
        const char *line = piece.at + at;
        size_t left = piece.length - at;
        size_t before = at - line_end_length(piece.at, at); /* the line end's start */
        const char *end = left == 0 ? NULL : memchr(line, '\n', left);
        size_t length = end == NULL ? left : (size_t)(end - line) + 1;
        bool candidate = s->line_start && may_delimit(line, left);
        /* The line may go on in the next piece and become a delimiter. */
        if (candidate && end == NULL && left < LINE_MAX_HELD)
            return structure_hold(s, piece, before);
        struct level *delimited =
            candidate && end != NULL ? find_delimited(s, text_of(line, length), &closes)
                                     : NULL;
        if (delimited != NULL) {
            tell_content(s, text_before(piece, before));
            delimit(s, delimited, closes,
                    text_of(piece.at + before, at + length - before));
            return text_after(piece, at + length);
        }
        s->line_start = end != NULL;
        at += length;
        if (end == NULL)
            return structure_hold(s, piece, at - (piece.at[at - 1] == '\r'));
    }
}

/* Without an open boundary nothing can be a delimiter: the piece is passed on
 * unsearched. */
static struct text
take_body(struct structure *s, struct text piece)
{
    if (s->held_length > 0)
        return take_held(s, piece);
    if (s->mode != MODE_REST && s->boundaries > 0)
        return take_lines(s, piece);
    tell_content(s, piece);
    return TEXT("");
}

/* --- The whole */

static struct text
structure_take(struct structure *s, struct text piece)
{
    return s->mode == MODE_HEADER ? structure_take_header(s, piece)
                                  : take_body(s, piece);
}

/* A line that is not a field is the first one of the content, even if that is another
 * header. */
static void
take_odd(struct structure *s)
{
    while (s->odd.length > 0) {
        struct buffer odd = s->odd;
        buffer_init(&s->odd, STRUCTURE_HEADER_MAX);
        for (struct text t = buffer_text(&odd); t.length > 0;)
            t = structure_take(s, t);
        buffer_free(&odd);
    }
}

struct structure *
structure_new(structure_happened *on_event, void *context)
{
    struct structure *s = memory_new(sizeof(*s));
    s->on_event = on_event;
    s->context = context;
    buffer_init(&s->field, STRUCTURE_HEADER_MAX);
    buffer_init(&s->odd, STRUCTURE_HEADER_MAX);
    structure_begin(s, true);
    return s;
}

void
structure_add(struct structure *s, struct text piece)
{
    while (piece.length > 0) {
        piece = structure_take(s, piece);
        take_odd(s);
    }
}

/* A last line without a line end can still be a delimiter. */
static void
end_body(struct structure *s)
{
    bool closes;
    size_t start = held_line(s);
    struct text held = text_of(s->held, s->held_length);
    struct level *delimited = find_delimited(s, text_after(held, start), &closes);
    s->held_length = 0;
    if (delimited != NULL)
        delimit(s, delimited, closes, held);
    else
        tell_content(s, held);
}

/* The content may end in any state: in a field, in an odd line, in a held line or in
 * the header of an inner message. Each part reports HEADER and END all the same. */
void
structure_end(struct structure *s)
{
    if (s->mode == MODE_HEADER && s->field.length > s->line_at)
        header_line(s);
    take_odd(s);
    /* not a field, again */
    while (s->mode == MODE_HEADER && s->field.length > s->line_at) {
        header_line(s);
        take_odd(s);
    }
    if (s->mode != MODE_HEADER)
        end_body(s);
    while (s->mode == MODE_HEADER) {
        flush_field(s);
        end_header(s, TEXT(""));
    }
    end_parts_above(s, 0);
    structure_end_part(s);
}

void
structure_free(struct structure **s)
{
    if (*s == NULL)
        return;
    for (unsigned i = 0; i <= STRUCTURE_DEPTH_MAX; i++)
        forget_boundary(*s, &(*s)->levels[i]);
    parameters_free(&(*s)->type);
    buffer_free(&(*s)->field);
    buffer_free(&(*s)->odd);
    free(*s);
    *s = NULL;
}

const char *
structure_encoding_name(enum structure_encoding encoding)
{
    static const char *const names[] = {
        [ENCODING_7BIT] = "7bit",     [ENCODING_8BIT] = "8bit",
        [ENCODING_BINARY] = "binary", [ENCODING_QUOTED] = "quoted-printable",
        [ENCODING_BASE64] = "base64", [ENCODING_OTHER] = "other"};
    return names[encoding];
}
