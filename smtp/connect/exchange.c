/* Adds their demands to the hosts of a domain.
 *
 * mx_lookup finds the hosts; then the TLSA records of all of them are asked for at the
 * same time. Each name is asked once, for any number of addresses. The policy of the
 * domain is asked for beside both. */
#include "smtp/connect/exchange.h"

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

static mx_lookup_found exchange_on_hosts;

struct exchange_host {
    struct exchange *exchange;
    char name[DNS_NAME_MAX];
    char base[DNS_NAME_MAX]; /* the name whose TLSA records are looked up */
    struct dns_query *query; /* while that goes on */
    bool is_unknown;         /* they could not be */
    bool is_forbidden;       /* by the policy */
    struct security_demand demand;
    struct tls_dane_record *records; /* NULL: none */
    char *bytes;                     /* of them */
};

struct exchange {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct mx_lookup_query query;
    char hostname[DNS_NAME_MAX];
    size_t limit; /* of addresses that are wanted */
    bool dane, required;
    struct sts_cache *sts; /* NULL: no policies */
    uint16_t port;
    char domain[DNS_NAME_MAX];
    mx_lookup_found *done;
    void *context;
    struct mx_lookup *lookup;
    const struct mx_lookup_answer *found;
    struct sts_query *asked; /* while the policy is looked up */
    bool is_unsure;          /* it could not be */
    enum sts_mode mode;
    char *patterns; /* of the policy; NULL: there is none */
    struct exchange_host *hosts;
    size_t host_count, waiting;
    struct mx_lookup_host *permitted;
    struct mx_lookup_answer answer;
    uint64_t mark;
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

/* DANE goes before: a policy must not lift its demand (RFC 8461 §2). */
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

/* A host may be used under any policy, or not yet. */
static void
exchange_await_policy(struct exchange *x, struct exchange_host *h)
{
    if (h->demand.proof == SECURITY_PROOF_DANE || h->is_unknown)
        return;
    h->is_unknown = true;
    snprintf(x->why, sizeof(x->why),
             EXCHANGE_UNSURE "%.200s is not known yet: too many others are looked up",
             x->domain);
}

/* --- The mark --------------------------------------------------------------------- */

/* Lengths go with the bytes, so that no other list has the same. */
static void
exchange_mark_add(struct digest *d, struct text bytes)
{
    char length[32];
    snprintf(length, sizeof(length), "%zu:", bytes.length);
    digest_add(d, text_from(length));
    digest_add(d, bytes);
}

static int
exchange_compare_lines(const void *a, const void *b)
{
    return memcmp(a, b, DIGEST_SIZE);
}

/* In any order: that of DNS answers changes. */
static void
exchange_mark_lines(struct digest *d, unsigned char (*lines)[DIGEST_SIZE], size_t count)
{
    char number[32];
    qsort(lines, count, DIGEST_SIZE, exchange_compare_lines);
    snprintf(number, sizeof(number), "%zu;", count);
    digest_add(d, text_from(number));
    digest_add(d, text_of((char *)lines, count * DIGEST_SIZE));
}

static void
exchange_mark_name(struct digest *d, struct text name)
{
    char lower[DNS_NAME_MAX];
    text_copy(lower, sizeof(lower), name);
    text_lower(lower, strlen(lower));
    exchange_mark_add(d, text_from(lower));
}

/* A certificate below a trust anchor may be for the domain instead of the host, which
 * proves nothing to another domain. */
static void
exchange_mark_host(const struct exchange *x, const struct exchange_host *h,
                   unsigned char line[DIGEST_SIZE])
{
    const struct security_demand *demand = &h->demand;
    unsigned char records[DNS_TLSA_MAX][DIGEST_SIZE];
    struct digest d;
    bool anchors = false;
    for (size_t i = 0; i < demand->record_count; i++) {
        const struct tls_dane_record *r = &demand->records[i];
        unsigned char fields[3] = {r->usage, r->selector, r->matching};
        digest_begin(&d);
        digest_add(&d, text_of((char *)fields, sizeof(fields)));
        digest_add(&d, r->data);
        digest_end(&d, records[i]);
        anchors |= r->usage == 2;
    }
    digest_begin(&d);
    exchange_mark_name(&d, text_from(h->name));
    exchange_mark_name(&d, demand->base);
    exchange_mark_name(&d, text_from(anchors ? x->domain : ""));
    exchange_mark_add(&d, h->is_unknown ? TEXT("unknown") : TEXT(""));
    exchange_mark_lines(&d, records, demand->record_count);
    digest_end(&d, line);
}

static void
exchange_mark_hosts(const struct exchange *x, struct digest *d)
{
    unsigned char(*lines)[DIGEST_SIZE] = memory_array(x->host_count, DIGEST_SIZE);
    for (size_t i = 0; i < x->host_count; i++)
        exchange_mark_host(x, &x->hosts[i], lines[i]);
    exchange_mark_lines(d, lines, x->host_count);
    free(lines);
}

/* Which of all its hosts the policy allows: domains with the same ones share sessions. */
static void
exchange_mark_policy(const struct exchange *x, struct digest *d)
{
    unsigned char(*lines)[DIGEST_SIZE] =
        memory_array(x->found->set_count + 1, DIGEST_SIZE);
    size_t count = 0;
    for (size_t i = 0; i < x->found->set_count; i++) {
        struct digest line;
        if (!sts_matches(x->patterns, x->found->set[i].name))
            continue;
        digest_begin(&line);
        exchange_mark_name(&line, x->found->set[i].name);
        digest_end(&line, lines[count++]);
    }
    exchange_mark_lines(d, lines, count);
    free(lines);
}

static void
exchange_make_mark(struct exchange *x)
{
    struct digest d;
    unsigned char out[DIGEST_SIZE];
    bool dane = false, sts = x->patterns != NULL && x->mode == STS_MODE_ENFORCE;
    for (size_t i = 0; i < x->host_count; i++)
        dane |= x->hosts[i].demand.record_count > 0;
    if (!dane && !sts)
        return;
    digest_begin(&d);
    digest_add(&d, dane ? TEXT("dane;") : TEXT(";"));
    if (dane)
        exchange_mark_hosts(x, &d);
    digest_add(&d, sts ? TEXT("sts;") : TEXT(";"));
    if (sts)
        exchange_mark_policy(x, &d);
    digest_end(&d, out);
    memcpy(&x->mark, out, sizeof(x->mark));
    x->mark |= 1; /* never 0, also with the bits added above it */
}

/* --- The end, with the hosts ------------------------------------------------------- */

/* RFC 8689 §4.2.1 */
static bool
exchange_is_proven(const struct exchange_host *h)
{
    return h != NULL && (h->demand.proof == SECURITY_PROOF_DANE ||
                         h->demand.proof == SECURITY_PROOF_STS);
}

static bool
exchange_permits(const struct exchange *x, const struct exchange_host *h)
{
    return (h == NULL || (!h->is_unknown && !h->is_forbidden)) &&
           (!x->required || exchange_is_proven(h));
}

bool
exchange_is_unsure(const struct exchange *x)
{
    for (size_t i = 0; i < x->host_count; i++)
        if (x->hosts[i].is_unknown)
            return true;
    return false;
}

/* A demand that is not known yet may be known later. */
static struct outcome
exchange_refuse(const struct exchange *x)
{
    if (!x->required || exchange_is_unsure(x))
        return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.5", "%s", x->why);
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.7.10",
                        "the sender requires TLS (REQUIRETLS): %s%.200s",
                        x->why[0] != '\0'
                            ? x->why
                            : "neither DANE nor MTA-STS proves the mail hosts of ",
                        x->why[0] != '\0' ? "" : x->domain);
}

