/* Connections begin, time out and end as promised, also from inside their events. */
/* link: t/sim/clock.c */
#include "base/net/net.h"
#include "base/net/net_internal.h"

#include "t/sim/clock.h"
#include "t/support/net_world.h"

#include <malloc.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

static void
test_echo(const char *listen_on)
{
    struct world *w = start(listen_on);
    size_t size = 100000;
    char *bytes = pattern(size), text[NET_ADDRESS_TEXT_MAX];

    printf("# %s\n", listen_on);
    w->server.echoes = true;
    connect_client(w);
    is_string(w->client.told, "", "net_connect() tells nothing before it returns");
    net_send(w->client.connection, TEXT("early "));
    until(w, w->client.got.length);
    is_string(w->client.told, "CI", "connected, then input");
    is_text(buffer_text(&w->client.got), TEXT("early "), "what was sent early arrives");
    buffer_clear(&w->client.got);
    net_send(w->client.connection, text_of(bytes, size));
    is_number(net_unsent(w->client.connection), size,
              "sending waits for the end of a turn");
    until(w, w->client.got.length == size);
    ok_named(text_equal(buffer_text(&w->client.got), text_of(bytes, size)),
             "100,000 bytes come back as they went");
    is_number(net_unsent(w->client.connection), 0, "all is sent");
    is_number(net_connections(w->net), 2, "two connections");
    is_number(net_listener_counts(w->listener).open, 1, "one of them is the listener's");
    is_number((long)net_listener_counts(w->listener).accepted, 1, "which has accepted one");
    ok_named(net_address_equal(net_peer(w->client.connection), net_where(w)), "peer");
    ok_named(net_address_equal(net_local(w->server.connection), net_where(w)), "local");
    ok_named(net_where(w)->family == NET_UNIX ||
                 net_address_equal(net_local(w->client.connection),
                                   net_peer(w->server.connection)),
             "both sides agree on the client's address");
    net_address_format(net_peer(w->server.connection), text);
    printf("# the client is %s\n", text);
    is_string(net_error(w->client.connection), "", "no error");
    net_close(&w->client.connection);
    ok_named(!w->client.connection, "net_close() empties the pointer");
    until(w, strchr(w->server.told, 'E'));
    ok_named(w->server.told[0] == 'I' && strchr(w->server.told, 'E'),
             "the other side hears all of it, then the end");
    net_close(&w->server.connection);
    until(w, !net_connections(w->net));
    is_number(net_connections(w->net), 0, "both are gone soon after");
    is_number(net_listener_counts(w->listener).open, 0, "none is open");
    is_number((long)net_listener_counts(w->listener).accepted, 1, "it has accepted one");
    free(bytes);
    net_finish(w);
}

static void
test_close_delivers(void)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    size_t size = 3 << 20;
    char *bytes = pattern(size);
    struct buffer got;

    buffer_init(&got, GOT_MAX);
    net_send(w->server.connection, text_of(bytes, size));
    net_close(&w->server.connection);
    is_number(net_connections(w->net), 1, "a closing connection lingers");
    is_number(raw_drain(w, fd, &got), (int64_t)size, "3 MB sent before a close arrive");
    ok_named(text_equal(buffer_text(&got), text_of(bytes, size)), "unchanged");
    is_number(net_connections(w->net), 1, "it waits for the peer");
    close(fd);
    until(w, !net_connections(w->net));
    is_number(net_connections(w->net), 0, "and is gone with it");
    is_string(w->server.told, "", "telling nothing");
    buffer_free(&got);
    free(bytes);
    net_finish(w);
}

