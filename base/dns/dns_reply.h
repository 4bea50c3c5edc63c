/* Parses a DNS reply: the records of one type.
 *
 * Pure, and the only parser of replies of name servers. An invalid record is ignored,
 * an invalid reply is refused. With the parsers of c-ares one invalid record
 * invalidates the whole reply, MX has no TTL, names contain escapes, and behaviour
 * differs between versions. */
#ifndef BASE_DNS_DNS_REPLY_H
#define BASE_DNS_DNS_REPLY_H

#include "base/dns/dns.h"

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_CNAME = 5,
    DNS_TYPE_MX = 15,
    DNS_TYPE_AAAA = 28
};
enum { DNS_CLASS_IN = 1 };

/* Adds the valid records of that type from the answer section to a zeroed answer:
 * count, ttl_s and mx or addresses. whole: the reply was not truncated. False, with
 * count 0, when the reply is malformed, carries an error or has only invalid records.
 */
bool dns_reply_read(struct text reply, bool whole, enum dns_type type,
                    struct dns_answer *answer);

/* In normal form: lower case, no trailing dot. False: not a host name. */
bool dns_host_copy(char out[DNS_NAME_MAX], struct text name);

/* 4 or 16 octets; false when that is not the family's size. Addresses beyond
 * DNS_ADDRESS_MAX are dropped. */
bool dns_answer_add(struct dns_answer *answer, enum net_family family, const void *ip,
                    size_t size);

#endif
