/* Fuzz target: PROXY headers. An accepted header ends within its limit, is whole only
 * as a whole, and names a client only by TCP. */
#include "smtp/session/proxy.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct proxy_header *h)
{
    bool tcp = h->client.family == NET_IPV4 || h->client.family == NET_IPV6;
    struct net_address plain = h->client;
    if (h->kind != PROXY_CLIENT)
        return;
    must(tcp && h->client.path[0] == '\0');
    net_address_unmap(&plain);
    must(net_address_equal(&plain, &h->client));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text all = text_of(data, size), rest = all;
    struct proxy_header h;
    enum progress progress = proxy_parse(&rest, &h);
    size_t taken = all.length - rest.length;
    if (progress == PROGRESS_DONE) {
        must(taken > 0 && taken <= PROXY_HEADER_MAX);
        must(rest.at == all.at + taken);
        check(&h);
    } else {
        must(taken == 0);
        must(progress == PROGRESS_BAD || size < PROXY_HEADER_MAX);
    }
    /* More bytes never make a verdict another one. */
    for (size_t part = 0; part < size && part <= PROXY_HEADER_MAX; part++) {
        struct text some = text_before(all, part);
        enum progress early = proxy_parse(&some, &h);
        must(early == PROGRESS_MORE || early == progress);
        must(early != PROGRESS_DONE || part >= taken);
        must(early != PROGRESS_MORE || progress != PROGRESS_DONE || part < taken);
    }
    return 0;
}
