/* The control socket: carries the lines of its clients' sessions. */
#include "admin/control/control_server.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

enum {
    CLIENTS_MAX = 32,
    REQUEST_MAX = 32 * 1024, /* FILTER_IDS_MAX ids */
    REQUESTS_A_TURN = 16,    /* that a client sends together */
    IDLE_MS = 60 * 1000
};

struct client {
    struct client *prev, *next;
    struct control_server *control;
    struct net_connection *connection;
    struct control_session *session;
    bool leaves; /* to HTTP, once its request is consumed */
    bool ended;  /* it sends no more, and reads answers */
};

struct control_server {
    struct control_service service;
    struct net *net;
    struct net_listener *listener;
    const char *(*take_http)(void *context, struct net_connection *connection);
    void *http_context;
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
    control_session_free(&client->session);
    loop_release(c->service.loop, free, client);
}

/* --- The transport of a session ---------------------------------------------------- */

static void
control_server_send(void *context, struct text json)
{
    const struct client *client = context;
    net_send(client->connection, json);
    net_send(client->connection, TEXT("\n"));
}

static bool
control_server_is_full(void *context)
{
    const struct client *client = context;
    return net_unsent(client->connection) >= NET_HIGH_WATER ||
           net_peer_is_gone(client->connection);
}

static bool
control_server_is_idle(void *context)
{
    const struct client *client = context;
    return net_unsent(client->connection) == 0;
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
control_server_done(void *context)
{
    struct client *client = context;
    if (client->ended && !control_server_has_request(client))
        control_server_client_end(client);
    else
        control_server_read_later(client);
}

/* --- HTTP ------------------------------------------------------------------------- */

static bool
control_server_wants_http(void *context)
{
    struct client *client = context;
    if (client->control->take_http == NULL)
        return false;
    client->leaves = !client->ended; /* HTTP would not hear of the end */
    if (client->ended)
        control_session_reply(client->session,
                              questions_refuse("the client has closed its half"));
    return true;
}

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
        control_session_reply(client->session, questions_refuse(why));
        return false;
    }
    control_session_reply(client->session, json_pack("{s:b}", "ok", true));
    control_session_free(&client->session);
    DL_DELETE(c->clients, client);
    c->count--;
    loop_release(c->service.loop, free, client);
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

/* --- Clients ----------------------------------------------------------------------- */

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
    while (end != TEXT_NONE && !control_session_is_busy(client->session) &&
           net_unsent(client->connection) < NET_HIGH_WATER) {
        if (left-- == 0) {
            control_server_read_later(client);
            return;
        }
        if (net_peer_is_gone(client->connection)) {
            control_server_client_end(client);
            return;
        }
        (void)control_session_take(client->session, text_before(input, end));
        net_consume(client->connection, end + 1);
        if (client->leaves && control_server_hand_over(client))
            return;
        input = net_input(client->connection);
        end = text_find(input, '\n');
    }
    if (end == TEXT_NONE &&
        (input.length > REQUEST_MAX ||
         (client->ended && !control_session_is_busy(client->session))))
        control_server_client_end(client);
}

/* Its requests are answered, unless it does not read either. Requests that are left
 * come as NET_INPUT, NET_DRAINED or after the work: see client_input(). */
static void
control_server_on_ended(struct client *client)
{
    client->ended = true;
    if (net_peer_is_gone(client->connection) ||
        (!control_session_is_busy(client->session) &&
         !control_server_has_request(client)))
        control_server_client_end(client);
}

static void
control_server_on_event(void *context, enum net_event event)
{
    struct client *client = context;
    switch (event) {
    case NET_DRAINED:
        control_session_resume(client->session);
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
    client->session = control_session_new(
        &c->service, &(struct control_transport){.context = client,
                                                 .line = control_server_send,
                                                 .is_full = control_server_is_full,
                                                 .is_idle = control_server_is_idle,
                                                 .done = control_server_done,
                                                 .http = control_server_wants_http});
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
    c->service = (struct control_service){.loop = loop, .log = log, .manager = manager};
    c->net = net;
    c->listener =
        net_listen(net, &address, 0600, control_server_on_accept, c, error, error_size);
    if (c->listener == NULL) {
        free(c);
        return NULL;
    }
    c->service.questions = questions_new(loop, manager);
    return c;
}

struct questions *
control_server_questions(const struct control_server *c)
{
    return c->service.questions;
}

struct control_service *
control_server_service(struct control_server *c)
{
    return &c->service;
}

void
control_server_on_trials(struct control_server *c, struct trials *trials)
{
    c->service.trials = trials;
}

void
control_server_on_line(void *context, struct id id, struct text line)
{
    struct control_server *c = context;
    (void)line;
    control_session_wake_all(&c->service, id);
}

void
control_server_answer(struct control_server *c, const char *name, json_t *answer)
{
    control_session_answer_all(&c->service, name, answer);
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
    questions_free(&c->service.questions);
    free(c);
}
