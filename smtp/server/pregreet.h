/* A connection before its session: a proxy's header is read, and silence is kept before
 * the greeting.
 *
 * A client whom nobody has named yet is answered nothing: what is wrong with a header
 * is one line in the log, and the connection is cut. */
#ifndef SMTP_SERVER_PREGREET_H
#define SMTP_SERVER_PREGREET_H

#include "base/loop/loop.h"
#include "smtp/server/session.h"

enum { PREGREET_HEADER_MS = 5000 }; /* from accepting to the header's last byte */

struct pregreet;

/* What those of a listener share. */
struct pregreet_host {
    struct loop *loop;
    struct log *log;
    struct refusals *refusals; /* limits lines about them; NULL: all are written */
    struct pregreet *arrivals;
    size_t unnamed; /* those that wait for a header: the owner's to limit */
    /* The header is read: net_peer() is the client now. The owner starts a session,
     * waits, or closes. */
    void (*on_named)(void *context, struct net_connection *connection,
                     const struct session_options *options);
    /* The wait is over; refusal unless NULL says what it is to be greeted with. */
    void (*on_ready)(void *context, struct net_connection *connection,
                     const struct session_options *options,
                     const struct refusal *refusal);
    /* It went away during the wait. */
    void (*on_gone)(void *context, const struct net_address *client);
    void *context;
};

/* Takes the connection of a proxy that may say who its client is. */
void pregreet_read_header(struct pregreet_host *host, struct net_connection *connection,
                          const struct session_options *options);
/* Takes a connection and says nothing for delay_ms: whom that does not hold back from
 * speaking gets 554. */
void pregreet_wait(struct pregreet_host *host, struct net_connection *connection,
                   const struct session_options *options, int64_t delay_ms);
/* Those that wait for their greeting get 421 4.3.2 instead, those without a name are
 * cut off. */
void pregreet_drain(struct pregreet_host *host);
/* Cuts all off and tells nobody. */
void pregreet_stop(struct pregreet_host *host);

#endif
