/* Finds the hosts that a session may connect to, and the TLS that each connection must
 * have. */
#include "smtp/delivery/delivery_internal.h"

#include "base/log/log.h"

#include <stdio.h>
#include <string.h>

enum { LMTP_PORT = 24 };

static uint16_t
delivery_port(const struct delivery_session *s)
{
    if (s->target->kind == TARGET_MX)
        return s->delivery->settings.smtp_port;
    if (s->target->port != 0)
        return s->target->port;
    return s->target->kind == TARGET_LMTP ? LMTP_PORT : s->delivery->settings.smtp_port;
}

static bool
delivery_asks_dane(const struct delivery_session *s)
{
    const struct delivery *d = s->delivery;
    return s->target->kind == TARGET_MX && s->target->tls != TARGET_TLS_NONE &&
           d->settings.dane && !s->target->no_dane && dns_is_trusted(d->dns);
}

static bool
delivery_asks_policy(const struct delivery_session *s)
{
    const struct delivery *d = s->delivery;
    return s->target->kind == TARGET_MX && s->target->tls != TARGET_TLS_NONE &&
           d->settings.mta_sts && !s->target->no_sts && tls_client_has_anchors(d->tls);
}

void
delivery_ask_hosts(struct delivery_session *s, const char *domain,
                   mx_lookup_found *done)
{
    struct delivery *d = s->delivery;
    bool mx = s->target->kind == TARGET_MX;
    int wanted = d->settings.mx_address_limit, most = MX_LOOKUP_ADDRESS_MAX;
    s->site = text_hash_nocase(TEXT_HASH, text_from(mx ? domain : s->target->host));
    struct exchange_query query = {
        .dane = delivery_asks_dane(s),
        .sts = delivery_asks_policy(s) ? d->sts : NULL,
        .mx = {.name = mx ? domain : s->target->host,
               .by_mx = mx || s->target->look_up_mx,
               .smarthost = !mx,
               .hostname = d->hostname,
               .sources = &s->sources,
               .skip_v4 = s->skip_v4,
               .skip_v6 = s->skip_v6,
               .port = delivery_port(s),
               .address_limit = wanted < 1      ? 1
                                : wanted > most ? most
                                                : wanted}
    };
    if (target_host_count(s->target) > 1)
        s->relays =
            relayhosts_find(d->loop, d->net, d->dns, s->target, &query.mx, done, s);
    else
        s->exchange = exchange_find(d->loop, d->net, d->dns, &query, done, s);
}

/* Other trust anchors have proven something else. */
static uint64_t
delivery_demand(const struct delivery_session *s)
{
    uint64_t mark = exchange_mark(s->exchange);
    return mark == 0 ? 0 : mark ^ s->delivery->tls_number << 32;
}

/* A session carries the mail of any domain of its site whose demand it has proven. */
bool
delivery_belongs_to_site(struct delivery_session *s,
                         const struct mx_lookup_answer *answer)
{
    char hosts[SITE_KEY_KEY_MAX];
    if (s->target->kind != TARGET_MX || answer->set_count == 0)
        return true;
    size_t length =
        site_key_key(s->delivery->providers, answer->set, answer->set_count, hosts);
    s->site = text_hash_nocase(TEXT_HASH, text_of(hosts, length));
    if (s->exchange != NULL && exchange_has_asked(s->exchange))
        manager_session_demand(s->delivery->manager, s->session, delivery_demand(s),
                               EXCHANGE_VALID_MS);
    return manager_session_found(s->delivery->manager, s->session,
                                 text_of(hosts, length));
}

/* Decided anew for each connection: the fall-back to cleartext is for one address only.
 */
void
delivery_decide_security(struct delivery_session *s, const struct mx_lookup_host *host)
{
    const struct client_login *login = credentials_login(s->login);
    struct security_question question = {
        .target = s->target,
        .host = host->name,
        .has_failed = s->clear == host,
        .needs_tls = login != NULL && !login->may_be_clear,
        .demand = s->exchange != NULL ? exchange_demand(s->exchange, host) : NULL,
        .domain = s->domain};
    security_decide(&question, &s->security);
}

/* --- Results ---------------------------------------------------------------------- */

static void
delivery_count_proof(const struct delivery_session *s, enum tls_reports_result result)
{
    /* A policy that tests demands nothing, so that a proof is one of DANE. */
    enum tls_reports_policy policy = TLS_REPORTS_DANE;
    if (s->security.proof == SECURITY_PROOF_STS ||
        s->security.proof == SECURITY_PROOF_NONE)
        policy = TLS_REPORTS_STS;
    tls_reports_count(s->delivery->tls_reports, policy, text_from(s->domain),
                      s->security.host, result);
}

static void
delivery_report_tested(const struct delivery_session *s)
{
    const char *tls = client_connection_tls(s->connection), *why = NULL;
    enum tls_reports_result result = TLS_REPORTS_SUCCESS;
    if (s->security.is_foreign) {
        result = TLS_REPORTS_VALIDATION;
        why = "the policy does not name it";
    } else if (tls[0] == '\0') {
        result = TLS_REPORTS_NO_STARTTLS;
        why = "no TLS";
    } else if (text_ends_nocase(text_from(tls), TEXT("/unverified"))) {
        result = TLS_REPORTS_VALIDATION;
        why = "its certificate is not valid for it";
    }
    delivery_count_proof(s, result);
    struct log_line line;
    log_start(&line, s->delivery->log, LOG_LEVEL_INFO, "sts", NULL);
    log_sentence(&line, "%s: sts=testing/%s%s%s, domain=%s", s->peer.where,
                 why != NULL ? "fail" : "ok", why != NULL ? ": " : "",
                 why != NULL ? why : "", s->domain);
    log_end(&line);
}

void
delivery_report_greeted(const struct delivery_session *s)
{
    if (s->security.proof != SECURITY_PROOF_NONE)
        delivery_count_proof(s, TLS_REPORTS_SUCCESS);
    else if (s->security.is_tested)
        delivery_report_tested(s);
}

/* A reply of the host, such as to MAIL, says nothing of TLS. */
void
delivery_report_failed(const struct delivery_session *s, const struct outcome *outcome)
{
    if (s->security.proof != SECURITY_PROOF_NONE && outcome->code == 0 &&
        strncmp(outcome->enhanced, "4.7.", 4) == 0)
        delivery_count_proof(s, tls_reports_judge(outcome));
}

void
delivery_report_no_host(const struct delivery_session *s, const struct outcome *outcome)
{
    bool sts = text_starts(text_from(outcome->text), TEXT("MTA-STS of "));
    if (text_starts(text_from(outcome->text), TEXT(EXCHANGE_UNSURE)))
        return; /* the domain is not asked yet */
    if (s->exchange != NULL && strcmp(outcome->enhanced, "4.7.5") == 0)
        tls_reports_count(s->delivery->tls_reports,
                          sts ? TLS_REPORTS_STS : TLS_REPORTS_DANE,
                          text_from(s->domain), TEXT(""), tls_reports_judge(outcome));
}
