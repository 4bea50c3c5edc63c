/* Proves what each request is answered, and that clients which are slow, silent or many
 * are bounded. */
#include "admin/http/http_server.h"

#include "base/log/log_internal.h"
#include "base/loop/loop.h"
#include "base/event/event.h"
/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECES = 40, PIECE = 50000, GOT_MAX = 4 * 1024 * 1024 };

struct world {
    struct loop *loop;
    struct net *net;
    struct log *log;
    struct event_hub *events;
    struct buffer lines;
    struct http_server *server;
    uint16_t port;
    struct http_exchange *asleep;
    size_t pieces, ticks;
    bool fat;
    int freed;
    size_t sunk;
    int ended;
};

static enum progress
more(void *context, struct buffer *out)
{
    struct world *w = context;
    static char piece[PIECE];
    memset(piece, 'x', sizeof(piece));
    ok(buffer_add(out, text_of(piece, sizeof(piece))));
    return ++w->pieces == PIECES ? PROGRESS_DONE : PROGRESS_MORE;
}

static enum progress
wait_first(void *context, struct buffer *out)
{
    struct world *w = context;
    if (w->pieces++ == 0)
        return PROGRESS_MORE;
    ok(buffer_add(out, TEXT("late")));
    return PROGRESS_DONE;
}

static enum progress
breaks(void *context, struct buffer *out)
{
    struct world *w = context;
    ok(buffer_add(out, TEXT("half")));
    return w->pieces++ == 0 ? PROGRESS_MORE : PROGRESS_BAD;
}

/* As the live stream: endless, with a byte for each time that it is woken. */
static enum progress
ticks(void *context, struct buffer *out)
{
    struct world *w = context;
    if (w->ticks > 0) {
        static char piece[PIECE];
        memset(piece, 't', sizeof(piece));
        ok(buffer_add(out, text_of(piece, w->fat ? sizeof(piece) : 1)));
        w->ticks--;
    }
    return PROGRESS_MORE;
}

static void
tick(struct world *w)
{
    w->ticks = 1;
    http_exchange_wake(w->asleep);
}

static void
freed(void *context)
{
    struct world *w = context;
    w->freed++;
}

static bool
sink_add(void *context, struct text bytes)
{
    struct world *w = context;
    w->sunk += bytes.length;
    if (memchr(bytes.at, '!', bytes.length) == NULL)
        return true;
    http_answer_line(w->asleep, 422, "no");
    return false;
}

static void
sink_end(void *context)
{
    struct world *w = context;
    w->ended++;
}

static void
route(void *context, struct http_exchange *x)
{
    struct world *w = context;
    char line[300];
    snprintf(line, sizeof(line), "%.*s|%.*s|%d|%.*s", TEXT_ARGS(x->target.path),
             TEXT_ARGS(x->target.query), x->may, TEXT_ARGS(buffer_text(&x->request->body)));
    w->pieces = 0;
    x->stream = (struct http_stream){NULL, freed, w};
    if (text_equal(x->target.path, TEXT("/api/many")))
        x->stream.more = more;
    else if (text_equal(x->target.path, TEXT("/api/later")))
        x->stream.more = wait_first;
    else if (text_equal(x->target.path, TEXT("/api/broken")))
        x->stream.more = breaks;
    else if (text_equal(x->target.path, TEXT("/events")))
        x->stream.more = ticks;
    else
        x->stream.free = NULL;
    w->asleep = x;
    if (text_equal(x->target.path, TEXT("/v1/sink")) && x->key != NULL) {
        x->sink = (struct http_sink){sink_add, sink_end, freed, w};
        return;
    }
    http_answer_line(x, 200, line);
}

static const char *
key_of(void *context, struct text token)
{
    (void)context;
    return text_equal(token, TEXT("a-key")) ? "name" : NULL;
}

static struct http_server_settings
settings_of(struct world *w, const struct http_places *places)
{
    return (struct http_server_settings){.places = places, .names = {TEXT("h.test"), TEXT("other.test"), false},
                                         .token = TEXT("operate-operate-"),
                                         .read_token = TEXT("read-read-read-r"),
                                         .events = w->events,
                                         .stream_path = "/v1/sink",
                                         .stream_max = 1000000,
                                         .key = key_of,
                                         .route = route,
                                         .context = w};
}

