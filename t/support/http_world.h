/* HTTP servers in the same process for tests of base/http/http_call.h: what they do with
 * a request is the test's choice. Link t/sim/dns.c. */
#ifndef T_SUPPORT_HTTP_WORLD_H
#define T_SUPPORT_HTTP_WORLD_H

#include "base/http/http_call.h"

#include "t/sim/sim_dns.h"
#include "t/support/tls_world.h"

#define HTTP_WORLD_HEAD "HTTP/1.1 200 OK\r\n"
enum { PEERS_MAX = 128 };

/* The server's treatment of a connection. */
enum manner {
    ANSWERS,   /* sends `response`, closes */
    ANSWERS_AND_ABORTS, /* no close_notify */
    ANSWERS_AND_STAYS,
    SILENT, /* takes the request */
    CLOSES  /* with the request */
};

struct peer {
    struct calls *calls;
    struct net_connection *connection;
    bool answered;
};

struct calls {
    struct world *world;
    struct dns *dns;
    struct secrets *secrets;
    struct tls_server *server; /* NULL: cleartext */
    struct tls_client *client;
    struct http_caller *caller;
    bool takes_all; /* a request may be larger than the input of a connection */
    bool shakes; /* the server does its part of the handshake */
    enum manner manner;
    const char *response;
    struct peer peers[PEERS_MAX];
    int accepted, requests;
    struct buffer got; /* the last request */
    unsigned port;
};

/* The server has the certificate of that name; "": none, cleartext. anchors NULL: the
 * client has none. */
struct calls *calls_start(struct secrets *secrets, const char *certificate,
                          const char *anchors);
void calls_finish(struct calls *c);
/* A net_accepted(); context is the struct calls. */
void calls_accepted(void *context, struct net_connection *connection);

#endif
