/* The scheduler's machine: sites that lack a token to log in with. */
#include "sched/sched_internal.h"

/* An awaited token changes nothing for a site whose login has failed: its mail is on
 * disk until there is one. */
static void
site_set_token(struct sched *s, struct site *site, enum sched_token token)
{
    struct sites *sites = &s->destinations.sites;
    switch (token) {
    case SCHED_TOKEN_FAILED:
        site_lose_token(sites, site);
        sched_site_prune(s, site);
        sched_settle_dead(s, site);
        return;
    case SCHED_TOKEN_NONE:
    case SCHED_TOKEN_THERE:
        site_gain_token(sites, site);
        sched_site_recall(s, site);
        return;
    case SCHED_TOKEN_AWAITED:
        return;
    }
}

/* The share keeps the transport while its sites are updated: the last of them may free
 * itself. */
static void
transport_set_token(struct sched *s, struct transport *transport)
{
    struct sites *sites = &s->destinations.sites;
    struct site *site, *next;
    const char *why;
    enum sched_token old = transport->token;
    transport->token =
        token_table_find(&sites->transports.tokens, &transport->target, &why);
    if (old == transport->token && old <= SCHED_TOKEN_THERE)
        return;
    transport_share(transport);
    HASH_ITER (hh, transport->sites, site, next) {
        site_set_token(s, site, transport->token);
        site_update(sites, site, s->now_ms);
    }
    transport_close(&sites->transports, transport);
}

void
sched_set_token(struct sched *s, int64_t now_ms, const struct sched_login *login,
                enum sched_token token, const char *why)
{
    struct transports *transports = &s->destinations.sites.transports;
    struct transport *transport, *next;
    sched_tick(s, now_ms);
    if (!token_table_set(&transports->tokens, login, token, why))
        return;
    HASH_ITER (hh, transports->by_target, transport, next)
        if (target_has_user(&transport->target))
            transport_set_token(s, transport);
}
