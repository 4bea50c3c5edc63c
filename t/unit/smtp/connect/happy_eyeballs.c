/* smtp/connect/happy_eyeballs.c: addresses, times and races of attempts; over
 * loopback. */
/* link: t/sim/clock.c */
#include "smtp/connect/happy_eyeballs.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "t/sim/clock.h"
#include "t/support/port.h"
#include "t/support/tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOSTS = 6, NEVER_MS = 100000, HOLES = 3, PLUGS = 3 };

enum sort { GOOD, DEAD, HOLE }; /* answers, refuses, never says anything */

/* An address whose backlog is full: the system drops what comes. */
struct hole {
    int listener, plugs[PLUGS];
};

struct world {
    struct loop *loop;
    struct net *net;
    struct net_listener *listeners[HOSTS];
    int kept[HOSTS]; /* ports of the dead */
    struct hole holes[HOLES];
    size_t hole_count;
    struct mx_lookup_host hosts[HOSTS];
    size_t order[HOSTS], count;
    struct bind_address sources;
    struct happy_eyeballs *connecting;
    char told[200]; /* "T0 F0 T1 C1 O" */
    char why[100];
    int64_t started_ms;
    size_t in_flight_most;
    struct net_connection *connection;
    enum happy_eyeballs_event_kind free_at; /* OVER: never */
    bool nested, calling;
};

static void
on_accept(void *context, struct net_connection *connection)
{
    (void)context;
    net_abort(&connection);
}

static void
on_net(void *context, enum net_event event)
{
    (void)context;
    (void)event;
}

static void
on_connecting(void *context, const struct happy_eyeballs_event *event)
{
    struct world *w = context;
    char word[16] = "O";
    if (event->kind != HAPPY_EYEBALLS_OVER)
        snprintf(word, sizeof(word), "%c%zu", "TCFB"[event->kind], event -> which);
    if (w->told[0] != '\0')
        strncat(w->told, " ", sizeof(w->told) - strlen(w->told) - 1);
    strncat(w->told, word, sizeof(w->told) - strlen(w->told) - 1);
    w->nested |= w->calling && event->kind != HAPPY_EYEBALLS_TRYING;
    if (event->kind == HAPPY_EYEBALLS_FAILED)
        ok_named(event->error == (strcmp(event->why, "timed out") == 0 ? ETIMEDOUT : ECONNREFUSED), event->why);
    size_t open = net_connections(w->net);
    w->in_flight_most = open > w->in_flight_most ? open : w->in_flight_most;
    if (event->why != NULL)
        text_copy(w->why, sizeof(w->why), text_from(event->why));
    if (event->kind == HAPPY_EYEBALLS_CONNECTED) {
        w->connection = event->connection;
        w->started_ms = event->started_ms;
        net_attach(w->connection, on_net, w);
    }
    if (event->kind != HAPPY_EYEBALLS_OVER && event->kind == w->free_at)
        happy_eyeballs_free(&w->connecting);
}

static struct net_address
address(const char *text)
{
    struct net_address a;
    if (!net_address_parse(text_from(text), 0, &a))
        abort();
    return a;
}

static uint16_t
dig(struct hole *hole, bool v6)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct sockaddr_in four = {.sin_family = AF_INET};
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr *name = v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t size = v6 ? sizeof(six) : sizeof(four);
    hole->listener = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(hole->listener, name, size) < 0 || listen(hole->listener, 0) < 0 ||
        getsockname(hole->listener, name, &size) < 0)
        abort();
    for (size_t i = 0; i < PLUGS; i++) {
        hole->plugs[i] =
            socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(hole->plugs[i], name, size);
    }
    return ntohs(v6 ? six.sin6_port : four.sin_port);
}

static void
add(struct world *w, bool v6, enum sort sort, unsigned preference)
{
    struct mx_lookup_host *host = &w->hosts[w->count];
    struct net_listener **listener = &w->listeners[w->count];
    char error[200];
    host->preference = preference;
    host->address = address(v6 ? "[::1]:0" : "127.0.0.1:0");
    if (sort == HOLE) {
        host->address.port = dig(&w->holes[w->hole_count++], v6);
    } else {
        *listener =
            net_listen(w->net, &host->address, 0, on_accept, w, error, sizeof(error));
        if (*listener == NULL)
            abort();
        host->address = *net_listener_address(*listener);
    }
    if (sort == DEAD) {
        net_listener_free(listener);
        w->kept[w->count] =
            port_keep(v6 ? AF_INET6 : AF_INET, host->address.ip, host->address.port);
    }
    w->order[w->count] = w->count;
    w->count++;
}

