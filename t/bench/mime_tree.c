/* mime_tree: how the structure of a message is read, and its form for older next hops.
 *
 *   mime_tree FILE            {size, to_7bit, message} as JSON. to_7bit is {verdict, reason,
 *                             size_max}; message is the part {type, encoding, header_at,
 *                             body_at, end_at, problems, parts} with those in it
 *   mime_tree --convert FILE  the content as a hop without 8BITMIME would get it
 * FILE may be "-". Exit code 65: it may not be converted. */
#include "base/buffer.h"
#include "base/log/log.h"
#include "mime/parts/downgrade.h"
#include "mime/parts/structure.h"
#include "t/support/structure_kit.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { CONTENT_MAX = 1 << 30, READ_SIZE = 65536 };

static const char *const verdicts[] = {[DOWNGRADE_NOT_NEEDED] = "not needed",
                                       [DOWNGRADE_CONVERTIBLE] = "convertible",
                                       [DOWNGRADE_FORBIDDEN] = "forbidden",
                                       [DOWNGRADE_FRAGMENT] = "forbidden"};

static struct downgrade *
scan(struct text content, enum downgrade_verdict *verdict)
{
    struct downgrade_way way = {.to_8bit = false};
    struct downgrade *d = downgrade_new(&way);
    downgrade_scan(d, content);
    *verdict = downgrade_scan_end(d);
    return d;
}

static json_t *
describe_conversion(struct text content)
{
    enum downgrade_verdict verdict;
    struct downgrade *d = scan(content, &verdict);
    json_t *object = json_pack("{ss}", "verdict", verdicts[verdict]);
    if (verdict == DOWNGRADE_FORBIDDEN || verdict == DOWNGRADE_FRAGMENT)
        json_object_set_new(object, "reason", json_string(downgrade_reason_text(d)));
    if (verdict == DOWNGRADE_CONVERTIBLE)
        json_object_set_new(object, "size_max",
                            json_integer((json_int_t)downgrade_size_max(d)));
    downgrade_free(&d);
    return object;
}

/* --- The tree --------------------------------------------------------------------- */

struct tree {
    json_t *parts[STRUCTURE_DEPTH_MAX + 1]; /* the open ones, the message first */
};

static void
begin(struct tree *t, const struct structure_event *e)
{
    json_t *part = json_pack("{sIs[]s[]}", "header_at", (json_int_t)e->offset,
                             "problems", "parts");
    if (e->part->depth > 0)
        json_array_append_new(json_object_get(t->parts[e->part->depth - 1], "parts"),
                              part);
    t->parts[e->part->depth] = part;
}

static void
note_header(json_t *part, const struct structure_part *from)
{
    struct buffer type, clean;
    buffer_init(&type, CONTENT_MAX);
    buffer_init(&clean, SIZE_MAX / 2);
    bool good = buffer_format(&type, "%.*s/%.*s", TEXT_ARGS(from->type->type),
                              TEXT_ARGS(from->type->subtype)) &&
                log_escape(buffer_text(&type), &clean);
    assert(good);
    json_object_set_new(part, "type", json_stringn(clean.at, clean.length));
    json_object_set_new(part, "encoding",
                        json_string(structure_encoding_name(from->encoding)));
    json_object_set_new(part, "body_at", json_integer((json_int_t)from->body_at));
    buffer_free(&type);
    buffer_free(&clean);
}

static void
on_event(void *context, const struct structure_event *e)
{
    struct tree *t = context;
    json_t *part = t->parts[e->part->depth];
    if (e->kind == STRUCTURE_BEGIN)
        begin(t, e);
    else if (e->kind == STRUCTURE_HEADER)
        note_header(part, e->part);
    else if (e->kind == STRUCTURE_END)
        json_object_set_new(part, "end_at", json_integer((json_int_t)e->offset));
    else if (e->kind == STRUCTURE_PROBLEM)
        json_array_append_new(json_object_get(part, "problems"),
                              json_string(structure_problem_text(e->problem)));
}

static json_t *
describe(struct text content)
{
    struct tree tree = {.parts = {NULL}};
    struct structure *s = structure_new(on_event, &tree);
    structure_add(s, content);
    structure_end(s);
    structure_free(&s);
    return json_pack("{sIsoso}", "size", (json_int_t)content.length, "to_7bit",
                     describe_conversion(content), "message", tree.parts[0]);
}

/* --- The command ------------------------------------------------------------------ */

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
    int code = 0;
    if (verdict == DOWNGRADE_NOT_NEEDED) {
        print(stdout, content);
    } else if (verdict == DOWNGRADE_CONVERTIBLE) {
        downgrade_start(d, print, stdout);
        downgrade_add(d, content);
        downgrade_end(d);
    } else {
        fprintf(stderr, "mime_tree: not converted: %s\n", downgrade_reason_text(d));
        code = EX_DATAERR;
    }
    downgrade_free(&d);
    return code;
}

static bool
read_whole(FILE *file, struct buffer *content)
{
    char *to;
    size_t length = 1;
    while (length > 0 && (to = buffer_reserve(content, READ_SIZE)) != NULL)
        content->length += length = fread(to, 1, READ_SIZE, file);
    return length == 0 && !ferror(file);
}

int
main(int argc, char **argv)
{
    bool converts = argc > 1 && strcmp(argv[1], "--convert") == 0;
    struct buffer content;
    int code = 0;
    if (argc != 2 + converts)
        return fputs("usage: mime_tree [--convert] FILE\n", stderr), EX_USAGE;
    const char *path = argv[1 + converts];
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    buffer_init(&content, CONTENT_MAX);
    if (file == NULL || !read_whole(file, &content)) {
        perror(path);
        code = EX_NOINPUT;
    } else if (converts) {
        code = convert(buffer_text(&content));
    } else {
        json_t *object = describe(buffer_text(&content));
        json_dumpf(object, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(object);
    }
    buffer_free(&content);
    return code;
}
