/* Searches the history for the control socket. */
#include "admin/answer/trace_answer.h"

#include "admin/history/life.h"
#include "admin/history/trace.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct trace_answer {
    struct loop *loop;
    struct trace *trace;
    struct answer_events events;
    struct loop_task task;
    struct id followed; /* all 0: a search */
    bool over;          /* the search; the lines after it may come */
    bool ended;         /* the message */
};

/* --- The request ------------------------------------------------------------------ */

static bool
trace_answer_add_query(struct trace_request *r, const json_t *value)
{
    const char *query = json_string_value(value);
    if (query == NULL || r->count == TRACE_QUERIES_MAX ||
        !trace_query_read(text_of(query, json_string_length(value)),
                          &r->queries[r->count]))
        return false;
    r->count++;
    return true;
}

/* NULL, or the error. */
static const char *
trace_answer_read(struct trace_request *r, const json_t *request, struct id *followed)
{
    const json_t *queries = json_object_get(request, "q");
    json_int_t limit = json_integer_value(json_object_get(request, "limit"));
    json_t *value;
    size_t index;
    r->limit = TRACE_LIMIT_USUAL;
    r->since_ms = json_integer_value(json_object_get(request, "since_ms"));
    if (strcmp(json_string_value(json_object_get(request, "command")), "follow") == 0) {
        if (!trace_answer_add_query(r, json_object_get(request, "id")) ||
            r->queries[0].kind != TRACE_ID)
            return "invalid id";
        *followed = r->queries[0].id;
        r->follows = true;
        r->since_ms = 0;
        return NULL;
    }
    if (limit < 0 || limit > TRACE_LIMIT_MAX)
        return "invalid limit";
    if (limit > 0)
        r->limit = (size_t)limit;
    json_array_foreach (queries, index, value)
        if (!trace_answer_add_query(r, value))
            return "invalid query";
    return NULL;
}

/* --- The answer ------------------------------------------------------------------- */

static void
trace_answer_add_event(struct trace_answer *a, json_t *event)
{
    char name[ID_LENGTH + 1];
    id_format(a->followed, name);
    a->ended = a->ended || life_ends(event);
    json_object_set_new(event, "message", json_string(name));
    a->events.line(a->events.context, event);
}

static void
trace_answer_follow_line(void *context, struct id id, struct text line)
{
    struct trace_answer *a = context;
    json_t *event = life_event(line);
    if (event != NULL && !a->ended && id_compare(id, a->followed) == 0)
        trace_answer_add_event(a, event);
    else
        json_decref(event);
}

static void
trace_answer_add_life(struct trace_answer *a, json_t *life)
{
    size_t index;
    json_t *event;
    if (a->followed.time_ms == 0) {
        a->events.line(a->events.context, life);
        return;
    }
    json_array_foreach (json_object_get(life, "events"), index, event)
        trace_answer_add_event(a, json_incref(event));
    json_decref(life);
}

static void
trace_answer_end(struct trace_answer *a)
{
    a->over = true;
    if (a->followed.time_ms == 0 || a->ended)
        a->events.ended(a->events.context, NULL);
}

static void
trace_answer_turn(void *context)
{
    struct trace_answer *a = context;
    if (a->over) {
        trace_follow(a->trace, trace_answer_follow_line, a);
        trace_answer_end(a);
        return;
    }
    if (trace_step(a->trace, TRACE_STEP_BYTES) == PROGRESS_MORE) {
        loop_post(a->loop, &a->task, trace_answer_turn, a);
        return;
    }
    json_t *life = NULL;
    while (a->events.is_ready(a->events.context) &&
           (life = trace_take(a->trace)) != NULL)
        trace_answer_add_life(a, life);
    if (!a->events.is_ready(a->events.context))
        return; /* trace_answer_wake() */
    /* Lines written meanwhile. */
    if (a->followed.time_ms != 0)
        trace_follow(a->trace, trace_answer_follow_line, a);
    trace_answer_end(a);
}

void
trace_answer_wake(struct trace_answer *a, struct id id)
{
    bool is_own = id.time_ms != 0 && id_compare(id, a->followed) == 0;
    if (!a->ended && (a->over ? is_own : id.time_ms == 0))
        loop_post(a->loop, &a->task, trace_answer_turn, a);
}

struct trace_answer *
trace_answer_new(struct loop *loop, struct disk *spool, const json_t *request,
                 const struct answer_events *events, const char **why)
{
    struct trace_answer *a = memory_new(sizeof(*a));
    struct trace_request *r = memory_new(sizeof(*r));
    *why = trace_answer_read(r, request, &a->followed);
    if (*why == NULL && trace_begin(&a->trace, spool, r) < 0)
        *why = "there is no history";
    free(r);
    if (*why != NULL) {
        free(a);
        return NULL;
    }
    a->loop = loop;
    a->events = *events;
    loop_post(loop, &a->task, trace_answer_turn, a);
    return a;
}

void
trace_answer_free(struct trace_answer **answer)
{
    struct trace_answer *a = *answer;
    *answer = NULL;
    if (a == NULL)
        return;
    loop_unpost(a->loop, &a->task);
    trace_end(&a->trace);
    free(a);
}
