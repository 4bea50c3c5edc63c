/* A bank, as a group asks it: Redis (group_redis.h), or the slice of this machine that has
 * the bank (group_lead.h). The group knows no more of either. */
#ifndef QUEUE_GROUP_GROUP_ENGINE_H
#define QUEUE_GROUP_GROUP_ENGINE_H

#include "base/redis/redis.h"
#include "sched/limits/bank.h"

enum { GROUP_ASK_MAX = 200 /* sites in a question */ };

struct group_ask {
    char key[BANK_KEY_MAX]; /* without an end */
    struct bank_question question;
};

/* The answer to a heartbeat. */
struct group_heard {
    bool is_taken;           /* another run has our name */
    int old;                 /* hosts not seen for GROUP_LATE_MS; -1: not said */
    struct text list, infos; /* borrowed: group_members_read(), group_siblings_read() */
};

/* The group. Nothing is called before the call that it answers has returned. refused: why
 * there is no answer, and the bank is away; NULL, too: the connection ends, whose `failed`
 * follows. */
struct group_asker {
    struct redis_client connection; /* ready: the bank may be asked */
    void (*granted)(void *context, const struct bank_grant *grants,
                    const char *refused);
    void (*heard)(void *context, const struct group_heard *heard, const char *refused);
    void (*parted)(void *context, bool is_known); /* the bank knows of a goodbye */
};

struct group_engine_kind {
    void (*join)(void *bank, struct group_asker *asker);
    /* Questions get no answer. */
    void (*leave)(void *bank, struct group_asker *asker);
    bool (*is_ready)(const void *bank); /* it may be asked */
    bool (*is_up)(const void *bank);    /* false: do not wait for it */
    /* One at a time; asks stay until the answer. */
    void (*ask)(void *bank, const struct group_ask *asks, size_t count);
    /* A heartbeat, one at a time, and a goodbye of any host. NULL: the members are known. */
    void (*beat)(void *bank, const char *host, const char *info, const char *run,
                 bool is_list);
    void (*part)(void *bank, const char *host);
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
