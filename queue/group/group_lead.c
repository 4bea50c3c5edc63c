/* A group's bank in one of its slices. */
#include "queue/group/group_lead.h"

#include "base/breaker.h"
#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "queue/group/group_internal.h"
#include "queue/group/group_server.h"
#include "queue/spool/slices.h"
#include "queue/spool/spool.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAD_PATH_MAX = 2 * NET_PATH_MAX,
    LEAD_FILE_MAX = 64 * 1024 /* one line is read of it */
};

static const char lead_lock[] = "lock/bank";

/* An answer of this process to itself, in the next turn: eval() does not call back. */
struct lead_answer {
    struct redis_question question; /* done NULL: there is none */
    enum redis_kind kind;
    char *text;
};

enum lead_stage { LEAD_WAITING, LEAD_GREETING, LEAD_READY };

struct group_lead {
    struct group_lead_setup setup;
    char spool[NET_PATH_MAX];
    char *members; /* as the script lists them */
    struct group_server *server;
    int lock;       /* -1: another slice has the bank */
    unsigned place; /* the slice that has it, or had it */
    enum lead_stage stage;
    struct breaker breaker;
    struct loop_timer step;
    int64_t connect_ms; /* not before */
    struct net_connection *connection;
    struct redis_question asked; /* another slice; done NULL: nothing */
    struct lead_answer answers[GROUP_SCRIPTS];
    struct loop_task answering;
    struct redis_client *client;
};

static void
lead_drop(struct group_lead *l)
{
    net_abort(&l->connection);
    loop_timer_stop(l->setup.loop, &l->step);
    loop_unpost(l->setup.loop, &l->answering);
    l->asked = (struct redis_question){.done = NULL};
    for (size_t i = 0; i < GROUP_SCRIPTS; i++) {
        free(l->answers[i].text);
        l->answers[i] = (struct lead_answer){.text = NULL};
    }
    l->stage = LEAD_WAITING;
}

/* The lock is tried again soon, the other slice only when the breaker permits it: one that
 * hangs keeps its lock. */
static void
lead_wait(struct group_lead *l)
{
    int64_t left_ms = l->connect_ms - loop_monotonic_ms(l->setup.loop);
    loop_timer_start(l->setup.loop, &l->step,
                     left_ms < LEAD_TRY_MS ? left_ms : LEAD_TRY_MS, l->step.fire, l);
}

static void
lead_fail(void *bank, const char *why)
{
    struct group_lead *l = bank;
    char reason[REDIS_ERROR_MAX];
    snprintf(reason, sizeof(reason), "%s", why); /* it may be of the connection */
    lead_drop(l);
    l->connect_ms = loop_monotonic_ms(l->setup.loop) + breaker_failed(&l->breaker);
    lead_wait(l);
    if (l->client != NULL)
        l->client->failed(l->client->context, reason);
}

static void
lead_get_ready(struct group_lead *l)
{
    l->stage = LEAD_READY;
    loop_timer_stop(l->setup.loop, &l->step);
    if (l->client != NULL)
        l->client->ready(l->client->context);
}

/* --- Another slice ------------------------------------------------------------------ */

/* The first words make the server answer nothing, but answer. */
static void
lead_send(struct group_lead *l, const char *const *words, size_t count)
{
    json_t *ask = json_array(), *question = json_object();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(ask, json_string(words[i]));
    json_object_set_new(question, "ask", ask);
    char *line = json_dumps(question, JSON_COMPACT);
    net_send(l->connection, text_from(line));
    net_send(l->connection, TEXT("\n"));
    free(line);
    json_decref(question);
}

static void
lead_take_answer(struct group_lead *l, const json_t *line)
{
    const char *text = json_string_value(json_object_get(line, "answer")),
               *refused = json_string_value(json_object_get(line, "refused"));
    struct redis_question asked = l->asked;
    if (text == NULL && refused == NULL) {
        lead_fail(l, "an odd line of the slice with the bank");
    } else if (l->stage == LEAD_GREETING && text != NULL) {
        lead_get_ready(l);
    } else if (l->stage == LEAD_READY && asked.done != NULL) {
        l->asked.done = NULL;
        if (text != NULL)
            breaker_good(&l->breaker);
        struct redis_reply reply = {.kind = text != NULL ? REDIS_TEXT : REDIS_ERROR,
                                    .text = text_from(text != NULL ? text : refused)};
        asked.done(asked.context, asked.subject, &reply);
    } else {
        lead_fail(l, "an answer to nothing");
    }
}

