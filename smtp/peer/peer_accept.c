/* Connections of callers: from accept to goodbye.
 *
 * Anybody can connect, so connections that have not said XPEER are few, and one of them
 * makes room for the next: first those of unknown addresses, then those of siblings'
 * addresses, and never one that has proven to know the secret. */
#include "smtp/peer/peer_internal.h"

#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { MINUTE_MS = 60 * 1000 };

/* --- Addresses where siblings are ---------------------------------------------------- */

static struct peer_ip
peer_accept_ip(const struct net_address *address)
{
    struct net_address plain = *address;
    struct peer_ip ip = {.family = NET_NONE};
    net_address_unmap(&plain);
    if (plain.family != NET_IPV4 && plain.family != NET_IPV6)
        return ip;
    ip.family = plain.family;
    memcpy(ip.ip, plain.ip, plain.family == NET_IPV4 ? 4 : 16);
    return ip;
}

static bool
peer_accept_is_noted(const struct peer *p, const struct peer_ip *ip)
{
    for (size_t i = 0; i < PEER_KNOWN_MAX; i++)
        if (p->known[i].family == ip->family &&
            memcmp(p->known[i].ip, ip->ip, sizeof(ip->ip)) == 0)
            return true;
    return false;
}

void
peer_accept_note(struct peer *p, const struct net_address *address)
{
    struct peer_ip ip = peer_accept_ip(address);
    if (ip.family == NET_NONE || peer_accept_is_noted(p, &ip))
        return;
    p->known[p->known_next] = ip;
    p->known_next = (p->known_next + 1) % PEER_KNOWN_MAX;
}

static bool
peer_accept_knows(const struct peer *p, const struct net_address *address)
{
    struct peer_ip ip = peer_accept_ip(address);
    return (ip.family != NET_NONE && peer_accept_is_noted(p, &ip)) ||
           (p->setup.is_sibling != NULL &&
            p->setup.is_sibling(p->setup.context, address));
}

/* --- Ends --------------------------------------------------------------------------- */

/* How much of a caller is known: nothing, that siblings are where it is, that it knows the
 * secret. */
static int
peer_accept_worth(const struct peer_entry *e)
{
    return net_is_secured(e->connection) ? 2 : e->is_known;
}

/* Whether one more line on such callers is written. */
static bool
peer_accept_may_complain(struct peer *p, int worth)
{
    static const char *const of[PEER_WORTHS] = {
        "callers", "callers from where siblings are", "hosts that know the secret"};
    struct peer_complaints *c = &p->complaints[worth];
    int64_t now_ms = loop_monotonic_ms(p->setup.loop);
    if (now_ms - c->since_ms >= MINUTE_MS) {
        if (c->unsaid > 0)
            log_say(p->setup.log, LOG_LEVEL_INFO, "peer", NULL,
                    "%u more lines on %s were left out", c->unsaid, of[worth]);
        *c = (struct peer_complaints){.since_ms = now_ms};
    }
    bool may = c->lines < PEER_COMPLAINTS_MAX;
    c->lines += may;
    c->unsaid += !may;
    return may;
}

/* Anybody can cause such lines, so they are few. Those on siblings are apart: a scanner
 * does not hide that one has another secret. */
static void __attribute__((format(printf, 3, 4)))
peer_accept_complain(struct peer_entry *e, enum log_level level, const char *format,
                     ...)
{
    struct peer *p = e->peer;
    char ip[NET_ADDRESS_TEXT_MAX], why[PEER_WHY_MAX];
    va_list list;
    if (!peer_accept_may_complain(p, peer_accept_worth(e)))
        return;
    va_start(list, format);
    vsnprintf(why, sizeof(why), format, list);
    va_end(list);
    net_address_ip(net_peer(e->connection), ip);
    log_say(p->setup.log, level, "peer", NULL, "[%s]: %s", ip, why);
}

static void
peer_accept_leave(struct peer_entry *e)
{
    struct peer *p = e->peer;
    p->entering -= e->is_entering;
    p->entry_count--;
    DL_DELETE(p->entries, e);
    loop_timer_stop(p->setup.loop, &e->timer);
    loop_unpost(p->setup.loop, &e->task);
    peer_server_stop(&e->machine);
    loop_release(p->setup.loop, free, e);
}

static void
peer_accept_abort(struct peer_entry *e)
{
    net_abort(&e->connection);
    peer_accept_leave(e);
}

/* The last output of the machine is sent. */
static void
peer_accept_close(struct peer_entry *e)
{
    if (e->machine.out.length > 0)
        net_send(e->connection, buffer_text(&e->machine.out));
    net_close(&e->connection);
    peer_accept_leave(e);
}

