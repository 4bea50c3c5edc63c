/* Asks our daemon for the queues of all hosts, and prints its lines. */
#include "admin/command/cluster_queue.h"

#include "admin/command/counter.h"
#include "admin/view/trace_print.h"
#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/answer/list_answer.h"
#include "admin/view/listing.h"
#include "admin/view/words.h"
#include "admin/answer/request.h"
#include "admin/view/words.h"
#include "admin/view/why.h"
#include "admin/settings/complaint.h"
#include "base/loop/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { ERROR_MAX = 512 };
static const char program[] = "petrel queue";

struct cluster_queue {
    const struct cluster_verb *verb;
    const struct filter *filter;
    struct loop *loop;
    struct control_client *daemon;
    struct counter counter;
    size_t lines;  /* of messages, in this answer */
    size_t silent; /* hosts that did not answer it */
    bool is_found; /* show: it is in a queue */
    uint64_t printed;
    int code;
};

struct cluster_verb {
    const char *name;
    int (*run)(struct cluster_queue *q);
    void (*print)(struct cluster_queue *q, const json_t *line);
};

static void
cluster_queue_fail(struct cluster_queue *q, int code)
{
    if (q->code == 0)
        q->code = code;
}

static int
cluster_queue_refuse(struct cluster_queue *q, int code, const char *what,
                     const char *about)
{
    counter_hide(&q->counter);
    cluster_queue_fail(q, code);
    return complaint_say(program, code, what, about);
}

static bool
cluster_queue_complain(const json_t *line)
{
    if (json_object_get(line, "trouble") == NULL)
        return false;
    fprintf(stderr, "%s: %s: %s\n", program, json_field_string(line, "host"),
            json_field_string(line, "trouble"));
    return true;
}

static bool
cluster_queue_is_gone(const json_t *line)
{
    return strcmp(json_field_string(line, "queue_name"), "gone") == 0;
}

/* --- Lines of an answer -------------------------------------------------------------- */

/* Another host has said it: 256 would be a success to a shell. */
static int
cluster_queue_code(const json_t *line)
{
    int64_t code = json_field_number(line, "code");
    if (json_field_is_true(line, "ok"))
        return 0;
    return code >= EX__BASE && code <= EX__MAX ? (int)code : EX_SOFTWARE;
}

/* As `queue hold --json` has it. */
static void
cluster_queue_print_change_json(struct cluster_queue *q, const json_t *line)
{
    json_t *host = json_object_get(line, "host");
    json_t *told =
        json_pack("{s:s,s:s,s:b,s:s}", "queue_id", json_field_string(line, "id"),
                  "action", q->verb->name, "ok", json_field_is_true(line, "ok"), "text",
                  json_field_string(line, "text"));
    if (host != NULL)
        json_object_set(told, "host", host);
    cluster_queue_fail(q, cluster_queue_code(line));
    json_field_print_line(told);
    json_decref(told);
}

static void
cluster_queue_print(struct cluster_queue *q, const json_t *line)
{
    counter_hide(&q->counter);
    fflush(stdout);
    if (q->filter->json && json_object_get(line, "text") == NULL)
        json_field_print_line(line);
    else if (q->filter->json)
        cluster_queue_print_change_json(q, line);
    else if (!cluster_queue_complain(line))
        q->verb->print(q, line);
}

/* Takes the request, and prints the lines until the end. The last line is the caller's;
 * NULL: there is none, which was reported. */
static json_t *
cluster_queue_ask(struct cluster_queue *q, json_t *request)
{
    json_object_set_new(request, "cluster", json_true());
    q->lines = q->silent = 0;
    q->is_found = false;
    json_t *line = control_client_question(q->daemon, request);
    while (line != NULL && !json_field_is_true(line, "end") &&
           json_object_get(line, "error") == NULL) {
        if (json_object_get(line, "seen") != NULL)
            counter_look_at(&q->counter, (uint64_t)json_field_number(line, "seen"));
        else
            cluster_queue_print(q, line);
        q->is_found = q->is_found || (json_object_get(line, "queue_name") != NULL &&
                                      !cluster_queue_is_gone(line));
        q->lines += json_object_get(line, "seen") == NULL &&
                    json_object_get(line, "trouble") == NULL;
        json_decref(line);
        line = control_client_next(q->daemon);
    }
    if (line != NULL && json_object_get(line, "error") == NULL) {
        q->silent = (size_t)json_field_number(line, "silent");
        q->printed += q->lines;
        return line;
    }
    cluster_queue_refuse(q, line != NULL ? EX_CONFIG : EX_UNAVAILABLE,
                         line != NULL ? json_field_string(line, "error")
                                      : control_client_trouble(q->daemon),
                         "");
    json_decref(line);
    return NULL;
}

