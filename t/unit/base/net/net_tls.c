/* Connections under TLS: both sides in one process, over loopback. */
/* link: t/sim/clock.c */
#include "base/net/net_internal.h"

#include "t/sim/clock.h"
#include "t/support/tls_world.h"

static bool
is_13(const struct world *w)
{
    return strcmp(net_tls_facts(w->client.connection).version, "TLSv1.3") == 0;
}

static void
test_handshake(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "Mail.Example.NET.");
    struct world *w = sides.world;
    struct net_connection *c;

    connect_client(w);
    until(w, w->server.connection && w->client.told[0]);
    part(w);
    shake_hands(w, sides.server, &sides.calling);
    c = w->client.connection;
    is_string(w->client.told, "CS", "the client is connected, then secured");
    is_string(w->server.told, "S", "the server too");
    ok(net_is_secured(c) && net_is_secured(w->server.connection));
    ok_named(net_tls_facts(c).is_verified, "the certificate is that of the host");
    is_string(net_tls_facts(c).peer_name, "mail.example.net", "by this name");
    ok_named(strcmp(net_tls_facts(c).version, is_13(w) ? "TLSv1.3" : "TLSv1.2") == 0,
             "TLS 1.2 at least");
    is_string(net_tls_facts(w->server.connection).version, net_tls_facts(c).version, "both say so");
    is_string(net_tls_facts(c).cipher,
              is_13(w) ? "TLS_CHACHA20_POLY1305_SHA256"
                       : "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
              "with forward secrecy");
    is_string(net_tls_facts(w->server.connection).cipher, net_tls_facts(c).cipher, "both");
    ok_named(!net_tls_facts(w->server.connection).is_verified, "clients have no certificate");
    net_send(c, TEXT("EHLO client\r\n"));
    net_send(w->server.connection, TEXT("220 server\r\n"));
    until(w, w->client.got.length && w->server.got.length);
    is_text(buffer_text(&w->server.got), TEXT("EHLO client\r\n"), "bytes go there");
    is_text(buffer_text(&w->client.got), TEXT("220 server\r\n"), "and back");
    net_send(c, TEXT("QUIT\r\n"));
    net_close(&w->client.connection);
    until(w, strchr(w->server.told, 'E'));
    is_text(buffer_text(&w->server.got), TEXT("EHLO client\r\nQUIT\r\n"),
            "what was unsent comes before the end");
    is_string(w->server.told, "SIE", "which is an orderly one");
    tls_sides_finish(&sides);
}

/* The verdict on each certificate with verification and without. */
static const struct {
    const char *own, *anchors, *host, *error;
} certificates[] = {
    {"good",     "ca.pem",       "mail.example.net",   NULL                             },
    {"good",     "ca.pem",       "mx.example.net",     NULL                             },
    {"good",     "both.pem",     "mx.example.net",     NULL                             },
    {"good",     "anchors",      "mx.example.net",     NULL                             },
    {"good",     "ca.pem",       "127.0.0.1",          NULL                             },
    {"good",     "ca.pem",       "::1",                NULL                             },
    {"wild",     "ca.pem",       "any.example.org",    NULL                             },
    {"common",   "ca.pem",       "common.example.net",
     "TLS: certificate does not name common.example.net (it has no alternative names, "
     "and a common name does not count)"                                                },
    {"rsa",      "ca.pem",       "rsa.example.net",    NULL                             },
    {"good",     "ca.pem",       "127.0.0.2",
     "TLS: certificate does not name 127.0.0.2 (it names mail.example.net, "
     "mx.example.net, 127.0.0.1 and 1 others)"                                          },
    {"good",     "ca.pem",       "evil.example.net",
     "TLS: certificate does not name evil.example.net (it names mail.example.net, "
     "mx.example.net, 127.0.0.1 and 1 others)"                                          },
    {"wild",     "ca.pem",       "ignored.example",
     "TLS: certificate does not name ignored.example (it names *.example.org)"          },
    {"wild",     "ca.pem",       "example.org",
     "TLS: certificate does not name example.org (it names *.example.org)"              },
    {"wild",     "ca.pem",       "a.b.example.org",
     "TLS: certificate does not name a.b.example.org (it names *.example.org)"          },
    {"common",   "ca.pem",       "mail.example.net",
     "TLS: certificate does not name mail.example.net (it has no alternative names, "
     "and a common name does not count)"                                                },
    {"many",     "ca.pem",       "e.example",
     "TLS: certificate does not name e.example (it names a.example, b.example, "
     "192.0.2.1 and 2 others)"                                                          },
    {"expired",  "ca.pem",       "mail.example.net",
     "TLS: certificate has expired on 2021-02-03 04:05:06 UTC"                          },
    {"future",   "ca.pem",       "mail.example.net",
     "TLS: certificate is not valid before 2048-01-01 00:00:00 UTC, or the clock of this host is wrong"},
    {"stranger", "ca.pem",       "mail.example.net",
     "TLS: unknown issuer O=Petrel tests, CN=Other CA"                                  },
    {"good",     "other-ca.pem", "mail.example.net",
     "TLS: unknown issuer O=Petrel tests, CN=Good CA"                                   },
    {"good",     NULL,           "mail.example.net",
     "TLS: unknown issuer O=Petrel tests, CN=Good CA"                                   },
    {"self",     "ca.pem",       "mail.example.net",   "TLS: certificate is self-signed"},
    {"self",     "self.pem",     "mail.example.net",   NULL                             },
};

