/* The connection to the engine of copies: its fitness, scripts, and their acknowledgement. */
#include "queue/copies/copies_engine.h"

#include "base/crypto/digest.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/copies/copies_scripts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { GREETING_MS = 1000, VERSION_MIN = 602, VERSION_WAITAOF = 702 };

/* A script whose answer has not come. */
struct copies_run {
    struct copies_engine *engine;
    copies_answered *done; /* NULL: nobody waits for it */
    void *context;
    bool acknowledged; /* its WAIT is to come */
    struct redis_reply reply;
    struct buffer text; /* of the reply, until then */
    int64_t until_ms;   /* monotonic */
    struct copies_run *prev, *next;
};

struct copies_engine {
    struct copies_engine_setup setup;
    struct redis *redis;
    struct redis_client connection;
    struct copies_client *clients;
    bool is_ready, has_waitaof;
    bool is_unfit;     /* all servers of the list are */
    unsigned verdicts; /* servers of the list that are, since it began */
    char judged[COPIES_WHY_MAX], why[COPIES_WHY_MAX];
    struct copies_run *runs; /* oldest first */
    struct loop_timer late;
    struct copies_script {
        const char *text;
        char sum[41];
        bool is_known; /* to the server */
    } scripts[COPIES_SCRIPTS_MAX];
};

/* --- Fitness ---------------------------------------------------------------------- */

/* The value of a line "NAME:VALUE" of INFO; empty: it has none. */
static struct text
copies_info(struct text info, const char *name)
{
    struct text line;
    size_t length = strlen(name);
    while (text_cut(&info, '\n', &line))
        if (text_starts(line, text_from(name)) && line.length > length &&
            line.at[length] == ':')
            return text_trim(text_after(line, length + 1));
    return TEXT("");
}

/* "7.0.15": 700. 0: it is no version. */
static unsigned
copies_version(struct text version)
{
    struct text major, minor;
    uint64_t numbers[2];
    if (!text_cut(&version, '.', &major))
        return 0;
    minor = text_before(version, text_find(version, '.'));
    if (!text_number(major, 1000, &numbers[0]) || !text_number(minor, 99, &numbers[1]))
        return 0;
    return (unsigned)(numbers[0] * 100 + numbers[1]);
}

/* "BEFORE VALUE AFTER". */
static const char *
copies_unfit(struct copies_engine *e, const char *before, struct text value,
             const char *after)
{
    e->verdicts++;
    snprintf(e->judged, sizeof(e->judged), "%s%.*s%s", before,
             TEXT_ARGS(text_before(value, 100)), after);
    return e->judged;
}

static const char *
copies_judge(void *context, struct text info)
{
    struct copies_engine *e = context;
    const struct text none = TEXT("");
    struct text version = copies_info(info, "redis_version"),
                policy = copies_info(info, "maxmemory_policy"),
                replicas = copies_info(info, "connected_slaves");
    uint64_t count = 0;
    if (text_equal(copies_info(info, "loading"), TEXT("1")))
        return "the server loads its data";
    if (!text_equal(copies_info(info, "role"), TEXT("master")))
        return copies_unfit(e, "the server is a replica, and takes no writes", none,
                            "");
    if (copies_version(version) < VERSION_MIN)
        return copies_unfit(e, "the version of the server is ", version,
                            ", and 6.2 is needed");
    if (policy.length > 0 && !text_equal(policy, TEXT("noeviction")))
        return copies_unfit(e, "the maxmemory-policy of the server is ", policy,
                            ": set noeviction, or it drops copies");
    if (!text_equal(copies_info(info, "aof_enabled"), TEXT("1")))
        return copies_unfit(e,
                            "the server keeps nothing on its disk: set appendonly yes, "
                            "appendfsync always",
                            none, "");
    if (!text_number(replicas, 1000000, &count) || count < e->setup.settings->replicas)
        return copies_unfit(e, "the server has ",
                            replicas.length > 0 ? replicas : TEXT("no"),
                            " replicas, and copies_replicas asks for more");
    e->has_waitaof = copies_version(version) >= VERSION_WAITAOF;
    return NULL;
}

/* --- Answers ---------------------------------------------------------------------- */

static void copies_engine_watch(struct copies_engine *e);