/* An answer may end the connection. */
static void
lead_read(struct group_lead *l)
{
    while (l->connection != NULL) {
        struct text rest = net_input(l->connection), line;
        if (text_find(rest, '\n') == TEXT_NONE) {
            if (rest.length > GROUP_ANSWER_MAX)
                lead_fail(l, "a long line of the slice with the bank");
            return;
        }
        (void)!text_cut(&rest, '\n', &line);
        json_t *answer = json_loadb(line.at, line.length, 0, NULL);
        net_consume(l->connection, line.length + 1);
        lead_take_answer(l, answer);
        json_decref(answer);
    }
}

static void
lead_on_event(void *context, enum net_event event)
{
    struct group_lead *l = context;
    switch (event) {
    case NET_CONNECTED:
        lead_send(l, NULL, 0);
        break;
    case NET_INPUT:
        lead_read(l);
        break;
    case NET_FAILED:
        lead_fail(l, net_error(l->connection));
        break;
    case NET_ENDED:
    case NET_TIMED_OUT:
        lead_fail(l, "the slice with the bank has gone");
        break;
    case NET_DRAINED:
    case NET_SECURED:
        break;
    }
}

/* The path of the socket of a slice. */
static void
lead_path(const char *spool, unsigned slices, unsigned slice, char out[LEAD_PATH_MAX])
{
    char part[SLICES_SUFFIX_MAX];
    slices_part(slices, slice, part);
    snprintf(out, LEAD_PATH_MAX, "%.*s/lock/bank.sock.%s", NET_PATH_MAX, spool, part);
}

/* False: nobody of our number of slices. */
static bool
lead_find(struct group_lead *l)
{
    char part[SLICES_SUFFIX_MAX];
    struct buffer file;
    struct text line, rest;
    bool found = false;
    buffer_init(&file, LEAD_FILE_MAX);
    if (spool_read_path(l->setup.disk, lead_lock, &file) >= 0) {
        rest = buffer_text(&file);
        (void)!text_cut(&rest, '\n', &line);
        for (unsigned i = 0; i < l->setup.slices && !found; i++) {
            slices_part(l->setup.slices, i, part);
            found = text_equal(line, text_from(part));
            l->place = found ? i : l->place;
        }
    }
    buffer_free(&file);
    return found;
}

static void
lead_connect(struct group_lead *l)
{
    struct net_address address = {.family = NET_UNIX};
    char path[LEAD_PATH_MAX];
    if (!lead_find(l)) {
        lead_fail(l, "no slice has the bank yet");
        return;
    }
    lead_path(l->spool, l->setup.slices, l->place, path);
    bool fits = text_copy(address.path, sizeof(address.path), text_from(path));
    assert(fits); /* as ours did */
    l->stage = LEAD_GREETING;
    loop_timer_start(l->setup.loop, &l->step, l->setup.patience_ms, l->step.fire, l);
    l->connection = net_connect(l->setup.net, &address, NULL, lead_on_event, l);
}

/* --- The lock ----------------------------------------------------------------------- */

/* 0, or -errno: -EWOULDBLOCK if another slice has it. */
static int
lead_take_lock(struct group_lead *l)
{
    char part[SLICES_SUFFIX_MAX], line[SLICES_SUFFIX_MAX + 1];
    int lock = disk_lock(l->setup.disk, lead_lock, 0, 1);
    if (lock < 0)
        return lock;
    slices_part(l->setup.slices, l->setup.slice, part);
    snprintf(line, sizeof(line), "%s\n", part);
    /* In place: another file would not be the locked one. */
    int result = disk_write_at(l->setup.disk, lock, 0, text_from(line));
    if (result < 0) {
        disk_close_file(l->setup.disk, lock);
        return result;
    }
    l->lock = lock;
    l->place = l->setup.slice;
    group_server_open(l->server);
    log_say(l->setup.log, LOG_LEVEL_INFO, "group", NULL,
            "this slice has the bank of the %u slices", l->setup.slices);
    return 0;
}

static void
lead_on_step(void *context)
{
    struct group_lead *l = context;
    int result = 0;
    if (l->stage == LEAD_GREETING) {
        lead_fail(l, "no answer in time");
        return;
    }
    if (l->lock < 0)
        result = lead_take_lock(l);
    if (result == 0)
        lead_get_ready(l);
    else if (result != -EWOULDBLOCK)
        lead_fail(l, strerror(-result));
    else if (loop_monotonic_ms(l->setup.loop) < l->connect_ms)
        lead_wait(l);
    else
        lead_connect(l);
}

/* --- The bank that the group asks --------------------------------------------------- */

static void
lead_join(void *bank, struct redis_client *client)
{
    struct group_lead *l = bank;
    assert(l->client == NULL);
    l->client = client;
}

static void
lead_leave(void *bank, struct redis_client *client)
{
    struct group_lead *l = bank;
    assert(l->client == client);
    l->client = NULL;
    lead_drop(l);
}

static bool
lead_is_ready(const void *bank)
{
    const struct group_lead *l = bank;
    return l->stage == LEAD_READY;
}