static void
exchange_finish(struct exchange *x)
{
    const struct mx_lookup_answer *found = x->found;
    x->answer = *found;
    for (size_t i = 0; i < x->host_count; i++)
        if (x->patterns != NULL)
            exchange_apply_policy(x, &x->hosts[i]);
        else if (x->is_unsure)
            exchange_await_policy(x, &x->hosts[i]);
    bool forbidden = false;
    x->permitted = memory_array(found->count + 1, sizeof(*x->permitted));
    x->answer.hosts = x->permitted;
    x->answer.count = 0;
    for (size_t i = 0; i < found->count; i++) {
        const struct exchange_host *h = exchange_host_of(x, found->hosts[i].name);
        forbidden |= h != NULL && h->is_forbidden;
        if (x->answer.count < x->limit && exchange_permits(x, h))
            x->permitted[x->answer.count++] = found->hosts[i];
    }
    exchange_make_mark(x);
    if (found->count > 0 && x->answer.count == 0)
        x->answer.outcome = exchange_refuse(x);
    if (x->patterns != NULL)
        sts_cache_note_hosts(x->sts, x->domain, x->answer.count == 0 && forbidden);
    x->done(x->context, &x->answer);
}

/* Whether there is a demand, and more hosts may be there than were looked up: those that
 * the policy allows may be among them, and a chance choice of hosts would be another
 * demand each time. */
