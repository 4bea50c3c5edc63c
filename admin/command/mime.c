/* Tells people and scripts how Petrel reads a message. */
#include "admin/command/mime.h"

#include "admin/command/mime_part.h"
#include "base/buffer.h"
#include "base/disk/disk.h"
#include "mime/downgrade.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { CONTENT_MAX = 1 << 30, READ_SIZE = 65536 };

static struct downgrade *
mime_scan(struct text content, enum downgrade_verdict *verdict)
{
    struct downgrade_way way = {.to_8bit = false};
    struct downgrade *d = downgrade_new(&way);
    downgrade_scan(d, content);
    *verdict = downgrade_scan_end(d);
    return d;
}

static bool
mime_is_forbidden(enum downgrade_verdict verdict)
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
    struct downgrade *d = mime_scan(content, &verdict);
    json_t *object = json_object();
    json_object_set_new(object, "verdict", json_string(names[verdict]));
    if (mime_is_forbidden(verdict))
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
    json_t *object = json_object();
    json_object_set_new(object, "size", json_integer((json_int_t)content.length));
    json_object_set_new(object, "to_7bit", describe_conversion(content));
    json_object_set_new(object, "message", mime_part_describe(content));
    return object;
}

static void
print(void *context, struct text bytes)
{
    fwrite(bytes.at, 1, bytes.length, context);
}

static int
mime_convert(struct text content)
{
    enum downgrade_verdict verdict;
    struct downgrade *d = mime_scan(content, &verdict);
    if (mime_is_forbidden(verdict))
        fprintf(stderr, "petrel mime: not converted: %s\n", downgrade_reason_text(d));
    if (verdict == DOWNGRADE_NOT_NEEDED)
        print(stdout, content);
    if (verdict == DOWNGRADE_CONVERTIBLE) {
        downgrade_start(d, print, stdout);
        downgrade_add(d, content);
        downgrade_end(d);
    }
    downgrade_free(&d);
    return mime_is_forbidden(verdict) ? EX_DATAERR : 0;
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
mime_read_content(const char *path, struct buffer *content)
{
    buffer_init(content, CONTENT_MAX);
    if (strcmp(path, "-") == 0)
        return read_standard(content);
    int error = disk_read_whole(path, CONTENT_MAX, &content->at, &content->length);
    content->capacity = content->length;
    return error;
}

static int
mime_usage(void)
{
    fputs("usage: petrel mime [--convert] FILE\n", stderr);
    return EX_USAGE;
}

int
command_mime(int count, char **arguments)
{
    bool converts = count > 0 && strcmp(arguments[0], "--convert") == 0;
    if (count != 1 + converts || strcmp(arguments[count - 1], "--convert") == 0)
        return mime_usage();
    struct buffer content;
    const char *path = arguments[count - 1];
    int code = 0, error = mime_read_content(path, &content);
    if (error != 0) {
        fprintf(stderr, "petrel mime: cannot read '%s': %s\n", path, strerror(-error));
        code = EX_NOINPUT;
    } else if (converts) {
        code = mime_convert(buffer_text(&content));
    } else {
        json_t *object = mime_describe(buffer_text(&content));
        json_dumpf(object, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(object);
    }
    buffer_free(&content);
    return code;
}
