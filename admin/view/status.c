/* Tells how the daemon is: its part, and the command that asks it. */
#include "admin/view/status.h"

#include "admin/view/cluster_status.h"
#include "admin/view/control_client.h"
#include "admin/view/counters.h"
#include "base/json_field.h"
#include "admin/view/quota_list.h"
#include "admin/view/terminal.h"
#include "admin/view/site_view.h"
#include "admin/view/words.h"
#include "base/loop/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { SITES_TOP = 20, WATCH_MS = 1000 };

/* --- Output ----------------------------------------------------------------------- */

json_t *
status_make(struct manager *m, int64_t uptime_ms, size_t sessions_in, bool is_stressed)
{
    struct counters c;
    counters_read(m, &c);
    c.uptime_s = uptime_ms / 1000;
    c.sessions_in = sessions_in;
    c.is_stressed = is_stressed;
    json_t *top = site_view_top(manager_sched(m), SITES_TOP, &c.sites);
    json_t *status = json_pack("{s:b}", "ok", true);
    counters_put(status, &c);
    json_object_set_new(status, "sites", top);
    return status;
}

json_t *
status_sandbox(const struct sandbox_state *state)
{
    return json_pack("{s:i,s:b,s:s,s:I}", "landlock", state->landlock, "seccomp",
                     state->seccomp, "missing", state->missing, "refused",
                     (json_int_t)sandbox_refused());
}

/* --- In words --------------------------------------------------------------------- */

static void
print_group(const json_t *group)
{
    size_t lost = 0, i;
    const json_t *host, *hosts = json_object_get(group, "hosts");
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host)
        lost += strcmp(json_field_string(host, "state"), "lost") == 0;
    printf("group      %s: %zu hosts", json_field_string(group, "name"),
           json_array_size(hosts));
    if (lost > 0)
        printf(", %zu of them lost", lost);
    words_print("; bank {bank}[fallback_sites:, {#fallback_sites} sites at our part]\n",
                group, 0);
}

static void
print_tls_reports(const json_t *reports)
{
    int64_t good = 0, failed = 0;
    size_t i;
    const json_t *row;
    json_array_foreach ((json_t *)(uintptr_t)reports, i, row) {
        bool is_good = strcmp(json_field_string(row, "result"), "success") == 0;
        *(is_good ? &good : &failed) += json_field_number(row, "count");
    }
    printf("tls        %" PRId64 " sessions proven that DANE or MTA-STS demands, "
           "%" PRId64 " failed\n",
           good, failed);
}

/* Lines, and the part of the status that each is of: "" is all of it. One whose part is
 * not there, or that has no words, is left out. An array has a line for each element, the
 * first one with the label. */
static const struct status_line {
    const char *label, *part, *words;  /* label NULL: the words have it */
    void (*print)(const json_t *part); /* NULL: by its words */
} status_lines[] = {
#define LINE(label, part, words)                                                       \
    {                                                                                  \
        label, part, words, NULL                                                       \
    }
    LINE("petrel", "", "{version}, up {uptime_s@span_s}"),
    LINE("accepting", "", "[accepting:yes|no: ]{reason}"),
    LINE("spool", "spool", "{path}"),
    LINE(
        "space", "spool",
        "[bytes_free+1>0:{bytes_free@size} and {#inodes_free} files free|unknown]; the "
        "last {bytes_reserve@size} and {#inodes_reserve} files are reserved for "
        "accepted mail"),
    LINE("syncs", "",
         "{#syncs}, [spool.sync=aio:in the background (aio)"
         "|blocking: all sessions wait for each]"),
    LINE("journal", "journal",
         "[segments>0:{#messages} messages; {#free_segments} of {#segments} segments "
         "free; {#batches} batches[full:; full: new mail waits for the spool]"
         "[damages:; damaged pieces found at startup, kept in corrupt/: {#damages}]"
         "|off]"),
    LINE("sandbox", "sandbox",
         "[landlock:Landlock (ABI {#landlock})[seccomp:, seccomp]"
         "|[seccomp:seccomp|off]][missing:; this system lacks: {missing}]"
         "[refused:; system calls refused: {#refused}]"),
 /* Not the socket by which this was asked. */
    LINE("listening", "listeners",
         "[kind=control:|{address} {kind}[tls=none:|, {tls}]; connections: "
         "{#sessions} open, {#accepted} so far]"),
    LINE("certs", "certificates",
         "[?names.0:{names.0}|without a name][name_count>1: and {#name_count-1} more]: "
         "[now>not_after_ms:expired {not_after_ms@since}"
         "|[valid:valid until|not valid yet; until] {not_after_ms@until}]"),
    LINE(NULL, "oauth",
         "oauth      {user} at {host}[port::{#port}]: "
         "[state=ready:token until {until_ms@until}"
         "|[state=asked:the provider is being asked|no token]][reason:: {reason}]"),
    LINE("queue", "",
         "{#queue.incoming} incoming, {#queue.active} active"
         "[active_recipients>queue.active: ({#active_recipients} recipients)], "
         "{#queue.deferred} deferred, {#queue.hold} hold, {#queue.corrupt} corrupt"
         "[queue.defrag:, {#queue.defrag} defrag]"),
    LINE("registry", "fragments",
         "[registry=local:|{registry}; sets begun without it {#alone}; so far "
         "{#redirected} fragments sent to other hosts, {#returned} not taken]"),
    LINE("", "fragments",
         "[namesakes:another host uses the name of this host there: see defrag_host]"),
    LINE("fragments", "fragments",
         "[messages+waited>0:{#messages} wait in {#sets} sets; so far {#reassembled} "
         "messages reassembled, {#timed_out+conflicts+limited+failed} fragments not "
         "reassembled]"),
    {NULL, "group",       NULL, print_group      },
    LINE("copies", "copies",
         "{server}[ready:|; not kept: {why}]; behind {#behind}[adopted>0:; adopted "
         "{#adopted}][adopting:; adopting {adopting}]"),
    LINE("dkim", "dkim",
         "{#signed} signatures, {#failed} failed; longest line: {#longest}"),
    LINE("events", "events",
         "{state}; {#pending_bytes} bytes wait[lost:; {#lost} lost]"
         "[disk_failing:; the disk does not take them]"
         "[why:; the receiver does not take them: {why}]"),
    {NULL, "tls_reports", NULL, print_tls_reports},
    LINE("suppressed", "suppression",
         "[on:{#addresses} addresses[full: (full)]; so far {#added} added, {#refused} "
         "recipients refused, {#failed} failed]"),
    LINE("sessions", "",
         "{#sessions.in} in[sessions.stress: (stress: near the limit)], "
         "{#sessions.out} out"),
    LINE("so far", "",
         "{#totals.stored} stored, {#totals.ended} ended, {#totals.quarantined} "
         "quarantined"),
    LINE("sites", "site_totals",
         "{#sites}; dead: {#dead}; destinations: {#destinations}; recipients waiting: "
         "{#waiting}; messages backlogged: {#backlogged}"),
};

