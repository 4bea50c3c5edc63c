/* Connections of HTTP: reads requests, sends answers, keeps the limits. */
#include "admin/http/http_server.h"

#include "admin/http/http_internal.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { HEAD_ROOM = 4096, CHUNK_ROOM = 32 };

/* --- Life ------------------------------------------------------------------------- */

static void
http_visit_forget_stream(struct http_visit *v)
{
    if (v->exchange.stream.free != NULL)
        v->exchange.stream.free(v->exchange.stream.context);
    v->exchange.stream = (struct http_stream){NULL, NULL, NULL};
    if (v->exchange.sink.free != NULL)
        v->exchange.sink.free(v->exchange.sink.context);
    v->exchange.sink = (struct http_sink){NULL, NULL, NULL, NULL};
}

static void
http_visit_release(void *object)
{
    struct http_visit *v = object;
    http_reader_free(&v->reader);
    buffer_free(&v->exchange.body);
    buffer_free(&v->exchange.fields);
    free(v);
}

static void
http_visit_end(struct http_visit *v, bool abort)
{
    struct http_server *s = v->server;
    if (v->stage == VISIT_OVER)
        return;
    v->stage = VISIT_OVER;
    http_visit_forget_stream(v);
    if (abort)
        net_abort(&v->connection);
    else
        net_close(&v->connection);
    loop_timer_stop(s->loop, &v->timer);
    if (v->ready)
        DL_DELETE2(s->ready, v, ready_prev, ready_next);
    DL_DELETE(s->visits, v);
    s->counts.connections--;
    s->spare -= v->is_spare;
    loop_release(s->loop, http_visit_release, v);
}

static void http_visits_run(void *context);

/* Its turn comes when those before it have had theirs. */
static void
http_visit_ready(struct http_visit *v)
{
    if (v->ready || v->stage == VISIT_OVER)
        return;
    v->ready = true;
    DL_APPEND2(v->server->ready, v, ready_prev, ready_next);
    loop_post(v->server->loop, &v->server->task, http_visits_run, v->server);
}

static void
http_visit_wake(void *context)
{
    http_visit_ready(context);
}

static void http_visit_on_time(void *context);

static void
http_visit_enter(struct http_visit *v, enum http_visit_stage stage, int64_t for_ms)
{
    v->stage = stage;
    loop_timer_start(v->server->loop, &v->timer, for_ms, http_visit_on_time, v);
}

/* --- Answering -------------------------------------------------------------------- */

static void
http_visit_count(struct http_visit *v)
{
    unsigned class = v->exchange.status / 100;
    v->server->counts.requests[v->exchange.path][class < 6 ? class : 5]++;
}

/* The next request may come. */
static void
http_visit_again(struct http_visit *v)
{
    http_visit_forget_stream(v);
    if (v->is_last) {
        http_visit_end(v, false);
        return;
    }
    http_reader_free(&v->reader);
    buffer_free(&v->exchange.body);
    buffer_free(&v->exchange.fields);
    http_visit_expect(v);
    http_visit_enter(v, VISIT_IDLE, HTTP_IDLE_MS);
    net_want_input(v->connection, true);
    http_visit_ready(v);
}

static void
http_visit_give(struct http_visit *v, struct text bytes)
{
    v->given += bytes.length;
    net_send(v->connection, bytes);
}

static uint64_t
http_visit_taken(const struct http_visit *v)
{
    return v->given - net_unsent(v->connection);
}

/* The live stream: it ends when the client goes, or may no longer read. */
static bool
http_visit_is_endless(const struct http_visit *v)
{
    return v->stage == VISIT_ANSWERING && v->exchange.path == HTTP_PATH_EVENTS &&
           v->exchange.stream.more != NULL;
}

static void
http_visit_send_piece(struct http_visit *v, struct text piece)
{
    char size[CHUNK_ROOM];
    if (piece.length == 0 || v->mutes)
        return;
    if (v->chunked) {
        snprintf(size, sizeof(size), "%zx\r\n", piece.length);
        http_visit_give(v, text_from(size));
    }
    http_visit_give(v, piece);
    if (v->chunked)
        http_visit_give(v, TEXT("\r\n"));
}

