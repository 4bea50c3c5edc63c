/* Tells how the daemon is: its part, and the command that asks it. */
#include "admin/control/status.h"

#include "admin/control/account_list.h"
#include "admin/control/cluster_status.h"
#include "admin/control/control_client.h"
#include "admin/control/json_field.h"
#include "admin/control/quota_list.h"
#include "admin/control/screen.h"
#include "admin/control/site_list.h"
#include "admin/control/site_show.h"
#include "admin/control/format_time.h"
#include "base/loop/loop.h"
#include "queue/queue_operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { ERROR_MAX = 512, SITES_TOP = 20, WATCH_MS = 1000 };

/* --- Output ----------------------------------------------------------------------- */

static json_t *
status_number(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *
make_spool(const struct queue_health *h)
{
    return json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:I}", "path", h->path, "sync",
        h->sync_blocks ? "blocking" : "aio", "bytes_free", (json_int_t)h->bytes_free,
        "inodes_free", (json_int_t)h->inodes_free, "bytes_reserve",
        (json_int_t)h->bytes_reserve, "inodes_reserve", (json_int_t)h->inodes_reserve);
}

static json_t *
make_journal(const struct queue_health *h)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:b,s:o}", "segments",
                     status_number(h->segments), "free_segments",
                     status_number(h->free_segments), "messages",
                     status_number(h->journaled), "batches", status_number(h->batches),
                     "full", h->journal_full, "damages", status_number(h->damages));
}

json_t *
status_queue(struct manager *m)
{
    struct manager_places places = manager_count(m);
    struct queue_apart apart = queue_count_apart(manager_queue(m));
    return json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o}", "incoming", status_number(places.incoming),
        "active", status_number(places.active), "deferred",
        status_number(places.deferred), "hold", status_number(apart.held), "corrupt",
        status_number(apart.quarantined), "defrag", status_number(places.defrag));
}

static json_t *
make_fragments(struct manager *m)
{
    struct manager_fragments f = {0};
    (void)manager_fragments(m, &f);
    return json_pack(
        "{s:o,s:o,s:I,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s}", "sets",
        status_number(f.sets), "messages", status_number(f.messages), "bytes",
        (json_int_t)f.bytes, "oldest_ms", (json_int_t)f.oldest_ms, "waited",
        status_number(f.waited), "reassembled", status_number(f.reassembled),
        "absorbed", status_number(f.absorbed), "timed_out", status_number(f.timed_out),
        "conflicts", status_number(f.conflicts), "limited", status_number(f.limited),
        "malformed", status_number(f.malformed), "failed", status_number(f.failed),
        "redirected", status_number(f.redirected), "returned",
        status_number(f.returned), "alone", status_number(f.alone), "namesakes",
        status_number(f.namesakes), "registry",
        !f.is_shared ? "local"
        : f.is_down  ? "down"
                     : "up");
}

static json_t *
make_sites(const struct site_list_totals *totals, const struct sched_counts *counts)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "sites", status_number(totals->sites),
                     "dead", status_number(counts->dead), "destinations",
                     status_number(counts->destinations), "waiting",
                     status_number(totals->waiting), "backlogged",
                     status_number(totals->backlogged));
}

json_t *
status_make(struct manager *m, int64_t uptime_ms, size_t sessions_in)
{
    struct queue_health h = queue_health(manager_queue(m));
    struct sched_counts counts = sched_count(manager_sched(m));
    struct manager_oldest oldest;
    struct site_list_totals sites;
    manager_find_oldest(m, &oldest);
    json_t *top = site_list_top(manager_sched(m), SITES_TOP, &sites);
    json_t *sessions =
        json_pack("{s:o,s:o,s:o,s:o}", "in", status_number(sessions_in), "out",
                  status_number(counts.sessions), "idle", status_number(counts.idle),
                  "busy", status_number(sites.busy));
    json_t *limits =
        json_pack("{s:o,s:o,s:o}", "active_limit", status_number(counts.active_limit),
                  "active_recipient_limit", status_number(counts.recipient_limit),
                  "delivery_session_limit", status_number(counts.session_limit));
    json_t *totals = json_pack("{s:o,s:o,s:o}", "stored", status_number(h.stored),
                               "ended", status_number(h.retired), "quarantined",
                               status_number(h.quarantined));
    return json_pack(
        "{s:b,s:s,s:I,s:b,s:s,s:o,s:o,s:o,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "ok",
        true, "version", PETREL_VERSION, "uptime_s", (json_int_t)(uptime_ms / 1000),
        "accepting", h.accepting, "reason", h.reason, "syncs", status_number(h.syncs),
        "spool", make_spool(&h), "journal", make_journal(&h), "queue", status_queue(m),
        "oldest_ms", (json_int_t)oldest.birth_ms, "active_recipients",
        status_number(counts.recipients), "fragments", make_fragments(m), "sessions",
        sessions, "totals", totals, "limits", limits, "site_totals",
        make_sites(&sites, &counts), "sites", top);
}

