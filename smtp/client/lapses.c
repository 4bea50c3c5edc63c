/* A table of addresses, in the order in which they were told of. */
#include "smtp/client/lapses.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>

struct lapse {
    UT_hash_handle hh; /* keeps the order of adding */
    char address[NET_ADDRESS_TEXT_MAX];
    int64_t until_ms;
};

struct lapses {
    struct lapse *by_address;
};

static void
lapses_forget(struct lapses *l, struct lapse *lapse)
{
    HASH_DEL(l->by_address, lapse);
    free(lapse);
}

static struct lapse *
lapses_find(const struct lapses *l, const struct net_address *address)
{
    char key[NET_ADDRESS_TEXT_MAX];
    struct lapse *lapse;
    net_address_format(address, key);
    HASH_FIND_STR(l->by_address, key, lapse);
    return lapse;
}

struct lapses *
lapses_new(void)
{
    return memory_new(sizeof(struct lapses));
}

void
lapses_free(struct lapses **lapses)
{
    struct lapses *l = *lapses;
    if (l == NULL)
        return;
    while (l->by_address != NULL)
        lapses_forget(l, l->by_address);
    free(l);
    *lapses = NULL;
}

bool
lapses_add(struct lapses *l, const struct net_address *address, int64_t now_ms)
{
    struct lapse *lapse = lapses_find(l, address);
    if (lapse != NULL && now_ms < lapse->until_ms)
        return false;
    if (lapse != NULL)
        lapses_forget(l, lapse);
    else if (HASH_COUNT(l->by_address) == LAPSES_MAX)
        lapses_forget(l, l->by_address);
    lapse = memory_new(sizeof(*lapse));
    net_address_format(address, lapse->address);
    lapse->until_ms = now_ms + LAPSE_MS;
    HASH_ADD_STR(l->by_address, address, lapse);
    return true;
}
