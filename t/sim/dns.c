/* The resolver's stand-in: canned answers after a delay in the loop's time. */
#include "t/sim/sim_dns.h"

#include "base/dns/dns.h"
#include "base/dns/dns_reply.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

struct message_index {
    char name[DNS_NAME_MAX];
    enum dns_status status; /* DNS_FOUND: as the records say */
    struct dns_answer mx, six, four, texts, tlsa, hosts;
    bool secure, secure_alias, alias_fails;
    char alias[DNS_NAME_MAX]; /* CNAME; "": none */
    UT_hash_handle hh;
};

struct dns {
    const char *any_text;
    struct loop *loop;
    struct message_index *table;
    struct dns_query *queries;
    int64_t delay_ms;
    bool is_busy;
    size_t questions;
    enum dns_trust trust;
};

struct dns_query {
    struct dns *dns;
    char name[DNS_NAME_MAX]; /* "": can be no name */
    enum dns_type type;      /* DNS_TYPE_A: addresses of both families */
    struct net_address literal;
    struct loop_timer timer;
    dns_answered *done; /* NULL: nobody waits any more */
    void *context;
    struct dns_query *prev, *next;
};

static struct message_index *
known_for(struct dns *dns, const char *name)
{
    char host[DNS_NAME_MAX];
    struct message_index *known;
    bool good = dns_host_copy(host, text_from(name));
    assert(good);
    HASH_FIND_STR(dns->table, host, known);
    if (known == NULL) {
        known = memory_new(sizeof(*known));
        strcpy(known->name, host);
        HASH_ADD_STR(dns->table, name, known);
    }
    return known;
}

static const char *
reason(enum dns_status status)
{
    switch (status) {
    case DNS_FOUND:
        break;
    case DNS_NO_DATA:
        return "has no such record";
    case DNS_NO_NAME:
        return "does not exist (NXDOMAIN)";
    case DNS_TRY_AGAIN:
        return "cannot be looked up now";
    }
    return "";
}

static void
answer(struct dns_query *query, struct dns_answer *out)
{
    struct message_index *known;
    memset(out, 0, sizeof(*out));
    if (query->literal.family != NET_NONE) {
        out->addresses[out->count++] = query->literal;
        return;
    }
    HASH_FIND_STR(query->dns->table, query->name, known);
    if (known == NULL && query->type == DNS_TYPE_TXT && query->dns->any_text != NULL)
        out->texts[out->count++] = text_from(query->dns->any_text);
    else if (known == NULL)
        out->status = DNS_NO_NAME;
    else if (known->status != DNS_FOUND)
        out->status = known->status;
    else if (query->type == DNS_TYPE_MX)
        *out = known->mx;
    else if (query->type == DNS_TYPE_TXT)
        *out = known->texts;
    else if (query->type == DNS_TYPE_TLSA)
        *out = known->tlsa;
    else if (query->type == DNS_TYPE_PTR)
        *out = known->hosts;
    else if (query->type == DNS_TYPE_CNAME && known->alias[0] != '\0')
        text_copy(out->hosts[out->count++], DNS_NAME_MAX, text_from(known->alias));
    else if (query->type != DNS_TYPE_CNAME)
        dns_answer_merge(&known->six, &known->four, out);
    if (known != NULL && query->type == DNS_TYPE_A)
        text_copy(out->canonical, sizeof(out->canonical), text_from(known->alias));
    if (known != NULL && query->type == DNS_TYPE_CNAME && known->alias_fails)
        *out = (struct dns_answer){.status = DNS_TRY_AGAIN};
    if (out->status == DNS_FOUND && out->count == 0)
        out->status = DNS_NO_DATA;
    bool secure = known != NULL && (query->type == DNS_TYPE_CNAME ? known->secure_alias : known->secure);
    out->secure = dns_is_trusted(query->dns) && secure &&
                  out->status != DNS_TRY_AGAIN;
    if (out->status == DNS_FOUND)
        out->ttl_s = SIM_DNS_TTL_S;
    else
        snprintf(out->reason, sizeof(out->reason), "%.100s %s", query->name,
                 reason(out->status));
}

