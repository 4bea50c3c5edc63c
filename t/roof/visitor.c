/* Clients of HTTP. */
#include "t/roof/visitor.h"

#include "base/memory.h"
#include "t/roof/host.h"
#include "t/roof/peer.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    PROBE_MS = 5000,      /* an answer has come by then */
    PATIENCE_MS = 120000, /* of the others */
    STREAM_MS = 10000,    /* of a stream of events */
    AGAIN_MS = 20000,     /* between two probes */
    BODY_MAX = 1 << 20,
    REQUEST_SIZE = 600,
    CROWD = 12
};

enum visit_kind {
    VISIT_PROBE,
    VISIT_ASKS,
    VISIT_DRIPS,
    VISIT_HOLDS,
    VISIT_NEVER_READS
};

struct visitor {
    struct visitor *prev, *next;
    struct peer peer;
    enum visit_kind kind;
    char request[REQUEST_SIZE];
    bool is_stream; /* of events: each second of it is work, also behind a silent end */
    bool is_json, has_status, has_size, in_body;
    int status;
    size_t size; /* of the body */
    struct buffer body;
    struct roof_timer timer;
    unsigned starts;      /* of the host, when it asked */
    visitor_heard *heard; /* NULL: nobody wants its answer */
    void *context;
};

static struct {
    uint64_t chance;
    bool is_narrow, is_good;
    unsigned answered;
    struct visitor *list;
    struct roof_timer probe;
} visitors;

unsigned
visitors_answered(void)
{
    return visitors.answered;
}

static unsigned
below(unsigned limit)
{
    return roof_below_of(&visitors.chance, limit);
}

static void
release_visitor(void *context)
{
    struct visitor *v = context;
    buffer_free(&v->body);
    free(v);
}

/* The host was there all the time, and is to stay. */
static bool
host_was_up(const struct visitor *v)
{
    return host.running && !host.leaves && host.starts == v->starts;
}

static void
visitor_on_over(void *context)
{
    struct visitor *v = context;
    if (v->kind == VISIT_PROBE && v->status != 200 && host_was_up(v) &&
        !visitors.is_narrow)
        roof_break("in time", NULL, "a probe ended with status %d", v->status);
    if (v->heard != NULL)
        v->heard(v->context, TEXT(""));
    DL_DELETE(visitors.list, v);
    roof_timer_start(&v->timer, 0, release_visitor, v);
}

static void
visitor_on_impatience(void *context)
{
    struct visitor *v = context;
    if (v->kind == VISIT_PROBE && host_was_up(v) && !visitors.is_narrow)
        roof_break("in time", NULL, "a probe of the health has no answer after %d ms",
                   PROBE_MS);
    v->kind = VISIT_HOLDS;
    if (v->is_stream && below(10) > 0)
        peer_cut(&v->peer, PEER_RESET);
    else
        peer_cut(&v->peer, (enum peer_end)below(PEER_ENDS));
}

static void
judge_answer(struct visitor *v)
{
    visitors.answered++;
    if (v->is_json && v->status == 200) {
        json_t *answer = json_loadb(v->body.at, v->body.length, 0, NULL);
        if (answer == NULL)
            roof_break("truth", NULL, "an answer of HTTP that is not JSON: %.*s",
                       (int)v->body.length, v->body.at);
        json_decref(answer);
    }
    visitor_heard *heard = v->heard;
    v->heard = NULL;
    if (heard != NULL)
        heard(v->context, v->status == 200 ? buffer_text(&v->body) : TEXT(""));
    peer_close(&v->peer);
}

static void
visitor_on_raw(void *context, struct text bytes)
{
    struct visitor *v = context;
    if (!buffer_add(&v->body, bytes))
        abort();
    if (v->peer.raw_left == 0)
        judge_answer(v);
}

static void
take_field(struct visitor *v, struct text line)
{
    uint64_t size;
    if (!text_starts_nocase(line, TEXT("content-length:")))
        return;
    bool good = text_number(text_trim(text_after(line, 15)), BODY_MAX, &size);
    assert(good);
    v->size = (size_t)size;
    v->has_size = true;
}

static void
take_status(struct visitor *v, struct text line)
{
    if (!text_starts(line, TEXT("HTTP/1.1 ")))
        roof_break("truth", NULL, "an answer that is not of HTTP: %.*s",
                   TEXT_ARGS(line));
    v->status = roof_breaks("health") ? 500 : atoi(line.at + 9);
    v->has_status = true;
    roof_note("visitor: %d", v->status);
}

static bool
visitor_on_line(void *context, struct text line)
{
    struct visitor *v = context;
    if (v->kind == VISIT_NEVER_READS)
        return false;
    if (v->in_body) /* a stream of events has no size */
        return true;
    if (!v->has_status) {
        take_status(v, line);
    } else if (line.length > 0) {
        take_field(v, line);
    } else {
        v->in_body = true;
        v->peer.raw_left = v->size;
        if (v->has_size && v->size == 0)
            judge_answer(v);
    }
    return true;
}

