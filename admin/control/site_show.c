/* Asks the daemon for a site, and prints it. */
#include "admin/control/site_show.h"

#include "admin/control/control_client.h"
#include "admin/control/json_field.h"
#include "admin/control/site_view.h"
#include "admin/control/words.h"
#include "base/loop/loop.h"
#include "sched/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <time.h>

enum { ERROR_MAX = 512, CLOCK_MAX = 64 };

struct site_search {
    const char *name;
    struct site *site;
    json_t *found;
};

static void
site_show_compare(void *context, const struct sched_glance *site)
{
    struct site_search *s = context;
    if (s->site == NULL && strcasecmp(site->key, s->name) == 0)
        s->site = site->site;
}

static void
site_show_take(void *context, const struct sched_site *site)
{
    struct site_search *s = context;
    s->found = site_view_make(site);
}

json_t *
site_show_find(const struct sched *sched, const char *name)
{
    struct site_search s = {.name = name};
    sched_glance(sched, site_show_compare, &s);
    if (s.site != NULL)
        sched_look(sched, s.site, site_show_take, &s);
    return s.found;
}

/* --- The command ------------------------------------------------------------------ */

static void
print_conversation(const json_t *failed)
{
    char clock[CLOCK_MAX] = "";
    time_t seconds = (time_t)(json_field_number(failed, "begun_ms") / 1000);
    struct tm local;
    size_t index;
    json_t *line;
    if (localtime_r(&seconds, &local) == NULL ||
        strftime(clock, sizeof(clock), "%d %b %Y %H:%M:%S", &local) == 0)
        snprintf(clock, sizeof(clock), "%" PRId64, (int64_t)seconds);
    printf("last failed conversation: %s, with %s\n", clock,
           json_field_string(failed, "relay"));
    if (json_field_is_true(failed, "cut"))
        puts("           ...");
    json_array_foreach (json_object_get(failed, "lines"), index, line)
        words_print("{#at_ms%7} ms [from=we:>|[from=they:<|-]] {text}\n", line, 0);
}

static void
site_show_print(const json_t *answer, int64_t now_ms)
{
    json_t *site = json_object_get(answer, "site"),
           *failed = json_object_get(answer, "failed");
    if (json_is_object(site)) {
        json_t *sites = json_pack("[O]", site);
        site_view_print_table(sites, now_ms);
        json_decref(sites);
    }
    if (json_is_object(failed))
        print_conversation(failed);
    else
        puts("no conversation with it has failed since startup");
}

static int
site_show_answer(json_t *answer, const char *name, bool json, int64_t now_ms)
{
    if (!json_field_is_true(answer, "ok")) {
        fprintf(stderr, "petrel status: the daemon refused: %s\n",
                json_field_string(answer, "error"));
        return EX_UNAVAILABLE;
    }
    if (!json_is_object(json_object_get(answer, "site")) &&
        !json_is_object(json_object_get(answer, "failed"))) {
        fprintf(stderr,
                "petrel status: %s: no such site; 'petrel status --sites' lists them\n",
                name);
        return EX_DATAERR;
    }
    json_object_del(answer, "ok");
    if (json) {
        json_dumpf(answer, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        site_show_print(answer, now_ms);
    }
    return fflush(stdout) != 0 ? EX_IOERR : 0;
}

int
site_show_command(const char *name, bool json, const struct options *options)
{
    char error[ERROR_MAX] = "";
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_new(loop, options->control, error, sizeof(error));
    int code = daemon != NULL ? EX_UNAVAILABLE
                              : control_client_refused("petrel status", error);
    json_t *question = json_pack("{s:s,s:s}", "command", "site", "name", name);
    json_t *answer = NULL;
    if (daemon != NULL && question != NULL) {
        control_client_be_brief(daemon);
        answer = control_client_question(daemon, question);
        question = NULL;
    }
    if (answer != NULL)
        code = site_show_answer(answer, name, json, loop_now_ms(loop));
    else if (daemon != NULL)
        fprintf(stderr, "petrel status: %s\n", control_client_trouble(daemon));
    json_decref(question);
    json_decref(answer);
    control_client_free(&daemon);
    loop_free(&loop);
    return code;
}
