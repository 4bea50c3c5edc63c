/* Fuzz target: any message as JSON. It is the JSON of RFC 8259 in UTF-8, and the same when it is written again. */
#include "queue/poster/poster_json.h"

#include "t/support/must.h"

#include <jansson.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
read_input(void *context, int64_t at, struct buffer *out)
{
    const struct text *t = context;
    return buffer_add(out, text_before(text_after(*t, (size_t)at), out->limit - out->length));
}

static void
write_all(struct poster_json *j, size_t size, struct buffer *all)
{
    while (!poster_json_is_over(j)) {
        struct buffer piece;
        buffer_init(&piece, size);
        must(poster_json_next(j, &piece) && buffer_add(all, buffer_text(&piece)));
        buffer_free(&piece);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text t = text_of((const char *)data, size);
    struct poster_json j = {.read = read_input, .context = &t, .size = (int64_t)size, .envelope = TEXT("\"id\":\"x\","), .header = t};
    struct buffer once, again;
    buffer_init(&once, SIZE_MAX / 2);
    buffer_init(&again, SIZE_MAX / 2);
    poster_json_begin(&j);
    write_all(&j, 1000, &once);
    poster_json_rewind(&j);
    write_all(&j, 16384, &again);
    must(text_equal(buffer_text(&once), buffer_text(&again)));
    json_t *object = json_loadb(once.at, once.length, 0, NULL);
    must(object != NULL);
    json_decref(object);
    poster_json_free(&j);
    buffer_free(&once);
    buffer_free(&again);
    return 0;
}