static void
visitor_on_connected(void *context)
{
    struct visitor *v = context;
    peer_say(&v->peer, text_from(v->request));
}

static struct visitor *
visit(enum visit_kind kind, const char *request)
{
    struct net_address from =
                           {
                               .family = NET_IPV4, .ip = {10, 4, 0, 1}
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 1}, .port = 8080};
    struct visitor *v = memory_new(sizeof(*v));
    from.ip[3] = (unsigned char)(kind == VISIT_PROBE ? 250 : 1 + below(8));
    v->kind = kind;
    v->starts = host.starts;
    snprintf(v->request, sizeof(v->request), "%s", request);
    buffer_init(&v->body, BODY_MAX);
    v->peer = (struct peer){.connected = visitor_on_connected,
                            .line = visitor_on_line,
                            .raw = visitor_on_raw,
                            .over = visitor_on_over,
                            .context = v};
    DL_APPEND(visitors.list, v);
    roof_timer_start(&v->timer, kind == VISIT_PROBE ? PROBE_MS : PATIENCE_MS,
                     visitor_on_impatience, v);
    peer_connect(&v->peer, &from, &to);
    return v;
}

/* --- Requests --------------------------------------------------------------- */

static void
ask_page(bool never_reads)
{
    static const char *const paths[] = {"/",
                                        "/page.js",
                                        "/metrics",
                                        "/readyz",
                                        "/api/status",
                                        "/api/queue",
                                        "/api/sites",
                                        "/api/findings",
                                        "/api/series",
                                        "/events",
                                        "/api/nothing",
                                        "/api/trace?q=a",
                                        "/api/queue?limit=5000",
                                        "/status.json"};
    char request[REQUEST_SIZE];
    const char *path = paths[below(sizeof(paths) / sizeof(*paths))];
    const char *token = below(4) > 0 ? VISITOR_TOKEN : "another-token-of-nobody";
    const char *connection = below(2) == 0 ? "close" : "keep-alive";
    const char *method = below(20) > 0 ? "GET" : "BREW";
    snprintf(request, sizeof(request),
             "%s %s HTTP/1.1\r\nHost: 10.0.0.1:8080\r\nAuthorization: Bearer %s\r\n"
             "Connection: %s\r\n\r\n",
             method, path, token, connection);
    struct visitor *v = visit(never_reads ? VISIT_NEVER_READS : VISIT_ASKS, request);
    v->is_stream = strcmp(path, "/events") == 0;
    if (v->is_stream)
        roof_timer_start(&v->timer, STREAM_MS, visitor_on_impatience, v);
    v->is_json = strncmp(path, "/api/", 5) == 0 && strstr(path, "trace") == NULL;
    if (below(8) == 0)
        v->peer.cut_at = 1 + below((unsigned)strlen(request));
}

void
visitors_read(const char *path, visitor_heard *heard, void *context)
{
    char request[REQUEST_SIZE];
    snprintf(request, sizeof(request),
             "GET %s HTTP/1.1\r\nHost: 10.0.0.1:8080\r\nAuthorization: Bearer "
             "%s\r\nConnection: close\r\n\r\n",
             path, VISITOR_TOKEN);
    struct visitor *v = visit(VISIT_ASKS, request);
    v->heard = heard;
    v->context = context;
}

static void
drip(void)
{
    struct visitor *v = visit(
        VISIT_DRIPS, "GET /api/status HTTP/1.1\r\nHost: 10.0.0.1\r\nX-One: two\r\n"
                     "X-Three: four five six seven eight nine ten eleven\r\n\r\n");
    v->peer.piece = 1;
    v->peer.pause_ms = 100 + below(900);
}

static void
visitors_on_probe(void *context)
{
    (void)context;
    /* one that has just begun may still read its spool */
    if (host.running && !host.leaves)
        visit(VISIT_PROBE, "GET /livez HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n");
    if (!visitors.is_good)
        roof_timer_start(&visitors.probe, AGAIN_MS, visitors_on_probe, NULL);
}

void
visitors_begin(bool is_narrow)
{
    visitors.chance = roof_fork("visitors");
    visitors.is_narrow = is_narrow;
    roof_timer_start(&visitors.probe, SECOND_MS, visitors_on_probe, NULL);
}

void
visitors_act(void)
{
    unsigned count = below(4) == 0 ? CROWD : 1 + below(3), kind = below(5);
    roof_note("visitors: %u of kind %u", count, kind);
    for (unsigned i = 0; i < count; i++) {
        if (kind < 2)
            ask_page(false);
        else if (kind == 2)
            ask_page(true);
        else if (kind == 3)
            drip();
        else
            visit(VISIT_HOLDS, "");
    }
}

void
visitors_become_good(void)
{
    struct visitor *v, *next;
    visitors.is_good = true;
    DL_FOREACH_SAFE (visitors.list, v, next)
        if (v->kind != VISIT_PROBE)
            peer_cut(&v->peer, PEER_RESET);
}
