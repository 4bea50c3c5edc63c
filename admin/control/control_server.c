/* Answers the operator's questions: one line of JSON each way. */
#include "admin/control/control_server.h"

#include "admin/control/list_answer.h"
#include "admin/control/operation.h"
#include "admin/control/request.h"
#include "admin/control/request_types.h"
#include "admin/control/trace_answer.h"
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
    PULSE_MS = 1000,         /* progress that a person watches */
    REQUESTS_A_TURN = 16,    /* that a client sends together */
    IDLE_MS = 60 * 1000,
    NAME_MAX_BYTES = 32
};

struct client {
    struct client *prev, *next;
    struct control_server *control;
    struct net_connection *connection;
    json_t *request; /* that an operation works on; NULL: none does */
    struct operation *operation;
    bool adopting; /* a slice */
    bool leaves;   /* to HTTP, once its request is consumed */
    bool ended;    /* it sends no more, and reads answers */
    struct trace_answer *trace;
    struct list_answer *list;
    struct trial *trial;
    char awaits[NAME_MAX_BYTES]; /* a question whose answer comes later; "": none */
    struct loop_timer pulse;
};

struct control_server {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct manager *manager;
    struct net_listener *listener;
    struct questions *questions;
    const char *(*take_http)(void *context, struct net_connection *connection);
    void *http_context;
    struct trials *trials;
    struct client *clients;
    unsigned count;
};

static void
control_server_client_end(struct client *client)
{
    struct control_server *c = client->control;
    DL_DELETE(c->clients, client);
    c->count--;
    net_close(&client->connection);
    operation_free(&client->operation);
    trace_answer_free(&client->trace);
    list_answer_free(&client->list);
    trial_leave(&client->trial);
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
    return client->operation != NULL || client->adopting || client->trace != NULL ||
           client->list != NULL || client->trial != NULL || client->awaits[0] != '\0';
}

static void
on_pulse(void *context)
{
    struct client *client = context;
    uint64_t seen = client->operation ? operation_seen(client->operation)
                    : client->list    ? list_answer_seen(client->list)
                                      : 0;
    loop_timer_start(client->control->loop, &client->pulse, PULSE_MS, on_pulse, client);
    if (net_unsent(client->connection) == 0)
        reply(client, json_pack("{s:I}", "seen", (json_int_t)seen));
}

static void
begin_work(struct client *client)
{
    loop_timer_start(client->control->loop, &client->pulse, PULSE_MS, on_pulse, client);
}

static bool
control_server_has_request(const struct client *client)
{
    return text_find(net_input(client->connection), '\n') != TEXT_NONE;
}

/* Input that came meanwhile is read in the next turn. */
static void
control_server_read_later(struct client *client)
{
    net_want_input(client->connection, false);
    net_want_input(client->connection, true);
}

static void
end_work(struct client *client)
{
    loop_timer_stop(client->control->loop, &client->pulse);
    if (client->ended && !control_server_has_request(client))
        control_server_client_end(client);
    else
        control_server_read_later(client);
}

/* --- Slices ----------------------------------------------------------------------- */

static void
control_server_on_adopted(void *context, const char *error, unsigned messages)
{
    struct client *client = context;
    client->adopting = false;
    reply(client, error ? questions_refuse(error)
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
        reply(client, questions_refuse(error));
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
    reply(client, error ? questions_refuse(error)
                        : json_pack("{s:b,s:b}", "ok", true, "end", true));
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
        reply(client, questions_refuse(error));
        json_decref(request);
    } else {
        mine.context = client;
        client->request = request;
        if (verb == MANAGER_RETRY)
            questions_look_for_tokens(c->questions);
        client->operation =
            operation_new(c->loop, c->log, c->manager, verb, filter, &mine);
        begin_work(client);
    }
    free(filter);
}

/* --- The history ------------------------------------------------------------------ */