static void
test_certificates(const struct secrets *k)
{
    for (size_t i = 0; i < sizeof(certificates) / sizeof(certificates[0]); i++) {
        struct tls_sides sides = tls_sides_start(
            k, certificates[i].own, certificates[i].anchors, certificates[i].host);
        struct world *w = sides.world;
        bool good = !certificates[i].error;

        printf("# %s for %s\n", certificates[i].own, certificates[i].host);
        shake_hands(w, sides.server, &sides.calling);
        is_string(net_error(w->client.connection), good ? "" : certificates[i].error,
                  "verifying");
        is_string(w->client.told, good ? "CS" : "CF", "is secured, or fails");
        ok(net_tls_facts(w->client.connection).is_verified == good);
        if (!good) {
            net_send(w->client.connection, TEXT("secret"));
            until(w, strpbrk(w->server.told, "F"));
            is_number(w->server.got.length, 0, "nothing is said to the wrong one");
        }
        part(w);
        sides.calling.options.level = TLS_LEVEL_NONE;
        shake_hands(w, sides.server, &sides.calling);
        is_string(w->client.told, "CS", "anybody will do for level none");
        ok(net_tls_facts(w->client.connection).is_verified == good);
        part(w);
        /* A verdict of one level does not count at the other. */
        sides.calling.options.level = TLS_LEVEL_VERIFY;
        shake_hands(w, sides.server, &sides.calling);
        is_string(w->client.told, good ? "CS" : "CF", "the same once more");
        tls_sides_finish(&sides);
    }
}

static void
test_names_of_policy(const struct secrets *k)
{
    struct tls_sides sides =
        tls_sides_start(k, "wild exact good", "ca.pem", "one.example.org");
    struct world *w = sides.world;
    struct text names[] = {TEXT("nobody.example"), TEXT("mx.example.net")};

    sides.calling.options.names = names;
    sides.calling.options.name_count = 2;
    shake_hands(w, sides.server, &sides.calling);
    is_string(net_error(w->client.connection),
              "TLS: certificate does not name nobody.example (it names "
              "one.example.org)",
              "given names count instead of the host");
    part(w);
    sides.calling.options.host = TEXT("mail.example.net");
    shake_hands(w, sides.server, &sides.calling);
    ok(net_tls_facts(w->client.connection).is_verified);
    is_string(net_tls_facts(w->client.connection).peer_name, "mx.example.net",
              "any of the names will do");
    part(w);
    sides.calling.options.host = TEXT("");
    sides.calling.options.name_count = 0;
    sides.calling.options.level = TLS_LEVEL_NONE;
    shake_hands(w, sides.server, &sides.calling);
    is_string(w->client.told, "CS", "nobody in particular");
    ok(!net_tls_facts(w->client.connection).is_verified);
    tls_sides_finish(&sides);
}

static void
test_choice(const struct secrets *k)
{
    static const struct {
        const char *host, *name;
    } cases[] = {
        {"mail.example.net", "mail.example.net"},
        {"one.example.org",  "one.example.org" },
        {"two.example.org",  "*.example.org"   },
        {"rsa.example.net",  "rsa.example.net" },
        {"unknown.example",  "mail.example.net"},
        {"127.0.0.1",        "127.0.0.1"       },
        {"ONE.EXAMPLE.ORG",  "one.example.org" },
    };
    struct world *w = start("127.0.0.1:0");
    struct tls_server *server = server_of(k, "good wild exact rsa");
    struct tls_client *client = client_of(k, "ca.pem");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct net_tls calling = as_client(client, TLS_LEVEL_NONE, cases[i].host);

        shake_hands(w, server, &calling);
        is_string(net_tls_facts(w->client.connection).peer_name, cases[i].name,
                  cases[i].host);
        part(w);
    }
    tls_server_free(&server);
    tls_client_free(&client);
    net_finish(w);
}