static bool
lead_is_up(const void *bank)
{
    const struct group_lead *l = bank;
    return !breaker_is_open(&l->breaker);
}

static void
lead_on_answering(void *context)
{
    struct group_lead *l = context;
    for (size_t i = 0; i < GROUP_SCRIPTS; i++) {
        struct lead_answer a = l->answers[i];
        if (a.question.done == NULL)
            continue;
        l->answers[i] = (struct lead_answer){.text = NULL};
        struct redis_reply reply = {.kind = a.kind, .text = text_from(a.text)};
        a.question.done(a.question.context, a.question.subject, &reply);
        free(a.text);
    }
}

static void
lead_answer_later(struct group_lead *l, enum group_script script, enum redis_kind kind,
                  struct text text, const struct redis_question *question)
{
    assert(l->answers[script].question.done == NULL);
    l->answers[script] = (struct lead_answer){*question, kind, text_string(text)};
    loop_post(l->setup.loop, &l->answering, lead_on_answering, l);
}

static void
lead_ask(struct group_lead *l, const char *const *words, size_t count,
         const struct redis_question *question)
{
    struct buffer out;
    if (l->lock < 0) {
        assert(l->asked.done == NULL);
        l->asked = *question;
        lead_send(l, words, count);
        return;
    }
    buffer_init(&out, GROUP_ANSWER_MAX);
    const char *why = group_server_ask(l->server, words, count, &out);
    lead_answer_later(l, GROUP_SCRIPT_GRANT, why == NULL ? REDIS_TEXT : REDIS_ERROR,
                      why == NULL ? buffer_text(&out) : text_from(why), question);
    buffer_free(&out);
}

/* The members are known: a heartbeat needs no answer of another slice, and nobody hears a
 * goodbye. */
static void
lead_eval(void *bank, enum group_script script, const char *const *words, size_t count,
          const struct redis_question *question)
{
    struct group_lead *l = bank;
    assert(l->stage == LEAD_READY);
    if (script == GROUP_SCRIPT_GRANT) {
        lead_ask(l, words, count, question);
        return;
    }
    const char *verb = words[GROUP_WORD_VERB];
    if (strcmp(verb, "bye") != 0)
        lead_answer_later(l, script, REDIS_TEXT,
                          strcmp(verb, "list") == 0 ? text_from(l->members) : TEXT("0"),
                          question);
}

static void
lead_place(const void *bank, char out[REDIS_URL_MAX])
{
    const struct group_lead *l = bank;
    snprintf(out, REDIS_URL_MAX, "slice %u", l->place);
}

static void
lead_free(void *bank)
{
    struct group_lead *l = bank;
    lead_drop(l);
    group_server_free(&l->server);
    if (l->lock >= 0)
        disk_close_file(l->setup.disk, l->lock);
    free(l->members);
    free(l);
}

/* The list of the other slices; we know ourselves. */
static char *
lead_members(const struct group_settings *settings)
{
    struct buffer list;
    buffer_init(&list, GROUP_HOSTS_MAX * (GROUP_HOST_MAX + 4));
    (void)!buffer_add(&list, TEXT("0"));
    for (size_t i = 0; i < settings->peer_count; i++)
        (void)!buffer_format(&list, " %s 0", settings->peers[i]);
    char *text = text_string(buffer_text(&list));
    buffer_free(&list);
    return text;
}

struct group_engine
group_lead_new(const struct group_lead_setup *setup, char *error, size_t size)
{
    static const struct group_engine_kind kind = {.join = lead_join,
                                                  .leave = lead_leave,
                                                  .is_ready = lead_is_ready,
                                                  .is_up = lead_is_up,
                                                  .eval = lead_eval,
                                                  .fail = lead_fail,
                                                  .place = lead_place,
                                                  .free = lead_free};
    char path[LEAD_PATH_MAX];
    lead_path(setup->spool, setup->slices, setup->slice, path);
    struct group_server *server =
        group_server_new(setup->loop, setup->net, path, error, size);
    if (server == NULL)
        return (struct group_engine){.kind = NULL};
    struct group_lead *l = memory_new(sizeof(*l));
    l->setup = *setup;
    if (setup->patience_ms == 0)
        l->setup.patience_ms = REDIS_ANSWER_MS;
    l->setup.spool = NULL;
    l->setup.settings = NULL;
    l->server = server;
    l->lock = -1;
    l->place = setup->slice;
    l->members = lead_members(setup->settings);
    snprintf(l->spool, sizeof(l->spool), "%s", setup->spool);
    l->breaker = (struct breaker){
        .failures_max = 3, .retry_ms = 50, .pause_ms = 1000, .pause_max_ms = 1000};
    loop_timer_start(setup->loop, &l->step, 0, lead_on_step, l);
    return (struct group_engine){&kind, l};
}
