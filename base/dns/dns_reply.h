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
    DNS_TYPE_SOA = 6,
    DNS_TYPE_PTR = 12,
    DNS_TYPE_MX = 15,
    DNS_TYPE_TXT = 16,
    DNS_TYPE_AAAA = 28,
    DNS_TYPE_TLSA = 52
};
enum { DNS_CLASS_IN = 1 };

/* The names of a type in sentences. */
struct dns_kind {
    enum dns_type type;
    const char *lookup, *record; /* "MX", "MX record" */
};
const struct dns_kind *dns_kind(enum dns_type type);

/* The header's response code (RFC 1035 §4.1.1), or -1: not even a header. */
int dns_reply_code(struct text reply);
/* The AD bit of a reply with a header: the name server has validated it. */
bool dns_reply_is_authentic(struct text reply);

/* Adds the valid records of that type from the answer section to a zeroed answer:
 * count, ttl_s and the records. whole: the reply was not truncated. False, with
 * count 0, when the reply is malformed, carries an error or has only invalid records.
 * Data of TLSA points into the reply; texts into joined, which has space for as many
 * octets as the reply has (NULL for other types). canonical is set even if it is the name
 * that was asked for. */
bool dns_reply_read(struct text reply, bool whole, enum dns_type type, char *joined,
                    struct dns_answer *answer);

/* In normal form: lower case, no trailing dot. False: not a host name. */
bool dns_host_copy(char out[DNS_NAME_MAX], struct text name);

/* The name that the PTR records of an IPv4 or IPv6 address have (RFC 1035 §3.5, RFC 3596
 * §2.5). */
void dns_reverse_name(const struct net_address *address, char out[DNS_NAME_MAX]);

/* localhost and names that end in .localhost: never asked outside (RFC 6761 §6.3). */
bool dns_host_is_localhost(struct text name);

/* Sets the status, and but for DNS_FOUND the reason. */
void dns_answer_explain(struct dns_answer *answer, enum dns_status status,
                        const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The name at the end of the aliases that a reply names, and the least TTL of them; false:
 * it names none, or has a record of that type as well. */
bool dns_reply_alias(struct text reply, enum dns_type type, char alias[DNS_NAME_MAX],
                     uint32_t *ttl_s);
/* Each address is first at times: several hosts behind a name share the load. */
void dns_answer_shuffle(struct loop *loop, struct dns_answer *answer);
/* Addresses of both families into a zeroed answer, alternating, IPv6 first. */
void dns_answer_merge(const struct dns_answer *six, const struct dns_answer *four,
                      struct dns_answer *out);

/* 4 or 16 octets; false when that is not the family's size. Addresses beyond
 * DNS_ADDRESS_MAX are dropped. */
bool dns_answer_add(struct dns_answer *answer, enum net_family family, const void *ip,
                    size_t size);

#endif
