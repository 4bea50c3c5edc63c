/* Puts the answers of all hosts together. */
#include "admin/control/cluster_answer.h"

#include "base/json_field.h"
#include "admin/answer/list_answer.h"
#include "admin/answer/request.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    STATUS_MS = 3 * 1000,
    SHOW_MS = 10 * 1000, /* a long history */
    LIST_MS = 30 * 1000, /* a page */
    OPERATE_MS = 600 * 1000
};

struct cluster_answer {
    struct control_service *service;
    struct answer_events events;
    const struct cluster_kind *kind;
    json_t *request; /* to a host, without our own members */
    struct fan_out *hosts;
    struct loop_task task;
    size_t at;        /* the host that is next in turn */
    bool *is_over;    /* of each host; its end has been seen to */
    json_t **heads;   /* list: the next line of each host; NULL: none is known */
    struct id *ids;   /* list: of the heads, or of the last ones */
    struct id *pages; /* list: where the page of each host began */
    size_t limit, found;
    struct id last; /* list: of the last message reported */
    json_t *wanted; /* operations: ids -> whether some host has it */
    json_t *given;  /* show: where it went; NULL: nowhere */
    bool is_found;  /* show */
    unsigned follows;
    size_t unknown; /* hosts that have a message, and are not in the group */
};

enum cluster_progress { CLUSTER_MORE, CLUSTER_WAITS, CLUSTER_OVER };

struct cluster_kind {
    const char *command;
    int64_t most_ms;
    /* Some work of a turn. WAITS: for hosts, or for the client. */
    enum cluster_progress (*step)(struct cluster_answer *a);
    /* For cluster_answer_relay(): a line of a host, which is taken; */
    void (*line)(struct cluster_answer *a, size_t host, json_t *line);
    /* a host has answered, which may be reported; NULL: it is not; */
    void (*ended)(struct cluster_answer *a, size_t host);
    /* all have. True: some are asked again. */
    bool (*over)(struct cluster_answer *a);
};

static void
cluster_answer_put(struct cluster_answer *a, size_t host, json_t *line)
{
    json_object_set_new(line, "host", json_string(fan_out_name(a->hosts, host)));
    a->events.line(a->events.context, line);
}

/* A line of content is not the end of our answer, nor trouble, for any text of its
 * host. */
