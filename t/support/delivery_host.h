/* A mail host for tests: a listener on the loop that answers commands by a table. */
#ifndef T_SUPPORT_DELIVERY_HOST_H
#define T_SUPPORT_DELIVERY_HOST_H

#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "t/support/port.h"
#include "t/support/tap.h"

enum { HOST_RULES = 12, HOST_BYTES_MAX = 64 * 1024 * 1024, HOST_LINKS = 8 };

/* The first row whose start fits answers; NULL as reply closes the connection, "" says
 * nothing. Rows may hold only for connections before or from a number on. */
struct host_rule {
    const char *start, *reply;
    unsigned from, until; /* connections, counted from 1; until 0 = for ever */
};

struct host_link {
    struct host *host;
    struct net_connection *connection;
    unsigned number, rcpts; /* accepted in this transaction */
    bool in_data, ended;
    bool secure; /* STARTTLS was answered in this turn */
    bool broken; /* as tls_breaks has it */
};

struct host {
    struct net_listener *listener;
    const struct host_rule *rules; /* ends with start NULL; then come the presets */
    const char *greeting;          /* NULL: closes at once */
    struct host_link links[HOST_LINKS];
    struct tls_server *tls; /* 220 to STARTTLS starts it, or the connection itself: */
    bool tls_implicit;
    bool tls_breaks; /* hangs up when the handshake begins */
    unsigned connections, open;
    struct buffer commands;  /* heard, LF ended */
    struct buffer content;   /* of all messages, with dots */
    struct net_address from; /* of the last connection */
    bool deaf;               /* reads no content */
    unsigned rcpt_max;       /* recipients in a transaction; 0 = no limit; beyond it: */
    const char *rcpt_beyond;
    int kept;                   /* port_keep() */
    unsigned dots, quiet_after; /* so many dots are answered, then it is... */
    bool quiet;                 /* ...and says nothing; quiet_after 0 = never */
};

void host_must(bool good);

void host_hang_up(struct host_link *l);

/* address: "127.0.0.2:0", "unix:/path". Its port comes back. */
uint16_t fake_host_start(struct host *h, struct net *net, const char *address,
                         uint16_t port);

/* Nobody listens there any more, and nobody else may begin to. */
void host_shut(struct host *h);

void fake_host_stop(struct host *h);

/* The address that its last connection came from, until the next call. */
const char *host_came_from(const struct host *h);

#endif
