/* Asks the daemon once, and prints its answer. */
#include "admin/command/daemon_command.h"

#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/view/words.h"
#include "base/loop/loop.h"
#include "base/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    PROGRAM_MAX = 32,
    LEVEL_MS = 3600 * 1000,     /* unless --for says otherwise */
    DRAIN_WAIT_MS = 100 * 1000, /* unless --wait does */
    DRAIN_LOOK_MS = 1000,
    DRAIN_LEFT_MAX = 256
};

/* One run of such a command. */
struct question {
    const char *name;
    struct loop *loop;
    struct control_client *daemon;
};

static int
daemon_usage(const char *usage)
{
    fprintf(stderr, "usage: petrel %s\n", usage);
    return EX_USAGE;
}

static json_t *
daemon_ask(struct question *q, json_t *request, int *code)
{
    char program[PROGRAM_MAX];
    snprintf(program, sizeof(program), "petrel %s", q->name);
    return control_client_ask(q->daemon, program, request, code);
}

static int
command_reload(struct question *q, int count, char **arguments)
{
    int code = 0;
    (void)arguments;
    if (count > 0)
        return daemon_usage("reload");
    json_t *answer = daemon_ask(q, json_pack("{s:s}", "command", "reload"), &code);
    if (answer == NULL)
        return code;
    words_print("settings reloaded[restart:; without effect before a restart: "
                "{restart}]\n",
                answer, 0);
    json_decref(answer);
    return 0;
}

/* --- The level of the log ---------------------------------------------------------- */

static int
print_level(struct question *q, json_t *request)
{
    int code = 0;
    json_t *answer = daemon_ask(q, request, &code);
    if (answer == NULL)
        return code == EX_CONFIG ? EX_DATAERR : code;
    bool is_configured = strcmp(json_field_string(answer, "level"),
                                json_field_string(answer, "configured")) == 0;
    words_print(is_configured ? "{level}\n"
                              : "{level} until [until_ms:{until_ms@until}"
                                "|the settings are reloaded], then {configured}\n",
                answer, loop_now_ms(q->loop));
    json_decref(answer);
    return 0;
}

static int
command_log_level(struct question *q, int count, char **arguments)
{
    static const char usage[] = "log-level [error|warning|info|debug [--for TIME]]";
    int64_t for_ms = LEVEL_MS;
    if (count != 0 && count != 1 && count != 3)
        return daemon_usage(usage);
    if (count == 3 && (strcmp(arguments[1], "--for") != 0 ||
                       !settings_parse_duration(text_from(arguments[2]), &for_ms)))
        return daemon_usage(usage);
    if (count == 0)
        return print_level(q, json_pack("{s:s}", "command", "log-level"));
    return print_level(q, json_pack("{s:s,s:s,s:I}", "command", "log-level", "level",
                                    arguments[0], "for_ms", (json_int_t)for_ms));
}

/* --- Health ------------------------------------------------------------------------ */

static void
print_conditions(const json_t *answer)
{
    const json_t *check;
    size_t i;
    const char *between = ":";
    json_array_foreach (json_object_get(answer, "checks"), i, check) {
        if (json_field_is_true(check, "ok"))
            continue;
        fputs(between, stdout);
        words_print(" {name}: {why}", check, 0);
        between = ";";
    }
}

/* Docker knows the exit codes 0 and 1. */
static int
command_health(struct question *q, int count, char **arguments)
{
    int code = 0;
    bool live = count == 1 && strcmp(arguments[0], "--live") == 0;
    if (count > 0 && !live) {
        daemon_usage("health [--live]");
        return 1;
    }
    json_t *answer = daemon_ask(q, json_pack("{s:s}", "command", "health"), &code);
    if (answer == NULL)
        return 1;
    bool ready = json_field_is_true(answer, "ready");
    if (live) {
        puts("ok");
    } else {
        fputs(ready ? "ready" : "not ready", stdout);
        print_conditions(answer);
        putchar('\n');
    }
    json_decref(answer);
    return live || ready ? 0 : 1;
}

/* --- Lockouts ---------------------------------------------------------------------- */

