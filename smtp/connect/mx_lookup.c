/* Finds the addresses that take a domain's mail: MX, their hosts, the loop check.
 *
 * The hosts of one preference are looked up together, since this host may be any of
 * them: only when all have answered is it known whether the group is used or ends the
 * list (RFC 5321 §5.1). Worse preferences are not looked up once enough addresses are
 * known. Hosts are sorted by preference; hosts[first] to hosts[end - 1] are the group
 * at work, and all before it are done. Every way ends in one mx_lookup_finish(), which
 * answers in a later turn, also for a literal that needs no DNS. */
#include "smtp/connect/mx_lookup.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "sched/route/bind_address.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Addresses of a host in one family; more are checked, not kept. */
enum { FAMILY_MAX = 16 };

struct family {
    size_t count;
    unsigned char ips[FAMILY_MAX][16];
};

struct host {
    struct mx_lookup *lookup;
    struct dns_query *query; /* while it is looked up */
    unsigned preference;
    uint64_t chance;   /* order among equals */
    bool own, unknown; /* its name or an address is ours; DNS could not tell */
    bool secure;
    char name[DNS_NAME_MAX], canonical[DNS_NAME_MAX];
    struct family v6, v4;
};

struct mx_lookup {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    bool by_mx, smarthost;
    bool no_name;  /* a host does not exist */
    bool is_alias; /* the domain is the alias of one that does not exist */
    bool loopback_v4, loopback_v6, skip_v4, skip_v6, skipped;
    char own_name[DNS_NAME_MAX];
    uint16_t port;
    size_t limit;
    char name[DNS_NAME_MAX];
    mx_lookup_found *done;
    void *context;
    struct dns_query *mx;
    struct loop_task answering;
    struct host **hosts; /* best preference first */
    size_t host_count;
    size_t first, end; /* the hosts of the preference at work */
    size_t waiting;    /* of those, without an answer */
    bool looped;
    bool unknown;
    char reason[160]; /* the last error of DNS */
    struct mx_lookup_host *found;
    struct exchange_name *set;
    struct mx_lookup_answer answer;
};

/* --- The end ---------------------------------------------------------------------- */

static void
answer_now(void *context)
{
    struct mx_lookup *x = context;
    x->done(x->context, &x->answer);
}

static void
mx_lookup_finish(struct mx_lookup *x)
{
    assert(x->answer.count <= x->limit);
    x->answer.hosts = x->found;
    if (x->by_mx && x->host_count > 0) {
        x->set = memory_array(x->host_count, sizeof(*x->set));
        for (size_t i = 0; i < x->host_count; i++)
            x->set[i] = (struct exchange_name){text_from(x->hosts[i]->name),
                                               x->hosts[i]->preference};
        x->answer.set = x->set;
        x->answer.set_count = x->host_count;
    }
    loop_post(x->loop, &x->answering, answer_now, x);
}

static void
finish_without(struct mx_lookup *x, struct outcome outcome)
{
    assert(x->answer.count == 0 && outcome.verdict != VERDICT_DELIVERED);
    /* An error in the settings is repaired by the operator: mail waits for that. */
    if (x->smarthost && outcome.verdict == VERDICT_FAILED) {
        outcome.verdict = VERDICT_DEFERRED;
        outcome.code = 0;
        text_copy(outcome.enhanced, sizeof(outcome.enhanced), TEXT("4.4.3"));
    }
    x->answer.outcome = outcome;
    mx_lookup_finish(x);
}

static void
finish_unknown(struct mx_lookup *x)
{
    finish_without(x, outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.3",
                                   "cannot look up %s: %s", x->name, x->reason));
}

static void
finish_no_name(struct mx_lookup *x)
{
    const char *name = x->is_alias          ? x->reason
                       : x->name[0] != '\0' ? x->name
                                            : "the address has no domain";
    finish_without(x, outcome_make(VERDICT_FAILED, BLAME_SITE, 550, "5.1.2",
                                   "Host or domain name not found: %s", name));
}

