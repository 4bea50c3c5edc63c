/* A Redis for tests: see t/sim/redis.h. */
#include "t/sim/redis.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct redis {
    struct redis_client *clients;
    struct redis_place place;
    struct sim_redis_command *pending[SIM_REDIS_PENDING_MAX];
    size_t count;
    bool is_ready, is_down;
    unsigned failures;
    char why[REDIS_ERROR_MAX];
};

const char *
redis_version(void)
{
    return "hiredis simulated";
}

struct redis *
sim_redis_new(void)
{
    struct redis *redis = memory_new(sizeof(*redis));
    snprintf(redis->place.host, sizeof(redis->place.host), "redis.test");
    redis->place.port = 6379;
    return redis;
}

static void
sim_redis_forget_all(struct redis *redis)
{
    while (redis->count > 0)
        free(redis->pending[--redis->count]);
}

void
sim_redis_free(struct redis **redis)
{
    sim_redis_forget_all(*redis);
    free(*redis);
    *redis = NULL;
}

void
sim_redis_ready(struct redis *redis)
{
    struct redis_client *client;
    redis->is_ready = true;
    redis->is_down = false;
    DL_FOREACH (redis->clients, client)
        client->ready(client->context);
}

void
sim_redis_down(struct redis *redis, const char *why, bool is_up)
{
    struct redis_client *client;
    redis->is_ready = false;
    redis->is_down = !is_up;
    sim_redis_forget_all(redis);
    DL_FOREACH (redis->clients, client)
        client->failed(client->context, why);
}

size_t
sim_redis_pending(const struct redis *redis)
{
    return redis->count;
}

const struct sim_redis_command *
sim_redis_command(const struct redis *redis, size_t index)
{
    assert(index < redis->count);
    return redis->pending[index];
}

void
sim_redis_answer(struct redis *redis, enum redis_kind kind, const char *text)
{
    assert(redis->count > 0);
    struct sim_redis_command *command = redis->pending[0];
    struct redis_reply reply = {.kind = kind, .text = text_from(text)};
    memmove(redis->pending, redis->pending + 1,
            --redis->count * sizeof(redis->pending[0]));
    command->question.done(command->question.context, command->question.subject,
                           &reply);
    free(command);
}

unsigned
sim_redis_failures(const struct redis *redis, const char **why)
{
    *why = redis->why;
    return redis->failures;
}

/* --- As base/redis/redis.h has it ------------------------------------------------- */

struct redis *
redis_new(const struct redis_setup *setup, char *error, size_t error_size)
{
    (void)setup;
    (void)error;
    (void)error_size;
    return sim_redis_new();
}

void
redis_free(struct redis **redis)
{
    sim_redis_free(redis);
}

void
redis_join(struct redis *redis, struct redis_client *client)
{
    DL_APPEND(redis->clients, client);
}

void
redis_leave(struct redis *redis, struct redis_client *client)
{
    DL_DELETE(redis->clients, client);
}

bool
redis_is_ready(const struct redis *redis)
{
    return redis->is_ready;
}

bool
redis_is_up(const struct redis *redis)
{
    return !redis->is_down;
}

const struct redis_place *
redis_server(const struct redis *redis)
{
    return &redis->place;
}

void
redis_fail(struct redis *redis, const char *why)
{
    redis->failures++;
    snprintf(redis->why, sizeof(redis->why), "%s", why);
    sim_redis_down(redis, redis->why, true);
}

void
redis_eval(struct redis *redis, struct redis_script *script, const char *const *words,
           size_t count, const struct redis_question *question)
{
    struct sim_redis_command *command = memory_new(sizeof(*command));
    assert(redis->is_ready && redis->count < SIM_REDIS_PENDING_MAX);
    command->script = script->text;
    command->question = *question;
    for (size_t i = 0; i < count; i++)
        snprintf(command->words[command->count++], SIM_REDIS_WORD_MAX, "%s", words[i]);
    redis->pending[redis->count++] = command;
}

void
redis_refuse(struct redis *redis, const char *command, const struct redis_reply *reply)
{
    char why[REDIS_ERROR_MAX];
    redis_reply_explain(reply, command, why);
    redis_fail(redis, why);
}
