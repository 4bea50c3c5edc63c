/* Streams: searches in the history, test messages and the live events. */
#include "admin/api/http_streams.h"

#include "admin/history/trace.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/settings/settings.h"
#include "queue/queue.h"

#include <assert.h>
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

struct http_trace_query {
    struct trace_request request;
    int64_t now_ms;
};

/* NULL, or why the parameter is wrong. */
static const char *
http_trace_read(void *context, const struct http_parameter *p)
{
    struct http_trace_query *q = context;
    struct trace_request *r = &q->request;
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
        r->since_ms = q->now_ms - age_ms;
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
    struct http_trace_query *q = memory_new(sizeof(*q));
    q->request.limit = TRACE_LIMIT_USUAL;
    q->now_ms = loop_now_ms(routes->loop);
    const char *why = http_exchange_parameters(x, http_trace_read, q);
    if (why != NULL)
        http_answer_error(x, 400, why);
    else
        http_trace_begin(routes, x, &q->request);
    free(q);
}

/* --- Test messages --- */

static_assert((int)HTTP_ANSWER_MAX > 4 * (int)TRIAL_LINES_MAX, "as JSON they fit");

struct http_trial {
    struct http_lines lines;
    struct trial *trial;
};

/* Lines that do not fit were not read for long: the client asks for a trace. */
static void
http_trial_line(void *context, json_t *object)
{
    struct http_trial *t = context;
    http_lines_add(&t->lines, object);
}

static void
http_trial_ended(void *context, json_t *end)
{
    struct http_trial *t = context;
    trial_leave(&t->trial);
    t->lines.ended = true;
    http_lines_add(&t->lines, end);
}

static enum progress
http_trial_more(void *context, struct buffer *out)
{
    struct http_trial *t = context;
    return http_lines_more(&t->lines, out);
}

/* The message of a client that goes is on its way. */
static void
http_trial_free(void *context)
{
    struct http_trial *t = context;
    trial_leave(&t->trial);
    buffer_free(&t->lines.told);
    free(t);
}

/* NULL, or why not: nothing is overlooked here. */
static const char *
http_test_judge(const json_t *request)
{
    const char *key;
    json_t *value;
    if (!json_is_object(request))
        return "the body must be a JSON object";
    json_object_foreach((json_t *)(uintptr_t)request, key, value)
    {
        if (!trial_is_known(key))
            return "the only members are to and from";
        if (!json_is_string(value))
            return "to and from must be strings";
    }
    return NULL;
}

static void
http_test_begin(const struct http_routes *r, struct http_exchange *x,
                const json_t *request)
{
    struct http_trial *t = memory_new(sizeof(*t));
    struct answer_events events = {
        .context = t, .line = http_trial_line, .ended = http_trial_ended};
    struct trial_refusal no = {
        .is_later = true,
        .why = "no test messages are sent from here: run `petrel test`"};
    if (r->trials != NULL)
        t->trial = trial_ask(r->trials, request, &events, &no);
    if (t->trial == NULL) {
        free(t);
        http_answer_error(x, no.is_later ? 503 : 400, no.why);
        return;
    }
    log_say(r->log, LOG_LEVEL_INFO, "http", NULL, "client=%.*s: test message",
            TEXT_ARGS(x->client));
    http_lines_begin(&t->lines, x);
    http_answer_field(x, "X-Accel-Buffering", "no");
    x->stream = (struct http_stream){http_trial_more, http_trial_free, t};
}

void
http_test(const struct http_routes *r, struct http_exchange *x)
{
    json_t *request = http_exchange_body(x);
    const char *why = http_test_judge(request);
    if (why != NULL)
        http_answer_error(x, 400, why);
    else
        http_test_begin(r, x, request);
    json_decref(request);
}

/* --- Live events --- */

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

static const char *
http_events_read(void *context, const struct http_parameter *p)
{
    struct live_place *place = context;
    place->is_set = text_equal(p->name, TEXT("from")) &&
                    text_number(p->value, INT64_MAX, &place->after);
    return place->is_set ? NULL : "from is a number that an event had as its id";
}

/* The parameter, or the field of a client that connects again by itself. */
void
http_events(const struct http_routes *routes, struct http_exchange *x)
{
    struct live_place place = {.is_set = false};
    struct http_parameter last = {
        .name = TEXT("from"),
        .value = http_reader_field(x->request, TEXT("Last-Event-ID"))};
    const char *why = last.value.at != NULL ? http_events_read(&place, &last) : NULL;
    if (why == NULL)
        why = http_exchange_parameters(x, http_events_read, &place);
    if (why != NULL) {
        http_answer_error(x, 400, why);
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