/* Programs that use the C library find such a name, but it could be another host behind
 * another network's search domain. */
static const char *
mx_lookup_hint(const struct mx_lookup *x)
{
    const char *dot = strchr(x->name, '.');
    bool is_short = dot == NULL || strchr(dot + 1, '.') == NULL;
    return !x->by_mx && x->no_name && is_short
               ? "; write the full name: search domains of resolv.conf are not used"
               : "";
}

/* All preferences that count have been looked up. Errors of DNS are checked before the
 * loop: a backup MX must not bounce mail because the name of the primary cannot be
 * looked up for some time. For the same reason mail waits if hosts preferred to this
 * one exist and have no address. */
static void
finish_hosts(struct mx_lookup *x)
{
    if (x->answer.count > 0)
        mx_lookup_finish(x);
    else if (x->unknown)
        finish_unknown(x);
    else if (x->looped && x->first > 0)
        finish_without(
            x, outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.4",
                            "no mail host of %s preferred to this host has an "
                            "address%s%s",
                            x->name, x->reason[0] != '\0' ? ": " : "", x->reason));
    else if (x->skipped && !x->looped)
        finish_without(x, outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.3.5",
                                       "no mail host of %s has an %s address, and the "
                                       "settings (family, source address) permit no "
                                       "other",
                                       x->name, x->skip_v6 ? "IPv4" : "IPv6"));
    else if (x->looped)
        finish_without(x, outcome_make(VERDICT_FAILED, BLAME_SITE, 0, "5.4.6",
                                       "mail for %s loops back to myself", x->name));
    else
        finish_without(x, outcome_make(VERDICT_FAILED, BLAME_SITE, 0, "5.4.4",
                                       "no mail host of %s has an address%s%s%s",
                                       x->name, x->reason[0] != '\0' ? ": " : "",
                                       x->reason, mx_lookup_hint(x)));
}

/* --- Addresses -------------------------------------------------------------------- */

static bool
is_mapped(const struct net_address *a)
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};
    return a->family == NET_IPV6 && memcmp(a->ip, prefix, sizeof(prefix)) == 0;
}

/* ::ffff:1.2.3.4 is 1.2.3.4; otherwise the checks of IPv4 addresses would miss it. */
static struct net_address
plain(const struct net_address *a, uint16_t port)
{
    struct net_address out = {.family = a->family, .port = port};
    if (is_mapped(a)) {
        out.family = NET_IPV4;
        memcpy(out.ip, a->ip + 12, 4);
    } else {
        memcpy(out.ip, a->ip, sizeof(out.ip));
    }
    return out;
}

/* Not the address of a host: "this network", multicast, reserved or broadcast. */
static bool
is_no_host(const struct net_address *a)
{
    static const unsigned char zero[16];
    switch (a->family) {
    case NET_IPV4:
        return a->ip[0] == 0 || a->ip[0] >= 224;
    case NET_IPV6:
        return memcmp(a->ip, zero, sizeof(zero)) == 0 || a->ip[0] == 0xff;
    case NET_NONE:
    case NET_UNIX:
    case NET_PASSED:
        break;
    }
    return true;
}

/* An MX must not lead to a service of this host that trusts loopback clients. A host
 * named by the operator may. */
static bool
is_forbidden_loopback(const struct mx_lookup *x, const struct net_address *a)
{
    bool open = a->family == NET_IPV6 ? x->loopback_v6 : x->loopback_v4;
    return !open && net_address_is_loopback(a);
}

