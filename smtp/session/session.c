/* Feeds a server machine from a connection and performs its actions.
 *
 * Input and answers lead to session_pump(), which steps the machine until it needs more
 * input, an answer that comes later (of the queue or a password check), or a client
 * that reads its replies. A commit keeps a pointer to the session: while `storing` is
 * set the session may lose its connection, but is not freed. */
#include "smtp/session/session.h"

#include "base/event/event.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/spool/guard.h"
#include "sched/route/peers.h"
#include "smtp/access/lockout.h"
#include "smtp/access/refusals.h"
#include "smtp/access/users.h"
#include "smtp/redirect.h"
#include "smtp/reply.h"
#include "smtp/session/session_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* --- Counts ----------------------------------------------------------------------- */

const double session_accept_bounds_s[SESSION_ACCEPT_BOUNDS] = {0.001, 0.005, 0.025, 0.1,
                                                               0.5,   2.5,   10,    60};

const char *
session_refused_word(enum session_refused reason)
{
    static const char *const words[SESSION_REFUSED_REASONS] = {
        [SESSION_REFUSED_SESSIONS] = "sessions",
        [SESSION_REFUSED_CLIENT_SESSIONS] = "client_sessions",
        [SESSION_REFUSED_RATE] = "rate",
        [SESSION_REFUSED_LOCKOUT] = "lockout",
        [SESSION_REFUSED_PROXY] = "proxy",
        [SESSION_REFUSED_DRAINING] = "draining",
        [SESSION_REFUSED_DESCRIPTORS] = "descriptors",
        [SESSION_REFUSED_OTHER] = "other"};
    return words[reason];
}

/* By the reply to the client. */
static enum session_refused
session_refused_reason(const struct refusal *r)
{
    static const struct {
        const char *begins;
        enum session_refused reason;
    } rows[] = {
        {"too many connections from your", SESSION_REFUSED_CLIENT_SESSIONS},
        {"too many connections",           SESSION_REFUSED_SESSIONS       },
        {"too many TLS",                   SESSION_REFUSED_SESSIONS       },
        {"too many failed logins",         SESSION_REFUSED_LOCKOUT        },
        {"too many ",                      SESSION_REFUSED_RATE           },
    };
    if (strcmp(r->enhanced, "4.3.2") == 0)
        return SESSION_REFUSED_DRAINING;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (text_starts(text_from(r->text), text_from(rows[i].begins)))
            return rows[i].reason;
    return SESSION_REFUSED_OTHER;
}

void
session_counts_refuse(struct session_counts *counts, const struct refusal *refusal)
{
    counts->refused[session_refused_reason(refusal)]++;
}

void
session_counts_accept(struct session_counts *counts, int64_t took_us)
{
    size_t i = 0;
    while (i < SESSION_ACCEPT_BOUNDS &&
           (double)took_us > session_accept_bounds_s[i] * 1e6)
        i++;
    counts->accepts[i]++;
    counts->accept_sum_us += took_us;
}

/* --- TLS -------------------------------------------------------------------------- */

/* A TLS session is a place of some 40 KB of memory, taken at the first bytes of the
 * ClientHello. When no place is free, the oldest incomplete handshake of an untrusted
 * client is ended, or else an idle session. A client with its full share ends only its
 * own handshakes: with many connections it cannot displace other clients. */

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

/* True: no TLS place is free, and no session can be ended for one. */
static bool
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

/* TLS begins: input received in cleartext is discarded. Input in cleartext behind
 * STARTTLS is dropped: an attacker may have put it there (RFC 3207 §6). */
static void
session_await_hello(struct server_session *s)
{
    net_consume(s->connection, net_input(s->connection).length);
    buffer_clear(&s->normalized);
    s->newlines.after_cr = false;
    await_hello(s);
}

/* The same from the first byte: input already received is TLS. The greeting waits
 * for the handshake, which begins with the client. */
static void
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

static void
session_time_out(struct server_session *s)
{
    if (s->storing)
        return; /* the client waits for the queue */
    bool hears = s->handshake == SESSION_NO_HANDSHAKE;
    server_timed_out(&s->server);
    session_send(s);
    session_hang_up(s, hears);
    session_end(s);
}

/* Takes events of the connection during SESSION_AWAITS_HELLO. The session may end. */
static void
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

