/* In the place of registry_redis.c where there is no hiredis: redis is refused. */
#include "defrag/registry/registry_internal.h"

#include <assert.h>
#include <stdio.h>

const char *
registry_redis_version(void)
{
    return "";
}

struct registry_redis *
registry_redis_new(struct registry *r, char *error, size_t error_size)
{
    assert(r->place.kind == REGISTRY_REDIS);
    snprintf(error, error_size, "this petrel was built without hiredis");
    return NULL;
}

void
registry_redis_free(struct registry_redis **redis)
{
    assert(*redis == NULL);
}

void
registry_redis_claim(struct registry_redis *redis)
{
    assert(redis != NULL);
}

void
registry_redis_forget(struct registry_redis *redis, const struct registry_claim *claim)
{
    assert(redis != NULL && claim != NULL);
}

void
registry_redis_close(struct registry_redis *redis,
                     const unsigned char key[REGISTRY_KEY_SIZE], int64_t memory_ms)
{
    assert(redis != NULL && key != NULL && memory_ms >= 0);
}

void
registry_redis_check_name(struct registry_redis *redis)
{
    assert(redis != NULL);
}

void
registry_redis_late(struct registry_redis *redis)
{
    assert(redis != NULL);
}