static struct world *
start(void)
{
    struct world *w = memory_new(sizeof(*w));
    clock_stop();
    w->loop = loop_new();
    w->net = net_new(w->loop);
    w->free_at = HAPPY_EYEBALLS_OVER;
    return w;
}

static void
dial(struct world *w, int64_t timeout_ms, int64_t head_start_ms)
{
    struct happy_eyeballs_settings settings = {.loop = w->loop,
                                               .net = w->net,
                                               .sources = &w->sources,
                                               .timeout_ms = timeout_ms,
                                               .head_start_ms = head_start_ms};
    w->calling = true;
    w->connecting =
        happy_eyeballs_new(&settings, w->hosts, w->order, w->count, on_connecting, w);
    ok_named(happy_eyeballs_go_on(w->connecting), "there is something to try");
    w->calling = false;
}

/* Until it is told, for ten seconds at most of the time that passes here. */
static void
until(struct world *w, const char *end)
{
    for (int i = 0; i < 10000 && w->connecting != NULL; i++) {
        size_t told = strlen(w->told), wanted = strlen(end);
        if (told >= wanted && strcmp(w->told + told - wanted, end) == 0)
            return;
        clock_turn(w->loop);
    }
}

static void
finish(struct world *w)
{
    ok_named(!w->nested, "no event came from within a call");
    happy_eyeballs_free(&w->connecting);
    if (w->connection != NULL)
        net_abort(&w->connection);
    is_number((long long)net_connections(w->net), 0, "no connection is left");
    for (size_t i = 0; i < w->count; i++) {
        net_listener_free(&w->listeners[i]);
        port_give(&w->kept[i]);
    }
    for (size_t i = 0; i < w->hole_count; i++) {
        close(w->holes[i].listener);
        for (size_t j = 0; j < PLUGS; j++)
            close(w->holes[i].plugs[j]);
    }
    net_free(&w->net);
    loop_free(&w->loop);
    free(w);
}

TEST(first)
{
    struct world *w = start();
    add(w, true, GOOD, 10);
    add(w, false, GOOD, 10);
    dial(w, NEVER_MS, NEVER_MS);
    until(w, "C0");
    is_string(w->told, "T0 C0", "T0 C0");
    ok_named(w->started_ms > 0 && w->started_ms <= loop_monotonic_ms(w->loop),
             "when it began is told");
    ok_named(net_peer(w->connection)->family == NET_IPV6, "the connection is to it");
    finish(w);
}

TEST(order)
{
    struct world *w = start();
    add(w, true, GOOD, 10);
    add(w, false, GOOD, 10);
    w->order[0] = 1;
    w->order[1] = 0;
    dial(w, NEVER_MS, NEVER_MS);
    until(w, "C1");
    is_string(w->told, "T1 C1", "T1 C1");
    finish(w);
}

/* Nobody waits for a head start that is lost already. */
TEST(refused)
{
    struct world *w = start();
    add(w, true, DEAD, 10);
    add(w, false, GOOD, 10);
    dial(w, NEVER_MS, NEVER_MS);
    until(w, "C1");
    is_string(w->told, "T0 F0 T1 C1", "T0 F0 T1 C1");
    ok_named(strstr(w->why, "refused") != NULL, "it says why");
    finish(w);
}

TEST(race)
{
    struct world *w = start();
    add(w, true, HOLE, 10);
    add(w, false, GOOD, 10);
    dial(w, NEVER_MS, 5);
    until(w, "C1");
    is_string(w->told, "T0 T1 B0 C1", "T0 T1 B0 C1");
    ok_named(net_peer(w->connection)->family == NET_IPV4, "the other family won");
    finish(w);
}

/* The loser had no head start over the winner: nothing is known of it. */
TEST(late_rival)
{
    struct world *w = start();
    add(w, true, DEAD, 10);
    add(w, false, HOLE, 10);
    add(w, true, GOOD, 10);
    dial(w, NEVER_MS, NEVER_MS);
    until(w, "T1");
    is_string(w->told, "T0 F0 T1", "T0 F0 T1");
    clock_turns(w->loop, 20);
    is_string(w->told, "T0 F0 T1", "T0 F0 T1"); /* its head start lasts */
    finish(w);
}