/* The reply to a client that we throw out must survive what the client still sends. */
static void
test_close_on_talker(int blocks, bool ends_with_peer)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    char *bytes = pattern(BLOCK), at[100];
    int64_t sent = 0;

    fcntl(fd, F_SETFL, O_NONBLOCK);
    w->server.keeps = true;
    raw_send(fd, "hello");
    until(w, w->server.told[0]);
    net_send(w->server.connection, TEXT("521 bye\r\n"));
    net_close(&w->server.connection);
    for (int i = 0; i < blocks; i++) {
        ssize_t n = send(fd, bytes, BLOCK, MSG_NOSIGNAL);

        sent += n > 0 ? n : 0;
        loop_turn(w->loop, 0);
    }
    printf("# %lld bytes were sent after the reply\n", (long long)sent);
    ok_named(sent > 1 << 20, "the peer may go on sending");
    ok_named(sent < 64 << 20, "but not for ever");
    is_string(raw_read(fd, at, sizeof(at)), "521 bye\r\n", "and still finds the reply");
    is_string(raw_read(fd, at, sizeof(at)), "(end)", "and a proper end");
    is_string(w->server.told, "I", "its bytes are told to nobody");
    close(fd);
    for (int i = 0; i < 100 && net_connections(w->net); i++)
        loop_turn(w->loop, 1);
    is_number(net_connections(w->net), !ends_with_peer,
              "the peer's end is seen, unless it sent too much");
    free(bytes);
    net_finish(w);
}

static void
test_half_close(void)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    char at[100];

    raw_send(fd, "last");
    shutdown(fd, SHUT_WR);
    until(w, strchr(w->server.told, 'E'));
    is_string(w->server.told, "IE", "input, then the end");
    is_text(buffer_text(&w->server.got), TEXT("last"), "nothing is lost");
    for (int i = 0; i < 5; i++)
        loop_turn(w->loop, 1);
    is_string(w->server.told, "IE", "the end is told once");
    net_send(w->server.connection, TEXT("reply"));
    until(w, is_readable(fd));
    is_string(raw_read(fd, at, sizeof(at)), "reply", "our half is still open");
    net_send(w->server.connection, TEXT("bye"));
    net_close(&w->server.connection);
    until(w, is_readable(fd));
    is_string(raw_read(fd, at, sizeof(at)), "bye", "until we close it");
    is_number(net_connections(w->net), 0, "which then waits for nobody");
    close(fd);
    net_finish(w);
}

/* Time, and two turns in which what is due comes. */
static void
pass(struct world *w, int64_t ms)
{
    clock_pass(ms);
    loop_turn(w->loop, 0);
    loop_turn(w->loop, 0);
}

static void
test_timeout(void)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);

    clock_stop();
    net_set_timeout(w->server.connection, 60);
    pass(w, 35);
    raw_send(fd, "x");
    until(w, w->server.got.length);
    pass(w, 59);
    is_string(w->server.told, "I", "a time-out is counted from the last byte");
    pass(w, 2);
    is_string(w->server.told, "IT", "a silent peer times out");
    pass(w, 80);
    is_string(w->server.told, "IT", "once");

    net_set_timeout(w->server.connection, 60000);
    net_set_timeout(w->server.connection, 10);
    pass(w, 11);
    is_string(w->server.told, "ITT", "a shorter time replaces a longer one");
    net_set_timeout(w->server.connection, 5);
    net_set_timeout(w->server.connection, 0);
    pass(w, 10);
    is_string(w->server.told, "ITT", "0 means none");

    net_set_timeout(w->server.connection, 50);
    for (int i = 0; i < 12; i++) {
        pass(w, 8);
        net_send(w->server.connection, TEXT("y"));
        loop_turn(w->loop, 0);
    }
    is_string(w->server.told, "ITT", "sending counts as life");
    net_set_timeout(w->server.connection, 5);
    net_abort(&w->server.connection);
    pass(w, 10);
    is_string(w->server.told, "ITT", "an aborted connection does not time out");
    clock_go();
    close(fd);
    net_finish(w);
}