static bool
exchange_is_narrow(const struct exchange *x)
{
    bool demands = x->patterns != NULL && x->mode == STS_MODE_ENFORCE;
    for (size_t i = 0; i < x->host_count; i++)
        demands |= x->hosts[i].demand.record_count > 0 || x->hosts[i].is_unknown;
    return demands && x->query.address_limit < MX_LOOKUP_ADDRESS_MAX &&
           x->found->count >= (size_t)x->query.address_limit;
}

static void
exchange_forget_hosts(struct exchange *x)
{
    for (size_t i = 0; i < x->host_count; i++) {
        free(x->hosts[i].records);
        free(x->hosts[i].bytes);
    }
    free(x->hosts);
    x->hosts = NULL;
    x->host_count = 0;
}

static void
exchange_widen(struct exchange *x)
{
    exchange_forget_hosts(x);
    x->found = NULL;
    mx_lookup_free(&x->lookup);
    x->query.address_limit = MX_LOOKUP_ADDRESS_MAX;
    x->lookup =
        mx_lookup_find(x->loop, x->net, x->dns, &x->query, exchange_on_hosts, x);
}

/* Without a host no demand matters. */
static void
exchange_go_on(struct exchange *x)
{
    if (x->found == NULL || x->waiting > 0)
        return;
    if (x->found->count == 0)
        sts_cache_cancel(&x->asked);
    if (x->asked != NULL)
        return;
    if (exchange_is_narrow(x))
        exchange_widen(x);
    else
        exchange_finish(x);
}

static void
exchange_on_policy(void *context, const struct sts_policy *policy, bool is_unknown)
{
    struct exchange *x = context;
    x->asked = NULL;
    x->is_unsure = is_unknown;
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
                                         .base = text_from(h->base)};
}

static dns_answered exchange_on_tlsa;

static void
exchange_ask_tlsa(struct exchange_host *h, const char *base)
{
    char name[TLSA_NAME_MAX];
    text_copy(h->base, sizeof(h->base), text_from(base));
    snprintf(name, sizeof(name), "_%u._tcp.%s", (unsigned)h->exchange->port, h->base);
    h->query = dns_find_tlsa(h->exchange->dns, name, exchange_on_tlsa, h);
}

static void
exchange_host_ends(struct exchange_host *h)
{
    assert(h->exchange->waiting > 0);
    h->exchange->waiting--;
    exchange_go_on(h->exchange);
}

static void
exchange_host_is_unknown(struct exchange_host *h, const char *what,
                         const struct dns_answer *answer)
{
    h->is_unknown = true;
    snprintf(h->exchange->why, sizeof(h->exchange->why),
             "%s of %s cannot be looked up: %s", what, h->name, answer->reason);
}

/* RFC 7672 §2.1.1: that there is no record needs no proof, since the host's address is
 * secure and its zone can be asked; records that are not validated are not used. */
static void
exchange_on_tlsa(void *context, const struct dns_answer *answer)
{
    struct exchange_host *h = context;
    h->query = NULL;
    if (answer->status == DNS_TRY_AGAIN) {
        exchange_host_is_unknown(h, "TLSA records", answer);
    } else if (answer->status == DNS_FOUND && answer->secure) {
        exchange_take_records(h, answer);
    } else if (strcmp(h->base, h->name) != 0) {
        exchange_ask_tlsa(h, h->name);
        return;
    }
    exchange_host_ends(h);
}

