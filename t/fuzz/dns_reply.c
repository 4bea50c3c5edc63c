/* Fuzz target: replies of name servers. Names are host names, counts and sizes within
 * limits, and data within the reply, for any octets. */
#include "base/dns/dns_reply.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_mx(const struct dns_answer *answer)
{
    char copy[DNS_NAME_MAX];
    must(answer->count <= DNS_MX_MAX);
    for (size_t i = 0; i < answer->count; i++) {
        struct text host = text_from(answer->mx[i].host);
        must(host.length < DNS_NAME_MAX && answer->mx[i].preference <= UINT16_MAX);
        must(host.length == 0 ||
             (dns_host_copy(copy, host) && text_equal(text_from(copy), host)));
    }
}

static void
check_hosts(const struct dns_answer *answer)
{
    char copy[DNS_NAME_MAX];
    must(answer->count <= DNS_HOSTS_MAX);
    for (size_t i = 0; i < answer->count; i++) {
        struct text host = text_from(answer->hosts[i]);
        must(dns_host_copy(copy, host) && text_equal(text_from(copy), host));
    }
}

static void
check_slice(struct text t, const char *octets, size_t size)
{
    must(t.length <= DNS_RECORD_MAX);
    must(t.at >= octets && t.at + t.length <= octets + size);
}

static void
check(const struct dns_answer *answer, enum dns_type type, const char *octets,
      const char *joined, size_t size)
{
    if (type == DNS_TYPE_MX)
        check_mx(answer);
    if (type == DNS_TYPE_PTR)
        check_hosts(answer);
    must(type != DNS_TYPE_TXT || answer->count <= DNS_TEXTS_MAX);
    for (size_t i = 0; type == DNS_TYPE_TXT && i < answer->count; i++)
        check_slice(answer->texts[i], joined, size);
    must(type != DNS_TYPE_TLSA || answer->count <= DNS_TLSA_MAX);
    for (size_t i = 0; type == DNS_TYPE_TLSA && i < answer->count; i++)
        check_slice(answer->tlsa[i].data, octets, size);
    must(answer->count <= DNS_ADDRESS_MAX);
    bool addresses = type == DNS_TYPE_A || type == DNS_TYPE_AAAA;
    for (size_t i = 0; addresses && i < answer->count; i++)
        must(answer->addresses[i].family == (type == DNS_TYPE_A ? NET_IPV4 : NET_IPV6));
}

/* The first byte chooses the type and whether the reply is whole. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum dns_type types[] = {DNS_TYPE_A,    DNS_TYPE_AAAA, DNS_TYPE_MX,
                                          DNS_TYPE_MX,   DNS_TYPE_TXT,  DNS_TYPE_TLSA,
                                          DNS_TYPE_PTR,  DNS_TYPE_TXT};
    if (size == 0)
        return 0;
    enum dns_type type = types[(data[0] & 3) | (data[0] & 8) >> 1];
    /* Exactly so many octets: a read behind them is found. */
    char *octets = malloc(size), *joined = malloc(size);
    must(octets != NULL && joined != NULL);
    memcpy(octets, data + 1, size - 1);
    struct dns_answer *answer = calloc(1, sizeof(*answer));
    must(answer != NULL);
    bool good = dns_reply_read(text_of(octets, size - 1), (data[0] & 4) == 0, type,
                               joined, answer);
    must(good || answer->count == 0);
    must(!good || dns_reply_code(text_of(octets, size - 1)) == 0);
    must(answer->count > 0 || answer->ttl_s == 0 || !good);
    check(answer, type, octets, joined, size - 1);
    free(answer);
    free(joined);
    free(octets);
    return 0;
}