/* One piece of the stream, if the client has read enough. */
static void
http_visit_pump(struct http_visit *v)
{
    struct http_stream *stream = &v->exchange.stream;
    struct buffer piece;
    if (v->ended && http_visit_is_endless(v)) {
        http_visit_end(v, false);
        return;
    }
    if (net_unsent(v->connection) >= NET_LOW_WATER)
        return;
    if (stream->more == NULL) { /* all is sent, and most is read */
        http_visit_again(v);
        return;
    }
    buffer_init(&piece, HTTP_ANSWER_MAX);
    enum progress progress =
        v->mutes ? PROGRESS_DONE : stream->more(stream->context, &piece);
    http_visit_send_piece(v, buffer_text(&piece));
    bool more = progress == PROGRESS_MORE && piece.length > 0;
    buffer_free(&piece);
    if (progress == PROGRESS_BAD) {
        http_visit_end(v, true);
        return;
    }
    if (progress == PROGRESS_DONE) {
        if (v->chunked && !v->mutes)
            http_visit_give(v, TEXT("0\r\n\r\n"));
        http_visit_forget_stream(v);
    }
    if (more || progress == PROGRESS_DONE)
        http_visit_ready(v);
}

static void
http_visit_send(struct http_visit *v)
{
    struct http_exchange *x = &v->exchange;
    bool streams = x->stream.more != NULL, old = v->reader.minor == 0;
    enum http_body form = !streams ? HTTP_BODY_WHOLE
                          : old    ? HTTP_BODY_TO_END
                                   : HTTP_BODY_CHUNKED;
    struct buffer head;
    v->is_last = v->is_last || old || ++v->requests == HTTP_CONNECTION_REQUESTS_MAX;
    v->chunked = form == HTTP_BODY_CHUNKED;
    buffer_init(&head, HEAD_ROOM);
    bool fits = http_answer_head(x, form, v->is_last, &head);
    assert(fits); /* HTTP_FIELDS_MAX */
    http_visit_give(v, buffer_text(&head));
    buffer_free(&head);
    if (!streams && !v->mutes)
        http_visit_give(v, buffer_text(&x->body));
    buffer_free(&x->body);
    http_visit_count(v);
    v->taken = http_visit_taken(v);
    v->waits = true;
    http_visit_enter(v, VISIT_ANSWERING, HTTP_UNREAD_MS);
    if (http_visit_is_endless(v))
        net_want_input(v->connection, true); /* its end */
    http_visit_ready(v);
}

static void
http_visit_answer(struct http_visit *v)
{
    net_want_input(v->connection, false);
    if (v->exchange.delay_ms > 0)
        http_visit_enter(v, VISIT_WAITING, v->exchange.delay_ms);
    else
        http_visit_send(v);
}

static void
http_visit_refuse(struct http_visit *v, unsigned status, const char *why)
{
    v->is_last = true;
    http_answer_error(&v->exchange, status, why);
    http_visit_answer(v);
}

/* --- Asking ----------------------------------------------------------------------- */

void
http_visit_expect(struct http_visit *v)
{
    static const struct http_limits limits = {HTTP_LINES_MAX, HTTP_REQUEST_HEAD_MAX,
                                              HTTP_REQUEST_BODY_MAX};
    http_reader_init(&v->reader, HTTP_REQUEST, &limits);
    http_reader_stream(&v->reader, v->server->stream_path, v->server->stream_max);
    v->exchange.request = &v->reader;
    v->exchange.status = 0;
    v->exchange.type = NULL;
    v->exchange.delay_ms = 0;
    v->exchange.path = HTTP_PATH_OTHER;
    v->exchange.may = HTTP_MAY_NOTHING;
    v->exchange.key = NULL;
    v->body = 0;
    v->exchange.wake = http_visit_wake;
    v->exchange.wake_context = v;
    v->mutes = v->chunked = v->continues = false;
    buffer_init(&v->exchange.body, HTTP_ANSWER_MAX);
    buffer_init(&v->exchange.fields, HTTP_FIELDS_MAX);
}