/* RFC 7672 §2.1.3: an alias whose end is not validated, but which is itself, has records
 * at its own name alone. */
static void
exchange_on_alias(void *context, const struct dns_answer *answer)
{
    struct exchange_host *h = context;
    h->query = NULL;
    if (answer->status == DNS_FOUND && answer->secure) {
        exchange_ask_tlsa(h, h->name);
        return;
    }
    if (answer->status == DNS_TRY_AGAIN)
        exchange_host_is_unknown(h, "alias", answer);
    exchange_host_ends(h);
}

/* An address that is not validated may be an attacker's, and many servers of zones that
 * are not signed fail on TLSA questions. */
static void
exchange_add_host(struct exchange *x, const struct mx_lookup_host *found)
{
    struct exchange_host *h = &x->hosts[x->host_count++];
    bool is_alias = found->canonical[0] != '\0';
    h->exchange = x;
    text_copy(h->name, sizeof(h->name), text_from(found->name));
    if (!x->dane || !x->found->secure || (!found->secure && !is_alias))
        return;
    x->waiting++;
    if (found->secure)
        exchange_ask_tlsa(h, is_alias ? found->canonical : h->name);
    else
        h->query = dns_find_alias(x->dns, h->name, exchange_on_alias, h);
}

static void
exchange_on_hosts(void *context, const struct mx_lookup_answer *found)
{
    struct exchange *x = context;
    x->found = found;
    bool demands = (x->dane && found->secure) || x->asked != NULL ||
                   x->patterns != NULL || x->is_unsure;
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
    x->net = net;
    x->dns = dns;
    x->query = query->mx;
    x->query.name = x->domain;
    if (query->mx.hostname != NULL)
        x->query.hostname = x->hostname;
    text_copy(x->hostname, sizeof(x->hostname),
              text_from(query->mx.hostname != NULL ? query->mx.hostname : ""));
    x->limit = (size_t)query->mx.address_limit;
    x->dane = query->dane && query->mx.by_mx;
    x->required = query->required;
    x->port = query->mx.port;
    text_copy(x->domain, sizeof(x->domain), text_from(query->mx.name));
    x->done = done;
    x->context = context;
    x->lookup = mx_lookup_find(loop, net, dns, &query->mx, exchange_on_hosts, x);
    if (query->mx.by_mx && x->domain[0] != '[')
        x->sts = query->sts;
    if (x->sts != NULL)
        x->asked = sts_cache_ask(x->sts, x->domain, exchange_on_policy, x);
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

void
exchange_describe(const struct exchange *x, const char *host, char *out, size_t size)
{
    const struct exchange_host *h = exchange_host_of(x, host);
    size_t records = h != NULL ? h->demand.record_count : 0;
    bool usable = h != NULL && h->demand.proof == SECURITY_PROOF_DANE;
    out[0] = '\0';
    if (records > 0)
        snprintf(out, size, "DANE (%zu TLSA %s%s)", records,
                 records == 1 ? "record" : "records",
                 usable ? "" : ", none of a known kind");
    size_t at = strlen(out);
    if (x->patterns != NULL)
        snprintf(out + at, size - at, "%sMTA-STS (%s)", at > 0 ? " and " : "",
                 sts_mode_word(x->mode));
}

const char *
exchange_objection(const struct exchange *x, const char *host)
{
    const struct exchange_host *h = exchange_host_of(x, host);
    if (h != NULL && h->is_unknown && x->is_unsure)
        return "the MTA-STS policy of the domain is not known yet";
    if (h != NULL && h->is_unknown)
        return "its TLSA records (DANE) cannot be looked up";
    return h != NULL && h->is_forbidden ? "the MTA-STS policy of the domain does not "
                                          "name it"
                                        : NULL;
}

uint64_t
exchange_mark(const struct exchange *x)
{
    return x->mark;
}

bool
exchange_has_asked(const struct exchange *x)
{
    return x->dane || x->sts != NULL;
}

static void
exchange_release(void *object)
{
    struct exchange *x = object;
    exchange_forget_hosts(x);
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
