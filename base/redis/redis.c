/* The connection to Redis: stages, commands, replies. The only file that knows hiredis. */
#include "base/redis/redis.h"

#include "base/crypto/digest.h"
#include "base/dns/dns.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "base/redis/redis_internal.h"

#include <assert.h>
#ifdef HAVE_HIREDIS
#include <hiredis/hiredis.h>
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    RESOLVE_MS = 5000, /* no question waits for the resolver... */
    SECURE_TIMES = 8,  /* longer than an answer may take: a handshake */
    FLAP_MS = 1000,    /* pause when several in a row have lived for less than that */
    PROBE_MS = 1000,   /* until its key expires */
    /* ...and with further servers none waits for that of one of them. */
    RESOLVE_OF_SEVERAL_MS = 500
};

/* SET NX GET PX for a server without it. */
static const char set_script[] =
    "local o=redis.call('GET',KEYS[1]) if o then return o end "
    "redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) return false";

#ifdef HAVE_HIREDIS
#define TEXT_OF(number)     #number
#define VERSION_OF(a, b, c) "hiredis " TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
static const char hiredis_version[] =
    VERSION_OF(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
#else
/* Nothing of this is called: redis_new() refuses. */
static const char hiredis_version[] = "";
typedef struct redisReader {
    int ridx;
    char *buf;
    size_t pos, len;
} redisReader;
typedef struct redisReply {
    int type;
    long long integer;
    size_t len;
    char *str;
    struct redisReply **element;
} redisReply;
enum {
    REDIS_OK,
    REDIS_REPLY_STRING,
    REDIS_REPLY_INTEGER,
    REDIS_REPLY_NIL,
    REDIS_REPLY_STATUS,
    REDIS_REPLY_ERROR,
    REDIS_REPLY_ARRAY
};
#define redisFormatCommandArgv(out, count, words, sizes) ((void)(words), -1)
#define redisFreeCommand(command)                        ((void)(command))
#define redisReaderCreate()                              NULL
#define redisReaderFree(reader)                          ((void)(reader))
#define redisReaderFeed(reader, at, size)                ((void)(at), REDIS_OK)
#define redisReaderGetReply(reader, reply)               ((void)(reply), REDIS_OK)
#define freeReplyObject(reply)                           ((void)(reply))
#endif

const char *
redis_version(void)
{
    return hiredis_version;
}

/* --- Commands --------------------------------------------------------------------- */

static char *
redis_format(const char *const *words, size_t count, size_t *size)
{
    const char *arguments[REDIS_WORDS_MAX];
    char *command = NULL;
    assert(count <= REDIS_WORDS_MAX);
    for (size_t i = 0; i < count; i++)
        arguments[i] = words[i];
    long long length = redisFormatCommandArgv(&command, (int)count, arguments, NULL);
    assert(length > 0);
    *size = (size_t)length;
    return command;
}

static struct redis_request *
redis_ask(struct redis *redis, struct text command,
          const struct redis_question *question)
{
    struct redis_request *request = memory_new(sizeof(*request));
    assert(redis->connection != NULL);
    net_send(redis->connection, command);
    request->question = *question;
    DL_APPEND(redis->requests, request);
    return request;
}

static void
redis_send_now(struct redis *redis, const char *const *words, size_t count,
               const struct redis_question *question)
{
    size_t size;
    char *command = redis_format(words, count, &size);
    redis_ask(redis, text_of(command, size), question);
    digest_forget(command, size); /* it may have the password */
    redisFreeCommand(command);
}

void
redis_send(struct redis *redis, const char *const *words, size_t count,
           const struct redis_question *question)
{
    assert(redis_is_ready(redis));
    redis_send_now(redis, words, count, question);
}

void
redis_send_bytes(struct redis *redis, const struct text *words, size_t count,
                 bool is_pair, const struct redis_question *question)
{
    char head[32];
    assert(redis_is_ready(redis) && count > 0);
    snprintf(head, sizeof(head), "*%zu\r\n", count);
    redis_ask(redis, text_from(head), question)->is_pair = is_pair;
    for (size_t i = 0; i < count; i++) {
        snprintf(head, sizeof(head), "$%zu\r\n", words[i].length);
        net_send(redis->connection, text_from(head));
        net_send(redis->connection, words[i]);
        net_send(redis->connection, TEXT("\r\n"));
    }
}

static void
redis_set_now(struct redis *redis, const char *key, const char *value, int64_t ttl_ms,
              const struct redis_question *question)
{
    char ttl[24];
    snprintf(ttl, sizeof(ttl), "%" PRId64, ttl_ms);
    const char *const words[] = {"SET", key, value, "NX", "GET", "PX", ttl};
    const char *const script[] = {"EVAL", set_script, "1", key, value, ttl};
    if (redis->is_old)
        redis_send_now(redis, script, sizeof(script) / sizeof(script[0]), question);
    else
        redis_send_now(redis, words, sizeof(words) / sizeof(words[0]), question);
}

void
redis_set_new(struct redis *redis, const char *key, const char *value, int64_t ttl_ms,
              const struct redis_question *question)
{
    assert(redis_is_ready(redis));
    redis_set_now(redis, key, value, ttl_ms, question);
}

/* The command is kept until the server has answered that it knows the script. */
void
redis_eval(struct redis *redis, struct redis_script *script, const char *const *words,
           size_t count, const struct redis_question *question)
{
    const char *all[REDIS_WORDS_MAX];
    size_t size;
    assert(redis_is_ready(redis) && count + 2 <= REDIS_WORDS_MAX);
    if (script->sha[0] == '\0')
        digest_sha1_hex(text_from(script->text), script->sha);
    for (size_t i = 0; i < count; i++)
        all[i + 2] = words[i];
    all[0] = "EVALSHA";
    all[1] = script->sha;
    char *command = redis_format(all, count + 2, &size);
    struct redis_request *request = redis_ask(redis, text_of(command, size), question);
    request->command = command;
    request->size = size;
    request->script = script->text;
}

static void
redis_request_free(struct redis_request *request)
{
    if (request->command != NULL)
        redisFreeCommand(request->command);
    free(request);
}

void
redis_forget(struct redis *redis, const void *subject)
{
    struct redis_request *request;
    /* Each stays in its place: its reply will come. */
    DL_FOREACH (redis->requests, request)
        if (request->question.subject == subject)
            request->question.subject = NULL;
}

/* --- The connection --------------------------------------------------------------- */

static void
redis_drop(struct redis *redis)
{
    struct redis_request *request, *next;
    dns_cancel(&redis->query);
    net_abort(&redis->connection);
    if (redis->reader != NULL)
        redisReaderFree(redis->reader);
    redis->reader = NULL;
    DL_FOREACH_SAFE (redis->requests, request, next)
        redis_request_free(request);
    redis->requests = NULL;
    loop_timer_stop(redis->setup.loop, &redis->step);
    redis->stage = REDIS_REST;
}

static void
redis_enter(struct redis *redis, enum redis_stage stage, int64_t limit_ms)
{
    redis->stage = stage;
    loop_timer_start(redis->setup.loop, &redis->step, limit_ms, redis->step.fire,
                     redis);
}

/* The next server; behind the last one it has failed. When a server has dropped two new
 * connections in a row, the pause is at least FLAP_MS. */
void
redis_fail(struct redis *redis, const char *why)
{
    struct redis_client *client, *next;
    bool was_ready = redis->stage == REDIS_READY;
    int64_t now_ms = loop_monotonic_ms(redis->setup.loop);
    char reason[REDIS_ERROR_MAX];
    snprintf(reason, sizeof(reason), "%s", why); /* it may be redis->why */
    if (was_ready)
        redis->flaps = now_ms - redis->ready_ms < FLAP_MS ? redis->flaps + 1 : 0;
    redis_drop(redis);
    redis->place = was_ready ? 0 : redis->place + 1;
    if (!was_ready && redis->place < redis->setup.count) {
        redis_enter(redis, REDIS_REST, 0);
        return;
    }
    redis->place = 0;
    int64_t pause_ms = breaker_failed(&redis->breaker);
    redis_enter(redis, REDIS_REST,
                redis->flaps > 1 && pause_ms < FLAP_MS ? FLAP_MS : pause_ms);
    DL_FOREACH_SAFE (redis->clients, client, next)
        client->failed(client->context, reason);
}

static void
redis_get_ready(struct redis *redis)
{
    struct redis_client *client, *next;
    loop_timer_stop(redis->setup.loop, &redis->step);
    redis->stage = REDIS_READY;
    redis->ready_ms = loop_monotonic_ms(redis->setup.loop);
    breaker_good(&redis->breaker);
    DL_FOREACH_SAFE (redis->clients, client, next)
        if (redis->stage == REDIS_READY)
            client->ready(client->context);
}

/* --- The greeting ----------------------------------------------------------------- */

void
redis_refuse(struct redis *redis, const char *command, const struct redis_reply *reply)
{
    char why[REDIS_ERROR_MAX];
    redis_reply_explain(reply, command, why);
    redis_fail(redis, why);
}

static void
redis_take_auth(void *context, void *subject, const struct redis_reply *reply)
{
    if (reply->kind != REDIS_STATUS)
        redis_refuse(context, subject != NULL ? "AUTH" : "SELECT", reply);
}

/* A key of its own, which expires: two hosts that connect at the same time do not meet
 * there. */
static void
redis_send_probe(struct redis *redis, redis_replied *done)
{
    char key[64];
    snprintf(key, sizeof(key), "%sprobe-%016" PRIx64, redis->probe,
             loop_random(redis->setup.loop));
    redis_set_now(redis, key, "1", PROBE_MS,
                  &(struct redis_question){done, redis, NULL});
}

static void
redis_take_probe(void *context, void *subject, const struct redis_reply *reply)
{
    struct redis *redis = context;
    (void)subject;
    if (reply->kind == REDIS_NIL) {
        redis_get_ready(redis);
    } else if (reply->kind == REDIS_ERROR && !redis->is_old &&
               text_starts(reply->text, TEXT("ERR syntax"))) {
        /* Before version 7 NX and GET exclude each other. */
        redis->is_old = true;
        redis_send_probe(redis, redis_take_probe);
    } else {
        redis_refuse(redis, "SET", reply);
    }
}

static void
redis_take_info(void *context, void *subject, const struct redis_reply *reply)
{
    struct redis *redis = context;
    (void)subject;
    if (reply->kind != REDIS_TEXT) {
        redis_refuse(redis, "INFO", reply);
        return;
    }
    const char *why = redis->setup.judge(redis->setup.context, reply->text);
    if (why == NULL)
        redis_get_ready(redis);
    else
        redis_fail(redis, why);
}

/* All in one go. Replies come in the order of the commands, and the first error ends
 * the connection. */
static void
redis_greet(struct redis *redis)
{
    redis->is_old = false; /* the server may be another one now */
    const struct redis_place *place = &redis->places[redis->place];
    const struct redis_question auth = {redis_take_auth, redis, redis},
                                select = {redis_take_auth, redis, NULL};
    char database[16];
    if (place->user[0] != '\0') {
        const char *const words[] = {"AUTH", place->user, place->password};
        redis_send_now(redis, words, 3, &auth);
    } else if (place->password[0] != '\0') {
        const char *const words[] = {"AUTH", place->password};
        redis_send_now(redis, words, 2, &auth);
    }
    if (place->database != 0) {
        snprintf(database, sizeof(database), "%u", place->database);
        const char *const words[] = {"SELECT", database};
        redis_send_now(redis, words, 2, &select);
    }
    if (redis->setup.probe == NULL) {
        const char *const words[] = {"INFO"};
        redis_send_now(redis, words, 1,
                       &(struct redis_question){redis_take_info, redis, NULL});
    } else {
        redis_send_probe(redis, redis_take_probe);
    }
}

/* --- Replies ---------------------------------------------------------------------- */

/* False: no command of ours has such a reply. */
static bool
redis_read_reply(const redisReply *from, struct redis_reply *to)
{
    to->text = text_of(from->str, from->str == NULL ? 0 : (size_t)from->len);
    to->number = from->integer;
    switch (from->type) {
    case REDIS_REPLY_NIL:
        to->kind = REDIS_NIL;
        return true;
    case REDIS_REPLY_STATUS:
        to->kind = REDIS_STATUS;
        return true;
    case REDIS_REPLY_STRING:
        to->kind = REDIS_TEXT;
        return true;
    case REDIS_REPLY_INTEGER:
        to->kind = REDIS_NUMBER;
        return true;
    case REDIS_REPLY_ERROR:
        to->kind = REDIS_ERROR;
        return true;
    case REDIS_REPLY_ARRAY: /* redis_pair_size() */
        (void)redis_read_reply(from->element[0], to);
        to->first = to->number;
        (void)redis_read_reply(from->element[1], to);
        to->kind = REDIS_PAIR;
        return true;
    default:
        return false;
    }
}

/* The server has not got the script: it gets all of it, in place of "*N", "EVALSHA" and the
 * sum. */
static bool
redis_is_sent_again(struct redis *redis, struct redis_request *request,
                    const struct redis_reply *reply)
{
    static const char by_sum[] = "\r\n$7\r\nEVALSHA\r\n$40\r\n";
    enum { SUM = 40 };
    if (request->script == NULL || reply->kind != REDIS_ERROR ||
        !text_starts(reply->text, TEXT("NOSCRIPT")))
        return false;
    struct text command = text_of(request->command, request->size),
                count = text_before(command, text_find(command, '\r')), rest,
                script = text_from(request->script);
    char head[64];
    rest = text_after(command, count.length + strlen(by_sum) + SUM);
    snprintf(head, sizeof(head), "%.*s\r\n$4\r\nEVAL\r\n$%zu\r\n", TEXT_ARGS(count),
             script.length);
    redis_ask(redis, text_from(head), &request->question);
    net_send(redis->connection, script);
    net_send(redis->connection, rest);
    return true;
}

static void
redis_take_reply(struct redis *redis, const redisReply *from)
{
    struct redis_reply reply;
    struct redis_request *request = redis->requests;
    if (request == NULL || !redis_read_reply(from, &reply)) {
        redis_fail(redis, request == NULL ? "a reply to nothing" : "an odd reply");
        return;
    }
    /* Removed before it is handled: a reply that fails the connection frees all
     * requests. */
    DL_DELETE(redis->requests, request);
    if (!redis_is_sent_again(redis, request, &reply)) {
        if (reply.kind != REDIS_ERROR && redis->stage == REDIS_READY)
            breaker_good(&redis->breaker);
        request->question.done(request->question.context, request->question.subject,
                               &reply);
    }
    redis_request_free(request);
}

static size_t
redis_unread(const redisReader *reader)
{
    return reader->len - reader->pos;
}

/* Takes a number, or a text, as a server sends it. True: it was there as a whole, and is small.
 */
static bool
redis_pair_take(struct text *rest)
{
    struct text line;
    uint64_t length;
    char kind = rest->length > 0 ? rest->at[0] : ' ';
    if ((kind != ':' && kind != '$') || text_find(*rest, '\n') == TEXT_NONE ||
        !text_cut(rest, '\n', &line))
        return false;
    if (kind == ':')
        return true;
    line = text_after(line, 1);
    if (line.length == 0 ||
        !text_number(text_before(line, line.length - 1), REDIS_PAIR_MAX, &length) ||
        rest->length < length + 2)
        return false;
    *rest = text_after(*rest, (size_t)length + 2);
    return true;
}

/* The reader is given a pair only as a whole, so that it never takes a list in a list. */
static bool
redis_has_pair(const redisReader *reader)
{
    struct text rest = text_of(reader->buf + reader->pos, redis_unread(reader));
    if (!text_starts(rest, TEXT("*2\r\n")))
        return false;
    rest = text_after(rest, 4);
    return redis_pair_take(&rest) && redis_pair_take(&rest);
}

/* No other command has a list as its reply, and a server could claim any length. */
static bool
redis_begins_well(const struct redis *redis)
{
    const redisReader *reader = redis->reader;
    char c = reader->ridx < 0 ? reader->buf[reader->pos] : '+';
    return c == '+' || c == '-' || c == ':' || c == '$' ||
           (c == '*' && redis->requests != NULL && redis->requests->is_pair &&
            redis_has_pair(reader));
}

/* The rest of a pair may come. */
static bool
redis_awaits_pair(const struct redis *redis)
{
    const redisReader *reader = redis->reader;
    return redis->requests != NULL && redis->requests->is_pair && reader->ridx < 0 &&
           reader->buf[reader->pos] == '*' && redis_unread(reader) <= REDIS_PAIR_MAX &&
           !redis_has_pair(reader);
}

static void
redis_take_input(struct redis *redis)
{
    struct text input = net_input(redis->connection);
    int result = redisReaderFeed(redis->reader, input.at, input.length);
    net_consume(redis->connection, input.length);
    /* The reader is not called without bytes: it would begin a reply of unknown kind.
     * redis_take_reply() may end the connection, and the reader with it. */
    while (result == REDIS_OK && redis->reader != NULL &&
           redis_unread(redis->reader) > 0 && redis_begins_well(redis)) {
        void *reply = NULL;
        result = redisReaderGetReply(redis->reader, &reply);
        /* Incomplete; a server must not make this host store a reply without end. */
        if (result == REDIS_OK && reply == NULL &&
            redis_unread(redis->reader) <= REDIS_REPLY_MAX)
            return;
        if (reply == NULL)
            break;
        redis_take_reply(redis, reply);
        freeReplyObject(reply);
    }
    if (redis->reader != NULL &&
        (result != REDIS_OK ||
         (redis_unread(redis->reader) > 0 && !redis_awaits_pair(redis))))
        redis_fail(redis, "its reply is malformed");
}

/* --- Steps ------------------------------------------------------------------------ */

static void
redis_on_event(void *context, enum net_event event)
{
    struct redis *redis = context;
    bool is_greeted = redis->stage == REDIS_GREETING || redis->stage == REDIS_READY;
    switch (event) {
    case NET_CONNECTED:
        if (redis->places[redis->place].tls) {
            redis_enter(redis, REDIS_SECURING, SECURE_TIMES * redis->patience_ms);
            break;
        } /* fall through */
    case NET_SECURED:
        redis_enter(redis, REDIS_GREETING, redis->patience_ms);
        redis_greet(redis);
        break;
    case NET_INPUT:
        if (is_greeted)
            redis_take_input(redis);
        break;
    case NET_ENDED:
    case NET_FAILED:
    case NET_TIMED_OUT:
        snprintf(redis->why, sizeof(redis->why), "%s",
                 event == NET_FAILED ? net_error(redis->connection)
                                     : "it ended the connection");
        if (is_greeted)
            redis_fail(redis, redis->why);
        else
            redis_enter(redis, REDIS_REFUSED, 0);
        break;
    case NET_DRAINED:
        break;
    }
}

/* Connects to the next untried address. */
static void
redis_try_address(struct redis *redis)
{
    const struct redis_place *place = &redis->places[redis->place];
    net_abort(&redis->connection);
    if (redis->address == redis->address_count) {
        redis_fail(redis, redis->why);
        return;
    }
    const struct net_address *to = &redis->addresses[redis->address++];
    redis->connection = net_connect(redis->setup.net, to, NULL, redis_on_event, redis);
    if (place->tls) {
        struct net_tls tls = {
            .client = redis->setup.tls,
            .options = {.level = TLS_LEVEL_VERIFY, .host = text_from(place->host)}
        };
        net_start_tls(redis->connection, &tls);
    }
    if (redis->reader != NULL)
        redisReaderFree(redis->reader);
    redis->reader = redisReaderCreate();
    assert(redis->reader != NULL);
    redis_enter(redis, REDIS_CONNECTING, redis->patience_ms);
}

static void
redis_on_resolved(void *context, const struct dns_answer *answer)
{
    struct redis *redis = context;
    redis->query = NULL;
    redis->address = redis->address_count = 0;
    snprintf(redis->why, sizeof(redis->why), "%s", answer->reason);
    if (answer->status == DNS_FOUND)
        for (size_t i = 0; i < answer->count && i < REDIS_ADDRESSES_MAX; i++) {
            redis->addresses[i] = answer->addresses[i];
            redis->addresses[i].port = redis->places[redis->place].port;
            redis->address_count++;
        }
    redis_try_address(redis);
}

static void
redis_on_step(void *context)
{
    struct redis *redis = context;
    switch (redis->stage) {
    case REDIS_REST:
        redis->query =
            dns_find_addresses(redis->setup.dns, redis->places[redis->place].host,
                               redis_on_resolved, redis);
        redis_enter(redis, REDIS_RESOLVING,
                    redis->setup.count > 1 ? RESOLVE_OF_SEVERAL_MS : RESOLVE_MS);
        break;
    case REDIS_RESOLVING:
        redis_fail(redis, "its name cannot be resolved");
        break;
    case REDIS_CONNECTING:
    case REDIS_SECURING:
        snprintf(redis->why, sizeof(redis->why), "%s in time",
                 redis->stage == REDIS_CONNECTING ? "no connection"
                                                  : "TLS: no handshake");
        redis_try_address(redis);
        break;
    case REDIS_REFUSED:
        redis_try_address(redis);
        break;
    case REDIS_GREETING:
        redis_fail(redis, "no answer in time");
        break;
    case REDIS_READY:
        assert(false); /* the timer is stopped there */
        break;
    }
}

struct redis *
redis_new(const struct redis_setup *setup, char *error, size_t error_size)
{
    if (hiredis_version[0] == '\0') {
        snprintf(error, error_size, "this petrel was built without hiredis");
        return NULL;
    }
    struct redis *redis = memory_new(sizeof(*redis));
    assert(setup->net != NULL && setup->dns != NULL && setup->count > 0 &&
           setup->count <= REDIS_PLACES_MAX);
    redis->setup = *setup;
    redis->breaker = (struct breaker){
        .failures_max = 3, .retry_ms = 50, .pause_ms = 5000, .pause_max_ms = 5000};
    redis->patience_ms = setup->patience_ms > 0 ? setup->patience_ms : REDIS_ANSWER_MS;
    bool fits = text_copy(redis->probe, sizeof(redis->probe), text_from(setup->probe));
    assert(fits && (setup->probe == NULL) == (setup->judge != NULL));
    for (size_t i = 0; i < setup->count; i++) {
        redis->places[i] = setup->places[i];
        if (setup->places[i].tls && setup->tls == NULL) {
            snprintf(error, error_size, "rediss needs certificates to trust");
            free(redis);
            return NULL;
        }
    }
    loop_timer_start(setup->loop, &redis->step, 0, redis_on_step, redis);
    return redis;
}

void
redis_free(struct redis **redis)
{
    if (*redis == NULL)
        return;
    if ((*redis)->stage == REDIS_READY)
        net_close(&(*redis)->connection);
    redis_drop(*redis);
    digest_forget((*redis)->places, sizeof((*redis)->places));
    free(*redis);
    *redis = NULL;
}

void
redis_join(struct redis *redis, struct redis_client *client)
{
    DL_APPEND(redis->clients, client);
}

static void
redis_ignore(void *context, void *subject, const struct redis_reply *reply)
{
    (void)context;
    (void)subject;
    (void)reply;
}

void
redis_leave(struct redis *redis, struct redis_client *client)
{
    struct redis_request *request;
    DL_DELETE(redis->clients, client);
    DL_FOREACH (redis->requests, request)
        if (request->question.context == client->context) {
            request->question = (struct redis_question){.done = redis_ignore};
            request->script = NULL; /* it may go with the client */
        }
}

bool
redis_is_ready(const struct redis *redis)
{
    return redis->stage == REDIS_READY;
}

bool
redis_is_up(const struct redis *redis)
{
    return !breaker_is_open(&redis->breaker);
}

const struct redis_place *
redis_server(const struct redis *redis)
{
    return &redis->places[redis->place];
}
