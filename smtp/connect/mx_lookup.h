/* From a domain to the addresses that take its mail, in the order to try them.
 *
 * RFC 5321 §5.1, RFC 7505 (null MX), RFC 974's rule against loops. A small machine over
 * base/dns/dns.h: MX, then the hosts of one preference together, best preference first,
 * until enough addresses are known. */
#ifndef SMTP_CONNECT_MX_LOOKUP_H
#define SMTP_CONNECT_MX_LOOKUP_H

#include "base/dns/dns.h"
#include "base/outcome.h"
#include "sched/route/route.h"
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
    const char *hostname; /* ours: an MX of this name is this host; NULL: unknown */
    /* smtp_bind; NULL: unset. Loopback addresses are used only for a smarthost, or if
     * the source address of their family is one. */
    const struct bind_address *sources;
    /* Addresses of that family are not used, except a literal that the operator has
     * named. Mail then waits, as an error of the settings, if there is no other. */
    bool skip_v4, skip_v6;
    uint16_t port;
    int address_limit; /* at most MX_LOOKUP_ADDRESS_MAX */
};

struct mx_lookup_host {
    unsigned preference;
    char name[DNS_NAME_MAX];
    struct net_address address;
    bool secure; /* its addresses have been validated, of one family at least */
    char canonical[DNS_NAME_MAX]; /* the name that it is an alias of; or "" */
};

struct mx_lookup_answer {
    size_t count; /* of hosts; 0: outcome says why */
    const struct mx_lookup_host *hosts;
    struct outcome outcome; /* DEFERRED or FAILED */
    /* All mail exchangers of the domain, also those not looked up; 0 unless by_mx. */
    size_t set_count;
    struct exchange_name *set;
    bool secure; /* which hosts they are has been validated; false unless by_mx */
};
typedef void mx_lookup_found(void *context, const struct mx_lookup_answer *answer);

/* The query is copied. The callback comes once, in a later turn; the answer lives until
 * mx_lookup_free(). Equal preferences are in random order, a host's IPv6 and IPv4
 * addresses alternate. If this host is one of them (by hostname or net_is_own(), which
 * does not know mapped ports), those of equal or worse preference are omitted. So are
 * addresses that no host can have (0.0.0.0/8, ::, multicast, broadcast). */
struct mx_lookup *mx_lookup_find(struct loop *loop, struct net *net, struct dns *dns,
                                 const struct mx_lookup_query *query,
                                 mx_lookup_found *done, void *context);
/* Whether the MX query is under way; else addresses are looked up, or it has
 * answered. */
bool mx_lookup_asks_mx(const struct mx_lookup *lookup);
/* Ends the look-up, also inside its callback, which is not called any more. */
void mx_lookup_free(struct mx_lookup **lookup);

/* --- Lists of hosts --------------------------------------------------------------- */

/* From a list of hosts, tried in order, to their addresses: a look-up for each.
 *
 * The place in the list becomes the preference: sched_hosts_order() then passes over a
 * host that fails until it works again. */

struct mx_lookup_list;

enum { MX_LOOKUP_LIST_WAIT_MS = 2000, MX_LOOKUP_LIST_PREFERENCES = 65536 };

/* For a TARGET_SMTP. query: its port is for hosts without one, its address_limit for
 * each host, less when the list is long; its name is not used. As mx_lookup_find(), but
 * the preferences are the place in the list times MX_LOOKUP_LIST_PREFERENCES, plus that of
 * the MX. A host that cannot be found is omitted; so is one whose look-up takes
 * MX_LOOKUP_LIST_WAIT_MS longer than that of another. */
struct mx_lookup_list *mx_lookup_list_find(struct loop *loop, struct net *net,
                                           struct dns *dns, const struct target *target,
                                           const struct mx_lookup_query *query,
                                           mx_lookup_found *done, void *context);
void mx_lookup_list_free(struct mx_lookup_list **relays);
/* The place in the list of the host that has this address. */
size_t mx_lookup_list_place(const struct mx_lookup_host *host);

#endif