/* Errors of single addresses are only noted: the host is used at its others. */
static void
host_add_address(struct host *h, const struct net_address *address)
{
    struct mx_lookup *x = h->lookup;
    struct net_address a = plain(address, x->port);
    if (is_no_host(&a)) {
        text_copy(x->reason, sizeof(x->reason), TEXT("not a host address"));
        return;
    }
    /* First, since this host by a loopback address is a loop, too. */
    if (net_is_own(x->net, &a)) {
        h->own = true;
    } else if (is_forbidden_loopback(x, &a)) {
        text_copy(x->reason, sizeof(x->reason),
                  TEXT("a loopback address, which only a route can name"));
        return;
    }
    if (a.family == NET_IPV6 ? x->skip_v6 : x->skip_v4) {
        x->skipped = true;
        return;
    }
    struct family *f = a.family == NET_IPV6 ? &h->v6 : &h->v4;
    if (f->count == FAMILY_MAX)
        return;
    /* Shuffled on the way in (Knuth's algorithm P, inside out). */
    size_t place = (size_t)(loop_random(x->loop) % (f->count + 1));
    memmove(f->ips[f->count++], f->ips[place], sizeof(a.ip));
    memcpy(f->ips[place], a.ip, sizeof(a.ip));
}

/* Several names may have the same address, which is tried once. */
static void
found_add(struct mx_lookup *x, const struct host *h, enum net_family family,
          const unsigned char ip[16])
{
    struct net_address a = {.family = family, .port = x->port};
    memcpy(a.ip, ip, sizeof(a.ip));
    if (x->answer.count == x->limit)
        return;
    for (size_t i = 0; i < x->answer.count; i++)
        if (net_address_equal(&x->found[i].address, &a))
            return;
    struct mx_lookup_host *f = &x->found[x->answer.count++];
    text_copy(f->name, sizeof(f->name), text_from(h->name));
    f->preference = h->preference;
    f->address = a;
    f->secure = h->secure;
    text_copy(f->canonical, sizeof(f->canonical), text_from(h->canonical));
}

/* IPv6 and IPv4 alternate, so that a family without a route wastes only every other
 * attempt. */
static void
found_add_host(struct mx_lookup *x, const struct host *h)
{
    for (size_t i = 0; i < h->v6.count || i < h->v4.count; i++) {
        if (i < h->v6.count)
            found_add(x, h, NET_IPV6, h->v6.ips[i]);
        if (i < h->v4.count)
            found_add(x, h, NET_IPV4, h->v4.ips[i]);
    }
}

/* --- Hosts ------------------------------------------------------------------------ */

static struct host *
host_new(struct mx_lookup *x, struct text name, unsigned preference)
{
    struct host *h = memory_new(sizeof(*h));
    h->lookup = x;
    h->preference = preference;
    /* RFC 5321 §5.1: hosts of equal preference share the load. */
    h->chance = loop_random(x->loop);
    text_copy(h->name, sizeof(h->name), name);
    /* By name as well: with a mapped port net_is_own() does not know our address. */
    h->own = x->by_mx && x->own_name[0] != '\0' &&
             text_equal_nocase(name, text_from(x->own_name));
    return h;
}

static int
host_compare(const void *a, const void *b)
{
    const struct host *left = *(struct host *const *)a;
    const struct host *right = *(struct host *const *)b;
    if (left->preference != right->preference)
        return left->preference < right->preference ? -1 : 1;
    return left->chance < right->chance ? -1 : left->chance > right->chance;
}

/* The hosts of one preference are known. They are used, unless this host is one of
 * them: then mail goes only to better preferences, as else hosts of the same preference
 * would send it to each other. True: no further preference is needed. */
static bool
group_finish(struct mx_lookup *x)
{
    for (size_t i = x->first; i < x->end; i++)
        x->looped |= x->hosts[i]->own;
    if (x->looped)
        return true;
    for (size_t i = x->first; i < x->end; i++) {
        x->unknown |= x->hosts[i]->unknown;
        found_add_host(x, x->hosts[i]);
    }
    x->first = x->end;
    return x->answer.count == x->limit || x->end == x->host_count;
}

static void
group_start(struct mx_lookup *x, dns_answered *answered)
{
    assert(x->first < x->host_count && x->waiting == 0);
    x->end = x->first;
    while (x->end < x->host_count &&
           x->hosts[x->end]->preference == x->hosts[x->first]->preference)
        x->end++;
    x->waiting = x->end - x->first;
    for (size_t i = x->first; i < x->end; i++) {
        struct host *h = x->hosts[i];
        h->query = dns_find_addresses(x->dns, h->name, answered, h);
    }
}

