/* Puts questions to the daemon over its control socket and waits for each answer. */
#include "admin/view/control_client.h"

#include "base/json_field.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/net/net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    ERROR_MAX = 512,
    PATIENCE_MS = 10 * 1000,
    BRIEF_MS = 3 * 1000,
    WORK_PATIENCE_MS = 30 * 1000, /* between the lines of an answer */
    ANSWER_MAX = 8 * 1024 * 1024
};

struct control_client {
    struct loop *loop;
    struct net *net;
    struct net_connection *connection;
    struct buffer received; /* an answer may be longer than a connection's input */
    bool connected, broken, silent, brief;
};

static void
control_client_take_input(struct control_client *a)
{
    struct text input = net_input(a->connection);
    bool fits = buffer_add(&a->received, input);
    net_consume(a->connection, input.length);
    a->broken = a->broken || !fits;
}

static void
control_client_on_event(void *context, enum net_event event)
{
    struct control_client *a = context;
    switch (event) {
    case NET_CONNECTED:
        a->connected = true;
        break;
    case NET_INPUT:
        control_client_take_input(a);
        break;
    case NET_SECURED:
    case NET_DRAINED:
        break;
    case NET_TIMED_OUT:
        a->silent = a->broken = true;
        break;
    case NET_ENDED:
    case NET_FAILED:
        a->broken = true;
        break;
    }
}

struct control_client *
control_client_new(struct loop *loop, const char *path, char *error, size_t error_size)
{
    struct net_address address = {.family = NET_UNIX};
    if (!text_copy(address.path, sizeof(address.path), text_from(path))) {
        snprintf(error, error_size, "control socket '%s': the path is too long", path);
        errno = ENAMETOOLONG;
        return NULL;
    }
    struct control_client *a = memory_new(sizeof(*a));
    a->loop = loop;
    a->net = net_new(loop);
    buffer_init(&a->received, ANSWER_MAX);
    a->connection = net_connect(a->net, &address, NULL, control_client_on_event, a);
    net_set_timeout(a->connection, PATIENCE_MS);
    while (!a->connected && !a->broken)
        loop_turn(loop, PATIENCE_MS);
    if (a->broken) {
        int reason = net_errno(a->connection);
        snprintf(error, error_size, "control socket '%s': %s%s", path,
                 reason ? strerror(reason) : "no answer",
                 reason == EACCES ? " (only root and the daemon's user may connect)"
                                  : "");
        control_client_free(&a);
        errno = reason;
    }
    return a;
}

int
control_client_refused(const char *program, const char *error)
{
    bool is_forbidden = errno == EACCES;
    fprintf(stderr, "%s: %s%s\n", program,
            is_forbidden ? "" : "no daemon answers: ", error);
    return is_forbidden ? EX_NOPERM : EX_UNAVAILABLE;
}

void
control_client_be_brief(struct control_client *a)
{
    a->brief = true;
}

void
control_client_free(struct control_client **client)
{
    struct control_client *a = *client;
    if (a == NULL)
        return;
    *client = NULL;
    net_abort(&a->connection);
    net_free(&a->net);
    buffer_free(&a->received);
    free(a);
}

static json_t *
await_line(struct control_client *a, int64_t patience_ms)
{
    size_t end;
    net_set_timeout(a->connection, patience_ms);
    while ((end = text_find(buffer_text(&a->received), '\n')) == TEXT_NONE &&
           !a->broken)
        loop_turn(a->loop, PATIENCE_MS);
    if (end == TEXT_NONE)
        return NULL;
    json_t *answer = json_loadb(a->received.at, end, 0, NULL);
    buffer_take(&a->received, end + 1);
    a->broken = a->broken || answer == NULL;
    return answer;
}

json_t *
control_client_next(struct control_client *a)
{
    return await_line(a, WORK_PATIENCE_MS);
}

void
control_client_send(struct control_client *a, json_t *request)
{
    char *line = json_dumps(request, JSON_COMPACT);
    json_decref(request);
    a->broken = a->broken || line == NULL;
    if (!a->broken) {
        net_send(a->connection, text_from(line));
        net_send(a->connection, TEXT("\n"));
    }
    free(line);
}

json_t *
control_client_question(struct control_client *a, json_t *request)
{
    control_client_send(a, request);
    return a->broken ? NULL : await_line(a, a->brief ? BRIEF_MS : PATIENCE_MS);
}

const char *
control_client_trouble(const struct control_client *a)
{
    return a->silent ? "the daemon runs, but does not answer"
                     : "the daemon closed the connection";
}

struct control_client *
control_client_reach(struct loop *loop, const char *path, const char *program,
                     int *code)
{
    char error[ERROR_MAX] = "";
    struct control_client *client =
        control_client_new(loop, path, error, sizeof(error));
    if (client == NULL)
        *code = control_client_refused(program, error);
    return client;
}

/* Signs of life may come before: a reload with many keys takes its time. */
json_t *
control_client_ask(struct control_client *a, const char *program, json_t *request,
                   int *code)
{
    *code = EX_CONFIG;
    if (request == NULL)
        return NULL;
    json_t *answer = control_client_question(a, request);
    while (answer != NULL && json_object_get(answer, "seen") != NULL) {
        json_decref(answer);
        answer = control_client_next(a);
    }
    if (json_is_true(json_object_get(answer, "ok")))
        return answer;
    const json_t *errors = json_object_get(answer, "errors"), *line;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)errors, i, line)
        fprintf(stderr, "%s: %s\n", program, json_string_value(line));
    if (errors == NULL)
        fprintf(stderr, "%s: %s\n", program,
                answer != NULL ? json_field_string(answer, "error")
                               : control_client_trouble(a));
    *code = answer != NULL ? EX_CONFIG : EX_UNAVAILABLE;
    json_decref(answer);
    return NULL;
}
