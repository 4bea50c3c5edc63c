/* Canned responses for callers of HTTPS. */
#include "t/sim/sim_http.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { CANNED_MAX = 16 };

struct canned {
    char *url, *head, *body, *error;
};

struct http_caller {
    struct loop *loop;
    struct canned canned[CANNED_MAX];
    size_t count;
    int64_t delay_ms;
    unsigned calls;
    char url[HTTP_URL_MAX];
    struct http_call_options options;
    struct buffer fields, body;
    void (*answered)(void *context, unsigned status, struct text body);
    void *answered_context;
    bool holds, refuses;
    struct http_call *held;
};

struct http_call {
    struct http_caller *caller;
    char *url;
    char *body;
    struct loop_timer timer;
    http_called *done;
    void *context;
    void (*on_ready)(void *context);
    bool is_early;
    bool in_line;
    struct http_call *prev, *next; /* in it */
};

static struct canned *
canned_for(struct http_caller *c, const char *url)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->canned[i].url, url) == 0)
            return &c->canned[i];
    return NULL;
}

/* Its own answer, or that for all. */
static struct canned *
canned_or_any(struct http_caller *c, const char *url)
{
    struct canned *found = canned_for(c, url);
    return found != NULL ? found : canned_for(c, "*");
}

static struct canned *
canned_anew(struct http_caller *c, const char *url)
{
    struct canned *found = canned_for(c, url);
    if (found == NULL) {
        assert(c->count < CANNED_MAX);
        found = &c->canned[c->count++];
        found->url = memory_string(url);
    }
    free(found->head);
    free(found->body);
    free(found->error);
    found->head = found->body = found->error = NULL;
    return found;
}

void
sim_http_answer(struct http_caller *caller, const char *url, unsigned status, const char *type, const char *body)
{
    char head[400];
    struct canned *found = canned_anew(caller, url);
    snprintf(head, sizeof(head), "HTTP/1.1 %u x\r\n%s%s%sContent-Length: %zu\r\n\r\n", status,
             type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "", strlen(body));
    found->head = memory_string(head);
    found->body = memory_string(body);
}

void
sim_http_fail(struct http_caller *caller, const char *url, const char *error)
{
    canned_anew(caller, url)->error = memory_string(error);
}

void
sim_http_forget(struct http_caller *caller)
{
    while (caller->count > 0) {
        struct canned *canned = &caller->canned[--caller->count];
        free(canned->url);
        free(canned->head);
        free(canned->body);
        free(canned->error);
        memset(canned, 0, sizeof(*canned));
    }
}

void
sim_http_delay(struct http_caller *caller, int64_t delay_ms)
{
    caller->delay_ms = delay_ms;
}

unsigned
sim_http_calls(const struct http_caller *caller)
{
    return caller->calls;
}

const char *
sim_http_url(const struct http_caller *caller)
{
    return caller->url;
}

const struct http_call_options *
sim_http_options(const struct http_caller *caller)
{
    return &caller->options;
}

struct text
sim_http_fields(const struct http_caller *caller)
{
    return buffer_text(&caller->fields);
}

struct text
sim_http_body(const struct http_caller *caller)
{
    return buffer_text(&caller->body);
}

void
sim_http_on_answer(struct http_caller *caller,
                   void (*answered)(void *context, unsigned status, struct text body),
                   void *context)
{
    caller->answered = answered;
    caller->answered_context = context;
}

struct http_caller *
http_caller_new(const struct http_caller_settings *settings)
{
    struct http_caller *c = memory_new(sizeof(*c));
    c->loop = settings->loop;
    c->delay_ms = SIM_HTTP_DELAY_MS;
    buffer_init(&c->fields, HTTP_HEAD_MAX);
    buffer_init(&c->body, HTTP_BODY_MAX);
    return c;
}

void
http_caller_free(struct http_caller **caller)
{
    if (*caller == NULL)
        return;
    sim_http_forget(*caller);
    buffer_free(&(*caller)->fields);
    buffer_free(&(*caller)->body);
    free(*caller);
    *caller = NULL;
}

