/* The state of sites that do not exist yet. */
#include "sched/limits/site_state.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool
site_state_add(struct site_state_set *set, const struct site_state *r)
{
    struct site_state *old = site_state_take(set, r->key), *copy;
    site_state_free(&old);
    if (HASH_COUNT(set->by_key) >= SITE_STATE_MAX)
        return false;
    size_t length = strlen(r->key);
    copy = memory_new(sizeof(*copy) + length + 1);
    *copy = *r;
    char *key = (char *)(copy + 1);
    memcpy(key, r->key, length + 1);
    copy->key = key;
    HASH_ADD_KEYPTR(hh, set->by_key, copy->key, length, copy);
    return true;
}

struct site_state *
site_state_take(struct site_state_set *set, const char *key)
{
    struct site_state *r;
    HASH_FIND_STR(set->by_key, key, r);
    if (r)
        HASH_DELETE(hh, set->by_key, r);
    return r;
}

void
site_state_free(struct site_state **r)
{
    free(*r);
    *r = NULL;
}

void
site_state_shift(struct site_state_set *set, int64_t delta_ms)
{
    for (struct site_state *r = set->by_key; r; r = r->hh.next) {
        r->at_ms += r->at_ms > 0 ? delta_ms : 0;
        r->pause_until_ms += delta_ms;
        r->dead_since_ms += r->dead_since_ms > 0 ? delta_ms : 0;
        r->dead_until_ms += delta_ms;
        ceiling_shift(&r->ceiling, delta_ms);
        bucket_shift(&r->bucket, delta_ms);
        bucket_learnt_shift(&r->learnt, delta_ms);
    }
}

void
site_state_clear(struct site_state_set *set)
{
    struct site_state *r, *next;
    HASH_ITER (hh, set->by_key, r, next) {
        HASH_DELETE(hh, set->by_key, r);
        free(r);
    }
}