static int
print_lockouts(struct question *q)
{
    int code = 0;
    json_t *answer = daemon_ask(q, json_pack("{s:s}", "command", "lockouts"), &code);
    if (answer == NULL)
        return code;
    const json_t *list = json_object_get(answer, "lockouts");
    int64_t count = json_field_number(answer, "count");
    words_print_all("{client} until {until_ms@until}, lockout {#times}\n", list,
                    loop_now_ms(q->loop));
    if (count == 0)
        puts("no client is locked out");
    else if ((size_t)count > json_array_size(list))
        printf("and %lld more\n", (long long)count - (long long)json_array_size(list));
    json_decref(answer);
    return 0;
}

static int
command_unlock(struct question *q, int count, char **arguments)
{
    json_t *clients = json_array();
    int code = 0;
    if (count == 0) {
        json_decref(clients);
        return print_lockouts(q);
    }
    for (int n = 0; n < count; n++)
        json_array_append_new(clients, json_string(arguments[n]));
    json_t *answer = daemon_ask(
        q, json_pack("{s:s,s:o}", "command", "unlock", "clients", clients), &code);
    if (answer == NULL)
        return code == EX_CONFIG ? EX_DATAERR : code;
    words_print_all("{client} [locked:may log in again|was not locked out]\n",
                    json_object_get(answer, "clients"), 0);
    json_decref(answer);
    return 0;
}

/* --- Quotas ------------------------------------------------------------------------ */

static int
command_quota(struct question *q, int count, char **arguments)
{
    int code = 0, worst = 0;
    if (count < 2 || strcmp(arguments[0], "reset") != 0)
        return daemon_usage("quota reset WHO...");
    for (int i = 1; i < count; i++) {
        json_t *request =
            json_pack("{s:s,s:s}", "command", "quota-reset", "who", arguments[i]);
        json_t *answer = daemon_ask(q, request, &code);
        if (answer == NULL)
            return code == EX_CONFIG ? EX_DATAERR : code;
        bool reset = json_field_is_true(answer, "reset");
        printf("%s %s\n", arguments[i],
               reset ? "begins anew" : "has used nothing, or has no quota");
        worst = reset ? worst : EX_DATAERR;
        json_decref(answer);
    }
    return worst;
}

/* --- The group of hosts ------------------------------------------------------------- */

static const char cluster_usage[] = "cluster [--json] | forget|adopt HOST";

static const char group_words[] = "group  {name}, egress {egress}\n";
static const char host_words[] =
    "host   {name}  {state}[own:, this one][reports:, {reports}][version:, {version}]"
    "[address:, {address}]\n";
static const char bank_words[] =
    "[namesake:       another host has this name: each needs its own cluster_host\n]"
    "bank   {bank}[bank=none:|, ]{server}[away_ms>0:; for {away_ms@seconds} s: {why}]\n"
    "asks   {#asks} for {#asked_sites} sites, {#failures} without an answer\n"
    "[bank=up:|parts  {#fallback_sites} sites go on with the part of this host\n]";
static const char copies_words[] =
    "copies {server}[ready:|; not kept: {why}]; behind {#behind}\n"
    "[comparing:       what is there and here is being compared\n]"
    "[adopting:       adopting {adopting}\n]"
    "[adopted>0:       adopted {#adopted} since startup\n]"
    "[recalled>0:       taken back {#recalled} since startup\n]"
    "[given_up>0:       {#given_up} ended here that other hosts have adopted\n]"
    "[unreadable>0:       {#unreadable} cannot be read\n]"
    "[namesake:       another host has this name, or a clone of this spool\n]";
static const char share_words[] =
    "site   {site}[shared_tokens>0:  {#lease_tokens} of {#shared_tokens} transactions "
    "in "
    "5 s,]  {#lease_sessions} sessions, {#waiting} waiting, bound {bound}\n";

