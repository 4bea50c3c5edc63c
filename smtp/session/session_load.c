/* Sessions under load: their time-outs, the choice of the one to end, and the pace of
 * replies.
 *
 * All sessions are in two lists, without and with TLS, in the order of their last
 * activity. A session that gives way is the one that is idle longest, and never for an
 * untrusted newcomer whose client has more sessions: an attacker that opens many cannot
 * displace clients that have few. */
#include "base/log/log.h"
#include "smtp/reply.h"
#include "smtp/session/session_internal.h"

#include <assert.h>
#include <utlist.h>

enum {
    STRESS_TIMEOUT_MS = 10 * 1000, /* Postfix: smtpd_timeout under stress */
    IDLE_MS = 2000,                /* a session idle for this time may be ended */
    LOOK_MAX = 100,                /* sessions examined to find one */
    MANY_MIN = 8
};

static const struct refusal crowded_out = {
    421, "4.3.2", "idle connection closed: too many connections, try again later"};

bool
session_is_trusted(const struct server_session *s)
{
    /* File permissions protect a Unix socket, and sendmail -bs has no address. */
    bool is_distant = s->peer.family == NET_IPV4 || s->peer.family == NET_IPV6;
    return s->trusted || s->defrag_host != NULL || !is_distant ||
           !server_is_untrusted(&s->server);
}

bool
session_is_hurried(const struct server_session *s)
{
    return s->host->stressed && !session_is_trusted(s);
}

int64_t
session_hurry_ms(const struct server_session *s, int64_t timeout_ms)
{
    bool shorter = timeout_ms == 0 || timeout_ms > STRESS_TIMEOUT_MS;
    return shorter && session_is_hurried(s) ? STRESS_TIMEOUT_MS : timeout_ms;
}

struct deadline_rules
session_patience(const struct server_session *s)
{
    struct deadline_rules rules = s->rules->patience;
    rules.command_ms = session_hurry_ms(s, rules.command_ms);
    rules.data_ms = session_hurry_ms(s, rules.data_ms);
    return rules;
}

void
session_arm_deadline(struct server_session *s)
{
    struct loop *loop = s->host->loop;
    struct deadline_rules rules = session_patience(s);
    int64_t due_ms = deadline_due_ms(&s->patience, &rules);
    if (due_ms < INT64_MAX && !s->trusted)
        loop_timer_start(loop, &s->slow, due_ms - loop_monotonic_ms(loop), s->slow.fire,
                         s);
    else
        loop_timer_stop(loop, &s->slow);
}

void
session_set_timeout(struct server_session *s)
{
    int64_t timeout_ms = session_hurry_ms(s, s->rules->idle_timeout_ms);
    if (s->handshake != SESSION_NO_HANDSHAKE) {
        s->timeout_ms = -1; /* set again after the handshake */
        net_set_timeout(s->connection, session_handshake_left_ms(s));
        return;
    }
    if (s->storing || s->held != NULL || s->server.question == SERVER_ASKS_LOGIN)
        timeout_ms = 0; /* the client waits for us */
    else if (server_is_receiving(&s->server))
        timeout_ms = session_hurry_ms(s, s->rules->data_timeout_ms);
    /* A time-out that is set begins anew, so the same one is not set again. */
    if (timeout_ms != s->timeout_ms)
        net_set_timeout(s->connection, timeout_ms);
    s->timeout_ms = timeout_ms;
}

/* All sessions get their new time-outs immediately: a silent one has no event that
 * would set them later. */
void
session_host_stress(struct session_host *host, bool stressed)
{
    struct server_session *s;
    host->stressed = stressed;
    DL_FOREACH (host->sessions, s) {
        if (s->connection == NULL || s->server.stage == SERVER_CLOSED)
            continue;
        session_set_timeout(s);
        session_arm_deadline(s);
    }
}

void
session_enter_row(struct server_session *s)
{
    s->active_ms = loop_monotonic_ms(s->host->loop);
    DL_APPEND2(s->host->idle[s->tls], s, idle_prev, idle_next);
}

void
session_leave_row(struct server_session *s)
{
    DL_DELETE2(s->host->idle[s->tls], s, idle_prev, idle_next);
}

/* A session that waits for us is not idle. */
static bool
may_give_way(const struct server_session *s)
{
    bool waits = s->storing || s->pumping || s->server.question == SERVER_ASKS_LOGIN ||
                 s->server.question == SERVER_ASKS_STORED;
    return !waits && s->connection != NULL && s->server.stage != SERVER_CLOSED &&
           !session_is_trusted(s);
}

/* The number of TLS sessions of the client, or of all sessions of its network. */
static size_t
company(const struct server_session *s, bool tls)
{
    const struct client_usage *clients = s->host->clients;
    return tls ? client_usage_tls(clients, &s->peer)
               : client_usage_weight(clients, &s->peer);
}

/* A client with more sessions loses busy ones, too: half of the limit per client. */
static size_t
many(const struct session_host *host, bool tls)
{
    const struct session_rules *rules = host->rules;
    size_t half = tls ? rules->tls_session_limit / SESSION_TLS_SHARE / 2
                      : (size_t)rules->clients.sessions_per_client / 2;
    return half > MANY_MIN ? half : MANY_MIN;
}

/* The list is in the order of the last input. The walk is bounded: under attack it runs
 * for each newcomer. So a session that cannot give way does not stay at the front: it
 * has less reason to than those that are idle. */
