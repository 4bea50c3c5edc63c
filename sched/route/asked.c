/* Targets with the wishes of senders, by the target of the route and the wish. */
#include "sched/route/asked.h"

#include "base/memory.h"
#include "sched/route/target.h"

#include <stdio.h>
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
asked_waives(const struct target *t)
{
    return t->kind == TARGET_MX && t->tls != TARGET_TLS_NONE &&
           !(t->no_dane && t->no_sts);
}

/* Mail for this machine is there: RFC 8689 speaks of hops. */
static bool
asked_requires(const struct target *t)
{
    switch (t->kind) {
    case TARGET_MX:
    case TARGET_SMTP:
        return true;
    case TARGET_LMTP:
        return t->host[0] != '\0' && !target_is_loopback(text_from(t->host));
    case TARGET_HTTP:
        return !t->tls_implicit && !target_is_loopback(text_from(t->host));
    case TARGET_MAILDIR:
    case TARGET_HOLD:
    case TARGET_DISCARD:
    case TARGET_ERROR:
    case TARGET_UNKNOWN:
        break;
    }
    return false;
}

static bool
asked_changes(const struct target *t, enum target_asks asks)
{
    switch (asks) {
    case TARGET_ASKS_NOTHING:
        break;
    case TARGET_REQUIRES_TLS:
        return asked_requires(t);
    case TARGET_WAIVES_TLS:
        return asked_waives(t);
    }
    return false;
}

/* The operator wants no TLS there, or no proof of the hosts that DNS names. */
static void
asked_refuse(struct target *t)
{
    bool is_clear = t->kind != TARGET_LMTP && t->tls == TARGET_TLS_NONE;
    if (!is_clear && !(t->kind == TARGET_MX && t->no_dane && t->no_sts))
        return;
    t->kind = TARGET_ERROR;
    (void)text_copy(t->enhanced, sizeof(t->enhanced), TEXT("5.7.10"));
    (void)snprintf(t->path, sizeof(t->path),
                   "the sender requires TLS (REQUIRETLS), and the route %s",
                   is_clear ? "has no TLS" : "proves no host (dane=no, sts=no)");
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
        if (asks == TARGET_REQUIRES_TLS)
            asked_refuse(&a->target);
        HASH_ADD(hh, set->by_key, key, sizeof(a->key), a);
    }
    return &a->target;
}
