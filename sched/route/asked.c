/* Targets with the wishes of senders, by the target of the route and the wish. */
#include "sched/route/asked.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct asked_key {
    const struct target *target;
    size_t asks;
};

struct asked_target {
    UT_hash_handle hh;
    struct asked_key key;
    struct target target;
};

struct asked_targets {
    struct asked_target *by_key;
};

struct asked_targets *
asked_targets_new(void)
{
    return memory_new(sizeof(struct asked_targets));
}

void
asked_targets_free(struct asked_targets **set)
{
    struct asked_target *a, *next;
    if (*set == NULL)
        return;
    HASH_ITER (hh, (*set)->by_key, a, next) {
        HASH_DEL((*set)->by_key, a);
        free(a);
    }
    free(*set);
    *set = NULL;
}

/* The recipient's domain has demands only where its hosts are looked up by MX. */
static bool
asked_changes(const struct target *t, enum target_asks asks)
{
    return asks == TARGET_WAIVES_TLS && t->kind == TARGET_MX &&
           t->tls != TARGET_TLS_NONE && !(t->no_dane && t->no_sts);
}

const struct target *
asked_targets_find(struct asked_targets *set, const struct target *target,
                   enum target_asks asks)
{
    struct asked_key key = {target, asks};
    struct asked_target *a;
    if (!asked_changes(target, asks))
        return target;
    HASH_FIND(hh, set->by_key, &key, sizeof(key), a);
    if (a == NULL) {
        a = memory_new(sizeof(*a));
        a->key = key;
        memcpy(&a->target, target, sizeof(*target));
        a->target.asks = asks;
        HASH_ADD(hh, set->by_key, key, sizeof(a->key), a);
    }
    return &a->target;
}
