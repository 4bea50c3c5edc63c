/* What dns.c exports for tests alone. */
#ifndef BASE_DNS_DNS_INTERNAL_H
#define BASE_DNS_DNS_INTERNAL_H

#include "base/dns/dns.h"

/* Applies to later queries. A name server is asked tries times (default 3),
 * with a time-out of try_ms (5 s) that grows; after 6 * try_ms a query is answered with
 * what is known by then. While other queries wait, a query that has had no answer for
 * try_ms / 2 yields its place, and asks again behind those that have not asked yet. */
void dns_set_patience(struct dns *dns, int64_t try_ms, int tries);

#endif
