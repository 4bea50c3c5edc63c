/* Tells people and scripts how Petrel reads a message. */
#include "admin/mime.h"

#include "base/buffer.h"
#include "base/disk.h"
#include "base/log.h"
#include "mime/downgrade.h"
#include "mime/structure.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { CONTENT_MAX = 1 << 30, READ_SIZE = 65536 };

/* The open parts, the message first. */
struct description {
    json_t *parts[STRUCTURE_DEPTH_MAX + 1];
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
set_parameters(json_t *part, const char *member, const struct parameters *p)
{
    json_t *object = json_object();
    for (size_t i = 0; i < p->count; i++) {
        json_t *name = json_text(p->list[i].name);
        json_object_set_new(object, json_string_value(name),
                            json_text(p->list[i].value));
        json_decref(name);
    }
    json_object_set_new(part, member, object);
}

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
note_field(json_t *part, const struct structure_event *e)
{
    if (!text_equal_nocase(e->name, TEXT("content-disposition")) ||
        json_object_get(part, "disposition") != NULL)
        return;
    struct parameters p = {.broken = false};
    parameters_read(&p, e->value);
    json_object_set_new(part, "disposition", json_text(p.type));
    set_parameters(part, "disposition_parameters", &p);
    parameters_free(&p);
}

static void
note_header(json_t *part, const struct structure_part *from)
{
    struct buffer type;
    buffer_init(&type, SIZE_MAX / 2);
    bool good = buffer_format(&type, "%.*s/%.*s", TEXT_ARGS(from->type->type),
                              TEXT_ARGS(from->type->subtype));
    assert(good);
    json_object_set_new(part, "type", json_text(buffer_text(&type)));
    buffer_free(&type);
    set_parameters(part, "parameters", from->type);
    json_object_set_new(part, "encoding",
                        json_string(structure_encoding_name(from->encoding)));
    json_object_set_new(part, "body_at", json_integer((json_int_t)from->body_at));
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
        note_field(part, e);
        break;
    case STRUCTURE_HEADER:
        note_header(part, e->part);
        break;
    case STRUCTURE_END:
        json_object_set_new(part, "end_at", json_integer((json_int_t)e->offset));
        break;
    case STRUCTURE_PROBLEM:
        json_array_append_new(json_object_get(part, "problems"),
                              json_string(structure_problem_text(e->problem)));
        break;
    case STRUCTURE_BODY:
    case STRUCTURE_OUTSIDE:
    case STRUCTURE_DELIMITER:
        break;
    }
}

static struct downgrade *
scan(struct text content, enum downgrade_verdict *verdict)
{
    struct downgrade_way way = {.to_8bit = false};
    struct downgrade *d = downgrade_new(&way);
    downgrade_scan(d, content);
    *verdict = downgrade_scan_end(d);
    return d;
}

static bool
is_forbidden(enum downgrade_verdict verdict)
{
    return verdict == DOWNGRADE_FORBIDDEN || verdict == DOWNGRADE_FRAGMENT;
}

static json_t *
describe_conversion(struct text content)
{
    static const char *const names[] = {[DOWNGRADE_NOT_NEEDED] = "not needed",
                                        [DOWNGRADE_CONVERTIBLE] = "convertible",
                                        [DOWNGRADE_FORBIDDEN] = "forbidden",
                                        [DOWNGRADE_FRAGMENT] = "forbidden"};
    enum downgrade_verdict verdict;
    struct downgrade *d = scan(content, &verdict);
    json_t *object = json_object();
    json_object_set_new(object, "verdict", json_string(names[verdict]));
    if (is_forbidden(verdict))
        json_object_set_new(object, "reason", json_string(downgrade_reason_text(d)));
    if (verdict == DOWNGRADE_CONVERTIBLE)
        json_object_set_new(object, "size_max",
                            json_integer((json_int_t)downgrade_size_max(d)));
    downgrade_free(&d);
    return object;
}

json_t *
mime_describe(struct text content)
{
    struct description d = {.parts = {NULL}};
    struct structure *s = structure_new(describe, &d);
    structure_add(s, content);
    structure_end(s);
    structure_free(&s);
    json_t *object = json_object();
    json_object_set_new(object, "size", json_integer((json_int_t)content.length));
    json_object_set_new(object, "to_7bit", describe_conversion(content));
    json_object_set_new(object, "message", d.parts[0]);
    return object;
}

static void
print(void *context, struct text bytes)
{
    fwrite(bytes.at, 1, bytes.length, context);
}

static int
convert(struct text content)
{
    enum downgrade_verdict verdict;
    struct downgrade *d = scan(content, &verdict);
    if (is_forbidden(verdict))
        fprintf(stderr, "petrel mime: not converted: %s\n", downgrade_reason_text(d));
    if (verdict == DOWNGRADE_NOT_NEEDED)
        print(stdout, content);
    if (verdict == DOWNGRADE_CONVERTIBLE) {
        downgrade_start(d, print, stdout);
        downgrade_add(d, content);
        downgrade_end(d);
    }
    downgrade_free(&d);
    return is_forbidden(verdict) ? EX_DATAERR : 0;
}

static int
read_standard(struct buffer *content)
{
    for (;;) {
        char *to = buffer_reserve(content, READ_SIZE);
        if (to == NULL)
            return -EFBIG;
        size_t length = fread(to, 1, READ_SIZE, stdin);
        content->length += length;
        if (length == 0)
            return ferror(stdin) ? -EIO : 0;
    }
}

static int
read_content(const char *path, struct buffer *content)
{
    buffer_init(content, CONTENT_MAX);
    if (strcmp(path, "-") == 0)
        return read_standard(content);
    int error = disk_read_whole(path, CONTENT_MAX, &content->at, &content->length);
    content->capacity = content->length;
    return error;
}

static int
usage(void)
{
    fputs("usage: petrel mime [--convert] FILE\n", stderr);
    return EX_USAGE;
}

int
command_mime(int count, char **arguments)
{
    bool converts = count > 0 && strcmp(arguments[0], "--convert") == 0;
    if (count != 1 + converts || strcmp(arguments[count - 1], "--convert") == 0)
        return usage();
    struct buffer content;
    const char *path = arguments[count - 1];
    int code = 0, error = read_content(path, &content);
    if (error != 0) {
        fprintf(stderr, "petrel mime: cannot read '%s': %s\n", path, strerror(-error));
        code = EX_NOINPUT;
    } else if (converts) {
        code = convert(buffer_text(&content));
    } else {
        json_t *object = mime_describe(buffer_text(&content));
        json_dumpf(object, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(object);
    }
    buffer_free(&content);
    return code;
}
