/* A client that begins many handshakes leaves places to the others. */
#include "admin/http/http_budget.h"

#include "t/support/tap.h"

#include <stdlib.h>

static unsigned
taken(struct http_budget *b, const char *ip, unsigned times, int64_t now_ms)
{
    struct net_address a = {.family = NET_NONE};
    unsigned count = 0;
    if (!net_address_parse_ip(text_from(ip), &a))
        abort();
    for (unsigned i = 0; i < times; i++) {
        a.port = (uint16_t)(1000 + i);
        count += http_budget_take(b, &a, now_ms);
    }
    return count;
}

int
main(void)
{
    struct http_budget b = {0};
    is_number(taken(&b, "192.0.2.1", 100, 5000), HTTP_TLS_OF_CLIENT, "one has its part");
    is_number(taken(&b, "192.0.2.2", 1, 5100), 1, "another is served");
    is_number(taken(&b, "2001:db8::1", 100, 5200), HTTP_TLS_OF_CLIENT, "with IPv6, too");
    is_number(taken(&b, "192.0.2.3", 100, 5300), 4, "all distant ones have theirs");
    is_number(taken(&b, "127.0.0.1", 100, 5999), 5, "the rest is left to loopback");
    is_number(taken(&b, "192.0.2.1", 1, 5999), 0, "until the second is over");
    is_number(taken(&b, "192.0.2.1", 1, 6000), 1, "the next one begins");
    is_number(taken(&b, "::1", 100, 6000), 19, "loopback may have all");
    return done();
}
