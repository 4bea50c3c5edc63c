/* Adds to the hosts of a domain what they must prove.
 *
 * mx_lookup finds the hosts; then the TLSA records of all of them are asked for at the
 * same time. Each name is asked once, whatever the number of its addresses. */
#include "smtp/client/exchange.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/tls/tls_dane.h"

#include <assert.h>
#include <inttypes.h>
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
    struct security_demand demand;
    struct tls_dane_record records[TLS_DANE_RECORDS_MAX];
    char *bytes; /* of the records */
};

struct exchange {
    struct loop *loop;
    struct dns *dns;
    bool dane;
    uint16_t port;
    char domain[DNS_NAME_MAX];
    mx_lookup_found *done;
    void *context;
    struct mx_lookup *lookup;
    const struct mx_lookup_answer *found;
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

static void
exchange_make_mark(struct exchange *x)
{
    bool dane = false, anchors = false;
    for (size_t i = 0; i < x->host_count; i++) {
        dane |= x->hosts[i].demand.proof != SECURITY_PROOF_NONE;
        anchors |= exchange_has_anchors(&x->hosts[i]);
    }
    if (anchors)
        snprintf(x->mark, sizeof(x->mark), "dane-%016" PRIx64,
                 text_hash_nocase(TEXT_HASH, text_from(x->domain)));
    else if (dane)
        snprintf(x->mark, sizeof(x->mark), "dane");
}

static void
exchange_finish(struct exchange *x)
{
    const struct mx_lookup_answer *found = x->found;
    x->answer = *found;
    x->permitted = memory_array(found->count + 1, sizeof(*x->permitted));
    x->answer.hosts = x->permitted;
    x->answer.count = 0;
    for (size_t i = 0; i < found->count; i++) {
        const struct exchange_host *h = exchange_host_of(x, found->hosts[i].name);
        if (h == NULL || !h->is_unknown)
            x->permitted[x->answer.count++] = found->hosts[i];
    }
    exchange_make_mark(x);
    if (found->count > 0 && x->answer.count == 0)
        x->answer.outcome =
            outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.5", "%s", x->why);
    x->done(x->context, &x->answer);
}

/* --- TLSA ------------------------------------------------------------------------- */

static void
exchange_take_records(struct exchange_host *h, const struct dns_answer *answer)
{
    size_t size = 0;
    for (size_t i = 0; i < answer->count; i++)
        size += answer->tlsa[i].data.length;
    char *to = h->bytes = memory_new(size + 1);
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
    if (--x->waiting == 0)
        exchange_finish(x);
}

static void
exchange_ask(struct exchange *x, const char *host)
{
    struct exchange_host *h = &x->hosts[x->host_count++];
    char name[TLSA_NAME_MAX];
    h->exchange = x;
    text_copy(h->name, sizeof(h->name), text_from(host));
    snprintf(name, sizeof(name), "_%u._tcp.%s", (unsigned)x->port, host);
    h->query = dns_find_tlsa(x->dns, name, exchange_on_tlsa, h);
    x->waiting++;
}

/* An address that is not validated may be an attacker's, and many servers of zones that
 * are not signed fail on TLSA questions. */
static void
exchange_on_hosts(void *context, const struct mx_lookup_answer *found)
{
    struct exchange *x = context;
    x->found = found;
    if (x->dane && found->secure && found->count > 0) {
        x->hosts = memory_array(found->count, sizeof(*x->hosts));
        memset(x->hosts, 0, found->count * sizeof(*x->hosts));
        for (size_t i = 0; i < found->count; i++)
            if (found->hosts[i].secure &&
                exchange_host_of(x, found->hosts[i].name) == NULL)
                exchange_ask(x, found->hosts[i].name);
    }
    if (x->waiting == 0)
        exchange_finish(x);
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
    return x;
}

const char *
exchange_asks(const struct exchange *x)
{
    if (x->found != NULL)
        return "TLSA records of MX hosts";
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

static void
exchange_release(void *object)
{
    struct exchange *x = object;
    for (size_t i = 0; i < x->host_count; i++)
        free(x->hosts[i].bytes);
    free(x->hosts);
    free(x->permitted);
    free(x);
}

void
exchange_free(struct exchange **exchange)
{
    struct exchange *x = *exchange;
    if (x == NULL)
        return;
    mx_lookup_free(&x->lookup);
    for (size_t i = 0; i < x->host_count; i++)
        if (x->hosts[i].query != NULL)
            dns_cancel(&x->hosts[i].query);
    loop_release(x->loop, exchange_release, x);
    *exchange = NULL;
}