/* Bytes must cross, for TLS 1.3 tells of its tickets after the handshake. */
static void
exchange(struct world *w)
{
    net_send(w->server.connection, TEXT("220"));
    until(w, w->client.got.length == 3);
}

static void
test_resumption(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    struct tls_server *other = server_of(k, "good");

    shake_hands(w, sides.server, &sides.calling);
    ok_named(!net_tls_facts(w->client.connection).is_resumed, "the first time all is new");
    exchange(w);
    part(w);
    for (int i = 0; i < 3; i++) {
        shake_hands(w, sides.server, &sides.calling);
        ok_named(net_tls_facts(w->client.connection).is_resumed, "then it is resumed");
        ok_named(net_tls_facts(w->client.connection).is_verified, "and still verified");
        exchange(w);
        is_text(buffer_text(&w->client.got), TEXT("220"), "and works");
        part(w);
    }
    shake_hands(w, other, &sides.calling);
    is_string(w->client.told, "CS", "a server with other keys for its tickets");
    ok_named(!net_tls_facts(w->client.connection).is_resumed, "knows nothing of it");
    exchange(w);
    part(w);
    sides.calling.options.level = TLS_LEVEL_NONE;
    shake_hands(w, other, &sides.calling);
    ok_named(!net_tls_facts(w->client.connection).is_resumed, "another level is another story");
    part(w);
    sides.calling.options.level = TLS_LEVEL_VERIFY;
    sides.calling.options.host = TEXT("mx.example.net");
    shake_hands(w, other, &sides.calling);
    ok_named(!net_tls_facts(w->client.connection).is_resumed, "and so is another name");
    tls_server_free(&other);
    tls_sides_finish(&sides);
}

static void
test_reload(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;

    shake_hands(w, sides.server, &sides.calling);
    tls_server_free(&sides.server);
    tls_client_free(&sides.client);
    ok(sides.server == NULL && sides.client == NULL);
    exchange(w);
    is_text(buffer_text(&w->client.got), TEXT("220"),
            "connections keep what they were made with");
    part(w);
    net_finish(w);
}

static void
test_much(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    size_t size = NET_UNSENT_MAX, total = 6 * size;
    char *bytes = pattern(total);
    int64_t began = net_now_ms();

    shake_hands(w, sides.server, &sides.calling);
    for (size_t sent = 0; sent < total; sent += size) {
        net_send(w->client.connection, text_of(bytes + sent, size));
        net_send(w->server.connection, text_of(bytes + sent, size));
        until(w,
              !net_unsent(w->client.connection) && !net_unsent(w->server.connection));
    }
    until(w, w->client.got.length == total && w->server.got.length == total);
    ok_named(text_equal(buffer_text(&w->server.got), text_of(bytes, total)),
             "24 MB there, unchanged");
    ok_named(text_equal(buffer_text(&w->client.got), text_of(bytes, total)),
             "24 MB back, unchanged");
    printf("# %zu MB/s through both ends\n",
           2 * total / 1000 / (size_t)(net_now_ms() - began + 1));
    ok_named(strchr(w->client.told, 'D') && strchr(w->server.told, 'D'),
             "and we hear when output has drained");
    free(bytes);
    tls_sides_finish(&sides);
}

/* A reader that leaves its input, then takes a bit, then all: nothing may stick in TLS.
 */