static int
print_cluster(struct question *q, bool is_json)
{
    int code = 0;
    json_t *answer = daemon_ask(q, json_pack("{s:s}", "command", "cluster"), &code);
    if (answer == NULL)
        return code;
    json_t *group = json_object_get(answer, "group");
    const json_t *copies = json_object_get(answer, "copies");
    if (is_json) {
        if (copies != NULL && json_is_object(group))
            json_object_set(group, "copies", json_object_get(answer, "copies"));
        json_field_print_line(group);
    } else if (!json_is_object(group)) {
        puts("this host is in no group: cluster is not set");
    } else {
        words_print(group_words, group, 0);
        words_print_all(host_words, json_object_get(group, "hosts"), 0);
        words_print(bank_words, group, 0);
        words_print_all(share_words, json_object_get(group, "sites"), 0);
    }
    if (!is_json && copies != NULL)
        words_print(copies_words, copies, 0);
    json_decref(answer);
    return 0;
}

static int
command_cluster(struct question *q, int count, char **arguments)
{
    int code = 0;
    bool is_json = count == 1 && strcmp(arguments[0], "--json") == 0;
    if (count == 0 || is_json)
        return print_cluster(q, is_json);
    bool adopts = count == 2 && strcmp(arguments[0], "adopt") == 0;
    if (count != 2 || (!adopts && strcmp(arguments[0], "forget") != 0))
        return daemon_usage(cluster_usage);
    json_t *request =
        json_pack("{s:s,s:s}", "command", adopts ? "cluster-adopt" : "cluster-forget",
                  "host", arguments[1]);
    json_t *answer = daemon_ask(q, request, &code);
    if (answer == NULL)
        return code == EX_CONFIG ? EX_DATAERR : code;
    printf(adopts ? "the mail of %s is being adopted: petrel cluster says how far\n"
                  : "%s is forgotten: its part is free\n",
           arguments[1]);
    json_decref(answer);
    return 0;
}

/* --- Drain ------------------------------------------------------------------------- */

static const char drain_usage[] =
    "drain [--wait TIME] [--empty] [--to HOST,... | --keep] | --cancel";

/* "12 deferred, 1 hold": the places that have messages. 0: none has. */
static int64_t
drain_list_left(const json_t *answer, char out[DRAIN_LEFT_MAX])
{
    const char *place;
    json_t *number;
    int64_t all = 0;
    size_t at = 0;
    out[0] = '\0';
    json_object_foreach(json_object_get(answer, "left"), place, number)
    {
        int64_t count = json_integer_value(number);
        if (count > 0)
            at += (size_t)snprintf(out + at, DRAIN_LEFT_MAX - at, "%s%lld %s",
                                   all > 0 ? ", " : "", (long long)count, place);
        all += count;
    }
    return all;
}

/* Mail is given to others, or not: "given: 88; refused: 1 (relay2: why); ". */
static const char drain_words[] = "; [given:given: {#given}; ][refused:refused: "
                                  "{#refused}[refusal: ({refusal%.200})]; ]"
                                  "[local:local: {#local}; ][why:waiting: {why%.200}; ]"
                                  "sessions: {#sessions_in} in, {#sessions_out} out";

/* A line when it differs from the last one. */
static void
drain_print_progress(const json_t *answer, struct buffer *last)
{
    char left[DRAIN_LEFT_MAX];
    struct buffer line;
    int64_t count = drain_list_left(answer, left);
    buffer_init(&line, WORDS_MAX);
    words_say(&line, "{state}: ", answer, 0);
    (void)!buffer_add(&line, text_from(count > 0 ? left : "no messages"));
    words_say(&line, drain_words, answer, 0);
    if (!text_equal(buffer_text(&line), buffer_text(last)))
        printf("%.*s\n", TEXT_ARGS(buffer_text(&line)));
    fflush(stdout);
    buffer_free(last);
    *last = line;
}

