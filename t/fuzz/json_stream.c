/* Fuzz target: JSON in a stream. Cuts change nothing, and texts are whole characters. */
#include "base/json_stream.h"

#include "base/crc.h"
#include "t/support/must.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The events, but for the cuts of strings. */
struct fuzz_events {
    uint32_t crc;
    size_t texts;
};

static bool
note(void *context, enum json_event event, struct text text)
{
    struct fuzz_events *e = context;
    unsigned char kind = (unsigned char)event;
    must(text.length <= JSON_STREAM_PIECE && text_is_utf8(text) && memchr(text.at, 0, text.length) == NULL);
    if (event != JSON_EVENT_PIECE)
        e->crc = crc_add(e->crc, &kind, 1);
    e->crc = crc_add(e->crc, text.at, text.length);
    e->texts += text.length;
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct json_stream whole, cut;
    struct fuzz_events one = {0}, other = {0};
    struct text rest = text_of(data, size);
    json_stream_start(&whole, note, &one);
    json_stream_start(&cut, note, &other);
    enum progress first = json_stream_add(&whole, rest), second = PROGRESS_MORE;
    for (size_t i = 1; rest.length > 0 && second != PROGRESS_BAD; rest = text_after(rest, i), i = i % 7 + 1)
        second = json_stream_add(&cut, text_before(rest, i));
    must(size == 0 || first == second);
    must(json_stream_end(&whole) == json_stream_end(&cut));
    must((whole.error == NULL) == (cut.error == NULL));
    must(one.crc == other.crc && one.texts == other.texts && one.texts <= size);
    must(whole.depth <= JSON_STREAM_DEPTH_MAX);
    return 0;
}