static void
cluster_answer_pass(struct cluster_answer *a, size_t host, json_t *line)
{
    static const char *const ours[] = {"end", "error", "seen", "trouble"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        json_object_del(line, ours[i]);
    cluster_answer_put(a, host, line);
}

static bool
cluster_answer_is_ready(const struct cluster_answer *a)
{
    return a->events.is_ready(a->events.context);
}

/* --- Lines as they come ------------------------------------------------------------ */

/* False: the host has answered, or waits. */
static bool
cluster_answer_take(struct cluster_answer *a, size_t host, size_t *waiting)
{
    json_t *line;
    if (a->is_over[host])
        return false;
    switch (fan_out_take(a->hosts, host, &line)) {
    case FAN_OUT_LINE:
        a->kind->line(a, host, line);
        return true;
    case FAN_OUT_WAITS:
        ++*waiting;
        return false;
    case FAN_OUT_OVER:
        break;
    }
    a->is_over[host] = true;
    if (a->kind->ended != NULL)
        a->kind->ended(a, host);
    return true;
}

/* A line of each host in turn, so that one that says much does not delay the others. */
static enum cluster_progress
cluster_answer_relay(struct cluster_answer *a)
{
    size_t count = fan_out_count(a->hosts), idle = 0, waiting = 0;
    for (size_t lines = 0; idle < count; a->at = (a->at + 1) % count) {
        if (lines == CLUSTER_LINES_A_TURN)
            return CLUSTER_MORE;
        if (!cluster_answer_is_ready(a))
            return CLUSTER_WAITS;
        bool took = cluster_answer_take(a, a->at, &waiting);
        lines += took;
        idle = took ? 0 : idle + 1;
        waiting = took ? 0 : waiting;
    }
    if (waiting > 0)
        return CLUSTER_WAITS;
    return a->kind->over(a) ? CLUSTER_WAITS : CLUSTER_OVER;
}

/* --- The status --------------------------------------------------------------------- */

/* The last line is the answer. */
static void
cluster_answer_on_status(struct cluster_answer *a, size_t host)
{
    const json_t *last = fan_out_last(a->hosts, host);
    if (last == NULL)
        return;
    json_t *line = json_copy((json_t *)(uintptr_t)last);
    json_object_del(line, "ok");
    cluster_answer_pass(a, host, line);
}

static bool
cluster_answer_is_over(struct cluster_answer *a)
{
    (void)a;
    return false;
}

/* --- A message ---------------------------------------------------------------------- */

static void
cluster_answer_on_message(struct cluster_answer *a, size_t host, json_t *line)
{
    const json_t *given = json_object_get(line, "given");
    bool is_gone = strcmp(json_field_string(line, "queue_name"), "gone") == 0;
    a->is_found = a->is_found || !is_gone;
    if (is_gone && given != NULL) {
        json_decref(a->given);
        a->given = json_deep_copy(given);
    }
    cluster_answer_pass(a, host, line);
}

/* It is asked for where it went, by the name that it has there. */
static bool
cluster_answer_follow(struct cluster_answer *a)
{
    json_t *given = a->given;
    size_t host;
    a->given = NULL;
    if (a->is_found || given == NULL || a->follows++ == CLUSTER_FOLLOWS_MAX) {
        json_decref(given);
        return false;
    }
    host = fan_out_find(a->hosts, json_field_string(given, "host"));
    if (host == fan_out_count(a->hosts)) {
        a->events.line(a->events.context,
                       json_pack("{s:s,s:s}", "host", json_field_string(given, "host"),
                                 "trouble", "it is not in the group now"));
        a->unknown++;
        json_decref(given);
        return false;
    }
    json_object_set(a->request, "id", json_object_get(given, "id"));
    json_decref(given);
    a->is_over[host] = false;
    fan_out_ask(a->hosts, host, a->request, a->kind->most_ms);
    return true;
}

/* --- Operations --------------------------------------------------------------------- */

/* All hosts but one say that they do not have the message. */
static void
cluster_answer_on_operated(struct cluster_answer *a, size_t host, json_t *line)
{
    const char *id = json_field_string(line, "id");
    if (json_field_is_true(line, "missing")) {
        json_decref(line);
        return;
    }
    if (json_object_get(a->wanted, id) != NULL)
        json_object_set_new(a->wanted, id, json_true());
    cluster_answer_pass(a, host, line);
}

static size_t
cluster_answer_count_silent(const struct cluster_answer *a)
{
    size_t silent = a->unknown;
    for (size_t i = 0; i < fan_out_count(a->hosts); i++)
        silent += fan_out_trouble(a->hosts, i)[0] != '\0';
    return silent;
}

static bool
cluster_answer_end_operation(struct cluster_answer *a)
{
    const char *id;
    json_t *found;
    const char *text = cluster_answer_count_silent(a) > 0
                           ? "no such message on the hosts that answered"
                           : "no such message on any host";
    json_object_foreach(a->wanted, id, found)
    {
        if (!json_is_true(found))
            a->events.line(a->events.context,
                           json_pack("{s:s,s:b,s:i,s:s}", "id", id, "ok", false, "code",
                                     EX_DATAERR, "text", text));
    }
    return false;
}

static void
cluster_answer_want(struct cluster_answer *a)
{
    const json_t *ids = json_object_get(a->request, "ids"), *id;
    size_t i;
    a->wanted = json_object();
    json_array_foreach ((json_t *)(uintptr_t)ids, i, id)
        if (json_is_string(id))
            json_object_set_new(a->wanted, json_string_value(id), json_false());
}

/* --- Lists -------------------------------------------------------------------------- */

/* Ids ascend. A host that goes round, or has no names for what it lists, would be listed for
 * ever. */
static bool
cluster_answer_read_head(struct cluster_answer *a, size_t host)
{
    struct id before = a->ids[host];
    const char *name = json_field_string(a->heads[host], "queue_id");
    bool is_first = before.time_ms == 0 && before.hash == 0;
    if (!id_parse(text_from(name), &a->ids[host]))
        a->ids[host] = (struct id){.hash = 1}; /* before all others, once */
    if (is_first || id_compare(a->ids[host], before) > 0)
        return true;
    json_decref(a->heads[host]);
    a->heads[host] = NULL;
    return false;
}

static bool
cluster_answer_read_next(struct cluster_answer *a, size_t host, const json_t *next)
{
    struct id before = a->pages[host];
    return id_parse(text_from(json_string_value(next)), &a->pages[host]) &&
           id_compare(a->pages[host], before) > 0;
}

static void
cluster_answer_ask_page(struct cluster_answer *a, size_t host, const json_t *after)
{
    json_t *request = json_copy(a->request);
    size_t bytes = CLUSTER_PAGES_BYTES / fan_out_count(a->hosts);
    json_object_set_new(request, "limit", json_integer(LIST_ANSWER_MAX));
    json_object_set_new(request, "bytes",
                        json_integer(bytes < CLUSTER_PAGE_BYTES ? (json_int_t)bytes
                                                                : CLUSTER_PAGE_BYTES));
    if (after != NULL)
        json_object_set(request, "after", (json_t *)(uintptr_t)after);
    fan_out_ask(a->hosts, host, request, a->kind->most_ms);
    json_decref(request);
}

/* False: the next line there is not known yet. */
static bool
cluster_answer_fill(struct cluster_answer *a, size_t host)
{
    if (a->is_over[host] || a->heads[host] != NULL)
        return true;
    switch (fan_out_take(a->hosts, host, &a->heads[host])) {
    case FAN_OUT_LINE:
        if (cluster_answer_read_head(a, host))
            return true;
        fan_out_distrust(a->hosts, host);
        break;
    case FAN_OUT_WAITS:
        return false;
    case FAN_OUT_OVER:
        break;
    }
    const json_t *next = json_object_get(fan_out_last(a->hosts, host), "next");
    if (json_is_string(next) && cluster_answer_read_next(a, host, next)) {
        cluster_answer_ask_page(a, host, next);
        return false;
    }
    if (json_is_string(next))
        fan_out_distrust(a->hosts, host);
    return a->is_over[host] = true;
}

/* The oldest head; the number of hosts: there is none. */
static size_t
cluster_answer_oldest(const struct cluster_answer *a)
{
    size_t count = fan_out_count(a->hosts), oldest = count;
    for (size_t i = 0; i < count; i++)
        if (a->heads[i] != NULL &&
            (oldest == count || id_compare(a->ids[i], a->ids[oldest]) < 0))
            oldest = i;
    return oldest;
}

static bool
cluster_answer_is_full(const struct cluster_answer *a, size_t host)
{
    return a->found >= a->limit && id_compare(a->ids[host], a->last) != 0;
}

static enum cluster_progress
cluster_answer_merge(struct cluster_answer *a)
{
    size_t count = fan_out_count(a->hosts), next, filled = 0;
    bool waits = false;
    for (size_t i = 0; i < count; i++) {
        bool was_empty = a->heads[i] == NULL;
        if (filled == CLUSTER_LINES_A_TURN)
            return CLUSTER_MORE;
        waits = !cluster_answer_fill(a, i) || waits;
        filled += was_empty && a->heads[i] != NULL;
    }
    for (size_t lines = 0; !waits; lines++) {
        next = cluster_answer_oldest(a);
        if (next == count || cluster_answer_is_full(a, next))
            return CLUSTER_OVER;
        if (lines == CLUSTER_LINES_A_TURN)
            return CLUSTER_MORE;
        if (!cluster_answer_is_ready(a))
            return CLUSTER_WAITS;
        a->last = a->ids[next];
        a->found++;
        cluster_answer_pass(a, next, a->heads[next]);
        a->heads[next] = NULL;
        waits = !cluster_answer_fill(a, next);
    }
    return CLUSTER_WAITS;
}

/* --- All of them -------------------------------------------------------------------- */

static void
cluster_answer_drop_line(struct cluster_answer *a, size_t host, json_t *line)
{
    (void)a, (void)host;
    json_decref(line);
}

static const struct cluster_kind cluster_status = {
    .command = "status",
    .most_ms = STATUS_MS,
    .step = cluster_answer_relay,
    .line = cluster_answer_drop_line,
    .ended = cluster_answer_on_status,
    .over = cluster_answer_is_over,
};
static const struct cluster_kind cluster_list = {
    .command = "list",
    .most_ms = LIST_MS,
    .step = cluster_answer_merge,
};
static const struct cluster_kind cluster_show = {
    .command = "show",
    .most_ms = SHOW_MS,
    .step = cluster_answer_relay,
    .line = cluster_answer_on_message,
    .over = cluster_answer_follow,
};
/* retry, hold, release */
static const struct cluster_kind cluster_operation = {
    .command = "",
    .most_ms = OPERATE_MS,
    .step = cluster_answer_relay,
    .line = cluster_answer_on_operated,
    .over = cluster_answer_end_operation,
};

static const struct cluster_kind *
cluster_kind_find(const char *command)
{
    static const struct cluster_kind *const kinds[] = {&cluster_status, &cluster_list,
                                                       &cluster_show};
    enum manager_verb verb;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i]->command, command) == 0)
            return kinds[i];
    bool operates = request_find_verb(command, &verb) && verb != MANAGER_BOUNCE &&
                    verb != MANAGER_REMOVE;
    return operates ? &cluster_operation : NULL;
}

