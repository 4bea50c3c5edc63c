/* The engine of copies: a connection to Redis of their own, since the wait for its disk and its
 * replicas blocks a connection.
 *
 * A server is used when it can keep a copy: it takes writes, keeps all of them (a policy of
 * noeviction, an append-only file that is synced before the answer), and has the replicas that
 * are asked for. Otherwise copies_engine_why() says in words why not. A command is acknowledged
 * when it is on the disk of the server and of `copies_replicas` replicas: WAITAOF where the
 * server has it, else appendfsync always and WAIT. */
#ifndef QUEUE_COPIES_COPIES_ENGINE_H
#define QUEUE_COPIES_COPIES_ENGINE_H

#include "base/redis/redis.h"
#include "queue/copies/copies_settings.h"

struct copies_engine;

enum {
    COPIES_ANSWER_MS = 5000, /* an answer takes longer: the engine is away */
    COPIES_DISK_MS = 4000,   /* its disk and its replicas have */
    COPIES_SCRIPTS_MAX = 9,  /* copies_scripts.h, adoption_scripts.h */
    COPIES_WHY_MAX = REDIS_ERROR_MAX + 64
};

struct copies_engine_setup {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct tls_client *tls;
    const struct copies_settings *settings; /* outlives it */
};

/* Embedded in its owner, zeroed before first use. */
struct copies_client {
    struct copies_client *prev, *next; /* the engine's own */
    void (*ready)(void *context);      /* it is connected, and fit */
    /* It is not, any more: copies_engine_why(). Commands under way have had their answers. */
    void (*lost)(void *context);
    void *context;
};

/* NULL with one line in error only if it can never work. */
struct copies_engine *copies_engine_new(const struct copies_engine_setup *setup,
                                        char *error, size_t error_size);
void copies_engine_free(struct copies_engine **engine);
void copies_engine_join(struct copies_engine *engine, struct copies_client *client);
/* Commands with the client's context get no answer any more. */
void copies_engine_leave(struct copies_engine *engine, struct copies_client *client);

bool copies_engine_is_ready(const struct copies_engine *engine);
/* All servers of the list have said that they cannot keep copies as they are set up: waiting
 * does not help. */
bool copies_engine_is_unfit(const struct copies_engine *engine);
/* Why it is not; "" if it is. */
const char *copies_engine_why(const struct copies_engine *engine);
const struct redis_place *copies_engine_server(const struct copies_engine *engine);

/* reply: TEXT, STATUS, NUMBER or NIL, and acknowledged; borrowed. NULL: it failed, and why says
 * why; whether it was done is unknown, unless the engine has refused it. */
typedef void copies_answered(void *context, const struct redis_reply *reply,
                             const char *why);
/* Runs a script, only while the engine is ready. words: the number of keys, keys, arguments, of
 * any bytes, which are sent and not kept. acknowledged: answered only when what it wrote is on
 * the disks. Answers come in the order of calls, never within the call. */
void copies_engine_run(struct copies_engine *engine, const char *script,
                       const struct text *words, size_t count, bool acknowledged,
                       copies_answered *done, void *context);
/* An answer of the keeper is no answer of this protocol: the connection ends. */
void copies_engine_fail(struct copies_engine *engine, const char *why);
/* The error of a reply is that another host owns the copies; its name. */
bool copies_is_fenced(const char *why, struct text *owner);

#endif
