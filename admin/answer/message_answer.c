/* Looks for a message in the queue, then in the history. */
#include "admin/answer/message_answer.h"

#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/history/life.h"
#include "admin/history/trace.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

struct message_answer {
    struct loop *loop;
    struct manager *manager;
    struct questions *questions;
    struct answer_events events;
    struct loop_task task;
    struct id id;
    char name[ID_LENGTH + 1];
    bool is_why;
    json_t *listing;     /* NULL: it is not in the queue */
    struct trace *trace; /* NULL: not begun */
};

/* --- In the queue ------------------------------------------------------------------ */

static json_t *
message_answer_of(const struct message_answer *a, const struct envelope *e)
{
    json_t *listing = questions_listing(a->questions, e, a->is_why);
    const char *place = json_field_string(listing, "queue_name");
    char note[QUEUE_NOTE_MAX];
    if (strcmp(place, "gone") == 0) {
        json_decref(listing);
        return NULL;
    }
    if (place[0] == '\0')
        json_object_set_new(listing, "queue_name", json_string("incoming"));
    if (e->delivery.held &&
        queue_note(manager_queue(a->manager), a->id, QUEUE_HOLD, note) == 0)
        listing_add_note(listing, note);
    return listing;
}

/* NULL: it is not there. */
static json_t *
message_answer_find(const struct message_answer *a)
{
    struct queue *queue = manager_queue(a->manager);
    struct envelope *loaded = NULL;
    char note[QUEUE_NOTE_MAX];
    if (queue_note(queue, a->id, QUEUE_CORRUPT, note) == 0) {
        json_t *listing =
            json_pack("{s:s,s:s}", "queue_name", "corrupt", "queue_id", a->name);
        listing_add_note(listing, note);
        return listing;
    }
    const struct envelope *e = manager_active(a->manager, a->id);
    if (e == NULL && manager_handles(a->manager, a->id))
        e = loaded = queue_load_envelope(queue, a->id);
    json_t *listing = e != NULL ? message_answer_of(a, e) : NULL;
    envelope_free(&loaded);
    return listing;
}

/* --- In the history ---------------------------------------------------------------- */

static bool
message_answer_search(struct message_answer *a)
{
    struct trace_request *request = memory_new(sizeof(*request));
    *request = (struct trace_request){.count = 1, .limit = 1};
    bool begun =
        trace_query_read(text_from(a->name), &request->queries[0]) &&
        trace_begin(&a->trace, queue_disk(manager_queue(a->manager)), request) == 0;
    free(request);
    return begun;
}

/* To whom it was given last, by the line "given to=HOST as=ID"; NULL: to nobody. */
static json_t *
message_answer_given(const json_t *life)
{
    const json_t *events = json_object_get(life, "events");
    for (size_t i = json_array_size(events); i > 0; i--) {
        const json_t *event = json_array_get(events, i - 1);
        if (strcmp(json_field_string(event, "type"), "given") == 0)
            return json_pack("{s:s,s:s,s:I}", "host",
                             json_field_string(event, "recipient"), "id",
                             json_field_string(event, "as"), "time_ms",
                             (json_int_t)json_field_number(event, "time_ms"));
    }
    return NULL;
}

/* A message that is over; NULL: nothing is known. */
static json_t *
message_answer_gone(const struct message_answer *a, const json_t *life)
{
    json_t *given = message_answer_given(life);
    if (life == NULL)
        return NULL;
    json_t *gone = json_pack("{s:s,s:s,s:s,s:O}", "queue_name", "gone", "queue_id",
                             a->name, "state", json_field_string(life, "state"),
                             "events", json_object_get(life, "events"));
    if (given != NULL)
        json_object_set_new(gone, "given", given);
    return gone;
}

static void
message_answer_end(struct message_answer *a)
{
    json_t *life = a->trace != NULL ? trace_take(a->trace) : NULL;
    json_t *line = a->listing;
    a->listing = NULL;
    if (line == NULL)
        line = message_answer_gone(a, life);
    else if (life != NULL)
        json_object_set(line, "events", json_object_get(life, "events"));
    json_decref(life);
    if (line != NULL)
        a->events.line(a->events.context, line);
    a->events.ended(a->events.context, NULL);
}

static void
message_answer_turn(void *context)
{
    struct message_answer *a = context;
    if (a->trace == NULL) {
        a->listing = message_answer_find(a);
        if (!message_answer_search(a)) {
            message_answer_end(a);
            return;
        }
    }
    if (trace_step(a->trace, TRACE_STEP_BYTES) == PROGRESS_MORE)
        loop_post(a->loop, &a->task, message_answer_turn, a);
    else
        message_answer_end(a);
}

struct message_answer *
message_answer_new(struct loop *loop, struct manager *manager,
                   struct questions *questions, const json_t *request,
                   const struct answer_events *events, const char **why)
{
    struct id id;
    if (!id_parse(text_from(json_field_string(request, "id")), &id)) {
        *why = "invalid id";
        return NULL;
    }
    struct message_answer *a = memory_new(sizeof(*a));
    *a = (struct message_answer){.loop = loop,
                                 .manager = manager,
                                 .questions = questions,
                                 .events = *events,
                                 .id = id,
                                 .is_why = json_field_is_true(request, "why")};
    id_format(id, a->name);
    loop_post(loop, &a->task, message_answer_turn, a);
    return a;
}

void
message_answer_free(struct message_answer **answer)
{
    struct message_answer *a = *answer;
    *answer = NULL;
    if (a == NULL)
        return;
    loop_unpost(a->loop, &a->task);
    trace_end(&a->trace);
    json_decref(a->listing);
    free(a);
}