/* True: it has words. */
static bool
status_print_line(const struct status_line *l, bool is_first, const json_t *part,
                  int64_t now_ms)
{
    struct buffer words;
    buffer_init(&words, WORDS_MAX);
    words_say(&words, l->words, part, now_ms);
    bool has_words = words.length > 0;
    if (has_words && l->label != NULL)
        printf("%-10s ", is_first ? l->label : "");
    if (has_words)
        printf("%.*s\n", TEXT_ARGS(buffer_text(&words)));
    buffer_free(&words);
    return has_words;
}

static void
status_print_lines(const json_t *status, int64_t now_ms)
{
    for (size_t i = 0; i < sizeof(status_lines) / sizeof(status_lines[0]); i++) {
        const struct status_line *l = &status_lines[i];
        const json_t *part =
            l->part[0] != '\0' ? json_object_get(status, l->part) : status;
        bool is_first = true;
        if (l->print != NULL && part != NULL)
            l->print(part);
        else if (json_is_object(part))
            status_print_line(l, true, part, now_ms);
        for (size_t k = 0; l->print == NULL && k < json_array_size(part); k++)
            is_first =
                !status_print_line(l, is_first, json_array_get(part, k), now_ms) &&
                is_first;
    }
}

static void
print_sites(const json_t *status, int64_t now_ms)
{
    const json_t *totals = json_object_get(status, "site_totals"),
                 *sites = json_object_get(status, "sites");
    size_t shown = totals != NULL ? json_array_size(sites) : 0;
    if (shown > 0)
        site_view_print_table(sites, now_ms);
    if (shown >= SITES_TOP && (int64_t)shown < json_field_number(totals, "sites"))
        puts("  (sites with most mail; --sites shows all)");
}

/* Findings come first, each with its remedy. */
static const char finding_words[] =
    "{severity%-10} {code}[subject: {subject}]: {text}\n"
    "           {remedy}\n";

void
status_print(const json_t *status, int64_t now_ms)
{
    const json_t *findings = json_object_get(status, "findings");
    words_print_all(finding_words, findings, now_ms);
    if (json_array_size(findings) > 0)
        putchar('\n');
    status_print_lines(status, now_ms);
    print_sites(status, now_ms);
}

/* --- The command ------------------------------------------------------------------ */

/* Replaces the sites of an answer by all, page by page, so that the daemon tells some and works
 * on. False: the daemon has gone. */
static bool
status_fetch_sites(struct control_client *daemon, json_t *status)
{
    json_t *all = json_array();
    size_t count;
    do {
        json_t *answer = control_client_question(
            daemon, json_pack("{s:s,s:I}", "command", "sites", "from",
                              (json_int_t)json_array_size(all)));
        const json_t *page = json_object_get(answer, "sites");
        count = json_array_size(page);
        json_array_extend(all, (json_t *)(uintptr_t)page);
        json_decref(answer);
        if (page == NULL) {
            json_decref(all);
            return false;
        }
    } while (count > 0);
    json_object_set_new(status, "sites", site_view_sorted(all));
    json_decref(all);
    return true;
}