static void
test_slow_reader(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    size_t size = 3000000;
    char *bytes = pattern(size);
    struct text input;

    shake_hands(w, sides.server, &sides.calling);
    w->server.keeps = true;
    net_send(w->client.connection, text_of(bytes, size));
    for (int i = 0; i < 200; i++)
        loop_turn(w->loop, 1);
    input = net_input(w->server.connection);
    is_number(input.length, NET_INPUT_MAX, "unconsumed input stops at its limit");
    ok_named(memcmp(input.at, bytes, input.length) == 0, "unchanged");
    net_want_input(w->server.connection, false);
    net_consume(w->server.connection, 1000);
    for (int i = 0; i < 50; i++)
        loop_turn(w->loop, 1);
    is_number(net_input(w->server.connection).length, NET_INPUT_MAX - 1000,
              "nothing more is decrypted for one who wants none");
    net_want_input(w->server.connection, true);
    until(w, net_input(w->server.connection).length == NET_INPUT_MAX);
    is_number(net_input(w->server.connection).length, NET_INPUT_MAX,
              "then up to the limit");
    w->server.keeps = false;
    net_consume(w->server.connection, 1);
    until(w, w->server.got.length == size - 1001);
    ok_named(
        text_equal(buffer_text(&w->server.got), text_of(bytes + 1001, size - 1001)),
        "and to the last byte");
    net_want_input(w->server.connection, false);
    net_close(&w->client.connection);
    forget(&w->server);
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
    is_string(w->server.told, "", "the end waits too");
    net_want_input(w->server.connection, true);
    until(w, w->server.told[0]);
    is_string(w->server.told, "E", "until it is wanted");
    free(bytes);
    tls_sides_finish(&sides);
}

/* Small bits of a large record are taken one by one while the socket is silent. */
static void
test_crumbs(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    size_t size = NET_INPUT_MAX + 10000, taken = 0;
    char *bytes = pattern(size);
    bool same = true;

    shake_hands(w, sides.server, &sides.calling);
    w->server.keeps = true;
    net_send(w->client.connection, text_of(bytes, size));
    for (int i = 0; i < 3000 && taken < size; i++) {
        struct text input = net_input(w->server.connection);
        size_t bit = input.length < 777 ? input.length : 777;

        same = same && memcmp(input.at, bytes + taken, bit) == 0;
        net_consume(w->server.connection, bit);
        taken += bit;
        loop_turn(w->loop, 1);
    }
    is_number(taken, size, "all crumbs come");
    ok_named(same, "in their order");
    free(bytes);
    tls_sides_finish(&sides);
}

/* A man in the middle can cut, but not forge. */
static void
test_truncation(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;

    shake_hands(w, sides.server, &sides.calling);
    net_send(w->client.connection, TEXT("DATA, of which a par"));
    until(w, w->server.got.length);
    net_abort(&w->client.connection);
    until(w, strpbrk(w->server.told, "EF"));
    is_string(w->server.told, "SIF", "an end without close_notify is a failure");
    is_string(net_error(w->server.connection),
              "TLS: the peer ended the connection without close_notify", "and says so");
    is_number(net_errno(w->server.connection), ECONNRESET, "with a number");
    tls_sides_finish(&sides);
}

/* STARTTLS: what was said in clear before is not heard after, in either direction. */
static void
test_starttls(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    struct net_tls serving = as_server(sides.server);

    connect_client(w);
    w->server.keeps = true;
    net_send(w->client.connection, TEXT("STARTTLS\r\nRSET\r\n"));
    until(w, w->server.connection && net_input(w->server.connection).length);
    net_send(w->server.connection, TEXT("220 go ahead\r\n"));
    w->calling = true;
    net_start_tls(w->server.connection, &serving);
    w->calling = false;
    is_number(net_input(w->server.connection).length, 0,
              "what came with STARTTLS is gone");
    ok(!net_is_secured(w->server.connection));
    is_string(net_tls_facts(w->server.connection).version, "", "nothing to tell yet");
    is_string(net_tls_facts(w->server.connection).cipher, "", "of the cipher");
    net_send(w->server.connection, TEXT("250 sent too early\r\n"));
    until(w, w->client.got.length);
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
    is_text(buffer_text(&w->client.got), TEXT("220 go ahead\r\n"),
            "what was sent before goes in clear, what was sent after waits");
    buffer_clear(&w->client.got);
    net_start_tls(w->client.connection, &sides.calling);
    net_send(w->client.connection, TEXT("EHLO again\r\n"));
    until(w, w->client.got.length && net_input(w->server.connection).length);
    is_text(buffer_text(&w->client.got), TEXT("250 sent too early\r\n"),
            "for the handshake");
    is_text(net_input(w->server.connection), TEXT("EHLO again\r\n"), "on both sides");
    tls_sides_finish(&sides);
}

static void
start_serving(struct world *w, struct tls_server *server)
{
    struct net_tls serving = as_server(server);

    net_start_tls(w->server.connection, &serving);
}