static void
control_server_on_life(void *context, json_t *object)
{
    reply(context, object);
}

static void
control_server_on_traced(void *context, const char *error)
{
    struct client *client = context;
    reply(client, error ? questions_refuse(error)
                        : json_pack("{s:b,s:b}", "ok", true, "end", true));
    trace_answer_free(&client->trace);
    end_work(client);
}

static void
control_server_trace(struct client *client, const json_t *request)
{
    struct control_server *c = client->control;
    struct trace_answer_events events = {.context = client,
                                         .line = control_server_on_life,
                                         .is_ready = is_reading,
                                         .ended = control_server_on_traced};
    const char *why;
    client->trace = trace_answer_new(c->loop, queue_disk(manager_queue(c->manager)),
                                     request, &events, &why);
    if (client->trace != NULL)
        begin_work(client);
    else
        reply(client, questions_refuse(why));
}

/* --- The queue -------------------------------------------------------------------- */

static void
control_server_on_listed(void *context, json_t *end)
{
    struct client *client = context;
    reply(client, end);
    list_answer_free(&client->list);
    end_work(client);
}

static void
control_server_list(struct client *client, json_t *request)
{
    struct control_server *c = client->control;
    struct list_answer_events events = {.context = client,
                                        .line = control_server_on_life,
                                        .is_ready = is_reading,
                                        .ended = control_server_on_listed};
    const char *why;
    client->list = list_answer_new(c->loop, c->manager, c->questions,
                                   json_incref(request), &events, &why);
    if (client->list != NULL)
        begin_work(client);
    else
        reply(client, questions_refuse(why));
}

/* --- Test messages ---------------------------------------------------------------- */

static void
control_server_on_tried(void *context)
{
    struct client *client = context;
    trial_leave(&client->trial);
    end_work(client);
}

static void
control_server_try(struct client *client, const json_t *request)
{
    struct trial_events events = {.context = client,
                                  .line = control_server_on_life,
                                  .ended = control_server_on_tried};
    struct trial_refusal refusal = {
        .why = "no test messages are sent from here: run `petrel test`"};
    if (client->control->trials != NULL)
        client->trial = trial_ask(client->control->trials, request, &events, &refusal);
    if (client->trial != NULL)
        begin_work(client);
    else
        reply(client, questions_refuse(refusal.why));
}

void
control_server_on_trials(struct control_server *c, struct trials *trials)
{
    c->trials = trials;
}

void
control_server_on_line(void *context, struct id id, struct text line)
{
    struct control_server *c = context;
    struct client *client;
    (void)line;
    DL_FOREACH (c->clients, client)
        if (client->trace != NULL)
            trace_answer_wake(client->trace, id);
}

static void
take_request(struct client *client, struct text line)
{
    json_t *request = json_loadb(line.at, line.length, JSON_REJECT_DUPLICATES, NULL);
    const char *name = json_string_value(json_object_get(request, "command"));
    char why[REQUEST_TYPES_WHY_MAX];
    enum manager_verb verb;
    if (!request_types_check(request, why)) {
        reply(client, questions_refuse(why));
        json_decref(request);
        return;
    }
    if (name && request_find_verb(name, &verb)) {
        control_server_operate(client, request);
        return;
    }
    if (name && strcmp(name, "http") == 0 && client->control->take_http != NULL) {
        client->leaves = !client->ended; /* HTTP would not hear of the end */
        if (client->ended)
            reply(client, questions_refuse("the client has closed its half"));
        json_decref(request);
        return;
    }
    if (name && strcmp(name, "adopt") == 0) {
        control_server_adopt(client, request);
        json_decref(request);
        return;
    }
    json_t *answer = NULL;
    if (name && strcmp(name, "list") == 0) {
        control_server_list(client, request);
    } else if (name && strcmp(name, "test") == 0) {
        control_server_try(client, request);
    } else if (name && trace_answer_is_command(name)) {
        control_server_trace(client, request);
    } else if ((answer = questions_answer(client->control->questions, request)) !=
               NULL) {
        reply(client, answer);
    } else {
        text_copy(client->awaits, sizeof(client->awaits), text_from(name));
        begin_work(client);
    }
    json_decref(request);
}

