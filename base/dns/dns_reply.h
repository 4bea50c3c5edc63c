/* What a DNS reply says: the records of one type in its octets, no more.
 *
 * Pure, and the only reader of what name servers send us. A bad record is ignored, a
 * bad reply refused. Why not c-ares' parsers: one bad record spoils the whole reply
 * there, MX has no TTL, names come with escapes, and they differ between its versions.
 */
#ifndef BASE_DNS_REPLY_H
#define BASE_DNS_REPLY_H

#include "base/dns/dns.h"

enum dns_type {
    DNS_TYPE_A = 1,
    DNS_TYPE_CNAME = 5,
    DNS_TYPE_MX = 15,
    DNS_TYPE_AAAA = 28
};
enum { DNS_CLASS_IN = 1 };

/* Adds the good records of that type from the answer section to a zeroed answer: count,
 * ttl_s and mx or addresses. whole: these are all its octets, not just the first.
 * False, with count 0, when it is malformed, says an error or holds only bad records:
 * it proves nothing. */
bool dns_reply_read(struct text reply, bool whole, enum dns_type type,
                    struct dns_answer *answer);

/* One spelling for all: lower case, no trailing dot. False when it is no host name. */
bool dns_host_copy(char out[DNS_NAME_MAX], struct text name);

/* 4 or 16 octets; false when that is not the family's size. What is too much is
 * dropped. */
bool dns_answer_add(struct dns_answer *answer, enum net_family family, const void *ip,
                    size_t size);

#endif