static void
let_go(struct dns_query *query)
{
    struct dns *dns = query->dns;
    query->done = NULL;
    loop_timer_stop(dns->loop, &query->timer);
    DL_DELETE(dns->queries, query);
    loop_release(dns->loop, free, query);
}

static void
tell(void *context)
{
    struct dns_query *query = context;
    dns_answered *done = query->done;
    struct dns_answer out;
    answer(query, &out);
    let_go(query);
    done(query->context, &out);
}

static struct dns_query *
query_start(struct dns *dns, const char *name, enum dns_type type, dns_answered *done,
            void *context)
{
    struct dns_query *query = memory_new(sizeof(*query));
    assert(done != NULL);
    query->dns = dns;
    query->type = type;
    query->done = done;
    query->context = context;
    if (!dns_host_copy(query->name, text_from(name)))
        query->name[0] = '\0';
    dns->questions++;
    DL_APPEND(dns->queries, query);
    loop_timer_start(dns->loop, &query->timer, dns->delay_ms, tell, query);
    return query;
}

static void
release_dns(void *object)
{
    struct dns *dns = object;
    struct message_index *known, *next;
    HASH_ITER (hh, dns->table, known, next) {
        HASH_DEL(dns->table, known);
        free(known);
    }
    free(dns);
}

void
sim_dns_mx(struct dns *dns, const char *name, unsigned preference, const char *host)
{
    struct dns_answer *mx = &known_for(dns, name)->mx;
    struct dns_mx *row = &mx->mx[mx->count++];
    assert(mx->count <= DNS_MX_MAX);
    row->preference = preference;
    if (host[0] != '\0') {
        bool good = dns_host_copy(row->host, text_from(host));
        assert(good);
    }
}

void
sim_dns_forget(struct dns *dns, const char *name)
{
    struct message_index *known = known_for(dns, name);
    HASH_DEL(dns->table, known);
    free(known);
}

void
sim_dns_address(struct dns *dns, const char *name, const char *ip)
{
    struct message_index *known = known_for(dns, name);
    struct net_address address;
    bool good = net_address_parse_ip(text_from(ip), &address);
    assert(good);
    good =
        dns_answer_add(address.family == NET_IPV6 ? &known->six : &known->four,
                       address.family, address.ip, address.family == NET_IPV6 ? 16 : 4);
    assert(good);
}

void
sim_dns_text(struct dns *dns, const char *name, const char *text)
{
    struct dns_answer *texts = &known_for(dns, name)->texts;
    assert(texts->count < DNS_TEXTS_MAX);
    texts->texts[texts->count++] = text_from(text);
}

void
sim_dns_text_any(struct dns *dns, const char *text)
{
    dns->any_text = text;
}

void
sim_dns_text_change(struct dns *dns, const char *name, const char *text)
{
    known_for(dns, name)->texts.count = 0;
    sim_dns_text(dns, name, text);
}

void
sim_dns_tlsa(struct dns *dns, const char *name, unsigned parameters, struct text data)
{
    struct dns_answer *tlsa = &known_for(dns, name)->tlsa;
    assert(tlsa->count < DNS_TLSA_MAX);
    tlsa->tlsa[tlsa->count++] = (struct dns_tlsa){
        (unsigned char)(parameters / 100), (unsigned char)(parameters / 10 % 10),
        (unsigned char)(parameters % 10), data};
}

void
sim_dns_host(struct dns *dns, const char *ip, const char *host)
{
    struct net_address address;
    char name[DNS_NAME_MAX];
    bool good = net_address_parse_ip(text_from(ip), &address);
    assert(good);
    dns_reverse_name(&address, name);
    struct dns_answer *hosts = &known_for(dns, name)->hosts;
    assert(hosts->count < DNS_HOSTS_MAX);
    text_copy(hosts->hosts[hosts->count++], DNS_NAME_MAX, text_from(host));
}

void
sim_dns_alias(struct dns *dns, const char *name, const char *of, bool secure)
{
    struct message_index *known = known_for(dns, name);
    text_copy(known->alias, sizeof(known->alias), text_from(of));
    known->secure_alias = secure;
}

void
sim_dns_alias_fails(struct dns *dns, const char *name)
{
    known_for(dns, name)->alias_fails = true;
}

