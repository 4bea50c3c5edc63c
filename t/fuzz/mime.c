/* Fuzz target: the structure of messages. Every byte is told once, in order, in parts
 * that begin and end like brackets, and nothing depends on how the bytes were cut. The
 * output of `petrel mime` is JSON, with each part within the one that holds it. */
#include "admin/command/mime.h"

#include "t/support/must.h"
#include "t/support/structure_kit.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t
offset(json_t *part, const char *member)
{
    json_t *value = json_object_get(part, member);
    must(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

/* Returns how many parts it is. */
static size_t
check_part(json_t *part, uint64_t from, uint64_t to, unsigned depth)
{
    uint64_t header = offset(part, "header_at"), body = offset(part, "body_at");
    uint64_t end = offset(part, "end_at"), last = body;
    size_t i, count = 1;
    json_t *inner;
    must(from <= header && header <= body && body <= end && end <= to);
    must(depth <= STRUCTURE_DEPTH_MAX);
    json_array_foreach (json_object_get(part, "parts"), i, inner) {
        count += check_part(inner, last, end, depth + 1);
        last = offset(inner, "end_at");
    }
    return count;
}

static void
check_description(struct text content, unsigned parts)
{
    json_t *described = mime_describe(content);
    char *dumped = json_dumps(described, 0);
    must(dumped != NULL);
    json_t *back = json_loads(dumped, 0, NULL);
    must(back != NULL && json_equal(back, described));
    must(check_part(json_object_get(back, "message"), 0, content.length, 0) == parts);
    json_decref(back);
    free(dumped);
    json_decref(described);
}

/* The first byte is the size of the pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct text content = text_of(data + 1, size - 1);
    size_t piece = (size_t)data[0] % 32 + 1;
    struct trace whole = trace_of(content, 0, content.length);
    struct trace cut = trace_of(content, data[0], piece);
    must(!whole.broken && !cut.broken);
    must(whole.begun <= STRUCTURE_PARTS_MAX);
    must(text_equal(buffer_text(&whole.text), buffer_text(&cut.text)));
    if (data[0] >= 0x80)
        check_description(content, (unsigned)whole.begun);
    trace_free(&whole);
    trace_free(&cut);
    return 0;
}
