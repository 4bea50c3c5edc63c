/* Answers the operator's questions: one line of JSON each way. */
#include "admin/control/control_server.h"

#include "admin/control/account_list.h"
#include "admin/control/listing.h"
#include "admin/control/site_list.h"
#include "admin/control/operation.h"
#include "admin/control/request.h"
#include "admin/control/status.h"
#include "admin/control/why.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue_operator.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CLIENTS_MAX = 32,
    REQUEST_MAX = 32 * 1024, /* FILTER_IDS_MAX ids */
    PULSE_MS = 5 * 1000,
    IDLE_MS = 60 * 1000,
    REASONS_MAX = 1000, /* recipients whose reason is reported */
    STATES_MAX = 500,   /* in one answer: some 300 kB, or one message's reasons more */
    SITES_PAGE = 500    /* in one answer: some 500 kB */
};

struct client {
    struct client *prev, *next;
    struct control_server *control;
    struct net_connection *connection;
    json_t *request; /* that an operation works on; NULL: none does */
    struct operation *operation;
    bool adopting; /* a slice */
    struct loop_timer pulse;
};

struct control_server {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct manager *manager;
    struct net_listener *listener;
    int64_t started_ms; /* monotonic */
    size_t (*count_sessions)(void *context, bool *stressed);
    struct {
        const char *name;
        json_t *(*make)(void *context);
        void *context;
    } parts[CONTROL_SERVER_PARTS];
    size_t part_count;
    void *count_context;
    const struct sandbox *sandbox; /* NULL: not reported */
    const struct tokens *tokens;   /* NULL: no accounts */
    struct client *clients;
    unsigned count;
};

static json_t *
refusal(const char *why)
{
    return json_pack("{s:b,s:s}", "ok", false, "error", why);
}

static json_t *
json_reason(const char *reason)
{
    struct buffer clean;
    buffer_init(&clean, 4 * OUTCOME_TEXT_MAX + 64);
    (void)!log_escape(text_from(reason), &clean);
    json_t *value = json_stringn(clean.length ? clean.at : "", clean.length);
    buffer_free(&clean);
    return value;
}

/* Not the scheduler's: held, not yet found, or over; what an ended message leaves on
 * the disk goes some time later. Another daemon's is not ours to judge. */
static const char *
place_unknown(struct control_server *c, struct id id)
{
    if (!queue_handles(manager_queue(c->manager), id))
        return "unknown";
    struct envelope *e = queue_peek(manager_queue(c->manager), id, QUEUE_DEFERRED);
    const char *name = e ? "unknown" : "gone";
    envelope_free(&e);
    return name;
}

static json_t *
answer_state(struct control_server *c, struct id id)
{
    struct sched_state state = sched_find(manager_sched(c->manager), id);
    const struct envelope *active = manager_active(c->manager, id);
    unsigned count = active ? active->count : 1;
    json_t *reasons = json_array();
    for (unsigned i = 0; i < count && i < REASONS_MAX; i++)
        json_array_append_new(reasons, json_reason(manager_reason(c->manager, id, i)));
    const char *place = listing_place_name(state.place);
    if (state.place == SCHED_UNKNOWN && active == NULL)
        place = place_unknown(c, id);
    else if (active == NULL && manager_is_awaiting(c->manager, id))
        place = "defrag";
    return json_pack("{s:b,s:s,s:I,s:i,s:o}", "ok", true, "place", place, "due_ms",
                     (json_int_t)state.due_ms, "attempts", (int)state.attempts,
                     "reasons", reasons);
}

/* States of as many ids as fit, in their order; the client asks again for the rest. */
static json_t *
answer_states(struct control_server *c, const json_t *request)
{
    const json_t *ids = json_object_get(request, "ids");
    json_t *states = json_array(), *name;
    size_t index, reasons = 0;
    json_array_foreach (ids, index, name) {
        struct id id;
        const char *text = json_string_value(name);
        if (text == NULL || !id_parse(text_from(text), &id)) {
            json_decref(states);
            return refusal("unknown command or invalid id");
        }
        json_t *state = answer_state(c, id);
        reasons += json_array_size(json_object_get(state, "reasons"));
        json_array_append_new(states, state);
        if (reasons >= REASONS_MAX || index + 1 == STATES_MAX)
            break;
    }
    return json_pack("{s:b,s:o}", "ok", true, "states", states);
}

static json_t *
answer_status(struct control_server *c)
{
    bool stressed = false;
    size_t sessions =
        c->count_sessions ? c->count_sessions(c->count_context, &stressed) : 0;
    json_t *status =
        status_make(c->manager, loop_monotonic_ms(c->loop) - c->started_ms, sessions);
    json_object_set_new(json_object_get(status, "sessions"), "stress",
                        json_boolean(stressed));
    if (c->sandbox)
        json_object_set_new(status, "sandbox",
                            status_sandbox(sandbox_get_state(c->sandbox)));
    json_object_set_new(status, "oauth", account_list_make(c->tokens));
    for (size_t i = 0; i < c->part_count; i++) {
        json_t *part = c->parts[i].make(c->parts[i].context);
        if (part != NULL)
            json_object_set_new(status, c->parts[i].name, part);
    }
    return status;
}

