/* Owners of sets in Redis or Valkey: SET df:KEY host NX GET PX ttl. base/redis/redis.h has
 * the connection. Claims under way when it ends are asked again on the next one as long
 * as there is time. */
#include "base/memory.h"
#include "defrag/registry/registry_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct registry_redis {
    struct registry *r;
    struct redis *redis;
    struct redis_client client;
    bool is_own;         /* the connection is the registry's alone */
    size_t closes;       /* under way */
    bool has_complained; /* that sets cannot be closed */
    bool has_wondered;   /* that names cannot be checked */
    bool has_name;       /* our instance was under our name */
};

/* Only the owner closes, and in one step: the claim may expire between two. */
static const char close_script[] =
    "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
    "if ARGV[2]=='0' then return redis.call('DEL',KEYS[1]) end "
    "return redis.call('PEXPIRE',KEYS[1],ARGV[2])";

/* --- Replies ---------------------------------------------------------------------- */

static void
take_owner(void *context, void *subject, const struct redis_reply *reply)
{
    struct registry_redis *redis = context;
    struct registry_claim *claim = subject; /* NULL: no longer wanted */
    if (reply->kind != REDIS_NIL && reply->kind != REDIS_TEXT) {
        if (claim != NULL)
            registry_answer(redis->r, claim, REGISTRY_UNAVAILABLE);
        redis_refuse(redis->redis, "SET", reply);
        return;
    }
    if (claim != NULL && reply->kind == REDIS_NIL)
        registry_answer(redis->r, claim, REGISTRY_OWN);
    else if (claim != NULL)
        registry_answer_owner(redis->r, claim, reply->text);
    registry_good(redis->r);
}

static void
take_closed(void *context, void *subject, const struct redis_reply *reply)
{
    struct registry_redis *redis = context;
    char place[REGISTRY_SETTING_MAX];
    (void)subject;
    /* An error (scripts may be forbidden) fails nothing else: the claims expire. */
    redis->closes--;
    if (reply->kind != REDIS_ERROR || redis->has_complained)
        return;
    redis->has_complained = true;
    registry_place_text(&redis->r->place, place);
    log_say(redis->r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
            "cannot close sets in registry %s; they will expire: %.*s", place,
            TEXT_ARGS(text_before(reply->text, 200)));
}

/* The reply is not needed. */
static void
take_kept(void *context, void *subject, const struct redis_reply *reply)
{
    (void)context;
    (void)subject;
    (void)reply;
}

/* Names differ in more than case. */
static void
name_key(const struct registry_redis *redis, char key[REGISTRY_HOST_MAX + 8])
{
    snprintf(key, REGISTRY_HOST_MAX + 8, "dfhost:%s", redis->r->setup.host);
    text_lower(key, strlen(key));
}

/* For ttl_ms from now on, if it still exists; 0: removes it. */
static void
keep_name(struct registry_redis *redis, int ttl_ms)
{
    char key[REGISTRY_HOST_MAX + 8], ttl[24];
    name_key(redis, key);
    snprintf(ttl, sizeof(ttl), "%d", ttl_ms);
    const char *const words[] = {
        "EVAL", close_script, "1", key, redis->r->name.instance, ttl};
    redis_send(redis->redis, words, sizeof(words) / sizeof(words[0]),
               &(struct redis_question){take_kept, redis, NULL});
}

static void
registry_redis_take_name(void *context, void *subject, const struct redis_reply *reply)
{
    struct registry_redis *redis = context;
    struct registry *r = redis->r;
    char place[REGISTRY_SETTING_MAX];
    (void)subject;
    bool is_ours = reply->kind == REDIS_NIL ||
                   (reply->kind == REDIS_TEXT &&
                    text_equal(reply->text, text_from(r->name.instance)));
    redis->has_name = is_ours;
    if (is_ours) {
        registry_name_ours(&r->name);
        if (reply->kind == REDIS_TEXT)
            keep_name(redis, NAME_TTL_MS);
    } else if (reply->kind == REDIS_TEXT) {
        registry_name_other(r, reply->text, 0);
    } else if (!redis->has_wondered) {
        redis->has_wondered = true;
        registry_place_text(&r->place, place);
        log_say(r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
                "cannot check registry %s for another host of this name: "
                "%.*s",
                place,
                TEXT_ARGS(reply->kind == REDIS_ERROR ? text_before(reply->text, 200)
                                                     : TEXT("unexpected reply")));
    }
}