static void
test_refused(void)
{
    struct world *w = start("127.0.0.1:0");
    struct net_address gone = *net_where(w), other = address("[::1]:0");
    char want[200], text[NET_ADDRESS_TEXT_MAX];

    net_listener_free(&w->listener);
    ok_named(!w->listener, "net_listener_free() empties the pointer");
    net_address_format(&gone, text);
    snprintf(want, sizeof(want), "cannot connect to %s: Connection refused", text);
    w->calling = true;
    w->client.connection = net_connect(w->net, &gone, NULL, on_event, &w->client);
    w->calling = false;
    ok_named(w->client.connection, "a refused connection is a connection at first");
    net_send(w->client.connection, TEXT("x"));
    until(w, w->client.told[0]);
    is_string(w->client.told, "F", "then it fails");
    is_string(net_error(w->client.connection), want, "and says why");
    is_number(net_errno(w->client.connection), ECONNREFUSED, "in numbers too");
    net_abort(&w->client.connection);

    forget(&w->client);
    w->client.connection = net_connect(w->net, &gone, &other, on_event, &w->client);
    is_string(w->client.told, "", "a source address of the wrong family");
    until(w, w->client.told[0]);
    is_string(w->client.told, "F", "fails in the next turn");
    net_close(&w->client.connection);

    forget(&w->client);
    other = address("unix:/nowhere/socket");
    w->client.connection = net_connect(w->net, &other, NULL, on_event, &w->client);
    until(w, w->client.told[0]);
    is_string(net_error(w->client.connection),
              "cannot connect to unix:/nowhere/socket: No such file or directory",
              "a missing Unix socket");
    w->client.then = THEN_CLOSE;
    net_abort(&w->client.connection);
    w->client.connection = net_connect(w->net, &gone, NULL, on_event, &w->client);
    net_close(&w->client.connection);
    is_number(net_connections(w->net), 0, "closing before connected, nothing to send");
    net_finish(w);
}

static void
test_source_address(void)
{
    struct world *w = start("127.0.0.1:0");
    struct net_address source = address("127.0.0.2:0");
    char text[NET_ADDRESS_TEXT_MAX];

    w->client.connection = net_connect(w->net, net_where(w), &source, on_event, &w->client);
    net_send(w->client.connection, TEXT("sent before connected"));
    net_close(&w->client.connection);
    until(w, strchr(w->server.told, 'E'));
    net_address_ip(net_peer(w->server.connection), text);
    is_string(text, "127.0.0.2", "the source address is ours to choose");
    is_text(buffer_text(&w->server.got), TEXT("sent before connected"),
            "closing while connecting still delivers");
    is_string(w->client.told, "", "and tells nothing");
    net_close(&w->server.connection);
    until(w, !net_connections(w->net));
    is_number(net_connections(w->net), 0, "both ends are gone");
    net_finish(w);
}