/* Where another list goes on; NULL: there is nothing more. */
static const char *
cluster_answer_rest(const struct cluster_answer *a, char name[ID_LENGTH + 1])
{
    if (a->heads == NULL || cluster_answer_oldest(a) == fan_out_count(a->hosts))
        return NULL;
    id_format(a->last, name);
    return name;
}

static void
cluster_answer_end(struct cluster_answer *a)
{
    char name[ID_LENGTH + 1];
    size_t count = fan_out_count(a->hosts);
    for (size_t i = 0; i < count; i++)
        if (fan_out_trouble(a->hosts, i)[0] != '\0')
            cluster_answer_put(
                a, i, json_pack("{s:s}", "trouble", fan_out_trouble(a->hosts, i)));
    a->events.ended(a->events.context,
                    json_pack("{s:b,s:b,s:s?,s:I,s:I}", "ok", true, "end", true, "next",
                              cluster_answer_rest(a, name), "hosts", (json_int_t)count,
                              "silent", (json_int_t)cluster_answer_count_silent(a)));
}

static void
cluster_answer_turn(void *context)
{
    struct cluster_answer *a = context;
    switch (a->kind->step(a)) {
    case CLUSTER_MORE:
        loop_post(a->service->loop, &a->task, cluster_answer_turn, a);
        break;
    case CLUSTER_OVER:
        cluster_answer_end(a);
        break;
    case CLUSTER_WAITS:
        break; /* fan_out wakes, or the client */
    }
}

