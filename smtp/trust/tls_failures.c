/* A table of addresses, in the order of their failures. */
#include "smtp/trust/tls_failures.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>

struct tls_failure {
    UT_hash_handle hh; /* keeps the order of adding */
    char address[NET_ADDRESS_TEXT_MAX];
    int64_t until_ms;
};

/* Each failure lasts equally long, and one that is renewed is removed and added again:
 * the order of adding is the order of their ends, and the first one is the oldest. */
struct tls_failures {
    struct tls_failure *by_address;
};

static void
tls_failures_forget(struct tls_failures *l, struct tls_failure *failure)
{
    HASH_DEL(l->by_address, failure);
    free(failure);
}

static struct tls_failure *
tls_failures_find(const struct tls_failures *l, const struct net_address *address)
{
    char key[NET_ADDRESS_TEXT_MAX];
    struct tls_failure *failure;
    net_address_format(address, key);
    HASH_FIND_STR(l->by_address, key, failure);
    return failure;
}

struct tls_failures *
tls_failures_new(void)
{
    return memory_new(sizeof(struct tls_failures));
}

void
tls_failures_free(struct tls_failures **failures)
{
    struct tls_failures *l = *failures;
    if (l == NULL)
        return;
    while (l->by_address != NULL)
        tls_failures_forget(l, l->by_address);
    free(l);
    *failures = NULL;
}

bool
tls_failures_add(struct tls_failures *l, const struct net_address *address,
                 int64_t now_ms)
{
    struct tls_failure *failure = tls_failures_find(l, address);
    if (failure != NULL && now_ms < failure->until_ms)
        return false;
    if (failure != NULL)
        tls_failures_forget(l, failure);
    else if (HASH_COUNT(l->by_address) == TLS_FAILURES_MAX)
        tls_failures_forget(l, l->by_address);
    failure = memory_new(sizeof(*failure));
    net_address_format(address, failure->address);
    failure->until_ms = now_ms + TLS_FAILURES_QUIET_MS;
    HASH_ADD_STR(l->by_address, address, failure);
    return true;
}
