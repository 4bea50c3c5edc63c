/* Searches the history for a client of HTTP. */
#include "admin/http/http_trace.h"

#include "admin/history/trace.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/settings/settings.h"
#include "queue/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A piece of an answer is half a millisecond of work. */
enum { TRACE_PIECE = 64 * 1024 };

struct http_search {
    struct trace *trace;
    bool begun, found;
};

static void
http_trace_free(void *context)
{
    struct http_search *s = context;
    trace_end(&s->trace);
    free(s);
}

/* One life; one that does not fit into a piece loses its events. */
static bool
http_trace_add(struct http_search *s, json_t *life, struct buffer *out)
{
    char *text = json_dumps(life, JSON_COMPACT);
    if (text != NULL && strlen(text) > HTTP_ANSWER_MAX / 2) {
        json_object_set_new(
            life, "more",
            json_integer((json_int_t)json_array_size(json_object_get(life, "events"))));
        json_object_set_new(life, "events", json_array());
        free(text);
        text = json_dumps(life, JSON_COMPACT);
    }
    json_decref(life);
    bool good = text != NULL && (!s->found || buffer_add_byte(out, ',')) &&
                buffer_add(out, text_from(text));
    free(text);
    s->found = true;
    return good;
}

static enum progress
http_trace_more(void *context, struct buffer *out)
{
    struct http_search *s = context;
    if (!s->begun) {
        s->begun = true;
        return buffer_add(out, TEXT("[")) ? PROGRESS_MORE : PROGRESS_BAD;
    }
    if (trace_step(s->trace, TRACE_PIECE) == PROGRESS_MORE)
        /* White space, so that a long search shows signs of life. */
        return buffer_add_byte(out, ' ') ? PROGRESS_MORE : PROGRESS_BAD;
    json_t *life = trace_take(s->trace);
    if (life != NULL)
        return http_trace_add(s, life, out) ? PROGRESS_MORE : PROGRESS_BAD;
    return buffer_add(out, TEXT("]\n")) ? PROGRESS_DONE : PROGRESS_BAD;
}

/* NULL, or why the parameter is wrong. */
static const char *
http_trace_read(struct trace_request *r, const struct http_parameter *p, int64_t now_ms)
{
    uint64_t number;
    int64_t age_ms;
    if (text_equal(p->name, TEXT("q"))) {
        if (r->count == TRACE_QUERIES_MAX ||
            !trace_query_read(p->value, &r->queries[r->count]))
            return "q is empty, too long, or there too often";
        r->count++;
    } else if (text_equal(p->name, TEXT("since"))) {
        if (!settings_parse_duration(p->value, &age_ms))
            return "since is a time such as 30m or 2d";
        r->since_ms = now_ms - age_ms;
    } else if (text_equal(p->name, TEXT("limit"))) {
        if (!text_number(p->value, TRACE_LIMIT_MAX, &number) || number == 0)
            return "limit is 1 to 500";
        r->limit = (size_t)number;
    } else {
        return "a parameter that is not known";
    }
    return NULL;
}

static void
http_trace_begin(const struct http_routes *routes, struct http_exchange *x,
                 const struct trace_request *request)
{
    struct http_search *s = memory_new(sizeof(*s));
    int error =
        trace_begin(&s->trace, queue_disk(manager_queue(routes->manager)), request);
    if (error < 0) {
        free(s);
        http_answer_error(x, error == -ENOENT ? 404 : 500, "there is no history");
        return;
    }
    x->status = 200;
    x->type = "application/json";
    x->stream = (struct http_stream){http_trace_more, http_trace_free, s};
}

void
http_trace(const struct http_routes *routes, struct http_exchange *x)
{
    struct trace_request *request = memory_new(sizeof(*request));
    struct http_parameter *p = memory_new(sizeof(*p));
    struct text rest = x->target.query;
    const char *why = NULL;
    request->limit = TRACE_LIMIT_USUAL;
    while (why == NULL && http_parameter_next(&rest, p))
        why = http_trace_read(request, p, loop_now_ms(routes->loop));
    if (why != NULL)
        http_answer_error(x, 400, why);
    else
        http_trace_begin(routes, x, request);
    free(p);
    free(request);
}
