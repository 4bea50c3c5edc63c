/* A group's bank in Redis. */
#include "queue/group/group_redis.h"

#include "base/memory.h"
#include "queue/group/group_script.h"

#include <stdlib.h>

struct group_redis {
    struct redis *redis;
    char *grant;
    struct redis_script scripts[GROUP_SCRIPTS];
};

static void
group_redis_join(void *bank, struct redis_client *client)
{
    struct group_redis *r = bank;
    redis_join(r->redis, client);
}

static void
group_redis_leave(void *bank, struct redis_client *client)
{
    struct group_redis *r = bank;
    redis_leave(r->redis, client);
}

static bool
group_redis_is_ready(const void *bank)
{
    const struct group_redis *r = bank;
    return redis_is_ready(r->redis);
}

static bool
group_redis_is_up(const void *bank)
{
    const struct group_redis *r = bank;
    return redis_is_up(r->redis);
}

static void
group_redis_eval(void *bank, enum group_script script, const char *const *words,
                 size_t count, const struct redis_question *question)
{
    struct group_redis *r = bank;
    redis_eval(r->redis, &r->scripts[script], words, count, question);
}

static void
group_redis_fail(void *bank, const char *why)
{
    struct group_redis *r = bank;
    redis_fail(r->redis, why);
}

static void
group_redis_place(const void *bank, char out[REDIS_URL_MAX])
{
    const struct group_redis *r = bank;
    redis_place_text(redis_server(r->redis), out);
}

static void
group_redis_free(void *bank)
{
    struct group_redis *r = bank;
    free(r->grant);
    free(r);
}

struct group_engine
group_redis_new(struct redis *redis)
{
    static const struct group_engine_kind kind = {.join = group_redis_join,
                                                  .leave = group_redis_leave,
                                                  .is_ready = group_redis_is_ready,
                                                  .is_up = group_redis_is_up,
                                                  .eval = group_redis_eval,
                                                  .fail = group_redis_fail,
                                                  .place = group_redis_place,
                                                  .free = group_redis_free};
    struct group_redis *r = memory_new(sizeof(*r));
    r->redis = redis;
    r->grant = group_script_grant();
    r->scripts[GROUP_SCRIPT_GRANT].text = r->grant;
    r->scripts[GROUP_SCRIPT_MEMBER].text = group_script_member;
    return (struct group_engine){&kind, r};
}