static bool
http_has_word(struct text list, struct text wanted)
{
    struct text word;
    while (text_word(&list, ", \t", &word))
        if (text_equal_nocase(word, wanted))
            return true;
    return false;
}

static void
http_visit_ask(struct http_visit *v)
{
    const struct http_reader *r = &v->reader;
    struct text connection = http_reader_field(r, TEXT("Connection"));
    v->is_last = v->is_last || http_has_word(connection, TEXT("close"));
    v->mutes = text_equal(r->method, TEXT("HEAD"));
    http_serve(v);
}

/* The client waits for us: no time-out. */
static void
http_visit_complete(struct http_visit *v)
{
    if (v->exchange.sink.end != NULL)
        v->exchange.sink.end(v->exchange.sink.context);
    else
        http_visit_ask(v);
    if (v->exchange.status > 0) {
        http_visit_answer(v);
        return;
    }
    assert(v->exchange.sink.end != NULL);
    net_want_input(v->connection, false);
    loop_timer_stop(v->server->loop, &v->timer);
    v->stage = VISIT_PENDING;
}

/* The bytes of a body that streams. False: it has its answer before its end. */
static bool
http_visit_sink(struct http_visit *v)
{
    struct buffer *body = &v->reader.body;
    struct http_sink *sink = &v->exchange.sink;
    if (sink->add == NULL || body->length == 0)
        return true;
    bool goes_on = sink->add(sink->context, buffer_text(body));
    buffer_clear(body);
    if (goes_on)
        return true;
    v->is_last = true;
    http_visit_answer(v);
    return false;
}

/* False: the request is refused. */
static bool
http_visit_head(struct http_visit *v)
{
    struct text expects = http_reader_field(&v->reader, TEXT("Expect"));
    if (expects.at != NULL && !text_equal_nocase(expects, TEXT("100-continue"))) {
        http_visit_refuse(v, 417, "an expectation that is not known");
        return false;
    }
    if (v->reader.streams) {
        http_visit_ask(v);
        if (v->exchange.sink.add == NULL) { /* its body is not read */
            v->is_last = true;
            http_visit_answer(v);
            return false;
        }
    }
    if (expects.at != NULL && v->reader.minor == 1 &&
        (v->reader.stage == HTTP_SIZED || v->reader.streams))
        http_visit_give(v, TEXT("HTTP/1.1 100 Continue\r\n\r\n"));
    http_visit_enter(v, VISIT_BODY, HTTP_BODY_MS);
    return true;
}

static void
http_visit_read(struct http_visit *v)
{
    struct text input = net_input(v->connection);
    size_t before = input.length;
    if (before == 0) {
        if (v->ended)
            http_visit_end(v, false);
        return;
    }
    if (v->stage == VISIT_IDLE)
        http_visit_enter(v, VISIT_HEAD, HTTP_HEAD_MS);
    enum progress progress = http_reader_add(&v->reader, &input);
    net_consume(v->connection, before - input.length);
    if (progress == PROGRESS_BAD) {
        http_visit_refuse(v, v->reader.refusal, v->reader.error);
        return;
    }
    if (v->stage == VISIT_HEAD && http_reader_has_head(&v->reader) &&
        !http_visit_head(v))
        return;
    if (!http_visit_sink(v))
        return;
    if (progress == PROGRESS_DONE)
        http_visit_complete(v);
    else if (v->ended)
        http_visit_end(v, false);
}

/* --- Turns ------------------------------------------------------------------------ */

static void
http_visit_run(struct http_visit *v)
{
    switch (v->stage) {
    case VISIT_IDLE:
    case VISIT_HEAD:
    case VISIT_BODY:
        http_visit_read(v);
        break;
    case VISIT_PENDING:
        if (v->exchange.status > 0)
            http_visit_answer(v);
        break;
    case VISIT_ANSWERING:
        http_visit_pump(v);
        break;
    case VISIT_SECURING:
    case VISIT_WAITING:
    case VISIT_OVER:
        break;
    }
}

