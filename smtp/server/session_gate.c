/* What the client of a session may do: rates, senders, recipients, quotas. The answers to
 * the machine's questions at MAIL and RCPT. */
#include "smtp/server/session_internal.h"

#include "base/memory.h"

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
    bool admitted =
        s->trusted || server_is_redirect(server) ||
        senders_permit(s->rules->senders, server->user, server->offer.may_relay,
                       server_sender(server), &refusal);
    if (admitted && session_is_checked(s))
        admitted = sanity_mail(&s->rules->check, text_from(server->helo),
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

/* The rate comes first: recipients refused for another reason count, too. */
void
session_check(struct server_session *s)
{
    struct outcome refusal;
    const struct server *server = &s->server;
    bool taken =
        session_take(s, CLIENT_USAGE_RECIPIENT, &refusal) &&
        policy_recipient(s->host->routes,
                         server_may_relay(server) || server_is_redirect(server),
                         server_sender(server), server_recipient(server), &refusal);
    if (taken && session_is_checked(s))
        taken = sanity_recipient(&s->rules->check, server_sender(server),
                                 server_accepted(server), &refusal);
    taken = taken && session_reserve(s, &refusal);
    if (taken && server->rules->refuses_partial &&
        policy_joins(s->host->routes, server_sender(server), server_recipient(server)))
        server_recipient_joins(&s->server);
    server_recipient_checked(&s->server, taken ? NULL : &refusal);
}
