/* Tells how the daemon is: its part, and the command that asks it. */
#include "admin/status.h"

#include "admin/ask.h"
#include "base/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

enum { ERROR_MAX = 512, WORDS_MAX = 64 };

/* --- What is told ----------------------------------------------------------------- */

static json_t *
number(uint64_t value)
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
    return json_pack("{s:o,s:o,s:o,s:o,s:b,s:o}", "segments", number(h->segments),
                     "free_segments", number(h->free_segments), "messages",
                     number(h->young), "batches", number(h->batches), "full",
                     h->journal_full, "damages", number(h->damages));
}

static json_t *
make_queue(struct manager *m, const struct sched_counts *counts)
{
    struct queue_apart apart = queue_count_apart(manager_queue(m));
    return json_pack("{s:o,s:o,s:o,s:o,s:o}", "incoming", number(counts->incoming),
                     "active", number(counts->active), "deferred",
                     number(counts->deferred), "hold", number(apart.held), "corrupt",
                     number(apart.parked));
}

json_t *
status_make(struct manager *m, int64_t uptime_ms, size_t sessions_in)
{
    struct queue_health h = queue_health(manager_queue(m));
    struct sched_counts counts = sched_count(manager_sched(m));
    json_t *sessions = json_pack("{s:o,s:o}", "in", number(sessions_in), "out",
                                 number(counts.sessions));
    json_t *totals = json_pack("{s:o,s:o,s:o}", "stored", number(h.stored), "ended",
                               number(h.retired), "parked", number(h.parked));
    return json_pack("{s:b,s:s,s:I,s:b,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "ok", true,
                     "version", PETREL_VERSION, "uptime_s",
                     (json_int_t)(uptime_ms / 1000), "accepting", h.accepting, "reason",
                     h.reason, "syncs", number(h.syncs), "spool", make_spool(&h),
                     "journal", make_journal(&h), "queue", make_queue(m, &counts),
                     "sessions", sessions, "totals", totals);
}

/* --- What is shown ---------------------------------------------------------------- */

static int64_t
integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *
string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static bool
is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* As people say it: "12 s", "3 h 12 min". */
static const char *
duration(int64_t seconds, char out[WORDS_MAX])
{
    int64_t minutes = seconds / 60, hours = minutes / 60;
    if (seconds < 60)
        snprintf(out, WORDS_MAX, "%" PRId64 " s", seconds);
    else if (minutes < 60)
        snprintf(out, WORDS_MAX, "%" PRId64 " min", minutes);
    else if (hours < 24)
        snprintf(out, WORDS_MAX, "%" PRId64 " h %" PRId64 " min", hours, minutes % 60);
    else
        snprintf(out, WORDS_MAX, "%" PRId64 " d %" PRId64 " h", hours / 24, hours % 24);
    return out;
}

static const char *
size(int64_t bytes, char out[WORDS_MAX])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(*units)) {
        value /= 1000;
        unit++;
    }
    snprintf(out, WORDS_MAX, "%.1f %s", value, units[unit]);
    return out;
}

static void
print_space(const json_t *spool)
{
    char left[WORDS_MAX], reserve[WORDS_MAX];
    if (integer(spool, "bytes_free") >= 0)
        printf("space      %s and %" PRId64 " files free",
               size(integer(spool, "bytes_free"), left), integer(spool, "inodes_free"));
    else
        printf("space      unknown");
    printf("; the last %s and %" PRId64 " files are kept for mail under way\n",
           size(integer(spool, "bytes_reserve"), reserve),
           integer(spool, "inodes_reserve"));
}

static void
print_spool(const json_t *status)
{
    const json_t *spool = json_object_get(status, "spool");
    bool aio = strcmp(string(spool, "sync"), "aio") == 0;
    printf("spool      %s\n", string(spool, "path"));
    print_space(spool);
    printf("syncs      %" PRId64 ", %s\n", integer(status, "syncs"),
           aio ? "in the background (aio)" : "blocking: all sessions wait for each");
}

static void
print_journal(const json_t *journal)
{
    if (integer(journal, "segments") == 0) {
        printf("journal    off\n");
        return;
    }
    printf("journal    %" PRId64 " messages; %" PRId64 " of %" PRId64
           " segments free; %" PRId64 " batches%s",
           integer(journal, "messages"), integer(journal, "free_segments"),
           integer(journal, "segments"), integer(journal, "batches"),
           is_true(journal, "full") ? "; full: new mail waits for the spool" : "");
    if (integer(journal, "damages") > 0)
        printf("; damaged pieces found at the start, kept in corrupt/: %" PRId64,
               integer(journal, "damages"));
    putchar('\n');
}

void
status_print(const json_t *status)
{
    const json_t *queue = json_object_get(status, "queue");
    const json_t *sessions = json_object_get(status, "sessions");
    const json_t *totals = json_object_get(status, "totals");
    bool accepting = is_true(status, "accepting");
    char words[WORDS_MAX];
    printf("petrel     %s, up %s\n", string(status, "version"),
           duration(integer(status, "uptime_s"), words));
    printf("accepting  %s%s\n", accepting ? "yes" : "no: ", string(status, "reason"));
    print_spool(status);
    print_journal(json_object_get(status, "journal"));
    printf("queue      %" PRId64 " incoming, %" PRId64 " active, %" PRId64
           " deferred, %" PRId64 " hold, %" PRId64 " corrupt\n",
           integer(queue, "incoming"), integer(queue, "active"),
           integer(queue, "deferred"), integer(queue, "hold"),
           integer(queue, "corrupt"));
    printf("sessions   %" PRId64 " in, %" PRId64 " out\n", integer(sessions, "in"),
           integer(sessions, "out"));
    printf("so far     %" PRId64 " stored, %" PRId64 " ended, %" PRId64 " parked\n",
           integer(totals, "stored"), integer(totals, "ended"),
           integer(totals, "parked"));
}

/* --- The command ------------------------------------------------------------------ */

static int
show(json_t *status, bool json)
{
    if (!is_true(status, "ok")) {
        fprintf(stderr, "petrel status: the daemon does not tell: %s\n",
                string(status, "error"));
        return EX_UNAVAILABLE;
    }
    json_object_del(status, "ok");
    if (!json) {
        status_print(status);
    } else {
        json_dumpf(status, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    return fflush(stdout) == 0 ? 0 : EX_IOERR;
}

int
command_status(int count, char **arguments, const struct options *options)
{
    bool json = count == 1 && strcmp(arguments[0], "--json") == 0;
    if (count > 0 && !json) {
        fputs("usage: petrel status [--json]\n", stderr);
        return EX_USAGE;
    }
    char error[ERROR_MAX] = "no answer";
    struct loop *loop = loop_new();
    struct ask *daemon = ask_new(loop, options->control, error, sizeof(error));
    json_t *status = NULL;
    int code = EX_TEMPFAIL;
    if (daemon)
        status = ask_question(daemon, json_pack("{s:s}", "command", "status"));
    if (status)
        code = show(status, json);
    else
        fprintf(stderr, "petrel status: no daemon answers: %s\n", error);
    json_decref(status);
    ask_free(&daemon);
    loop_free(&loop);
    return code;
}
