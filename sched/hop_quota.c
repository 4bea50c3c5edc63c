/* Counts recipients sent to next hops that have a quota. */
#include "sched/hop_quota.h"

#include "base/memory.h"
#include "sched/transport.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int64_t
steady_ms(const struct hop_quotas *set)
{
    return set->now_ms - set->shift_ms;
}

static void
hop_quota_free(struct hop_quotas *set, struct hop_quota *hop)
{
    assert(hop->holders == 0);
    HASH_DEL(set->by_key, hop);
    free(hop);
}

/* Rare: after a thousand changes of the routes. */
static void
forget_least_hop(struct hop_quotas *set)
{
    struct hop_quota *hop, *next, *least = NULL;
    uint32_t least_used = 0;
    HASH_ITER (hh, set->by_key, hop, next) {
        uint32_t used = quota_used(&hop->use, QUOTA_DAY, steady_ms(set));
        if (hop->holders > 0 || hop->use.reserved > 0 ||
            (least != NULL && used >= least_used))
            continue;
        least = hop;
        least_used = used;
    }
    if (least != NULL)
        hop_quota_free(set, least);
}

struct hop_quota *
hop_quota_recall(struct hop_quotas *set, struct text key)
{
    struct hop_quota *hop;
    HASH_FIND(hh, set->by_key, key.at, key.length, hop);
    if (hop != NULL)
        return hop;
    if (HASH_COUNT(set->by_key) >= HOP_QUOTAS_MAX)
        forget_least_hop(set);
    hop = memory_new(sizeof(*hop) + key.length + 1);
    memcpy(hop->key, key.at, key.length);
    HASH_ADD_KEYPTR(hh, set->by_key, hop->key, key.length, hop);
    return hop;
}

bool
hop_quota_reset(struct hop_quotas *set, struct text key)
{
    struct hop_quota *hop;
    HASH_FIND(hh, set->by_key, key.at, key.length, hop);
    if (hop != NULL)
        hop->use = (struct quota_use){.reserved = hop->use.reserved};
    return hop != NULL;
}

struct hop_quota *
hop_quota_share(struct hop_quotas *set, const struct target *target)
{
    char key[ROUTE_KEY_MAX];
    if (quota_is_none(&target->transport.quota))
        return NULL;
    struct hop_quota *hop =
        hop_quota_recall(set, text_of(key, route_key(target, TEXT(""), key)));
    hop->holders++;
    return hop;
}

void
hop_quota_close(struct hop_quota *hop)
{
    assert(hop == NULL || hop->holders > 0);
    if (hop != NULL)
        hop->holders--;
}

void
hop_quotas_free(struct hop_quotas *set)
{
    struct hop_quota *hop, *next;
    HASH_ITER (hh, set->by_key, hop, next)
        hop_quota_free(set, hop);
}

uint32_t
hop_quota_left(const struct hop_quotas *set, const struct transport *c)
{
    return c->hop == NULL
               ? QUOTA_AMOUNT_MAX
               : quota_left(&c->hop->use, &c->target.transport.quota, steady_ms(set));
}

struct hop_quota *
hop_quota_begin(struct transport *c, uint32_t count)
{
    if (c->hop != NULL)
        quota_reserve(&c->hop->use, count);
    return c->hop;
}

void
hop_quota_end(struct hop_quotas *set, struct hop_quota *hop, uint32_t count,
              uint32_t sent)
{
    if (hop != NULL)
        quota_settle(&hop->use, count, sent, steady_ms(set));
}

bool
hop_quota_update(const struct hop_quotas *set, struct transport *c)
{
    bool was_spent = set->now_ms < c->spent_until_ms;
    c->spent_until_ms = 0;
    if (c->hop == NULL)
        return was_spent;
    int64_t now = steady_ms(set);
    int64_t ready = quota_ready_ms(&c->hop->use, &c->target.transport.quota, 1, now,
                                   &c->spent_period);
    if (ready > now)
        c->spent_until_ms = ready + set->shift_ms;
    return was_spent != (ready > now);
}
