/* The rights of the client of a session: rates, senders, recipients, quotas. The answers
 * to the machine's questions at MAIL and RCPT. */
#include "smtp/session/session_internal.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "queue/manager/expansion.h"
#include "smtp/access/refusals.h"

#include <stdlib.h>

/* Counts one of that kind for the client. Fragments between our hosts are exempt. */
static bool
session_take(struct server_session *s, enum client_usage_kind kind,
             struct outcome *refusal)
{
    struct session_host *host = s->host;
    return host->clients == NULL || server_is_redirect(&s->server) ||
           client_usage_take(host->clients, &s->rules->clients, &s->peer, kind,
                             loop_monotonic_ms(host->loop), refusal);
}

/* Clients of ours, and devices, often have no valid name. */
static bool
session_is_checked(const struct server_session *s)
{
    return !server_may_relay(&s->server) && !s->server.lmtp && !s->options.legacy &&
           !server_is_redirect(&s->server);
}

/* The rate comes after the checks of the sender: MAIL that they refuse is free. */
void
session_admit(struct server_session *s)
{
    struct outcome refusal;
    const struct server *server = &s->server;
    const struct senders *senders = s->senders != NULL ? s->senders : s->rules->senders;
    bool admitted = s->trusted || server_is_redirect(server) ||
                    senders_permit(senders, server->user, server->offer.may_relay,
                                   server_sender(server), &refusal);
    if (admitted && session_is_checked(s))
        admitted = policy_check_mail(&s->rules->check, text_from(server->helo),
                                     server_sender(server), s->rules->hostname,
                                     net_local(s->connection), &refusal);
    admitted = admitted && session_take(s, CLIENT_USAGE_MESSAGE, &refusal) &&
               queue_admits(s->host->queue, server_expected_size(server), &refusal);
    server_admitted(&s->server, admitted ? NULL : &refusal);
}

/* --- Quotas ----------------------------------------------------------------------- */

/* After all other checks, so that only recipients that are accepted count. */
static bool
session_reserve(struct server_session *s, struct outcome *refusal)
{
    struct manager *manager = s->host->manager;
    const struct server *server = &s->server;
    struct quotas_refusal why;
    if (manager == NULL || quotas_are_empty(manager_quotas(manager)) ||
        !server_may_relay(server) || server_is_redirect(server))
        return true;
    if (s->claim == NULL)
        s->claim = memory_new(sizeof(*s->claim));
    struct quotas_sender sender = {.user = text_from(server->user),
                                   .uid = server->uid != SERVER_NO_UID ? server->uid
                                                                       : QUOTAS_NO_UID,
                                   .address = server_sender(server)};
    if (quotas_take(manager_quotas(manager), &sender, 1,
                    loop_monotonic_ms(s->host->loop), s->claim, &why))
        return true;
    manager_tell_quota(manager, &why);
    *refusal = why.outcome;
    return false;
}

void
session_settle(struct server_session *s, unsigned sent)
{
    struct manager *manager = s->host->manager;
    if (s->claim == NULL)
        return;
    quotas_settle(manager_quotas(manager), s->claim, sent,
                  loop_monotonic_ms(s->host->loop));
    if (sent > 0)
        manager_note_quotas(manager);
    free(s->claim);
    s->claim = NULL;
}

/* --- Recipients ------------------------------------------------------------------- */

/* Aliases and SRS; not for fragments between our hosts, which have been expanded. */
static void
session_expand(struct server_session *s, struct expansion *x)
{
    const struct session_host *host = s->host;
    const struct server *server = &s->server;
    const struct expansion_rules rules = {
        .routes = server_is_redirect(server) ? NULL : host->routes,
        .aliases = host->aliases,
        .srs = host->srs,
        .verp = host->verp};
    const struct expansion_question question = {.address =
                                                    server_recipient_normal(server),
                                                .sender = server_sender(server),
                                                .ours = server_may_relay(server),
                                                .now_ms = loop_now_ms(host->loop)};
    expansion_make(x, &rules, &question);
    s->expanded += x->count;
    if (x->long_senders > 0 && refusals_admit(host->refusals, server->client))
        log_say(host->log, LOG_LEVEL_WARNING, "smtpd", NULL,
                "from=<%.*s> is too long for SRS: forwarded mail keeps it",
                TEXT_ARGS(question.sender));
}

/* Not for fragments between our hosts, nor where the daemon takes the mail later. The
 * members of an alias are no business of an untrusted client. */
static bool
session_suppresses(const struct server_session *s, struct text recipient,
                   struct outcome *refusal)
{
    const struct server *server = &s->server;
    if (s->host->manager == NULL || server_is_redirect(server) ||
        !manager_suppresses(s->host->manager, server_sender(server), recipient,
                            refusal))
        return false;
    if (!server_may_relay(server))
        (void)outcome_refuse(refusal, 550, "5.1.1", "no such user here");
    return true;
}

