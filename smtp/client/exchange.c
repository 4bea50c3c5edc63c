/* Adds to the hosts of a domain what they must prove.
 *
 * mx_lookup finds the hosts; then the TLSA records of all of them are asked for at the
 * same time. Each name is asked once, whatever the number of its addresses. The policy of
 * the domain is asked for beside both. */
#include "smtp/client/exchange.h"

#include "base/crypto/digest.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/tls/tls_dane.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TLSA_NAME_MAX = DNS_NAME_MAX + 16 };

static_assert((int)DNS_TLSA_MAX <= (int)TLS_DANE_RECORDS_MAX, "all of them are kept");

struct exchange_host {
    struct exchange *exchange;
    char name[DNS_NAME_MAX];
    struct dns_query *query; /* while its TLSA records are looked up */
    bool is_unknown;         /* they could not be */
    bool is_forbidden;       /* by the policy */
    struct security_demand demand;
    struct tls_dane_record *records; /* NULL: none */
    char *bytes;                     /* of them */
};

struct exchange {
    struct loop *loop;
    struct dns *dns;
    bool dane, has_policies;
    uint16_t port;
    char domain[DNS_NAME_MAX];
    mx_lookup_found *done;
    void *context;
    struct mx_lookup *lookup;
    const struct mx_lookup_answer *found;
    struct sts_query *asked; /* while the policy is looked up */
    enum sts_mode mode;
    char *patterns; /* of the policy; NULL: there is none */
    struct exchange_host *hosts;
    size_t host_count, waiting;
    struct mx_lookup_host *permitted;
    struct mx_lookup_answer answer;
    char mark[EXCHANGE_MARK_MAX];
    char why[sizeof(((struct outcome *)NULL)->text)]; /* of a host that is omitted */
};

static struct exchange_host *
exchange_host_of(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->host_count; i++)
        if (strcmp(x->hosts[i].name, name) == 0)
            return &x->hosts[i];
    return NULL;
}

/* --- The end ---------------------------------------------------------------------- */

/* DANE goes before: a policy must not lift what it demands (RFC 8461 §2). */
static void
exchange_apply_policy(struct exchange *x, struct exchange_host *h)
{
    bool allowed = sts_matches(x->patterns, text_from(h->name));
    if (x->mode == STS_MODE_TESTING) {
        h->demand.is_tested = true;
        h->demand.is_foreign = !allowed;
    } else if (h->demand.proof == SECURITY_PROOF_DANE) {
        return;
    } else if (allowed) {
        h->demand = (struct security_demand){.proof = SECURITY_PROOF_STS};
    } else {
        h->is_forbidden = true;
        if (x->why[0] == '\0')
            snprintf(x->why, sizeof(x->why), "MTA-STS of %.200s does not allow %.200s",
                     x->domain, h->name);
    }
}

/* A certificate below a trust anchor may be for the domain instead of the host, which
 * proves nothing to another domain. */
static bool
exchange_has_anchors(const struct exchange_host *h)
{
    for (size_t i = 0; i < h->demand.record_count; i++)
        if (h->demand.records[i].usage == 2)
            return true;
    return false;
}

static int
exchange_compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Of names, in any order: no other set that anybody could choose has the same. */
static void
exchange_mark_names(struct exchange *x, const char *kind, char (*names)[DNS_NAME_MAX],
                    size_t count)
{
    struct digest d;
    unsigned char out[DIGEST_SIZE];
    char *to = x->mark + strlen(x->mark);
    qsort(names, count, DNS_NAME_MAX, exchange_compare_names);
    digest_begin(&d);
    for (size_t i = 0; i < count; i++)
        digest_add(&d, text_of(names[i], strlen(names[i]) + 1));
    digest_end(&d, out);
    snprintf(to, sizeof(x->mark) - (size_t)(to - x->mark),
             "%s%s%02x%02x%02x%02x%02x%02x%02x%02x", to > x->mark ? "+" : "", kind,
             out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7]);
}

