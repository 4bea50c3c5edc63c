/* Answers the operator's questions: a line of JSON each way. */
#include "admin/control/control_session.h"

#include "admin/control/cluster_answer.h"
#include "admin/answer/list_answer.h"
#include "admin/answer/message_answer.h"
#include "admin/answer/operation.h"
#include "admin/answer/request.h"
#include "admin/control/shorten.h"
#include "admin/answer/trace_answer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue_operator.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    PULSE_MS = 1000, /* progress that a person watches */
    NAME_MAX_BYTES = 32
};

struct control_session {
    struct control_session *prev, *next;
    struct control_service *service;
    struct control_transport transport;
    json_t *request; /* that an operation works on; NULL: none does */
    struct operation *operation;
    bool adopting; /* a slice */
    struct trace_answer *trace;
    struct list_answer *list;
    struct message_answer *message;
    struct cluster_answer *cluster;
    struct trial *trial;
    char awaits[NAME_MAX_BYTES]; /* a question whose answer comes later; "": none */
    struct loop_timer pulse;
};

/* NULL: some text in it is no UTF-8. Takes the object. */
static char *
control_session_write(const struct control_session *s, json_t *object)
{
    if (s->transport.line_max > 0)
        return shorten_write(object, s->transport.line_max);
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

/* The bytes of the line. */
static size_t
control_session_put(struct control_session *s, json_t *object)
{
    char *line = control_session_write(s, object);
    size_t length = line ? strlen(line) : 0;
    s->transport.line(s->transport.context,
                      line ? text_from(line)
                           : TEXT("{\"ok\":false,\"error\":\"cannot be written as "
                                  "JSON\"}"));
    free(line);
    return length;
}

void
control_session_reply(struct control_session *s, json_t *object)
{
    (void)control_session_put(s, object);
}

static void
control_session_refuse(struct control_session *s, const char *why)
{
    control_session_reply(s, questions_refuse(why));
}

/* --- Requests of several turns ---------------------------------------------------- */

bool
control_session_is_busy(const struct control_session *s)
{
    return s->operation != NULL || s->adopting || s->trace != NULL || s->list != NULL ||
           s->message != NULL || s->cluster != NULL || s->trial != NULL ||
           s->awaits[0] != '\0';
}

static void
control_session_on_pulse(void *context)
{
    struct control_session *s = context;
    uint64_t seen = s->operation ? operation_seen(s->operation)
                    : s->list    ? list_answer_seen(s->list)
                    : s->cluster ? cluster_answer_seen(s->cluster)
                                 : 0;
    loop_timer_start(s->service->loop, &s->pulse, PULSE_MS, control_session_on_pulse,
                     s);
    if (s->transport.is_idle(s->transport.context))
        control_session_reply(s, json_pack("{s:I}", "seen", (json_int_t)seen));
}

static void
control_session_begin(struct control_session *s)
{
    loop_timer_start(s->service->loop, &s->pulse, PULSE_MS, control_session_on_pulse,
                     s);
}

/* The session may be gone afterwards. */
static void
control_session_end(struct control_session *s)
{
    loop_timer_stop(s->service->loop, &s->pulse);
    s->transport.done(s->transport.context);
}

static bool
control_session_is_ready(void *context)
{
    const struct control_session *s = context;
    return !s->transport.is_full(s->transport.context);
}

static void
control_session_on_line(void *context, json_t *object)
{
    struct control_session *s = context;
    size_t length = control_session_put(s, object);
    if (s->list != NULL)
        list_answer_count(s->list, length);
}

/* One of these is under way at most. */
static void
control_session_drop(struct control_session *s)
{
    operation_free(&s->operation);
    trace_answer_free(&s->trace);
    list_answer_free(&s->list);
    message_answer_free(&s->message);
    cluster_answer_free(&s->cluster);
    trial_leave(&s->trial);
    json_decref(s->request);
    s->request = NULL;
}

static void
control_session_on_ended(void *context, json_t *end)
{
    struct control_session *s = context;
    control_session_reply(
        s, end != NULL ? end : json_pack("{s:b,s:b}", "ok", true, "end", true));
    control_session_drop(s);
    control_session_end(s);
}

static struct answer_events
control_session_events(struct control_session *s)
{
    return (struct answer_events){.context = s,
                                  .line = control_session_on_line,
                                  .is_ready = control_session_is_ready,
                                  .ended = control_session_on_ended};
}

/* The answer has begun, or why says why it has not. */
static void
control_session_begin_or_refuse(struct control_session *s, bool has_begun,
                                const char *why)
{
    if (has_begun)
        control_session_begin(s);
    else
        control_session_refuse(s, why);
}

/* --- Slices ----------------------------------------------------------------------- */

static void
control_session_on_adopted(void *context, const char *error, unsigned messages)
{
    struct control_session *s = context;
    s->adopting = false;
    control_session_reply(s, error ? questions_refuse(error)
                                   : json_pack("{s:b,s:b,s:I}", "ok", true, "end", true,
                                               "messages", (json_int_t)messages));
    control_session_end(s);
}

static void
control_session_adopt(struct control_session *s, json_t *request)
{
    const json_t *slice = json_object_get(request, "slice");
    const char *error = "invalid slice";
    if (json_is_integer(slice) && json_integer_value(slice) >= 0 &&
        json_integer_value(slice) < ID_SLICES_MAX)
        error = queue_adopt(manager_queue(s->service->manager),
                            (unsigned)json_integer_value(slice),
                            control_session_on_adopted, s);
    s->adopting = error == NULL;
    control_session_begin_or_refuse(s, s->adopting, error);
}

/* --- Operations ------------------------------------------------------------------- */

static void
control_session_on_told(void *context, struct id id, int code, const char *text)
{
    json_t *line = operation_line(id, code, text);
    if (strcmp(text, OPERATION_MISSING) == 0)
        json_object_set_new(line, "missing", json_true());
    control_session_reply(context, line);
}

static void
control_session_on_operated(void *context, const char *error)
{
    control_session_on_ended(context, error != NULL ? questions_refuse(error) : NULL);
}

static void
control_session_operate(struct control_session *s, json_t *request)
{
    struct operation_events events = {.context = s,
                                      .told = control_session_on_told,
                                      .is_ready = control_session_is_ready,
                                      .ended = control_session_on_operated};
    struct control_service *c = s->service;
    struct filter *filter = memory_new(sizeof(*filter));
    enum manager_verb verb;
    const char *error = request_read(request, &verb, filter);
    if (error) {
        control_session_refuse(s, error);
    } else {
        s->request = json_incref(request);
        if (verb == MANAGER_RETRY)
            questions_look_for_tokens(c->questions);
        s->operation =
            operation_new(c->loop, c->log, c->manager, verb, filter, &events);
        control_session_begin(s);
    }
    free(filter);
}

/* --- Answers of several turns ------------------------------------------------------ */

static void
control_session_trace(struct control_session *s, json_t *request)
{
    struct control_service *c = s->service;
    struct answer_events events = control_session_events(s);
    const char *why;
    s->trace = trace_answer_new(c->loop, queue_disk(manager_queue(c->manager)), request,
                                &events, &why);
    control_session_begin_or_refuse(s, s->trace != NULL, why);
}

static void
control_session_list(struct control_session *s, json_t *request)
{
    struct control_service *c = s->service;
    struct answer_events events = control_session_events(s);
    const char *why;
    s->list = list_answer_new(c->loop, c->manager, c->questions, json_incref(request),
                              &events, &why);
    control_session_begin_or_refuse(s, s->list != NULL, why);
}

static void
control_session_show(struct control_session *s, json_t *request)
{
    struct control_service *c = s->service;
    struct answer_events events = control_session_events(s);
    const char *why;
    s->message =
        message_answer_new(c->loop, c->manager, c->questions, request, &events, &why);
    control_session_begin_or_refuse(s, s->message != NULL, why);
}

static void
control_session_try(struct control_session *s, json_t *request)
{
    struct answer_events events = control_session_events(s);
    struct trial_refusal refusal = {
        .why = "no test messages are sent from here: run `petrel test`"};
    if (s->service->trials != NULL)
        s->trial = trial_ask(s->service->trials, request, &events, &refusal);
    control_session_begin_or_refuse(s, s->trial != NULL, refusal.why);
}

static void
control_session_ask_all(struct control_session *s, json_t *request)
{
    struct answer_events events = control_session_events(s);
    const char *why;
    s->cluster = cluster_answer_new(s->service, request, &events, &why);
    control_session_begin_or_refuse(s, s->cluster != NULL, why);
}

/* --- All of them ------------------------------------------------------------------- */

/* An answer in this turn, or later by control_session_answer_all(). */
static void
control_session_ask(struct control_session *s, json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "command"));
    json_t *answer = questions_answer(s->service->questions, request);
    if (answer != NULL) {
        control_session_reply(s, answer);
        return;
    }
    text_copy(s->awaits, sizeof(s->awaits), text_from(name));
    control_session_begin(s);
}

