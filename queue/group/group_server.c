/* The slice's bank at its socket. */
#include "queue/group/group_server.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "queue/group/group_answer.h"
#include "queue/group/group_internal.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

struct group_visitor {
    struct group_visitor *prev, *next;
    struct group_server *server;
    struct net_connection *connection;
};

struct group_server {
    struct loop *loop;
    struct net_listener *listener;
    struct bank *bank; /* NULL: it is not open */
    struct group_visitor *visitors;
    size_t count;
};

const char *
group_server_ask(struct group_server *s, const char *const *words, size_t count,
                 struct buffer *out)
{
    return group_answer_grant(s->bank, loop_monotonic_ms(s->loop) * 1000, words, count,
                              out);
}

static void
group_visitor_end(struct group_visitor *v)
{
    struct group_server *s = v->server;
    net_abort(&v->connection);
    DL_DELETE(s->visitors, v);
    s->count--;
    loop_release(s->loop, free, v);
}

static void
group_visitor_say(struct group_visitor *v, const char *member, const char *text)
{
    json_t *line = json_pack("{s:s}", member, text);
    char *bytes = json_dumps(line, JSON_COMPACT);
    net_send(v->connection, text_from(bytes));
    net_send(v->connection, TEXT("\n"));
    free(bytes);
    json_decref(line);
}

static void
group_visitor_answer(struct group_visitor *v, const char *const *words, size_t count)
{
    struct buffer out;
    buffer_init(&out, GROUP_ANSWER_MAX);
    const char *why =
        count == 0 ? NULL : group_server_ask(v->server, words, count, &out);
    if (why == NULL && !buffer_add_byte(&out, '\0'))
        why = "a long answer";
    group_visitor_say(v, why == NULL ? "answer" : "refused",
                      why == NULL ? out.at : why);
    buffer_free(&out);
}

/* False: it is none. */
static bool
group_visitor_take(struct group_visitor *v, const json_t *ask)
{
    const char *words[GROUP_WORDS_MAX];
    size_t count = json_array_size(ask);
    if (!json_is_array(ask) || count > GROUP_WORDS_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        words[i] = json_string_value(json_array_get(ask, i));
        if (words[i] == NULL)
            return false;
    }
    group_visitor_answer(v, words, count);
    return net_unsent(v->connection) <= GROUP_UNREAD_MAX;
}

/* False: it is to be cut off. */
static bool
group_visitor_read(struct group_visitor *v, struct text line)
{
    json_t *question = json_loadb(line.at, line.length, 0, NULL);
    bool good = group_visitor_take(v, json_object_get(question, "ask"));
    json_decref(question);
    return good;
}

static void
group_visitor_on_event(void *context, enum net_event event)
{
    struct group_visitor *v = context;
    struct text rest, line;
    bool good = event == NET_INPUT || event == NET_DRAINED;
    while (event == NET_INPUT && good) {
        rest = net_input(v->connection);
        if (text_find(rest, '\n') == TEXT_NONE) {
            good = rest.length <= GROUP_LINE_MAX;
            break;
        }
        (void)!text_cut(&rest, '\n', &line);
        good = line.length <= GROUP_LINE_MAX && group_visitor_read(v, line);
        net_consume(v->connection, line.length + 1);
    }
    if (!good)
        group_visitor_end(v);
}

static void
group_server_on_accept(void *context, struct net_connection *connection)
{
    struct group_server *s = context;
    if (s->bank == NULL || s->count == GROUP_SERVER_CLIENTS_MAX) {
        net_abort(&connection);
        return;
    }
    struct group_visitor *v = memory_new(sizeof(*v));
    v->server = s;
    v->connection = connection;
    DL_APPEND(s->visitors, v);
    s->count++;
    net_attach(connection, group_visitor_on_event, v);
}

struct group_server *
group_server_new(struct loop *loop, struct net *net, const char *path, char *error,
                 size_t size)
{
    struct net_address address = {.family = NET_UNIX};
    if (!text_copy(address.path, sizeof(address.path), text_from(path))) {
        snprintf(error, size, "'%s' is longer than %d bytes", path, NET_PATH_MAX - 1);
        return NULL;
    }
    struct group_server *s = memory_new(sizeof(*s));
    s->loop = loop;
    s->listener =
        net_listen(net, &address, 0600, group_server_on_accept, s, error, size);
    if (s->listener == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void
group_server_open(struct group_server *s)
{
    s->bank = bank_new();
}

void
group_server_free(struct group_server **server)
{
    struct group_server *s = *server;
    *server = NULL;
    if (s == NULL)
        return;
    net_listener_free(&s->listener);
    while (s->visitors != NULL)
        group_visitor_end(s->visitors);
    bank_free(&s->bank);
    free(s);
}