static struct server_session *
idle_in_row(struct server_session **row, bool tls, size_t others)
{
    struct server_session *s = *row, *next, *moved = NULL;
    size_t looked = 0;
    for (; s != NULL && s != moved && looked < LOOK_MAX; looked++, s = next) {
        const struct session_host *host = s->host;
        int64_t idle_ms = loop_monotonic_ms(host->loop) - s->active_ms;
        next = s->idle_next;
        if (!may_give_way(s)) {
            DL_DELETE2(*row, s, idle_prev, idle_next);
            DL_APPEND2(*row, s, idle_prev, idle_next);
            moved = moved != NULL ? moved : s;
            continue;
        }
        size_t own = company(s, tls);
        if (own >= others && (idle_ms >= IDLE_MS || own > many(host, tls)))
            return s;
    }
    return NULL;
}

struct server_session *
session_find_idle(struct session_host *host, bool tls, size_t others)
{
    struct server_session *secured = idle_in_row(&host->idle[true], tls, others);
    struct server_session *clear =
        tls ? NULL : idle_in_row(&host->idle[false], tls, others);
    if (clear == NULL || (secured != NULL && secured->active_ms < clear->active_ms))
        return secured;
    return clear;
}

void
session_give_way(struct server_session *s)
{
    /* During a handshake a reply can be sent neither in cleartext nor by TLS. */
    bool hears = s->handshake == SESSION_NO_HANDSHAKE;
    assert(may_give_way(s));
    server_give_way(&s->server, &crowded_out);
    session_send(s);
    session_hang_up(s, hears);
    session_end(s);
}

/* The newcomer is counted already, so that the numbers of both clients can be compared.
 * A trusted newcomer may displace any untrusted client, with any number of sessions. */
bool
session_make_place(struct session_host *host, const struct net_address *newcomer,
                   bool trusted)
{
    size_t others = trusted ? 0 : client_usage_weight(host->clients, newcomer);
    struct server_session *s = session_find_idle(host, false, others);
    if (s == NULL)
        return false;
    session_give_way(s);
    return true;
}

/* --- Replies that wait while mail comes faster than it leaves --------------------- */

/* A loop that serves each socket in turn favours intake: a thousand clients get more of
 * it than twenty sessions out, and the backlog would outgrow the journal. So the reply
 * to a message waits while too much mail waits at the message's site, as the manager
 * says. The message itself does not wait: it is durable, and on its way. Replies leave
 * in the order in which messages came, so each client has its turn. */

enum {
    PACE_MS = 10,                /* between two looks at the replies that wait */
    PACE_ANSWERS = 10,           /* replies in that time at least, and one to a client
                                  * of a crowded site: a thousand wait for 10 s at
                                  * most, and no client gives up and sends again */
    PACE_LOG_MS = 10 * 60 * 1000 /* between two log lines */
};

static void
pace_on_time(void *context)
{
    struct session_host *host = context;
    host->pace_due = true;
}

static void
log_pace(struct session_host *host)
{
    int64_t now_ms = loop_monotonic_ms(host->loop);
    if (host->pace_logged_ms != 0 && now_ms - host->pace_logged_ms < PACE_LOG_MS)
        return;
    host->pace_logged_ms = now_ms;
    log_say(host->log, LOG_LEVEL_INFO, "smtpd", NULL,
            "mail arrives faster than it leaves: replies to clients are delayed");
}

bool
session_pace(struct server_session *s, struct id id)
{
    struct session_host *host = s->host;
    if (server_is_redirect(&s->server) || manager_is_calm(host->manager))
        return false;
    s->stored = id;
    s->paced = true;
    DL_APPEND2(host->paced, s, paced_prev, paced_next);
    /* paced_new is a tail of the list: sessions are added at the end only, and each
     * pass empties it. */
    if (host->paced_new == NULL)
        host->paced_new = s;
    return true;
}

bool
session_pace_leave(struct server_session *s)
{
    struct session_host *host = s->host;
    if (!s->paced)
        return false;
    if (host->paced_new == s)
        host->paced_new = s->paced_next;
    DL_DELETE2(host->paced, s, paced_prev, paced_next);
    s->paced = false;
    return true;
}

static void
answer_paced(struct server_session *s)
{
    (void)session_pace_leave(s);
    session_answer(s, NULL);
}

/* One session of a client does not flood us: it waits for twice as much, so a client
 * that sends now and then does not feel those that flood. */
static bool
session_has_turn(const struct server_session *s)
{
    const struct session_host *host = s->host;
    bool alone = client_usage_weight(host->clients, &s->peer) == 1;
    return !manager_is_crowded(host->manager, s->stored, alone);
}

/* New messages are looked at in their turn, the others when the timer says so: with a
 * thousand that wait, a look in each turn would cost more than their delivery. */
void
session_pace_some(void *context)
{
    struct session_host *host = context;
    struct server_session *s = host->pace_due ? host->paced : host->paced_new, *next;
    unsigned floor = 0;
    if (host->pace_due) {
        floor =
            host->pace_answers < PACE_ANSWERS ? PACE_ANSWERS - host->pace_answers : 1;
        host->pace_answers = 0;
    }
    host->pace_due = false;
    host->paced_new = NULL;
    for (; s != NULL; s = next) {
        next = s->paced_next; /* answer_paced() takes s off the list, and may end it */
        bool has_turn = session_has_turn(s);
        /* The oldest get the least number of replies: none waits for ever. */
        if (!has_turn && floor == 0)
            continue;
        floor -= !has_turn;
        host->pace_answers += has_turn;
        answer_paced(s);
    }
    if (host->paced == NULL || heap_has(&host->pace.node))
        return;
    log_pace(host);
    loop_timer_start(host->loop, &host->pace, PACE_MS, pace_on_time, host);
}

void
session_host_answer(struct session_host *host)
{
    while (host->paced != NULL)
        answer_paced(host->paced);
}