static void
begin(struct world *w, const char *http)
{
    char error[300] = "";
    struct http_places places;
    *w = (struct world){.loop = loop_new()};
    FIXTURE(buffer, errors, buffer_init, buffer_free, 1000);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&w->lines, 1024 * 1024);
    log_capture(w->log, &w->lines);
    w->events = event_hub_new(w->log);
    w->net = net_new(w->loop);
    ok(http_places_read(text_from(http), &places, &errors));
    struct http_server_settings settings = settings_of(w, &places);
    w->server = http_server_new(w->loop, w->net, w->log, &settings, error, sizeof(error));
    ok_named(w->server != NULL, error);
    w->port = http_server_address(w->server, 0)->port;
}

static void
end(struct world *w)
{
    http_server_free(&w->server);
    ok(w->server == NULL);
    http_server_free(&w->server);
    loop_turn(w->loop, 0);
    net_free(&w->net);
    event_hub_free(&w->events);
    log_free(&w->log);
    loop_free(&w->loop);
    buffer_free(&w->lines);
}

static int
dial(const struct world *w)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(w->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
        abort();
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void
put(int fd, const char *bytes)
{
    size_t size = strlen(bytes);
    if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        abort();
}

static char got[GOT_MAX];
static size_t got_size;

/* Takes what is there; true: the server has closed. */
static bool
take(int fd)
{
    for (;;) {
        ssize_t size = recv(fd, got + got_size, sizeof(got) - 1 - got_size, 0);
        if (size < 0 && errno == EAGAIN)
            return false;
        if (size <= 0)
            return true;
        got_size += (size_t)size;
        got[got_size] = '\0';
    }
}

/* Turns in which no time passes, up to that text in the answer, or the end. */
static bool
see(struct world *w, int fd, const char *wanted)
{
    got_size = 0;
    got[0] = '\0';
    for (int i = 0; i < 5000; i++) {
        bool ended = take(fd);
        if (wanted != NULL && strstr(got, wanted) != NULL)
            return true;
        if (ended)
            return wanted == NULL;
        loop_turn(w->loop, 1);
    }
    return false;
}

#define HOST  "Host: localhost\r\n"
#define OURS  HOST "X-Petrel: 1\r\n"
#define TOKEN HOST "Authorization: Bearer operate-operate-\r\n"
#define JSON  "Content-Type: application/json\r\n"

/* One request and its answer for each rule; "close": and the connection is closed. */
static const struct {
    const char *name, *request, *status, *body;
    bool closes;
} table[] = {
    {"GET", "GET /livez HTTP/1.1\r\n" HOST "\r\n", "200", "/livez||0|\n", false},
    {"a query", "GET /readyz?a=b HTTP/1.1\r\n" HOST "\r\n", "200", "/readyz|a=b|0|\n", false},
    {"HTTP/1.0", "GET /livez HTTP/1.0\r\n" HOST "\r\n", "200", "/livez||0|\n", true},
    {"close", "GET /livez HTTP/1.1\r\nConnection: x, Close\r\n" HOST "\r\n", "200", "/livez", true},
    {"a token", "GET /api/x HTTP/1.1\r\n" TOKEN "\r\n", "200", "/api/x||2|\n", false},
    {"to read", "GET /api/x HTTP/1.1\r\n" HOST "Authorization: Bearer read-read-read-r\r\n\r\n", "200", "/api/x||1|\n", false},
    {"no token", "GET /api/x HTTP/1.1\r\n" OURS "\r\n", "200", "/api/x||0|\n", false},
    {"an unknown cookie", "GET /api/x HTTP/1.1\r\nCookie: petrel=x\r\n" OURS "\r\n", "200", "/api/x||0|\n", false},
    {"POST", "POST /api/x HTTP/1.1\r\n" TOKEN JSON "Content-Length: 2\r\n\r\n{}", "200", "/api/x||2|{}\n", false},
    {"DELETE", "DELETE /api/x HTTP/1.1\r\n" TOKEN JSON "\r\n", "200", "/api/x||2|\n", false},
    {"100-continue", "POST /api/x HTTP/1.1\r\nExpect: 100-Continue\r\n" TOKEN JSON "Content-Length: 2\r\n\r\n{}", "200", "/api/x||2|{}\n", false},
    {"another expectation", "GET /livez HTTP/1.1\r\nExpect: tea\r\n" HOST "\r\n", "417", "an expectation that is not known", true},
    {"PUT", "PUT /livez HTTP/1.1\r\n" HOST "\r\n", "405", "a method that is not known", false},
    {"OPTIONS", "OPTIONS /api/status HTTP/1.1\r\nOrigin: http://evil.test\r\n" "Access-Control-Request-Method: POST\r\n" HOST "\r\n",
     "405", "a method that is not known", false},
    {"another host", "GET /livez HTTP/1.1\r\nHost: evil.test\r\n\r\n", "421", "http_names", false},
    {"another host and OPTIONS", "OPTIONS / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "421", "http_names", false},
    {"metrics of another host", "GET /metrics HTTP/1.1\r\nHost: evil.test\r\n\r\n", "421", "http_names", false},
    {"a name of http_names", "GET /livez HTTP/1.1\r\nHost: Other.test\r\n\r\n", "200", "/livez", false},
    {"another site", "GET /metrics HTTP/1.1\r\nSec-Fetch-Site: cross-site\r\n" HOST "\r\n", "403", "another site", false},
    {"another origin", "GET /metrics HTTP/1.1\r\nOrigin: http://evil.test\r\n" HOST "\r\n", "403", "another origin", false},
    {"no field of ours", "GET /api/status HTTP/1.1\r\n" HOST "\r\n", "403", "X-Petrel", false},
    {"nor for a path that is not there", "GET /nothing HTTP/1.1\r\n" HOST "\r\n", "403", "X-Petrel", false},
    {"a form", "POST /api/x HTTP/1.1\r\n" OURS "Content-Length: 2\r\n\r\na=", "415", "application/json", false},
    {"a bad escape", "GET /%zz HTTP/1.1\r\n" OURS "\r\n", "400", "bad escape", false},
    {"NUL", "GET /%00 HTTP/1.1\r\n" OURS "\r\n", "400", "escape that is not allowed", false},
    {"a slash in an escape", "GET /api%2Fstatus HTTP/1.1\r\n" OURS "\r\n", "400", "escape that is not allowed", false},
    {"dots", "GET /a/../b HTTP/1.1\r\n" OURS "\r\n", "400", "a segment of dots", false},
    {"a URL", "GET http://localhost/ HTTP/1.1\r\n" OURS "\r\n", "400", "not a path", false},
    {"an authority", "CONNECT a:25 HTTP/1.1\r\n" OURS "\r\n", "405", "a method", false},
    {"a bare LF", "GET / HTTP/1.1\nHost: a\n\n", "400", "a bare LF", true},
    {"folding", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "400", "folded", true},
    {"a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400", "malformed", true},
    {"no Host", "GET / HTTP/1.1\r\n\r\n", "400", "no Host", true},
    {"two Hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", "400", "two Hosts", true},
    {"two lengths", "POST /api/x HTTP/1.1\r\n" OURS "Content-Length: 1\r\nContent-Length: 1\r\n\r\n1", "400", "two Content-Lengths", true},
    {"a coding", "POST /api/x HTTP/1.1\r\n" OURS "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501", "transfer coding", true},
    {"no length", "POST /api/x HTTP/1.1\r\n" OURS JSON "\r\n", "411", "Content-Length", true},
    {"a large body", "POST /api/x HTTP/1.1\r\n" OURS "Content-Length: 32769\r\n\r\n", "413", "too large", true},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505", "not HTTP/1.1", true},
    {"a wrong key", "POST /api/session HTTP/1.1\r\n" OURS JSON "Content-Length: 11\r\n\r\n{\"key\":\"k\"}", NULL, NULL, false},
};

TEST(table)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) && table[i].status; i++) {
        int fd = dial(&w);
        put(fd, table[i].request);
        char status[40];
        snprintf(status, sizeof(status), "HTTP/1.1 %s ", table[i].status);
        if (!ok_named(see(&w, fd, table[i].body) && strstr(got, status) != NULL, table[i].name))
            printf("# %s\n", got);
        ok_named(strstr(got, "nosniff\r\n") != NULL && strstr(got, "no-store") != NULL && strstr(got, "default-src 'none'") != NULL &&
                     strcasestr(got, "access-control") == NULL,
                 "  with the fields of every answer");
        ok_named((strstr(got, "Connection: close") != NULL) == table[i].closes, "  which says whether it closes");
        if (table[i].closes)
            ok_named(see(&w, fd, NULL), "  and does");
        close(fd);
    }
    ok(memmem(w.lines.at, w.lines.length, "operate-operate-", 16) == NULL);
}

