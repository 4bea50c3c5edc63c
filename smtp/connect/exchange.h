/* The hosts that take a domain's mail, and the domain's demands for their TLS.
 *
 * Over smtp/connect/mx_lookup.h: when DNSSEC has validated which hosts they are, the TLSA
 * records of each decide (DANE, RFC 7672 §2.2). A host whose records cannot be looked up
 * is omitted, since an attacker who suppresses the answer would suppress the demand; so
 * are all hosts while too many policies are looked up to ask for this domain's. For
 * hosts without records the domain's policy decides (MTA-STS, RFC 8461 §5): those that
 * it does not name are omitted. */
#ifndef SMTP_CONNECT_EXCHANGE_H
#define SMTP_CONNECT_EXCHANGE_H

#include "smtp/connect/mx_lookup.h"
#include "smtp/trust/security.h"
#include "smtp/trust/sts_cache.h"

struct exchange;

enum {
    EXCHANGE_VALID_MS = 3600000 /* then the demands of a domain are looked up again */
};

/* Begins the outcome when no host is left because the policy is not known yet. */
#define EXCHANGE_UNSURE "the MTA-STS policy of "

struct exchange_query {
    struct mx_lookup_query mx;
    bool dane;             /* the name servers are trusted, and the route permits it */
    struct sts_cache *sts; /* NULL: no policies. Lives longer */
    bool
        required; /* only hosts that DANE or MTA-STS proves; if there are none, mail fails */
};

/* Looks up hosts as mx_lookup_find() does, with their demands where the query asks for
 * DANE or policies. */
struct exchange *exchange_find(struct loop *loop, struct net *net, struct dns *dns,
                               const struct exchange_query *query,
                               mx_lookup_found *done, void *context);
/* The records being looked up: "MX", "addresses of MX hosts", "TLSA records of MX
 * hosts". */
const char *exchange_asks(const struct exchange *x);
/* The demand for a host of the answer; it lives as long. */
const struct security_demand *exchange_demand(const struct exchange *x,
                                              const struct mx_lookup_host *host);
/* The demand for a host of the domain, with its source, in words: "MTA-STS (enforce)",
 * "DANE (2 TLSA records)"; "" nothing. */
void exchange_describe(const struct exchange *x, const char *host, char *out,
                       size_t size);
/* Why the host of that name is not in the answer, a sentence; NULL: another reason than
 * DANE and MTA-STS. */
const char *exchange_objection(const struct exchange *x, const char *host);
/* The demand as a number, for sched_session_demand(): of the hosts, the records of each,
 * and which of them the policy allows. 0: there is none. */
uint64_t exchange_mark(const struct exchange *x);
/* Whether a host is left out because its records cannot be looked up now. */
bool exchange_is_unsure(const struct exchange *x);
/* Whether the demands of the domain have been looked up. */
bool exchange_has_asked(const struct exchange *x);
/* Ends the look-up, also inside its callback, which is not called any more. */
void exchange_free(struct exchange **exchange);

#endif
