/* Finds the hosts that a session may connect to, and the TLS that each connection must
 * have. */
#include "base/log/log.h"
#include "base/net/net.h"
#include "sched/limits/refusal.h"
#include "smtp/delivery/delivery_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- Source addresses, and families that a session may use ------------------------ */

static bool
is_permitted(const struct delivery_session *s, enum target_family family)
{
    enum target_family wanted = s->target->family;
    if (wanted == TARGET_FAMILY_UNSET)
        wanted = s->delivery->settings.smtp_family;
    return wanted == TARGET_FAMILY_UNSET || wanted == TARGET_FAMILY_ANY ||
           wanted == family;
}

/* Whether the source address of that family exists; missing gets one that does not. */
static bool
is_there(const struct delivery_session *s, enum net_family family,
         char missing[NET_ADDRESS_TEXT_MAX])
{
    struct net_address address;
    if (!bind_address_for(&s->sources, family, &address))
        return false;
    if (net_can_bind(&address))
        return true;
    net_address_ip(&address, missing);
    return false;
}

bool
delivery_choose_source(struct delivery_session *s, struct outcome *why)
{
    struct delivery *d = s->delivery;
    char missing[NET_ADDRESS_TEXT_MAX] = "";
    s->sources = s->target->bind;
    /* Other hosts of ours may know this one by its source address. */
    bind_address_complete(&s->sources,
                          target_peer(s->target) ? &d->peer_sources : &d->sources);
    s->skip_v4 = !is_permitted(s, TARGET_FAMILY_IPV4);
    s->skip_v6 = !is_permitted(s, TARGET_FAMILY_IPV6);
    bool v4 = !s->skip_v4 && is_there(s, NET_IPV4, missing);
    bool v6 = !s->skip_v6 && is_there(s, NET_IPV6, missing);
    if (missing[0] == '\0')
        return true;
    /* Mail must not leave from an address that the settings do not name. */
    s->skip_v4 = !v4;
    s->skip_v6 = !v6;
    *why = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.3.5",
                        "this host does not have the source address %s of %s", missing,
                        s->target->bind.has_v4 || s->target->bind.has_v6 ? "bind="
                                                                         : "smtp_bind");
    return v4 || v6;
}

/* --- Sites that refuse our IPv6 address ------------------------------------------- */

/* Mail of such a site goes over IPv4 for a day.
 *
 * Receivers demand more of IPv6: a PTR record, SPF or DKIM. Such a refusal says nothing
 * about the mail, which IPv4 may carry. So it is deferred for a moment, and the site's
 * sessions over IPv6 end. */

#define REST_MS    (INT64_C(24) * 60 * 60 * 1000)
#define NO_IPV4_MS (INT64_C(60) * 60 * 1000)

/* NULL: the site may be asked over IPv6. */
static struct ipv6_rest *
find_rest(struct delivery *d, uint64_t site, int64_t now_ms)
{
    for (size_t i = 0; i < DELIVERY_IPV6_RESTS_MAX; i++)
        if (d->ipv6_rests[i].until_ms > now_ms && d->ipv6_rests[i].site == site)
            return &d->ipv6_rests[i];
    return NULL;
}

/* The slot of the site, else the one that ends first: a rest that ends early costs one
 * refusal. */
static struct ipv6_rest *
rest_slot(struct delivery *d, uint64_t site, int64_t now_ms)
{
    struct ipv6_rest *best = find_rest(d, site, now_ms);
    for (size_t i = 0; best == NULL && i < DELIVERY_IPV6_RESTS_MAX; i++)
        if (d->ipv6_rests[i].until_ms <= now_ms)
            best = &d->ipv6_rests[i];
    if (best != NULL)
        return best;
    best = &d->ipv6_rests[0];
    for (size_t i = 1; i < DELIVERY_IPV6_RESTS_MAX; i++)
        if (d->ipv6_rests[i].until_ms < best->until_ms)
            best = &d->ipv6_rests[i];
    return best;
}

/* Without a route for IPv4 nothing but IPv6 can carry mail. */
static bool
site_rests(const struct delivery_session *s)
{
    struct delivery *d = s->delivery;
    int64_t now_ms = loop_monotonic_ms(d->loop);
    return now_ms < d->ipv6_rests_until_ms && now_ms >= d->no_ipv4_until_ms &&
           find_rest(d, s->site, now_ms) != NULL;
}

static bool
is_over_ipv6(const struct delivery_session *s)
{
    const struct mx_lookup_host *host = address_race_next(&s->candidates);
    return host != NULL && host->address.family == NET_IPV6;
}

bool
delivery_family_rests(const struct delivery_session *s)
{
    return s->connection != NULL && is_over_ipv6(s) && site_rests(s);
}

void
delivery_family_choose(struct delivery_session *s)
{
    if (site_rests(s) && address_race_have(&s->candidates, NET_IPV4))
        address_race_drop(&s->candidates, NET_IPV6);
}

/* No route, no address of ours, no IPv4 in the kernel. EHOSTUNREACH is not in it: a
 * router may say it of this host alone. */
