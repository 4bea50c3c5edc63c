/* Servers that answer, are silent, or break off. */
#include "t/support/http_world.h"

static void
answer_request(struct peer *peer)
{
    struct calls *c = peer->calls;
    struct text input = net_input(peer->connection);
    if (c->takes_all && !peer->answered) {
        ok(buffer_add(&c->got, input));
        net_consume(peer->connection, input.length);
        if (!text_ends_nocase(buffer_text(&c->got), TEXT("=end")))
            return;
        peer->answered = true;
        c->requests++;
        net_send(peer->connection, text_from(c->response));
        net_close(&peer->connection);
        return;
    }
    bool whole = input.length >= 4 && text_ends_nocase(input, TEXT("\r\n\r\n"));
    if (peer->answered || (!whole && !text_ends_nocase(input, TEXT("=end"))))
        return;
    peer->answered = true;
    c->requests++;
    buffer_clear(&c->got);
    ok(buffer_add(&c->got, input));
    net_consume(peer->connection, input.length);
    if (c->manner == ANSWERS || c->manner == ANSWERS_AND_STAYS ||
        c->manner == ANSWERS_AND_ABORTS)
        net_send(peer->connection, text_from(c->response));
    if (c->manner == ANSWERS || c->manner == CLOSES)
        net_close(&peer->connection);
}

static void
peer_happened(void *context, enum net_event event)
{
    struct peer *peer = context;
    if (event == NET_INPUT)
        answer_request(peer);
    else if (event == NET_ENDED || event == NET_FAILED)
        net_abort(&peer->connection);
}

void
calls_accepted(void *context, struct net_connection *connection)
{
    struct calls *c = context;
    struct peer *peer = &c->peers[c->accepted++ % PEERS_MAX];
    struct net_tls tls = as_server(c->server);
    *peer = (struct peer){.calls = c, .connection = connection};
    net_attach(connection, peer_happened, peer);
    if (c->server != NULL && c->shakes)
        net_start_tls(connection, &tls);
}

struct calls *
calls_start(struct secrets *secrets, const char *certificate, const char *anchors)
{
    static struct calls calls;
    struct calls *c = &calls;
    struct net_address at = address("127.0.0.1:0");
    char error[200];
    memset(c, 0, sizeof(*c));
    c->world = start(NULL);
    c->secrets = secrets;
    c->dns = dns_new(c->world->loop, TEXT(""), error, sizeof(error));
    sim_dns_address(c->dns, "mail.example.net", "127.0.0.1");
    c->server = certificate[0] != '\0' ? server_of(secrets, certificate) : NULL;
    c->client = anchors != NULL ? client_of(secrets, anchors) : NULL;
    c->shakes = true;
    c->response = HTTP_WORLD_HEAD "Content-Length: 2\r\n\r\nok";
    buffer_init(&c->got, 10000);
    c->world->listener =
        net_listen(c->world->net, &at, 0, calls_accepted, c, error, sizeof(error));
    c->port = net_where(c->world)->port;
    c->caller = http_caller_new(&(struct http_caller_settings){
        .loop = c->world->loop, .net = c->world->net, .dns = c->dns, .tls = &c->client});
    return c;
}

void
calls_finish(struct calls *c)
{
    http_caller_free(&c->caller);
    ok_named(c->caller == NULL, "the caller is freed");
    dns_free(&c->dns);
    tls_server_free(&c->server);
    if (c->client != NULL)
        tls_client_free(&c->client);
    buffer_free(&c->got);
    net_finish(c->world);
}
