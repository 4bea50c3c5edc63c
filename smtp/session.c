/* Feeds a server machine from a connection and does what it wishes. */
#include "smtp/session.h"

#include "base/log.h"
#include "base/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

/* Replies between two sends: an LMTP transaction has one for each recipient. */
enum { OUT_MAX = NET_UNSENT_MAX };

struct session {
    struct server server;
    struct session_host *host;
    struct session_rules *rules;
    struct net_connection
        *connection; /* NULL: gone while its message is being stored */
    struct queue_draft *draft;
    struct net_address peer;
    struct session *prev, *next;
    struct loop_task hanging_up; /* of one that was refused */
    int64_t timeout_ms;          /* as set last */
    bool trusted;
    bool starttls; /* where it listens it may be offered */
    bool ended;    /* the peer sends no more */
    bool storing;  /* the queue has its message and will call */
    bool pumping;
};

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
    tls_server_free(&r->tls);
    free(r);
}

static void
session_free(void *object)
{
    struct session *s = object;
    server_free(&s->server);
    session_rules_release(&s->rules);
    free(s);
}

/* The connection goes; the session stays while the queue may still call it. */
static void
hang_up(struct session *s, bool politely)
{
    if (s->connection == NULL)
        return;
    if (politely)
        net_close(&s->connection);
    else
        net_abort(&s->connection);
}

static void
end(struct session *s)
{
    struct session_host *host = s->host;
    assert(!s->storing && s->connection == NULL);
    log_say(host->log, LOG_LEVEL_DEBUG, "smtpd", NULL, "disconnect from %s",
            s->server.client);
    if (s->draft != NULL)
        queue_discard(&s->draft);
    loop_unpost(host->loop, &s->hanging_up);
    DL_DELETE(host->sessions, s);
    host->count--;
    loop_release(host->loop, session_free, s);
    if (host->on_gone != NULL)
        host->on_gone(host->context, &s->peer);
}

/* What the machine has said goes to the connection, if there still is one. */
static void
flush(struct session *s)
{
    struct buffer *out = &s->host->out;
    if (s->connection != NULL && out->length > 0)
        net_send(s->connection, buffer_text(out));
    buffer_clear(out);
}

/* Between transactions new settings may take over. */
static void
refresh(struct session *s)
{
    struct session_rules *rules = s->host->rules;
    if (s->rules == rules || !server_is_idle(&s->server))
        return;
    session_rules_release(&s->rules);
    rules->users++;
    s->rules = rules;
    s->server.rules = &rules->server;
    s->server.starttls = s->starttls && rules->tls != NULL;
    s->server.may_relay = s->trusted || policy_may_relay(&rules->policy, &s->peer);
}

static void
admit(struct session *s)
{
    struct outcome refusal;
    bool admitted =
        queue_admits(s->host->queue, server_expected_size(&s->server), &refusal);
    server_admitted(&s->server, admitted ? NULL : &refusal);
}

static void
check(struct session *s)
{
    struct outcome refusal;
    bool taken = policy_recipient(s->host->routes, s->server.may_relay,
                                  server_mail_from(&s->server),
                                  server_recipient(&s->server), &refusal);
    server_recipient_checked(&s->server, taken ? NULL : &refusal);
}

static void
flush_node(struct session *s)
{
    struct session_host *host = s->host;
    const char *node = server_node(&s->server);
    struct text domain = text_from(node[0] == '@' ? node + 1 : node);
    enum server_flush answer = SERVER_FLUSH_DENIED;
    if (policy_may_flush(&s->rules->policy, host->routes, domain))
        answer = host->on_flush == NULL
                     ? SERVER_FLUSH_UNABLE
                     : host->on_flush(host->flusher, node, s->server.client);
    server_flushed(&s->server, answer);
}

static void
begin(struct session *s)
{
    struct outcome refusal;
    assert(s->draft == NULL);
    s->draft = queue_begin(s->host->queue, server_expected_size(&s->server), &refusal);
    server_begun(&s->server, s->draft == NULL ? &refusal : NULL);
}