void
peer_accept_end_all(struct peer *p, const char *why)
{
    struct peer_entry *e, *next;
    DL_FOREACH_SAFE (p->entries, e, next) {
        if (e->is_entering) {
            peer_accept_abort(e);
        } else {
            peer_server_close(&e->machine, "4.3.2", why);
            peer_accept_close(e);
        }
    }
}

void
peer_accept_reload(struct peer *p)
{
    struct peer_entry *e;
    DL_FOREACH (p->entries, e)
        e->machine.content_max = p->content_max;
}

/* --- Entry ---------------------------------------------------------------------------- */

/* A host keeps to its limit, so a connection beyond it is one that it has given up. */
static void
peer_accept_trim(struct peer *p, const struct peer_entry *newest)
{
    struct peer_entry *e, *oldest = NULL;
    unsigned count = 0;
    DL_FOREACH (p->entries, e) {
        if (e->is_entering ||
            strcmp(e->machine.caller.host, newest->machine.caller.host) != 0)
            continue;
        if (oldest == NULL)
            oldest = e;
        count++;
    }
    if (count <= PEER_CONNECTIONS_MAX)
        return;
    peer_server_close(&oldest->machine, "4.7.0", "too many connections of this host");
    peer_accept_close(oldest);
}

/* Each of two hosts with one name would end the connections of the other one, and without
 * Redis nobody else sees them both. */
static bool
peer_accept_has_namesake(const struct peer *p, const struct sibling_hello *host)
{
    const struct peer_entry *e;
    DL_FOREACH (p->entries, e)
        if (!e->is_entering && strcmp(e->machine.caller.host, host->host) == 0 &&
            strcmp(e->machine.caller.spool, host->spool) != 0)
            return true;
    return false;
}

static void
peer_accept_named(struct peer_entry *e)
{
    struct peer *p = e->peer;
    const struct sibling_hello *caller = &e->machine.caller;
    char ip[NET_ADDRESS_TEXT_MAX];
    /* The oldest of a host is the one that was named first: never this one, which is in
     * the middle of its event. */
    DL_DELETE(p->entries, e);
    DL_APPEND(p->entries, e);
    e->is_entering = false;
    p->entering--;
    p->counts.named++;
    peer_accept_note(p, net_peer(e->connection));
    net_address_ip(net_peer(e->connection), ip);
    log_say(p->setup.log, LOG_LEVEL_DEBUG, "peer", NULL,
            "%s [%s] is here: petrel %s, %s", caller->host, ip, caller->version,
            caller->state);
    if (peer_accept_has_namesake(p, caller))
        peer_accept_complain(e, LOG_LEVEL_WARNING,
                             "two hosts are called %s: each needs its own cluster_host",
                             caller->host);
    peer_accept_trim(p, e);
}

/* Sends the output of the machine; false: that was the end. */
static bool
peer_accept_flush(struct peer_entry *e)
{
    struct peer_server *s = &e->machine;
    if (s->stage == PEER_OVER) {
        if (e->is_entering)
            peer_accept_complain(e, LOG_LEVEL_INFO, "has not come in");
        peer_accept_close(e);
        return false;
    }
    net_send(e->connection, buffer_text(&s->out));
    buffer_clear(&s->out);
    s->is_crowded = net_unsent(e->connection) >= NET_HIGH_WATER;
    return true;
}

static void
peer_accept_go(struct peer_entry *e)
{
    struct text input = net_input(e->connection);
    size_t before = input.length;
    e->is_running = true;
    peer_server_go(&e->machine, &input);
    e->is_running = false;
    net_consume(e->connection, before - input.length);
    if (e->is_entering && (e->machine.stage & (PEER_NEW | PEER_OVER)) == 0 &&
        e->machine.caller.host[0] != '\0')
        peer_accept_named(e);
    /* A caller that goes has no use for the answer: to hear of that, its input is read
     * meanwhile, as far as a connection keeps it. */
    if (peer_accept_flush(e))
        net_want_input(e->connection, peer_server_wants(&e->machine) ||
                                          e->machine.stage == PEER_ASKING);
}

static void
peer_accept_on_task(void *context)
{
    peer_accept_go(context);
}

/* A reply goes out in this turn; the next step of the machine is for a later one. */
static void
peer_accept_wake(void *context)
{
    struct peer_entry *e = context;
    loop_post(e->peer->setup.loop, &e->task, peer_accept_on_task, e);
    if (!e->is_running && e->machine.stage != PEER_OVER) {
        net_send(e->connection, buffer_text(&e->machine.out));
        buffer_clear(&e->machine.out);
        e->machine.is_crowded = net_unsent(e->connection) >= NET_HIGH_WATER;
    }
}