TEST(continue)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int fd = dial(&w);
    put(fd, "POST /api/x HTTP/1.1\r\nExpect: 100-continue\r\n" TOKEN JSON "Content-Length: 2\r\n\r\n");
    ok(see(&w, fd, "100 Continue\r\n\r\n"));
    is_string(got, "HTTP/1.1 100 Continue\r\n\r\n", "it may send the body");
    put(fd, "{}");
    ok(see(&w, fd, "|{}\n"));
    close(fd);
}

/* One after the other, however early they come; the hundredth closes. */
TEST(many_requests)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int fd = dial(&w);
    for (int i = 0; i < HTTP_CONNECTION_REQUESTS_MAX + 2; i++)
        put(fd, "HEAD /livez HTTP/1.1\r\n" HOST "\r\n");
    ok_named(see(&w, fd, NULL), "it closes");
    size_t count = 0;
    for (const char *at = got; (at = strstr(at, "HTTP/1.1 200 OK")) != NULL; at++)
        count++;
    is_number(count, HTTP_CONNECTION_REQUESTS_MAX, "requests of a connection");
    ok_named(strstr(got, "/livez") == NULL, "HEAD has no body");
    ok(strstr(got, "Content-Length: 11\r\n") != NULL);
    is_number(http_server_counts(w.server)->requests[HTTP_PATH_HEALTH][2], 100, "counted");
    close(fd);
}

