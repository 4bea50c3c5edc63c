/* A connection before its session: reads the header of a proxy and delays the greeting.
 *
 * A connection with an invalid header gets no reply, because its client is unknown: the
 * error is logged and the connection is cut off. */
#ifndef SMTP_SESSION_PREGREET_H
#define SMTP_SESSION_PREGREET_H

#include "base/loop/loop.h"
#include "smtp/session/session.h"

enum { PREGREET_HEADER_MS = 5000 }; /* from accepting to the header's last byte */

struct pregreet;

/* The state shared by all connections of a listener. */
struct pregreet_host {
    struct loop *loop;
    struct log *log;
    struct refusals *refusals; /* limits their log lines; NULL: no limit */
    struct pregreet *arrivals;
    uint64_t cut_off; /* connections that did not say a valid header */
    size_t unnamed;   /* connections that wait for a header; the owner limits them */
    /* The header is read: net_peer() is the client now. The owner starts a session,
     * waits, or closes. */
    void (*on_named)(void *context, struct net_connection *connection,
                     const struct session_options *options);
    /* The delay is over; refusal, unless NULL, replaces the greeting. */
    void (*on_ready)(void *context, struct net_connection *connection,
                     const struct session_options *options,
                     const struct refusal *refusal);
    /* The client disconnected during the delay. */
    void (*on_gone)(void *context, const struct net_address *client);
    void *context;
};

/* Takes the connection of a proxy that may name its client. */
void pregreet_read_header(struct pregreet_host *host, struct net_connection *connection,
                          const struct session_options *options);
/* Takes a connection and delays the greeting by delay_ms: a client that sends before the
 * greeting gets 554. */
void pregreet_wait(struct pregreet_host *host, struct net_connection *connection,
                   const struct session_options *options, int64_t delay_ms);
/* Connections in the delay get 421 4.3.2, those that wait for a header are cut off. */
void pregreet_drain(struct pregreet_host *host);
/* Cuts all connections off without callbacks. */
void pregreet_stop(struct pregreet_host *host);

#endif
