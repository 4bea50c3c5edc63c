/* Runs an operator's command in the daemon, or in this process when no daemon runs. */
#include "admin/command/queue_command.h"

#include "admin/command/counter.h"
#include "admin/command/offline.h"
#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/answer/operation.h"
#include "admin/answer/request.h"
#include "admin/settings/complaint.h"
#include "base/id.h"
#include "base/event/event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { ERROR_MAX = 512, PATIENCE_MS = 10 * 1000, TRY_MS = 100 };

/* One run. */
struct queue_command {
    const char *program; /* in whose name it complains */
    bool silent;         /* but for complaints */
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    const struct options *options;
    const struct filter *filter;
    enum manager_verb verb;
    struct control_client *daemon;
    struct offline *offline;
    bool ended;
    struct counter counter;
    size_t failed; /* of the messages reported */
    int code;
};

static int
queue_command_complain(struct queue_command *c, int code, const char *what)
{
    counter_hide(&c->counter);
    complaint_say(c->program, code, what, "");
    if (c->code == 0)
        c->code = code;
    return code;
}

static void
print_json(const struct queue_command *c, const char *name, int code, const char *text)
{
    json_t *line = json_pack("{s:s,s:s,s:b,s:s}", "queue_id", name, "action",
                             request_word(c->verb), "ok", code == 0, "text", text);
    json_field_print_line(line);
    json_decref(line);
}

static void
print_one(struct queue_command *c, const char *name, int code, const char *text)
{
    counter_hide(&c->counter);
    c->failed += code != 0;
    if (c->filter->json)
        print_json(c, name, code, text);
    else if (code != 0)
        fprintf(stderr, "%s: %s: %s\n", c->program, name, text);
    else if (!c->silent)
        printf("%s %s\n", name, text);
    if (c->code == 0)
        c->code = code;
    counter_done(&c->counter);
}

static bool
queue_command_is_flush(const struct queue_command *c)
{
    return c->verb == MANAGER_RETRY && filter_is_all(c->filter);
}

static void
summarize(struct queue_command *c)
{
    char more[64] = "";
    if (c->failed > 0)
        snprintf(more, sizeof(more), ", %zu failed", c->failed);
    counter_hide(&c->counter);
    if (c->counter.done > 0)
        counter_end(&c->counter, (size_t)c->counter.done, more);
    else if (c->code == 0 && !queue_command_is_flush(c))
        fputs(
            "petrel queue: nothing to do: no message matches, or none needs a change\n",
            stderr);
}

/* --- By the daemon ---------------------------------------------------------------- */

/* False: that was the last line. */
static bool
queue_command_take_line(struct queue_command *c, const json_t *line)
{
    const char *error = json_string_value(json_object_get(line, "error"));
    const char *name = json_string_value(json_object_get(line, "id"));
    const char *text = json_string_value(json_object_get(line, "text"));
    if (line == NULL) {
        queue_command_complain(c, EX_UNAVAILABLE, control_client_trouble(c->daemon));
        return false;
    }
    if (error) {
        queue_command_complain(c, EX_UNAVAILABLE, error);
        return false;
    }
    if (json_object_get(line, "seen") != NULL)
        counter_look_at(&c->counter,
                        (uint64_t)json_integer_value(json_object_get(line, "seen")));
    if (name && text)
        print_one(c, name, (int)json_integer_value(json_object_get(line, "code")),
                  text);
    return !json_is_true(json_object_get(line, "end"));
}

static void
run_by_daemon(struct queue_command *c)
{
    json_t *line =
        control_client_question(c->daemon, request_write(c->verb, c->filter));
    bool more = true;
    while (more) {
        more = queue_command_take_line(c, line);
        json_decref(line);
        line = more ? control_client_next(c->daemon) : NULL;
    }
    if (c->code == 0 && queue_command_is_flush(c) && !c->filter->json && !c->silent)
        puts("all that waits is due now");
}

/* --- Without one ------------------------------------------------------------------ */

static void
queue_command_on_told(void *context, struct id id, int code, const char *text)
{
    struct queue_command *c = context;
    char name[ID_LENGTH + 1];
    id_format(id, name);
    bool later = c->verb == MANAGER_RETRY && code == 0;
    print_one(c, name, code, later ? "is due when the daemon starts" : text);
}

static void
queue_command_on_ended(void *context, const char *error)
{
    struct queue_command *c = context;
    c->ended = true;
    if (error)
        queue_command_complain(c, EX_UNAVAILABLE, error);
}

static void
run_offline(struct queue_command *c)
{
    struct operation_events events = {
        .context = c, .told = queue_command_on_told, .ended = queue_command_on_ended};
    struct operation *o = operation_new(c->loop, c->log, offline_manager(c->offline),
                                        c->verb, c->filter, &events);
    while (!c->ended) {
        loop_turn(c->loop, TRY_MS);
        counter_look_at(&c->counter, operation_seen(o));
    }
    operation_free(&o);
}

/* --- The owner of the queue ------------------------------------------------------- */

/* The daemon answers, or the lock is free. Neither: a daemon is starting or stopping,
 * or another command is at work; soon it is one or the other. */
