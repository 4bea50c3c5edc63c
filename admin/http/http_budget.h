/* The TLS handshakes that HTTP begins in a second. Each costs the loop about a millisecond, so
 * their number is limited, and so is the part of one client: else it keeps health checks and
 * the operator out. No clock, no socket. */
#ifndef ADMIN_HTTP_HTTP_BUDGET_H
#define ADMIN_HTTP_HTTP_BUDGET_H

#include "base/net/net.h"

enum {
    HTTP_TLS_A_SECOND = 20, /* handshakes begun; further clients are cut off */
    HTTP_TLS_OF_CLIENT = 5, /* of one address beyond loopback */
    HTTP_TLS_DISTANT = 15   /* of all those: the others are left to loopback */
};

struct http_budget { /* zeroed: nothing is begun */
    int64_t second_ms;
    unsigned count, distant_count;
    struct net_address distant[HTTP_TLS_DISTANT];
};

/* False: the client is not to be served; it has not taken a place. */
bool http_budget_take(struct http_budget *b, const struct net_address *peer,
                      int64_t now_ms) __attribute__((warn_unused_result));

#endif
