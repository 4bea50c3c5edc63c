/* DNS look-ups: the only user of c-ares.
 *
 * Each question has its own sockets: an attacker must guess its port, and a failure of
 * one, as of a TCP connection, does not affect the others. Answers are copied and
 * delivered through the loop, never from inside c-ares. Sizes are bounded: a hostile
 * zone cannot use more than one struct dns_answer per question, or a reply of 64 KiB if
 * that is for TXT or TLSA. base/dns/ caches TXT answers alone, and does not choose
 * between the hosts it finds. */
#ifndef BASE_DNS_DNS_H
#define BASE_DNS_DNS_H

#include "base/net_address.h"

struct dns;
struct loop;
struct dns_query;

enum dns_status {
    DNS_FOUND,
    DNS_NO_DATA,  /* the name exists, not with this type */
    DNS_NO_NAME,  /* NXDOMAIN */
    DNS_TRY_AGAIN /* time-out, SERVFAIL, REFUSED, malformed: unknown */
};
enum { DNS_NAME_MAX = 256, DNS_MX_MAX = 40, DNS_ADDRESS_MAX = 40 };
enum {
    DNS_TEXTS_MAX = 16, /* TXT records, of DNS_RECORD_MAX octets each */
    DNS_TLSA_MAX = 32,  /* TLSA records, with as much data each */
    DNS_HOSTS_MAX = 8,  /* PTR records */
    DNS_RECORD_MAX = 4096
};
enum {
    DNS_OPEN_MAX = 64, /* queries out at a time, the others wait; c-ares 1.18 has 75 KB
                        * of memory for each of their questions */
    DNS_SOCKETS_MAX = 2 * DNS_OPEN_MAX /* a question has one at a time */
};

struct dns_mx {
    unsigned preference;
    char host[DNS_NAME_MAX]; /* lower case, no trailing dot; "" is the null MX's root */
};
struct dns_tlsa { /* RFC 6698 §2.1 */
    unsigned char usage, selector, matching;
    struct text data;
};
struct dns_answer {
    enum dns_status status;
    char reason[160]; /* one sentence for people when not DNS_FOUND */
    bool unasked;   /* too many others were asked: no name server has had a question */
    unsigned ttl_s; /* 0 when not known */
    bool secure;    /* a trusted name server has validated it, also that there is no
                       * such record or name; of addresses: those of one family */
    /* for addresses: the name that has them, at the end of aliases; "" without any */
    char canonical[DNS_NAME_MAX];
    bool is_alias; /* not found, and the name is an alias: reason names its end */
    size_t count;  /* of the records, as asked */
    union {
        struct dns_mx mx[DNS_MX_MAX];                  /* in the order of the answer */
        struct net_address addresses[DNS_ADDRESS_MAX]; /* port 0; IPv6 and IPv4 */
        struct text texts[DNS_TEXTS_MAX]; /* a record's strings, joined; any octets */
        struct dns_tlsa tlsa[DNS_TLSA_MAX];
        char hosts[DNS_HOSTS_MAX][DNS_NAME_MAX];
    };
};
typedef void dns_answered(void *context, const struct dns_answer *answer);

/* servers: a list of address[:port]; empty: those of /etc/resolv.conf, which is followed.
 * NULL, with one line in error, when a server is malformed. */
struct dns *dns_new(struct loop *loop, struct text servers, char *error,
                    size_t error_size);
/* Name servers of a resolv.conf, whose path is borrowed. It is read again before a query,
 * at most once in DNS_FOLLOW_MS, however it was changed: in place, by a rename, at the end
 * of a link, under a mount. While it is missing or names none that can be used, those that
 * are known stay; at first that is 127.0.0.1. NULL, with error: c-ares fails. */
enum { DNS_FOLLOW_MS = 1000 };
struct dns *dns_new_following(struct loop *loop, const char *resolv_conf, char *error,
                              size_t error_size);
/* Sentences for people: a name server is dead, or answers again; resolv.conf has changed,
 * or cannot be used. It calls nothing of this header. */
