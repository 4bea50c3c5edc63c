/* States of a simulation that have been judged, by a digest. */
#include "t/support/known.h"

#include "base/memory.h"

#include <stdlib.h>
#include <uthash.h>

struct known {
    uint64_t key;
    UT_hash_handle hh;
};

uint64_t
known_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 29;
}

bool
known_is_news(struct known **all, uint64_t key)
{
    struct known *k = NULL;
    HASH_FIND(hh, *all, &key, sizeof(key), k);
    if (k != NULL)
        return false;
    k = memory_new(sizeof(*k));
    k->key = key;
    HASH_ADD(hh, *all, key, sizeof(key), k);
    return true;
}

void
known_forget(struct known **all)
{
    struct known *k, *next;
    HASH_ITER (hh, *all, k, next) {
        HASH_DEL(*all, k);
        free(k);
    }
}
