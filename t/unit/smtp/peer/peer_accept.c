/* The called side of the peer door over loopback, against callers by hand. */
#include "smtp/peer/peer_internal.h"

#include "base/log/log.h"
#include "t/support/net_world.h"
#include "t/support/peer_service.h"

#define SECRET "0123456789abcdef0123456789abcdef"

struct door {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct buffer said; /* the log */
    struct service_world world;
    struct peer *peer;
    struct net_address at;
    struct tls_client *client;
};

/* A caller that knows the secret. */
struct caller {
    struct net_connection *connection;
    struct buffer heard;
    bool is_secured, is_over;
};

static void
door_log(void *context, struct text line)
{
    (void)!buffer_add(&((struct door *)context)->said, line);
}

static void
door_start(struct door *d)
{
    const struct tls_shared shared = {.group = "mail", .secrets = {TEXT(SECRET)}, .count = 1};
    struct net_address loopback = address("127.0.0.1:0");
    struct peer_settings settings = {.listen = &loopback, .listen_count = 1, .secret = TEXT(SECRET), .group = "mail", .message_size_limit = 1 << 20};
    struct net_listener_counts counts;
    char error[512] = "";

    memset(d, 0, sizeof(*d));
    d->loop = loop_new();
    d->net = net_new(d->loop);
    buffer_init(&d->said, 1 << 20);
    d->log = log_new_apart(d->loop, door_log, d);
    service_start(&d->world, "relay2");
    d->world.is_prompt = true;
    d->peer = peer_new(&(struct peer_setup){.loop = d->loop, .net = d->net, .log = d->log, .service = &d->world.service}, &settings, error, sizeof(error));
    is_string(error, "", "a door");
    ok(peer_door(d->peer, 0, &d->at, &counts));
    struct tls *tls = tls_new(error, sizeof(error));
    d->client = tls_client_new_shared(tls, &shared, error, sizeof(error));
    tls_free(&tls);
}

static void
door_finish(struct door *d)
{
    peer_free(&d->peer);
    service_finish(&d->world);
    tls_client_free(&d->client);
    net_free(&d->net);
    log_free(&d->log);
    loop_free(&d->loop);
    buffer_free(&d->said);
}

static void
caller_on_event(void *context, enum net_event event)
{
    struct caller *c = context;

    c->is_secured = c->is_secured || event == NET_SECURED;
    c->is_over = c->is_over || event == NET_ENDED || event == NET_FAILED;
    if (event != NET_INPUT)
        return;
    (void)!buffer_add(&c->heard, net_input(c->connection));
    net_consume(c->connection, net_input(c->connection).length);
}

static void
caller_start(struct caller *c, struct door *d)
{
    const struct net_tls tls = {.client = d->client, .options = {.level = TLS_LEVEL_NONE}};

    memset(c, 0, sizeof(*c));
    buffer_init(&c->heard, 1 << 20);
    c->connection = net_connect(d->net, &d->at, NULL, caller_on_event, c);
    net_start_tls(c->connection, &tls);
    until(d, c->is_secured);
}

static void
caller_finish(struct caller *c)
{
    net_abort(&c->connection);
    buffer_free(&c->heard);
}

static bool
caller_heard(const struct caller *c, const char *what)
{
    return c->heard.length > 0 && memmem(c->heard.at, c->heard.length, what, strlen(what)) != NULL;
}

static void
caller_says(struct caller *c, const char *text)
{
    net_send(c->connection, text_from(text));
}

static const char hello[] = "XPEER 1 {\"host\":\"relay1\",\"group\":\"mail\",\"spool\":\"aa\",\"run\":7,\"version\":\"1\",\"state\":\"running\"}\r\n";

/* The first of five that connect is the last that names itself. */
TEST(late_name)
{
    struct door d;
    struct caller all[PEER_CONNECTIONS_MAX + 1];

    door_start(&d);
    for (int i = 0; i <= PEER_CONNECTIONS_MAX; i++)
        caller_start(&all[i], &d);
    until(&d, d.peer->entry_count == PEER_CONNECTIONS_MAX + 1);
    for (int i = PEER_CONNECTIONS_MAX; i >= 0; i--) {
        caller_says(&all[i], hello);
        until(&d, peer_counts(d.peer).named == (uint64_t)(PEER_CONNECTIONS_MAX + 1 - i));
    }
    until(&d, all[PEER_CONNECTIONS_MAX].is_over);
    ok_named(caller_heard(&all[PEER_CONNECTIONS_MAX], "421 4.7.0 too many connections"), "who has said it first goes");
    until(&d, caller_heard(&all[0], "250 "));
    is_number(d.peer->entry_count, PEER_CONNECTIONS_MAX, "four are left");
    is_number(d.peer->entering, 0, "nobody waits to come in");
    caller_says(&all[0], "NOOP\r\n");
    until(&d, caller_heard(&all[0], "250 2.0.0 here\r\n"));
    for (int i = 0; i <= PEER_CONNECTIONS_MAX; i++)
        caller_finish(&all[i]);
    until(&d, d.peer->entry_count == 0);
    door_finish(&d);
}

/* Two hosts with one name would end each other's connections. */
TEST(namesakes)
{
    static const char other[] = "XPEER 1 {\"host\":\"relay1\",\"group\":\"mail\",\"spool\":\"bb\",\"run\":7,\"version\":\"1\",\"state\":\"running\"}\r\n";
    struct door d;
    struct caller all[3];

    door_start(&d);
    for (int i = 0; i < 3; i++) {
        caller_start(&all[i], &d);
        caller_says(&all[i], i < 2 ? hello : other);
        until(&d, caller_heard(&all[i], "250 "));
        ok((memmem(d.said.at, d.said.length, "warning", 7) != NULL) == (i == 2));
    }
    ok_named(memmem(d.said.at, d.said.length, "[127.0.0.1]: two hosts are called relay1: each needs its own cluster_host", 73) != NULL, "is logged");
    for (int i = 0; i < 3; i++)
        caller_finish(&all[i]);
    until(&d, d.peer->entry_count == 0);
    door_finish(&d);
}

int
main(void)
{
    signal(SIGPIPE, SIG_IGN);
    tap_tests("");
    return done();
}
