/* From a domain to the addresses that take its mail, in the order to try them.
 *
 * RFC 5321 §5.1, RFC 7505 (null MX), RFC 974's rule against loops. A small machine over
 * base/dns/dns.h: MX, then the hosts of one preference together, best preference first,
 * until enough addresses are known. */
#ifndef SMTP_MX_LOOKUP_H
#define SMTP_MX_LOOKUP_H

#include "base/dns/dns.h"
#include "base/outcome.h"
#include "sched/site_key.h"

struct net;
struct loop;
struct mx_lookup;
struct bind_address;

enum { MX_LOOKUP_ADDRESS_MAX = 40 };

struct mx_lookup_query {
    const char *name; /* a domain, a host, or an address literal with or without [] */
    bool by_mx;       /* false: the name is the host */
    bool smarthost;   /* configured by hand: an error there defers, never bounces */
    const char *hostname; /* ours: an MX of this name is ourselves; NULL: unknown */
    /* smtp_bind; NULL: unset. Addresses of loopback count only by a smarthost, or where
     * connections of their family go out from one. */
    const struct bind_address *sources;
    uint16_t port;
    int address_limit; /* 1..MX_LOOKUP_ADDRESS_MAX addresses are enough */
};

struct mx_lookup_host {
    unsigned preference;
    char name[DNS_NAME_MAX];
    struct net_address address;
};

struct mx_lookup_answer {
    size_t count; /* of hosts; 0: outcome says why */
    const struct mx_lookup_host *hosts;
    struct outcome outcome; /* DEFERRED or FAILED */
    /* All mail exchangers of the domain, also those not looked up; without a query
     * by_mx: 0. */
    size_t set_count;
    struct exchange_name *set;
};
typedef void mx_lookup_found(void *context, const struct mx_lookup_answer *answer);

/* The query is copied. The callback comes once, in a later turn; the answer lives until
 * mx_lookup_free(). Equal preferences are in random order, a host's IPv6 and IPv4
 * addresses alternate. A host that is ourselves (hostname, or net_is_own, which
 * knows no port that is mapped to ours) cuts off all of equal or worse preference.
 * Addresses that are no host's (0.0.0.0/8, ::, multicast, broadcast) are dropped. */
struct mx_lookup *mx_lookup_find(struct loop *loop, struct net *net, struct dns *dns,
                                 const struct mx_lookup_query *query,
                                 mx_lookup_found *done, void *context);
/* Its MX are asked for; else addresses, or it has answered. */
bool mx_lookup_asks_mx(const struct mx_lookup *exchange);
/* Also before the answer: the callback will not come then. Allowed inside it. */
void mx_lookup_free(struct mx_lookup **exchange);

#endif