json_t *
status_sandbox(const struct sandbox_state *state)
{
    return json_pack("{s:i,s:b,s:s,s:I}", "landlock", state->landlock, "seccomp",
                     state->seccomp, "missing", state->missing, "refused",
                     (json_int_t)sandbox_refused());
}

/* --- Output ----------------------------------------------------------------------- */

static const char *
size(int64_t bytes, char out[FORMAT_TIME_MAX])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(*units)) {
        value /= 1000;
        unit++;
    }
    snprintf(out, FORMAT_TIME_MAX, "%.1f %s", value, units[unit]);
    return out;
}

/* Only where some were there. */
static void
print_fragments(const json_t *f)
{
    int64_t messages = json_field_number(f, "messages"),
            reassembled = json_field_number(f, "reassembled");
    const char *registry = json_field_string(f, "registry");
    bool shared = strcmp(registry, "local") != 0;
    if (shared)
        printf("registry   %s; sets begun without it %" PRId64 "; so far %" PRId64
               " fragments sent to other hosts, %" PRId64 " not taken\n",
               registry, json_field_number(f, "alone"),
               json_field_number(f, "redirected"), json_field_number(f, "returned"));
    if (json_field_number(f, "namesakes") > 0)
        printf("           another host uses the name of this host there: see "
               "defrag_host\n");
    if (messages == 0 && json_field_number(f, "waited") == 0)
        return;
    printf("fragments  %" PRId64 " wait in %" PRId64 " sets; so far %" PRId64
           " messages reassembled, %" PRId64 " fragments not reassembled\n",
           messages, json_field_number(f, "sets"), reassembled,
           json_field_number(f, "timed_out") + json_field_number(f, "conflicts") +
               json_field_number(f, "limited") + json_field_number(f, "failed"));
}

/* Only in a group. */
static void
print_group(const json_t *group)
{
    size_t lost = 0, i;
    const json_t *host, *hosts = json_object_get(group, "hosts");
    if (group == NULL)
        return;
    json_array_foreach ((json_t *)(uintptr_t)hosts, i, host)
        lost += strcmp(json_field_string(host, "state"), "lost") == 0;
    printf("group      %s: %zu hosts", json_field_string(group, "name"),
           json_array_size(hosts));
    if (lost > 0)
        printf(", %zu of them lost", lost);
    printf("; bank %s", json_field_string(group, "bank"));
    if (json_field_number(group, "fallback_sites") > 0)
        printf(", %" PRId64 " sites at our part",
               json_field_number(group, "fallback_sites"));
    putchar('\n');
}

/* Only with keys. */
static void
print_tls_reports(const json_t *reports)
{
    int64_t good = 0, failed = 0;
    for (size_t i = 0; i < json_array_size(reports); i++) {
        const json_t *row = json_array_get(reports, i);
        const char *result = json_string_value(json_object_get(row, "result"));
        if (result != NULL && strcmp(result, "success") == 0)
            good += json_field_number(row, "count");
        else
            failed += json_field_number(row, "count");
    }
    if (reports != NULL)
        printf("tls        %" PRId64 " sessions proven that DANE or MTA-STS demands, "
               "%" PRId64 " failed\n",
               good, failed);
}

static void
print_dkim(const json_t *dkim)
{
    if (dkim != NULL)
        printf("dkim       %" PRId64 " signatures, %" PRId64
               " failed; longest line: %" PRId64 "\n",
               json_field_number(dkim, "signed"), json_field_number(dkim, "failed"),
               json_field_number(dkim, "longest"));
}

/* While `events` is set. */
static void
print_events(const json_t *events)
{
    if (events == NULL)
        return;
    printf("events     %s; %" PRId64 " bytes wait", json_field_string(events, "state"),
           json_field_number(events, "pending_bytes"));
    if (json_field_number(events, "lost") > 0)
        printf("; %" PRId64 " lost", json_field_number(events, "lost"));
    if (json_field_is_true(events, "disk_failing"))
        printf("; the disk does not take them");
    if (json_field_string(events, "why")[0] != '\0')
        printf("; the receiver does not take them: %s",
               json_field_string(events, "why"));
    putchar('\n');
}

