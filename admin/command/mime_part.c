/* Describes each part of a message as the structure parser reports it. */
#include "admin/command/mime_part.h"

#include "base/buffer.h"
#include "base/log/log.h"
#include "mime/decode.h"
#include "mime/structure.h"
#include "mime/word.h"

#include <assert.h>

enum { BOUNDARY_LEGAL = 70 }; /* RFC 2046 §5.1.1 */

/* The open parts, the message first. */
struct description {
    json_t *parts[STRUCTURE_DEPTH_MAX + 1];
    struct decode body; /* of the leaf that is read; no other part is, meanwhile */
};

static json_t *
json_text(struct text t)
{
    struct buffer clean;
    buffer_init(&clean, 4 * t.length + 64);
    bool good = log_escape(t, &clean);
    assert(good);
    json_t *value = json_stringn(clean.length > 0 ? clean.at : "", clean.length);
    buffer_free(&clean);
    return value;
}

static void
add_problem(json_t *part, const char *where, const char *what)
{
    json_t *text =
        where == NULL ? json_string(what) : json_sprintf("%s: %s", where, what);
    json_array_append_new(json_object_get(part, "problems"), text);
}

static void
add_word_problems(json_t *part, const char *where, unsigned problems)
{
    for (unsigned i = 0; i < WORD_PROBLEMS; i++)
        if ((problems & 1u << i) != 0)
            add_problem(part, where, word_problem_text((enum word_problem)i));
}

/* --- Texts for people */

static bool
mime_part_has(json_t *part, const char *member)
{
    return json_object_get(part, member) != NULL;
}

/* Folding often leaves a tab, which says no more to people than a space. */
static void
untab(struct buffer *b)
{
    for (size_t i = 0; i < b->length; i++)
        if (b->at[i] == '\t')
            b->at[i] = ' ';
}

static void
set_field(json_t *part, const char *member, const struct structure_event *e)
{
    struct buffer words;
    unsigned problems = 0;
    if (mime_part_has(part, member)) {
        add_problem(part, member, "the field is there twice");
        return;
    }
    buffer_init(&words, 16 * e->value.length + 64);
    bool good = word_decode(e->value, &words, &problems);
    untab(&words);
    json_object_set_new(part, member,
                        json_text(text_trim(good ? buffer_text(&words) : e->value)));
    add_word_problems(part, member, problems);
    if (!good)
        add_problem(part, member, "too long to be decoded");
    buffer_free(&words);
}

static json_t *
read_parameter(const struct parameter *p, unsigned *problems)
{
    struct buffer words;
    buffer_init(&words, 16 * (p->value.length + p->extended.length) + 64);
    bool good = word_decode_parameter(p, &words, problems);
    json_t *value = json_text(good ? buffer_text(&words) : p->value);
    buffer_free(&words);
    return value;
}

static void
set_file_name(json_t *part, const struct parameters *from, const char *name)
{
    unsigned problems = 0;
    const struct parameter *p = parameters_find(from, name);
    if (p == NULL || mime_part_has(part, "filename"))
        return;
    json_object_set_new(part, "filename", read_parameter(p, &problems));
    add_word_problems(part, "filename", problems);
}

/* As written, but for those that name their charset: bytes mean nothing without it. */
static void
set_parameters(json_t *part, const char *member, const struct parameters *p)
{
    json_t *object = json_object();
    for (size_t i = 0; i < p->count; i++) {
        unsigned problems = 0;
        const struct parameter *each = &p->list[i];
        json_t *name = json_text(each->name);
        json_object_set_new(object, json_string_value(name),
                            each->charset.length > 0 ? read_parameter(each, &problems)
                                                     : json_text(each->value));
        json_decref(name);
    }
    json_object_set_new(part, member, object);
}

/* --- Events */

static void
begin_part(struct description *d, const struct structure_event *e)
{
    json_t *part = json_object();
    json_object_set_new(part, "header_at", json_integer((json_int_t)e->offset));
    json_object_set_new(part, "problems", json_array());
    json_object_set_new(part, "parts", json_array());
    if (e->part->depth > 0)
        json_array_append(json_object_get(d->parts[e->part->depth - 1], "parts"), part);
    /* The part above owns it, but for the first. */
    if (e->part->depth > 0)
        json_decref(part);
    d->parts[e->part->depth] = part;
}

