/* Declarations that the files of the registry share. Internal to defrag/registry/. */
#ifndef DEFRAG_REGISTRY_REGISTRY_INTERNAL_H
#define DEFRAG_REGISTRY_REGISTRY_INTERNAL_H

#include "base/breaker.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "defrag/registry/registry.h"

enum { REGISTRY_HEX_SIZE = 2 * REGISTRY_KEY_SIZE + 1 };

enum registry_claim_state {
    CLAIM_IDLE,
    CLAIM_WAITING,  /* in registry->waiting */
    CLAIM_ASKED,    /* in registry->asked */
    CLAIM_ANSWERED, /* in registry->answered */
    CLAIM_TELLING   /* in registry->telling */
};

/* Whether another process uses our name: see registry.c. */
enum {
    NAME_TTL_MS = 60000,
    NAME_CHECK_MS = 30000,
    NAME_SLACK_MS = 1000, /* of a check that is early, or late */
    INSTANCE_SIZE = 16 + 1
};
struct registry_name {
    char instance[INSTANCE_SIZE]; /* of this run */
    char other[INSTANCE_SIZE];    /* "": there is no other */
    int64_t seen_ms;              /* monotonic: when the other was first seen */
    int64_t born_ms;              /* born_ms of registry_name_other() then */
    bool is_told;
    bool is_kept; /* the registry has it */
    struct loop_timer check;
};

struct registry {
    struct registry_setup setup;
    struct registry_place place;
    struct breaker breaker; /* of a directory; Redis has its own */
    bool is_away;           /* which was logged */
    int64_t patience_ms;    /* REGISTRY_ANSWER_MS; a test may have more */
    struct registry_name name;
    bool is_owing;      /* a claim was unavailable: recovered() is due when it is up */
    int64_t recover_ms; /* monotonic: not before that */
    bool is_recovering; /* the timer for that runs */
    /* Each oldest first: not yet asked, asked, answered but not yet reported, reported
     * in this turn. */
    struct registry_claim *waiting, *asked, *answered, *telling;
    struct loop_task tell;
    struct loop_timer late; /* the oldest that waits or was asked is due */
    struct loop_timer recover;
    struct registry_counts counts;
    struct registry_dir *dir; /* the one of the place's kind */
    struct registry_redis *redis;
};

/* --- registry.c, for the others --------------------------------------------------- */

/* Waiting or asked becomes answered; done is called in the next turn. */
void registry_answer(struct registry *r, struct registry_claim *claim,
                     enum registry_answer answer);
/* Answers with the owner that the place names: this host, another, or an invalid name
 * (the registry is unavailable then). */
void registry_answer_owner(struct registry *r, struct registry_claim *claim,
                           struct text owner);
/* Waiting becomes asked. */
void registry_asked(struct registry *r, struct registry_claim *claim);
/* Asked becomes waiting again, all of them, before the others. */
void registry_ask_again(struct registry *r);
/* The place gave a valid answer. */
void registry_good(struct registry *r);
/* The place failed: counted; when it is not up any more this is logged once, and all
 * waiting claims are answered. Returns the pause before the next try of a directory. */
int64_t registry_failed(struct registry *r, const char *why);

/* The name that we kept there is gone. */
void registry_emptied(struct registry *r);

/* The instance found under our name is our own. */
void registry_name_ours(struct registry_name *n);
/* The instance found there is another's, last refreshed at born_ms; 0: the time is unknown. */
void registry_name_other(struct registry *r, struct text instance, int64_t born_ms);

/* --- registry_dir.c --------------------------------------------------------------- */

struct registry_dir *registry_dir_new(struct registry *r);
void registry_dir_free(struct registry_dir **dir);
/* There is a claim in r->waiting, or a close. */
void registry_dir_claim(struct registry_dir *dir);
void registry_dir_close(struct registry_dir *dir,
                        const unsigned char key[REGISTRY_KEY_SIZE], int64_t memory_ms);

/* Keeps our instance under our name, or reports that of another host there. */
void registry_dir_check_name(struct registry_dir *dir);

/* --- registry_redis.c ------------------------------------------------------------- */

/* The key that the connection writes to see whether it may write. */
#define REGISTRY_PROBE "df:"

/* NULL with a line in error. */
struct registry_redis *registry_redis_new(struct registry *r, char *error,
                                          size_t error_size);
void registry_redis_free(struct registry_redis **redis);
struct redis *registry_redis_connection(struct registry_redis *redis);
void registry_redis_claim(struct registry_redis *redis);
/* The answer to an asked claim is no longer wanted. */
void registry_redis_forget(struct registry_redis *redis,
                           const struct registry_claim *claim);
void registry_redis_close(struct registry_redis *redis,
                          const unsigned char key[REGISTRY_KEY_SIZE],
                          int64_t memory_ms);
/* As registry_dir_check_name(); the result is reported later. */
void registry_redis_check_name(struct registry_redis *redis);
/* The oldest asked claim has waited too long. */
void registry_redis_late(struct registry_redis *redis);

#endif
