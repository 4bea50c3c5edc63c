/* Two sides of TLS with a shared secret: through memory, then over loopback by base/net. */
#include "base/tls/tls_internal.h"

#include "base/tls/tls_session.h"
#include "t/support/tls_world.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "another secret, which has 32 bytes and some more"
#define C "a third one, which nobody but a thief has written down"

static const char unknown[] =
    "TLS: the other host does not know the secret of the group";

/* A side and what it has to read. */
struct end {
    struct buffer in;
    struct buffer *out;
    struct tls_session *session;
    struct buffer sent; /* ever */
};

static ssize_t
end_receive(void *context, char *to, size_t size)
{
    struct end *e = context;
    size_t got = e->in.length < size ? e->in.length : size;

    if (got == 0)
        return -EAGAIN;
    memcpy(to, e->in.at, got);
    buffer_take(&e->in, got);
    return (ssize_t)got;
}

static bool
end_send(void *context, struct text records)
{
    struct end *e = context;

    return buffer_add(&e->sent, records) && buffer_add(e->out, records);
}

static void
end_start(struct end *e, struct end *other)
{
    buffer_init(&e->in, 1 << 20);
    buffer_init(&e->sent, 1 << 20);
    e->out = &other->in;
}

static void
end_finish(struct end *e)
{
    tls_session_free(&e->session);
    buffer_free(&e->in);
    buffer_free(&e->sent);
}

static struct tls *tls;

static struct tls_shared
shared_of(const char *group, const char *first, const char *second)
{
    struct tls_shared s = {.group = group, .secrets = {text_from(first), text_from(second)}, .count = second ? 2 : 1};

    return s;
}

static struct tls_server *
shared_server(const char *group, const char *first, const char *second)
{
    struct tls_shared s = shared_of(group, first, second);
    char error[TLS_ERROR_MAX] = "";
    struct tls_server *server = tls_server_new_shared(tls, &s, error, sizeof(error));

    is_string(error, "", "a server with a secret");
    return server;
}

static struct tls_client *
shared_client(const char *group, const char *first, const char *second)
{
    struct tls_shared s = shared_of(group, first, second);
    char error[TLS_ERROR_MAX] = "";
    struct tls_client *client = tls_client_new_shared(tls, &s, error, sizeof(error));

    is_string(error, "", "a client with a secret");
    return client;
}

/* "server: ERROR, client: ERROR", or the version and suite of both. */
static const char *
meet(struct tls_server *server, struct tls_client *client, const struct tls_client_options *options,
     struct end *s, struct end *c)
{
    static char told[700];
    enum progress from = PROGRESS_MORE, to = PROGRESS_MORE;

    end_start(s, c);
    end_start(c, s);
    s->session = tls_session_serve(server, TLS_MAIL, &(struct tls_pipe){end_receive, end_send, s});
    c->session = tls_session_call(client, options, &(struct tls_pipe){end_receive, end_send, c});
    for (int i = 0; i < 20; i++) {
        from = from == PROGRESS_MORE ? tls_session_shake(c->session) : from;
        to = to == PROGRESS_MORE ? tls_session_shake(s->session) : to;
    }
    if (from == PROGRESS_DONE && to == PROGRESS_DONE) {
        bool same = strcmp(tls_session_facts(c->session).cipher, tls_session_facts(s->session).cipher) == 0;
        snprintf(told, sizeof(told), "%s %s%s", tls_session_facts(c->session).version, tls_session_facts(c->session).cipher, same ? "" : " ?");
    } else {
        snprintf(told, sizeof(told), "server: %s, client: %s", tls_session_error(s->session), tls_session_error(c->session));
    }
    return told;
}

static const char *
meet_shared(struct tls_server *server, struct tls_client *client)
{
    struct tls_client_options options = {.level = TLS_LEVEL_NONE};
    struct end s = {.session = NULL}, c = {.session = NULL};
    const char *told = meet(server, client, &options, &s, &c);

    end_finish(&s);
    end_finish(&c);
    return told;
}

TEST(good)
{
    static const char good[] = "TLSv1.2 TLS_ECDHE_PSK_WITH_CHACHA20_POLY1305_SHA256";
    struct tls_server *server = shared_server("mail", A, B);
    struct tls_client *first = shared_client("mail", A, NULL), *second = shared_client("mail", B, C);

    is_string(meet_shared(server, first), good, "the first secret, by the only suite");
    is_string(meet_shared(server, second), good, "the second one is accepted, too; a caller uses its first");
    is_string(meet_shared(server, first), good, "again");
    tls_client_free(&first);
    tls_client_free(&second);
    tls_server_free(&server);
}

static bool
has_bytes(const struct buffer *b, const char *bytes)
{
    return memmem(b->at, b->length, bytes, strlen(bytes)) != NULL;
}