/* Commands of several turns; the rest is for questions_answer(). */
static const struct control_row {
    const char *command;
    void (*begin)(struct control_session *s, json_t *request);
    bool for_siblings;
} control_rows[] = {
    {"hold",    control_session_operate, true },
    {"release", control_session_operate, true },
    {"retry",   control_session_operate, true },
    {"bounce",  control_session_operate, false},
    {"rm",      control_session_operate, false},
    {"adopt",   control_session_adopt,   false},
    {"list",    control_session_list,    true },
    {"show",    control_session_show,    true },
    {"trace",   control_session_trace,   true },
    {"follow",  control_session_trace,   false},
    {"test",    control_session_try,     false},
    {"status",  control_session_ask,     true },
    {"summary", control_session_ask,     true },
    {"sites",   control_session_ask,     true },
    {"state",   control_session_ask,     true },
    {"states",  control_session_ask,     true },
    {"why",     control_session_ask,     true },
};

static const struct control_row *
control_row_find(const char *command)
{
    static const struct control_row others = {"", control_session_ask, false};
    for (size_t i = 0; i < sizeof(control_rows) / sizeof(control_rows[0]); i++)
        if (strcmp(control_rows[i].command, command) == 0)
            return &control_rows[i];
    return &others;
}

/* Once a question was passed on, it stays where it is. */
static const char *
control_session_forbids(const struct control_session *s, const struct control_row *row,
                        bool is_for_all)
{
    if (s->transport.is_sibling && is_for_all)
        return "a question of another host is not passed on";
    if (s->transport.is_sibling && !row->for_siblings)
        return "other hosts of the group may not ask for that: run the command on the "
               "host itself";
    return NULL;
}

