/* TXT answers that are kept for their TTL: policies are looked up for each delivery.
 * Pure: the caller has the clock. */
#ifndef BASE_DNS_DNS_TEXTS_H
#define BASE_DNS_DNS_TEXTS_H

#include "base/dns/dns.h"

enum {
    DNS_TEXTS_KEPT_MAX = 4096, /* names; then the least recently used goes */
    DNS_TEXTS_BYTES_MAX = 4 * 1024 * 1024, /* of all, in the same way */
    DNS_TEXTS_KEPT_MIN_S = 60,
    DNS_TEXTS_KEPT_MAX_S = 24 * 60 * 60
};

struct dns_texts;
struct dns_texts *dns_texts_new(void);
void dns_texts_free(struct dns_texts **texts);
/* Copies a FOUND, NO_DATA or NO_NAME of that name; others are not kept. */
void dns_texts_keep(struct dns_texts *texts, const char *name,
                    const struct dns_answer *answer, int64_t now_ms);
/* NULL: not known, or no longer. Otherwise the octets that the answer's texts point to;
 * the caller frees them. */
char *dns_texts_find(struct dns_texts *texts, const char *name, int64_t now_ms,
                     struct dns_answer *answer) __attribute__((warn_unused_result));

#endif