TEST(streams)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int fd = dial(&w);
    put(fd, "GET /api/many HTTP/1.1\r\n" TOKEN "\r\n");
    ok(see(&w, fd, "\r\n0\r\n\r\n"));
    ok(strstr(got, "Transfer-Encoding: chunked") != NULL && strstr(got, "\r\nc350\r\n"));
    is_number(w.pieces, PIECES, "all pieces");
    put(fd, "GET /livez HTTP/1.1\r\n" HOST "\r\n");
    ok_named(see(&w, fd, "/livez|"), "and the next request");
    is_number(w.freed, 1, "the stream is freed once");
    put(fd, "GET /api/later HTTP/1.1\r\n" TOKEN "\r\n");
    ok(!see(&w, fd, "late"));
    http_exchange_wake(w.asleep);
    ok(see(&w, fd, "late"));
    put(fd, "HEAD /api/many HTTP/1.1\r\n" TOKEN "\r\n");
    ok(see(&w, fd, "\r\n\r\n"));
    put(fd, "GET /api/broken HTTP/1.1\r\n" TOKEN "\r\n");
    ok_named(see(&w, fd, NULL) && strstr(got, "\r\n0\r\n") == NULL, "a stream that is cut");
    close(fd);
    fd = dial(&w);
    put(fd, "GET /api/many HTTP/1.0\r\n" TOKEN "\r\n");
    ok(see(&w, fd, NULL));
    ok(strstr(got, "chunked") == NULL && got_size > (size_t)PIECES * PIECE);
    is_number(w.freed, 5, "each stream is freed");
    close(fd);
}

/* A client that does not read holds few pieces, and is cut off. */
TEST(unread)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int fd = dial(&w), small = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    put(fd, "GET /api/many HTTP/1.1\r\n" TOKEN "\r\n");
    for (int i = 0; i < 300; i++)
        loop_turn(w.loop, 1);
    ok(w.pieces > 0 && w.pieces < PIECES);
    clock_pass(HTTP_UNREAD_MS);
    for (int i = 0; i < 10; i++)
        loop_turn(w.loop, 1);
    clock_pass(HTTP_UNREAD_MS);
    for (int i = 0; i < 10; i++)
        loop_turn(w.loop, 1);
    is_number(http_server_counts(w.server)->connections, 0, "it is cut off");
    is_number(w.freed, 1, "with its stream");
    close(fd);
}

static void
turns(struct world *w, int n)
{
    while (n-- > 0)
        loop_turn(w->loop, 1);
}

/* An endless answer lasts as long as its client reads, stays, and may read. */
TEST(endless)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int fd = dial(&w);
    put(fd, "GET /events HTTP/1.1\r\n" TOKEN "\r\n");
    ok(see(&w, fd, "chunked\r\n"));
    for (int i = 0; i < 10; i++) {
        clock_pass(HTTP_UNREAD_MS - 1);
        tick(&w); /* in the turn in which the time is looked at */
        clock_pass(1);
        ok_named(see(&w, fd, "1\r\nt\r\n"), "a client that reads has it for long");
    }
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    is_number(http_server_counts(w.server)->connections, 1, "silence is no fault");
    put(fd, "GET /livez HTTP/1.1\r\n");
    turns(&w, 20);
    is_number(http_server_counts(w.server)->connections, 1, "what the client says meanwhile does nothing");
    shutdown(fd, SHUT_WR);
    ok_named(see(&w, fd, NULL), "its end is seen without sending to it");
    is_number(w.freed, 1, "and frees the stream");
    close(fd);

    fd = dial(&w);
    put(fd, "HEAD /events HTTP/1.1\r\n" TOKEN "\r\n");
    ok(see(&w, fd, "chunked\r\n\r\n"));
    turns(&w, 20);
    is_number(w.freed, 2, "HEAD keeps no stream");
    close(fd);
    turns(&w, 20);

    fd = dial(&w);
    put(fd, "GET /events HTTP/1.1\r\n" TOKEN "\r\n");
    ok(see(&w, fd, "chunked\r\n"));
    w.fat = true;
    for (int i = 0; i < 400; i++) {
        tick(&w);
        turns(&w, 1);
    }
    ok_named(w.ticks == 1, "a client that does not read is sent no more");
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    is_number(http_server_counts(w.server)->connections, 0, "and is cut off");
    is_number(w.freed, 3, "with its stream");
    close(fd);
}

