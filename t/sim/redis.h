/* A Redis for tests of its callers: t/sim/redis.c in the place of base/redis/redis.c. It
 * answers nothing by itself; the test sees the last command and gives the answer. */
#ifndef T_SIM_REDIS_H
#define T_SIM_REDIS_H

#include "base/redis/redis.h"

enum { SIM_REDIS_WORD_MAX = 128, SIM_REDIS_PENDING_MAX = 8 };

/* A command that has no answer yet. */
struct sim_redis_command {
    char words[REDIS_WORDS_MAX][SIM_REDIS_WORD_MAX]; /* of a script: without its text */
    size_t count;
    const char *script; /* NULL: none */
    struct redis_question question;
};

/* One that is connected to nothing. */
struct redis *sim_redis_new(void);
void sim_redis_free(struct redis **redis);
/* The connection is fit for use; or has failed, perhaps for long. */
void sim_redis_ready(struct redis *redis);
void sim_redis_down(struct redis *redis, const char *why, bool is_up);
/* Commands without an answer, oldest first. */
size_t sim_redis_pending(const struct redis *redis);
const struct sim_redis_command *sim_redis_command(const struct redis *redis, size_t index);
/* Answers the oldest with this text, or with an error. */
void sim_redis_answer(struct redis *redis, enum redis_kind kind, const char *text);
/* How often it was told to end the connection, and why the last time. */
unsigned sim_redis_failures(const struct redis *redis, const char **why);

#endif
