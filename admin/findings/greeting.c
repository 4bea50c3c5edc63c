/* Two replies, then QUIT. */
#include "admin/findings/greeting.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct greeting {
    struct loop *loop;
    struct net_connection *connection;
    const char *hostname;
    greeting_done *done;
    void *context;
    struct loop_timer timer;
    struct net_address to;
    bool greeted, is_connected;
    char text[GREETING_TEXT_MAX];
    size_t length, heard;
};

static void
greeting_end(struct greeting *g, bool good, const char *text)
{
    greeting_done *done = g->done;
    g->done = NULL;
    loop_timer_stop(g->loop, &g->timer);
    if (good && g->connection != NULL)
        net_send(g->connection, TEXT("QUIT\r\n"));
    if (g->connection != NULL && good)
        net_close(&g->connection);
    else if (g->connection != NULL)
        net_abort(&g->connection);
    done(g->context, good, text);
}

static void
greeting_keep(struct greeting *g, struct text line)
{
    for (size_t i = 0; i < line.length && g->length + 2 < sizeof(g->text); i++)
        g->text[g->length++] = line.at[i] != '\0' ? line.at[i] : '?';
    g->text[g->length++] = '\n';
    g->text[g->length] = '\0';
}

/* The last line of a reply: a space behind its code, or nothing. */
static void
greeting_take_line(struct greeting *g, struct text line)
{
    char said[300];
    if (g->length + line.length + 3 < sizeof(g->text))
        greeting_keep(g, line);
    if (line.length > 3 && line.at[3] == '-')
        return;
    if (line.length < 3 || line.at[0] != '2') {
        snprintf(said, sizeof(said), "it says: %.*s",
                 TEXT_ARGS(text_before(line, 200)));
        greeting_end(g, false, said);
    } else if (g->greeted) {
        greeting_end(g, true, g->text);
    } else {
        g->greeted = true;
        net_send(g->connection, TEXT("EHLO "));
        net_send(g->connection, text_from(g->hostname));
        net_send(g->connection, TEXT("\r\n"));
    }
}

static void
greeting_read(struct greeting *g)
{
    while (g->done != NULL) {
        struct text input = net_input(g->connection);
        size_t end = text_find(input, '\n');
        if (end == TEXT_NONE) {
            if (input.length >= GREETING_TEXT_MAX)
                greeting_end(g, false, "it does not speak SMTP");
            return;
        }
        char line[GREETING_TEXT_MAX];
        (void)text_copy(line, sizeof(line),
                        text_without_line_end(text_before(input, end + 1)));
        net_consume(g->connection, end + 1);
        g->heard += end + 1;
        if (g->heard > GREETING_HEARD_MAX) {
            greeting_end(g, false, "it does not end its reply");
            return;
        }
        greeting_take_line(g, text_from(line));
    }
}

static void
greeting_on_timer(void *context)
{
    struct greeting *g = context;
    if (g->is_connected)
        greeting_end(g, false, "it does not answer");
    else
        greeting_end(g, false, "the connection times out");
}

static void
greeting_on_event(void *context, enum net_event event)
{
    struct greeting *g = context;
    if (g->done == NULL)
        return;
    switch (event) {
    case NET_CONNECTED:
        g->is_connected = true;
        loop_timer_start(g->loop, &g->timer, GREETING_MS - GREETING_CONNECT_MS,
                         greeting_on_timer, g);
        return;
    case NET_INPUT:
        greeting_read(g);
        return;
    case NET_ENDED:
        greeting_end(g, false, "it closes the connection");
        return;
    case NET_TIMED_OUT:
    case NET_FAILED:
        greeting_end(g, false, net_error(g->connection));
        return;
    case NET_DRAINED:
    case NET_SECURED:
        break;
    }
}

struct greeting *
greeting_new(struct loop *loop, struct net *net, const struct net_address *to,
             const struct net_address *from, const char *hostname, greeting_done *done,
             void *context)
{
    struct greeting *g = memory_new(sizeof(*g));
    g->loop = loop;
    g->hostname = hostname;
    g->done = done;
    g->context = context;
    g->to = *to;
    loop_timer_start(loop, &g->timer, GREETING_CONNECT_MS, greeting_on_timer, g);
    g->connection = net_connect(net, to, from, greeting_on_event, g);
    return g;
}

void
greeting_free(struct greeting **greeting)
{
    struct greeting *g = *greeting;
    *greeting = NULL;
    if (g == NULL)
        return;
    loop_timer_stop(g->loop, &g->timer);
    if (g->connection != NULL)
        net_abort(&g->connection);
    g->done = NULL;
    loop_release(g->loop, free, g);
}