/* Replaces those of an answer by all. False: the daemon has gone. */
static bool
status_fetch_quotas(struct control_client *daemon, json_t *status)
{
    json_t *answer =
        control_client_question(daemon, json_pack("{s:s}", "command", "quotas"));
    json_t *quotas = json_object_get(answer, "quotas");
    bool came = json_is_array(quotas);
    if (came)
        json_object_set(status, "quotas", quotas);
    json_decref(answer);
    return came;
}

static int
status_show(json_t *status, bool json, bool quotas, int64_t now_ms)
{
    if (!json_field_is_true(status, "ok")) {
        fprintf(stderr, "petrel status: the daemon refused: %s\n",
                json_field_string(status, "error"));
        return EX_UNAVAILABLE;
    }
    json_object_del(status, "ok");
    if (!json) {
        status_print(status, now_ms);
        if (quotas)
            quota_list_print(json_object_get(status, "quotas"), now_ms);
    } else {
        json_field_print(status);
    }
    if (fflush(stdout) != 0)
        return EX_IOERR;
    return json_field_is_true(status, "accepting") ? 0 : EX_TEMPFAIL;
}

static int
status_usage(void)
{
    fputs("usage: petrel status [--sites | --site NAME] [--quotas] [--json | --watch]\n"
          "       petrel status --cluster [--json | --watch]\n",
          stderr);
    return EX_USAGE;
}

struct status_choice {
    bool json, all, quotas, cluster, watch;
    const char *site;
};

static bool
status_parse(struct status_choice *c, int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        const char *flag = arguments[i];
        if (strcmp(flag, "--json") == 0)
            c->json = true;
        else if (strcmp(flag, "--sites") == 0)
            c->all = true;
        else if (strcmp(flag, "--quotas") == 0)
            c->quotas = true;
        else if (strcmp(flag, "--cluster") == 0)
            c->cluster = true;
        else if (strcmp(flag, "--watch") == 0)
            c->watch = true;
        else if (strcmp(flag, "--site") == 0 && i + 1 < count)
            c->site = arguments[++i];
        else
            return false;
    }
    return !(c->watch && c->json) &&
           !(c->cluster && (c->all || c->quotas || c->site != NULL));
}

/* NULL: the daemon has gone. */
static json_t *
status_ask(struct control_client *daemon, const struct status_choice *c)
{
    json_t *status =
        control_client_question(daemon, json_pack("{s:s}", "command", "status"));
    if (json_field_is_true(status, "ok") &&
        (((c->json || c->all) && !status_fetch_sites(daemon, status)) ||
         (c->quotas && !status_fetch_quotas(daemon, status)))) {
        json_decref(status);
        return NULL;
    }
    return status;
}

/* Each time is a connection of its own: the daemon may be another one by then. */
static int
status_once(struct loop *loop, const struct status_choice *c,
            const struct options *options)
{
    if (c->cluster)
        return cluster_status_command(c->json, options);
    if (c->site != NULL)
        return site_view_command(c->site, c->json, options);
    int code = EX_UNAVAILABLE;
    struct control_client *daemon =
        control_client_reach(loop, options->control, "petrel status", &code);
    if (daemon == NULL)
        return code;
    control_client_be_brief(daemon);
    json_t *status = status_ask(daemon, c);
    if (status != NULL)
        code = status_show(status, c->json, c->quotas, loop_now_ms(loop));
    else
        fprintf(stderr, "petrel status: %s\n", control_client_trouble(daemon));
    json_decref(status);
    control_client_free(&daemon);
    return code;
}

static void
status_sleep(struct loop *loop)
{
    int64_t end_ms = loop_monotonic_ms(loop) + WATCH_MS, left;
    while ((left = end_ms - loop_monotonic_ms(loop)) > 0)
        loop_turn(loop, left);
}

/* Until it is interrupted, or nobody reads it. A daemon that ends may come back. */
static int
status_watch(struct loop *loop, const struct status_choice *c,
             const struct options *options)
{
    bool answered = false;
    for (;;) {
        struct terminal_screen terminal_screen;
        bool drawn = terminal_begin_screen(&terminal_screen);
        int code = status_once(loop, c, options);
        if (drawn)
            terminal_end_screen(&terminal_screen);
        answered = answered || code == 0 || code == EX_TEMPFAIL;
        if (!answered || ferror(stdout))
            return code;
        status_sleep(loop);
        if (!drawn)
            putchar('\n');
    }
}

int
status_command(int count, char **arguments, const struct options *options)
{
    struct status_choice c = {.site = NULL};
    if (!status_parse(&c, count, arguments))
        return status_usage();
    struct loop *loop = loop_new();
    int code =
        c.watch ? status_watch(loop, &c, options) : status_once(loop, &c, options);
    loop_free(&loop);
    return code;
}