/* --- ls ------------------------------------------------------------------------------ */

static void
cluster_queue_print_listing(struct cluster_queue *q, const json_t *line)
{
    words_print("{host%-10} ", line, 0);
    listing_print_line(line, loop_now_ms(q->loop));
}

static int
cluster_queue_list(struct cluster_queue *q)
{
    json_t *end = NULL, *after = NULL;
    do {
        json_t *request = request_write_as("list", q->filter);
        json_object_set_new(request, "limit", json_integer(LIST_ANSWER_MAX));
        json_object_del(request, "all");
        if (after != NULL)
            json_object_set(request, "after", after);
        json_decref(end);
        end = cluster_queue_ask(q, request);
        after = json_object_get(end, "next");
        if (end != NULL && q->silent > 0)
            cluster_queue_fail(q, EX_TEMPFAIL);
    } while (json_is_string(after));
    json_decref(end);
    if (q->printed == 0 && q->code == 0 && !q->filter->json)
        fputs("petrel queue: no message matches\n", stderr);
    return q->code;
}

/* --- show and why ---------------------------------------------------------------------- */

static void
cluster_queue_print_gone(struct cluster_queue *q, const json_t *line)
{
    words_print(
        "[?given:given:    {host} gave it to {given.host}, where it is {given.id}, "
        "{given.time_ms@since}\n"
        "|host:     {host}\nid:       {queue_id}\nqueue:    gone: {state}\n]",
        line, loop_now_ms(q->loop));
}

static void
cluster_queue_print_history(const json_t *line)
{
    if (json_object_get(line, "events") == NULL)
        return;
    puts("history:");
    trace_print_events(line, stdout);
}

static void
cluster_queue_print_message(struct cluster_queue *q, const json_t *line)
{
    if (cluster_queue_is_gone(line)) {
        cluster_queue_print_gone(q, line);
    } else {
        words_print("host:     {host}\n", line, 0);
        listing_print_page(line, loop_now_ms(q->loop));
    }
    if (json_object_get(line, "given") == NULL)
        cluster_queue_print_history(line);
}

static void
cluster_queue_print_why(struct cluster_queue *q, const json_t *line)
{
    if (cluster_queue_is_gone(line)) {
        cluster_queue_print_gone(q, line);
        return;
    }
    words_print("host:     {host}\n", line, 0);
    if (json_object_get(line, "recipients") != NULL)
        why_print(line, loop_now_ms(q->loop));
    else
        listing_print_page(line, loop_now_ms(q->loop));
}

static int
cluster_queue_show_one(struct cluster_queue *q, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    json_t *end =
        cluster_queue_ask(q, json_pack("{s:s,s:s,s:b}", "command", "show", "id", name,
                                       "why", strcmp(q->verb->name, "why") == 0));
    if (end != NULL && q->lines == 0)
        cluster_queue_refuse(q, q->silent > 0 ? EX_TEMPFAIL : EX_DATAERR,
                             q->silent > 0 ? "no host that answered has that message"
                                           : "no host has that message",
                             name);
    if (end != NULL && q->silent > 0)
        cluster_queue_fail(q, EX_TEMPFAIL);
    else if (end != NULL && !q->is_found)
        cluster_queue_fail(q, EX_DATAERR);
    json_decref(end);
    return end != NULL ? 0 : q->code;
}

static int
cluster_queue_show(struct cluster_queue *q)
{
    if (q->filter->id_count == 0 || !filter_is_ids(q->filter))
        return cluster_queue_refuse(
            q, EX_USAGE, "show and why with --cluster need ids, no filter", "");
    for (size_t i = 0; i < q->filter->id_count; i++) {
        if (i > 0 && !q->filter->json)
            putchar('\n');
        if (cluster_queue_show_one(q, q->filter->ids[i].id) != 0)
            break;
    }
    return q->code;
}

