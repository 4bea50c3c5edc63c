/* Owners of sets in Redis or Valkey: SET df:KEY host NX GET PX ttl, which needs Redis
 * 7; an older one runs a script that does the same and answers the same.
 *
 * Of hiredis only the protocol is used, to write commands and to read replies; the
 * bytes are carried by base/net/net.h, so that time-outs, names and TLS are the same as
 * elsewhere, and no call blocks. A connection stays open and is pipelined. It is fit
 * for use once it has answered a claim of its own, which also shows that the server
 * knows the command and may write. Whatever goes wrong ends the connection; claims
 * under way are asked again on the next one as long as there is time. */
#include "base/dns/dns.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "defrag/registry/registry_internal.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    RESOLVE_MS = 5000, /* no claim waits for the resolver */
    SECURE_TIMES = 8,  /* longer than a claim waits: a handshake */
    FLAP_MS = 1000,    /* pause when several in a row have lived for less than that */
    REPLY_MAX = 4096,  /* bytes of one reply */
    ADDRESSES_MAX = 8, /* tried */
    ARGUMENTS_MAX = 8, /* of a command */
    ARGUMENT_MAX = 512 /* bytes */
};

enum stage { REST, RESOLVING, CONNECTING, REFUSED, SECURING, GREETING, READY };
enum request_kind {
    REQUEST_AUTH,
    REQUEST_SELECT,
    REQUEST_PROBE,
    REQUEST_CLAIM,
    REQUEST_CLOSE,
    REQUEST_NAME,
    REQUEST_KEEP /* of the name: the reply is not needed */
};

/* A command whose reply has not come. */
struct request {
    enum request_kind kind;
    struct registry_claim *claim; /* CLAIM: NULL when the answer is no longer wanted */
    struct request *prev, *next;
};

struct registry_redis {
    struct registry *r;
    enum stage stage;
    struct loop_timer step; /* the stage has taken too long; REST and REFUSED end */
    struct dns_query *query;
    struct net_address addresses[ADDRESSES_MAX];
    size_t address_count, address; /* the one that is tried */
    struct net_connection *connection;
    redisReader *reader;
    struct request *requests; /* oldest first */
    size_t closes;            /* of them */
    int64_t ready_ms;         /* monotonic: READY since */
    unsigned flaps;           /* connections in a row that did not live for FLAP_MS */
    bool has_complained;      /* that sets cannot be closed */
    bool has_wondered;        /* that names cannot be checked */
    bool has_name;            /* our instance was under our name */
    char why[256];            /* the last address did not answer */
};

/* Only the owner closes, and in one step: the claim may expire between two. */
static const char close_script[] =
    "if redis.call('GET',KEYS[1])~=ARGV[1] then return 0 end "
    "if ARGV[2]=='0' then return redis.call('DEL',KEYS[1]) end "
    "return redis.call('PEXPIRE',KEYS[1],ARGV[2])";

/* SET NX GET PX for a server without it. */
static const char set_script[] =
    "local o=redis.call('GET',KEYS[1]) if o then return o end "
    "redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return false";

