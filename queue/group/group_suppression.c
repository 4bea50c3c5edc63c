/* Tells Redis of suppressed addresses, and hears of those of others. */
#include "queue/group/group_suppression.h"

#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/redis/redis.h"
#include "queue/group/group_settings.h"
#include "queue/manager/manager.h"
#include "queue/suppression/suppression_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POSITION_MAX = 48,
    NUMBER_MAX = 24,
    HEARD_MAX = 400, /* changes in an answer, which has 80 kB at most */
    TOLD_MAX = 100,  /* in a question */
    TOLD_BYTES = 32 * 1024,
    KEEPS = 2, /* changes for each entry that a host may have */
    FRAME = 5  /* words of a question before the changes */
};

struct group_suppression {
    struct loop *loop;
    struct log *log;
    struct manager *manager;
    struct redis *redis;
    struct redis_client client;
    struct redis_script script;
    struct loop_timer late; /* a question is under way */
    char key[GROUP_NAME_MAX + 4];
    char position[POSITION_MAX];
    bool has_all;    /* that the stream has */
    int64_t most;    /* the largest limit of a host, as it was logged */
    size_t unheard;  /* news when the last question had some */
    bool is_refused; /* as it was logged */
};

const char group_suppression_script[] =
    "local key, pos = KEYS[1], ARGV[1]\n"
    "local t = redis.call('TIME')\n"
    "local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
    "if pos ~= '0' and #redis.call('XRANGE', key, pos, pos) == 0 then return 'lost' "
    "end\n"
    "for i = 4, #ARGV, 2 do\n"
    "  redis.call('XADD', key, 'MAXLEN', '~', ARGV[2], '*', 'e',\n"
    "    string.format('%.0f ', math.max(0, math.min(now, now - ARGV[i]))) .. ARGV[i + "
    "1])\n"
    "end\n"
    "local out, size = {}, 0\n"
    "for _, x in ipairs(redis.call('XRANGE', key, pos == '0' and '-' or '(' .. pos, "
    "'+',\n"
    "    'COUNT', ARGV[3])) do\n"
    "  if #x[2][2] < 3000 then\n" /* a longer one is none of ours */
    "    size = size + #x[2][2]\n"
    "    if size > 80000 then break end\n"
    "    out[#out + 1] = '\\n' .. x[2][2]\n"
    "  end\n"
    "  pos = x[1]\n"
    "end\n"
    "return pos .. string.format(' %.0f', now) .. table.concat(out)\n";

/* --- Questions ---------------------------------------------------------------------- */

struct group_news {
    int64_t now_ms;
    struct buffer text; /* ages and lines, each with a NUL */
    size_t count;
};

static bool
group_news_add(void *context, const struct suppression_entry *entry)
{
    struct group_news *n = context;
    size_t before = n->text.length;
    if (n->count == TOLD_MAX)
        return false;
    if (!buffer_format(&n->text, "%" PRId64, n->now_ms - entry->at_s * 1000) ||
        !buffer_add_byte(&n->text, '\0') ||
        !suppression_record_write(entry, &n->text)) {
        n->text.length = before;
        return false;
    }
    n->text.at[n->text.length - 1] = '\0'; /* its LF */
    n->count++;
    return true;
}

static void group_suppression_replied(void *context, void *subject,
                                      const struct redis_reply *reply);

static void
on_suppression_late(void *context)
{
    struct group_suppression *g = context;
    redis_fail(g->redis, "no answer in time");
}

static void
group_suppression_ask(struct group_suppression *g, struct suppression *s)
{
    const char *words[FRAME + 2 * TOLD_MAX] = {"1", g->key, g->position};
    char keeps[NUMBER_MAX], most[NUMBER_MAX];
    size_t used = FRAME;
    struct group_news news = {.now_ms = loop_now_ms(g->loop)};
    struct text rest, word;
    buffer_init(&news.text, TOLD_BYTES);
    if (g->has_all) {
        g->unheard = suppression_count(s).news;
        suppression_each_news(s, group_news_add, &news);
    }
    int64_t limit = suppression_count(s).limit;
    snprintf(keeps, sizeof(keeps), "%" PRId64,
             KEEPS * (limit > g->most ? limit : g->most));
    snprintf(most, sizeof(most), "%d", HEARD_MAX);
    words[FRAME - 2] = keeps;
    words[FRAME - 1] = most;
    rest = buffer_text(&news.text);
    while (rest.length > 0 && text_cut(&rest, '\0', &word))
        words[used++] = word.at;
    loop_timer_start(g->loop, &g->late, REDIS_ANSWER_MS, on_suppression_late, g);
    redis_eval(g->redis, &g->script, words, used,
               &(struct redis_question){group_suppression_replied, g, g});
    buffer_free(&news.text);
}

static void
group_suppression_restart(struct group_suppression *g, struct suppression *s)
{
    suppression_share(s);
    g->has_all = false;
    g->unheard = SIZE_MAX;
    snprintf(g->position, sizeof(g->position), "0");
}

