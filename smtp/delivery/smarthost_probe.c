/* Look-up, connections to the addresses in turn, and the dialogue. */
#include "smtp/delivery/smarthost_probe.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "sched/limits/reply_class.h"
#include "smtp/connect/address_race.h"
#include "smtp/delivery/client_connection.h"
#include "smtp/connect/exchange.h"
#include "smtp/connect/happy_eyeballs.h"
#include "smtp/connect/mx_lookup.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESSES_MAX = 5, DEMAND_MAX = 200 };

struct smarthost_probe {
    struct smarthost_probe_settings settings;
    const struct target *target;
    size_t at;
    const char *sender;
    smarthost_probe_done *done;
    void *context;
    char host[TARGET_HOST_MAX];
    struct exchange *lookup;
    const struct mx_lookup_host *hosts; /* of it */
    size_t order[MX_LOOKUP_ADDRESS_MAX];
    struct happy_eyeballs *connecting;
    const struct mx_lookup_host *now;   /* the host that is conversed with */
    const struct mx_lookup_host *clear; /* whose TLS has failed, where it may */
    struct client_connection *connection;
    struct security security;
    struct reply_outcome_peer peer;
    char tls[128], demand[DEMAND_MAX];
    bool has_requiretls;
    bool renews; /* a token was refused, and another one is asked for */
    bool has_trouble;
    struct outcome trouble; /* the first one that a host gave, else the last */
    struct loop_task task;
};

/* --- The end ---------------------------------------------------------------------- */

static void
smarthost_probe_end(struct smarthost_probe *c, enum smarthost_probe_verdict verdict,
                    const char *text)
{
    const struct mx_lookup_host *host = c->now;
    const char *only = c->settings.only;
    struct smarthost_probe_result result = {
        .verdict = verdict,
        .text = text,
        .tls = c->tls,
        .where = host != NULL ? c->peer.where : "",
        .insecure = c->clear != NULL && c->clear == host ? c->trouble.text : "",
        .demand = c->demand,
        .has_requiretls = c->has_requiretls};
    if (only == NULL && host != NULL)
        only = host->name;
    if (only != NULL && c->lookup != NULL)
        exchange_describe(c->lookup, only, c->demand, sizeof(c->demand));
    c->done(c->context, &result);
}

/* A refused login is worth most: it is not to be tried again soon. */
static void
smarthost_probe_remember(struct smarthost_probe *c, const struct outcome *trouble)
{
    if (c->has_trouble && (reply_class_refuses_us(&c->trouble) || trouble->code == 0))
        return;
    c->trouble = *trouble;
    c->has_trouble = true;
}

static void
smarthost_probe_fail(void *context)
{
    struct smarthost_probe *c = context;
    enum smarthost_probe_verdict verdict = SMARTHOST_PROBE_DOWN;
    if (c->renews || reply_class_classify(&c->trouble) == REPLY_CLASS_TOKEN)
        verdict = SMARTHOST_PROBE_TOKEN;
    else if (reply_class_refuses_us(&c->trouble))
        verdict = SMARTHOST_PROBE_LOGIN;
    smarthost_probe_end(c, verdict, c->trouble.text);
}

/* The next address; without one it is over. */
static void
smarthost_probe_go_on(struct smarthost_probe *c)
{
    bool again = !reply_class_refuses_us(&c->trouble) && c->connecting != NULL;
    if (!again || !happy_eyeballs_go_on(c->connecting))
        loop_post(c->settings.loop, &c->task, smarthost_probe_fail, c);
}

/* --- The dialogue ----------------------------------------------------------------- */

static void smarthost_probe_converse(struct smarthost_probe *c,
                                     struct net_connection *connection);
static void smarthost_probe_connect(struct smarthost_probe *c,
                                    const struct mx_lookup_host *only);

/* A host that never greeted us, or refused us before MAIL. */
static void
smarthost_probe_over(struct smarthost_probe *c, const struct outcome *trouble)
{
    bool falls_back = c->security.may_fall_back && c->clear != c->now &&
                      client_connection_tls_failed(c->connection);
    smarthost_probe_remember(c, trouble);
    c->renews = reply_class_refuses_us(trouble) &&
                credentials_refused(client_connection_credentials(c->connection));
    client_connection_free(&c->connection);
    if (falls_back) {
        c->clear = c->now;
        smarthost_probe_connect(c, c->now);
    } else {
        smarthost_probe_go_on(c);
    }
}