/* One of a family at a time, in order. */
TEST(families)
{
    struct world *w = start();
    add(w, true, HOLE, 10);
    add(w, true, GOOD, 10);
    add(w, false, DEAD, 10);
    add(w, false, GOOD, 10);
    dial(w, NEVER_MS, 5);
    until(w, "C3");
    is_string(w->told, "T0 T2 F2 T3 B0 C3", "T0 T2 F2 T3 B0 C3");
    ok_named(w->in_flight_most <= 3, "two are under way at most");
    finish(w);
}

TEST(preference)
{
    struct world *w = start();
    add(w, true, HOLE, 10);
    add(w, false, GOOD, 20);
    dial(w, 60, 1);
    until(w, "C1");
    is_string(w->told, "T0 F0 T1 C1", "T0 F0 T1 C1");
    is_string(w->why, "timed out", "it says why");
    finish(w);
}

TEST(alone)
{
    struct world *w = start();
    add(w, false, HOLE, 0);
    dial(w, 30, 5);
    until(w, "O");
    is_string(w->told, "T0 F0 O", "T0 F0 O");
    ok_named(!happy_eyeballs_go_on(w->connecting), "nothing is left");
    finish(w);
}

TEST(all_dead)
{
    struct world *w = start();
    add(w, true, DEAD, 10);
    add(w, false, DEAD, 10);
    add(w, false, DEAD, 20);
    dial(w, NEVER_MS, 5);
    until(w, "O");
    is_string(w->told, "T0 F0 T1 F1 T2 F2 O", "T0 F0 T1 F1 T2 F2 O");
    finish(w);
}

/* The host was no use: the rest, and the loser of the race, get their turn. */
TEST(go_on)
{
    struct world *w = start();
    add(w, true, HOLE, 10);
    add(w, false, GOOD, 10);
    add(w, false, GOOD, 20);
    dial(w, 40, 5);
    until(w, "C1");
    is_string(w->told, "T0 T1 B0 C1", "T0 T1 B0 C1");
    net_abort(&w->connection);
    ok(happy_eyeballs_go_on(w->connecting));
    until(w, "C2");
    is_string(w->told, "T0 T1 B0 C1 T0 F0 T2 C2", "T0 T1 B0 C1 T0 F0 T2 C2");
    net_abort(&w->connection);
    ok(!happy_eyeballs_go_on(w->connecting));
    finish(w);
}

static void
test_free(enum happy_eyeballs_event_kind when, const char *told)
{
    struct world *w = start();
    add(w, true, HOLE, 10);
    add(w, false, when == HAPPY_EYEBALLS_FAILED ? DEAD : GOOD, 10);
    w->free_at = when;
    dial(w, NEVER_MS, 5);
    until(w, "?");
    is_string(w->told, told, told);
    finish(w);
}

static void
test_free_early(void)
{
    struct world *w = start();
    add(w, true, GOOD, 10);
    dial(w, NEVER_MS, 5);
    happy_eyeballs_free(&w->connecting);
    happy_eyeballs_free(&w->connecting);
    clock_turns(w->loop, 20);
    is_string(w->told, "T0", "T0");
    finish(w);
}

static void
test_sources(void)
{
    struct world *w = start();
    add(w, false, GOOD, 10);
    ok(bind_address_read(&w->sources, TEXT("127.0.0.7"), NULL));
    dial(w, NEVER_MS, 5);
    until(w, "C0");
    char ip[NET_ADDRESS_TEXT_MAX] = "";
    if (w->connection != NULL)
        net_address_ip(net_local(w->connection), ip);
    is_string(ip, "127.0.0.7", "it comes from there");
    finish(w);
}

int
main(void)
{
    tap_tests("");
    test_free(HAPPY_EYEBALLS_BEATEN, "T0 T1 B0");
    test_free(HAPPY_EYEBALLS_CONNECTED, "T0 T1 B0 C1");
    test_free(HAPPY_EYEBALLS_FAILED, "T0 T1 F1");
    test_free_early();
    test_sources();
    return done();
}
