/* A Petrel with sockets and a queue but without a way out, and clients that visit it. */
#include "base/log/log_internal.h"
#include "t/support/listener_world.h"
#include "queue/queue_operator.h"

/* --- A Petrel without a way out ----------------------------------------------- */

void
make_routes(struct world *w)
{
    struct buffer mistakes;
    struct route_settings settings = {
        .routes = TEXT("refused.example error:5.7.1 refused by policy\n"
                       "later.example error:4.7.1 come later\n"
                       "example.org hold\n* hold"),
        .relay = TEXT(""),
        .local = TEXT(""),
        .local_domains = TEXT("mx.example.org, example.org"),
        .defrag_host = TEXT("MX.example.org"),
        .defrag_peers = w->defrag_peers,
        .smtp_port = 25};
    buffer_init(&mistakes, 65536);
    transport_params_default(&settings.base);
    w->routes = route_new(&settings, &mistakes);
    dialog_must(w->routes != NULL, "routes");
    buffer_free(&mistakes);
}

static void
make_manager(struct world *w)
{
    struct manager_settings settings = {
        .hostname = "mx.example.org",
        .queue = {.spool = w->spool, .slices = 1, .message_size_limit = 100000000},
        .sched = {.active_limit = 1000,                 .session_limit = 10        },
        .bounce_size_limit = 50000
    };
    if (manager_new(&w->manager, w->loop, w->events, &settings, w->routes, w->error,
                    sizeof(w->error)) != 0)
        dialog_must(false, w->error);
}

void
world_start_among(struct world *w, const struct server_rules *rules, bool lmtp,
                  bool may_relay, const char *peers)
{
    memset(w, 0, sizeof(*w));
    w->defrag_peers = text_from(peers);
    folder_make(w->spool, sizeof(w->spool), "listener");
    w->loop = loop_new();
    w->net = net_new(w->loop);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    w->events = event_hub_new(w->log);
    buffer_init(&w->lines, 16 << 20);
    log_capture(w->log, &w->lines);
    make_routes(w);
    make_manager(w);
    w->port = free_port();
    snprintf(w->listen, sizeof(w->listen), "127.0.0.1:%u%s, unix:%s/socket", w->port,
             lmtp ? "?lmtp" : "", w->spool);
    w->settings = (struct listener_settings){
        .hostname = "mx.example.org",
        .listen = text_from(w->listen),
        .relay_from = may_relay ? TEXT("127.0.0.0/8") : TEXT(""),
        .etrn = rules->etrn ? TEXT(".example") : TEXT("off"),
        .mt_priority = !rules->priority               ? TEXT("off")
                       : rules->priority_of_strangers ? TEXT("all")
                                                      : TEXT("trusted"),
        .message_size_limit = rules->size_limit,
        .lifetime_ms = 5 * 24 * 3600 * INT64_C(1000),
        .recipient_limit = rules->recipient_limit,
        .clients = {.sessions = 1100, .sessions_per_client = 1050},
        .hop_limit = rules->hop_limit,
        .error_limit = rules->error_limit,
        .soft_error_limit = rules->soft_error_limit,
        .error_delay_ms = rules->error_delay_ms,
        .junk_limit = rules->junk_limit,
        .idle_timeout_ms = 60000,
        .handshake_timeout_ms = 60000,
        .data_timeout_ms = 60000
    };
    w->listener = listener_new(w->loop, w->net, w->events, w->manager, w->routes,
                               &w->settings, w->error, sizeof(w->error));
    if (w->listener == NULL)
        dialog_must(false, w->error);
    listener_on_flush(w->listener, dialog_flush, w);
}

void
listener_world_start(struct world *w, const struct server_rules *rules, bool lmtp,
            bool may_relay)
{
    world_start_among(w, rules, lmtp, may_relay, "");
}

void
listener_world_end(struct world *w)
{
    char command[128];
    listener_free(&w->listener);
    manager_free(&w->manager);
    loop_turn(w->loop, 0);
    net_free(&w->net);
    route_free(&w->routes);
    event_hub_free(&w->events);
    log_free(&w->log);
    loop_turn(w->loop, 0);
    loop_free(&w->loop);
    buffer_free(&w->lines);
    snprintf(command, sizeof(command), "rm -rf %s", w->spool);
    if (system(command) != 0)
        printf("# %s is left\n", w->spool);
}

int64_t
listener_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- A client ----------------------------------------------------------------- */

