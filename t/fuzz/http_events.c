/* Fuzz target: where a reader of the live stream wants to go on, by its query and by Last-Event-ID. It is refused, or
 * hears each event behind that place once. The first line is the query, the second the field. */
#include "admin/api/http_streams.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include "t/support/must.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS = 5, VALUE_MAX = 300 };

static void
ignore(void *context)
{
    (void)context;
}

static void
tell(struct event_hub *hub, unsigned number)
{
    event_tell(hub, &(struct event){.kind = EVENT_ENDED, .id = {.time_ms = number}, .text = TEXT("removed")});
}

/* Numbers rise. */
static void
check_stream(struct text stream)
{
    struct text line;
    uint64_t last = 0, number;
    while (text_cut(&stream, '\n', &line))
        if (text_starts(line, TEXT("id: "))) {
            must(text_number(text_after(line, 4), UINT64_MAX, &number) && number > last);
            last = number;
        }
}

static void
ask(const struct http_routes *routes, struct http_exchange *x, struct event_hub *hub)
{
    http_events(routes, x);
    must(x->status == 200 || x->status == 400);
    must((x->status == 200) == (x->stream.more != NULL));
    if (x->status != 200)
        return;
    for (unsigned i = 0; i < EVENTS; i++)
        tell(hub, 100 + i);
    struct buffer stream;
    buffer_init(&stream, HTTP_ANSWER_MAX);
    (void)x->stream.more(x->stream.context, &stream);
    check_stream(buffer_text(&stream));
    buffer_free(&stream);
    x->stream.free(x->stream.context);
}

/* False: the server would have refused it. */
static bool
read_request(struct http_reader *reader, struct http_exchange *x, struct text query, struct text field)
{
    static const struct http_limits limits = {10, 4000, 0};
    const char *why;
    struct buffer head;
    buffer_init(&head, 4000);
    http_reader_init(reader, HTTP_REQUEST, &limits);
    bool good = buffer_format(&head, "GET /events?%.*s HTTP/1.1\r\nHost: a\r\n", TEXT_ARGS(text_before(query, VALUE_MAX)));
    if (field.at != NULL)
        good = good && buffer_format(&head, "Last-Event-ID: %.*s\r\n", TEXT_ARGS(text_before(field, VALUE_MAX)));
    good = good && buffer_add(&head, TEXT("\r\n"));
    struct text input = buffer_text(&head);
    good = good && http_reader_add(reader, &input) == PROGRESS_DONE && http_target_read(reader->target, &x->target, &why) == 0;
    buffer_free(&head);
    return good;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text field = text_of(data, size), query;
    struct loop *loop = loop_new();
    struct event_hub *hub = event_hub_new(NULL);
    struct live *live = live_new(&(struct live_setup){.loop = loop, .events = hub});
    struct http_routes routes = {.loop = loop, .live = live};
    struct http_exchange *x = memory_new(sizeof(*x));
    struct http_reader reader;
    /* So that some are kept. */
    struct live_reader *other = live_begin(live, &(struct live_place){.is_set = false}, ignore, NULL);
    for (unsigned i = 0; i < EVENTS; i++)
        tell(hub, 1 + i);
    (void)text_cut(&field, '\n', &query);
    x->request = &reader;
    x->wake = ignore;
    buffer_init(&x->body, HTTP_ANSWER_MAX);
    buffer_init(&x->fields, HTTP_FIELDS_MAX);
    if (read_request(&reader, x, query, field))
        ask(&routes, x, hub);
    http_reader_free(&reader);
    buffer_free(&x->body);
    buffer_free(&x->fields);
    free(x);
    live_end(&other);
    live_free(&live);
    event_hub_free(&hub);
    loop_free(&loop);
    return 0;
}
