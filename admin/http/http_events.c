/* Hands the live stream to a client of HTTP. */
#include "admin/http/http_events.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

static_assert((int)HTTP_ANSWER_MAX > (int)LIVE_MORE_MAX, "a piece fits");

/* Endless: later events wake the exchange. */
static enum progress
http_events_more(void *context, struct buffer *out)
{
    (void)live_more(context, out);
    return PROGRESS_MORE;
}

static void
http_events_free(void *context)
{
    struct live_reader *reader = context;
    live_end(&reader);
}

static void
http_events_wake(void *context)
{
    http_exchange_wake(context);
}

static bool
http_events_read_number(struct text number, struct live_place *place)
{
    place->is_set = text_number(number, INT64_MAX, &place->after);
    return place->is_set;
}

/* The parameter, or the field of a client that connects again by itself. */
static bool
http_events_read(const struct http_exchange *x, struct live_place *place)
{
    struct text last = http_reader_field(x->request, TEXT("Last-Event-ID"));
    struct text rest = x->target.query;
    struct http_parameter *p = memory_new(sizeof(*p));
    bool good = last.at == NULL || http_events_read_number(last, place);
    while (good && http_parameter_next(&rest, p))
        good = text_equal(p->name, TEXT("from")) &&
               http_events_read_number(p->value, place);
    free(p);
    return good;
}

void
http_events(const struct http_routes *routes, struct http_exchange *x)
{
    struct live_place place = {.is_set = false};
    if (!http_events_read(x, &place)) {
        http_answer_error(x, 400, "from is a number that an event had as its id");
        return;
    }
    struct live_reader *reader = live_begin(routes->live, &place, http_events_wake, x);
    if (reader == NULL) {
        http_answer_error(x, 503, "too many clients read the events: close a page");
        return;
    }
    x->status = 200;
    x->type = "text/event-stream";
    http_answer_field(x, "X-Accel-Buffering", "no");
    x->stream = (struct http_stream){http_events_more, http_events_free, reader};
}