static void
note_disposition(json_t *part, struct text value)
{
    struct parameters p = {.broken = false};
    if (mime_part_has(part, "disposition")) {
        add_problem(part, NULL, "two fields Content-Disposition");
        return;
    }
    parameters_read(&p, value);
    json_object_set_new(part, "disposition", json_text(p.type));
    set_parameters(part, "disposition_parameters", &p);
    if (p.broken)
        add_problem(part, NULL, "Content-Disposition is malformed");
    set_file_name(part, &p, "filename");
    parameters_free(&p);
}

/* One word, and comments at most. */
static void
check_encoding(json_t *part, struct text value)
{
    (void)parameter_token(&value);
    struct text more = parameter_token(&value);
    if (more.length > 0 || value.length > 0)
        add_problem(part, NULL, "Content-Transfer-Encoding is malformed");
}

static void
mime_part_note_field(json_t *part, const struct structure_event *e)
{
    if (text_equal_nocase(e->name, TEXT("content-transfer-encoding")))
        check_encoding(part, e->value);
    else if (text_equal_nocase(e->name, TEXT("content-disposition")))
        note_disposition(part, e->value);
    else if (text_equal_nocase(e->name, TEXT("content-description")))
        set_field(part, "description", e);
    else if (e->part->is_message && text_equal_nocase(e->name, TEXT("subject")))
        set_field(part, "subject", e);
}

static void
mime_part_note_type(json_t *part, const struct structure_part *from)
{
    struct buffer type;
    const struct parameter *boundary = parameters_find(from->type, "boundary");
    buffer_init(&type, SIZE_MAX / 2);
    bool good = buffer_format(&type, "%.*s/%.*s", TEXT_ARGS(from->type->type),
                              TEXT_ARGS(from->type->subtype));
    assert(good);
    json_object_set_new(part, "type", json_text(buffer_text(&type)));
    buffer_free(&type);
    set_parameters(part, "parameters", from->type);
    set_file_name(part, from->type, "name");
    if (from->holds == STRUCTURE_MULTIPART && boundary->value.length > BOUNDARY_LEGAL)
        add_problem(part, NULL, "the boundary is longer than 70 bytes");
    if (from->is_message && from->has_type && !from->has_version)
        add_problem(part, NULL, "MIME-Version is missing");
}

static void
note_header(struct description *d, json_t *part, const struct structure_part *from)
{
    mime_part_note_type(part, from);
    json_object_set_new(part, "encoding",
                        json_string(structure_encoding_name(from->encoding)));
    json_object_set_new(part, "body_at", json_integer((json_int_t)from->body_at));
    if (from->holds == STRUCTURE_LEAF)
        decode_start(&d->body, from->encoding, NULL, NULL);
}

static void
mime_part_end_part(struct description *d, json_t *part, const struct structure_event *e)
{
    enum structure_encoding encoding = e->part->encoding;
    json_object_set_new(part, "end_at", json_integer((json_int_t)e->offset));
    if (e->part->holds != STRUCTURE_LEAF ||
        (encoding != ENCODING_BASE64 && encoding != ENCODING_QUOTED))
        return;
    decode_end(&d->body);
    json_object_set_new(part, "decoded_size", json_integer((json_int_t)d->body.size));
    for (unsigned i = 0; i < DECODE_PROBLEMS; i++)
        if ((d->body.problems & 1u << i) != 0)
            add_problem(part, NULL, decode_problem_text((enum decode_problem)i));
}

static void
describe(void *context, const struct structure_event *e)
{
    struct description *d = context;
    json_t *part = d->parts[e->part->depth];
    switch (e->kind) {
    case STRUCTURE_BEGIN:
        begin_part(d, e);
        break;
    case STRUCTURE_FIELD:
        mime_part_note_field(part, e);
        break;
    case STRUCTURE_HEADER:
        note_header(d, part, e->part);
        break;
    case STRUCTURE_BODY:
        decode_add(&d->body, e->bytes);
        break;
    case STRUCTURE_END:
        mime_part_end_part(d, part, e);
        break;
    case STRUCTURE_PROBLEM:
        add_problem(part, NULL, structure_problem_text(e->problem));
        break;
    case STRUCTURE_OUTSIDE:
    case STRUCTURE_DELIMITER:
        break;
    }
}

json_t *
mime_part_describe(struct text content)
{
    struct description d = {.parts = {NULL}};
    struct structure *s = structure_new(describe, &d);
    structure_add(s, content);
    structure_end(s);
    structure_free(&s);
    return d.parts[0];
}