static void
test_no_descriptor(void)
{
    struct world *w = start("127.0.0.1:0");
    struct rlimit before, none;

    getrlimit(RLIMIT_NOFILE, &before);
    none = (struct rlimit){3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    connect_client(w);
    setrlimit(RLIMIT_NOFILE, &before);
    until(w, w->client.told[0]);
    is_string(w->client.told, "F", "no descriptor left is a failure like others");
    is_number(net_errno(w->client.connection), EMFILE, "that has its number");
    net_close(&w->client.connection);
    net_finish(w);
}

static void
test_then(enum then server, enum then client, const char *name)
{
    struct world *w = start("127.0.0.1:0");

    w->server.then = server;
    w->client.then = client;
    w->server.echoes = true;
    connect_client(w);
    if (client == THEN_NOTHING)
        net_send(w->client.connection, TEXT("hello"));
    until(w, !w->net || (w->accepted && net_connections(w->net) < 2) ||
                 strchr(w->server.told, 'E') || strchr(w->client.told, 'E'));
    ok_named(!w->net || (server != THEN_NOTHING ? !w->server.connection
                                                : !w->client.connection),
             name);
    for (int i = 0; i < 5; i++)
        loop_turn(w->loop, 1);
    ok_named(strlen(w->server.told) <= 1 || server == THEN_NOTHING,
             "the server heard one event at most");
    ok_named(strlen(w->client.told) <= 1 || client == THEN_NOTHING,
             "the client heard one event at most");
    if (server == THEN_CLOSE)
        is_text(buffer_text(&w->client.got), TEXT("hello"), "the reply arrived");
    net_finish(w);
}

static void
test_callbacks(void)
{
    test_then(THEN_CLOSE, THEN_NOTHING, "close inside NET_INPUT");
    test_then(THEN_ABORT, THEN_NOTHING, "abort inside NET_INPUT");
    test_then(THEN_FREE_NET, THEN_NOTHING, "net_free() inside NET_INPUT");
    test_then(THEN_NOTHING, THEN_CLOSE, "close inside NET_CONNECTED");
    test_then(THEN_NOTHING, THEN_ABORT, "abort inside NET_CONNECTED");
    test_then(THEN_NOTHING, THEN_FREE_NET, "net_free() inside NET_CONNECTED");
}

static void
test_close_in_failure(enum then then)
{
    struct world *w = start("127.0.0.1:0");
    struct net_address gone = *net_where(w);

    net_listener_free(&w->listener);
    w->client.then = then;
    w->client.connection = net_connect(w->net, &gone, NULL, on_event, &w->client);
    until(w, w->client.told[0]);
    is_string(w->client.told, "F", "closed in NET_FAILED");
    is_number(net_connections(w->net), 0, "and gone at once");
    net_finish(w);
}

TEST(idle_memory)
{
    enum { CLIENTS = 1000 };
    struct world *w = start("127.0.0.1:0");
    struct side *sides = memory_array(CLIENTS, sizeof(*sides));
    int *fds = memory_array(CLIENTS, sizeof(*fds)), greeted = 0;
    struct rlimit limit;
    size_t before, each;
    char at[100];

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    setrlimit(RLIMIT_NOFILE, &limit);
    before = mallinfo2().uordblks;
    for (int i = 0; i < CLIENTS; i++) {
        w->server = (struct side){.world = w, .got.limit = GOT_MAX};
        fds[i] = raw_client(w);
        sides[i] = w->server;
        net_attach(sides[i].connection, on_event, &sides[i]);
        net_set_timeout(sides[i].connection, 300000);
        net_send(sides[i].connection, TEXT("220 hello\r\n"));
        raw_send(fds[i], "EHLO me\r\n");
    }
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
    for (int i = 0; i < CLIENTS; i++)
        greeted += !strcmp(raw_read(fds[i], at, sizeof(at)), "220 hello\r\n") &&
                   sides[i].got.length == 9;
    is_number(greeted, CLIENTS, "1000 clients have said and heard something");
    for (int i = 0; i < CLIENTS; i++)
        buffer_free(&sides[i].got);
    each = (mallinfo2().uordblks - before) / CLIENTS; /* 0 under a sanitizer */
    printf("# %zu bytes for each idle connection\n", each);
    ok_named(each <= 1024, "an idle connection costs 1 KiB at most");
    is_number(net_connections(w->net), CLIENTS, "all are there");
    net_free(&w->net);
    loop_turn(w->loop, 0);
    is_string(raw_read(fds[0], at, sizeof(at)), "(end)", "net_free() ends the first");
    is_string(raw_read(fds[CLIENTS - 1], at, sizeof(at)), "(end)", "and the last");
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    free(fds);
    free(sides);
    w->server.connection = NULL;
    net_finish(w);
}

/* Clients that hear their last reply and stay: they must not keep our descriptors. */
TEST(lingering)
{
    enum { CLIENTS = NET_LINGERING_MAX + 20 };
    struct world *w = start("127.0.0.1:0");
    int fds[CLIENTS], heard = 0, ended = 0;
    char at[100];

    for (int i = 0; i < CLIENTS; i++) {
        w->server = (struct side){.world = w, .got.limit = GOT_MAX};
        fds[i] = raw_client(w);
        net_send(w->server.connection, TEXT("221 bye\r\n"));
        net_close(&w->server.connection);
        loop_turn(w->loop, 0);
    }
    is_number(net_connections(w->net), NET_LINGERING_MAX, "so many linger, no more");
    for (int i = 0; i < CLIENTS; i++) {
        heard += !strcmp(raw_read(fds[i], at, sizeof(at)), "221 bye\r\n");
        ended += !strcmp(raw_read(fds[i], at, sizeof(at)), "(end)");
    }
    is_number(heard, CLIENTS, "all have heard the last reply");
    is_number(ended, CLIENTS, "and the end");
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    until(w, net_connections(w->net) == 0);
    is_number(net_connections(w->net), 0, "all are gone when they have closed");
    net_finish(w);
}

/* There is no turn any more in which it could be sent. */
TEST(last_words)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    char at[100];

    net_send(w->server.connection, TEXT("good "));
    net_send(w->server.connection, TEXT("bye\r\n"));
    net_close(&w->server.connection);
    net_free(&w->net);
    is_string(raw_read(fd, at, sizeof(at)), "good bye\r\n", "last words are sent");
    is_string(raw_read(fd, at, sizeof(at)), "(end)", "and that was the end");
    close(fd);
    net_finish(w);
}