void
cluster_answer_wake(struct cluster_answer *a)
{
    loop_post(a->service->loop, &a->task, cluster_answer_turn, a);
}

size_t
cluster_answer_seen(const struct cluster_answer *a)
{
    return (size_t)fan_out_seen(a->hosts);
}

/* The request to a host, without the members for us. */
static json_t *
cluster_answer_request(const json_t *request)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)request);
    const char *command = json_field_string(request, "command");
    json_object_del(copy, "cluster");
    json_object_del(copy, "limit");
    if (strcmp(command, "status") == 0)
        json_object_set_new(copy, "command", json_string("summary"));
    return copy;
}

/* NULL, or why not. */
static const char *
cluster_answer_check(const struct control_service *service, const json_t *request,
                     size_t *limit)
{
    const json_t *value = json_object_get(request, "limit");
    json_int_t number = value != NULL ? json_integer_value(value) : LIST_ANSWER_DEFAULT;
    *limit = (size_t)number;
    if (service->cluster == NULL)
        return "this host is in no group: cluster is not set";
    if (service->cluster->calls == NULL)
        return service->cluster->why;
    if (number < 1 || number > LIST_ANSWER_MAX)
        return "limit is 1 to 10000";
    return NULL;
}

static void
cluster_answer_begin(struct cluster_answer *a)
{
    size_t count = fan_out_count(a->hosts);
    bool is_list = a->kind->step == cluster_answer_merge;
    a->is_over = memory_array(count, sizeof(*a->is_over));
    if (is_list) {
        a->heads = memory_array(count, sizeof(*a->heads));
        a->ids = memory_array(count, sizeof(*a->ids));
        a->pages = memory_array(count, sizeof(*a->pages));
    }
    cluster_answer_want(a);
    for (size_t i = 0; i < count; i++)
        if (is_list)
            cluster_answer_ask_page(a, i, NULL);
        else
            fan_out_ask(a->hosts, i, a->request, a->kind->most_ms);
}

struct cluster_answer *
cluster_answer_new(struct control_service *service, const json_t *request,
                   const struct answer_events *events, const char **why)
{
    const struct cluster_kind *kind =
        cluster_kind_find(json_field_string(request, "command"));
    size_t limit;
    *why = kind == NULL ? "that is not asked of all hosts"
                        : cluster_answer_check(service, request, &limit);
    if (*why != NULL)
        return NULL;
    struct cluster_answer *a = memory_new(sizeof(*a));
    *a = (struct cluster_answer){.service = service,
                                 .events = *events,
                                 .kind = kind,
                                 .request = cluster_answer_request(request),
                                 .limit = limit};
    a->hosts = fan_out_new(service, service->cluster, cluster_answer_turn, a);
    cluster_answer_begin(a);
    return a;
}

void
cluster_answer_free(struct cluster_answer **answer)
{
    struct cluster_answer *a = *answer;
    *answer = NULL;
    if (a == NULL)
        return;
    loop_unpost(a->service->loop, &a->task);
    for (size_t i = 0; a->heads != NULL && i < fan_out_count(a->hosts); i++)
        json_decref(a->heads[i]);
    fan_out_free(&a->hosts);
    json_decref(a->request);
    json_decref(a->wanted);
    json_decref(a->given);
    free(a->is_over);
    free(a->heads);
    free(a->ids);
    free(a->pages);
    free(a);
}
