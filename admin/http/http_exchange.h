/* One request and its answer: the view of HTTP that a route has.
 *
 * The server fills the question, the route the answer: a body as a whole, or a stream
 * that is asked for some more whenever the client has read. */
#ifndef ADMIN_HTTP_HTTP_EXCHANGE_H
#define ADMIN_HTTP_HTTP_EXCHANGE_H

#include "admin/http/http_places.h"
#include "base/http/http.h"
#include "base/http/http_target.h"

#include <jansson.h>

enum {
    HTTP_ANSWER_MAX = 220 * 1024, /* octets of a body as a whole; of a piece */
    HTTP_FIELDS_MAX = 1024        /* octets of further fields */
};

/* For http_requests_total. */
enum http_path {
    HTTP_PATH_PAGE,
    HTTP_PATH_API,
    HTTP_PATH_METRICS,
    HTTP_PATH_HEALTH,
    HTTP_PATH_EVENTS,
    HTTP_PATH_MAIL,
    HTTP_PATH_OTHER,
    HTTP_PATHS
};

struct http_stream {
    /* Adds a piece to out, work of half a millisecond at most. DONE: it was the last;
     * MORE without a piece: http_exchange_wake() will say when; BAD: the connection is
     * cut, so that the client knows that some is missing. NULL: the body is whole. */
    enum progress (*more)(void *context, struct buffer *out);
    void (*free)(void *context); /* also when the client goes */
    void *context;
};

/* Takes a body that streams: set by the route, which is called when the head is there. For a
 * request without such a body: answers later, and only `free` is called. */
struct http_sink {
    /* False: the exchange has its answer, and the rest is not read. */
    bool (*add)(void *context, struct text bytes);
    /* The body is whole. The exchange has its answer now, or later: then
     * http_exchange_wake(). */
    void (*end)(void *context);
    void (*free)(void *context); /* also when the client goes */
    void *context;
};

struct http_exchange {
    /* the question; borrowed */
    const struct http_reader *request;
    struct http_target target;
    enum http_may may;
    const char *key;    /* the name of its submission key, or NULL */
    struct text client; /* its address, for the log */
    const struct net_address *peer;
    bool secure; /* TLS, or an https origin */
    /* the answer */
    unsigned status;
    const char *type; /* Content-Type; NULL: no body */
    struct buffer fields, body;
    struct http_stream stream;
    struct http_sink sink;
    bool may_be_kept; /* by the browser, which asks each time whether it changed */
    int64_t delay_ms; /* before it is sent */
    enum http_path path;
    void (*wake)(void *context); /* of the server */
    void *wake_context;
};

/* The stream has a piece again. */
void http_exchange_wake(struct http_exchange *exchange);

/* Calls read() for each parameter of the query, until it says why one is wrong; that, or
 * NULL. */
const char *http_exchange_parameters(
    const struct http_exchange *exchange,
    const char *(*read)(void *context, const struct http_parameter *parameter),
    void *context);
/* The body as JSON, the caller's; NULL: it is none. */
json_t *http_exchange_body(const struct http_exchange *exchange);
/* Accept, Accept-Encoding: the field names that value, and not with q=0. */
bool http_exchange_accepts(const struct http_exchange *exchange, struct text field,
                           struct text value);
/* {"ok": false, "error": why}; on HTTP_PATH_MAIL as http_answer_rule(). */
void http_answer_error(struct http_exchange *exchange, unsigned status,
                       const char *why);
/* {"error": {"field": field or null, "rule": rule, "message": why}} */
void http_answer_rule(struct http_exchange *exchange, unsigned status,
                      const char *field, const char *rule, const char *why);
/* Takes the object. One that is too large becomes an error. */
void http_answer_json(struct http_exchange *exchange, unsigned status, json_t *object);
/* The same of an object that is written; frees the text, which may be NULL. */
void http_answer_text(struct http_exchange *exchange, unsigned status, char *text);
/* One line of text. */
void http_answer_line(struct http_exchange *exchange, unsigned status,
                      const char *line);
/* A further field of the answer. */
void http_answer_field(struct http_exchange *exchange, const char *name,
                       const char *value);

/* An answer of lines of JSON, as they come. */
struct http_lines {
    struct http_exchange *exchange;
    struct buffer told; /* and not yet sent */
    bool ended;
};
void http_lines_begin(struct http_lines *lines, struct http_exchange *exchange);
/* Takes the object. One that does not fit is left out. */
void http_lines_add(struct http_lines *lines, json_t *object);
/* A stream's more(). */
enum progress http_lines_more(struct http_lines *lines, struct buffer *out);

/* The head of the answer, with the fields that every answer has. */
enum http_body { HTTP_BODY_WHOLE, HTTP_BODY_CHUNKED, HTTP_BODY_TO_END };
bool http_answer_head(const struct http_exchange *exchange, enum http_body body,
                      bool closes, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