static bool
is_without_ipv4(int error)
{
    return error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

void
delivery_family_failed(struct delivery_session *s, const struct mx_lookup_host *host,
                       int error)
{
    struct delivery *d = s->delivery;
    if (host->address.family == NET_IPV4 && is_without_ipv4(error))
        d->no_ipv4_until_ms = loop_monotonic_ms(d->loop) + NO_IPV4_MS;
}

bool
delivery_family_refused(struct delivery_session *s, const struct outcome *outcome)
{
    struct delivery *d = s->delivery;
    int64_t now = loop_monotonic_ms(d->loop);
    if (outcome->verdict == VERDICT_DELIVERED || !is_over_ipv6(s) ||
        !address_race_have(&s->candidates, NET_IPV4) || now < d->no_ipv4_until_ms ||
        !refusal_is_of_ipv6(outcome))
        return false;
    if (!site_rests(s))
        log_say(d->log, LOG_LEVEL_INFO, "smtp", NULL,
                "%s refuses our IPv6 address: using IPv4", s->peer.where);
    d->ipv6_rests_until_ms = now + REST_MS;
    *rest_slot(d, s->site, now) = (struct ipv6_rest){s->site, now + REST_MS};
    return true;
}

/* A single address without a route made it look as if there were no IPv4. */
static void
note_ipv4(struct delivery_session *s, const struct outcome *outcome)
{
    const struct mx_lookup_host *host = address_race_next(&s->candidates);
    if (host != NULL && host->address.family == NET_IPV4 && outcome->code != 0)
        s->delivery->no_ipv4_until_ms = 0;
}

struct outcome
delivery_family_judge(struct delivery_session *s, const struct outcome *outcome)
{
    struct outcome judged = *outcome;
    note_ipv4(s, outcome);
    if (!delivery_family_refused(s, outcome))
        return judged;
    judged.verdict = VERDICT_DEFERRED;
    judged.blame = BLAME_ADDRESS;
    judged.enhanced[0] = '4';
    return judged;
}

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

void
delivery_ask_hosts(struct delivery_session *s, const char *domain,
                   mx_lookup_found *done)
{
    struct delivery *d = s->delivery;
    bool mx = s->target->kind == TARGET_MX,
         asks = mx && s->target->tls != TARGET_TLS_NONE && /* the domain's demands */
                s->target->asks != TARGET_WAIVES_TLS;
    int wanted = d->settings.mx_address_limit, most = MX_LOOKUP_ADDRESS_MAX;
    s->site = text_hash_nocase(TEXT_HASH, text_from(mx ? domain : s->target->host));
    struct exchange_query query = {
        .dane =
            asks && d->settings.dane && !s->target->no_dane && dns_is_trusted(d->dns),
        .sts = asks && d->settings.mta_sts && !s->target->no_sts &&
                       tls_client_has_anchors(d->tls)
                   ? d->sts
                   : NULL,
        .required = mx && s->target->asks == TARGET_REQUIRES_TLS,
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
            mx_lookup_list_find(d->loop, d->net, d->dns, s->target, &query.mx, done, s);
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
        sched_session_demand(manager_sched(s->delivery->manager), s->session,
                             delivery_demand(s), EXCHANGE_VALID_MS);
    return manager_session_found(s->delivery->manager, s->session,
                                 text_of(hosts, length));
}

size_t
delivery_host_number(const struct delivery_session *s,
                     const struct mx_lookup_host *host)
{
    return s->relays != NULL ? mx_lookup_list_place(host) : 0;
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
        .place = delivery_host_number(s, host),
        .has_failed = s->clear == host,
        .needs_tls = login != NULL && !login->may_be_clear,
        .demand = s->exchange != NULL ? exchange_demand(s->exchange, host) : NULL,
        .domain = s->domain};
    security_decide(&question, &s->security);
}

/* --- REQUIRETLS (RFC 8689) --------------------------------------------------------- */

bool
delivery_lacks_requiretls(const struct outcome *outcome)
{
    return strcmp(outcome->enhanced, CLIENT_NO_REQUIRETLS) == 0;
}

/* That a handshake was cut off, or that records cannot be looked up, says nothing. */
bool
delivery_refuses_required(const struct outcome *outcome)
{
    if (delivery_lacks_requiretls(outcome))
        return true;
    enum tls_reports_result result = tls_reports_judge(outcome);
    return outcome->blame == BLAME_DEMAND && result != TLS_REPORTS_VALIDATION &&
           result != TLS_REPORTS_DNSSEC;
}

struct outcome
delivery_judge_required(const struct delivery_session *s, const struct outcome *why)
{
    struct outcome failed = *why;
    if (s->target->asks != TARGET_REQUIRES_TLS || why->verdict != VERDICT_DEFERRED ||
        !s->has_trouble || s->has_other_trouble || s->lacks_token)
        return failed;
    failed.verdict = VERDICT_FAILED;
    failed.blame = BLAME_MESSAGE;
    failed.code = 550;
    snprintf(failed.enhanced, sizeof(failed.enhanced), "%s",
             delivery_lacks_requiretls(why) ? "5.7.30" : "5.7.10");
    return failed;
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
        !delivery_lacks_requiretls(outcome) &&
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
