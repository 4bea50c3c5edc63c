/* link: t/sim/loop.c */
/* link: t/sim/dns.c */
/* Fuzz target: what a hostile zone says, through the choice of mail exchangers. The
 * first byte chooses the question, each three after it a record. */
#include "smtp/connect/mx_lookup.h"

#include "base/net/net.h"
#include "t/sim/sim.h"
#include "t/sim/sim_dns.h"
#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

enum { NAMES = 8, HOSTS = 6, RECORDS_MAX = 39 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[NAMES] = {
    "y.test",    "a.y.test",  "b.y.test",    "me.test",
    "localhost", "127.0.0.1", "[192.0.2.7]", "[IPv6:2001:db8::1]"};
static const char *const addresses[] = {
    "192.0.2.1", "2001:db8::1", "0.0.0.0",         "127.0.0.1", "::1",
    "224.0.0.1", "ff02::1",     "255.255.255.255", "::",        "::ffff:127.0.0.1"};

struct run {
    unsigned answers;
    int limit;
};

static void
on_answer(void *context, const struct mx_lookup_answer *a)
{
    struct run *r = context;
    r->answers++;
    must(a->count <= (size_t)r->limit);
    must(a->count > 0 ||
         (a->outcome.verdict != VERDICT_DELIVERED && a->outcome.enhanced[0] != '\0' &&
          a->outcome.text[0] != '\0'));
    for (size_t i = 0; i < a->count; i++) {
        must(i == 0 || a->hosts[i - 1].preference <= a->hosts[i].preference);
        must(a->hosts[i].address.family == NET_IPV4 ||
             a->hosts[i].address.family == NET_IPV6);
        must(a->hosts[i].address.port == 25);
        must(a->hosts[i].address.ip[0] != 0 || a->hosts[i].address.family == NET_IPV6);
        must(a->hosts[i].address.ip[0] != 0xff);
    }
}

static void
add_record(struct dns *dns, const uint8_t record[3])
{
    const char *name = names[record[0] % HOSTS];
    switch (record[1] % 4) {
    case 0:
        sim_dns_mx(dns, name, record[2] % 4,
                   record[2] == 255 ? "" : names[record[2] / 4 % HOSTS]);
        return;
    case 1:
    case 2:
        sim_dns_address(dns, name,
                        addresses[record[2] % (sizeof(addresses) / sizeof(*addresses))]);
        return;
    default:
        sim_dns_status(dns, name, (enum dns_status)(record[2] % 4));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[200];
    if (size < 2)
        return 0;
    struct loop *loop = sim_loop_new(1);
    struct net *net = net_new(loop);
    struct dns *dns = dns_new(loop, TEXT(""), error, sizeof(error));
    struct run run = {.limit = data[1] % MX_LOOKUP_ADDRESS_MAX + 1};
    struct mx_lookup_query query = {.name = data[0] & 8 ? "" : names[data[0] % NAMES],
                                   .by_mx = (data[0] & 16) != 0,
                                   .smarthost = (data[0] & 32) != 0,
                                   .hostname = data[0] & 64 ? "me.test" : NULL,
                                   .port = 25,
                                   .address_limit = run.limit};
    size_t records = 0;
    for (data += 2, size -= 2; size >= 3 && records < RECORDS_MAX; records++) {
        add_record(dns, data);
        data += 3;
        size -= 3;
    }
    struct mx_lookup *x = mx_lookup_find(loop, net, dns, &query, on_answer, &run);
    sim_loop_advance(loop, 10 * 60 * 1000);
    must(run.answers == 1);
    mx_lookup_free(&x);
    dns_free(&dns);
    net_free(&net);
    loop_free(&loop);
    return 0;
}