/* Frees it. */
static void
copies_run_end(struct copies_run *run, const struct redis_reply *reply, const char *why)
{
    copies_answered *done = run->done;
    run->done = NULL;
    DL_DELETE(run->engine->runs, run);
    copies_engine_watch(run->engine);
    if (done != NULL)
        done(run->context, reply, why);
    buffer_free(&run->text);
    free(run);
}

/* Also of one whose WAIT is to come: then it stays in the list for that reply. */
static void
copies_run_refuse(struct copies_run *run, const char *why)
{
    copies_answered *done = run->done;
    if (!run->acknowledged) {
        copies_run_end(run, NULL, why);
        return;
    }
    run->done = NULL;
    if (done != NULL)
        done(run->context, NULL, why);
}

static void
copies_engine_late(void *context)
{
    struct copies_engine *e = context;
    redis_fail(e->redis, "no answer in time");
}

static void
copies_engine_watch(struct copies_engine *e)
{
    int64_t now_ms = loop_monotonic_ms(e->setup.loop);
    if (e->runs == NULL)
        loop_timer_stop(e->setup.loop, &e->late);
    else
        loop_timer_start(e->setup.loop, &e->late,
                         e->runs->until_ms > now_ms ? e->runs->until_ms - now_ms : 0,
                         copies_engine_late, e);
}

/* A server that is not the one to write to, or that has forgotten the scripts. One that is full
 * or that lacks a replica still takes ends. */
