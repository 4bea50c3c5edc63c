/* What is remembered of sites that are not there yet. */
#include "sched/limits/remembered.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool
remembered_add(struct remembered_set *set, const struct remembered *r)
{
    struct remembered *old = remembered_take(set, r->key), *copy;
    remembered_free(&old);
    if (HASH_COUNT(set->by_key) >= REMEMBERED_MAX)
        return false;
    size_t length = strlen(r->key);
    copy = memory_new(sizeof *copy + length + 1);
    *copy = *r;
    char *key = (char *)(copy + 1);
    memcpy(key, r->key, length + 1);
    copy->key = key;
    HASH_ADD_KEYPTR(hh, set->by_key, copy->key, length, copy);
    return true;
}

struct remembered *
remembered_take(struct remembered_set *set, const char *key)
{
    struct remembered *r;
    HASH_FIND_STR(set->by_key, key, r);
    if (r)
        HASH_DELETE(hh, set->by_key, r);
    return r;
}

void
remembered_free(struct remembered **r)
{
    free(*r);
    *r = NULL;
}

void
remembered_clear(struct remembered_set *set)
{
    struct remembered *r, *next;
    HASH_ITER (hh, set->by_key, r, next) {
        HASH_DELETE(hh, set->by_key, r);
        free(r);
    }
}