/* One step of each that is ready, in turns, until the time of this turn is used. */
static void
http_visits_run(void *context)
{
    struct http_server *s = context;
    int64_t end_us = loop_clock_us() + HTTP_TURN_US;
    while (s->ready != NULL && loop_clock_us() < end_us) {
        struct http_visit *v = s->ready;
        DL_DELETE2(s->ready, v, ready_prev, ready_next);
        v->ready = false;
        http_visit_run(v);
    }
    if (s->ready != NULL)
        loop_post(s->loop, &s->task, http_visits_run, s);
}

/* Unless the client has taken none of the bytes that waited for it. */
static void
http_visit_goes_on(struct http_visit *v)
{
    uint64_t taken = http_visit_taken(v);
    bool waits = net_unsent(v->connection) > 0;
    if ((waits && v->waits && taken == v->taken) ||
        (http_visit_is_endless(v) && !http_serve_lasts(v))) {
        http_visit_end(v, true);
        return;
    }
    v->taken = taken;
    v->waits = waits;
    http_visit_enter(v, VISIT_ANSWERING, HTTP_UNREAD_MS);
}

/* True: of a body that streams enough has come since. */
static bool
http_visit_flows(struct http_visit *v)
{
    size_t came = v->reader.taken - v->body;
    v->body = v->reader.taken;
    return v->exchange.sink.add != NULL && came >= HTTP_BODY_LEAST;
}

static void
http_visit_on_time(void *context)
{
    struct http_visit *v = context;
    switch (v->stage) {
    case VISIT_WAITING:
        http_visit_send(v);
        break;
    case VISIT_HEAD:
    case VISIT_BODY:
        if (v->stage == VISIT_BODY && http_visit_flows(v)) {
            http_visit_enter(v, VISIT_BODY, HTTP_BODY_MS);
            break;
        }
        http_visit_refuse(v, 408, "the request takes too long");
        break;
    case VISIT_ANSWERING:
        http_visit_goes_on(v);
        break;
    case VISIT_IDLE:
    case VISIT_SECURING:
        http_visit_end(v, false);
        break;
    case VISIT_PENDING:
    case VISIT_OVER:
        assert(false);
    }
}

static void
http_visit_on_event(void *context, enum net_event event)
{
    struct http_visit *v = context;
    switch (event) {
    case NET_SECURED:
        http_visit_enter(v, VISIT_HEAD, HTTP_HEAD_MS);
        http_visit_ready(v);
        break;
    case NET_INPUT:
    case NET_DRAINED:
        http_visit_ready(v);
        break;
    case NET_ENDED:
        v->ended = v->is_last = true;
        http_visit_ready(v);
        break;
    case NET_FAILED:
        http_visit_end(v, true);
        break;
    case NET_TIMED_OUT:
    case NET_CONNECTED:
        break;
    }
}

/* --- Doors ------------------------------------------------------------------------ */

static bool
http_is_remote(const struct net_address *a)
{
    return a->family != NET_UNIX && !net_address_is_loopback(a);
}

static bool
http_visit_is_of(const struct http_visit *v, const struct net_address *peer)
{
    struct net_address other = *net_peer(v->connection);
    other.port = peer->port;
    return net_address_equal(&other, peer);
}

/* The oldest connection that uses its place for nothing. peer: of this client, or NULL.
 * Those of the operator, who came by the control socket, make room for each other. */
static struct http_visit *
http_server_idlest(const struct http_server *s, const struct net_address *peer,
                   bool adopted, bool spare)
{
    struct http_visit *v;
    DL_FOREACH (s->visits, v)
        if (v->stage <= VISIT_BODY && !v->ready && v->exchange.sink.add == NULL &&
            (spare || !v->is_spare) && (adopted || v->place != &s->adopted) &&
            (peer == NULL || http_visit_is_of(v, peer)))
            return v;
    return NULL;
}

static bool
http_server_is_full(const struct http_server *s)
{
    return s->counts.connections - s->spare >= HTTP_CONNECTIONS_MAX;
}

/* Ends a connection without a request where there are too many: who holds places does
 * not keep others out. NULL, or why there is no room. */
