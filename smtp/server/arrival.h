/* A connection before its session: a proxy's header is read, and silence is kept before
 * the greeting.
 *
 * A client whom nobody has named yet is answered nothing: what is wrong with a header
 * is one line in the log, and the connection is cut. */
#ifndef SMTP_ARRIVAL_H
#define SMTP_ARRIVAL_H

#include "base/loop.h"
#include "smtp/server/session.h"

enum { ARRIVAL_HEADER_MS = 5000 }; /* from accepting to the header's last byte */

struct arrival;

/* What those of a listener share. */
struct arrival_host {
    struct loop *loop;
    struct log *log;
    struct refusals *refusals; /* limits lines about them; NULL: all are written */
    struct arrival *arrivals;
    size_t unnamed; /* those that wait for a header: the owner's to limit */
    /* The header is read: net_peer() is the client now. The owner starts a session,
     * waits, or closes. */
    void (*on_named)(void *context, struct net_connection *connection,
                     const struct session_manner *manner);
    /* The wait is over; refusal unless NULL says what it is to be greeted with. */
    void (*on_ready)(void *context, struct net_connection *connection,
                     const struct session_manner *manner,
                     const struct refusal *refusal);
    /* It went away during the wait. */
    void (*on_gone)(void *context, const struct net_address *client);
    void *context;
};

/* Takes the connection of a proxy that may say who its client is. */
void arrival_read_header(struct arrival_host *host, struct net_connection *connection,
                         const struct session_manner *manner);
/* Takes a connection and says nothing for delay_ms: whom that does not hold back from
 * speaking gets 554. */
void arrival_wait(struct arrival_host *host, struct net_connection *connection,
                  const struct session_manner *manner, int64_t delay_ms);
/* Those that wait for their greeting get 421 4.3.2 instead, those without a name are
 * cut off. */
void arrival_drain(struct arrival_host *host);
/* Cuts all off and tells nobody. */
void arrival_stop(struct arrival_host *host);

#endif