/* Which of all its hosts the policy allows: domains with the same ones share sessions. */
static void
exchange_mark_policy(struct exchange *x)
{
    char allowed[DNS_MX_MAX][DNS_NAME_MAX];
    size_t count = 0;
    for (size_t i = 0; i < x->found->set_count && count < DNS_MX_MAX; i++) {
        struct text name = x->found->set[i].name;
        if (!sts_matches(x->patterns, name))
            continue;
        text_copy(allowed[count], DNS_NAME_MAX, name);
        text_lower(allowed[count], strlen(allowed[count]));
        count++;
    }
    exchange_mark_names(x, "sts-", allowed, count);
}

static void
exchange_make_mark(struct exchange *x)
{
    char domain[1][DNS_NAME_MAX];
    bool dane = false, anchors = false;
    for (size_t i = 0; i < x->host_count; i++) {
        enum security_proof proof = x->hosts[i].demand.proof;
        dane |= proof == SECURITY_PROOF_DANE || proof == SECURITY_PROOF_ENCRYPT;
        anchors |= exchange_has_anchors(&x->hosts[i]);
    }
    memcpy(domain[0], x->domain, DNS_NAME_MAX);
    text_lower(domain[0], strlen(domain[0]));
    if (anchors)
        exchange_mark_names(x, "dane-", domain, 1);
    else if (dane)
        snprintf(x->mark, sizeof(x->mark), "dane");
    if (x->patterns != NULL && x->mode == STS_MODE_ENFORCE)
        exchange_mark_policy(x);
}

static void
exchange_finish(struct exchange *x)
{
    const struct mx_lookup_answer *found = x->found;
    x->answer = *found;
    for (size_t i = 0; i < x->host_count && x->patterns != NULL; i++)
        exchange_apply_policy(x, &x->hosts[i]);
    x->permitted = memory_array(found->count + 1, sizeof(*x->permitted));
    x->answer.hosts = x->permitted;
    x->answer.count = 0;
    for (size_t i = 0; i < found->count; i++) {
        const struct exchange_host *h = exchange_host_of(x, found->hosts[i].name);
        if (h == NULL || (!h->is_unknown && !h->is_forbidden))
            x->permitted[x->answer.count++] = found->hosts[i];
    }
    exchange_make_mark(x);
    if (found->count > 0 && x->answer.count == 0)
        x->answer.outcome =
            outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.5", "%s", x->why);
    x->done(x->context, &x->answer);
}

/* Without a host no demand matters. */
static void
exchange_go_on(struct exchange *x)
{
    if (x->found == NULL || x->waiting > 0)
        return;
    if (x->found->count == 0)
        sts_cache_cancel(&x->asked);
    if (x->asked == NULL)
        exchange_finish(x);
}

static void
exchange_on_policy(void *context, const struct sts_policy *policy)
{
    struct exchange *x = context;
    x->asked = NULL;
    if (policy != NULL && policy->mode != STS_MODE_NONE) {
        x->mode = policy->mode;
        x->patterns = memory_string(policy->patterns);
    }
    exchange_go_on(x);
}

/* --- TLSA ------------------------------------------------------------------------- */

static void
exchange_take_records(struct exchange_host *h, const struct dns_answer *answer)
{
    size_t size = 0;
    for (size_t i = 0; i < answer->count; i++)
        size += answer->tlsa[i].data.length;
    char *to = h->bytes = memory_new(size + 1);
    h->records = memory_array(answer->count, sizeof(*h->records));
    for (size_t i = 0; i < answer->count; i++) {
        const struct dns_tlsa *r = &answer->tlsa[i];
        h->records[i] = (struct tls_dane_record){r->usage, r->selector, r->matching,
                                                 text_of(to, r->data.length)};
        memcpy(to, r->data.at, r->data.length);
        to += r->data.length;
    }
    bool usable = tls_dane_count_usable(h->records, answer->count) > 0;
    h->demand = (struct security_demand){.proof = usable ? SECURITY_PROOF_DANE
                                                         : SECURITY_PROOF_ENCRYPT,
                                         .records = h->records,
                                         .record_count = answer->count,
                                         .base = text_from(h->name)};
}

/* RFC 7672 §2.1.1: that there is no record needs no proof, since the host's address is
 * secure and its zone can be asked; records that are not validated are not used. */
