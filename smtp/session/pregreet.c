/* Reads the header of a proxy; delays the greeting and detects early talkers.
 *
 * A connection that waits for its header is `unnamed`: it has one timer from the accept
 * on, which bytes do not extend, and counts for no client. After the header the owner
 * counts it for the client, and may bring it back for the delay of the greeting. */
#include "smtp/session/pregreet.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "smtp/session/proxy.h"
#include "smtp/access/refusals.h"
#include "smtp/reply.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

struct pregreet {
    struct pregreet_host *host;
    struct net_connection *connection;
    struct session_options options;
    struct loop_timer timer;
    bool unnamed;
    struct pregreet *prev, *next;
};

static const struct refusal early = {554, "5.5.1",
                                     "client sent data before the greeting, closing"};
static const struct refusal leaving = {421, "4.3.2", "shutting down, try again later"};

/* The connection is handed over or closed. The end comes before the callback of the
 * owner, which may begin a delay for the same connection. */
static void
pregreet_end(struct pregreet *a)
{
    struct pregreet_host *host = a->host;
    loop_timer_stop(host->loop, &a->timer);
    DL_DELETE(host->arrivals, a);
    host->unnamed -= a->unnamed;
    loop_release(host->loop, free, a);
}

static struct net_connection *
take_connection(struct pregreet *a)
{
    struct net_connection *connection = a->connection;
    a->connection = NULL;
    pregreet_end(a);
    return connection;
}

static void
pregreet_cut_off(struct pregreet *a, const char *why)
{
    char ip[NET_ADDRESS_TEXT_MAX], proxy[sizeof(ip) + 2];
    net_address_ip(net_peer(a->connection), ip);
    snprintf(proxy, sizeof(proxy), "[%s]", ip);
    if (refusals_admit(a->host->refusals, proxy))
        log_say(a->host->log, LOG_LEVEL_INFO, "smtpd", NULL,
                "cut off: client=%s: proxy protocol: %s", proxy, why);
    a->host->cut_off++;
    net_abort(&a->connection);
    pregreet_end(a);
}

/* The header came from a trusted proxy. From here on the connection is the client's
 * own: its address counts, limits and permits. */
static void
be_named(struct pregreet *a, const struct proxy_header *header)
{
    struct pregreet_host *host = a->host;
    struct session_options options = a->options;
    /* With LOCAL, a check by the proxy, the client is the proxy itself. */
    if (header->kind == PROXY_CLIENT)
        net_set_peer(a->connection, &header->client);
    /* A client without an address is not trusted. */
    options.stranger = header->kind == PROXY_UNNAMED;
    options.proxy = false; /* a second header is a bad command */
    host->on_named(host->context, take_connection(a), &options);
}

static void
pregreet_read_proxy_header(struct pregreet *a)
{
    struct proxy_header header;
    struct text input = net_input(a->connection), rest = input;
    switch (proxy_parse(&rest, &header)) {
    case PROGRESS_MORE:
        break;
    case PROGRESS_BAD:
        pregreet_cut_off(a, "no valid header");
        break;
    case PROGRESS_DONE:
        net_consume(a->connection, input.length - rest.length);
        be_named(a, &header);
        break;
    }
}

static void
be_ready(struct pregreet *a, const struct refusal *refusal)
{
    struct pregreet_host *host = a->host;
    struct session_options options = a->options;
    host->on_ready(host->context, take_connection(a), &options, refusal);
}

/* Sends no reply: the client has gone, or is a proxy. Only a connection in the delay is
 * counted for its client, so only this one is reported. */
static void
lose(struct pregreet *a)
{
    struct pregreet_host *host = a->host;
    struct net_address client = *net_peer(a->connection);
    bool unnamed = a->unnamed;
    if (unnamed) {
        pregreet_cut_off(a, "connection closed before the header");
        return;
    }
    net_abort(&a->connection);
    pregreet_end(a);
    host->on_gone(host->context, &client);
}

/* A client that sends before the greeting does not wait for replies, as spam programs
 * do not. A mail client waits for the greeting (RFC 5321 §4.3.1). */
static void
pregreet_on_event(void *context, enum net_event event)
{
    struct pregreet *a = context;
    switch (event) {
    case NET_INPUT:
        if (a->unnamed)
            pregreet_read_proxy_header(a);
        else
            be_ready(a, &early);
        break;
    case NET_ENDED:
    case NET_FAILED:
        lose(a);
        break;
    case NET_CONNECTED:
    case NET_SECURED:
    case NET_DRAINED:
    case NET_TIMED_OUT: /* no time-out is set */
        break;
    }
}

static void
pregreet_on_timer(void *context)
{
    struct pregreet *a = context;
    if (a->unnamed)
        pregreet_cut_off(a, "no header in time");
    else
        be_ready(a, NULL);
}

static void
pregreet_start(struct pregreet_host *host, struct net_connection *connection,
               const struct session_options *options, bool unnamed, int64_t delay_ms)
{
    struct pregreet *a = memory_new(sizeof(*a));
    a->host = host;
    a->connection = connection;
    a->options = *options;
    a->unnamed = unnamed;
    host->unnamed += unnamed;
    DL_APPEND(host->arrivals, a);
    loop_timer_start(host->loop, &a->timer, delay_ms, pregreet_on_timer, a);
    net_attach(connection, pregreet_on_event, a);
}

void
pregreet_read_header(struct pregreet_host *host, struct net_connection *connection,
                     const struct session_options *options)
{
    assert(options->proxy);
    pregreet_start(host, connection, options, true, PREGREET_HEADER_MS);
}

void
pregreet_wait(struct pregreet_host *host, struct net_connection *connection,
              const struct session_options *options, int64_t delay_ms)
{
    assert(!options->proxy && delay_ms > 0);
    pregreet_start(host, connection, options, false, delay_ms);
    /* Bytes after a PROXY header count as input, too. */
    net_want_input(connection, false);
    net_want_input(connection, true);
}

void
pregreet_drain(struct pregreet_host *host)
{
    for (struct pregreet *a = host->arrivals, *next; a != NULL; a = next) {
        next = a->next;
        if (a->unnamed)
            pregreet_cut_off(a, "shutting down");
        else
            be_ready(a, &leaving);
    }
}

void
pregreet_stop(struct pregreet_host *host)
{
    while (host->arrivals != NULL) {
        struct pregreet *a = host->arrivals;
        net_abort(&a->connection);
        pregreet_end(a);
    }
}
