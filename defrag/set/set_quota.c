/* Counts the open sets of each sender and each client; SET_NOBODY has no quota. */
#include "defrag/set/set_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

size_t
set_quota_used(struct quota *quotas, uint64_t whose)
{
    struct quota *q;
    HASH_FIND(hh, quotas, &whose, sizeof(whose), q);
    return q == NULL ? 0 : q->sets;
}

void
set_quota_take(struct quota **quotas, uint64_t whose)
{
    struct quota *q;
    if (whose == SET_NOBODY)
        return;
    HASH_FIND(hh, *quotas, &whose, sizeof(whose), q);
    if (q == NULL) {
        q = memory_new(sizeof(*q));
        q->whose = whose;
        HASH_ADD(hh, *quotas, whose, sizeof(whose), q);
    }
    q->sets++;
}

void
set_quota_give(struct quota **quotas, uint64_t whose)
{
    struct quota *q;
    if (whose == SET_NOBODY)
        return;
    HASH_FIND(hh, *quotas, &whose, sizeof(whose), q);
    assert(q != NULL && q->sets > 0);
    if (--q->sets > 0)
        return;
    HASH_DEL(*quotas, q);
    free(q);
}