static bool
control_session_wants_http(struct control_session *s, const char *command)
{
    return s->transport.http != NULL && strcmp(command, "http") == 0 &&
           s->transport.http(s->transport.context);
}

bool
control_session_take(struct control_session *s, struct text line)
{
    json_t *request = json_loadb(line.at, line.length, JSON_REJECT_DUPLICATES, NULL);
    const char *name = json_string_value(json_object_get(request, "command"));
    const struct control_row *row = control_row_find(name ? name : "");
    bool is_for_all = json_is_true(json_object_get(request, "cluster"));
    char why[REQUEST_TYPES_WHY_MAX];
    const char *forbidden = control_session_forbids(s, row, is_for_all);
    if (!request_types_check(request, why))
        control_session_refuse(s, why);
    else if (forbidden != NULL)
        control_session_refuse(s, forbidden);
    else if (is_for_all)
        control_session_ask_all(s, request);
    else if (!control_session_wants_http(s, name ? name : ""))
        row->begin(s, request);
    json_decref(request);
    return !control_session_is_busy(s);
}

void
control_session_resume(struct control_session *s)
{
    if (s->operation)
        operation_resume(s->operation);
    if (s->trace)
        trace_answer_wake(s->trace, (struct id){0});
    if (s->list)
        list_answer_wake(s->list);
    if (s->cluster)
        cluster_answer_wake(s->cluster);
}

void
control_session_answer_all(struct control_service *c, const char *name, json_t *answer)
{
    struct control_session *s, *next;
    DL_FOREACH_SAFE (c->sessions, s, next)
        if (strcmp(s->awaits, name) == 0) {
            s->awaits[0] = '\0';
            control_session_reply(s, json_incref(answer));
            control_session_end(s);
        }
    json_decref(answer);
}

void
control_session_part(struct control_service *c)
{
    struct control_session *s, *next;
    c->cluster = NULL;
    DL_FOREACH_SAFE (c->sessions, s, next)
        if (s->cluster != NULL) {
            control_session_on_ended(s, questions_refuse("the daemon stops"));
        }
}

void
control_session_wake_all(struct control_service *c, struct id id)
{
    struct control_session *s;
    DL_FOREACH (c->sessions, s)
        if (s->trace != NULL)
            trace_answer_wake(s->trace, id);
}

struct control_session *
control_session_new(struct control_service *service,
                    const struct control_transport *transport)
{
    struct control_session *s = memory_new(sizeof(*s));
    s->service = service;
    s->transport = *transport;
    DL_APPEND(service->sessions, s);
    return s;
}

void
control_session_free(struct control_session **session)
{
    struct control_session *s = *session;
    if (s == NULL)
        return;
    *session = NULL;
    DL_DELETE(s->service->sessions, s);
    control_session_drop(s);
    if (s->adopting)
        queue_adopt_ignore(manager_queue(s->service->manager), s);
    loop_timer_stop(s->service->loop, &s->pulse);
    loop_release(s->service->loop, free, s);
}