/* --- Operations ------------------------------------------------------------------------ */

static void
cluster_queue_print_change(struct cluster_queue *q, const json_t *line)
{
    const char *host = json_field_string(line, "host");
    int code = cluster_queue_code(line);
    cluster_queue_fail(q, code);
    if (code != 0)
        fprintf(stderr, "%s: %s%s%s: %s\n", program, host, host[0] ? ": " : "",
                json_field_string(line, "id"), json_field_string(line, "text"));
    else
        words_print("{host%-10} {id} {text}\n", line, 0);
}

static int
cluster_queue_change(struct cluster_queue *q)
{
    json_t *end = cluster_queue_ask(q, request_write_as(q->verb->name, q->filter));
    int64_t hosts = json_field_number(end, "hosts") - (int64_t)q->silent;
    if (end != NULL && q->silent > 0)
        cluster_queue_fail(q, EX_TEMPFAIL);
    if (end != NULL && !q->filter->json) {
        if (strcmp(q->verb->name, "retry") == 0 && filter_is_all(q->filter))
            printf("all that waits is due now on %" PRId64 " hosts\n", hosts);
        else if (q->printed == 0)
            fputs("petrel queue: nothing to do: no message matches, or none needs a "
                  "change\n",
                  stderr);
    }
    json_decref(end);
    return q->code;
}

/* --- The command ------------------------------------------------------------------------ */

static const struct cluster_verb cluster_verbs[] = {
    {"ls",      cluster_queue_list,   cluster_queue_print_listing},
    {"show",    cluster_queue_show,   cluster_queue_print_message},
    {"why",     cluster_queue_show,   cluster_queue_print_why    },
    {"hold",    cluster_queue_change, cluster_queue_print_change },
    {"release", cluster_queue_change, cluster_queue_print_change },
    {"retry",   cluster_queue_change, cluster_queue_print_change },
};

/* For one host alone, on purpose. */
static const struct cluster_refusal {
    const char *name, *why;
} cluster_refusals[] = {
    {"rm",     "rm cannot be undone"                    },
    {"bounce", "bounce cannot be undone"                },
    {"cat",    "cat shows mail, which stays on its host"},
    {"shape",  "shape reads the spool"                  },
};

static int
cluster_queue_refuse_verb(const char *name)
{
    const char *why = "that is not asked of all hosts";
    char line[ERROR_MAX];
    for (size_t i = 0; i < sizeof(cluster_refusals) / sizeof(cluster_refusals[0]); i++)
        if (strcmp(cluster_refusals[i].name, name) == 0)
            why = cluster_refusals[i].why;
    snprintf(line, sizeof(line), "%s, so it is for one host at a time; run it there",
             why);
    return complaint_say(program, EX_USAGE, line, "");
}

static const struct cluster_verb *
cluster_verb_find(const char *name)
{
    for (size_t i = 0; i < sizeof(cluster_verbs) / sizeof(cluster_verbs[0]); i++)
        if (strcmp(cluster_verbs[i].name, name) == 0)
            return &cluster_verbs[i];
    return NULL;
}

static int
cluster_queue_connect(struct cluster_queue *q, const struct options *options)
{
    char error[ERROR_MAX] = "";
    q->daemon = control_client_new(q->loop, options->control, error, sizeof(error));
    if (q->daemon != NULL)
        return 0;
    return cluster_queue_refuse(q, EX_UNAVAILABLE,
                                "--cluster needs the daemon, and none answers", error);
}

int
cluster_queue_command(const char *verb, const struct filter *filter,
                      const struct options *options)
{
    struct cluster_queue q = {.verb = cluster_verb_find(verb), .filter = filter};
    if (q.verb == NULL)
        return cluster_queue_refuse_verb(verb);
    q.loop = loop_new();
    counter_start_here(&q.counter, true);
    if (cluster_queue_connect(&q, options) == 0)
        q.verb->run(&q);
    counter_hide(&q.counter);
    control_client_free(&q.daemon);
    loop_free(&q.loop);
    if ((fflush(stdout) != 0 || ferror(stdout)) && q.code == 0)
        q.code = EX_IOERR;
    return q.code;
}