static void
smarthost_probe_on_client(void *context, const struct client_event *event)
{
    struct smarthost_probe *c = context;
    switch ((unsigned)event->kind) {
    case CLIENT_READY:
        text_copy(c->tls, sizeof(c->tls),
                  text_from(client_connection_tls(c->connection)));
        c->has_requiretls = client_connection_has_requiretls(c->connection);
        client_connection_probe(
            c->connection, text_from(c->sender),
            text_from(c->settings.recipient != NULL ? c->settings.recipient : ""));
        return;
    case CLIENT_PROBED: {
        struct outcome probed = *event->outcome;
        bool is_recipient = event->which > 0;
        client_connection_free(&c->connection);
        smarthost_probe_end(c,
                            probed.verdict == VERDICT_DELIVERED ? SMARTHOST_PROBE_GOOD
                            : is_recipient ? SMARTHOST_PROBE_RECIPIENT
                                           : SMARTHOST_PROBE_SENDER,
                            probed.text);
        return;
    }
    case CLIENT_OVER:
        smarthost_probe_over(c, event->outcome);
        return;
    default:
        abort(); /* there is no mail */
    }
}

/* Whether a login may be in cleartext depends on the address. */
static bool
smarthost_probe_log_in(struct smarthost_probe *c, struct credentials **login)
{
    struct outcome why;
    *login = NULL;
    if (c->target->kind == TARGET_MX ||
        credentials_new(login, c->settings.loop, c->settings.secrets,
                        c->settings.tokens, c->target, c->at, &c->now->address, &why))
        return true;
    smarthost_probe_remember(c, &why);
    return false;
}

static void
smarthost_probe_converse(struct smarthost_probe *c, struct net_connection *connection)
{
    struct credentials *login;
    const char *helo = target_helo(c->target);
    if (!smarthost_probe_log_in(c, &login)) {
        net_abort(&connection);
        loop_post(c->settings.loop, &c->task, smarthost_probe_fail, c);
        return;
    }
    const struct client_login *how = credentials_login(login);
    struct security_question question = {.target = c->target,
                                         .host = c->now->name,
                                         .place = c->at,
                                         .has_failed = c->clear == c->now,
                                         .needs_tls = how != NULL && !how->may_be_clear,
                                         .demand = exchange_demand(c->lookup, c->now),
                                         .domain = c->host};
    address_race_name(c->now, &c->peer);
    security_decide(&question, &c->security);
    struct client_connection_settings settings = {
        .loop = c->settings.loop,
        .events = c->settings.events,
        .hostname = helo != NULL ? helo : c->settings.hostname,
        .timeout_scale = c->target->timeout_scale > 0 ? c->target->timeout_scale : 1,
        .connection = connection,
        .peer = c->peer,
        .login = login,
        .security = c->security,
        .tls = c->settings.tls};
    c->connection = client_connection_new(&settings, smarthost_probe_on_client, c);
}

/* --- Connections ------------------------------------------------------------------ */

static void
smarthost_probe_on_connecting(void *context, const struct happy_eyeballs_event *event)
{
    struct smarthost_probe *c = context;
    struct outcome outcome;
    switch (event->kind) {
    case HAPPY_EYEBALLS_TRYING:
    case HAPPY_EYEBALLS_BEATEN:
        return;
    case HAPPY_EYEBALLS_CONNECTED:
        c->now = &c->hosts[event->which];
        smarthost_probe_converse(c, event->connection);
        return;
    case HAPPY_EYEBALLS_FAILED:
        address_race_name(&c->hosts[event->which], &c->peer);
        outcome = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
                               "connect to %s: %s", c->peer.remote, event->why);
        smarthost_probe_remember(c, &outcome);
        return;
    case HAPPY_EYEBALLS_OVER:
        loop_post(c->settings.loop, &c->task, smarthost_probe_fail, c);
        return;
    }
}

