/* The TLS of sessions: begins handshakes and limits their number.
 *
 * A TLS session is a place of some 40 KB of memory, taken at the first bytes of the
 * ClientHello. When no place is free, the oldest incomplete handshake of an untrusted
 * client is ended, or else an idle session. A client with its full share ends only its
 * own handshakes: with many connections it cannot displace other clients. */
#include "smtp/session/session_internal.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "smtp/access/lockout.h"
#include "smtp/access/refusals.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The key of lockouts: all addresses of an IPv6 /64 are one client, as in
 * client_usage.h, which counts the share. */
static bool
is_same_client(const struct server_session *a, const struct server_session *b)
{
    struct lockout_key one = lockout_key(&a->peer, a->server.uid),
                       other = lockout_key(&b->peer, b->server.uid);
    return memcmp(&one, &other, sizeof(one)) == 0;
}

/* NULL: none. */
static struct server_session *
oldest_of_client(const struct server_session *s)
{
    struct server_session *other;
    for (other = s->host->shaking; other != NULL; other = other->shaking_next)
        if (is_same_client(other, s))
            return other;
    return NULL;
}

/* NULL: none. The list is in the order in which the handshakes began. */
static struct server_session *
oldest_untrusted(const struct session_host *host)
{
    struct server_session *s;
    for (s = host->shaking; s != NULL; s = s->shaking_next)
        if (!session_is_trusted(s))
            return s;
    return NULL;
}

/* A client with many handshakes competes with itself, not with others. */
static bool
has_its_share(const struct server_session *s)
{
    size_t limit = s->host->rules->tls_session_limit,
           share = (limit + SESSION_TLS_SHARE - 1) / SESSION_TLS_SHARE;
    return s->host->clients != NULL && !s->server.offer.may_relay &&
           client_usage_tls(s->host->clients, &s->peer) >= share;
}

/* False: the handshake may begin now. True: *other must end first; NULL: no session
 * can. A client with its full share gives its own oldest handshake. Otherwise the
 * oldest handshake of an untrusted client ends, and an established session only without
 * one. */
static bool
lacks_place(const struct server_session *s, struct server_session **other)
{
    struct session_host *host = s->host;
    size_t limit = host->rules->tls_session_limit;
    *other = NULL;
    if (limit == 0)
        return false;
    if (has_its_share(s)) {
        *other = oldest_of_client(s);
        return true;
    }
    if (host->tls_count < limit)
        return false;
    *other = oldest_untrusted(host);
    /* The newcomer is not counted until its handshake begins: + 1. */
    if (*other == NULL && host->clients != NULL) {
        size_t own = client_usage_tls(host->clients, &s->peer) + 1;
        *other = session_find_idle(host, true, session_is_trusted(s) ? 0 : own);
    }
    return true;
}

bool
session_tls_is_full(const struct server_session *s)
{
    struct server_session *other;
    return lacks_place(s, &other) && other == NULL;
}

static void
session_tls_cut_off(struct server_session *s, const char *why)
{
    if (refusals_admit(s->host->refusals, s->server.client))
        log_say(s->host->log, LOG_LEVEL_INFO, "smtpd", NULL, "%s: TLS: %s",
                s->server.client, why);
    session_hang_up(s, false);
    session_end(s);
}

static void
await_hello(struct server_session *s)
{
    assert(s->rules->tls != NULL && s->handshake == SESSION_NO_HANDSHAKE);
    s->handshake = SESSION_AWAITS_HELLO;
    s->handshake_ms = loop_monotonic_ms(s->host->loop);
    session_set_timeout(s);
}

/* Input in cleartext behind STARTTLS is dropped: an attacker may have put it there (RFC
 * 3207 §6). */
void
session_await_hello(struct server_session *s)
{
    net_consume(s->connection, net_input(s->connection).length);
    buffer_clear(&s->normalized);
    s->newlines.after_cr = false;
    await_hello(s);
}

/* The greeting waits for the handshake, which begins with the client. */
void
session_await_first_hello(struct server_session *s)
{
    s->greeting = text_string(buffer_text(&s->host->out));
    buffer_clear(&s->host->out);
    await_hello(s);
}

/* The time-out is one for the whole handshake, so a byte now and then does not prolong
 * it. */
int64_t
session_handshake_left_ms(const struct server_session *s)
{
    int64_t passed_ms = loop_monotonic_ms(s->host->loop) - s->handshake_ms;
    int64_t left_ms = session_hurry_ms(s, s->rules->handshake_timeout_ms) - passed_ms;
    return left_ms > 0 ? left_ms : 1;
}

/* The place is taken with the first byte of the client, not with 220: silent clients
 * cost none. */
static void
session_tls_begin(struct server_session *s)
{
    struct session_host *host = s->host;
    struct net_tls tls = {.server = s->rules->tls,
                          .protocol = s->options.legacy ? TLS_OLD_MAIL : TLS_MAIL,
                          .begun = true};
    struct server_session *other;
    /* Ends, because each turn ends a session or returns. */
    while (lacks_place(s, &other)) {
        if (other == NULL) {
            session_tls_cut_off(s, "too many TLS sessions");
            return;
        }
        if (other->handshake == SESSION_SHAKES)
            session_tls_cut_off(other, "handshake took too long while others wait");
        else
            session_give_way(other);
    }
    s->handshake = SESSION_SHAKES;
    DL_APPEND2(host->shaking, s, shaking_prev, shaking_next);
    session_leave_row(s);
    s->tls = true;
    session_enter_row(s);
    host->tls_count++;
    if (host->clients != NULL)
        client_usage_secured(host->clients, &s->peer, true);
    net_start_tls(s->connection, &tls);
    if (s->greeting != NULL)
        net_send(s->connection, text_from(s->greeting));
    free(s->greeting);
    s->greeting = NULL;
    session_set_timeout(s);
}

void
session_await_event(struct server_session *s, enum net_event event)
{
    assert(s->handshake == SESSION_AWAITS_HELLO);
    switch (event) {
    case NET_INPUT:
        session_tls_begin(s);
        break;
    case NET_TIMED_OUT:
        session_time_out(s);
        break;
    case NET_ENDED:
    case NET_FAILED:
        session_hang_up(s, false);
        session_end(s);
        break;
    case NET_CONNECTED:
    case NET_DRAINED:
    case NET_SECURED:
        break;
    }
}

void
session_end_handshake(struct server_session *s)
{
    if (s->handshake == SESSION_SHAKES)
        DL_DELETE2(s->host->shaking, s, shaking_prev, shaking_next);
    s->handshake = SESSION_NO_HANDSHAKE;
}

void
session_leave_tls(struct server_session *s)
{
    struct session_host *host = s->host;
    session_end_handshake(s);
    if (!s->tls)
        return;
    session_leave_row(s);
    s->tls = false;
    session_enter_row(s);
    host->tls_count--;
    if (host->clients != NULL)
        client_usage_secured(host->clients, &s->peer, false);
}