/* The view of an observer on the network. */
TEST(seen)
{
    struct tls_client_options options = {.level = TLS_LEVEL_NONE};
    struct tls_server *server = shared_server("mail", A, NULL);
    struct tls_client *client = shared_client("mail", A, NULL);
    struct end s = {.session = NULL}, c = {.session = NULL};
    struct tls_secret secret;
    char got[100];

    tls_secret_make(&secret, "mail", TEXT(A));
    is_string(secret.identity, "mail/3eb1bd43", "the identity: the group, and 8 digits of a digest");
    ok(strncmp(meet(server, client, &options, &s, &c), "TLSv1.2", 7) == 0);
    ok_named(has_bytes(&c.sent, secret.identity), "the identity can be seen");
    ok(tls_session_write(c.session, TEXT("XGIVE something")));
    ok(tls_session_read(s.session, got, sizeof(got)) == 15 && memcmp(got, "XGIVE", 5) == 0);
    ok_named(!has_bytes(&c.sent, "XGIVE") && !has_bytes(&c.sent, A), "neither the bytes nor the secret");
    ok_named(!tls_session_facts(c.session).is_resumed, "nothing is resumed");
    end_finish(&s);
    end_finish(&c);
    tls_client_free(&client);
    tls_server_free(&server);
}

TEST(wrong)
{
    struct tls_server *server = shared_server("mail", A, B);
    struct tls_client *other = shared_client("mail", C, NULL), *group = shared_client("post", A, NULL);
    char both[300];

    snprintf(both, sizeof(both), "server: %s, client: %s", unknown, unknown);
    is_string(meet_shared(server, other), both, "another secret: both sides say so");
    is_string(meet_shared(server, group), both, "the same secret of another group");
    /* A thief of identities. */
    tls_secret_make(&server->secrets[0], "mail", TEXT(C));
    tls_secret_make(&server->secrets[1], "mail", TEXT(B));
    server->secrets[0].key[0] ^= 1;
    is_string(meet_shared(server, other), both, "the right identity with another key");
    tls_client_free(&other);
    tls_client_free(&group);
    tls_server_free(&server);
}

/* Replayed: each server has a random number of its own. */
TEST(replay)
{
    struct tls_client_options options = {.level = TLS_LEVEL_NONE};
    struct tls_server *server = shared_server("mail", A, NULL);
    struct tls_client *client = shared_client("mail", A, NULL);
    struct end s = {.session = NULL}, c = {.session = NULL}, again = {.session = NULL}, nobody = {.session = NULL};
    enum progress progress = PROGRESS_MORE;

    ok(strncmp(meet(server, client, &options, &s, &c), "TLSv1.2", 7) == 0);
    ok(tls_session_write(c.session, TEXT("XGIVE something")));
    end_start(&again, &nobody);
    end_start(&nobody, &again);
    again.session = tls_session_serve(server, TLS_MAIL, &(struct tls_pipe){end_receive, end_send, &again});
    ok(buffer_add(&again.in, buffer_text(&c.sent)));
    for (int i = 0; i < 20 && progress == PROGRESS_MORE; i++)
        progress = tls_session_shake(again.session);
    ok_named(progress == PROGRESS_BAD, "what a client has sent opens no other session");
    is_string(tls_session_error(again.session), unknown, "it does not prove that one knows the secret");
    end_finish(&s);
    end_finish(&c);
    end_finish(&again);
    end_finish(&nobody);
    tls_client_free(&client);
    tls_server_free(&server);
}

/* Certificates do not help at the door, nor a secret at the ports for mail. */
static void
test_certificates(struct secrets *k)
{
    struct tls_client_options plain = {.level = TLS_LEVEL_NONE};
    struct tls_server *door = shared_server("mail", A, NULL), *mail = server_of(k, "good");
    struct tls_client *sibling = shared_client("mail", A, NULL), *client = client_of(k, "ca.pem");
    struct end s = {.session = NULL}, c = {.session = NULL};

    ok_named(strstr(meet(door, client, &plain, &s, &c), "server: TLS: ") != NULL && c.session != NULL, "a client with trust anchors");
    ok(!tls_session_facts(s.session).cipher[0] && !tls_session_facts(c.session).cipher[0]);
    end_finish(&s);
    end_finish(&c);
    ok_named(strstr(meet_shared(mail, sibling), "server: TLS: ") != NULL, "a server with certificates");
    tls_client_free(&client);
    tls_client_free(&sibling);
    tls_server_free(&mail);
    tls_server_free(&door);
}

static void
test_net(void)
{
    struct world *w = start("127.0.0.1:0");
    struct tls_server *server = shared_server("mail", A, NULL);
    struct tls_client *client = shared_client("mail", A, NULL), *other = shared_client("mail", C, NULL);
    struct net_tls calling = as_client(client, TLS_LEVEL_NONE, "");

    shake_hands(w, server, &calling);
    ok(net_is_secured(w->client.connection) && net_is_secured(w->server.connection));
    net_send(w->client.connection, TEXT("XPEER"));
    until(w, w->server.got.length == 5);
    is_text(buffer_text(&w->server.got), TEXT("XPEER"), "bytes arrive");
    part(w);
    calling = as_client(other, TLS_LEVEL_NONE, "");
    shake_hands(w, server, &calling);
    until(w, strchr(w->client.told, 'F'));
    is_string(net_error(w->client.connection), unknown, "another secret fails with a clear line");
    part(w);
    tls_client_free(&client);
    tls_client_free(&other);
    tls_server_free(&server);
    net_finish(w);
}

int
main(void)
{
    struct secrets k;

    make_secrets(&k);
    tls = k.tls;
    tap_tests("");
    test_certificates(&k);
    test_net();
    drop_secrets(&k);
    return done();
}