static void
call_answer(void *context)
{
    struct http_call *call = context;
    const struct canned *canned = canned_or_any(call->caller, call->url);
    struct http_result result = {.error = "cannot connect", .tried = true, .connected = canned != NULL};
    if (call->on_ready != NULL && canned != NULL) {
        call->on_ready(call->context); /* which may cancel it */
        return;
    }
    struct http_reader reader;
    struct http_limits limits = {HTTP_LINES_MAX, HTTP_HEAD_MAX, call->caller->options.body_max};
    http_reader_init(&reader, HTTP_RESPONSE, &limits);
    if (canned != NULL && canned->error != NULL) {
        result.error = canned->error;
    } else if (canned != NULL) {
        struct text head = text_from(canned->head), body = text_from(canned->body);
        enum progress progress = http_reader_add(&reader, &head);
        if (progress == PROGRESS_MORE)
            progress = http_reader_add(&reader, &body);
        result.error = progress == PROGRESS_DONE ? NULL : "too long";
        result.response = progress == PROGRESS_DONE ? &reader : NULL;
        result.head = reader.has_head ? &reader : NULL;
    }
    result.is_early = call->is_early;
    if (call->caller->refuses)
        result = (struct http_result){.error = "too many HTTPS calls wait", .refused = true};
    if (call->caller->answered != NULL)
        call->caller->answered(call->caller->answered_context,
                               result.head != NULL ? result.head->status : 0, text_from(call->body));
    call->done(call->context, &result);
    http_reader_free(&reader);
    free(call->url);
    free(call->body);
    loop_release(call->caller->loop, free, call);
}

struct http_call *
http_call_start(struct http_caller *caller, struct text url, const struct http_request *request,
                const struct http_call_options *options, http_called *done, void *context)
{
    struct http_call *call = memory_new(sizeof(*call));
    buffer_clear(&caller->fields);
    buffer_clear(&caller->body);
    if (!buffer_add(&caller->fields, request->fields) || !buffer_add(&caller->body, request->body))
        abort();
    call->caller = caller;
    call->on_ready = options->on_ready;
    call->url = text_string(url);
    call->body = text_string(request->body);
    call->done = done;
    call->context = context;
    caller->calls++;
    caller->options = *options;
    text_copy(caller->url, sizeof(caller->url), url);
    call->in_line = caller->holds;
    if (call->in_line)
        DL_APPEND(caller->held, call);
    else
        loop_timer_start(caller->loop, &call->timer, caller->delay_ms, call_answer, call);
    return call;
}

void
http_call_send(struct http_call *call, const struct http_request *request, const struct http_source *source,
               int64_t deadline_ms, int64_t stall_ms)
{
    struct http_caller *caller = call->caller;
    struct buffer piece;
    int64_t left = request->more;
    assert(call->on_ready != NULL && deadline_ms >= stall_ms && stall_ms > 0);
    call->on_ready = NULL;
    buffer_clear(&caller->fields);
    buffer_clear(&caller->body);
    if (!buffer_add(&caller->fields, request->fields))
        abort();
    buffer_init(&piece, HTTP_PIECE);
    for (bool good = true; good && left > 0; left -= (int64_t)piece.length) {
        buffer_clear(&piece);
        good = source->more(source->context, &piece) && piece.length > 0 && buffer_add(&caller->body, buffer_text(&piece));
    }
    buffer_free(&piece);
    call->is_early = left > 0; /* as far as the caller can know */
    free(call->body);
    call->body = text_string(buffer_text(&caller->body));
    loop_timer_start(caller->loop, &call->timer, caller->delay_ms, call_answer, call);
}

bool
http_call_is_sending(const struct http_call *call)
{
    return call->is_early;
}

void
sim_http_hold(struct http_caller *caller, bool holds)
{
    struct http_call *call, *next;
    caller->holds = holds;
    if (holds)
        return;
    DL_FOREACH_SAFE (caller->held, call, next) {
        DL_DELETE(caller->held, call);
        call->in_line = false;
        loop_timer_start(caller->loop, &call->timer, caller->delay_ms, call_answer, call);
    }
}

void
sim_http_refuse(struct http_caller *caller, bool refuses)
{
    caller->refuses = refuses;
}

bool
http_call_is_in_line(const struct http_call *call)
{
    return call->in_line;
}

void
http_call_cancel(struct http_call **call)
{
    struct http_call *old = *call;
    *call = NULL;
    if (old == NULL)
        return;
    loop_timer_stop(old->caller->loop, &old->timer);
    if (old->in_line)
        DL_DELETE(old->caller->held, old);
    free(old->url);
    free(old->body);
    loop_release(old->caller->loop, free, old);
}