typedef void dns_said(void *context, bool wrong, const char *text);
void dns_listen(struct dns *dns, dns_said *said, void *context);
/* Reads resolv.conf again, now. */
void dns_reload(struct dns *dns);
/* A fault of resolv.conf or of name servers, in one sentence; false: none. Reads
 * resolv.conf as a query does. */
bool dns_trouble(struct dns *dns, char *out, size_t size);
/* Cancels the queries that are left: no callback comes after this. */
void dns_free(struct dns **dns);
/* Whether name servers are trusted to validate. AUTO, as at first: all of them are on
 * this host and not Docker's, or they are those of /etc/resolv.conf, which says
 * "options trust-ad". For later queries; when it changes, no TXT answer is kept. */
enum dns_trust { DNS_TRUST_AUTO, DNS_TRUST_YES, DNS_TRUST_NO };
void dns_set_trust(struct dns *dns, enum dns_trust trust);
bool dns_is_trusted(const struct dns *dns);
/* The version of c-ares at run time: "1.18.1". */
const char *dns_version(void);

/* The callback comes once, in a later turn; then the query is void. The answer is
 * borrowed during the call. CNAMEs are followed (dns_question.h). A name that is not a
 * host name (letters, digits, - and _ in labels of 1 to 63, 253 in all) gives
 * DNS_NO_NAME. Records with such a name are dropped; so are the least preferred of more
 * than DNS_MX_MAX. */
struct dns_query *dns_find_mx(struct dns *dns, const char *name, dns_answered *done,
                              void *context);
/* A and AAAA together, /etc/hosts first; an IP literal answers itself. DNS_FOUND when
 * at least one family answered with addresses, IPv6 and IPv4 alternating, in random
 * order within a family; DNS_TRY_AGAIN when none did and one is unknown. */
struct dns_query *dns_find_addresses(struct dns *dns, const char *name,
                                     dns_answered *done, void *context);
/* TXT. The answer is kept for its TTL, but for a minute at least and a day at most; so
 * is, for a minute, that there is none. Records beyond the limits are dropped. */
struct dns_query *dns_find_texts(struct dns *dns, const char *name, dns_answered *done,
                                 void *context);
/* TLSA; name: _25._tcp.HOST. DNS_NO_DATA, without a question, unless the name servers
 * are trusted. */
struct dns_query *dns_find_tlsa(struct dns *dns, const char *name, dns_answered *done,
                                void *context);
/* CNAME: the one that the name is an alias of, as a host. */
struct dns_query *dns_find_alias(struct dns *dns, const char *name, dns_answered *done,
                                 void *context);
/* PTR: the names of an IPv4 or IPv6 address. */
struct dns_query *dns_find_hosts(struct dns *dns, const struct net_address *address,
                                 dns_answered *done, void *context);
/* Public data, from name servers alone: ADDRESSES as above, but /etc/hosts does not
 * count. ROOT: the SOA of the root: only status and secure count, name is ignored. */
enum dns_published { DNS_PUBLISHED_ADDRESSES, DNS_PUBLISHED_ROOT };
struct dns_query *dns_find_published(struct dns *dns, enum dns_published what,
                                     const char *name, dns_answered *done,
                                     void *context);
/* Applies to later queries. A name server that is silent is asked tries times (default
 * 3), with a time-out of try_ms (5 s) that doubles; one that does not answer, or cannot be
 * reached, is asked last for a minute. After 6 * try_ms a query is answered with the
 * records known by then. While other queries wait, a query that has had no answer for
 * try_ms / 2 yields its place, and asks the next server, behind those that have not asked
 * yet. */
void dns_set_patience(struct dns *dns, int64_t try_ms, int tries);
/* Whether the query waits for its first turn: no name server has been asked yet. */
bool dns_is_in_line(const struct dns_query *query);
/* The callback will not come. Allowed, without effect, within the callback. */
void dns_cancel(struct dns_query **query);

#endif