static bool
copies_ends_connection(struct text error)
{
    static const char *const words[] = {"READONLY", "MASTERDOWN", "LOADING", "NOAUTH",
                                        "NOSCRIPT", "UNBLOCKED",  "MOVED"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (memmem(error.at, error.length, words[i], strlen(words[i])) != NULL)
            return true;
    return false;
}

/* It goes into replies to clients. */
static void
copies_clean(char *why)
{
    if (why[0] == '\0')
        snprintf(why, COPIES_WHY_MAX, "an error without words");
    for (; *why != '\0'; why++)
        if (*why < ' ' || *why > '~')
            *why = '?';
}

/* A sentence for clients and the log. Before version 7 a script's error has more words around
 * that of the command. */
static void
copies_explain(struct text error, char why[COPIES_WHY_MAX])
{
    static const struct {
        const char *word, *says;
    } known[] = {
        {"OOM",        "the server is full"                          },
        {"MISCONF",    "the server cannot write to its disk"         },
        {"READONLY",   "the server is a replica, and takes no writes"},
        {"NOREPLICAS", "the server has too few replicas"             },
        {"LOADING",    "the server loads its data"                   },
        {"NOPERM",     "the user of the server lacks rights"         }
    };
    const char *fence =
        memmem(error.at, error.length, COPIES_FENCED, strlen(COPIES_FENCED));
    for (size_t i = 0; fence == NULL && i < sizeof(known) / sizeof(known[0]); i++)
        if (memmem(error.at, error.length, known[i].word, strlen(known[i].word))) {
            snprintf(why, COPIES_WHY_MAX, "%s", known[i].says);
            return;
        }
    if (fence != NULL)
        error = text_after(error, (size_t)(fence - error.at));
    snprintf(why, COPIES_WHY_MAX, "%.*s", TEXT_ARGS(text_before(error, 200)));
    copies_clean(why);
}

static void
copies_engine_on_reply(void *context, void *subject, const struct redis_reply *reply)
{
    struct copies_engine *e = context;
    struct copies_run *run = subject;
    char why[COPIES_WHY_MAX];
    if (reply->kind == REDIS_ERROR) {
        copies_explain(reply->text, why);
        if (copies_ends_connection(reply->text))
            redis_fail(e->redis, why);
        else
            copies_run_refuse(run, why);
        return;
    }
    run->reply = *reply;
    if (!run->acknowledged) {
        copies_run_end(run, &run->reply, "");
        return;
    }
    buffer_init(&run->text, reply->text.length + 1);
    bool fits = buffer_add(&run->text, reply->text);
    assert(fits);
    run->reply.text = buffer_text(&run->text);
}

/* By WAITAOF the server's own disk, and those of the replicas; by WAIT the replicas: with
 * appendfsync always the disk was before the reply. */
static void
copies_engine_on_wait(void *context, void *subject, const struct redis_reply *reply)
{
    struct copies_engine *e = context;
    struct copies_run *run = subject;
    char why[COPIES_WHY_MAX];
    unsigned wanted = e->setup.settings->replicas;
    bool is_odd = reply->kind != (e->has_waitaof ? REDIS_PAIR : REDIS_NUMBER);
    int64_t own = e->has_waitaof ? reply->first : 1;
    run->acknowledged = false;
    if (run->done == NULL) {
        copies_run_end(run, NULL, "");
        return;
    }
    if (!is_odd && own >= 1 && reply->number >= (int64_t)wanted) {
        copies_run_end(run, &run->reply, "");
        return;
    }
    if (is_odd)
        redis_reply_explain(reply, "WAIT", why);
    else if (own < 1)
        snprintf(why, sizeof(why), "the server did not sync its disk in time");
    else
        snprintf(why, sizeof(why), "%" PRId64 " of %u replicas had it in time",
                 reply->number, wanted);
    copies_clean(why);
    copies_run_refuse(run, why);
    /* The next one would wait as long. */
    redis_fail(e->redis, why);
}

/* --- The connection --------------------------------------------------------------- */

static void
copies_engine_meet(struct copies_engine *e)
{
    struct copies_client *client, *next;
    copies_engine_watch(e);
    e->is_ready = true;
    e->is_unfit = false;
    e->why[0] = '\0';
    for (size_t i = 0; i < COPIES_SCRIPTS_MAX; i++)
        e->scripts[i].is_known = false;
    DL_FOREACH_SAFE (e->clients, client, next)
        if (e->is_ready)
            client->ready(client->context);
}

static void
copies_engine_on_sync(void *context, void *subject, const struct redis_reply *reply)
{
    struct copies_engine *e = context;
    (void)subject;
    if (reply->kind == REDIS_PAIR && text_equal(reply->text, TEXT("always"))) {
        copies_engine_meet(e);
        return;
    }
    if (reply->kind == REDIS_PAIR)
        (void)copies_unfit(e, "the appendfsync of the server is ", reply->text,
                           ": set always");
    else
        (void)copies_unfit(
            e, "the user of the server may not ask for appendfsync (+config|get): ",
            reply->text, "");
    redis_fail(e->redis, e->judged);
}

static void
copies_engine_on_ready(void *context)
{
    struct copies_engine *e = context;
    const struct text words[] = {TEXT("CONFIG"), TEXT("GET"), TEXT("appendfsync")};
    if (e->has_waitaof) {
        copies_engine_meet(e);
        return;
    }
    loop_timer_start(e->setup.loop, &e->late, GREETING_MS, copies_engine_late, e);
    redis_send_bytes(e->redis, words, 3, true,
                     &(struct redis_question){copies_engine_on_sync, e, NULL});
}

static void
copies_engine_on_failed(void *context, const char *why)
{
    struct copies_engine *e = context;
    struct copies_client *client, *next;
    bool was_ready = e->is_ready;
    bool is_refused = strstr(why, "NOAUTH") != NULL ||
                      strstr(why, "WRONGPASS") != NULL || strstr(why, "NOPERM") != NULL;
    e->is_unfit = e->verdicts + is_refused >= e->setup.settings->place_count;
    e->verdicts = 0;
    e->is_ready = false;
    snprintf(e->why, sizeof(e->why), "%s", why);
    copies_clean(e->why);
    while (e->runs != NULL)
        copies_run_end(e->runs, NULL, e->why);
    copies_engine_watch(e);
    DL_FOREACH_SAFE (e->clients, client, next)
        if (was_ready)
            client->lost(client->context);
}

struct copies_engine *
copies_engine_new(const struct copies_engine_setup *setup, char *error,
                  size_t error_size)
{
    struct copies_engine *e = memory_new(sizeof(*e));
    e->setup = *setup;
    snprintf(e->why, sizeof(e->why), "the server is not connected yet");
    e->connection = (struct redis_client){.ready = copies_engine_on_ready,
                                          .failed = copies_engine_on_failed,
                                          .context = e};
    e->redis = redis_new(&(struct redis_setup){.loop = setup->loop,
                                               .net = setup->net,
                                               .dns = setup->dns,
                                               .tls = setup->tls,
                                               .places = setup->settings->places,
                                               .count = setup->settings->place_count,
                                               .judge = copies_judge,
                                               .context = e,
                                               .patience_ms = GREETING_MS},
                         error, error_size);
    if (e->redis == NULL) {
        free(e);
        return NULL;
    }
    redis_join(e->redis, &e->connection);
    return e;
}

/* Nobody is answered any more. */
void
copies_engine_free(struct copies_engine **engine)
{
    struct copies_engine *e = *engine;
    struct copies_run *run, *next;
    if (e == NULL)
        return;
    *engine = NULL;
    DL_FOREACH_SAFE (e->runs, run, next) {
        run->done = NULL;
        copies_run_end(run, NULL, "");
    }
    loop_timer_stop(e->setup.loop, &e->late);
    redis_leave(e->redis, &e->connection);
    redis_free(&e->redis);
    free(e);
}

void
copies_engine_join(struct copies_engine *e, struct copies_client *client)
{
    DL_APPEND(e->clients, client);
}

void
copies_engine_leave(struct copies_engine *e, struct copies_client *client)
{
    struct copies_run *run;
    DL_DELETE(e->clients, client);
    DL_FOREACH (e->runs, run)
        if (run->context == client->context)
            run->done = NULL;
}

bool
copies_engine_is_ready(const struct copies_engine *e)
{
    return e->is_ready;
}

bool
copies_engine_is_unfit(const struct copies_engine *e)
{
    return !e->is_ready && e->is_unfit;
}

const char *
copies_engine_why(const struct copies_engine *e)
{
    return e->why;
}

const struct redis_place *
copies_engine_server(const struct copies_engine *e)
{
    return redis_server(e->redis);
}

void
copies_engine_fail(struct copies_engine *e, const char *why)
{
    redis_fail(e->redis, why);
}

/* --- Scripts ---------------------------------------------------------------------- */

static struct copies_script *
copies_engine_script(struct copies_engine *e, const char *text)
{
    for (size_t i = 0; i < COPIES_SCRIPTS_MAX; i++) {
        struct copies_script *s = &e->scripts[i];
        if (s->text == NULL) {
            s->text = text;
            digest_sha1_hex(text_from(text), s->sum);
        }
        if (s->text == text)
            return s;
    }
    abort(); /* more scripts than COPIES_SCRIPTS_MAX are written */
}

static void
copies_engine_wait(struct copies_engine *e, struct copies_run *run)
{
    char replicas[24], limit[24];
    snprintf(replicas, sizeof(replicas), "%u", e->setup.settings->replicas);
    snprintf(limit, sizeof(limit), "%d", COPIES_DISK_MS);
    const struct text aof[] = {TEXT("WAITAOF"), TEXT("1"), text_from(replicas),
                               text_from(limit)},
                      memory[] = {TEXT("WAIT"), text_from(replicas), text_from(limit)};
    redis_send_bytes(e->redis, e->has_waitaof ? aof : memory, e->has_waitaof ? 4 : 3,
                     e->has_waitaof,
                     &(struct redis_question){copies_engine_on_wait, e, run});
}

void
copies_engine_run(struct copies_engine *e, const char *script, const struct text *words,
                  size_t count, bool acknowledged, copies_answered *done, void *context)
{
    struct copies_script *s = copies_engine_script(e, script);
    struct copies_run *run = memory_new(sizeof(*run));
    struct text *all = memory_array(count + 2, sizeof(*all));
    assert(e->is_ready);
    *run = (struct copies_run){.engine = e, .done = done, .context = context};
    run->until_ms = loop_monotonic_ms(e->setup.loop) + COPIES_ANSWER_MS;
    run->acknowledged =
        acknowledged && (e->has_waitaof || e->setup.settings->replicas > 0);
    DL_APPEND(e->runs, run);
    all[0] = s->is_known ? TEXT("EVALSHA") : TEXT("EVAL");
    all[1] = text_from(s->is_known ? s->sum : s->text);
    memcpy(all + 2, words, count * sizeof(*all));
    s->is_known = true;
    redis_send_bytes(e->redis, all, count + 2, false,
                     &(struct redis_question){copies_engine_on_reply, e, run});
    free(all);
    if (run->acknowledged)
        copies_engine_wait(e, run);
    copies_engine_watch(e);
}

bool
copies_is_fenced(const char *why, struct text *owner)
{
    struct text text = text_from(why);
    if (!text_starts(text, TEXT(COPIES_FENCED)))
        return false;
    *owner = text_after(text, strlen(COPIES_FENCED));
    *owner = text_before(*owner, text_find(*owner, ' '));
    return true;
}
