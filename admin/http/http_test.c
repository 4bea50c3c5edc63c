/* Sends a test message for a client of HTTP, and hands it the events. */
#include "admin/http/http_test.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    struct text body = buffer_text(&x->request->body);
    json_t *request = json_loadb(body.length > 0 ? body.at : "", body.length,
                                 JSON_REJECT_DUPLICATES, NULL);
    const char *why = http_test_judge(request);
    if (why != NULL)
        http_answer_error(x, 400, why);
    else
        http_test_begin(r, x, request);
    json_decref(request);
}