/* The stream ends for a client whose token is no longer valid, or whose session is over. */
TEST(endless_access)
{
    struct http_places none = {.count = 0};
    char key[HTTP_SECRET_SIZE], cookie[HTTP_SECRET_SIZE], request[300];
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    http_keys_make(http_server_keys(w.server), HTTP_MAY_READ, key);
    ok(http_keys_open(http_server_keys(w.server), text_from(key), cookie) == HTTP_MAY_READ);
    int token = dial(&w), session = dial(&w);
    put(token, "GET /events HTTP/1.1\r\n" TOKEN "\r\n");
    ok(see(&w, token, "chunked\r\n"));
    snprintf(request, sizeof(request), "GET /events HTTP/1.1\r\n" OURS "Cookie: petrel=%s\r\n\r\n", cookie);
    put(session, request);
    ok(see(&w, session, "chunked\r\n"));
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    is_number(http_server_counts(w.server)->connections, 2, "both may");
    struct http_server_settings fresh = settings_of(&w, &none);
    fresh.token = TEXT("another-another-");
    http_server_reload(w.server, &fresh);
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    is_number(http_server_counts(w.server)->connections, 1, "the token is another one");
    http_keys_close(http_server_keys(w.server), text_from(cookie));
    clock_pass(HTTP_UNREAD_MS);
    turns(&w, 20);
    is_number(http_server_counts(w.server)->connections, 0, "the session is closed");
    is_number(w.freed, 2, "both streams are freed");
    close(token), close(session);
}

struct adopting {
    struct world *world;
    const char *why;
};

static void
ignore(void *context, enum net_event event)
{
    (void)context;
    (void)event;
}

static void
adopts(void *context, struct net_connection *c)
{
    struct adopting *a = context;
    net_attach(c, ignore, NULL);
    a->why = http_server_adopt(a->world->server, c);
    if (a->why != NULL)
        net_abort(&c);
}

static void
test_turned_away(struct world *w)
{
    for (int i = 0; i < HTTP_TURNED_A_SECOND; i++) {
        int more_fd = dial(w);
        ok(see(w, more_fd, "503 Service Unavailable"));
        close(more_fd);
    }
    int flood = dial(w);
    ok_named(see(w, flood, NULL) && got_size == 0, "a flood hears nothing");
    close(flood);
    clock_pass(1000);
    flood = dial(w);
    ok_named(see(w, flood, "503 Service Unavailable"), "a second later one hears it again");
    close(flood);
}

/* Connections that came another way: a key is needed, and the limits are the same. */
TEST(adopted)
{
    char error[200];
    struct net_address at;
    FIXTURE(world, w, begin, end, "127.0.0.1:0?access=operate, 127.0.0.1:0?page=no");
    ok(http_server_place(w.server, 0) != NULL && http_server_place(w.server, 1)->no_page && http_server_place(w.server, 2) == NULL);
    struct adopting a = {.world = &w};
    ok(net_address_parse(TEXT("127.0.0.1:0"), 0, &at));
    struct net_listener *listener = net_listen(w.net, &at, 0, adopts, &a, error, sizeof(error));
    w.port = net_listener_address(listener)->port;
    int fd = dial(&w);
    put(fd, "GET /api/x HTTP/1.1\r\n" OURS "\r\n");
    ok_named(see(&w, fd, "/api/x||0|"), "nothing without a key");
    put(fd, "GET /api/x HTTP/1.1\r\n" TOKEN "\r\n");
    ok_named(see(&w, fd, "/api/x||2|"), "all with one");
    put(fd, "GET /api/x HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    ok_named(see(&w, fd, "421 "), "by the same rules");
    close(fd);
    turns(&w, 20);
    int fds[HTTP_CONNECTIONS_MAX + HTTP_SPARE_MAX];
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        fds[i] = dial(&w);
        put(fds[i], "GET /events HTTP/1.1\r\n" TOKEN "\r\n");
        ok(see(&w, fds[i], "chunked\r\n"));
    }
    is_string(a.why, NULL, "the operator has the spare places, too");
    fd = dial(&w);
    turns(&w, 20);
    ok_named(a.why != NULL && strcmp(a.why, "too many connections") == 0, "so many");
    is_number(http_server_counts(w.server)->connections, HTTP_CONNECTIONS_MAX + HTTP_SPARE_MAX, "and no more");
    w.port = http_server_address(w.server, 0)->port;
    test_turned_away(&w);
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) close(fds[i]);
    close(fd);
    net_listener_free(&listener);
}