void
group_suppression_compare(struct group_suppression *g, const char *host, int64_t limit)
{
    const struct suppression *s = manager_suppression(g->manager);
    limit = limit < SUPPRESSION_LIMIT_MAX ? limit : SUPPRESSION_LIMIT_MAX;
    if (s == NULL || limit == g->most)
        return;
    g->most = limit;
    if (limit > suppression_count(s).limit)
        log_say(
            g->log, LOG_LEVEL_WARNING, "group", NULL,
            "suppress_limit is %" PRId64 " here, and %" PRId64
            " at %s: a list that is full here takes no more of what the others know",
            suppression_count(s).limit, limit, host);
}

void
group_suppression_beat(struct group_suppression *g)
{
    struct suppression *s = manager_suppression(g->manager);
    if (s == NULL || heap_has(&g->late.node) || !redis_is_ready(g->redis))
        return;
    if (!suppression_is_shared(s))
        group_suppression_restart(g, s);
    group_suppression_ask(g, s);
}

/* --- Answers ------------------------------------------------------------------------ */

/* "MS-NUMBER", or 0. */
static bool
group_position_is_sound(struct text t)
{
    uint64_t number;
    struct text ms;
    if (text_equal(t, TEXT("0")))
        return true;
    return text_cut(&t, '-', &ms) && text_number(ms, INT64_MAX, &number) &&
           text_number(t, INT64_MAX, &number);
}

/* A line that is damaged, or of a newer version, is passed over. */
static void
group_suppression_hear(const struct group_suppression *g, struct suppression *s,
                       int64_t bank_ms, struct text line)
{
    struct suppression_record record;
    struct text at;
    uint64_t at_ms;
    int64_t now_ms = loop_now_ms(g->loop);
    if (!text_cut(&line, ' ', &at) || !text_number(at, INT64_MAX / 2, &at_ms) ||
        !suppression_record_read(line, &record))
        return;
    int64_t age_ms = bank_ms - (int64_t)at_ms;
    record.entry.at_s = (now_ms - age_ms + 500) / 1000;
    suppression_learn(s, &record.entry, true);
}

static bool
group_suppression_read(struct group_suppression *g, struct suppression *s,
                       struct text answer)
{
    struct text line, position;
    uint64_t bank_ms;
    (void)text_cut(&answer, '\n', &line);
    if (!text_cut(&line, ' ', &position) || !group_position_is_sound(position) ||
        !text_number(line, INT64_MAX / 2, &bank_ms) ||
        !text_copy(g->position, sizeof(g->position), position))
        return false;
    g->has_all = answer.length == 0;
    while (answer.length > 0 && text_cut(&answer, '\n', &line))
        group_suppression_hear(g, s, (int64_t)bank_ms, line);
    return true;
}

static void
group_suppression_refused(struct group_suppression *g, const struct redis_reply *reply)
{
    char why[REDIS_ERROR_MAX];
    redis_reply_explain(reply, "suppress", why);
    if (reply->kind != REDIS_ERROR || redis_is_misplaced(reply)) {
        redis_fail(g->redis, why);
        return;
    }
    if (!g->is_refused)
        log_say(g->log, LOG_LEVEL_WARNING, "group", NULL,
                "suppressed addresses are not shared: %s", why);
    g->is_refused = true;
}

static void
group_suppression_replied(void *context, void *subject, const struct redis_reply *reply)
{
    struct group_suppression *g = context;
    struct suppression *s = manager_suppression(g->manager);
    bool had_all = g->has_all;
    (void)subject;
    loop_timer_stop(g->loop, &g->late);
    if (reply->kind != REDIS_TEXT) {
        group_suppression_refused(g, reply);
        return;
    }
    g->is_refused = false;
    if (s == NULL || !suppression_is_shared(s)) /* a reload has ended its list */
        return;
    if (text_equal(reply->text, TEXT("lost"))) {
        group_suppression_restart(g, s);
    } else if (!group_suppression_read(g, s, reply->text)) {
        redis_fail(g->redis, "an odd answer about suppressed addresses");
        return;
    }
    /* News that do not come back wait for the next beat. */
    size_t news = suppression_count(s).news;
    bool is_more = !g->has_all || (!had_all && news > 0 && news < g->unheard);
    if (is_more)
        group_suppression_beat(g);
}

/* --- The connection ----------------------------------------------------------------- */

static void
on_suppression_ready(void *context)
{
    group_suppression_beat(context);
}

static void
on_suppression_failed(void *context, const char *why)
{
    struct group_suppression *g = context;
    (void)why; /* the group says it */
    loop_timer_stop(g->loop, &g->late);
}

struct group_suppression *
group_suppression_new(struct loop *loop, struct log *log, struct manager *manager,
                      struct redis *redis, const char *name)
{
    struct group_suppression *g = memory_new(sizeof(*g));
    g->loop = loop;
    g->log = log;
    g->manager = manager;
    g->redis = redis;
    g->script.text = group_suppression_script;
    snprintf(g->key, sizeof(g->key), "pd:%s", name);
    g->client = (struct redis_client){
        .ready = on_suppression_ready, .failed = on_suppression_failed, .context = g};
    redis_join(redis, &g->client);
    return g;
}

void
group_suppression_free(struct group_suppression **sharing)
{
    struct group_suppression *g = *sharing;
    *sharing = NULL;
    if (g == NULL)
        return;
    redis_leave(g->redis, &g->client);
    loop_timer_stop(g->loop, &g->late);
    free(g);
}