/* NET_SECURED, or the end of the session. */
static void
session_end_handshake(struct server_session *s)
{
    if (s->handshake == SESSION_SHAKES)
        DL_DELETE2(s->host->shaking, s, shaking_prev, shaking_next);
    s->handshake = SESSION_NO_HANDSHAKE;
}

/* Frees the TLS place at the end of the session. */
static void
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

/* --- Sessions --------------------------------------------------------------------- */

enum {
    OUT_MAX = NET_UNSENT_MAX, /* replies between two sends: in LMTP one per recipient */
    /* Bytes of unread replies; this also limits the commands of a client in one turn of
     * the loop, while others wait. */
    REPLIES_MAX = 8 * 1024,
    REPLIES_LOW = 4 * 1024
};

/* A line of AUTH fits: the machine never waits for bytes not normalized yet. */
enum { NORMALIZE_PIECE = 16 * 1024 };

/* Members of aliases in one turn of a session: other clients wait meanwhile. */
enum { EXPANDED_PER_TURN = 2000 };

static const struct refusal too_much_tls = {421, "4.7.0",
                                            "too many TLS sessions, try again later"};

void
session_rules_release(struct session_rules **rules)
{
    struct session_rules *r = *rules;
    *rules = NULL;
    if (r == NULL)
        return;
    assert(r->users > 0);
    if (--r->users > 0)
        return;
    policy_free(&r->policy);
    client_usage_rules_free(&r->clients);
    networks_free(&r->proxies);
    tls_server_free(&r->tls);
    users_free(&r->accounts);
    senders_free(&r->senders);
    free(r->server.seen);
    free(r);
}

static void
server_session_free(void *object)
{
    struct server_session *s = object;
    server_free(&s->server);
    free(s->held);
    free(s->greeting);
    free(s->defrag_host);
    session_rules_release(&s->rules);
    buffer_free(&s->normalized);
    free(s);
}

/* Politely means that the last replies are sent first. A connection that failed, or is
 * in a TLS handshake, cannot carry them. */
void
session_hang_up(struct server_session *s, bool politely)
{
    if (s->connection == NULL)
        return;
    if (politely)
        net_close(&s->connection);
    else
        net_abort(&s->connection);
}

/* Freed at the end of the turn: the session may be in one of its own callbacks. */
void
session_end(struct server_session *s)
{
    struct session_host *host = s->host;
    assert(!s->storing && s->connection == NULL);
    server_tell_end(&s->server);
    session_settle(s, 0);
    if (s->draft != NULL)
        queue_discard(&s->draft);
    loop_unpost(host->loop, &s->hanging_up);
    loop_unpost(host->loop, &s->rest);
    loop_timer_stop(host->loop, &s->penalty);
    loop_timer_stop(host->loop, &s->slow);
    auth_attempt_free(&s->login);
    session_leave_tls(s);
    session_leave_row(s);
    DL_DELETE(host->sessions, s);
    host->count--;
    loop_release(host->loop, server_session_free, s);
    if (host->on_gone != NULL)
        host->on_gone(host->context, &s->peer);
}

/* One buffer, of the host, serves all sessions: a silent session costs none. */
void
session_send(struct server_session *s)
{
    struct buffer *out = &s->host->out;
    bool can_hear = s->connection != NULL && s->handshake != SESSION_AWAITS_HELLO;
    if (s->server.user != NULL && !s->logged_in) {
        s->logged_in = true;
        s->host->counts.logins++;
    }
    if (can_hear && out->length > 0)
        net_send(s->connection, buffer_text(out));
    buffer_clear(out);
}

/* Cleartext AUTH is for loopback clients and for old devices. The address of a client
 * that its proxy did not name is the proxy's: no cleartext AUTH for it. */
static enum server_auth
auth_of(const struct server_session *s)
{
    if (s->trusted || s->options.auth == ENDPOINT_AUTH_NO)
        return SERVER_AUTH_NO;
    bool local = s->peer.family == NET_UNIX ||
                 (s->rules->auth_cleartext && net_address_is_loopback(&s->peer));
    bool clear = (local && !s->options.stranger) || s->options.legacy;
    return clear ? SERVER_AUTH_CLEAR : SERVER_AUTH_SECURE;
}

bool
session_is_peer(const struct session_host *host, const struct net_address *client,
                const struct session_options *options)
{
    const struct peers *peers = host->routes ? route_peers(host->routes) : NULL;
    return peers != NULL && !options->stranger && !options->lmtp &&
           peers_have(peers, client);
}

