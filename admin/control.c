/* Answers the operator's questions: one line of JSON each way. */
#include "admin/control.h"

#include "base/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CLIENTS_MAX = 32,
    REQUEST_MAX = 4096,
    IDLE_MS = 60 * 1000,
    REASONS_MAX = 1000 /* recipients whose reason is told */
};

struct client {
    struct client *prev, *next;
    struct control *control;
    struct net_connection *connection;
};

struct control {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct manager *manager;
    struct net_listener *listener;
    struct client *clients;
    unsigned count;
};

static json_t *
refusal(const char *why)
{
    return json_pack("{s:b,s:s}", "ok", false, "error", why);
}

static const char *
place_name(enum sched_place place)
{
    switch (place) {
    case SCHED_INCOMING:
        return "incoming";
    case SCHED_ACTIVE:
        return "active";
    case SCHED_DEFERRED:
        return "deferred";
    case SCHED_UNKNOWN:
        break;
    }
    return "unknown";
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

static json_t *
answer_state(struct control *c, struct id id)
{
    struct sched_state state = sched_find(manager_sched(c->manager), id);
    const struct envelope *active = manager_active(c->manager, id);
    unsigned count = active ? active->count : 1;
    json_t *reasons = json_array();
    for (unsigned i = 0; i < count && i < REASONS_MAX; i++)
        json_array_append_new(reasons, json_reason(manager_reason(c->manager, id, i)));
    return json_pack("{s:b,s:s,s:I,s:i,s:o}", "ok", true, "place",
                     place_name(state.place), "due_ms", (json_int_t)state.due_ms,
                     "attempts", (int)state.attempts, "reasons", reasons);
}

static json_t *
answer_retry(struct control *c, struct id id)
{
    if (!manager_retry(c->manager, id))
        return refusal("not in the queue of this daemon");
    char name[ID_LENGTH + 1];
    id_format(id, name);
    log_say(c->log, LOG_LEVEL_INFO, "control", name, "the operator wants a retry");
    return json_pack("{s:b}", "ok", true);
}

static json_t *
answer_remove(struct control *c, struct id id)
{
    switch (manager_remove(c->manager, id)) {
    case MANAGER_REMOVED:
        return json_pack("{s:b,s:b}", "ok", true, "busy", false);
    case MANAGER_BUSY:
        return json_pack("{s:b,s:b}", "ok", true, "busy", true);
    case MANAGER_UNKNOWN:
        break;
    }
    return refusal("no such message");
}

static json_t *
answer_retry_all(struct control *c)
{
    manager_retry_all(c->manager);
    log_say(c->log, LOG_LEVEL_INFO, "control", NULL,
            "the operator wants a retry of all");
    return json_pack("{s:b}", "ok", true);
}

static const struct question {
    const char *name;
    json_t *(*answer)(struct control *c, struct id id);
} questions[] = {
    {"state", answer_state },
    {"retry", answer_retry },
    {"rm",    answer_remove},
};

static json_t *
answer(struct control *c, struct text line)
{
    json_t *request = json_loadb(line.at, line.length, 0, NULL);
    const char *name = json_string_value(json_object_get(request, "command"));
    const char *id_text = json_string_value(json_object_get(request, "id"));
    struct id id;
    json_t *reply = NULL;
    if (name && strcmp(name, "retry-all") == 0)
        reply = answer_retry_all(c);
    bool has_id = id_parse(text_from(id_text), &id);
    for (size_t i = 0; name && has_id && i < sizeof(questions) / sizeof(*questions);
         i++)
        if (strcmp(name, questions[i].name) == 0)
            reply = questions[i].answer(c, id);
    json_decref(request);
    return reply ? reply : refusal("unknown command, or no valid id");
}

static void
client_end(struct client *client)
{
    struct control *c = client->control;
    DL_DELETE(c->clients, client);
    c->count--;
    net_close(&client->connection);
    loop_release(c->loop, free, client);
}

static void
reply(struct client *client, struct text request)
{
    json_t *told = answer(client->control, request);
    char *line = json_dumps(told, JSON_COMPACT);
    assert(line);
    json_decref(told);
    net_send(client->connection, text_from(line));
    net_send(client->connection, TEXT("\n"));
    free(line);
}

/* A client that asks without reading waits for itself: the rest comes when it has read.
 */
static void
client_input(struct client *client)
{
    struct text input = net_input(client->connection);
    size_t end = text_find(input, '\n');
    while (end != TEXT_NONE && net_unsent(client->connection) < NET_HIGH_WATER) {
        reply(client, text_before(input, end));
        net_consume(client->connection, end + 1);
        input = net_input(client->connection);
        end = text_find(input, '\n');
    }
    if (end == TEXT_NONE && input.length > REQUEST_MAX)
        client_end(client);
}

static void
on_event(void *context, enum net_event event)
{
    struct client *client = context;
    switch (event) {
    case NET_INPUT:
    case NET_DRAINED:
        client_input(client);
        break;
    case NET_CONNECTED:
        break;
    case NET_ENDED:
    case NET_TIMED_OUT:
    case NET_FAILED:
        client_end(client);
        break;
    }
}

static void
on_accept(void *context, struct net_connection *connection)
{
    struct control *c = context;
    if (c->count == CLIENTS_MAX) {
        net_abort(&connection);
        return;
    }
    struct client *client = memory_new(sizeof(*client));
    client->control = c;
    client->connection = connection;
    DL_APPEND(c->clients, client);
    c->count++;
    net_attach(connection, on_event, client);
    net_set_timeout(connection, IDLE_MS);
}

struct control *
control_new(struct loop *loop, struct net *net, struct log *log,
            struct manager *manager, const char *path, char *error, size_t error_size)
{
    struct net_address address = {.family = NET_UNIX};
    if (!text_copy(address.path, sizeof(address.path), text_from(path))) {
        snprintf(error, error_size, "control: '%s' is longer than %d bytes", path,
                 NET_PATH_MAX - 1);
        return NULL;
    }
    struct control *c = memory_new(sizeof(*c));
    c->loop = loop;
    c->net = net;
    c->log = log;
    c->manager = manager;
    c->listener = net_listen(net, &address, 0600, on_accept, c, error, error_size);
    if (c->listener == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

void
control_free(struct control **control)
{
    struct control *c = *control;
    struct client *client, *next;
    if (c == NULL)
        return;
    *control = NULL;
    net_listener_free(&c->listener);
    DL_FOREACH_SAFE (c->clients, client, next)
        client_end(client);
    free(c);
}