static const char *
http_server_make_room(struct http_server *s, const struct net_address *peer,
                      bool adopted)
{
    size_t same = 0;
    struct http_visit *v;
    DL_FOREACH (s->visits, v)
        same += http_visit_is_of(v, peer);
    if (http_is_remote(peer) && same >= HTTP_CLIENT_CONNECTIONS_MAX) {
        if ((v = http_server_idlest(s, peer, adopted, true)) == NULL)
            return "too many connections of this client";
        http_visit_end(v, true);
    }
    if (http_server_is_full(s) &&
        (v = http_server_idlest(s, NULL, adopted, false)) != NULL)
        http_visit_end(v, true);
    if (!http_server_is_full(s) || s->spare < HTTP_SPARE_MAX)
        return NULL;
    if ((v = http_server_idlest(s, NULL, adopted, true)) == NULL)
        return "too many connections";
    http_visit_end(v, true);
    return NULL;
}

static bool
http_may_connect(const struct http_place *place, const struct net_connection *c)
{
    struct net_credentials who;
    return place->users.uid_count == 0 ||
           (net_peer_credentials(c, &who) && net_users_have(&place->users, who.uid));
}

/* Sentences for those who are turned away are limited by time. */
static bool
http_may_hear(struct http_server *s)
{
    int64_t now_ms = loop_monotonic_ms(s->loop);
    if (now_ms - s->second_ms >= 1000) {
        s->second_ms = now_ms;
        s->turned = 0;
    }
    return s->turned++ < HTTP_TURNED_A_SECOND;
}

/* A client under TLS would have to be shaken hands with to hear it. Closed connections
 * that the client keeps open are limited in number, for mail and HTTP together. */
static void
http_turn_away(struct net_connection *c, bool silently, const char *why)
{
    struct http_exchange x = {.status = 0};
    struct buffer head;
    if (silently) {
        net_abort(&c);
        return;
    }
    buffer_init(&x.body, HTTP_ANSWER_MAX);
    buffer_init(&head, HEAD_ROOM);
    http_answer_error(&x, 503, why);
    if (http_answer_head(&x, HTTP_BODY_WHOLE, true, &head)) {
        net_send(c, buffer_text(&head));
        net_send(c, buffer_text(&x.body));
    }
    buffer_free(&head);
    buffer_free(&x.body);
    net_close(&c);
}

static void
http_ignore(void *context, enum net_event event)
{
    (void)context;
    (void)event;
}

static struct http_visit *
http_visit_new(struct http_server *s, const struct http_place *place,
               struct net_connection *c)
{
    struct http_visit *v = memory_new(sizeof(*v));
    v->server = s;
    v->connection = c;
    v->place = place;
    v->is_spare = http_server_is_full(s);
    s->spare += v->is_spare;
    DL_APPEND(s->visits, v);
    s->counts.connections++;
    http_visit_expect(v);
    net_attach(c, http_visit_on_event, v);
    return v;
}

static void
http_server_on_accept(void *context, struct net_connection *c)
{
    struct http_door *door = context;
    struct http_server *s = door->server;
    struct tls_server *tls = door->place.tls ? s->tls(s->tls_context) : NULL;
    if ((door->place.tls && tls == NULL) || !http_may_connect(&door->place, c)) {
        net_abort(&c);
        return;
    }
    const char *why = http_server_make_room(s, net_peer(c), false);
    if (why != NULL) {
        bool hears = http_may_hear(s);
        net_attach(c, http_ignore, NULL);
        http_turn_away(c, tls != NULL || !hears, why);
        return;
    }
    if (tls != NULL &&
        !http_budget_take(&s->handshakes, net_peer(c), loop_monotonic_ms(s->loop))) {
        net_abort(&c);
        return;
    }
    struct http_visit *v = http_visit_new(s, &door->place, c);
    if (tls != NULL)
        net_start_tls(c, &(struct net_tls){.server = tls, .protocol = TLS_HTTP});
    http_visit_enter(v, tls != NULL ? VISIT_SECURING : VISIT_HEAD, HTTP_HEAD_MS);
}

/* --- public ----------------------------------------------------------------------- */

void
http_server_reload(struct http_server *s, const struct http_server_settings *settings)
{
    free(s->hostname);
    free(s->names);
    s->hostname = text_string(settings->names.hostname);
    s->names = text_string(settings->names.more);
    http_keys_set_tokens(s->keys, settings->token, settings->read_token);
    s->stream_path = settings->stream_path;
    s->stream_max = settings->stream_max;
}

