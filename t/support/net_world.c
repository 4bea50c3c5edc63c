/* Common parts of the tests of base/net*.c. */
#include "t/support/net_world.h"

void
forget(struct side *s)
{
    memset(s->told, 0, sizeof(s->told));
}

static void
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

static void
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

void
on_event(void *context, enum net_event event)
{
    struct side *s = context;
    size_t length = strlen(s->told);
    char letter = "CIDETFS"[event];

    s->world->nested = s->world->nested || s->world->calling;
    if (length + 1 < sizeof(s->told) &&
        (letter != 'I' || !length || s->told[length - 1] != 'I'))
        s->told[length] = letter;
    s->world->calling = true;
    if (event == NET_INPUT)
        take_input(s);
    do_then(s);
    s->world->calling = false;
}

void
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

struct net_address
address(const char *text)
{
    struct net_address a;

    if (!net_address_parse(text_from(text), 0, &a))
        abort();
    return a;
}

struct world *
start(const char *listen_on)
{
    struct world *w = memory_new(sizeof(*w));
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
    w->listener = net_listen(w->net, &at, 0, on_accept, w, error, sizeof(error));
    if (!w->listener) {
        printf("# %s\n", error);
        abort();
    }
    return w;
}

void
net_finish(struct world *w)
{
    ok_named(!w->nested, "no event came from within a call");
    net_free(&w->net);
    loop_free(&w->loop);
    buffer_free(&w->server.got);
    buffer_free(&w->client.got);
    free(w);
}

const struct net_address *
net_where(const struct world *w)
{
    return net_listener_address(w->listener);
}

void
connect_client(struct world *w)
{
    w->calling = true;
    w->client.connection = net_connect(w->net, net_where(w), NULL, on_event, &w->client);
    w->calling = false;
}

int
raw_connect(struct world *w)
{
    struct sockaddr_in name = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    name.sin_port = htons(net_where(w)->port);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0)
        abort();
    return fd;
}

int
raw_client(struct world *w)
{
    int fd = raw_connect(w);

    until(w, w->server.connection);
    return fd;
}

void
raw_send(int fd, const char *string)
{
    if (send(fd, string, strlen(string), MSG_NOSIGNAL) != (ssize_t)strlen(string))
        abort();
}

const char *
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

bool
is_readable(int fd)
{
    struct pollfd asked = {.fd = fd, .events = POLLIN};

    return poll(&asked, 1, 0) > 0;
}

int64_t
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

int64_t
net_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

char *
pattern(size_t size)
{
    char *bytes = memory_new(size);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    return bytes;
}
