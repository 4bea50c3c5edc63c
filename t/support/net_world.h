/* What the tests of base/net*.c share: a loop, a net, a listener and two sides that
 * write down what happens to them. */
#ifndef T_NET_WORLD_H
#define T_NET_WORLD_H

#include "base/net/net.h"

#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/support/tap.h"
#include "t/support/until.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { GOT_MAX = 64 << 20, BLOCK = 65536 };

enum then { THEN_NOTHING, THEN_CLOSE, THEN_ABORT, THEN_FREE_NET };

/* One side of a connection, and what has happened to it. */
struct side {
    struct world *world;
    struct net_connection *connection;
    char told[64]; /* CIDETFS, the initials of the events; I repeated is one I */
    struct buffer got;
    bool keeps; /* leaves its input where it is */
    bool echoes;
    bool refuses; /* aborts instead of accepting */
    enum then then;
};

struct world {
    struct loop *loop;
    struct net *net;
    struct net_listener *listener;
    struct side server, client;
    int accepted;
    bool calling; /* into net: an event now would break the first law */
    bool nested;
};

static inline void
forget(struct side *s)
{
    memset(s->told, 0, sizeof s->told);
}

static inline void
take_input(struct side *s)
{
    struct text input = net_input(s->connection);

    if (s->echoes)
        net_send(s->connection, input);
    if (s->keeps)
        return;
    if (!buffer_add(&s->got, input))
        abort();
    net_consume(s->connection, input.length);
}

static inline void
do_then(struct side *s)
{
    switch (s->then) {
    case THEN_NOTHING:
        break;
    case THEN_CLOSE:
        net_close(&s->connection);
        break;
    case THEN_ABORT:
        net_abort(&s->connection);
        break;
    case THEN_FREE_NET:
        s->connection = NULL;
        net_free(&s->world->net);
        break;
    }
}

static inline void
on_event(void *context, enum net_event event)
{
    struct side *s = context;
    size_t length = strlen(s->told);
    char letter = "CIDETFS"[event];

    s->world->nested = s->world->nested || s->world->calling;
    if (length + 1 < sizeof s->told &&
        (letter != 'I' || !length || s->told[length - 1] != 'I'))
        s->told[length] = letter;
    s->world->calling = true;
    if (event == NET_INPUT)
        take_input(s);
    do_then(s);
    s->world->calling = false;
}

static inline void
on_accept(void *context, struct net_connection *connection)
{
    struct world *w = context;

    w->accepted++;
    if (w->server.refuses || w->server.connection) {
        net_abort(&connection);
        return;
    }
    w->server.connection = connection;
    net_attach(connection, on_event, &w->server);
}

static inline struct net_address
address(const char *text)
{
    struct net_address a;

    if (!net_address_parse(text_from(text), 0, &a))
        abort();
    return a;
}

static inline struct world *
start(const char *listen_on)
{
    struct world *w = memory_new(sizeof *w);
    struct net_address at;
    char error[200] = "";

    w->loop = loop_new();
    w->net = net_new(w->loop);
    w->server.world = w->client.world = w;
    buffer_init(&w->server.got, GOT_MAX);
    buffer_init(&w->client.got, GOT_MAX);
    if (!listen_on)
        return w;
    at = address(listen_on);
    w->listener = net_listen(w->net, &at, 0, on_accept, w, error, sizeof error);
    if (!w->listener) {
        printf("# %s\n", error);
        abort();
    }
    return w;
}

static inline void
finish(struct world *w)
{
    ok_named(!w->nested, "no event came from within a call");
    net_free(&w->net);
    loop_free(&w->loop);
    buffer_free(&w->server.got);
    buffer_free(&w->client.got);
    free(w);
}

static inline const struct net_address *
where(const struct world *w)
{
    return net_listener_address(w->listener);
}

static inline void
connect_client(struct world *w)
{
    w->calling = true;
    w->client.connection = net_connect(w->net, where(w), NULL, on_event, &w->client);
    w->calling = false;
}

/* A plain blocking socket: the peer that is not ours. */
static inline int
raw_connect(struct world *w)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    name.sin_port = htons(where(w)->port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof name) < 0)
        abort();
    return fd;
}

static inline int
raw_client(struct world *w)
{
    int fd = raw_connect(w);

    until(w, w->server.connection);
    return fd;
}

static inline void
raw_send(int fd, const char *string)
{
    if (send(fd, string, strlen(string), MSG_NOSIGNAL) != (ssize_t)strlen(string))
        abort();
}

/* What is there now; "" when nothing is, "(end)" or "(reset)". */
static inline const char *
raw_read(int fd, char *to, size_t size)
{
    ssize_t got = recv(fd, to, size - 1, MSG_DONTWAIT);

    if (got == 0)
        return "(end)";
    if (got < 0)
        return errno == EAGAIN ? "" : "(reset)";
    to[got] = '\0';
    return to;
}

static inline bool
is_readable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};

    return poll(&asked, 1, 0) > 0;
}

/* Counts bytes up to the end; -1 after a reset. Our side's turns go on meanwhile. */
static inline int64_t
raw_drain(struct world *w, int fd, struct buffer *copy)
{
    char *block = memory_new(BLOCK);
    int64_t total = 0;
    ssize_t got = 1;

    for (int turns = 0; turns < 20000 && got > 0; turns++) {
        loop_turn(w->loop, 0);
        if (!is_readable(fd)) {
            usleep(100);
            continue;
        }
        got = recv(fd, block, BLOCK, 0);
        if (got > 0) {
            total += got;
            if (copy && !buffer_add(copy, text_of(block, (size_t)got)))
                abort();
        }
    }
    free(block);
    return got < 0 ? -1 : total;
}

static inline int64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline char *
pattern(size_t size)
{
    char *bytes = memory_new(size);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    return bytes;
}

#endif