static void
store(struct session *s)
{
    queue_name(s->draft, server_envelope(&s->server));
    struct envelope *e = server_seal(&s->server, loop_now_ms(s->host->loop));
    s->storing = true;
    queue_commit(&s->draft, &e, s->host->on_stored, s);
}

/* What was received in clear is forgotten with this. */
static void
secure(struct session *s)
{
    struct net_tls tls = {.server = s->rules->tls};
    assert(tls.server != NULL);
    net_start_tls(s->connection, &tls);
}

enum pace { PACE_GO, PACE_PAUSE, PACE_SECURE, PACE_OVER };

static enum pace
grant(struct session *s, enum server_action wish)
{
    switch (wish) {
    case SERVER_READ:
        return s->ended ? PACE_OVER : PACE_PAUSE;
    case SERVER_WAIT:
        return PACE_PAUSE;
    case SERVER_CLOSE:
        return PACE_OVER;
    case SERVER_GO_ON:
        break;
    case SERVER_ADMIT:
        admit(s);
        break;
    case SERVER_CHECK:
        check(s);
        break;
    case SERVER_BEGIN:
        begin(s);
        break;
    case SERVER_WRITE:
        /* A failure is remembered by the draft and told when it is committed. */
        (void)queue_write(s->draft, server_content(&s->server));
        break;
    case SERVER_STORE:
        store(s);
        break;
    case SERVER_DISCARD:
        queue_discard(&s->draft);
        break;
    case SERVER_FLUSH:
        flush_node(s);
        break;
    case SERVER_SECURE:
        return PACE_SECURE;
    }
    return PACE_GO;
}

static enum pace
step(struct session *s)
{
    if (s->storing)
        return PACE_PAUSE;
    if (s->connection == NULL)
        return PACE_OVER;
    /* Who does not read what we say is not listened to: NET_DRAINED resumes. */
    if (net_unsent(s->connection) > NET_HIGH_WATER)
        return PACE_PAUSE;
    refresh(s);
    struct text input = net_input(s->connection), rest = input;
    enum pace pace = grant(s, server_step(&s->server, &rest));
    flush(s);
    if (pace != PACE_SECURE) {
        net_consume(s->connection, input.length - rest.length);
        return pace;
    }
    secure(s);
    return PACE_PAUSE;
}

static void
set_timeout(struct session *s)
{
    int64_t timeout_ms = s->rules->idle_timeout_ms;
    if (s->storing)
        timeout_ms = 0; /* now it is we who are slow */
    else if (server_is_receiving(&s->server))
        timeout_ms = s->rules->data_timeout_ms;
    if (timeout_ms != s->timeout_ms)
        net_set_timeout(s->connection, timeout_ms);
    s->timeout_ms = timeout_ms;
}

/* Goes on as far as input, queue and the peer's reading allow. */
static void
pump(struct session *s)
{
    if (s->pumping)
        return; /* an injector's queue stores before queue_commit() returns */
    s->pumping = true;
    enum pace pace;
    do
        pace = step(s);
    while (pace == PACE_GO);
    s->pumping = false;
    if (pace == PACE_OVER) {
        hang_up(s, true);
        end(s);
    } else if (s->connection != NULL) {
        set_timeout(s);
    }
}

/* A queue_stored(). */
static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct session *s = context;
    assert(s->storing);
    s->storing = false;
    server_stored(&s->server, refusal);
    flush(s);
    if (refusal == NULL && s->host->manager != NULL)
        manager_accept(s->host->manager, &e);
    if (refusal == NULL)
        envelope_free(&e);
    pump(s);
}

static bool
tls_has_failed(const struct session *s)
{
    return text_starts(text_from(net_error(s->connection)), TEXT("TLS: "));
}