static void
print_space(const json_t *spool)
{
    char left[FORMAT_TIME_MAX], reserve[FORMAT_TIME_MAX];
    if (json_field_number(spool, "bytes_free") >= 0)
        printf("space      %s and %" PRId64 " files free",
               size(json_field_number(spool, "bytes_free"), left),
               json_field_number(spool, "inodes_free"));
    else
        printf("space      unknown");
    printf("; the last %s and %" PRId64 " files are reserved for accepted mail\n",
           size(json_field_number(spool, "bytes_reserve"), reserve),
           json_field_number(spool, "inodes_reserve"));
}

static void
print_spool(const json_t *status)
{
    const json_t *spool = json_object_get(status, "spool");
    bool aio = strcmp(json_field_string(spool, "sync"), "aio") == 0;
    printf("spool      %s\n", json_field_string(spool, "path"));
    print_space(spool);
    printf("syncs      %" PRId64 ", %s\n", json_field_number(status, "syncs"),
           aio ? "in the background (aio)" : "blocking: all sessions wait for each");
}

static void
print_journal(const json_t *journal)
{
    if (json_field_number(journal, "segments") == 0) {
        printf("journal    off\n");
        return;
    }
    printf("journal    %" PRId64 " messages; %" PRId64 " of %" PRId64
           " segments free; %" PRId64 " batches%s",
           json_field_number(journal, "messages"),
           json_field_number(journal, "free_segments"),
           json_field_number(journal, "segments"),
           json_field_number(journal, "batches"),
           json_field_is_true(journal, "full") ? "; full: new mail waits for the spool"
                                               : "");
    if (json_field_number(journal, "damages") > 0)
        printf("; damaged pieces found at startup, kept in corrupt/: %" PRId64,
               json_field_number(journal, "damages"));
    putchar('\n');
}

static void
print_sandbox(const json_t *sandbox)
{
    struct sandbox_state state = {.landlock =
                                      (int)json_field_number(sandbox, "landlock"),
                                  .seccomp = json_field_is_true(sandbox, "seccomp")};
    char is[FORMAT_TIME_MAX];
    if (sandbox == NULL)
        return;
    sandbox_describe(&state, is, sizeof(is));
    printf("sandbox    %s", is);
    if (json_field_string(sandbox, "missing")[0])
        printf("; this system lacks: %s", json_field_string(sandbox, "missing"));
    if (json_field_number(sandbox, "refused") > 0)
        printf("; system calls refused: %" PRId64,
               json_field_number(sandbox, "refused"));
    putchar('\n');
}

/* Not the socket by which this was asked. */
static void
print_listeners(const json_t *listeners)
{
    const char *label = "listening";
    const json_t *l;
    size_t i;
    json_array_foreach (listeners, i, l) {
        const char *kind = json_field_string(l, "kind");
        const char *tls = json_field_string(l, "tls");
        bool has_tls = strcmp(tls, "none") != 0;
        if (strcmp(kind, "control") == 0)
            continue;
        printf("%-10s %s %s%s%s; connections: %" PRId64 " open, %" PRId64 " so far\n",
               label, json_field_string(l, "address"), kind, has_tls ? ", " : "",
               has_tls ? tls : "", json_field_number(l, "sessions"),
               json_field_number(l, "accepted"));
        label = "";
    }
}

static void
print_certificates(const json_t *certificates, int64_t now_ms)
{
    const json_t *c;
    size_t i;
    json_array_foreach (certificates, i, c) {
        const json_t *names = json_object_get(c, "names");
        const char *name = json_string_value(json_array_get(names, 0));
        int64_t end_ms = json_field_number(c, "not_after_ms");
        int64_t more = json_field_number(c, "name_count") - 1;
        char when[FORMAT_TIME_MAX], others[FORMAT_TIME_MAX] = "";
        if (more > 0)
            snprintf(others, sizeof(others), " and %" PRId64 " more", more);
        printf("%-10s %s%s: %s %s\n", i == 0 ? "certs" : "",
               name != NULL ? name : "without a name", others,
               end_ms < now_ms                  ? "expired"
               : json_field_is_true(c, "valid") ? "valid until"
                                                : "not valid yet; until",
               end_ms < now_ms ? format_time_since(end_ms, now_ms, when)
                               : format_time_until(end_ms, now_ms, when));
    }
}