static bool
has_bare_newlines(const struct server_session *s)
{
    return s->normalizes && s->newlines.rule == NEWLINES_LF;
}

/* The table of peers changes with a reload: the answer holds for these routes. */
static void
meet_peer(struct server_session *s)
{
    bool is_peer = session_is_peer(s->host, &s->peer, &s->options);
    s->routes = s->host->routes;
    free(s->defrag_host);
    s->defrag_host =
        is_peer ? memory_string(peers_own_name(route_peers(s->routes))) : NULL;
}

/* By the rules in force. */
static void
session_judge_certificate(struct server_session *s)
{
    char name[TLS_CLIENT_TEXT_MAX];
    enum tls_client_standing standing =
        s->rules->tls != NULL ? net_tls_judge_client(s->connection, s->rules->tls, name)
                              : TLS_CLIENT_ANONYMOUS;
    if (standing == TLS_CLIENT_KNOWN)
        server_certified(&s->server, name);
    else if (s->server.certified)
        server_forget_user(&s->server);
    if (standing == TLS_CLIENT_UNKNOWN)
        log_say(s->host->log, LOG_LEVEL_DEBUG, "smtpd", NULL,
                "%s: the client's certificate is not in relay_client_certificates: %s",
                s->server.client, name);
}

static void
apply_rules(struct server_session *s)
{
    struct server *server = &s->server;
    const struct session_rules *rules = s->rules;
    meet_peer(s);
    struct server_offer offer = {
        .may_relay = s->trusted || (!s->options.stranger &&
                                    policy_may_relay(&rules->policy, &s->peer)),
        .starttls = s->options.starttls && rules->tls != NULL,
        .auth = auth_of(s),
        .auth_required = !s->trusted && s->options.auth == ENDPOINT_AUTH_REQUIRED,
        .legacy = s->options.legacy || has_bare_newlines(s),
        .unannounced = s->options.legacy || s->trusted,
        .defrag_host = s->defrag_host};
    server_set_offer(server, &rules->server, &offer);
    /* A user removed from the file loses the login, a certificate its rights. */
    if (server->certified)
        session_judge_certificate(s);
    else if (server->user != NULL && rules->auth_path[0] == '\0' &&
             (rules->accounts == NULL ||
              !users_have(rules->accounts, text_from(server->user))))
        server_forget_user(server);
}

/* Not within a transaction: a recipient accepted by the old settings stays accepted. */
static void
refresh(struct server_session *s)
{
    struct session_rules *rules = s->host->rules;
    bool known = s->rules == rules && s->routes == s->host->routes;
    if (known || !server_is_idle(&s->server))
        return;
    session_rules_release(&s->rules);
    rules->users++;
    s->rules = rules;
    apply_rules(s);
}

static void
session_flush_node(struct server_session *s)
{
    struct session_host *host = s->host;
    const char *node = server_node(&s->server);
    /* "@example.org" names the domain with its subdomains (RFC 1985 §5.2). */
    struct text domain = text_from(node[0] == '@' ? node + 1 : node);
    enum server_flush answer = SERVER_FLUSH_DENIED;
    if (policy_may_flush(&s->rules->policy, host->routes, domain))
        answer = host->on_flush == NULL
                     ? SERVER_FLUSH_UNABLE
                     : host->on_flush(host->flusher, node, s->server.client);
    server_flushed(&s->server, answer);
}

static void
session_begin_serving(struct server_session *s)
{
    struct outcome refusal;
    assert(s->draft == NULL);
    s->draft = queue_begin(s->host->queue, server_expected_size(&s->server), &refusal);
    server_begun(&s->server, s->draft == NULL ? &refusal : NULL);
}

/* The id is in the trace header, so the name is taken before the envelope is sealed. */
void
session_store(struct server_session *s)
{
    int64_t now_ms = loop_now_ms(s->host->loop);
    if (server_is_redirect(&s->server))
        redirect_date(server_envelope(&s->server), now_ms, s->rules->lifetime_ms);
    queue_name(s->draft, server_envelope(&s->server));
    struct envelope *e = server_seal(&s->server, now_ms);
    if (s->host->manager != NULL)
        manager_copy(s->host->manager, e);
    if (s->mark.length > 0)
        e->posted = envelope_text(e, s->mark);
    s->stored = e->id;
    s->storing = true;
    s->sealed_us = loop_clock_us();
    queue_commit(&s->draft, &e, s->host->on_stored, s);
}