static void
on_event(void *context, enum net_event event)
{
    struct session *s = context;
    switch (event) {
    case NET_CONNECTED:
        break;
    case NET_SECURED:
        server_secured(&s->server, net_tls_version(s->connection),
                       net_tls_cipher(s->connection));
        pump(s);
        break;
    case NET_ENDED:
        s->ended = true;
        pump(s);
        break;
    case NET_INPUT:
    case NET_DRAINED:
        pump(s);
        break;
    case NET_TIMED_OUT:
        if (s->storing)
            break;
        server_timed_out(&s->server);
        flush(s);
        hang_up(s, true);
        end(s);
        break;
    case NET_FAILED:
        if (!net_is_secured(s->connection) && tls_has_failed(s))
            log_say(s->host->log, LOG_LEVEL_INFO, "smtpd", NULL, "%s: %s",
                    s->server.client, net_error(s->connection));
        hang_up(s, false);
        if (!s->storing)
            end(s);
        break;
    }
}

static void
describe_client(const struct net_address *peer, char out[SERVER_CLIENT_MAX])
{
    char ip[NET_ADDRESS_TEXT_MAX];
    int length = 0;
    net_address_ip(peer, ip);
    switch (peer->family) {
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

static struct session *
session_new(struct session_host *host, const struct net_address *peer,
            char client[SERVER_CLIENT_MAX])
{
    struct session *s = memory_new(sizeof(*s));
    s->host = host;
    s->rules = host->rules;
    s->rules->users++;
    s->peer = *peer;
    DL_APPEND(host->sessions, s);
    host->count++;
    describe_client(peer, client);
    log_say(host->log, LOG_LEVEL_DEBUG, "smtpd", NULL, "connect from %s", client);
    return s;
}

static void
on_hanging_up(void *context)
{
    struct session *s = context;
    hang_up(s, true);
    end(s);
}

void
session_host_start(struct session_host *host)
{
    host->on_stored = on_stored;
    buffer_init(&host->out, OUT_MAX);
}

void
session_host_stop(struct session_host *host)
{
    host->on_gone = NULL;
    while (host->sessions != NULL) {
        struct session *s = host->sessions;
        if (s->storing)
            queue_commit_ignore(host->queue, s);
        s->storing = false;
        hang_up(s, false);
        end(s);
    }
    buffer_free(&host->out);
}

void
session_start(struct session_host *host, struct net_connection *connection,
              const struct session_manner *manner, const struct refusal *refusal)
{
    char client[SERVER_CLIENT_MAX];
    struct session *s = session_new(host, net_peer(connection), client);
    s->connection = connection;
    net_attach(connection, on_event, s);
    if (manner->tls)
        secure(s); /* what is said below waits for it */
    if (refusal != NULL) {
        server_start_refusing(&s->server, &s->rules->server, host->log, &host->out,
                              client, refusal);
        loop_post(host->loop, &s->hanging_up, on_hanging_up, s);
    } else {
        server_start(&s->server, &s->rules->server, host->log, &host->out, client,
                     manner->lmtp, policy_may_relay(&s->rules->policy, &s->peer));
        s->starttls = manner->starttls;
        s->server.starttls = s->starttls && s->rules->tls != NULL;
        set_timeout(s);
    }
    flush(s);
}

void
session_start_standard(struct session_host *host, struct net *net, int in, int out)
{
    char client[SERVER_CLIENT_MAX];
    struct net_address nobody = {.family = NET_NONE};
    struct session *s = session_new(host, &nobody, client);
    s->trusted = true;
    s->connection = net_adopt(net, in, out, on_event, s);
    server_start(&s->server, &s->rules->server, host->log, &host->out, client, false,
                 true);
    set_timeout(s);
    flush(s);
}

void
session_drain(struct session_host *host)
{
    for (struct session *s = host->sessions, *next; s != NULL; s = next) {
        next = s->next; /* s may end */
        server_shut_down(&s->server);
        flush(s);
        pump(s);
    }
}
