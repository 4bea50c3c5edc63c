/* A group's bank in Redis. */
#include "queue/group/group_redis.h"

#include "base/memory.h"
#include "queue/group/group_internal.h"
#include "sched/limits/bank.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 12, /* of a question */ NUMBER_SIZE = 32, GRANT_NUMBERS = 5 };

struct group_redis {
    struct redis *redis;
    struct group_asker *asker;
    struct redis_script grant, member;
    char *grant_text;
    char members_key[GROUP_NAME_MAX + 4], info_key[GROUP_NAME_MAX + 4];
    size_t asked; /* sites of the question under way */
    bool is_list; /* the heartbeat under way */
};

/* The score of a host is the time at which it was seen; of one that has left, for a
 * minute, that time below zero. Only the last 256 are listed: GROUP_HOSTS_MAX. */
const char group_redis_member[] =
    "local verb, host, info, run = ARGV[1], ARGV[2], ARGV[3], ARGV[4]\n"
    "local t = redis.call('TIME')\n"
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "if verb == 'bye' then\n"
    "  redis.call('ZADD', KEYS[1], -now, host)\n"
    "  redis.call('HDEL', KEYS[2], host)\n"
    "  return '0'\n"
    "end\n"
    "local old = redis.call('HGETALL', KEYS[2])\n"
    "local out = '0'\n"
    "for i = 1, #old, 2 do\n"
    "  if old[i] == host and not string.find(old[i + 1], run, 1, true) then out = '1' "
    "end\n"
    "end\n"
    "redis.call('ZADD', KEYS[1], now, host)\n"
    "redis.call('HSET', KEYS[2], host, info)\n"
    "if verb == 'beat' then\n"
    "  return out .. ' ' .. #redis.call('ZRANGE', KEYS[1], now - tonumber(ARGV[5]) + "
    "1,\n"
    "    now - tonumber(ARGV[6]), 'BYSCORE')\n"
    "end\n"
    "redis.call('ZREMRANGEBYSCORE', KEYS[1], 60000 - now, now - tonumber(ARGV[5]))\n"
    "local seen, list = {}, redis.call('ZRANGE', KEYS[1], -256, -1, 'WITHSCORES')\n"
    "for i = 1, #list, 2 do\n"
    "  seen[list[i]] = true\n"
    "  local at = tonumber(list[i + 1])\n"
    "  out = out .. ' ' .. list[i] .. ' ' ..\n"
    "    (at < 0 and 'gone' or string.format('%.0f', math.max(0, now - at)))\n"
    "end\n"
    "for i = 1, #old, 2 do\n"
    "  if not seen[old[i]] then redis.call('HDEL', KEYS[2], old[i])\n"
    "  elseif #out + #old[i + 1] < 80000 then\n"
    "    out = out .. '\\n' .. old[i] .. ' ' .. old[i + 1]\n"
    "  end\n"
    "end\n"
    "return out\n";

/* A list is no reply that this host accepts: redis.h. */
char *
group_redis_grant(void)
{
    static const char begin[] = "local function grant()\n",
                      end[] = "end\nreturn table.concat(grant(), ' ')\n";
    size_t size = sizeof(begin) + strlen(bank_script) + sizeof(end);
    char *script = memory_new(size);
    snprintf(script, size, "%s%s%s", begin, bank_script, end);
    return script;
}

static void
group_redis_join(void *bank, struct group_asker *asker)
{
    struct group_redis *r = bank;
    r->asker = asker;
    redis_join(r->redis, &asker->connection);
}

static void
group_redis_leave(void *bank, struct group_asker *asker)
{
    struct group_redis *r = bank;
    redis_leave(r->redis, &asker->connection);
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

/* --- Questions ---------------------------------------------------------------------- */

/* Another machine has made it. */
static bool
group_redis_read_grants(struct text answer, struct bank_grant *out, size_t count)
{
    struct text word;
    uint64_t n[GRANT_NUMBERS];
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < GRANT_NUMBERS; j++)
            if (!text_word(&answer, " ", &word) || !text_number(word, INT32_MAX, &n[j]))
                return false;
        out[i] = (struct bank_grant){(int)n[0], (int)n[1], (int)n[2], (int)n[3],
                                     (int64_t)n[4]};
        if (!bank_grant_is_sound(&out[i]))
            return false;
    }
    return text_trim(answer).length == 0;
}

/* Why a reply is no answer. One of a server that is not the one to write to ends the
 * connection, which then looks for that one: NULL. */
static const char *
group_redis_refusal(const struct redis_reply *reply, const char *what,
                    char why[REDIS_ERROR_MAX])
{
    redis_reply_explain(reply, what, why);
    return redis_is_misplaced(reply) ? NULL : why;
}

static void
group_redis_on_grants(void *context, void *subject, const struct redis_reply *reply)
{
    struct group_redis *r = subject;
    struct bank_grant grants[GROUP_ASK_MAX];
    char why[REDIS_ERROR_MAX] = "an odd answer of the bank";
    const char *refused = why;
    if (reply->kind == REDIS_TEXT &&
        group_redis_read_grants(reply->text, grants, r->asked)) {
        r->asker->granted(context, grants, NULL);
        return;
    }
    if (reply->kind != REDIS_TEXT)
        refused = group_redis_refusal(reply, "grant", why);
    r->asker->granted(context, NULL, refused);
    if (reply->kind == REDIS_TEXT || refused == NULL)
        redis_fail(r->redis, why);
}