/* Not TLS at all, or what stops in the middle. */
static void
test_junk(const struct secrets *k)
{
    static const char *const junk[] = {
        "EHLO evil.example\r\nMAIL FROM:<>\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\x16\x03\x01\x00\x01\x01",
        "\x15\x03\x03\x00\x02\x02\x28",
        "\x80\x2e\x01\x03\x01 an old hello",
        "\x17\x03\x03\x00\x05hello",
    };
    struct tls_server *server = server_of(k, "good");
    char at[200];

    for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
        struct world *w = start("127.0.0.1:0");
        int fd = raw_client(w);
        const char *heard;

        start_serving(w, server);
        net_send(w->server.connection, TEXT("220 secret\r\n"));
        if (i == 2 || i == 3)
            ok(send(fd, junk[i], i == 2 ? 6 : 7, 0) > 0);
        else if (i == 5)
            ok(send(fd, junk[i], 10, 0) > 0);
        else
            raw_send(fd, junk[i]);
        shutdown(fd, SHUT_WR);
        until(w, w->server.told[0]);
        is_string(w->server.told, "F", "junk breaks the connection");
        printf("# %s\n", net_error(w->server.connection));
        ok_named(strncmp(net_error(w->server.connection), "TLS: ", 5) == 0,
                 "with a reason");
        net_close(&w->server.connection);
        heard = raw_read(fd, at, sizeof(at));
        ok_named(!strstr(heard, "220"), "and nothing was said in clear");
        close(fd);
        net_finish(w);
    }
    tls_server_free(&server);
}

static void
test_injected_reply(const struct secrets *k)
{
    struct world *w = start("127.0.0.1:0");
    struct tls_client *client = client_of(k, "ca.pem");
    struct net_tls calling = as_client(client, TLS_LEVEL_NONE, "mail.example.net");

    connect_client(w);
    until(w, w->server.connection && w->client.told[0]);
    forget(&w->client);
    net_start_tls(w->client.connection, &calling);
    net_send(w->client.connection, TEXT("EHLO"));
    net_send(w->server.connection, TEXT("250-evil\r\n250 AUTH PLAIN\r\n"));
    until(w, w->client.told[0]);
    is_string(w->client.told, "F", "clear text instead of a server's hello");
    is_string(net_error(w->client.connection), "TLS: the peer does not speak TLS",
              "is called by its name");
    is_number(w->client.got.length, 0, "and never taken for a reply");
    ok_named(text_find(buffer_text(&w->server.got), 'E') == TEXT_NONE ||
                 !memmem(w->server.got.at, w->server.got.length, "EHLO", 4),
             "nor is a command sent in clear");
    part(w);
    tls_client_free(&client);
    net_finish(w);
}

static void
test_timeout(const struct secrets *k)
{
    struct world *w = start("127.0.0.1:0");
    struct tls_server *server = server_of(k, "good");
    int fd = raw_client(w);
    int rounds = 0;

    clock_stop();
    net_set_timeout(w->server.connection, 200);
    start_serving(w, server);
    net_send(w->server.connection, TEXT("220 secret\r\n"));
    raw_send(fd, "\x16\x03\x01");
    for (; rounds < 300 && !w->server.told[0]; rounds++) {
        clock_pass(20);
        loop_turn(w->loop, 1);
        send(fd, "\x02", 1, MSG_NOSIGNAL);
    }
    is_string(w->server.told, "T", "a byte now and then does not hold a handshake");
    ok_named(rounds <= 11, "as a whole it has the time-out");
    clock_go();
    net_close(&w->server.connection);
    for (int i = 0; i < 10; i++)
        loop_turn(w->loop, 1);
    ok_named(net_connections(w->net) <= 1, "closing waits for nothing");
    is_number(raw_drain(w, fd, NULL), 0, "and says nothing");
    close(fd);
    tls_server_free(&server);
    net_finish(w);
}

/* After close_notify comes clear text: nobody listens. */
static void
test_after_the_end(const struct secrets *k)
{
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    int fd;

    shake_hands(w, sides.server, &sides.calling);
    fd = -1;
    for (int i = 3; i < 64 && fd < 0; i++) { /* the client's own descriptor */
        struct sockaddr_in name;
        socklen_t length = sizeof(name);

        if (getsockname(i, (struct sockaddr *)&name, &length) == 0 &&
            name.sin_family == AF_INET &&
            name.sin_port == htons(net_local(w->client.connection)->port))
            fd = dup(i);
    }
    ok_named(fd >= 0, "a thief has the socket");
    net_close(&w->client.connection);
    until(w, strchr(w->server.told, 'E'));
    is_string(w->server.told, "SE", "close_notify came");
    send(fd, "NOOP\r\n", 6, MSG_NOSIGNAL);
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
    is_string(w->server.told, "SE", "clear text behind it tells nothing");
    is_number(w->server.got.length, 0, "and is not read");
    close(fd);
    tls_sides_finish(&sides);
}

