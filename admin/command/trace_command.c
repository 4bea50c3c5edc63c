/* Searches the history, prints lives of messages, and follows them. */
#include "admin/command/trace_command.h"

#include "admin/command/command.h"
#include "admin/command/counter.h"
#include "admin/command/offline.h"
#include "admin/view/trace_print.h"
#include "base/json_field.h"
#include "admin/history/life.h"
#include "admin/history/trace.h"
#include "admin/settings/complaint.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/settings/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { ERROR_MAX = 512, LINES_MAX = 100000, FOLLOW_MS = 200 };

static const char trace_program[] = "petrel trace";

struct trace_run {
    struct trace_request *request;
    const struct options *options;
    struct loop *loop;
    struct disk *spool;
    struct trace *trace;
    bool json, follows;
    bool ended; /* the messages that are followed */
};

/* --- Arguments -------------------------------------------------------------------- */

static int
trace_usage(void)
{
    fputs("usage: petrel trace [--json] [--since AGE] [-n N] [-f] QUERY...\n"
          "QUERY: an id, <message-id>, an address, @domain, an IP address, or else "
          "words;\n"
          "       all must hold\n",
          stderr);
    return EX_USAGE;
}

/* Takes an option and its value. False: it is wrong. */
static bool
trace_take_option(struct trace_run *r, char **arguments, int *at, int count)
{
    const char *name = arguments[*at];
    uint64_t number;
    int64_t age_ms;
    if (strcmp(name, "--json") == 0)
        return r->json = true;
    if (strcmp(name, "-f") == 0)
        return r->follows = r->request->follows = true;
    if (*at + 1 == count)
        return false;
    struct text value = text_from(arguments[++*at]);
    if (strcmp(name, "-n") == 0) {
        if (!text_number(value, LINES_MAX, &number) || number == 0)
            return false;
        r->request->limit = (size_t)number;
        return true;
    }
    if (strcmp(name, "--since") != 0 || !settings_parse_duration(value, &age_ms))
        return false;
    r->request->since_ms = loop_now_ms(r->loop) - age_ms;
    return true;
}

static bool
trace_take_arguments(struct trace_run *r, int count, char **arguments)
{
    int at = 0;
    for (; at < count && arguments[at][0] == '-'; at++) {
        if (strcmp(arguments[at], "--") == 0) {
            at++;
            break;
        }
        if (!trace_take_option(r, arguments, &at, count))
            return false;
    }
    for (; at < count; at++) {
        struct trace_request *q = r->request;
        if (q->count == TRACE_QUERIES_MAX ||
            !trace_query_read(text_from(arguments[at]), &q->queries[q->count]))
            return false;
        q->count++;
    }
    return r->request->count > 0 || r->follows || r->request->since_ms != 0;
}

/* --- Results ---------------------------------------------------------------------- */

/* Only the queue knows why it waits now. */
static void
trace_print_whole(const struct trace_run *r, const json_t *life)
{
    const char *id = json_field_string(life, "id");
    trace_print_life(life, stdout);
    if (id[0] != '\0' && !json_field_is_true(life, "ended"))
        command_queue_waits(id, r->options);
}

/* Takes the second life, if there is one: then each has a line. */
static void
trace_print_found(struct trace_run *r, json_t *first)
{
    json_t *life = first, *next = trace_take(r->trace);
    bool single = next == NULL;
    while (life != NULL) {
        if (r->json)
            json_field_print_line(life);
        else if (single)
            trace_print_whole(r, life);
        else
            trace_print_line(life, stdout);
        json_decref(life);
        life = next;
        next = next != NULL ? trace_take(r->trace) : NULL;
    }
}

static int
trace_say_none(const struct trace_run *r)
{
    char at[FORMAT_TIME_MAX];
    int64_t reaches_ms = trace_reaches_ms(r->trace);
    if (reaches_ms < 0)
        fprintf(stderr, "%s: nothing was found: the history is empty%s\n",
                trace_program,
                r->options->history.size == 0 ? " and off (history_size)" : "");
    else
        fprintf(stderr, "%s: nothing was found; the history reaches back to %s\n",
                trace_program, format_time_local(reaches_ms, LOCAL_YEAR, at));
    return EX_DATAERR;
}

/* --- Following -------------------------------------------------------------------- */

static void
trace_print_later(void *context, struct id id, struct text line)
{
    struct trace_run *r = context;
    const struct trace_query *first = &r->request->queries[0];
    char name[ID_LENGTH + 1] = "";
    json_t *event = life_event(line);
    if (event == NULL)
        return;
    if (id.time_ms != 0)
        id_format(id, name);
    if (r->json) {
        json_object_set_new(event, "message",
                            name[0] != '\0' ? json_string(name) : json_null());
        json_field_print_line(event);
    } else {
        trace_print_event(event, name, stdout);
    }
    if (r->request->count == 1 && first->kind == TRACE_ID && life_ends(event))
        r->ended = true;
    json_decref(event);
}

static void
trace_go_on(struct trace_run *r)
{
    while (!r->ended && fflush(stdout) == 0) {
        loop_turn(r->loop, FOLLOW_MS);
        trace_follow(r->trace, trace_print_later, r);
    }
}

/* --- The command ------------------------------------------------------------------ */

/* Steps are of a size, but for the last one of a file. */
static void
trace_search(struct trace_run *r)
{
    struct counter counter;
    counter_start_here(&counter, true);
    counter.unit = " kB";
    while (trace_step(r->trace, TRACE_STEP_BYTES) == PROGRESS_MORE)
        counter_look_at(&counter, counter.looked + TRACE_STEP_BYTES / 1024);
    counter_hide(&counter);
}

static int
trace_run_search(struct trace_run *r)
{
    int error = trace_begin(&r->trace, r->spool, r->request);
    if (error == -ENOENT)
        return complaint_say(trace_program, EX_DATAERR, "there is no history yet",
                             r->options->spool);
    if (error < 0)
        return complaint_say(
            trace_program, error == -EACCES ? EX_NOPERM : EX_IOERR,
            error == -EACCES ? "only root and the daemon's user may read the history"
                             : "cannot read the history",
            strerror(-error));
    trace_search(r);
    json_t *first = trace_take(r->trace);
    if (first == NULL && !r->follows)
        return trace_say_none(r);
    const char *id = json_field_string(first, "id");
    r->ended = r->request->count == 1 && r->request->queries[0].kind == TRACE_ID &&
               id[0] != '\0' && json_field_is_true(first, "ended");
    trace_print_found(r, first);
    if (r->follows)
        trace_go_on(r);
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : 0;
}

static int
trace_open_spool(struct trace_run *r)
{
    char error[ERROR_MAX];
    int code = offline_become_owner(r->options->spool, error, sizeof(error));
    if (code != 0)
        return complaint_say(trace_program, code, error, "");
    int result = disk_open(&r->spool, r->options->spool, false);
    return result == 0 ? 0
                       : complaint_say(trace_program, EX_NOPERM, r->options->spool,
                                       strerror(-result));
}

int
trace_command(int count, char **arguments, const struct options *options)
{
    struct trace_run r = {.options = options, .loop = loop_new()};
    r.request = memory_new(sizeof(*r.request));
    r.request->limit = TRACE_LIMIT_USUAL;
    int code = trace_take_arguments(&r, count, arguments) ? 0 : trace_usage();
    if (code == 0)
        code = trace_open_spool(&r);
    if (code == 0)
        code = trace_run_search(&r);
    trace_end(&r.trace);
    if (r.spool != NULL)
        disk_close(&r.spool);
    loop_free(&r.loop);
    free(r.request);
    return code;
}
