/* Fuzz target: replies of name servers. Names are host names, counts within limits,
 * whatever the octets. */
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

/* The first byte chooses the type and whether the reply is whole. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum dns_type types[] = {DNS_TYPE_A, DNS_TYPE_AAAA, DNS_TYPE_MX,
                                          DNS_TYPE_MX};
    if (size == 0)
        return 0;
    enum dns_type type = types[data[0] & 3];
    /* Exactly so many octets: a read behind them is found. */
    char *octets = malloc(size);
    must(octets != NULL);
    memcpy(octets, data + 1, size - 1);
    struct dns_answer *answer = calloc(1, sizeof(*answer));
    must(answer != NULL);
    bool good =
        dns_reply_read(text_of(octets, size - 1), (data[0] & 4) == 0, type, answer);
    must(good || answer->count == 0);
    must(answer->count > 0 || answer->ttl_s == 0 || !good);
    if (type == DNS_TYPE_MX)
        check_mx(answer);
    else
        must(answer->count <= DNS_ADDRESS_MAX);
    for (size_t i = 0; type != DNS_TYPE_MX && i < answer->count; i++)
        must(answer->addresses[i].family == (type == DNS_TYPE_A ? NET_IPV4 : NET_IPV6));
    free(answer);
    free(octets);
    return 0;
}