/* False: the reply comes later. */
static bool
session_log_in(struct server_session *s)
{
    if (s->login == NULL) {
        struct lockout_key key = lockout_key(&s->peer, s->server.uid);
        struct dovecot_client client = {.remote = &s->peer,
                                        .local = net_local(s->connection)};
        s->login = auth_attempt_new(s->host->gate, &s->server, &key, &client,
                                    s->host->on_login, s);
    }
    return auth_attempt_ask(s->login);
}

/* True: there is input that the machine has not read. */
static bool
has_more(const struct server_session *s)
{
    return s->normalizes && net_input(s->connection).length > 0;
}

static void session_resume(void *context);

/* True: it goes on in the next turn. */
static bool
session_yield(struct server_session *s)
{
    if (s->expanded < EXPANDED_PER_TURN)
        return false;
    s->expanded = 0;
    loop_post(s->host->loop, &s->rest, session_resume, s);
    return true;
}

enum session_progress { SESSION_GO, SESSION_PAUSE, SESSION_SECURE, SESSION_OVER };

static enum session_progress
grant(struct server_session *s, enum server_action wish)
{
    switch (wish) {
    case SERVER_READ:
        if (has_more(s))
            break;
        return s->ended ? SESSION_OVER : SESSION_PAUSE;
    case SERVER_WAIT:
        return SESSION_PAUSE;
    case SERVER_CLOSE:
        return SESSION_OVER;
    case SERVER_GO_ON:
        break;
    case SERVER_ADMIT:
        session_admit(s);
        break;
    case SERVER_CHECK:
        session_check(s);
        return session_yield(s) ? SESSION_PAUSE : SESSION_GO;
    case SERVER_BEGIN:
        session_begin_serving(s);
        break;
    case SERVER_WRITE:
        /* The draft keeps an error, and its commit reports it. */
        (void)queue_write(s->draft, server_content(&s->server));
        break;
    case SERVER_STORE:
        session_store(s);
        break;
    case SERVER_DISCARD:
        queue_discard(&s->draft);
        break;
    case SERVER_FLUSH:
        session_flush_node(s);
        break;
    case SERVER_SECURE:
        return SESSION_SECURE;
    case SERVER_LOGIN:
        return session_log_in(s) ? SESSION_GO : SESSION_PAUSE;
    }
    return SESSION_GO;
}

/* The client has sent size bytes of content, or has got a reply. Bytes of an incomplete
 * command are neither: they extend no deadline, and the session stays idle. */
static void
session_note(struct server_session *s, size_t size, bool answered)
{
    bool before = s->patience.content, content = server_is_receiving(&s->server);
    if (size > 0 || answered) {
        session_leave_row(s);
        session_enter_row(s);
    }
    deadline_noted(&s->patience, content, (int64_t)size, answered,
                   loop_monotonic_ms(s->host->loop));
    if (content != before)
        session_arm_deadline(s);
}

/* Delays the last reply, as a penalty for errors. No input is read until it is sent, or
 * pipelining would make the penalties run side by side. */
static void
session_hold(struct server_session *s)
{
    struct buffer *out = &s->host->out;
    assert(s->held == NULL);
    s->held = text_string(buffer_text(out));
    buffer_clear(out);
    net_want_input(s->connection, false);
    loop_timer_start(s->host->loop, &s->penalty, server_penalty_ms(&s->server),
                     s->penalty.fire, s);
    s->server.late = false;
}

static void
penalty_end(struct server_session *s)
{
    if (s->held == NULL)
        return;
    loop_timer_stop(s->host->loop, &s->penalty);
    if (s->connection != NULL) {
        net_send(s->connection, text_from(s->held));
        net_want_input(s->connection, true);
    }
    free(s->held);
    s->held = NULL;
    session_note(s, 0, true);
}

/* Less than one piece waits, and another at most doubles: 4 pieces of space do. */
static struct text
normalize(struct server_session *s)
{
    struct text input = text_before(net_input(s->connection), NORMALIZE_PIECE);
    if (s->normalized.length < NORMALIZE_PIECE) {
        normalize_stream(&s->newlines, input, &s->normalized);
        net_consume(s->connection, input.length);
    }
    /* sendmail -bs: no BDAT, because the conversion changes the number of bytes. */
    if (has_bare_newlines(s) && !s->server.offer.legacy) {
        struct server_offer offer = s->server.offer;
        offer.legacy = true;
        server_set_offer(&s->server, s->server.rules, &offer);
    }
    return buffer_text(&s->normalized);
}