static bool
http_open_door(struct http_server *s, struct net *net, const struct http_place *place,
               char *error, size_t error_size)
{
    struct http_door *door = &s->doors[s->door_count];
    if (s->door_count == HTTP_PLACES_MAX) {
        snprintf(error, error_size, "http: more than %d sockets", HTTP_PLACES_MAX);
        return false;
    }
    *door = (struct http_door){.server = s, .place = *place};
    door->socket = net_listen(net, &place->address, place->users.mode,
                              http_server_on_accept, door, error, error_size);
    if (door->socket == NULL)
        return false;
    s->door_count++;
    door->place.address = *net_listener_address(door->socket);
    if (http_place_is_safe(&door->place))
        return true;
    snprintf(error, error_size, "http: fd:%s: access= is " HTTP_PLACE_UNSAFE,
             place->address.path);
    return false;
}

/* Several sockets can be passed with one name. */
static bool
http_open_place(struct http_server *s, struct net *net, const struct http_place *place,
                char *error, size_t error_size)
{
    do {
        if (!http_open_door(s, net, place, error, error_size))
            return false;
    } while (place->address.family == NET_PASSED &&
             net_passed_left(net, place->address.path) > 0);
    return true;
}

struct http_server *
http_server_new(struct loop *loop, struct net *net, struct log *log,
                const struct http_server_settings *settings, char *error,
                size_t error_size)
{
    struct http_server *s = memory_new(sizeof(*s));
    s->loop = loop;
    s->log = log;
    s->events = settings->events;
    s->tls = settings->tls;
    s->tls_context = settings->tls_context;
    s->route = settings->route;
    s->key = settings->key;
    s->context = settings->context;
    s->keys = http_keys_new(loop);
    s->adopted = (struct http_place){.address = {.family = NET_UNIX},
                                     .access = HTTP_MAY_NOTHING};
    http_server_reload(s, settings);
    for (size_t i = 0; i < settings->places->count; i++)
        if (!http_open_place(s, net, &settings->places->list[i], error, error_size)) {
            http_server_free(&s);
            return NULL;
        }
    for (size_t i = 0; i < s->door_count; i++) {
        char address[NET_ADDRESS_TEXT_MAX];
        net_address_format(net_listener_address(s->doors[i].socket), address);
        log_say(log, LOG_LEVEL_INFO, "http", NULL, "listening on %s%s", address,
                s->doors[i].place.tls ? " by TLS" : "");
    }
    return s;
}

void
http_server_free(struct http_server **server)
{
    struct http_server *s = *server;
    struct http_visit *v, *next;
    if (s == NULL)
        return;
    *server = NULL;
    for (size_t i = 0; i < s->door_count; i++)
        net_listener_free(&s->doors[i].socket);
    DL_FOREACH_SAFE (s->visits, v, next)
        http_visit_end(v, false);
    loop_unpost(s->loop, &s->task);
    http_keys_free(&s->keys);
    free(s->hostname);
    free(s->names);
    free(s);
}

const char *
http_server_adopt(struct http_server *s, struct net_connection *c)
{
    const char *why = http_server_make_room(s, net_peer(c), true);
    if (why != NULL)
        return why;
    struct http_visit *v = http_visit_new(s, &s->adopted, c);
    http_visit_enter(v, VISIT_HEAD, HTTP_HEAD_MS);
    http_visit_ready(v); /* the request may have come already */
    return NULL;
}

const struct http_place *
http_server_place(const struct http_server *s, size_t index)
{
    return index < s->door_count ? &s->doors[index].place : NULL;
}

struct http_keys *
http_server_keys(struct http_server *s)
{
    return s->keys;
}

const struct http_server_counts *
http_server_counts(const struct http_server *s)
{
    return &s->counts;
}

struct net_listener_counts
http_server_place_counts(const struct http_server *s, size_t index)
{
    return net_listener_counts(s->doors[index].socket);
}

const struct net_address *
http_server_address(const struct http_server *s, size_t index)
{
    return net_listener_address(s->doors[index].socket);
}