TEST(times)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int silent = dial(&w), slow = dial(&w), body = dial(&w), idle = dial(&w);
    put(slow, "GET /livez HTTP/1.1\r\nHo");
    put(body, "POST /api/x HTTP/1.1\r\n" TOKEN JSON "Content-Length: 2\r\n\r\n{");
    put(idle, "GET /livez HTTP/1.1\r\n" HOST "\r\n");
    ok(see(&w, idle, "/livez"));
    clock_pass(HTTP_HEAD_MS - 1);
    put(slow, "st: local");
    for (int i = 0; i < 20; i++)
        loop_turn(w.loop, 1);
    is_number(http_server_counts(w.server)->connections, 4, "all are there");
    clock_pass(1);
    ok(see(&w, slow, "408 Request Timeout"));
    ok(see(&w, body, "408 Request Timeout"));
    ok(see(&w, silent, NULL));
    ok_named(see(&w, silent, NULL), "who says nothing is closed, too");
    put(idle, "GET /livez HTTP/1.1\r\n" HOST "\r\n");
    ok_named(see(&w, idle, "/livez"), "between requests there is more time");
    clock_pass(HTTP_IDLE_MS);
    ok(see(&w, idle, NULL));
    is_number(got_size, 0, "then it is closed without a word");
    close(silent), close(slow), close(body), close(idle);
}

/* Half-open clients end; one that has asked before is answered. */
#define SINK "POST /v1/sink HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-key\r\n"

/* A body that streams: answered later, or before its end, cut when it is slow, and never without a key. */
TEST(sinks)
{
    static char bytes[70001];
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    memset(bytes, 'x', sizeof(bytes) - 1);
    int fd = dial(&w);
    put(fd, SINK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    for (int i = 0; i < 100 && w.ended == 0; i++)
        loop_turn(w.loop, 0);
    ok(w.ended == 1 && w.sunk == 3);
    clock_pass(100000);
    loop_turn(w.loop, 0);
    http_answer_line(w.asleep, 202, "done");
    http_exchange_wake(w.asleep);
    ok_named(see(&w, fd, "done"), "an answer that comes late");
    put(fd, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ok_named(see(&w, fd, "200 OK"), "the connection stays");
    ok_named(w.freed > 0, "and the sink is freed");
    close(fd);
    fd = dial(&w);
    put(fd, SINK "Content-Length: 100\r\n\r\nabc!");
    ok_named(see(&w, fd, "422"), "an answer before the end");
    close(fd);
    fd = dial(&w);
    put(fd, SINK "Expect: 100-continue\r\nContent-Length: 300000\r\n\r\n");
    ok(see(&w, fd, "100 Continue"));
    for (int i = 0; i < 3; i++) {
        put(fd, bytes);
        for (int k = 0; k < 20; k++)
            loop_turn(w.loop, 0);
        clock_pass(HTTP_BODY_MS + 1);
        ok_named(!see(&w, fd, "408"), "enough comes in time");
    }
    put(fd, "xxx");
    for (int k = 0; k < 20; k++)
        loop_turn(w.loop, 0);
    clock_pass(HTTP_BODY_MS + 1);
    ok_named(see(&w, fd, "408"), "too little comes");
    close(fd);
    fd = dial(&w);
    size_t sunk = w.sunk;
    put(fd, "POST /v1/sink HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer operate-operate-\r\nContent-Length: 9\r\n\r\n");
    ok_named(see(&w, fd, "|2|"), "a token is no key");
    close(fd);
    fd = dial(&w);
    put(fd, "GET /api/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a-key\r\n\r\n");
    for (int k = 0; k < 20; k++)
        loop_turn(w.loop, 0);
    clock_pass(HTTP_DENIED_MS + 1);
    ok_named(see(&w, fd, "401"), "nor is a key a token");
    ok(w.sunk == sunk);
    close(fd);
    fd = dial(&w);
    int before = w.freed;
    put(fd, SINK "Content-Length: 100\r\n\r\nabc");
    for (int k = 0; k < 20; k++)
        loop_turn(w.loop, 0);
    close(fd);
    for (int k = 0; k < 100 && w.freed == before; k++)
        loop_turn(w.loop, 0);
    ok_named(w.freed == before + 1 && w.ended == 1, "a client that goes");
}

TEST(half_open)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int fd = dial(&w);
    put(fd, "GET /livez HTTP/1.1\r\n" HOST "\r\n");
    shutdown(fd, SHUT_WR);
    ok(see(&w, fd, "/livez|"));
    ok(see(&w, fd, NULL));
    close(fd);
    fd = dial(&w);
    put(fd, "GET /livez HTT");
    shutdown(fd, SHUT_WR);
    ok_named(see(&w, fd, NULL) && got_size == 0, "half a request");
    close(fd);
}

/* Connections without a request keep nobody out: the oldest ones go. */
TEST(idle_crowd)
{
    enum { CROWD = 3 * HTTP_CONNECTIONS_MAX };
    int fds[CROWD];
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial(&w);
        if (i % 2 == 1)
            put(fds[i], "GET /livez HTTP/1.1\r\nHo");
        turns(&w, 5);
    }
    ok_named(http_server_counts(w.server)->connections <= HTTP_CONNECTIONS_MAX, "no more than the limit");
    ok_named(see(&w, fds[0], NULL), "the oldest is closed");
    ok_named(!see(&w, fds[CROWD - 1], NULL), "the newest is not");
    int probe = dial(&w);
    put(probe, "GET /livez HTTP/1.1\r\n" HOST "\r\n");
    ok_named(see(&w, probe, "200 OK"), "a probe is answered");
    close(probe);
    for (int i = 0; i < CROWD; i++) close(fds[i]);
}