void
visitor_on(struct visitor *v, struct world *w, int socket_number)
{
    int one = 1;
    *v = (struct visitor){.world = w, .socket = socket_number};
    buffer_init(&v->heard, DIALOG_BYTES_MAX);
    fcntl(v->socket, F_SETFL, O_NONBLOCK);
    setsockopt(v->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void
visit(struct visitor *v, struct world *w)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)w->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    dialog_must(s >= 0 && connect(s, (struct sockaddr *)&address, sizeof(address)) == 0,
                "cannot connect");
    visitor_on(v, w, s);
}

void
leave(struct visitor *v)
{
    close(v->socket);
    buffer_free(&v->heard);
}

void
hear(struct visitor *v)
{
    char bytes[65536];
    ssize_t got;
    while ((got = recv(v->socket, bytes, sizeof(bytes), 0)) > 0)
        dialog_must(buffer_add(&v->heard, text_of(bytes, (size_t)got)), "too much");
    v->closed = v->closed || got == 0 || (errno != EAGAIN && errno != EINTR);
}

void
turn(struct visitor *v, int64_t wait_ms)
{
    loop_turn(v->world->loop, wait_ms);
    hear(v);
}

void
say(struct visitor *v, struct text bytes, size_t piece)
{
    int64_t end = listener_now_ms() + PATIENCE_MS;
    while (bytes.length > 0 && !v->closed && listener_now_ms() < end) {
        struct text some = text_before(bytes, piece);
        ssize_t sent = send(v->socket, some.at, some.length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            hear(v);
            return;
        }
        bytes = text_after(bytes, sent < 0 ? 0 : (size_t)sent);
        turn(v, sent < 0 ? 1 : 0);
    }
}

bool
next_line(struct visitor *v, struct text *line)
{
    int64_t end = listener_now_ms() + PATIENCE_MS;
    for (;;) {
        struct text rest = text_after(buffer_text(&v->heard), v->read);
        size_t at = rest.length == 0 ? TEXT_NONE : text_find(rest, '\n');
        if (at != TEXT_NONE) {
            *line = text_before(rest, at > 0 ? at - 1 : 0);
            v->read += at + 1;
            return true;
        }
        if (v->closed || listener_now_ms() > end)
            return false;
        turn(v, TURN_MS);
    }
}

bool
hears(struct visitor *v, struct text want)
{
    struct text line = TEXT("(nothing)");
    bool good = next_line(v, &line) && text_starts(line, want);
    if (!good)
        printf("# want '%.*s', got '%.*s'\n", TEXT_ARGS(want), TEXT_ARGS(line));
    return good;
}

bool
is_closed(struct visitor *v)
{
    int64_t end = listener_now_ms() + PATIENCE_MS;
    while (!v->closed && listener_now_ms() < end)
        turn(v, TURN_MS);
    return v->closed && v->read == v->heard.length;
}

bool
asks(struct visitor *v, const char *command, const char *reply)
{
    struct text line;
    say(v, text_from(command), SIZE_MAX);
    while (next_line(v, &line))
        if (line.length > 3 && line.at[3] == ' ')
            return text_starts(line, text_from(reply));
    return false;
}

void
listener_turns(struct world *w, unsigned count)
{
    while (count-- > 0)
        loop_turn(w->loop, 1);
}

/* --- Its queue ---------------------------------------------------------------- */

bool
collect(void *context, struct id id, enum queue_place place)
{
    struct stored *s = context;
    struct queue *queue = manager_queue(s->world->manager);
    struct envelope *e = queue_load(queue, id);
    char bytes[8192];
    int64_t got = 0, offset = 0;
    (void)place;
    dialog_must(e != NULL && s->count < STORED_MAX, "cannot load");
    int file = queue_content_open(queue, e);
    struct buffer *content = &s->messages[s->count].content;
    buffer_init(content, DIALOG_BYTES_MAX);
    dialog_must(file >= 0, "no content");
    while ((got = queue_content_read(queue, file, offset, bytes, sizeof(bytes))) > 0) {
        dialog_must(buffer_add(content, text_of(bytes, (size_t)got)), "content");
        offset += got;
    }
    queue_content_close(queue, file);
    s->messages[s->count++].envelope = e;
    return true;
}

void
on_drained(void *context)
{
    struct world *w = context;
    w->drained = true;
}

unsigned
world_times_logged(const struct world *w, const char *words)
{
    unsigned found = 0;
    const char *at = w->lines.at, *end = at + w->lines.length, *next;
    for (; at != NULL && (next = memmem(at, (size_t)(end - at), words, strlen(words)));
         at = next + 1)
        found++;
    return found;
}