/* --- Commands --------------------------------------------------------------------- */

static void
send_waiting(struct registry_redis *redis)
{
    char hex[REGISTRY_HEX_SIZE], key[sizeof(hex) + 3];
    struct registry_claim *claim;
    while ((claim = redis->r->waiting) != NULL) {
        text_hex(claim->key, REGISTRY_KEY_SIZE, hex);
        snprintf(key, sizeof(key), "df:%s", hex);
        redis_set_new(redis->redis, key, redis->r->setup.host, claim->ttl_ms,
                      &(struct redis_question){take_owner, redis, claim});
        registry_asked(redis->r, claim);
    }
}

void
registry_redis_check_name(struct registry_redis *redis)
{
    char key[REGISTRY_HOST_MAX + 8];
    if (!redis_is_ready(redis->redis))
        return;
    name_key(redis, key);
    redis_set_new(redis->redis, key, redis->r->name.instance, NAME_TTL_MS,
                  &(struct redis_question){registry_redis_take_name, redis, NULL});
}

static void
on_redis_ready(void *context)
{
    struct registry_redis *redis = context;
    registry_good(redis->r);
    send_waiting(redis);
    registry_redis_check_name(redis);
}

/* The claims that were asked wait again: a reply that was lost does not tell whether
 * Redis has granted them, and asking twice is harmless, since a claim of this host is
 * answered as its own. */
static void
on_redis_failed(void *context, const char *why)
{
    struct registry_redis *redis = context;
    redis->closes = 0;
    registry_ask_again(redis->r);
    (void)registry_failed(redis->r, why);
}

/* --- Lifetime --------------------------------------------------------------------- */

struct registry_redis *
registry_redis_new(struct registry *r, char *error, size_t error_size)
{
    struct registry_redis *redis = memory_new(sizeof(*redis));
    redis->r = r;
    redis->redis = r->setup.redis;
    redis->is_own = redis->redis == NULL;
    if (redis->is_own) {
        struct redis_setup setup = {.loop = r->setup.loop,
                                    .net = r->setup.net,
                                    .dns = r->setup.dns,
                                    .tls = r->setup.tls,
                                    .places = &r->place.redis,
                                    .count = 1,
                                    .probe = REGISTRY_PROBE};
        redis->redis = redis_new(&setup, error, error_size);
    }
    if (redis->redis == NULL) {
        free(redis);
        return NULL;
    }
    redis->client = (struct redis_client){
        .ready = on_redis_ready, .failed = on_redis_failed, .context = redis};
    redis_join(redis->redis, &redis->client);
    return redis;
}

/* A regular stop takes the name away, so that the next run of this host finds no other
 * there. */
void
registry_redis_free(struct registry_redis **redis)
{
    struct registry_redis *old = *redis;
    if (old == NULL)
        return;
    *redis = NULL;
    redis_leave(old->redis, &old->client);
    if (redis_is_ready(old->redis) && old->has_name)
        keep_name(old, 0);
    if (old->is_own)
        redis_free(&old->redis);
    free(old);
}

struct redis *
registry_redis_connection(struct registry_redis *redis)
{
    return redis->redis;
}

void
registry_redis_claim(struct registry_redis *redis)
{
    if (redis_is_ready(redis->redis))
        send_waiting(redis);
}

void
registry_redis_forget(struct registry_redis *redis, const struct registry_claim *claim)
{
    redis_forget(redis->redis, claim);
}

void
registry_redis_close(struct registry_redis *redis,
                     const unsigned char key[REGISTRY_KEY_SIZE], int64_t memory_ms)
{
    char hex[REGISTRY_HEX_SIZE], name[sizeof(hex) + 3], memory[24];
    if (!redis_is_ready(redis->redis) || redis->closes >= REGISTRY_CLOSES_MAX)
        return;
    text_hex(key, REGISTRY_KEY_SIZE, hex);
    snprintf(name, sizeof(name), "df:%s", hex);
    snprintf(memory, sizeof(memory), "%" PRId64, memory_ms);
    const char *const words[] = {"EVAL", close_script,         "1",
                                 name,   redis->r->setup.host, memory};
    redis->closes++;
    redis_send(redis->redis, words, sizeof(words) / sizeof(words[0]),
               &(struct redis_question){take_closed, redis, NULL});
}

/* Replies come in order: those behind it wait for the same one. */
void
registry_redis_late(struct registry_redis *redis)
{
    redis_fail(redis->redis, "no answer in time");
}