static void
on_addresses(void *context, const struct dns_answer *answer)
{
    struct host *h = context;
    struct mx_lookup *x = h->lookup;
    h->query = NULL;
    h->unknown = answer->status == DNS_TRY_AGAIN;
    x->no_name |= answer->status == DNS_NO_NAME;
    h->secure = answer->secure;
    text_copy(h->canonical, sizeof(h->canonical), text_from(answer->canonical));
    if (answer->status == DNS_FOUND)
        for (size_t i = 0; i < answer->count; i++)
            host_add_address(h, &answer->addresses[i]);
    else
        text_copy(x->reason, sizeof(x->reason), text_from(answer->reason));
    assert(x->waiting > 0);
    if (--x->waiting > 0)
        return;
    if (group_finish(x))
        finish_hosts(x);
    else
        group_start(x, on_addresses);
}

static void
look_up_hosts(struct mx_lookup *x)
{
    qsort(x->hosts, x->host_count, sizeof(struct host *), host_compare);
    group_start(x, on_addresses);
}

static void
look_up_host(struct mx_lookup *x, struct text name)
{
    x->hosts = memory_array(1, sizeof(struct host *));
    x->hosts[x->host_count++] = host_new(x, name, 0);
    look_up_hosts(x);
}

/* --- MX --------------------------------------------------------------------------- */

/* RFC 7505: the root among other hosts is an error of the zone, and is omitted. */
static void
take_mx(struct mx_lookup *x, const struct dns_answer *answer)
{
    x->hosts = memory_array(answer->count, sizeof(struct host *));
    for (size_t i = 0; i < answer->count; i++) {
        const struct dns_mx *mx = &answer->mx[i];
        if (mx->host[0] != '\0')
            x->hosts[x->host_count++] =
                host_new(x, text_from(mx->host), mx->preference);
    }
    if (x->host_count > 0)
        look_up_hosts(x);
    else
        finish_without(x, outcome_make(VERDICT_FAILED, BLAME_SITE, 556, "5.1.10",
                                       "%s does not accept mail (null MX)", x->name));
}

/* Only the answer that there is no MX permits the address of the domain itself. After
 * an error of DNS mail waits: that address may be of a host that takes no mail. */
static void
on_mx(void *context, const struct dns_answer *answer)
{
    struct mx_lookup *x = context;
    x->mx = NULL;
    x->answer.secure = answer->secure;
    text_copy(x->reason, sizeof(x->reason), text_from(answer->reason));
    switch (answer->status) {
    case DNS_FOUND:
        assert(answer->count > 0);
        take_mx(x, answer);
        break;
    case DNS_NO_DATA:
        look_up_host(x, text_from(x->name)); /* RFC 5321 §5.1: the implicit MX */
        break;
    case DNS_NO_NAME:
        x->is_alias = answer->is_alias;
        finish_no_name(x);
        break;
    case DNS_TRY_AGAIN:
        finish_unknown(x);
        break;
    }
}

/* "[1.2.3.4]", "[IPv6:::1]"; the host of a route may be without brackets. An address
 * passes the same checks as one from DNS. */
static bool
take_literal(struct mx_lookup *x)
{
    struct text t = text_from(x->name);
    struct net_address address;
    bool brackets = t.length >= 2 && t.at[0] == '[' && t.at[t.length - 1] == ']';
    if (brackets) {
        t = text_of(t.at + 1, t.length - 2);
        if (text_starts_nocase(t, TEXT("IPv6:")))
            t = text_after(t, 5);
    } else if (x->by_mx) {
        return false;
    }
    if (!net_address_parse_ip(t, &address))
        return false;
    struct host *h = host_new(x, text_from(x->name), 0);
    x->hosts = memory_array(1, sizeof(struct host *));
    x->hosts[x->host_count++] = h;
    x->skip_v4 = x->skip_v4 && !x->smarthost;
    x->skip_v6 = x->skip_v6 && !x->smarthost;
    x->end = 1;
    host_add_address(h, &address);
    group_finish(x);
    finish_hosts(x);
    return true;
}