static void
consume(struct server_session *s, size_t size)
{
    if (s->normalizes)
        buffer_take(&s->normalized, size);
    else
        net_consume(s->connection, size);
}

static enum session_progress
session_step(struct server_session *s)
{
    if (s->storing || s->held != NULL)
        return SESSION_PAUSE;
    if (s->connection == NULL)
        return SESSION_OVER;
    if (s->handshake == SESSION_AWAITS_HELLO)
        return s->server.stage == SERVER_CLOSED ? SESSION_OVER : SESSION_PAUSE;
    /* A client must read its replies first (NET_DRAINED resumes), but not its last. */
    if (net_unsent(s->connection) > REPLIES_MAX && s->server.stage != SERVER_CLOSED)
        return SESSION_PAUSE;
    /* The last transaction has ended without a message. */
    if (s->server.transaction == NULL)
        session_settle(s, 0);
    refresh(s);
    bool content = server_is_receiving(&s->server);
    struct server_load load = {.hurried = session_is_hurried(s),
                               .now_s = (uint32_t)(loop_now_ms(s->host->loop) / 1000),
                               .tls_full = s->server.offer.starttls &&
                                           !s->server.secure && !content &&
                                           session_tls_is_full(s)};
    server_set_load(&s->server, &load);
    struct text input = s->normalizes ? normalize(s) : net_input(s->connection);
    struct text rest = input;
    enum session_progress progress = grant(s, server_step(&s->server, &rest));
    if (s->server.late)
        session_hold(s);
    session_send(s);
    size_t taken = input.length - rest.length;
    session_note(s, content ? taken : 0, !content && taken > 0);
    if (progress != SESSION_SECURE) {
        /* Not earlier: server_content() points into the input. */
        consume(s, taken);
        return progress;
    }
    session_await_hello(s);
    /* The end of the input was reported before: no event follows. */
    return s->ended ? SESSION_OVER : SESSION_PAUSE;
}

/* Continues as far as input, queue and unread replies allow. A callback of the queue
 * may come while the machine runs; the loop below sees its changes. */
static void
session_pump(struct server_session *s)
{
    if (s->pumping)
        return; /* an injector's queue stores before queue_commit() returns */
    s->pumping = true;
    enum session_progress progress;
    do
        progress = session_step(s);
    while (progress == SESSION_GO);
    s->pumping = false;
    if (progress == SESSION_OVER) {
        session_hang_up(s, true);
        session_end(s);
    } else if (s->connection != NULL) {
        session_set_timeout(s);
    }
}

static void
session_resume(void *context)
{
    session_pump(context);
}

void
session_answer(struct server_session *s, const struct outcome *refusal)
{
    assert(s->storing);
    s->storing = false;
    if (s->answered != NULL) {
        s->answered(s, refusal);
        return;
    }
    if (refusal == NULL)
        session_counts_accept(&s->host->counts, loop_clock_us() - s->sealed_us);
    server_stored(&s->server, refusal);
    if (s->server.late && s->connection != NULL)
        session_hold(s);
    session_send(s);
    session_note(s, 0, true);
    session_pump(s);
}

/* The manager has the message before the reply: a pace does not delay delivery. */
static void
session_on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct server_session *s = context;
    bool paced = false;
    assert(s->storing);
    if (refusal == NULL) {
        struct id id = e->id; /* manager_accept() takes the envelope */
        server_tell_accepted(&s->server, id);
        session_settle(s, server_given(&s->server));
        if (s->durable != NULL)
            s->durable(s);
        if (s->host->manager != NULL) {
            manager_accept(s->host->manager, &e);
            paced = session_pace(s, id);
        }
        envelope_free(&e);
    }
    if (!paced)
        session_answer(s, refusal);
}

static void
penalty_over(void *context)
{
    struct server_session *s = context;
    penalty_end(s);
    session_pump(s);
}

static void
session_on_slow(void *context)
{
    struct server_session *s = context;
    struct deadline_rules rules = session_patience(s);
    if (s->storing || s->held != NULL || s->server.question == SERVER_ASKS_LOGIN) {
        session_note(s, 0, true); /* the client waits for us */
    } else if (!deadline_lasts(&s->patience, &rules,
                               loop_monotonic_ms(s->host->loop))) {
        session_time_out(s);
        return;
    }
    session_arm_deadline(s);
}