static int
queue_command_find_owner(struct queue_command *c)
{
    char error[ERROR_MAX] = "", refused[ERROR_MAX] = "", line[3 * ERROR_MAX];
    int64_t end_ms = loop_monotonic_ms(c->loop) + PATIENCE_MS;
    while (loop_monotonic_ms(c->loop) < end_ms) {
        c->daemon =
            control_client_new(c->loop, c->options->control, refused, sizeof(refused));
        if (c->daemon)
            return 0;
        if (errno == EACCES)
            return queue_command_complain(c, EX_NOPERM, refused);
        int code = offline_open(&c->offline, c->loop, c->events, c->options, error,
                                sizeof(error));
        if (code == 0)
            return 0;
        if (code != EX_TEMPFAIL)
            return queue_command_complain(c, code, error);
        loop_turn(c->loop, TRY_MS);
    }
    snprintf(line, sizeof(line),
             "the spool is in use, but no daemon answers: %s; nothing was done",
             refused);
    return queue_command_complain(c, EX_UNAVAILABLE, line);
}

static void
queue_command_begin(struct queue_command *c, const struct options *options)
{
    c->options = options;
    c->loop = loop_new();
    if (!c->silent)
        counter_start_here(&c->counter, true);
    c->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    c->events = event_hub_new(c->log);
}

static int
queue_command_finish(struct queue_command *c)
{
    offline_close(&c->offline);
    control_client_free(&c->daemon);
    event_hub_free(&c->events);
    log_free(&c->log);
    loop_free(&c->loop);
    if ((fflush(stdout) != 0 || ferror(stdout)) && c->code == 0)
        c->code = EX_IOERR;
    return c->code;
}

/* True: somebody had the queue. */
static bool
run_change(struct queue_command *c)
{
    if (queue_command_find_owner(c) != 0)
        return false;
    if (c->daemon)
        run_by_daemon(c);
    else
        run_offline(c);
    return true;
}

int
queue_command_messages(enum manager_verb verb, const struct filter *filter,
                       const struct options *options)
{
    struct queue_command c = {
        .program = "petrel queue", .verb = verb, .filter = filter};
    queue_command_begin(&c, options);
    bool had = run_change(&c);
    int code = queue_command_finish(&c);
    if (had)
        summarize(&c);
    return code;
}

static int
forget_one(struct control_client *daemon, const char *site)
{
    json_t *request = json_pack("{s:s,s:s}", "command", "forget-limits", "site", site);
    if (request == NULL) /* not UTF-8: no site */
        return complaint_say("petrel queue", EX_DATAERR, "no such site", site);
    json_t *answer = control_client_question(daemon, request);
    const char *error = json_string_value(json_object_get(answer, "error"));
    bool known = json_is_true(json_object_get(answer, "known"));
    int code = 0;
    if (answer == NULL || error != NULL)
        code =
            complaint_say("petrel queue", EX_UNAVAILABLE,
                          error != NULL ? error : control_client_trouble(daemon), "");
    else if (known)
        printf("%s: its learnt limits are forgotten\n", site);
    else
        code = complaint_say("petrel queue", EX_DATAERR,
                             "no such site ('petrel status --sites' lists them)", site);
    json_decref(answer);
    return code;
}

int
queue_command_forget_limits(int count, char **sites, const struct options *options)
{
    int worst = 0;
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_reach(loop, options->control, "petrel queue", &worst);
    for (int i = 0; daemon != NULL && i < count; i++) {
        int code = forget_one(daemon, sites[i]);
        worst = worst != 0 ? worst : code;
    }
    control_client_free(&daemon);
    loop_free(&loop);
    return fflush(stdout) != 0 && worst == 0 ? EX_IOERR : worst;
}

int
queue_command_flush(const struct filter *filter, bool verbose,
                    const struct options *options)
{
    struct queue_command c = {.program = "sendmail",
                              .silent = !verbose,
                              .verb = MANAGER_RETRY,
                              .filter = filter};
    queue_command_begin(&c, options);
    if (!filter_is_all(filter)) {
        (void)!run_change(&c);
        return queue_command_finish(&c);
    }
    c.daemon = control_client_reach(c.loop, options->control, c.program, &c.code);
    if (c.daemon)
        run_by_daemon(&c);
    return queue_command_finish(&c);
}

int
queue_command_adopt(int count, char **arguments, const struct options *options)
{
    static const char adopts[] = "petrel queue adopt";
    uint64_t slice;
    int code;
    if (count != 1 ||
        !text_number(text_from(arguments[0]), ID_SLICES_MAX - 1, &slice)) {
        fputs("usage: petrel queue adopt SLICE\n", stderr);
        return EX_USAGE;
    }
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_reach(loop, options->control, adopts, &code);
    if (daemon != NULL) {
        json_t *request =
            json_pack("{s:s,s:i}", "command", "adopt", "slice", (int)slice);
        json_t *answer = control_client_ask(daemon, adopts, request, &code);
        code = answer == NULL ? EX_UNAVAILABLE : 0;
        if (answer != NULL)
            printf(
                "slice %u of %u belongs to this daemon until it stops; messages from "
                "its journal: %" JSON_INTEGER_FORMAT "\n",
                (unsigned)slice, options->manager.queue.slices,
                json_integer_value(json_object_get(answer, "messages")));
        json_decref(answer);
    }
    control_client_free(&daemon);
    loop_free(&loop);
    return fflush(stdout) != 0 && code == 0 ? EX_IOERR : code;
}