static void
exchange_on_tlsa(void *context, const struct dns_answer *answer)
{
    struct exchange_host *h = context;
    struct exchange *x = h->exchange;
    h->query = NULL;
    if (answer->status == DNS_TRY_AGAIN) {
        h->is_unknown = true;
        snprintf(x->why, sizeof(x->why), "TLSA records of %s cannot be looked up: %s",
                 h->name, answer->reason);
    } else if (answer->status == DNS_FOUND && answer->secure) {
        exchange_take_records(h, answer);
    }
    assert(x->waiting > 0);
    x->waiting--;
    exchange_go_on(x);
}

/* An address that is not validated may be an attacker's, and many servers of zones that
 * are not signed fail on TLSA questions. */
static void
exchange_add_host(struct exchange *x, const struct mx_lookup_host *found)
{
    struct exchange_host *h = &x->hosts[x->host_count++];
    char name[TLSA_NAME_MAX];
    h->exchange = x;
    text_copy(h->name, sizeof(h->name), text_from(found->name));
    if (!x->dane || !x->found->secure || !found->secure)
        return;
    snprintf(name, sizeof(name), "_%u._tcp.%s", (unsigned)x->port, h->name);
    h->query = dns_find_tlsa(x->dns, name, exchange_on_tlsa, h);
    x->waiting++;
}

static void
exchange_on_hosts(void *context, const struct mx_lookup_answer *found)
{
    struct exchange *x = context;
    x->found = found;
    bool demands =
        (x->dane && found->secure) || x->asked != NULL || x->patterns != NULL;
    if (demands && found->count > 0) {
        x->hosts = memory_array(found->count, sizeof(*x->hosts));
        memset(x->hosts, 0, found->count * sizeof(*x->hosts));
        for (size_t i = 0; i < found->count; i++)
            if (exchange_host_of(x, found->hosts[i].name) == NULL)
                exchange_add_host(x, &found->hosts[i]);
    }
    exchange_go_on(x);
}

/* --- The owner -------------------------------------------------------------------- */

struct exchange *
exchange_find(struct loop *loop, struct net *net, struct dns *dns,
              const struct exchange_query *query, mx_lookup_found *done, void *context)
{
    struct exchange *x = memory_new(sizeof(*x));
    x->loop = loop;
    x->dns = dns;
    x->dane = query->dane && query->mx.by_mx;
    x->port = query->mx.port;
    text_copy(x->domain, sizeof(x->domain), text_from(query->mx.name));
    x->done = done;
    x->context = context;
    x->lookup = mx_lookup_find(loop, net, dns, &query->mx, exchange_on_hosts, x);
    x->has_policies = query->sts != NULL && query->mx.by_mx && x->domain[0] != '[';
    if (x->has_policies)
        x->asked = sts_cache_ask(query->sts, x->domain, exchange_on_policy, x);
    return x;
}

const char *
exchange_asks(const struct exchange *x)
{
    if (x->found != NULL)
        return x->waiting > 0 ? "TLSA records of MX hosts" : "MTA-STS policy";
    return mx_lookup_asks_mx(x->lookup) ? "MX" : "addresses of MX hosts";
}

const struct security_demand *
exchange_demand(const struct exchange *x, const struct mx_lookup_host *host)
{
    const struct exchange_host *h = exchange_host_of(x, host->name);
    return h != NULL ? &h->demand : NULL;
}

const char *
exchange_mark(const struct exchange *x)
{
    return x->mark;
}

bool
exchange_has_asked(const struct exchange *x)
{
    return x->dane || x->has_policies;
}

static void
exchange_release(void *object)
{
    struct exchange *x = object;
    for (size_t i = 0; i < x->host_count; i++) {
        free(x->hosts[i].records);
        free(x->hosts[i].bytes);
    }
    free(x->hosts);
    free(x->permitted);
    free(x->patterns);
    free(x);
}

void
exchange_free(struct exchange **exchange)
{
    struct exchange *x = *exchange;
    if (x == NULL)
        return;
    mx_lookup_free(&x->lookup);
    sts_cache_cancel(&x->asked);
    for (size_t i = 0; i < x->host_count; i++)
        if (x->hosts[i].query != NULL)
            dns_cancel(&x->hosts[i].query);
    loop_release(x->loop, exchange_release, x);
    *exchange = NULL;
}