static void
on_login_answered(void *context)
{
    struct server_session *s = context;
    if (s->server.late && s->connection != NULL)
        session_hold(s);
    session_send(s);
    session_note(s, 0, true);
    session_pump(s);
}

static bool
tls_has_failed(const struct server_session *s)
{
    return text_starts(text_from(net_error(s->connection)), TEXT("TLS: "));
}

static void
take_event(struct server_session *s, enum net_event event)
{
    struct tls_facts tls;
    if (s->handshake == SESSION_AWAITS_HELLO) {
        session_await_event(s, event);
        return;
    }
    switch (event) {
    case NET_CONNECTED:
        break;
    case NET_SECURED:
        session_end_handshake(s);
        tls = net_tls_facts(s->connection);
        server_secured(&s->server, tls.version, tls.cipher);
        session_judge_certificate(s);
        session_note(s, 0, true);
        session_pump(s);
        break;
    case NET_ENDED:
        s->ended = true;
        session_pump(s);
        break;
    case NET_INPUT:
    case NET_DRAINED:
        session_pump(s);
        break;
    case NET_TIMED_OUT:
        session_time_out(s);
        break;
    case NET_FAILED:
        if (!net_is_secured(s->connection) && tls_has_failed(s) &&
            refusals_admit(s->host->refusals, s->server.client))
            log_say(s->host->log, LOG_LEVEL_INFO, "smtpd", NULL, "%s: %s",
                    s->server.client, net_error(s->connection));
        session_hang_up(s, false);
        /* No callback of the queue will end a paced session: its message is stored. */
        if (session_pace_leave(s))
            session_answer(s, NULL);
        else if (!s->storing)
            session_end(s);
        break;
    }
}

/* Input of a client is not charged to a message, not even to the one on trial. */
static void
session_on_event(void *context, enum net_event event)
{
    struct server_session *s = context;
    struct queue *queue = s->host->queue;
    struct id before = guard_enter_none(queue_guard(queue));
    take_event(s, event);
    queue_leave(queue, before);
}

/* Behind a proxy the process at the other end is the proxy, not the client. */
static unsigned
uid_of(const struct net_connection *connection, const struct session_options *options)
{
    struct net_credentials who;
    bool is_own = !options->proxy && !options->stranger;
    return is_own && net_peer_credentials(connection, &who) ? who.uid : SERVER_NO_UID;
}

void
session_describe_client(const struct net_address *peer, char out[SERVER_CLIENT_MAX])
{
    char ip[NET_ADDRESS_TEXT_MAX];
    int length = 0;
    net_address_ip(peer, ip);
    switch (peer->family) {
    case NET_PASSED:
    case NET_NONE:
        length = snprintf(out, SERVER_CLIENT_MAX, "local");
        break;
    case NET_UNIX:
        length = snprintf(out, SERVER_CLIENT_MAX, "unix");
        break;
    case NET_IPV4:
        length = snprintf(out, SERVER_CLIENT_MAX, "[%s]", ip);
        break;
    case NET_IPV6:
        length = snprintf(out, SERVER_CLIENT_MAX, "[IPv6:%s]", ip);
        break;
    }
    assert(length > 0 && length < SERVER_CLIENT_MAX);
}

static struct server_session *
server_session_new(struct session_host *host, const struct net_address *peer,
                   char client[SERVER_CLIENT_MAX])
{
    struct server_session *s = memory_new(sizeof(*s));
    s->host = host;
    s->rules = host->rules;
    s->rules->users++;
    s->peer = *peer;
    s->server.refusals = host->refusals;
    s->server.envelopes = &host->envelopes;
    s->penalty.fire = penalty_over;
    s->slow.fire = session_on_slow;
    deadline_noted(&s->patience, false, 0, true, loop_monotonic_ms(host->loop));
    buffer_init(&s->normalized, 4 * NORMALIZE_PIECE);
    DL_APPEND(host->sessions, s);
    session_enter_row(s);
    host->count++;
    host->counts.opened++;
    session_describe_client(peer, client);
    return s;
}

static void
on_hanging_up(void *context)
{
    struct server_session *s = context;
    session_hang_up(s, true);
    session_end(s);
}