/* Where all places have a request, health is answered all the same, and nothing else. */
TEST(too_many)
{
    int fds[HTTP_CONNECTIONS_MAX];
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    for (int i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        fds[i] = dial(&w);
        put(fds[i], "GET /events HTTP/1.1\r\n" TOKEN "\r\n");
        ok(see(&w, fds[i], "chunked\r\n"));
    }
    is_number(http_server_counts(w.server)->connections, HTTP_CONNECTIONS_MAX, "all");
    for (int i = 0; i < 2 * HTTP_SPARE_MAX; i++) {
        int probe = dial(&w), other = dial(&w), idle = dial(&w);
        put(probe, "GET /livez HTTP/1.1\r\n" HOST "\r\n");
        put(other, "GET /api/x HTTP/1.1\r\n" TOKEN "\r\n");
        ok_named(see(&w, probe, "200 OK"), "a probe is answered");
        ok(see(&w, other, "503 Service Unavailable"));
        ok(strstr(got, "Connection: close") != NULL);
        close(probe), close(other);
        (void)idle; /* and stays */
    }
    ok(http_server_counts(w.server)->connections <= HTTP_CONNECTIONS_MAX + HTTP_SPARE_MAX);
    for (int i = 0; i < HTTP_CONNECTIONS_MAX; i++) close(fds[i]);
}

TEST(denied)
{
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    int token = dial(&w), key = dial(&w);
    put(token, "GET /livez HTTP/1.1\r\n" HOST "Authorization: Bearer operate-canary\r\n\r\n");
    put(key, "POST /api/session HTTP/1.1\r\n" OURS JSON "Content-Length: 16\r\n\r\n{\"key\":\"canary\"}");
    for (int i = 0; i < 100; i++)
        loop_turn(w.loop, 1);
    got_size = 0;
    ok_named(!take(token) && !take(key) && got_size == 0, "nothing for a second");
    clock_pass(HTTP_DENIED_MS);
    ok(see(&w, token, "401 Unauthorized"));
    ok(see(&w, key, "401 Unauthorized"));
    const char *denied = "http: refused=401 5.7.8, client=[127.0.0.1], sasl_method=http (a wrong token)\n";
    ok(memmem(w.lines.at, w.lines.length, denied, strlen(denied)));
    ok(memmem(w.lines.at, w.lines.length, "sasl_method=http (a wrong key)\n", 31));
    ok(memmem(w.lines.at, w.lines.length, "canary", 6) == NULL);
    close(token), close(key);
}