/* From a loopback source address nothing but loopback can be reached: smtp_bind with
 * such an address permits it. */
static bool
goes_by_loopback(const struct mx_lookup_query *query, enum net_family family)
{
    struct net_address source;
    return query->smarthost || (query->sources != NULL &&
                                bind_address_for(query->sources, family, &source) &&
                                net_address_is_loopback(&source));
}

struct mx_lookup *
mx_lookup_find(struct loop *loop, struct net *net, struct dns *dns,
               const struct mx_lookup_query *query, mx_lookup_found *done,
               void *context)
{
    struct mx_lookup *x = memory_new(sizeof(*x));
    assert(done != NULL);
    assert(query->address_limit > 0 && query->address_limit <= MX_LOOKUP_ADDRESS_MAX);
    x->loop = loop;
    x->net = net;
    x->dns = dns;
    x->by_mx = query->by_mx;
    x->smarthost = query->smarthost;
    x->loopback_v4 = goes_by_loopback(query, NET_IPV4);
    x->loopback_v6 = goes_by_loopback(query, NET_IPV6);
    x->skip_v4 = query->skip_v4;
    x->skip_v6 = query->skip_v6;
    x->port = query->port;
    text_copy(x->own_name, sizeof(x->own_name), text_from(query->hostname));
    x->limit = (size_t)query->address_limit;
    x->found = memory_array(x->limit, sizeof(struct mx_lookup_host));
    x->done = done;
    x->context = context;
    /* A truncated name must not reach DNS as another one. A recipient of a message
     * written into the spool by another program may have none. */
    bool fits = text_copy(x->name, sizeof(x->name), text_from(query->name));
    if (!fits || x->name[0] == '\0')
        finish_no_name(x);
    else if (!take_literal(x)) {
        if (x->by_mx)
            x->mx = dns_find_mx(dns, x->name, on_mx, x);
        else
            look_up_host(x, text_from(x->name));
    }
    return x;
}

static void
mx_lookup_release(void *object)
{
    struct mx_lookup *x = object;
    for (size_t i = 0; i < x->host_count; i++)
        free(x->hosts[i]);
    free(x->hosts);
    free(x->found);
    free(x->set);
    free(x);
}

bool
mx_lookup_asks_mx(const struct mx_lookup *x)
{
    return x->mx != NULL;
}

void
mx_lookup_free(struct mx_lookup **lookup)
{
    struct mx_lookup *x = *lookup;
    if (x == NULL)
        return;
    if (x->mx != NULL)
        dns_cancel(&x->mx);
    for (size_t i = 0; i < x->host_count; i++)
        if (x->hosts[i]->query != NULL)
            dns_cancel(&x->hosts[i]->query);
    loop_unpost(x->loop, &x->answering);
    loop_release(x->loop, mx_lookup_release, x);
    *lookup = NULL;
}

/* --- Lists of hosts --------------------------------------------------------------- */

/* One host of the list is enough to send mail, so that a name server which is silent
 * about another one must not delay it: the wait begins when the first host is found.
 * There is one answer; look-ups that end later are ignored, since the owner already
 * uses the hosts. */

struct relay {
    struct mx_lookup_list *relays;
    char host[TARGET_HOST_MAX];
    struct mx_lookup *lookup;
    const struct mx_lookup_answer *answer; /* NULL: it is looked up */
};

struct mx_lookup_list {
    struct loop *loop;
    mx_lookup_found *done;
    void *context;
    size_t count, waiting;
    struct relay list[TARGET_HOSTS_MAX];
    struct loop_timer wait;
    bool answered;
    struct mx_lookup_host *hosts;
    struct mx_lookup_answer answer;
};