static void
group_redis_ask(void *bank, const struct group_ask *asks, size_t count)
{
    struct group_redis *r = bank;
    enum { FRAME = 5, WORDS_MAX = FRAME + GROUP_ASK_MAX * (1 + NUMBERS) };
    char keys[GROUP_ASK_MAX][sizeof(GROUP_PROBE) + BANK_KEY_MAX], frame[FRAME][24];
    char numbers[GROUP_ASK_MAX][NUMBERS][NUMBER_SIZE];
    const char *words[WORDS_MAX];
    size_t used = 0;
    snprintf(frame[0], sizeof(frame[0]), "%zu", count);
    snprintf(frame[1], sizeof(frame[1]), "%d", BANK_PERIOD_US);
    snprintf(frame[2], sizeof(frame[2]), "%d", BANK_FORGET_US / 1000);
    snprintf(frame[3], sizeof(frame[3]), "%d", asks[0].question.hosts);
    snprintf(frame[4], sizeof(frame[4]), "0"); /* the time of Redis */
    words[used++] = frame[0];
    for (size_t i = 0; i < count; i++) {
        snprintf(keys[i], sizeof(keys[i]), GROUP_PROBE "%.*s", BANK_KEY_MAX,
                 asks[i].key);
        words[used++] = keys[i];
    }
    for (size_t i = 1; i < FRAME; i++)
        words[used++] = frame[i];
    for (size_t i = 0; i < count; i++) {
        const struct bank_question *q = &asks[i].question;
        const double all[NUMBERS] = {q->interval_us, q->burst, q->limit, q->want,
                                     q->weight,      q->again, q->back,  q->before,
                                     q->had,         q->open,  q->need,  q->chance};
        for (size_t n = 0; n < NUMBERS; n++) {
            snprintf(numbers[i][n], NUMBER_SIZE, "%.17g", all[n]);
            words[used++] = numbers[i][n];
        }
    }
    r->asked = count;
    redis_eval(r->redis, &r->grant, words, used,
               &(struct redis_question){group_redis_on_grants,
                                        r->asker->connection.context, r});
}

/* --- Members ------------------------------------------------------------------------ */

static void
group_redis_on_member(void *context, void *subject, const struct redis_reply *reply)
{
    struct group_redis *r = subject;
    struct group_heard heard = {.old = -1};
    char why[REDIS_ERROR_MAX];
    uint64_t old;
    if (reply->kind != REDIS_TEXT || reply->text.length == 0) {
        const char *refused = group_redis_refusal(reply, "member", why);
        r->asker->heard(context, NULL, refused);
        if (refused == NULL)
            redis_fail(r->redis, why);
        return;
    }
    heard.infos = reply->text;
    (void)!text_cut(&heard.infos, '\n', &heard.list);
    heard.is_taken = reply->text.at[0] == '1';
    heard.list = text_trim(text_after(heard.list, 1));
    if (!r->is_list && text_number(heard.list, GROUP_HOSTS_MAX, &old))
        heard.old = (int)old;
    r->asker->heard(context, &heard, NULL);
}

static void
group_redis_on_parted(void *context, void *subject, const struct redis_reply *reply)
{
    struct group_redis *r = subject;
    r->asker->parted(context, reply->kind == REDIS_TEXT);
}

static void
group_redis_say(struct group_redis *r, const char *verb, const char *host,
                const char *info, const char *run, redis_replied *done)
{
    char forget[24], old[24];
    snprintf(forget, sizeof(forget), "%d", GROUP_FORGET_MS);
    snprintf(old, sizeof(old), "%d", GROUP_LATE_MS);
    const char *const words[] = {"2", r->members_key, r->info_key, verb, host, info,
                                 run, forget,         old};
    redis_eval(r->redis, &r->member, words, sizeof(words) / sizeof(words[0]),
               &(struct redis_question){done, r->asker->connection.context, r});
}

static void
group_redis_beat(void *bank, const char *host, const char *info, const char *run,
                 bool is_list)
{
    struct group_redis *r = bank;
    r->is_list = is_list;
    group_redis_say(r, is_list ? "list" : "beat", host, info, run,
                    group_redis_on_member);
}

static void
group_redis_part(void *bank, const char *host)
{
    group_redis_say(bank, "bye", host, "", "", group_redis_on_parted);
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
    free(r->grant_text);
    free(r);
}

struct group_engine
group_redis_new(struct redis *redis, const char *name)
{
    static const struct group_engine_kind kind = {.join = group_redis_join,
                                                  .leave = group_redis_leave,
                                                  .is_ready = group_redis_is_ready,
                                                  .is_up = group_redis_is_up,
                                                  .ask = group_redis_ask,
                                                  .beat = group_redis_beat,
                                                  .part = group_redis_part,
                                                  .fail = group_redis_fail,
                                                  .place = group_redis_place,
                                                  .free = group_redis_free};
    struct group_redis *r = memory_new(sizeof(*r));
    r->redis = redis;
    r->grant_text = group_redis_grant();
    r->grant.text = r->grant_text;
    r->member.text = group_redis_member;
    snprintf(r->members_key, sizeof(r->members_key), "pm:%s", name);
    snprintf(r->info_key, sizeof(r->info_key), "pi:%s", name);
    return (struct group_engine){&kind, r};
}