TEST(session)
{
    char key[HTTP_SECRET_SIZE], request[500], cookie[60] = "";
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    http_keys_make(http_server_keys(w.server), HTTP_MAY_OPERATE, key);
    int fd = dial(&w);
    snprintf(request, sizeof(request), "POST /api/session HTTP/1.1\r\n" OURS JSON
             "Origin: https://localhost\r\nContent-Length: 32\r\n\r\n{\"key\":\"%s\"}",
             key);
    put(fd, request);
    ok(see(&w, fd, "\"access\":\"operate\"}\n"));
    const char *set = strstr(got, "Set-Cookie: petrel=");
    ok(set != NULL && strstr(set, "; HttpOnly; SameSite=Strict; Path=/; Secure\r\n"));
    if (set != NULL)
        snprintf(cookie, sizeof(cookie), "petrel=%.22s", set + 19);
    snprintf(request, sizeof(request), "GET /api/x HTTP/1.1\r\n" OURS "Cookie: %s\r\n\r\n", cookie);
    put(fd, request);
    ok(see(&w, fd, "/api/x||2|"));
    snprintf(request, sizeof(request), "GET /api/x HTTP/1.1\r\n" HOST "Cookie: %s\r\n\r\n", cookie);
    put(fd, request);
    ok_named(see(&w, fd, "403 Forbidden"), "a cookie alone does nothing");
    put(fd, "GET /api/session HTTP/1.1\r\n" OURS "\r\n");
    ok(see(&w, fd, "405 ") && strstr(got, "Allow: POST, DELETE\r\n"));
    see(&w, fd, "}\n");
    snprintf(request, sizeof(request), "DELETE /api/session HTTP/1.1\r\n" OURS JSON "Cookie: %s\r\n\r\n", cookie);
    put(fd, request);
    ok(see(&w, fd, "Max-Age=0"));
    see(&w, fd, "}\n");
    snprintf(request, sizeof(request), "GET /api/x HTTP/1.1\r\n" OURS "Cookie: %s\r\n\r\n", cookie);
    put(fd, request);
    ok_named(see(&w, fd, "/api/x||0|"), "it is over");
    close(fd);
}

TEST(places)
{
    struct world w;
    begin(&w, "127.0.0.1:0?metrics=no&page=no&access=read");
    static const struct {
        const char *path, *answer;
    } paths[] = {
        {"/livez", "/livez||1|"},
        {"/readyz", "/readyz||1|"},
        {"/metrics", "404 Not Found"},
        {"/api/status", "404 Not Found"},
        {"/api/session", "404 Not Found"},
        {"/", "404 Not Found"},
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char request[200];
        int fd = dial(&w);
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\n" OURS "\r\n", paths[i].path);
        put(fd, request);
        ok_named(see(&w, fd, paths[i].answer), paths[i].path);
        close(fd);
    }
    end(&w);
    begin(&w, "127.0.0.1:0?access=operate");
    int fd = dial(&w);
    put(fd, "GET /api/x HTTP/1.1\r\n" OURS "\r\n");
    ok(see(&w, fd, "/api/x||2|"));
    put(fd, "GET /api/x HTTP/1.1\r\n" HOST "Authorization: Bearer read-read-read-r\r\n\r\n");
    ok(see(&w, fd, "/api/x||2|"));
    close(fd);
    end(&w);
}

TEST(reload)
{
    struct http_places none = {.count = 0};
    FIXTURE(world, w, begin, end, "127.0.0.1:0");
    struct http_server_settings fresh = settings_of(&w, &none);
    fresh.names.more = TEXT("new.test");
    fresh.read_token = TEXT("");
    http_server_reload(w.server, &fresh);
    int fd = dial(&w);
    put(fd, "GET /livez HTTP/1.1\r\nHost: new.test\r\n\r\n");
    ok(see(&w, fd, "200 OK"));
    see(&w, fd, "/livez|");
    put(fd, "GET /livez HTTP/1.1\r\nHost: other.test\r\n\r\n");
    ok(see(&w, fd, "421 "));
    see(&w, fd, "}\n");
    put(fd, "GET /livez HTTP/1.1\r\n" HOST "Authorization: Bearer read-read-read-r\r\n\r\n");
    for (int i = 0; i < 50; i++)
        loop_turn(w.loop, 1);
    clock_pass(HTTP_DENIED_MS);
    ok(see(&w, fd, "401 "));
    close(fd);
}

int
main(void)
{
    clock_stop();
    tap_tests("");
    return done();
}