static bool
has_no_delay(const struct net_address *peer)
{
    for (int fd = 3; fd < 100; fd++) {
        struct sockaddr_in name;
        socklen_t length = sizeof(name), size = sizeof(int);
        int value = 0;

        if (getpeername(fd, (struct sockaddr *)&name, &length) == 0 &&
            ntohs(name.sin_port) == peer->port) {
            getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size);
            return value;
        }
    }
    return false;
}

TEST(no_delay)
{
    struct world *w = start("127.0.0.1:0");

    connect_client(w);
    until(w, w->client.told[0] && w->server.connection);
    ok_named(has_no_delay(net_peer(w->server.connection)), "accepted with TCP_NODELAY");
    ok_named(has_no_delay(net_peer(w->client.connection)), "connected with it");
    net_finish(w);
}

/* The cost of a reply, over a real socket. */
TEST(speed)
{
    enum { ROUNDS = 20000 };
    struct world *w = start("127.0.0.1:0");
    int64_t started_ms;

    w->server.echoes = true;
    connect_client(w);
    until(w, w->client.told[0]);
    w->client.echoes = true;
    net_send(w->client.connection, TEXT("250 2.1.0 Ok\r\n"));
    started_ms = net_now_ms();
    while (w->client.got.length < ROUNDS * 14)
        loop_turn(w->loop, 1000);
    printf("# %.1f us for a round trip of two turns\n",
           (double)(net_now_ms() - started_ms) * 1000 / ROUNDS);
    is_number(w->client.got.length, ROUNDS * 14, "20,000 round trips");
    net_finish(w);
}

/* The peer gets a RST, no end. */
static void
reset_connection(struct net_connection **c)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt((*c)->out, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    net_abort(c);
}

/* A peer without anything unread hears an end of abort, but a failure of reset. */
TEST(reset)
{
    for (int reset = 0; reset < 2; reset++) {
        struct world *w = start("127.0.0.1:0");

        connect_client(w);
        until(w, w->server.connection && w->client.told[0]);
        is_string(w->client.told, "C", "connected");
        if (reset)
            reset_connection(&w->server.connection);
        else
            net_abort(&w->server.connection);
        ok_named(!w->server.connection, "the pointer is emptied");
        until(w, w->client.told[1]);
        is_string(w->client.told, reset ? "CF" : "CE", "what the peer hears");
        is_number(net_errno(w->client.connection), reset ? ECONNRESET : 0, "and why");
        is_string(w->server.told, "", "who resets hears no more");
        net_finish(w);
    }
}

TEST(nothing)
{
    struct net_connection *none = NULL;
    struct net_listener *nobody = NULL;
    struct net *nowhere = NULL;

    net_close(&none);
    net_abort(&none);
    net_listener_free(&nobody);
    net_free(&nowhere);
    ok_named(!none && !nobody && !nowhere, "closing nothing is no harm");
}

int
main(void)
{
    char path[64];

    test_echo("127.0.0.1:0");
    test_echo("[::1]:0");
    snprintf(path, sizeof(path), "unix:/tmp/petrel-net-%d", (int)getpid());
    test_echo(path);
    test_close_delivers();
    test_close_on_talker(100, true);
    test_close_on_talker(2000, false);
    test_half_close();
    test_timeout();
    test_refused();
    test_source_address();
    test_no_descriptor();
    test_callbacks();
    test_close_in_failure(THEN_CLOSE);
    test_close_in_failure(THEN_ABORT);
    tap_tests("");
    return done();
}