static json_t *
answer_why(struct control_server *c, struct id id)
{
    json_t *told = answer_state(c, id);
    why_add(told, c->manager, id);
    return told;
}

static json_t *
answer_sites(struct control_server *c, const json_t *request)
{
    const json_t *from = json_object_get(request, "from");
    if (!json_is_integer(from) || json_integer_value(from) < 0)
        return refusal("invalid start");
    json_t *page = site_list_page(manager_sched(c->manager),
                                  (size_t)json_integer_value(from), SITES_PAGE);
    return json_pack("{s:b,s:o}", "ok", true, "sites", page);
}

/* The answer to a question that needs no waiting. */
static json_t *
control_server_answer(struct control_server *c, const json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "command"));
    const char *id_text = json_string_value(json_object_get(request, "id"));
    struct id id;
    if (name && strcmp(name, "status") == 0)
        return answer_status(c);
    if (name && strcmp(name, "sites") == 0)
        return answer_sites(c, request);
    if (name && strcmp(name, "states") == 0)
        return answer_states(c, request);
    if (name && strcmp(name, "state") == 0 && id_parse(text_from(id_text), &id))
        return answer_state(c, id);
    if (name && strcmp(name, "why") == 0 && id_parse(text_from(id_text), &id))
        return answer_why(c, id);
    return refusal("unknown command or invalid id");
}

static void
control_server_client_end(struct client *client)
{
    struct control_server *c = client->control;
    DL_DELETE(c->clients, client);
    c->count--;
    net_close(&client->connection);
    operation_free(&client->operation);
    if (client->adopting)
        queue_adopt_ignore(manager_queue(c->manager), client);
    json_decref(client->request);
    loop_timer_stop(c->loop, &client->pulse);
    loop_release(c->loop, free, client);
}

/* Takes the answer. */
static void
reply(struct client *client, json_t *told)
{
    char *line = json_dumps(told, JSON_COMPACT);
    json_decref(told);
    /* NULL: some text in it is no UTF-8. */
    net_send(client->connection,
             line ? text_from(line)
                  : TEXT("{\"ok\":false,\"error\":\"cannot be written as JSON\"}"));
    net_send(client->connection, TEXT("\n"));
    free(line);
}

/* --- Requests of several turns ---------------------------------------------------- */

static bool
control_server_is_busy(const struct client *client)
{
    return client->operation != NULL || client->adopting;
}

static void
on_pulse(void *context)
{
    struct client *client = context;
    uint64_t seen = client->operation ? operation_seen(client->operation) : 0;
    loop_timer_start(client->control->loop, &client->pulse, PULSE_MS, on_pulse, client);
    if (net_unsent(client->connection) == 0)
        reply(client, json_pack("{s:I}", "seen", (json_int_t)seen));
}

static void
begin_work(struct client *client)
{
    loop_timer_start(client->control->loop, &client->pulse, PULSE_MS, on_pulse, client);
}

static void
end_work(struct client *client)
{
    loop_timer_stop(client->control->loop, &client->pulse);
    /* Input that came meanwhile is read in the next turn. */
    net_want_input(client->connection, false);
    net_want_input(client->connection, true);
}

/* --- Slices ----------------------------------------------------------------------- */

static void
control_server_on_adopted(void *context, const char *error, unsigned messages)
{
    struct client *client = context;
    client->adopting = false;
    reply(client, error ? refusal(error)
                        : json_pack("{s:b,s:b,s:I}", "ok", true, "end", true,
                                    "messages", (json_int_t)messages));
    end_work(client);
}

static void
control_server_adopt(struct client *client, const json_t *request)
{
    const json_t *slice = json_object_get(request, "slice");
    const char *error = "invalid slice";
    if (json_is_integer(slice) && json_integer_value(slice) >= 0 &&
        json_integer_value(slice) < ID_SLICES_MAX)
        error = queue_adopt(manager_queue(client->control->manager),
                            (unsigned)json_integer_value(slice),
                            control_server_on_adopted, client);
    client->adopting = error == NULL;
    if (error)
        reply(client, refusal(error));
    else
        begin_work(client);
}

/* --- Operations ------------------------------------------------------------------- */

static void
control_server_on_told(void *context, struct id id, int code, const char *text)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    reply(context, json_pack("{s:s,s:b,s:i,s:s}", "id", name, "ok", code == 0, "code",
                             code, "text", text));
}

static bool
is_reading(void *context)
{
    const struct client *client = context;
    return net_unsent(client->connection) < NET_HIGH_WATER &&
           !net_peer_is_gone(client->connection);
}

static void
on_operated(void *context, const char *error)
{
    struct client *client = context;
    reply(client,
          error ? refusal(error) : json_pack("{s:b,s:b}", "ok", true, "end", true));
    operation_free(&client->operation);
    json_decref(client->request);
    client->request = NULL;
    end_work(client);
}