const char *
registry_redis_version(void)
{
#define TEXT_OF(number)     #number
#define VERSION_OF(a, b, c) "hiredis " TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
    return VERSION_OF(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

/* --- Commands --------------------------------------------------------------------- */

static void
send_command(struct registry_redis *redis, enum request_kind kind,
             const char *const *words, size_t count)
{
    const char *arguments[ARGUMENTS_MAX];
    struct request *request = memory_new(sizeof(*request));
    char *command = NULL;
    assert(count <= ARGUMENTS_MAX && redis->connection != NULL);
    for (size_t i = 0; i < count; i++)
        arguments[i] = words[i];
    long long length = redisFormatCommandArgv(&command, (int)count, arguments, NULL);
    assert(length > 0);
    net_send(redis->connection, text_of(command, (size_t)length));
    /* It has the password. */
    if (kind == REQUEST_AUTH)
        digest_forget(command, (size_t)length);
    redisFreeCommand(command);
    request->kind = kind;
    DL_APPEND(redis->requests, request);
    redis->closes += kind == REQUEST_CLOSE;
}

/* The reply is nil if our value was set, else the other host's value. */
static void
send_set(struct registry_redis *redis, enum request_kind kind, const char *key,
         const char *value, int64_t ttl_ms)
{
    char ttl[24];
    snprintf(ttl, sizeof(ttl), "%" PRId64, ttl_ms);
    const char *const words[] = {"SET", key, value, "NX", "GET", "PX", ttl};
    const char *const script[] = {"EVAL", set_script, "1", key, value, ttl};
    if (redis->r->redis_is_old)
        send_command(redis, kind, script, sizeof(script) / sizeof(script[0]));
    else
        send_command(redis, kind, words, sizeof(words) / sizeof(words[0]));
}

/* Names differ in more than case. */
static void
name_key(const struct registry_redis *redis, char key[REGISTRY_HOST_MAX + 8])
{
    snprintf(key, REGISTRY_HOST_MAX + 8, "dfhost:%s", redis->r->setup.host);
    text_lower(key, strlen(key));
}

static void
send_claim(struct registry_redis *redis, struct registry_claim *claim)
{
    char hex[REGISTRY_HEX_SIZE], key[sizeof(hex) + 3];
    registry_hex(claim->key, hex);
    snprintf(key, sizeof(key), "df:%s", hex);
    send_set(redis, REQUEST_CLAIM, key, redis->r->setup.host, claim->ttl_ms);
    /* The last request: in utlist the head's prev is the tail. */
    redis->requests->prev->claim = claim;
    registry_asked(redis->r, claim);
}

static void
send_name(struct registry_redis *redis)
{
    char key[REGISTRY_HOST_MAX + 8];
    name_key(redis, key);
    send_set(redis, REQUEST_NAME, key, redis->r->name.instance, NAME_TTL_MS);
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
    send_command(redis, REQUEST_KEEP, words, sizeof(words) / sizeof(words[0]));
}

/* A key of its own, which expires in a second: two hosts that connect at the same time
 * do not meet there. */
static void
send_probe(struct registry_redis *redis)
{
    char key[40];
    snprintf(key, sizeof(key), "df:probe-%016" PRIx64,
             loop_random(redis->r->setup.loop));
    send_set(redis, REQUEST_PROBE, key, redis->r->setup.host, 1000);
}

/* All in one go. Replies come in the order of the commands, and the first error ends
 * the connection. */
static void
send_greeting(struct registry_redis *redis)
{
    redis->r->redis_is_old = false; /* the server may be another one now */
    const struct registry_place *place = &redis->r->place;
    char database[16];
    if (place->user[0] != '\0') {
        const char *const words[] = {"AUTH", place->user, place->password};
        send_command(redis, REQUEST_AUTH, words, 3);
    } else if (place->password[0] != '\0') {
        const char *const words[] = {"AUTH", place->password};
        send_command(redis, REQUEST_AUTH, words, 2);
    }
    if (place->database != 0) {
        snprintf(database, sizeof(database), "%u", place->database);
        const char *const words[] = {"SELECT", database};
        send_command(redis, REQUEST_SELECT, words, 2);
    }
    send_probe(redis);
}

/* --- The connection --------------------------------------------------------------- */

/* To REST; no command is under way then. The claims that were asked wait again: a reply
 * that was lost does not tell whether Redis has granted them, and asking twice is
 * harmless, since a claim of this host is answered as its own. */
static void
registry_redis_drop(struct registry_redis *redis)
{
    struct request *request, *next;
    dns_cancel(&redis->query);
    net_abort(&redis->connection);
    if (redis->reader != NULL)
        redisReaderFree(redis->reader);
    redis->reader = NULL;
    DL_FOREACH_SAFE (redis->requests, request, next)
        free(request);
    redis->requests = NULL;
    redis->closes = 0;
    loop_timer_stop(redis->r->setup.loop, &redis->step);
    redis->stage = REST;
    registry_ask_again(redis->r);
}

static void
registry_redis_enter(struct registry_redis *redis, enum stage stage, int64_t limit_ms)
{
    redis->stage = stage;
    loop_timer_start(redis->r->setup.loop, &redis->step, limit_ms, redis->step.fire,
                     redis);
}

/* When a server has dropped two new connections in a row, the pause is at least
 * FLAP_MS. */
static void
registry_redis_fail(struct registry_redis *redis, const char *why)
{
    int64_t now_ms = loop_monotonic_ms(redis->r->setup.loop);
    if (redis->stage == READY)
        redis->flaps = now_ms - redis->ready_ms < FLAP_MS ? redis->flaps + 1 : 0;
    registry_redis_drop(redis);
    int64_t pause_ms = registry_failed(redis->r, why);
    registry_redis_enter(redis, REST,
                         redis->flaps > 1 && pause_ms < FLAP_MS ? FLAP_MS : pause_ms);
}

static void
send_waiting(struct registry_redis *redis)
{
    while (redis->r->waiting != NULL)
        send_claim(redis, redis->r->waiting);
}

static void
get_ready(struct registry_redis *redis)
{
    loop_timer_stop(redis->r->setup.loop, &redis->step);
    redis->stage = READY;
    redis->ready_ms = loop_monotonic_ms(redis->r->setup.loop);
    registry_good(redis->r);
    send_waiting(redis);
    send_name(redis);
}

/* --- Replies ---------------------------------------------------------------------- */

static struct text
words_of(const redisReply *reply)
{
    return text_of(reply->str, reply->str == NULL ? 0 : (size_t)reply->len);
}

/* An error reply ends the connection. */
static void
fail_with(struct registry_redis *redis, const char *asked, const redisReply *reply)
{
    char why[256];
    if (reply->type != REDIS_REPLY_ERROR)
        snprintf(why, sizeof(why), "an odd reply to %s", asked);
    else
        snprintf(why, sizeof(why), "%s: %.200s", asked, reply->str);
    registry_redis_fail(redis, why);
}

static void
take_probe(struct registry_redis *redis, const redisReply *reply)
{
    struct registry *r = redis->r;
    if (reply->type == REDIS_REPLY_NIL) {
        get_ready(redis);
    } else if (reply->type == REDIS_REPLY_ERROR && !r->redis_is_old &&
               text_starts(words_of(reply), TEXT("ERR syntax"))) {
        /* Before version 7 NX and GET exclude each other. */
        r->redis_is_old = true;
        send_probe(redis);
    } else {
        fail_with(redis, "SET", reply);
    }
}

static void
take_owner(struct registry_redis *redis, struct registry_claim *claim,
           const redisReply *reply)
{
    bool is_nil = reply->type == REDIS_REPLY_NIL;
    if (!is_nil && reply->type != REDIS_REPLY_STRING) {
        if (claim != NULL)
            registry_answer(redis->r, claim, REGISTRY_UNAVAILABLE);
        fail_with(redis, "SET", reply);
        return;
    }
    if (claim != NULL && is_nil)
        registry_answer(redis->r, claim, REGISTRY_OWN);
    else if (claim != NULL)
        registry_answer_owner(redis->r, claim, words_of(reply));
    registry_good(redis->r);
}

static void
take_closed(struct registry_redis *redis, const redisReply *reply)
{
    char place[REGISTRY_SETTING_MAX];
    /* An error (scripts may be forbidden) fails nothing else: the claims expire. */
    redis->closes--;
    if (reply->type != REDIS_REPLY_ERROR || redis->has_complained)
        return;
    redis->has_complained = true;
    registry_place_text(&redis->r->place, place);
    log_say(redis->r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
            "cannot close sets in registry %s; they will expire: %.200s", place,
            reply->str);
}

static void
registry_redis_take_name(struct registry_redis *redis, const redisReply *reply)
{
    struct registry *r = redis->r;
    char place[REGISTRY_SETTING_MAX];
    struct text words = words_of(reply);
    bool is_ours = reply->type == REDIS_REPLY_NIL ||
                   (reply->type == REDIS_REPLY_STRING &&
                    text_equal(words, text_from(r->name.instance)));
    redis->has_name = is_ours;
    if (is_ours) {
        registry_name_ours(&r->name);
        if (reply->type == REDIS_REPLY_STRING)
            keep_name(redis, NAME_TTL_MS);
    } else if (reply->type == REDIS_REPLY_STRING) {
        registry_name_other(r, words, 0);
    } else if (!redis->has_wondered) {
        redis->has_wondered = true;
        registry_place_text(&r->place, place);
        log_say(r->setup.log, LOG_LEVEL_WARNING, "defrag", NULL,
                "cannot check registry %s for another host of this name: "
                "%.200s",
                place,
                reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply");
    }
}

static void
take_reply(struct registry_redis *redis, const redisReply *reply)
{
    struct request *first = redis->requests;
    if (first == NULL) {
        registry_redis_fail(redis, "a reply to nothing");
        return;
    }
    /* Freed before it is handled: a reply that fails the connection frees all
     * requests. */
    struct request request = *first;
    DL_DELETE(redis->requests, first);
    free(first);
    switch (request.kind) {
    case REQUEST_AUTH:
    case REQUEST_SELECT:
        if (reply->type != REDIS_REPLY_STATUS)
            fail_with(redis, request.kind == REQUEST_AUTH ? "AUTH" : "SELECT", reply);
        break;
    case REQUEST_PROBE:
        take_probe(redis, reply);
        break;
    case REQUEST_CLAIM:
        take_owner(redis, request.claim, reply);
        break;
    case REQUEST_CLOSE:
        take_closed(redis, reply);
        break;
    case REQUEST_NAME:
        registry_redis_take_name(redis, reply);
        break;
    case REQUEST_KEEP:
        break;
    }
}

/* No command of ours has a list as its reply, and a server could claim any length. */
static bool
begins_well(const redisReader *reader)
{
    char c = reader->ridx < 0 ? reader->buf[reader->pos] : '+';
    return c == '+' || c == '-' || c == ':' || c == '$';
}

static size_t
unread(const redisReader *reader)
{
    return reader->len - reader->pos;
}

static void
registry_redis_take_input(struct registry_redis *redis)
{
    struct text input = net_input(redis->connection);
    int result = redisReaderFeed(redis->reader, input.at, input.length);
    net_consume(redis->connection, input.length);
    /* The reader is not called without bytes: it would begin a reply of unknown
     * kind. */
    /* take_reply() may end the connection, and the reader with it. */
    while (result == REDIS_OK && redis->reader != NULL && unread(redis->reader) > 0 &&
           begins_well(redis->reader)) {
        void *reply = NULL;
        result = redisReaderGetReply(redis->reader, &reply);
        /* Incomplete; a server must not make this host store a reply without end. */
        if (result == REDIS_OK && reply == NULL && unread(redis->reader) <= REPLY_MAX)
            return;
        if (reply == NULL)
            break;
        take_reply(redis, reply);
        freeReplyObject(reply);
    }
    if (redis->reader != NULL && (result != REDIS_OK || unread(redis->reader) > 0))
        registry_redis_fail(redis, "what it says is no reply");
}

/* --- Steps ------------------------------------------------------------------------ */

static void
registry_redis_on_event(void *context, enum net_event event)
{
    struct registry_redis *redis = context;
    bool is_greeted = redis->stage == GREETING || redis->stage == READY;
    switch (event) {
    case NET_CONNECTED:
        if (redis->r->place.tls) {
            registry_redis_enter(redis, SECURING, SECURE_TIMES * redis->r->patience_ms);
            break;
        } /* fall through */
    case NET_SECURED:
        registry_redis_enter(redis, GREETING, redis->r->patience_ms);
        send_greeting(redis);
        break;
    case NET_INPUT:
        if (is_greeted)
            registry_redis_take_input(redis);
        break;
    case NET_ENDED:
    case NET_FAILED:
    case NET_TIMED_OUT:
        snprintf(redis->why, sizeof(redis->why), "%s",
                 event == NET_FAILED ? net_error(redis->connection)
                                     : "it ended the connection");
        if (is_greeted)
            registry_redis_fail(redis, redis->why);
        else
            registry_redis_enter(redis, REFUSED, 0);
        break;
    case NET_DRAINED:
        break;
    }
}

/* Connects to the next untried address. */
static void
try_address(struct registry_redis *redis)
{
    const struct registry_place *place = &redis->r->place;
    net_abort(&redis->connection);
    if (redis->address == redis->address_count) {
        registry_redis_fail(redis, redis->why);
        return;
    }
    const struct net_address *to = &redis->addresses[redis->address++];
    redis->connection =
        net_connect(redis->r->setup.net, to, NULL, registry_redis_on_event, redis);
    if (place->tls) {
        struct net_tls tls = {
            .client = redis->r->setup.tls,
            .options = {.level = TLS_LEVEL_VERIFY, .host = text_from(place->host)}
        };
        net_start_tls(redis->connection, &tls);
    }
    if (redis->reader != NULL)
        redisReaderFree(redis->reader);
    redis->reader = redisReaderCreate();
    assert(redis->reader != NULL);
    registry_redis_enter(redis, CONNECTING, redis->r->patience_ms);
}

static void
on_resolved(void *context, const struct dns_answer *answer)
{
    struct registry_redis *redis = context;
    redis->query = NULL;
    redis->address = redis->address_count = 0;
    snprintf(redis->why, sizeof(redis->why), "%s", answer->reason);
    if (answer->status == DNS_FOUND)
        for (size_t i = 0; i < answer->count && i < ADDRESSES_MAX; i++) {
            redis->addresses[i] = answer->addresses[i];
            redis->addresses[i].port = redis->r->place.port;
            redis->address_count++;
        }
    try_address(redis);
}

static void
on_step(void *context)
{
    struct registry_redis *redis = context;
    switch (redis->stage) {
    case REST:
        redis->query = dns_find_addresses(redis->r->setup.dns, redis->r->place.host,
                                          on_resolved, redis);
        registry_redis_enter(redis, RESOLVING, RESOLVE_MS);
        break;
    case RESOLVING:
        registry_redis_fail(redis, "its name cannot be resolved");
        break;
    case CONNECTING:
    case SECURING:
        snprintf(redis->why, sizeof(redis->why), "%s in time",
                 redis->stage == CONNECTING ? "no connection" : "TLS: no handshake");
        try_address(redis);
        break;
    case REFUSED:
        try_address(redis);
        break;
    case GREETING:
        registry_redis_fail(redis, "no answer in time");
        break;
    case READY:
        assert(false); /* the timer is stopped there */
        break;
    }
}

struct registry_redis *
registry_redis_new(struct registry *r, char *error, size_t error_size)
{
    if (r->place.tls && r->setup.tls == NULL) {
        snprintf(error, error_size, "rediss needs certificates to trust");
        return NULL;
    }
    struct registry_redis *redis = memory_new(sizeof(*redis));
    assert(r->setup.net != NULL && r->setup.dns != NULL);
    redis->r = r;
    loop_timer_start(r->setup.loop, &redis->step, 0, on_step, redis);
    return redis;
}

/* A regular stop takes the name away, so that the next run of this host finds no other
 * there. */
void
registry_redis_free(struct registry_redis **redis)
{
    if (*redis == NULL)
        return;
    if ((*redis)->stage == READY && (*redis)->has_name) {
        keep_name(*redis, 0);
        /* Not net_abort(): the command has to be sent first. */
        net_close(&(*redis)->connection);
    }
    registry_redis_drop(*redis);
    free(*redis);
    *redis = NULL;
}

void
registry_redis_claim(struct registry_redis *redis)
{
    if (redis->stage == READY)
        send_waiting(redis);
}

/* The request stays in its place: its reply will come. */
void
registry_redis_forget(struct registry_redis *redis, const struct registry_claim *claim)
{
    struct request *request;
    DL_FOREACH (redis->requests, request)
        if (request->claim == claim)
            request->claim = NULL;
}

void
registry_redis_close(struct registry_redis *redis,
                     const unsigned char key[REGISTRY_KEY_SIZE], int64_t memory_ms)
{
    char hex[REGISTRY_HEX_SIZE], name[sizeof(hex) + 3], memory[24];
    if (redis->stage != READY || redis->closes >= REGISTRY_CLOSES_MAX)
        return;
    registry_hex(key, hex);
    snprintf(name, sizeof(name), "df:%s", hex);
    snprintf(memory, sizeof(memory), "%" PRId64, memory_ms);
    const char *const words[] = {"EVAL", close_script,         "1",
                                 name,   redis->r->setup.host, memory};
    send_command(redis, REQUEST_CLOSE, words, sizeof(words) / sizeof(words[0]));
}

void
registry_redis_check_name(struct registry_redis *redis)
{
    if (redis->stage == READY)
        send_name(redis);
}

/* Replies come in order: those behind it wait for the same one. */
void
registry_redis_late(struct registry_redis *redis)
{
    registry_redis_fail(redis, "no answer in time");
}