/* Until it is gone, or the time is over: the daemon goes on without us. */
static int
drain_follow(struct question *q, json_t *answer, int64_t wait_ms)
{
    char left[DRAIN_LEFT_MAX];
    struct buffer last;
    int64_t end_ms = loop_monotonic_ms(q->loop) + wait_ms;
    int code = 0;
    buffer_init(&last, WORDS_MAX);
    while (answer != NULL) {
        drain_print_progress(answer, &last);
        bool gone = strcmp(json_field_string(answer, "state"), "gone") == 0;
        if (gone || loop_monotonic_ms(q->loop) >= end_ms) {
            code = drain_list_left(answer, left) > 0 || !gone ? EX_TEMPFAIL : 0;
            break;
        }
        json_decref(answer);
        loop_turn(q->loop, DRAIN_LOOK_MS);
        answer = daemon_ask(
            q, json_pack("{s:s,s:b}", "command", "drain", "progress", true), &code);
    }
    json_decref(answer);
    buffer_free(&last);
    return code;
}

struct drain_flags {
    bool empty, cancel, keep;
    const char *to;
    int64_t wait_ms;
};

static bool
drain_flags_read(int count, char **arguments, struct drain_flags *f)
{
    *f = (struct drain_flags){.to = "", .wait_ms = DRAIN_WAIT_MS};
    for (int i = 0; i < count; i++) {
        bool has_next = i + 1 < count;
        if (strcmp(arguments[i], "--empty") == 0)
            f->empty = true;
        else if (strcmp(arguments[i], "--cancel") == 0)
            f->cancel = true;
        else if (strcmp(arguments[i], "--keep") == 0)
            f->keep = true;
        else if (strcmp(arguments[i], "--to") == 0 && has_next)
            f->to = arguments[++i];
        else if (strcmp(arguments[i], "--wait") != 0 || !has_next ||
                 !settings_parse_duration(text_from(arguments[++i]), &f->wait_ms))
            return false;
    }
    return !f->cancel || count == 1;
}

static int
command_drain(struct question *q, int count, char **arguments)
{
    struct drain_flags f;
    int code = 0;
    if (!drain_flags_read(count, arguments, &f))
        return daemon_usage(drain_usage);
    json_t *request = json_pack("{s:s,s:b,s:b,s:b,s:s,s:I}", "command", "drain",
                                "cancel", f.cancel, "empty", f.empty, "keep", f.keep,
                                "to", f.to, "wait_ms", (json_int_t)f.wait_ms);
    json_t *answer = daemon_ask(q, request, &code);
    if (answer == NULL)
        return code == EX_CONFIG ? EX_DATAERR : code;
    if (!f.cancel)
        return drain_follow(q, answer, f.wait_ms);
    puts("accepting and delivering mail again");
    json_decref(answer);
    return 0;
}

/* --- All of them ------------------------------------------------------------------- */

static const struct daemon_row {
    const char *name;
    int (*run)(struct question *q, int count, char **arguments);
} daemon_rows[] = {
    {"reload",    command_reload   },
    {"log-level", command_log_level},
    {"health",    command_health   },
    {"unlock",    command_unlock   },
    {"quota",     command_quota    },
    {"cluster",   command_cluster  },
    {"drain",     command_drain    },
};

static const struct daemon_row *
daemon_row_find(const char *name)
{
    for (size_t i = 0; i < sizeof(daemon_rows) / sizeof(daemon_rows[0]); i++)
        if (strcmp(name, daemon_rows[i].name) == 0)
            return &daemon_rows[i];
    return NULL;
}

int
daemon_command(int count, char **arguments, const struct options *options)
{
    const struct daemon_row *row = daemon_row_find(arguments[0]);
    bool is_health = row->run == command_health;
    char program[PROGRAM_MAX];
    struct question q = {.name = row->name, .loop = loop_new()};
    int code = 1;
    snprintf(program, sizeof(program), "petrel %s", row->name);
    q.daemon = control_client_reach(q.loop, options->control, program, &code);
    if (q.daemon != NULL && is_health)
        control_client_be_brief(q.daemon);
    if (q.daemon != NULL)
        code = row->run(&q, count - 1, arguments + 1);
    else if (is_health)
        code = 1;
    if (fflush(stdout) != 0 && code == 0)
        code = is_health ? 1 : EX_IOERR;
    control_client_free(&q.daemon);
    loop_free(&q.loop);
    return code;
}