void
session_host_start(struct session_host *host)
{
    host->on_stored = session_on_stored;
    host->on_login = on_login_answered;
    host->lockout = lockout_new();
    host->gate = auth_gate_new(host->loop, host->events, host->lockout);
    host->refusals = refusals_new(host->loop, host->log);
    buffer_init(&host->out, OUT_MAX);
    loop_at_end(host->loop, LOOP_ANSWER_SESSIONS, session_pace_some, host);
}

/* Messages that are being stored may become durable and are delivered; their clients,
 * which have no reply, send them again. */
void
session_host_stop(struct session_host *host)
{
    host->on_gone = NULL; /* its owner is freed, or ends the drain itself */
    loop_at_end_remove(host->loop, LOOP_ANSWER_SESSIONS, session_pace_some, host);
    loop_timer_stop(host->loop, &host->pace);
    while (host->sessions != NULL) {
        struct server_session *s = host->sessions;
        /* The commit of a paced session is complete: there is nothing to ignore. */
        if (!session_pace_leave(s) && s->storing)
            queue_commit_ignore(host->queue, s);
        s->storing = false;
        session_hang_up(s, false);
        session_end(s);
    }
    auth_gate_free(&host->gate);
    dovecot_auth_free(&host->dovecot);
    lockout_free(&host->lockout);
    refusals_free(&host->refusals);
    buffer_free(&host->out);
}

void
session_start(struct session_host *host, struct net_connection *connection,
              const struct session_options *options, const struct refusal *refusal)
{
    char client[SERVER_CLIENT_MAX];
    struct server_session *s = server_session_new(host, net_peer(connection), client);
    unsigned uid = uid_of(connection, options);
    s->connection = connection;
    s->options = *options;
    s->normalizes = options->legacy;
    s->newlines.rule = options->legacy ? NEWLINES_LF : NEWLINES_CRLF;
    net_attach(connection, session_on_event, s);
    net_set_low_water(connection, REPLIES_LOW);
    /* Without a TLS place the refusal cannot be read, but the connection closes. */
    if (options->tls && refusal == NULL && session_tls_is_full(s))
        refusal = &too_much_tls;
    if (refusal != NULL) {
        session_counts_refuse(&host->counts, refusal);
        server_start_refusing(&s->server, &s->rules->server, host->events, &host->out,
                              client, refusal);
        s->server.uid = uid;
        /* The end calls the owner back, which has not returned from this call. */
        loop_post(host->loop, &s->hanging_up, on_hanging_up, s);
    } else {
        server_start(&s->server, &s->rules->server, host->events, &host->out, client,
                     options->lmtp, false);
        s->server.uid = uid;
        apply_rules(s);
        server_tell_start(&s->server);
        session_set_timeout(s);
        session_arm_deadline(s);
        if (options->tls)
            session_await_first_hello(s);
    }
    session_send(s);
    if (net_input(connection).length > 0) { /* received after a PROXY header */
        net_want_input(connection, false);
        net_want_input(connection, true);
    }
}

void
session_start_standard(struct session_host *host, struct net *net, int in, int out)
{
    char client[SERVER_CLIENT_MAX];
    struct net_address nobody = {.family = NET_NONE};
    struct server_session *s = server_session_new(host, &nobody, client);
    s->trusted = true;
    s->normalizes = true;
    s->newlines.rule = NEWLINES_FIRST;
    s->connection = net_adopt(net, in, out, session_on_event, s);
    net_set_low_water(s->connection, REPLIES_LOW);
    server_start(&s->server, &s->rules->server, host->events, &host->out, client, false,
                 true);
    apply_rules(s);
    server_tell_start(&s->server);
    session_set_timeout(s);
    session_send(s);
}

void
session_drain(struct session_host *host)
{
    session_host_answer(host);
    for (struct server_session *s = host->sessions, *next; s != NULL; s = next) {
        next = s->next; /* s may end */
        penalty_end(s);
        server_shut_down(&s->server);
        session_send(s);
        session_pump(s);
    }
}

bool
session_is_locked_out(const struct session_host *host,
                      const struct net_connection *connection,
                      const struct session_options *options)
{
    struct lockout_key key =
        lockout_key(net_peer(connection), uid_of(connection, options));
    return lockout_left_ms(host->lockout, &key, loop_monotonic_ms(host->loop)) > 0;
}