void
sim_dns_secure(struct dns *dns, const char *name, bool secure)
{
    known_for(dns, name)->secure = secure;
}

void
sim_dns_status(struct dns *dns, const char *name, enum dns_status status)
{
    known_for(dns, name)->status = status;
}

void
sim_dns_busy(struct dns *dns, bool is_busy)
{
    dns->is_busy = is_busy;
}

void
sim_dns_delay(struct dns *dns, int64_t delay_ms)
{
    dns->delay_ms = delay_ms;
}

size_t
sim_dns_questions(const struct dns *dns)
{
    return dns->questions;
}

struct dns *
dns_new(struct loop *loop, struct text servers, char *error, size_t error_size)
{
    struct dns *dns = memory_new(sizeof(*dns));
    (void)servers;
    (void)error;
    (void)error_size;
    dns->loop = loop;
    dns->delay_ms = SIM_DNS_DELAY_MS;
    sim_dns_address(dns, "localhost", "::1");
    sim_dns_address(dns, "localhost", "127.0.0.1");
    return dns;
}

/* The stand-in has no name servers: no resolv.conf is read, and none has a fault. */
struct dns *
dns_new_following(struct loop *loop, const char *resolv_conf, char *error,
                  size_t error_size)
{
    (void)resolv_conf;
    return dns_new(loop, TEXT(""), error, error_size);
}

void
dns_listen(struct dns *dns, dns_said *said, void *context)
{
    (void)dns;
    (void)said;
    (void)context;
}

void
dns_reload(struct dns *dns)
{
    (void)dns;
}

bool
dns_trouble(struct dns *dns, char *out, size_t size)
{
    (void)dns;
    (void)out;
    (void)size;
    return false;
}

void
dns_free(struct dns **dns)
{
    struct dns *d = *dns;
    *dns = NULL;
    if (d == NULL)
        return;
    while (d->queries != NULL)
        let_go(d->queries);
    loop_release(d->loop, release_dns, d);
}

const char *
dns_version(void)
{
    return "simulated";
}

void
dns_set_patience(struct dns *dns, int64_t try_ms, int tries)
{
    assert(dns->queries == NULL && try_ms > 0 && tries > 0);
}

struct dns_query *
dns_find_mx(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    return query_start(dns, name, DNS_TYPE_MX, done, context);
}

struct dns_query *
dns_find_texts(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    return query_start(dns, name, DNS_TYPE_TXT, done, context);
}

struct dns_query *
dns_find_tlsa(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    return query_start(dns, name, DNS_TYPE_TLSA, done, context);
}

struct dns_query *
dns_find_alias(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    return query_start(dns, name, DNS_TYPE_CNAME, done, context);
}

struct dns_query *
dns_find_hosts(struct dns *dns, const struct net_address *address, dns_answered *done,
               void *context)
{
    char name[DNS_NAME_MAX];
    dns_reverse_name(address, name);
    return query_start(dns, name, DNS_TYPE_PTR, done, context);
}

/* Nothing is known of the root. */
struct dns_query *
dns_find_published(struct dns *dns, enum dns_published what, const char *name,
                   dns_answered *done, void *context)
{
    static const enum dns_type types[] = {DNS_TYPE_A, DNS_TYPE_PTR};
    return query_start(dns, name, types[what], done, context);
}

void
dns_set_trust(struct dns *dns, enum dns_trust trust)
{
    dns->trust = trust;
}

bool
dns_is_trusted(const struct dns *dns)
{
    return dns->trust == DNS_TRUST_YES;
}

struct dns_query *
dns_find_addresses(struct dns *dns, const char *name, dns_answered *done, void *context)
{
    struct dns_query *query = query_start(dns, name, DNS_TYPE_A, done, context);
    if (!net_address_parse_ip(text_from(name), &query->literal))
        query->literal.family = NET_NONE;
    return query;
}

bool
dns_is_in_line(const struct dns_query *query)
{
    return query->dns->is_busy;
}

void
dns_cancel(struct dns_query **query)
{
    struct dns_query *q = *query;
    *query = NULL;
    if (q != NULL && q->done != NULL)
        let_go(q);
}