static void
peer_accept_on_timer(void *context)
{
    struct peer_entry *e = context;
    struct peer *p = e->peer;
    int64_t now_ms = loop_monotonic_ms(p->setup.loop);
    int64_t from_ms = e->is_entering ? e->since_ms : e->heard_ms;
    /* Input that we do not read is no silence; net_set_timeout() is for that. */
    if (!e->is_entering && !peer_server_wants(&e->machine))
        from_ms = now_ms;
    if (now_ms - from_ms < PEER_SILENCE_MS) {
        loop_timer_start(p->setup.loop, &e->timer, PEER_SILENCE_MS - (now_ms - from_ms),
                         peer_accept_on_timer, e);
        return;
    }
    if (e->is_entering)
        peer_accept_complain(e, LOG_LEVEL_INFO, "has not said who it is in time");
    else
        peer_accept_complain(e, LOG_LEVEL_INFO, "%s is silent", e->machine.caller.host);
    peer_accept_abort(e);
}

static void
peer_accept_break(struct peer_entry *e, enum log_level level, const char *why)
{
    peer_accept_complain(e, level, "%s%s%s",
                         e->is_entering ? "" : e->machine.caller.host,
                         e->is_entering ? "" : ": ", why);
    peer_accept_abort(e);
}

static void
peer_accept_on_event(void *context, enum net_event event)
{
    struct peer_entry *e = context;
    switch (event) {
    case NET_CONNECTED:
    case NET_SECURED:
        break;
    case NET_INPUT:
        e->heard_ms = loop_monotonic_ms(e->peer->setup.loop);
        peer_accept_go(e);
        break;
    case NET_DRAINED:
        e->machine.is_crowded = false;
        peer_accept_go(e);
        break;
    case NET_ENDED:
        if (e->is_entering)
            peer_accept_complain(e, LOG_LEVEL_INFO, "has gone again");
        peer_accept_abort(e);
        break;
    case NET_TIMED_OUT:
        peer_accept_break(e, LOG_LEVEL_INFO, "no answer in time");
        break;
    case NET_FAILED:
        peer_accept_break(e, e->is_entering ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                          net_error(e->connection));
        break;
    }
}

/* --- Crowds --------------------------------------------------------------------------- */

/* The oldest of the least worth, if it has had time enough; in a flood, where none has, any:
 * so that some come through. */
static struct peer_entry *
peer_accept_least(struct peer *p, int *worth)
{
    struct peer_entry *e, *oldest = NULL, *any = NULL;
    uint64_t count = 0;
    *worth = INT_MAX;
    DL_FOREACH (p->entries, e) {
        int its = e->is_entering ? peer_accept_worth(e) : INT_MAX;
        if (its < *worth) {
            oldest = e;
            *worth = its;
            count = 0;
        }
        if (e->is_entering && its == *worth &&
            loop_random(p->setup.loop) % ++count == 0)
            any = e;
    }
    assert(oldest != NULL && any != NULL); /* p->entering is not 0 */
    return loop_monotonic_ms(p->setup.loop) - oldest->since_ms >= PEER_ENTER_MS ? oldest
                                                                                : any;
}

/* False: the newcomer is the one for whom there is no room. */
static bool
peer_accept_make_room(struct peer *p, bool is_known)
{
    int worth;
    if (p->entering < PEER_HANDSHAKES_MAX)
        return true;
    struct peer_entry *least = peer_accept_least(p, &worth);
    if (worth > (int)is_known)
        return false;
    p->counts.pushed_out++;
    peer_accept_abort(least);
    return true;
}

void
peer_accept(void *context, struct net_connection *connection)
{
    struct peer *p = context;
    bool is_known = peer_accept_knows(p, net_peer(connection));
    const struct net_tls tls = {.server = p->tls_server};
    p->counts.accepted++;
    if (p->tls_server == NULL || p->entry_count >= PEER_ENTRIES_MAX ||
        !peer_accept_make_room(p, is_known)) {
        p->counts.turned_away++;
        net_abort(&connection);
        return;
    }
    struct peer_entry *e = memory_new(sizeof(*e));
    e->peer = p;
    e->connection = connection;
    e->since_ms = e->heard_ms = loop_monotonic_ms(p->setup.loop);
    e->is_entering = true;
    e->is_known = is_known;
    e->machine.service = p->setup.service;
    e->machine.content_max = p->content_max;
    e->machine.wake = peer_accept_wake;
    e->machine.context = e;
    peer_server_start(&e->machine);
    DL_APPEND(p->entries, e);
    p->entry_count++;
    p->entering++;
    net_attach(connection, peer_accept_on_event, e);
    /* For a caller that does not read; peer_accept_on_timer() ends a silent one. */
    net_set_timeout(connection, PEER_SILENCE_MS + PEER_NOOP_MS);
    net_start_tls(connection, &tls);
    loop_timer_start(p->setup.loop, &e->timer, PEER_SILENCE_MS, peer_accept_on_timer,
                     e);
}
