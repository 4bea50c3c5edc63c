/* The HTTP server: for health checks, metrics and operators. The front door of
 * admin/http/.
 *
 * Nothing listens unless `http` is set. Mail comes first: connections, their unread
 * bytes, the time a request takes and the work in a turn have limits. A connection
 * serves one request at a time; an early one waits. */
#ifndef ADMIN_HTTP_HTTP_SERVER_H
#define ADMIN_HTTP_HTTP_SERVER_H

#include "admin/http/http_access.h"
#include "admin/http/http_exchange.h"
#include "admin/http/http_keys.h"
#include "base/net/net.h"

struct event_hub;
struct log;
struct loop;
struct http_server;

enum {
    HTTP_CONNECTIONS_MAX = 32, /* then the oldest one without a request ends */
    HTTP_SPARE_MAX = 8, /* beyond, for health and for connections that are adopted */
    HTTP_CLIENT_CONNECTIONS_MAX = 8, /* of one address beyond loopback */
    HTTP_CONNECTION_REQUESTS_MAX = 100,
    HTTP_REQUEST_BODY_MAX = 32 * 1024,
    HTTP_REQUEST_HEAD_MAX = 8 * 1024,
    HTTP_HEAD_MS = 10 * 1000, /* from its first octet, or from the connection on */
    HTTP_BODY_MS = 10 * 1000, /* streaming: for each HTTP_BODY_LEAST */
    HTTP_BODY_LEAST = 64 * 1024,
    HTTP_IDLE_MS = 30 * 1000,   /* between requests */
    HTTP_UNREAD_MS = 30 * 1000, /* for a client that takes nothing */
    HTTP_TURNED_A_SECOND = 20,  /* clients that hear 503; the others hear nothing */
    HTTP_TURN_US = 2000,        /* of a turn, for all connections */
    HTTP_DENIED_MS = 1000       /* before a wrong key or token is refused */
};

struct http_server_settings {
    const struct http_places *places;
    struct http_names names;       /* copied */
    struct text token, read_token; /* copied as digests */
    struct event_hub *events;      /* denied keys and tokens; NULL: nobody reads them */
    struct tls_server *(*tls)(void *context); /* for places with TLS; NULL: none now */
    void *tls_context;
    /* POST to stream_path streams, of that many octets; NULL: none. */
    const char *stream_path;
    size_t stream_max;
    /* The name of the submission key with that token; NULL: none. For messages alone. */
    const char *(*key)(void *context, struct text token);
    /* Fills the answer, or sets a sink. The path is known, and access was judged by
     * http_access.h. */
    void (*route)(void *context, struct http_exchange *exchange);
    void *context;
};

/* Binds every place; NULL with one line in error. */
struct http_server *http_server_new(struct loop *loop, struct net *net, struct log *log,
                                    const struct http_server_settings *settings,
                                    char *error, size_t error_size);
/* Names and tokens. Places are not rebound. */
void http_server_reload(struct http_server *server,
                        const struct http_server_settings *settings);
void http_server_free(struct http_server **server);

/* Takes over a connection that another module has accepted; its input since then is
 * HTTP. NULL, or one sentence: there are too many. */
const char *http_server_adopt(struct http_server *server,
                              struct net_connection *connection);
/* NULL: there are no more. Its address is complete. */
const struct http_place *http_server_place(const struct http_server *server,
                                           size_t index);

struct http_keys *http_server_keys(struct http_server *server);

struct http_server_counts {
    uint64_t requests[HTTP_PATHS][6]; /* by the hundreds of the status */
    size_t connections;
};
const struct http_server_counts *http_server_counts(const struct http_server *server);
/* Its connections. */
struct net_listener_counts http_server_place_counts(const struct http_server *server,
                                                    size_t index);
/* The address of a place, which the system may have completed. */
const struct net_address *http_server_address(const struct http_server *server,
                                              size_t index);

#endif
