/* Declarations that the connections and the judgement of requests share. */
#ifndef ADMIN_HTTP_HTTP_INTERNAL_H
#define ADMIN_HTTP_HTTP_INTERNAL_H

#include "admin/http/http_budget.h"
#include "admin/http/http_server.h"
#include "base/loop/loop.h"

struct http_door {
    struct http_server *server;
    struct http_place place;
    struct net_listener *socket;
};

enum http_visit_stage {
    VISIT_SECURING, /* TLS */
    VISIT_IDLE,     /* between requests */
    VISIT_HEAD,
    VISIT_BODY,
    VISIT_PENDING, /* the body is whole; its sink answers later */
    VISIT_WAITING, /* before an answer that is delayed */
    VISIT_ANSWERING,
    VISIT_OVER
};

/* A connection. */
struct http_visit {
    struct http_visit *prev, *next;
    struct http_visit *ready_prev, *ready_next;
    struct http_server *server;
    const struct http_place *place;
    struct net_connection *connection;
    enum http_visit_stage stage;
    struct loop_timer timer;
    struct http_reader reader;
    struct http_exchange exchange;
    char client[NET_ADDRESS_TEXT_MAX];
    unsigned requests;
    uint64_t given; /* octets to the connection */
    size_t body;    /* octets that had come when the timer was started */
    uint64_t taken; /* of them by the client, when the timer was started */
    bool waits;     /* the client had not taken all then */
    bool ready;     /* in the server's list */
    bool is_spare;  /* all places are in use: health alone, and the operator */
    bool is_last, ended, mutes, chunked, continues;
};

struct http_server {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct tls_server *(*tls)(void *context);
    void *tls_context;
    void (*route)(void *context, struct http_exchange *exchange);
    const char *(*key)(void *context, struct text token);
    void *context;
    const char *stream_path;
    size_t stream_max;
    struct http_keys *keys;
    char *hostname, *names;
    struct http_door doors[HTTP_PLACES_MAX];
    struct http_place adopted; /* the place of adopted connections: a key is needed */
    size_t door_count;
    struct http_visit *visits, *ready;
    struct loop_task task;
    int64_t second_ms; /* monotonic: when turned was counted from */
    size_t spare;      /* connections with is_spare */
    unsigned turned;
    struct http_budget handshakes;
    struct http_server_counts counts;
};

/* A new request is expected. */
void http_visit_expect(struct http_visit *visit);
/* Judges the complete request and has it answered. */
void http_serve(struct http_visit *visit);
/* Whether the client of an endless answer may still have it: tokens change, and sessions
 * end. */
bool http_serve_lasts(struct http_visit *visit);

#endif