/* only: that address alone; NULL: all. */
static void
smarthost_probe_connect(struct smarthost_probe *c, const struct mx_lookup_host *only)
{
    struct happy_eyeballs_settings settings = {
        .loop = c->settings.loop,
        .net = c->settings.net,
        .sources = &c->settings.sources,
        .timeout_ms = c->settings.connect_timeout_ms,
        .head_start_ms = HAPPY_EYEBALLS_HEAD_START_MS};
    size_t count = 1;
    if (only != NULL)
        c->order[0] = (size_t)(only - c->hosts);
    else
        for (count = 0; count < ADDRESSES_MAX && c->order[count] != SIZE_MAX; count++)
            ;
    happy_eyeballs_free(&c->connecting);
    c->connecting = happy_eyeballs_new(&settings, c->hosts, c->order, count,
                                       smarthost_probe_on_connecting, c);
    bool tries = happy_eyeballs_go_on(c->connecting);
    assert(tries);
}

/* The host is not used, or is not there any more. */
static void
smarthost_probe_miss(struct smarthost_probe *c, const char *only)
{
    const char *why = exchange_objection(c->lookup, only);
    struct outcome gone =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.5", "%s",
                     why != NULL ? why : "it has no address that can be used");
    smarthost_probe_remember(c, &gone);
    loop_post(c->settings.loop, &c->task, smarthost_probe_fail, c);
}

static void
smarthost_probe_on_found(void *context, const struct mx_lookup_answer *answer)
{
    struct smarthost_probe *c = context;
    const char *only = c->settings.only;
    if (answer->count == 0 &&
        (only == NULL || exchange_objection(c->lookup, only) == NULL)) {
        smarthost_probe_remember(c, &answer->outcome);
        loop_post(c->settings.loop, &c->task, smarthost_probe_fail, c);
        return;
    }
    c->hosts = answer->hosts;
    size_t count = 0;
    for (size_t i = 0; i < answer->count && count < ADDRESSES_MAX; i++)
        if (only == NULL ||
            text_equal_nocase(text_from(only), text_from(answer->hosts[i].name)))
            c->order[count++] = i;
    c->order[count] = SIZE_MAX;
    if (count > 0)
        smarthost_probe_connect(c, NULL);
    else
        smarthost_probe_miss(c, only);
}

struct smarthost_probe *
smarthost_probe_new(const struct smarthost_probe_settings *settings,
                    const struct target *target, size_t at, const char *sender,
                    smarthost_probe_done *done, void *context)
{
    struct smarthost_probe *c = memory_new(sizeof(*c));
    bool is_mx = target->kind == TARGET_MX;
    struct target_host host = {.host = text_from(is_mx ? settings->domain : "")};
    if (!is_mx)
        host = target_host(target, at);
    assert(is_mx || target->kind == TARGET_SMTP);
    c->settings = *settings;
    c->settings.sources = target->bind;
    bind_address_complete(&c->settings.sources, &settings->sources);
    c->target = target;
    c->at = at;
    c->sender = sender;
    c->done = done;
    c->context = context;
    text_copy(c->host, sizeof(c->host), host.host);
    struct exchange_query query = {
        .dane = is_mx && settings->dane,
        .sts = is_mx ? settings->sts : NULL,
        .mx = {.name = c->host,
               .by_mx = is_mx || target->look_up_mx,
               .smarthost = !is_mx,
               .hostname = settings->hostname,
               .sources = &c->settings.sources,
               .skip_v4 = settings->skip_v4,
               .skip_v6 = settings->skip_v6,
               .port = host.port != 0 ? host.port : settings->smtp_port,
               .address_limit =
                   settings->only != NULL ? MX_LOOKUP_ADDRESS_MAX : ADDRESSES_MAX}
    };
    c->lookup = exchange_find(settings->loop, settings->net, settings->dns, &query,
                              smarthost_probe_on_found, c);
    return c;
}

void
smarthost_probe_free(struct smarthost_probe **probe)
{
    struct smarthost_probe *c = *probe;
    *probe = NULL;
    if (c == NULL)
        return;
    loop_unpost(c->settings.loop, &c->task);
    client_connection_free(&c->connection);
    happy_eyeballs_free(&c->connecting);
    exchange_free(&c->lookup);
    loop_release(c->settings.loop, free, c);
}