static bool
session_routes(const struct server_session *s, bool may_relay,
               const struct address *recipient, struct outcome *refusal)
{
    const struct server *server = &s->server;
    return policy_recipient(s->host->routes, may_relay, server_sender(server),
                            server_requires_tls(server) ? TARGET_REQUIRES_TLS
                                                        : TARGET_ASKS_NOTHING,
                            recipient, refusal);
}

static bool
session_member(const struct server_session *s, const struct expansion_member *m,
               struct outcome *refusal)
{
    struct address address;
    return address_parse(m->address, &address)
               ? session_routes(s, true, &address, refusal) &&
                     !session_suppresses(s, m->address, refusal)
               : outcome_refuse(refusal, 553, "5.1.3", "bad recipient address syntax");
}

/* One that exists is enough: the others are returned to the sender, or to the owner. An
 * alias is as a user; addresses of SRS come from anybody, and lead to nobody else. */
static bool
session_reaches(const struct server_session *s, const struct expansion *x,
                struct outcome *refusal)
{
    const struct server *server = &s->server;
    bool may_relay = server_may_relay(server) || server_is_redirect(server);
    switch (x->kind) {
    case EXPANSION_NONE:
        return session_routes(s, may_relay, server_recipient(server), refusal) &&
               !session_suppresses(s, server_recipient_normal(server), refusal);
    case EXPANSION_FORGED:
        return outcome_refuse(refusal, 550, "5.1.1",
                              "no such address: the SRS hash is wrong or too old");
    case EXPANSION_FORGED_RETURN:
        if (s->host->manager != NULL)
            manager_forged_return(s->host->manager, MANAGER_FORGED_TAG);
        return outcome_refuse(refusal, 550, "5.1.1",
                              "no such address: the tag is wrong or too old");
    case EXPANSION_RETURN:
        return true;
    case EXPANSION_UNSURE:
        return outcome_refuse(refusal, 451, "4.3.0",
                              "addresses of SRS cannot be verified now, try again "
                              "later");
    case EXPANSION_TOO_MANY:
        return outcome_refuse(refusal, 452, "4.5.3", "too many addresses in the alias");
    case EXPANSION_EMPTY:
        return outcome_refuse(refusal, 550, "5.1.1", "the alias has no address");
    case EXPANSION_SRS:
        break;
    case EXPANSION_ONE:
    case EXPANSION_SEVERAL:
    case EXPANSION_LIST:
        if (!policy_reaches(s->host->routes, may_relay, server_recipient(server),
                            refusal))
            return false;
        break;
    }
    for (unsigned i = 0; i < x->count; i++)
        if (session_member(s, &x->members[i], refusal))
            return true;
    return false;
}

static bool
session_joins(const struct server_session *s, const struct expansion *x)
{
    const struct route_table *routes = s->host->routes;
    struct text sender = server_sender(&s->server);
    struct address address;
    if (x->count == 0)
        return policy_joins(routes, sender, server_recipient(&s->server));
    for (unsigned i = 0; i < x->count; i++)
        if (address_parse(x->members[i].address, &address) &&
            policy_joins(routes, sender, &address))
            return true;
    return false;
}

/* RCPT has taken one token; each member of an alias is a recipient. */
static void
session_owe(struct server_session *s, unsigned added)
{
    if (added > 1 && s->host->clients != NULL && !server_may_relay(&s->server) &&
        !server_is_redirect(&s->server))
        client_usage_owe(s->host->clients, &s->rules->clients, &s->peer, added - 1,
                         loop_monotonic_ms(s->host->loop));
}

/* The rate comes first: recipients refused for another reason count, too. Without a
 * manager (sendmail -bs) the daemon expands the recipients stored here. */
void
session_check(struct server_session *s)
{
    struct outcome refusal;
    const struct server *server = &s->server;
    struct expansion x = {.kind = EXPANSION_NONE};
    bool taken = session_take(s, CLIENT_USAGE_RECIPIENT, &refusal);
    if (taken)
        session_expand(s, &x);
    taken = taken && session_reaches(s, &x, &refusal);
    if (taken && session_is_checked(s))
        taken = policy_check_recipient(&s->rules->check, server_sender(server),
                                       server_accepted(server), &refusal);
    taken = taken && session_reserve(s, &refusal);
    if (taken && server->rules->refuses_partial && session_joins(s, &x))
        server_recipient_joins(&s->server);
    if (taken && x.count > 0 && s->host->manager != NULL)
        server_recipient_expands(&s->server, &x);
    session_owe(s, server_recipient_checked(&s->server, taken ? NULL : &refusal));
    expansion_free(&x);
}