/* The preference of an MX has 16 bits, so that hosts of two places never mix. */
static void
add_hosts(struct mx_lookup_list *r, size_t at)
{
    const struct mx_lookup_answer *found = r->list[at].answer;
    for (size_t i = 0; i < found->count && r->answer.count < MX_LOOKUP_ADDRESS_MAX;
         i++) {
        struct mx_lookup_host *host = &r->hosts[r->answer.count++];
        *host = found->hosts[i];
        host->preference = (unsigned)at * MX_LOOKUP_LIST_PREFERENCES +
                           host->preference % MX_LOOKUP_LIST_PREFERENCES;
    }
}

/* The outcome counts only if no host was found at all; it is that of the last one in
 * the list that has answered. */
static void
mx_lookup_list_answer(struct mx_lookup_list *r)
{
    assert(!r->answered);
    r->answered = true;
    loop_timer_stop(r->loop, &r->wait);
    for (size_t at = 0; at < r->count; at++) {
        if (r->list[at].answer == NULL)
            continue;
        add_hosts(r, at);
        r->answer.outcome = r->list[at].answer->outcome;
    }
    r->answer.hosts = r->hosts;
    r->done(r->context, &r->answer);
}

static void
on_wait_over(void *context)
{
    mx_lookup_list_answer(context);
}

static void
mx_lookup_list_on_found(void *context, const struct mx_lookup_answer *answer)
{
    struct relay *relay = context;
    struct mx_lookup_list *r = relay->relays;
    assert(relay->answer == NULL && r->waiting > 0);
    relay->answer = answer;
    r->waiting--;
    if (r->answered)
        return;
    if (r->waiting == 0)
        mx_lookup_list_answer(r);
    else if (answer->count > 0 && !heap_has(&r->wait.node))
        loop_timer_start(r->loop, &r->wait, MX_LOOKUP_LIST_WAIT_MS, on_wait_over, r);
}

/* All addresses of a long list must fit into the answer. */
static int
limit_of(const struct target *target, int address_limit)
{
    int share = MX_LOOKUP_ADDRESS_MAX / (int)target_host_count(target);
    return address_limit < share ? address_limit : share;
}

struct mx_lookup_list *
mx_lookup_list_find(struct loop *loop, struct net *net, struct dns *dns,
                    const struct target *target, const struct mx_lookup_query *query,
                    mx_lookup_found *done, void *context)
{
    struct mx_lookup_list *r = memory_new(sizeof(*r));
    r->loop = loop;
    r->done = done;
    r->context = context;
    r->hosts = memory_array(MX_LOOKUP_ADDRESS_MAX, sizeof(*r->hosts));
    r->count = r->waiting = target_host_count(target);
    assert(r->count > 0 && r->count <= TARGET_HOSTS_MAX);
    for (size_t at = 0; at < r->count; at++) {
        struct target_host host = target_host(target, at);
        struct relay *relay = &r->list[at];
        relay->relays = r;
        text_copy(relay->host, sizeof(relay->host), host.host);
        struct mx_lookup_query one = *query;
        one.name = relay->host;
        one.port = host.port ? host.port : query->port;
        one.address_limit = limit_of(target, query->address_limit);
        relay->lookup =
            mx_lookup_find(loop, net, dns, &one, mx_lookup_list_on_found, relay);
    }
    return r;
}

static void
mx_lookup_list_release(void *object)
{
    struct mx_lookup_list *r = object;
    free(r->hosts);
    free(r);
}

void
mx_lookup_list_free(struct mx_lookup_list **relays)
{
    struct mx_lookup_list *r = *relays;
    if (r == NULL)
        return;
    for (size_t at = 0; at < r->count; at++)
        mx_lookup_free(&r->list[at].lookup);
    loop_timer_stop(r->loop, &r->wait);
    loop_release(r->loop, mx_lookup_list_release, r);
    *relays = NULL;
}

size_t
mx_lookup_list_place(const struct mx_lookup_host *host)
{
    return host->preference / MX_LOOKUP_LIST_PREFERENCES;
}