static void
print_sites(const json_t *status, int64_t now_ms)
{
    const json_t *totals = json_object_get(status, "site_totals");
    const json_t *sites = json_object_get(status, "sites");
    size_t shown = json_array_size(sites);
    if (totals == NULL)
        return;
    printf("sites      %" PRId64 "; dead: %" PRId64 "; destinations: %" PRId64
           "; recipients waiting: %" PRId64 "; messages backlogged: %" PRId64 "\n",
           json_field_number(totals, "sites"), json_field_number(totals, "dead"),
           json_field_number(totals, "destinations"),
           json_field_number(totals, "waiting"),
           json_field_number(totals, "backlogged"));
    if (shown > 0)
        site_view_print_table(sites, now_ms);
    if (shown >= SITES_TOP && (int64_t)shown < json_field_number(totals, "sites"))
        puts("  (sites with most mail; --sites shows all)");
}

static void
print_queue(const json_t *queue, int64_t recipients)
{
    int64_t active = json_field_number(queue, "active");
    printf("queue      %" PRId64 " incoming, %" PRId64 " active",
           json_field_number(queue, "incoming"), active);
    if (recipients > active)
        printf(" (%" PRId64 " recipients)", recipients);
    printf(", %" PRId64 " deferred, %" PRId64 " hold, %" PRId64 " corrupt",
           json_field_number(queue, "deferred"), json_field_number(queue, "hold"),
           json_field_number(queue, "corrupt"));
    if (json_field_number(queue, "defrag") > 0)
        printf(", %" PRId64 " defrag", json_field_number(queue, "defrag"));
    putchar('\n');
}

/* Findings come first, each with its remedy. */
static void
print_findings(const json_t *findings)
{
    size_t i;
    const json_t *f;
    json_array_foreach (findings, i, f) {
        const char *subject = json_field_string(f, "subject");
        printf("%-10s %s%s%s: %s\n           %s\n", json_field_string(f, "severity"),
               json_field_string(f, "code"), subject[0] != '\0' ? " " : "", subject,
               json_field_string(f, "text"), json_field_string(f, "remedy"));
    }
    if (i > 0)
        putchar('\n');
}

void
status_print(const json_t *status, int64_t now_ms)
{
    const json_t *queue = json_object_get(status, "queue");
    const json_t *sessions = json_object_get(status, "sessions");
    const json_t *totals = json_object_get(status, "totals");
    bool accepting = json_field_is_true(status, "accepting");
    char words[FORMAT_TIME_MAX];
    print_findings(json_object_get(status, "findings"));
    printf("petrel     %s, up %s\n", json_field_string(status, "version"),
           format_time_span(1000 * json_field_number(status, "uptime_s"), words));
    printf("accepting  %s%s\n",
           accepting ? "yes" : "no: ", json_field_string(status, "reason"));
    print_spool(status);
    print_journal(json_object_get(status, "journal"));
    print_sandbox(json_object_get(status, "sandbox"));
    print_listeners(json_object_get(status, "listeners"));
    print_certificates(json_object_get(status, "certificates"), now_ms);
    account_list_print(json_object_get(status, "oauth"), now_ms);
    print_queue(queue, json_field_number(status, "active_recipients"));
    print_fragments(json_object_get(status, "fragments"));
    print_group(json_object_get(status, "group"));
    print_dkim(json_object_get(status, "dkim"));
    print_events(json_object_get(status, "events"));
    print_tls_reports(json_object_get(status, "tls_reports"));
    printf("sessions   %" PRId64 " in%s, %" PRId64 " out\n",
           json_field_number(sessions, "in"),
           json_field_is_true(sessions, "stress") ? " (stress: near the limit)" : "",
           json_field_number(sessions, "out"));
    printf("so far     %" PRId64 " stored, %" PRId64 " ended, %" PRId64
           " quarantined\n",
           json_field_number(totals, "stored"), json_field_number(totals, "ended"),
           json_field_number(totals, "quarantined"));
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
    json_object_set_new(status, "sites", site_list_sorted(all));
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
        json_dumpf(status, stdout, JSON_INDENT(2));
        putchar('\n');
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
        return site_show_command(c->site, c->json, options);
    char error[ERROR_MAX] = "";
    struct control_client *daemon =
        control_client_new(loop, options->control, error, sizeof(error));
    if (daemon == NULL)
        return control_client_refused("petrel status", error);
    control_client_be_brief(daemon);
    json_t *status = status_ask(daemon, c);
    int code = EX_UNAVAILABLE;
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
        struct screen screen;
        bool drawn = screen_begin(&screen);
        int code = status_once(loop, c, options);
        if (drawn)
            screen_end(&screen);
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