/* Takes the request. */
static void
control_server_operate(struct client *client, json_t *request)
{
    static const struct operation_events events = {
        .told = control_server_on_told, .is_ready = is_reading, .ended = on_operated};
    struct control_server *c = client->control;
    struct operation_events mine = events;
    struct filter *filter = memory_new(sizeof(*filter));
    enum manager_verb verb;
    const char *error = request_read(request, &verb, filter);
    if (error) {
        reply(client, refusal(error));
        json_decref(request);
    } else {
        mine.context = client;
        client->request = request;
        client->operation =
            operation_new(c->loop, c->log, c->manager, verb, filter, &mine);
        begin_work(client);
    }
    free(filter);
}

static void
take_request(struct client *client, struct text line)
{
    json_t *request = json_loadb(line.at, line.length, JSON_REJECT_DUPLICATES, NULL);
    const char *name = json_string_value(json_object_get(request, "command"));
    enum manager_verb verb;
    if (name && request_find_verb(name, &verb)) {
        control_server_operate(client, request);
        return;
    }
    if (name && strcmp(name, "adopt") == 0) {
        control_server_adopt(client, request);
        json_decref(request);
        return;
    }
    reply(client, control_server_answer(client->control, request));
    json_decref(request);
}

/* A client that asks without reading waits for itself: the rest comes when it has read.
 * Nothing is begun for one that gave up while we did not run. */
static void
client_input(struct client *client)
{
    struct text input = net_input(client->connection);
    size_t end = text_find(input, '\n');
    while (end != TEXT_NONE && !control_server_is_busy(client) &&
           net_unsent(client->connection) < NET_HIGH_WATER) {
        if (net_peer_is_gone(client->connection)) {
            control_server_client_end(client);
            return;
        }
        take_request(client, text_before(input, end));
        net_consume(client->connection, end + 1);
        input = net_input(client->connection);
        end = text_find(input, '\n');
    }
    if (end == TEXT_NONE && input.length > REQUEST_MAX)
        control_server_client_end(client);
}

static void
control_server_on_event(void *context, enum net_event event)
{
    struct client *client = context;
    switch (event) {
    case NET_DRAINED:
        if (client->operation)
            operation_resume(client->operation);
        client_input(client);
        break;
    case NET_INPUT:
        client_input(client);
        break;
    case NET_CONNECTED:
    case NET_SECURED:
        break;
    case NET_ENDED:
    case NET_TIMED_OUT:
    case NET_FAILED:
        control_server_client_end(client);
        break;
    }
}

static void
control_server_on_accept(void *context, struct net_connection *connection)
{
    struct control_server *c = context;
    if (c->count == CLIENTS_MAX) {
        net_abort(&connection);
        return;
    }
    struct client *client = memory_new(sizeof(*client));
    client->control = c;
    client->connection = connection;
    DL_APPEND(c->clients, client);
    c->count++;
    net_attach(connection, control_server_on_event, client);
    net_set_timeout(connection, IDLE_MS);
}

struct control_server *
control_server_new(struct loop *loop, struct net *net, struct log *log,
                   struct manager *manager, const char *path, char *error,
                   size_t error_size)
{
    struct net_address address = {.family = NET_UNIX};
    if (!text_copy(address.path, sizeof(address.path), text_from(path))) {
        snprintf(error, error_size, "control: '%s' is longer than %d bytes", path,
                 NET_PATH_MAX - 1);
        return NULL;
    }
    struct control_server *c = memory_new(sizeof(*c));
    c->loop = loop;
    c->net = net;
    c->log = log;
    c->manager = manager;
    c->started_ms = loop_monotonic_ms(loop);
    c->listener =
        net_listen(net, &address, 0600, control_server_on_accept, c, error, error_size);
    if (c->listener == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void
control_server_on_part(struct control_server *c, const char *name,
                       json_t *(*make)(void *context), void *context)
{
    assert(c->part_count < CONTROL_SERVER_PARTS);
    c->parts[c->part_count].name = name;
    c->parts[c->part_count].make = make;
    c->parts[c->part_count++].context = context;
}

void
control_server_on_count(struct control_server *c,
                        size_t (*count)(void *context, bool *stressed), void *context)
{
    c->count_sessions = count;
    c->count_context = context;
}

void
control_server_on_tokens(struct control_server *c, const struct tokens *tokens)
{
    c->tokens = tokens;
}

void
control_server_on_sandbox(struct control_server *c, const struct sandbox *sandbox)
{
    c->sandbox = sandbox;
}

void
control_server_free(struct control_server **control)
{
    struct control_server *c = *control;
    struct client *client, *next;
    if (c == NULL)
        return;
    *control = NULL;
    net_listener_free(&c->listener);
    DL_FOREACH_SAFE (c->clients, client, next)
        control_server_client_end(client);
    free(c);
}
