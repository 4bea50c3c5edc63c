/* A bank, as a group asks it: Redis (group_redis.h), or the slice of this machine that has
 * the bank. The group knows no more of either.
 *
 * Both are asked in the words of the scripts (group_script.h) and answer as they do; a
 * client that joins hears when the bank may be asked, and when it has failed:
 * base/redis/redis.h. */
#ifndef QUEUE_GROUP_GROUP_ENGINE_H
#define QUEUE_GROUP_GROUP_ENGINE_H

#include "base/redis/redis.h"

enum group_script { GROUP_SCRIPT_GRANT, GROUP_SCRIPT_MEMBER };
enum { GROUP_SCRIPTS = GROUP_SCRIPT_MEMBER + 1 };

struct group_engine_kind {
    void (*join)(void *bank, struct redis_client *client);
    /* Questions of the client get no answer. */
    void (*leave)(void *bank, struct redis_client *client);
    bool (*is_ready)(const void *bank); /* it may be asked */
    bool (*is_up)(const void *bank);    /* false: do not wait for it */
    /* As redis_eval(). The answer comes later. */
    void (*eval)(void *bank, enum group_script script, const char *const *words,
                 size_t count, const struct redis_question *question);
    /* No answer in time, or an odd one: the questions get no answer. */
    void (*fail)(void *bank, const char *why);
    void (*place)(const void *bank, char out[REDIS_URL_MAX]); /* for operators */
    void (*free)(void *bank);
};

struct group_engine {
    const struct group_engine_kind *kind; /* NULL: there is no bank */
    void *bank;
};

#endif