void
control_server_answer(struct control_server *c, const char *name, json_t *answer)
{
    struct client *client, *next;
    DL_FOREACH_SAFE (c->clients, client, next)
        if (strcmp(client->awaits, name) == 0) {
            client->awaits[0] = '\0';
            reply(client, json_incref(answer));
            end_work(client);
        }
    json_decref(answer);
}

/* --- HTTP ------------------------------------------------------------------------- */

/* False: it stays. The answer is sent before anything of HTTP, in a later turn. */
static bool
control_server_hand_over(struct client *client)
{
    struct control_server *c = client->control;
    net_set_timeout(client->connection, 0);
    client->leaves = false;
    const char *why = c->take_http(c->http_context, client->connection);
    if (why != NULL) {
        net_set_timeout(client->connection, IDLE_MS);
        reply(client, questions_refuse(why));
        return false;
    }
    reply(client, json_pack("{s:b}", "ok", true));
    DL_DELETE(c->clients, client);
    c->count--;
    loop_release(c->loop, free, client);
    return true;
}

void
control_server_on_http(struct control_server *c,
                       const char *(*take)(void *context,
                                           struct net_connection *connection),
                       void *context)
{
    c->take_http = take;
    c->http_context = context;
}

/* A client that asks without reading waits for itself: the rest comes when it has read.
 * Nothing is begun for one that gave up while we did not run. */
static void
client_input(struct client *client)
{
    if (client->connection == NULL) /* its last answer is sent */
        return;
    struct text input = net_input(client->connection);
    size_t end = text_find(input, '\n');
    unsigned left = REQUESTS_A_TURN;
    while (end != TEXT_NONE && !control_server_is_busy(client) &&
           net_unsent(client->connection) < NET_HIGH_WATER) {
        if (left-- == 0) {
            control_server_read_later(client);
            return;
        }
        if (net_peer_is_gone(client->connection)) {
            control_server_client_end(client);
            return;
        }
        take_request(client, text_before(input, end));
        net_consume(client->connection, end + 1);
        if (client->leaves && control_server_hand_over(client))
            return;
        input = net_input(client->connection);
        end = text_find(input, '\n');
    }
    if (end == TEXT_NONE && (input.length > REQUEST_MAX ||
                             (client->ended && !control_server_is_busy(client))))
        control_server_client_end(client);
}

/* What it has asked for is answered, unless it does not read either. Requests that are
 * left come as NET_INPUT, NET_DRAINED or after the work: see client_input(). */
static void
control_server_on_ended(struct client *client)
{
    client->ended = true;
    if (net_peer_is_gone(client->connection) ||
        (!control_server_is_busy(client) && !control_server_has_request(client)))
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
        if (client->trace)
            trace_answer_wake(client->trace, (struct id){0});
        if (client->list)
            list_answer_wake(client->list);
        client_input(client);
        break;
    case NET_INPUT:
        client_input(client);
        break;
    case NET_CONNECTED:
    case NET_SECURED:
        break;
    case NET_ENDED:
        control_server_on_ended(client);
        break;
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
    c->listener =
        net_listen(net, &address, 0600, control_server_on_accept, c, error, error_size);
    if (c->listener == NULL) {
        free(c);
        return NULL;
    }
    c->questions = questions_new(loop, manager);
    return c;
}

struct questions *
control_server_questions(const struct control_server *c)
{
    return c->questions;
}

const struct net_address *
control_server_address(const struct control_server *c,
                       struct net_listener_counts *counts)
{
    *counts = net_listener_counts(c->listener);
    return net_listener_address(c->listener);
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
    questions_free(&c->questions);
    free(c);
}
