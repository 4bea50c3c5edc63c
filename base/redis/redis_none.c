/* In the place of redis.c where there is no hiredis: redis is refused. */
#include "base/redis/redis.h"

#include <assert.h>
#include <stdio.h>

const char *
redis_version(void)
{
    return "";
}

struct redis *
redis_new(const struct redis_setup *setup, char *error, size_t error_size)
{
    assert(setup->count > 0);
    snprintf(error, error_size, "this petrel was built without hiredis");
    return NULL;
}

void
redis_free(struct redis **redis)
{
    assert(*redis == NULL);
}

void
redis_join(struct redis *redis, struct redis_client *client)
{
    assert(redis != NULL && client != NULL);
}

void
redis_leave(struct redis *redis, struct redis_client *client)
{
    assert(redis != NULL && client != NULL);
}

bool
redis_is_ready(const struct redis *redis)
{
    return redis != NULL;
}

bool
redis_is_up(const struct redis *redis)
{
    return redis != NULL;
}

const struct redis_place *
redis_server(const struct redis *redis)
{
    assert(redis != NULL);
    return NULL;
}

void
redis_fail(struct redis *redis, const char *why)
{
    assert(redis != NULL && why != NULL);
}

void
redis_send(struct redis *redis, const char *const *words, size_t count,
           const struct redis_question *question)
{
    assert(redis != NULL && words != NULL && count > 0 && question != NULL);
}

void
redis_set_new(struct redis *redis, const char *key, const char *value, int64_t ttl_ms,
              const struct redis_question *question)
{
    assert(redis != NULL && key != NULL && value != NULL && ttl_ms > 0 &&
           question != NULL);
}

void
redis_eval(struct redis *redis, struct redis_script *script, const char *const *words,
           size_t count, const struct redis_question *question)
{
    assert(redis != NULL && script != NULL && words != NULL && count > 0 &&
           question != NULL);
}

void
redis_forget(struct redis *redis, const void *subject)
{
    assert(redis != NULL && subject != NULL);
}

void
redis_refuse(struct redis *redis, const char *command, const struct redis_reply *reply)
{
    assert(redis != NULL && command != NULL && reply != NULL);
}