/* Closing from within the events of TLS. */
static void
test_close_within(const struct secrets *k)
{
    static const enum then thens[] = {THEN_CLOSE, THEN_ABORT, THEN_FREE_NET};
    struct tls_server *server = server_of(k, "good");
    struct tls_client *client = client_of(k, "ca.pem");
    struct net_tls calling = as_client(client, TLS_LEVEL_VERIFY, "mail.example.net");

    for (size_t i = 0; i < 3; i++) {
        struct world *w = start("127.0.0.1:0");
        struct net_tls serving = as_server(server);

        connect_client(w);
        until(w, w->server.connection && w->client.told[0]);
        net_start_tls(w->server.connection, &serving);
        net_start_tls(w->client.connection, &calling);
        net_send(w->client.connection, TEXT("EHLO"));
        w->server.then = thens[i];
        until(w, strchr(w->server.told, 'S'));
        for (int j = 0; j < 50; j++)
            loop_turn(w->loop, 1);
        is_string(w->server.told, "S", "no event comes after closing");
        if (w->net)
            net_abort(&w->client.connection);
        net_finish(w);
    }
    tls_server_free(&server);
    tls_client_free(&client);
}

/* The bar: 1,000 idle sessions in 64 MB. Both ends are here: 2,000 of them. */
static void
test_memory(const struct secrets *k)
{
    enum { PAIRS = 1000 };
    struct tls_sides sides = tls_sides_start(k, "good", "ca.pem", "mail.example.net");
    struct world *w = sides.world;
    struct net_tls serving = as_server(sides.server);
    struct net_connection **all = memory_array(PAIRS * 2, sizeof(*all));
    struct rlimit limit = {4096, 4096};
    struct mallinfo2 before, after;
    size_t each;
    int secured = 0;

    setrlimit(RLIMIT_NOFILE, &limit);
    shake_hands(w, sides.server, &sides.calling); /* what is made once */
    part(w);
    before = mallinfo2();
    for (int i = 0; i < PAIRS; i++) {
        connect_client(w);
        until(w, w->server.connection);
        net_start_tls(w->server.connection, &serving);
        net_start_tls(w->client.connection, &sides.calling);
        until(w, strchr(w->client.told, 'S') && strchr(w->server.told, 'S'));
        net_send(w->server.connection, TEXT("220 hello\r\n"));
        until(w, w->client.got.length);
        secured += net_is_secured(w->server.connection);
        all[2 * i] = w->client.connection;
        all[2 * i + 1] = w->server.connection;
        w->client.connection = w->server.connection = NULL;
        forget(&w->client);
        forget(&w->server);
        w->client.got.length = 0;
    }
    after = mallinfo2();
    is_number(secured, PAIRS, "a thousand sessions");
    each =
        (after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / PAIRS / 2;
    printf("# %zu bytes for an idle TLS connection\n", each);
    if (!TAP_ADDRESS_SANITIZER)
        ok_named(each * 1000 < 64 * 1024 * 1024, "a thousand are in 64 MB");
    for (int i = 0; i < PAIRS * 2; i++)
        net_close(&all[i]);
    until(w, net_connections(w->net) == 0);
    after = mallinfo2();
    if (!TAP_ADDRESS_SANITIZER)
        ok_named(after.uordblks < before.uordblks + 1000000, "and gone when closed");
    free(all);
    tls_server_free(&sides.server);
    tls_client_free(&sides.client);
    net_finish(w);
}

int
main(void)
{
    struct secrets k;

    make_secrets(&k);
    test_handshake(&k);
    test_certificates(&k);
    test_names_of_policy(&k);
    test_choice(&k);
    test_resumption(&k);
    test_reload(&k);
    test_much(&k);
    test_slow_reader(&k);
    test_crumbs(&k);
    test_truncation(&k);
    test_starttls(&k);
    test_junk(&k);
    test_injected_reply(&k);
    test_timeout(&k);
    test_after_the_end(&k);
    test_close_within(&k);
    test_memory(&k);
    drop_secrets(&k);
    return done();
}
