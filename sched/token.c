/* Logins by host, port and user; sites that lack a token to log in with. */
#include "sched/token.h"

#include "base/memory.h"
#include "sched/limits/reply_class.h"
#include "sched/route/secrets.h"
#include "sched/sched_internal.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct token_login {
    UT_hash_handle hh;
    enum sched_token token;
    char why[OUTCOME_TEXT_MAX];
    char key[SECRETS_KEY_MAX];
};

static struct token_login *
token_table_login(const struct token_table *table, struct text host, uint16_t port,
                  struct text user)
{
    char key[SECRETS_KEY_MAX];
    struct token_login *l = NULL;
    size_t length = secrets_key(host, port, user, key);
    if (length > 0)
        HASH_FIND(hh, table->by_login, key, length, l);
    return l;
}

static void
token_table_drop(struct token_table *table, struct token_login *l)
{
    HASH_DELETE(hh, table->by_login, l);
    free(l);
}

bool
token_table_set(struct token_table *table, const struct sched_login *login,
                enum sched_token token, const char *why)
{
    struct token_login *l =
        token_table_login(table, login->host, login->port, login->user);
    if (token == SCHED_TOKEN_NONE) {
        if (l != NULL)
            token_table_drop(table, l);
        return l != NULL;
    }
    if (l != NULL && l->token == token && strncmp(l->why, why, sizeof(l->why) - 1) == 0)
        return false;
    if (l == NULL) {
        l = memory_new(sizeof(*l));
        size_t length = secrets_key(login->host, login->port, login->user, l->key);
        if (length == 0) {
            free(l);
            return false;
        }
        HASH_ADD(hh, table->by_login, key, length, l);
    }
    l->token = token;
    (void)text_copy(l->why, sizeof(l->why), text_from(why));
    return true;
}

void
token_table_clear(struct token_table *table)
{
    struct token_login *l, *next;
    HASH_ITER (hh, table->by_login, l, next)
        token_table_drop(table, l);
}

/* A login for the port is more specific than one for all ports. */
enum sched_token
token_table_find(const struct token_table *table, const struct target *target,
                 const char **why)
{
    size_t hosts = target_host_count(target), failed = 0;
    enum sched_token token = SCHED_TOKEN_THERE;
    *why = "";
    if (table->by_login == NULL || target->kind != TARGET_SMTP)
        return token;
    for (size_t i = 0; i < hosts; i++) {
        struct target_host h = target_host(target, i);
        const struct token_login *l =
            h.user.length > 0 ? token_table_login(table, h.host, h.port, h.user) : NULL;
        if (l == NULL && h.user.length > 0)
            l = token_table_login(table, h.host, 0, h.user);
        if (l == NULL || l->token == SCHED_TOKEN_THERE)
            continue;
        if (l->token == SCHED_TOKEN_AWAITED || token == SCHED_TOKEN_THERE)
            *why = l->why;
        if (l->token == SCHED_TOKEN_AWAITED)
            return SCHED_TOKEN_AWAITED;
        token = SCHED_TOKEN_FAILED;
        failed++;
    }
    return failed == hosts ? token : SCHED_TOKEN_THERE;
}

/* --- Sites ----------------------------------------------------------------------- */

struct outcome
token_reason(const struct sites *set, const struct site *site)
{
    const char *why;
    (void)token_table_find(&set->transports.tokens, &site->transport->target, &why);
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, REPLY_CLASS_TOKEN_ENHANCED,
                        "%s", why);
}

/* As a death, so that mail does not stay in memory, and expires in time; but only a token
 * ends it, and it says nothing about the servers. */
void
token_lose(struct sites *set, struct site *site)
{
    struct outcome why = token_reason(set, site);
    token_gain(set, site);
    site_revive(set, site);
    site->reason = reason_open(&site->reasons, &why);
    site->suspended = reason_open(&site->reasons, &why);
    site->dead = site->lacks_token = true;
    site->has_greeted = site->is_due = false;
    site->dead_until_ms = INT64_MAX;
}

void
token_gain(struct sites *set, struct site *site)
{
    if (!site->lacks_token)
        return;
    site->lacks_token = false;
    set->dead_count++; /* which site_revive() takes back */
    site_revive(set, site);
}

/* An awaited token changes nothing for a site whose login has failed: its mail is on
 * disk until there is one. */
static void
site_set_token(struct sched *s, struct site *site, enum sched_token token)
{
    struct sites *sites = &s->destinations.sites;
    switch (token) {
    case SCHED_TOKEN_FAILED:
        token_lose(sites, site);
        sched_site_prune(s, site);
        sched_settle_dead(s, site);
        return;
    case SCHED_TOKEN_NONE:
    case SCHED_TOKEN_THERE:
        token_gain(sites, site);
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
sched_set_token(struct sched *s, const struct sched_login *login,
                enum sched_token token, const char *why)
{
    struct transports *transports = &s->destinations.sites.transports;
    struct transport *transport, *next;
    sched_tick(s);
    if (!token_table_set(&transports->tokens, login, token, why))
        return;
    HASH_ITER (hh, transports->by_target, transport, next)
        if (target_has_user(&transport->target))
            transport_set_token(s, transport);
}
