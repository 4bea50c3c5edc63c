/* The question `http` of the control socket: its client leaves, with all input behind it. */
#include "admin/control/control_server.h"

#include "t/support/control_world.h"
#include "t/support/folder.h"

enum { SOME = 20 }; /* turns */

static char folder[40];

struct raw {
    struct net_connection *connection;
    struct buffer got;
};

static void
on_raw(void *context, enum net_event event)
{
    struct raw *r = context;
    struct text input = net_input(r->connection);
    if (event != NET_INPUT)
        return;
    ok(buffer_add(&r->got, input));
    net_consume(r->connection, input.length);
}

static void
raw_begin(struct world *w, struct raw *r)
{
    struct net_address address = {.family = NET_UNIX};
    snprintf(address.path, sizeof(address.path), "%s", w->path);
    *r = (struct raw){0};
    buffer_init(&r->got, 1024 * 1024);
    r->connection = net_connect(w->net, &address, NULL, on_raw, r);
    control_turns(w, SOME);
}

static void
raw_end(struct raw *r)
{
    net_abort(&r->connection);
    buffer_free(&r->got);
}

/* A connection that becomes one of HTTP. */
struct given_away {
    const char *why;
    struct net_connection *connection;
    struct buffer got;
    unsigned asked;
    bool ended;
};

static void
http_happened(void *context, enum net_event event)
{
    struct given_away *g = context;
    struct text input = net_input(g->connection);
    ok(buffer_add(&g->got, input));
    net_consume(g->connection, input.length);
    g->ended = g->ended || event == NET_ENDED;
}

static const char *
take_http(void *context, struct net_connection *connection)
{
    struct given_away *g = context;
    g->asked++;
    if (g->why != NULL)
        return g->why;
    g->connection = connection;
    net_attach(connection, http_happened, g);
    ok(buffer_add(&g->got, net_input(connection)));
    net_consume(connection, net_input(connection).length);
    return NULL;
}

TEST(http)
{
    struct world w;
    struct raw r;
    struct given_away g = {.why = "not now"};
    buffer_init(&g.got, 1000);
    folder_make(folder, sizeof(folder), "adopted");
    control_world_begin(&w, folder, TEXT("* discard"));
    raw_begin(&w, &r);
    net_send(r.connection, TEXT("{\"command\":\"http\"}\n"));
    control_turns(&w, SOME);
    is_text(buffer_text(&r.got), TEXT("{\"ok\":false,\"error\":\"unknown command or invalid id\"}\n"),
            "nobody takes it");
    control_server_on_http(w.control, take_http, &g);
    buffer_clear(&r.got);
    net_send(r.connection, TEXT("{\"command\":\"http\"}\n{\"command\":\"state\"}\n"));
    control_turns(&w, SOME);
    ok(buffer_text(&r.got).length > 0 &&
       text_starts(buffer_text(&r.got), TEXT("{\"ok\":false,\"error\":\"not now\"}\n{\"ok\":false,")));
    is_number(g.asked, 1, "refused: it is still ours, and answered");
    g.why = NULL;
    buffer_clear(&r.got);
    net_send(r.connection, TEXT("{\"command\":\"http\"}\nGET / HTTP/1.1\r\n"));
    control_turns(&w, SOME);
    is_text(buffer_text(&r.got), TEXT("{\"ok\":true}\n"), "taken");
    is_text(buffer_text(&g.got), TEXT("GET / HTTP/1.1\r\n"), "with what came behind the question");
    net_send(r.connection, TEXT("{\"command\":\"status\"}\n"));
    control_turns(&w, SOME);
    is_text(buffer_text(&r.got), TEXT("{\"ok\":true}\n"), "it asks nothing any more");
    ok(text_ends_nocase(buffer_text(&g.got), TEXT("{\"command\":\"status\"}\n")));
    /* The others stay, and so does the connection when the control socket is over. */
    struct raw other;
    raw_begin(&w, &other);
    net_send(other.connection, TEXT("{\"command\":\"status\"}\n"));
    control_turns(&w, SOME);
    ok_named(text_starts(buffer_text(&other.got), TEXT("{\"ok\":true,\"version\":")), "others are answered");
    raw_end(&other);
    raw_end(&r);
    control_turns(&w, SOME);
    ok_named(g.ended, "its end is told to whom it belongs");
    net_abort(&g.connection);
    buffer_free(&g.got);
    control_world_end(&w);
    folder_remove(folder);
}
