/* A table of addresses, in the order of their failures. */
#include "smtp/client/tls_failures.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>

struct lapse {
    UT_hash_handle hh; /* keeps the order of adding */
    char address[NET_ADDRESS_TEXT_MAX];
    int64_t until_ms;
};

struct tls_failures {
    struct lapse *by_address;
};

static void
tls_failures_forget(struct tls_failures *l, struct lapse *lapse)
{
    HASH_DEL(l->by_address, lapse);
    free(lapse);
}

static struct lapse *
tls_failures_find(const struct tls_failures *l, const struct net_address *address)
{
    char key[NET_ADDRESS_TEXT_MAX];
    struct lapse *lapse;
    net_address_format(address, key);
    HASH_FIND_STR(l->by_address, key, lapse);
    return lapse;
}

struct tls_failures *
tls_failures_new(void)
{
    return memory_new(sizeof(struct tls_failures));
}

void
tls_failures_free(struct tls_failures **lapses)
{
    struct tls_failures *l = *lapses;
    if (l == NULL)
        return;
    while (l->by_address != NULL)
        tls_failures_forget(l, l->by_address);
    free(l);
    *lapses = NULL;
}

bool
tls_failures_add(struct tls_failures *l, const struct net_address *address,
                 int64_t now_ms)
{
    struct lapse *lapse = tls_failures_find(l, address);
    if (lapse != NULL && now_ms < lapse->until_ms)
        return false;
    if (lapse != NULL)
        tls_failures_forget(l, lapse);
    else if (HASH_COUNT(l->by_address) == TLS_FAILURES_MAX)
        tls_failures_forget(l, l->by_address);
    lapse = memory_new(sizeof(*lapse));
    net_address_format(address, lapse->address);
    lapse->until_ms = now_ms + LAPSE_MS;
    HASH_ADD_STR(l->by_address, address, lapse);
    return true;
}
