/* Describes sites: their numbers, their state and their bounds. */
#include "admin/view/site_view.h"

#include "admin/view/control_client.h"
#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/view/members.h"
#include "admin/view/words.h"
#include "admin/settings/options.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "sched/sched.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

enum { RATE_MAX = 40, SITE_WIDTH = 34, SITE_WIDTH_MAX = 60, OPTIONS_MAX = 1000 };

/* --- Output ----------------------------------------------------------------------- */

static void
put_time(json_t *view, const char *key, int64_t ms)
{
    if (ms > 0 && ms < INT64_MAX)
        json_object_set_new(view, key, json_integer(ms));
}

static const char *
state_of(const struct sched_site *site)
{
    if (site->dead_until_ms > 0)
        return "dead";
    return site->probing ? "probing" : "alive";
}

/* As settings write rates. */
static const struct rate_unit {
    int64_t ms;
    char letter;
} rate_units[] = {
    {1000,     's'},
    {60000,    'm'},
    {3600000,  'h'},
    {86400000, 'd'}
};
enum { RATE_UNITS = sizeof(rate_units) / sizeof(rate_units[0]) };

static const char *
rate_words(const struct rate *r, char out[RATE_MAX])
{
    out[0] = '\0';
    if (r->amount > 0)
        snprintf(out, RATE_MAX, "%" PRIu32 " in %" PRId64 " ms", r->amount,
                 r->period_ms);
    for (size_t i = 0; i < RATE_UNITS && r->amount > 0; i++)
        if (rate_units[i].ms == r->period_ms)
            snprintf(out, RATE_MAX, "%" PRIu32 "/%c", r->amount, rate_units[i].letter);
    return out;
}

/* 0.017 a second is 1/m. */
static const char *
learnt_words(double per_second, char out[RATE_MAX])
{
    size_t i = 0;
    while (i + 1 < RATE_UNITS && per_second * (double)rate_units[i].ms < 950)
        i++;
    snprintf(out, RATE_MAX, "%.3g/%c", per_second * (double)rate_units[i].ms / 1000,
             rate_units[i].letter);
    return out;
}

static json_t *
make_domains(const struct sched_site *site)
{
    json_t *domains = json_array();
    for (int i = 0; i < SCHED_MEMBERS_MAX && site->members[i]; i++)
        json_array_append_new(domains, listing_text(text_from(site->members[i])));
    return domains;
}

#define NUMBER(member) MEMBER(struct sched_site, member, #member)
#define DELAY(member)  MEMBER(struct transport_params, member, #member)
static const struct member site_numbers[] = {
    NUMBER(destinations), NUMBER(window),     NUMBER(limit),    NUMBER(sessions),
    NUMBER(busy),         NUMBER(idle),       NUMBER(greeting), NUMBER(waiting),
    NUMBER(waits_s),      NUMBER(backlogged), NUMBER(ceiling),
};
static const struct member transport_numbers[] = {DELAY(rate_delay_ms),
                                                  DELAY(transport_rate_delay_ms)};
static const struct member site_state[] = {NUMBER(latency_ms), NUMBER(failures)};
static const struct member site_quota[] = {NUMBER(quota), NUMBER(quota_period)};
static const struct member site_lease[] = {
    NUMBER(hosts), NUMBER(lease_tokens), NUMBER(shared_tokens), NUMBER(lease_sessions)};

/* Options of routes that neither the name of the site has nor another member. */
#define OPTION(name, member) MEMBER(struct target, transport.member, name)
#define CHOICE(name, member) MEMBER(struct target, member, name)
static const struct member site_options[] = {
    OPTION("concurrency", concurrency_limit),
    OPTION("initial", initial_concurrency),
    OPTION("recipients", recipient_limit),
    OPTION("cohort", failed_cohort_limit),
    OPTION("quota/s", quota.amounts[QUOTA_SECOND]),
    OPTION("quota/m", quota.amounts[QUOTA_MINUTE]),
    OPTION("quota/h", quota.amounts[QUOTA_HOUR]),
    OPTION("quota/d", quota.amounts[QUOTA_DAY]),
    OPTION("verp", verp),
    OPTION("adaptive", adaptive),
    OPTION("reuse", reuse_limit),
    OPTION("minimal_backoff_ms", minimal_backoff_ms),
    OPTION("maximal_backoff_ms", maximal_backoff_ms),
    OPTION("lifetime_ms", lifetime_ms),
    OPTION("rate_delay_ms", rate_delay_ms),
    CHOICE("no_dane", no_dane),
    CHOICE("no_sts", no_sts),
    CHOICE("defragment", defragment),
};

/* "rate=1/s recipients=10": those that are not the defaults. */
static void
put_options(json_t *view, const struct target *target)
{
    char rate[RATE_MAX];
    struct target usual = {.kind = target->kind};
    struct buffer words;
    buffer_init(&words, OPTIONS_MAX);
    transport_params_default(&usual.transport);
    if (rate_words(&target->transport.rate, rate)[0] != '\0')
        (void)!buffer_format(&words, " rate=%s", rate);
    for (size_t i = 0; i < sizeof(site_options) / sizeof(*site_options); i++) {
        const struct member *m = &site_options[i];
        int64_t number = members_number(m, target);
        if (number != members_number(m, &usual))
            (void)!buffer_format(&words, " %s=%" PRId64, m->name, number);
    }
    if (words.length > 0)
        json_object_set_new(view, "options",
                            listing_text(text_after(buffer_text(&words), 1)));
    buffer_free(&words);
}

json_t *
site_view_make(const struct sched_site *site)
{
    char rate[RATE_MAX];
    json_t *view = json_object();
    json_object_set_new(view, "site", listing_text(text_from(site->key)));
    json_object_set_new(view, "domains", make_domains(site));
    json_object_set_new(view, "state", json_string(state_of(site)));
    MEMBERS_PUT(view, site_numbers, site);
    MEMBERS_PUT(view, transport_numbers, site->transport);
    MEMBERS_PUT(view, site_state, site);
    json_object_set_new(view, "rate",
                        json_string(rate_words(&site->transport->rate, rate)));
    if (site->target != NULL)
        put_options(view, site->target);
    json_object_set_new(view, "learnt_rate", json_real(site->rate / 1000.0));
    json_object_set_new(view, "bound", json_string(sched_bound_word(site->bound)));
    put_time(view, "bound_until_ms", site->bound_until_ms);
    if (site->quota > 0)
        MEMBERS_PUT(view, site_quota, site);
    if (site->hosts > 0)
        MEMBERS_PUT(view, site_lease, site);
    put_time(view, "dead_since_ms", site->dead_since_ms);
    put_time(view, "dead_until_ms", site->dead_until_ms);
    if (site->ceiling > 0)
        put_time(view, "ceiling_probe_ms", site->ceiling_probe_ms);
    if (site->reason) {
        json_object_set_new(view, "reason",
                            listing_text(text_from(site->reason->text)));
        json_object_set_new(view, "remote",
                            listing_text(text_from(site->reason->remote)));
    }
    return view;
}

/* --- In words --------------------------------------------------------------------- */

static enum sched_bound
bound_of(const json_t *view)
{
    const char *word = json_field_string(view, "bound");
    for (int i = 0; i < SCHED_BOUNDS; i++)
        if (strcmp(sched_bound_word((enum sched_bound)i), word) == 0)
            return (enum sched_bound)i;
    return SCHED_BOUND_NONE;
}

#define LEASE_WORDS                                                                    \
    "our part of the group's limit: "                                                  \
    "[shared_tokens>0:{#lease_tokens} of {#shared_tokens} transactions in 5 s, ]"      \
    "[limit>0:{#lease_sessions} of {#limit} sessions, ]{#hosts} hosts"
#define NEXT_WORDS                                                                     \
    "[?bound_until_ms:; the next delivery may begin {bound_until_ms@at}"               \
    "|; the next delivery begins when this one has ended]"
/* A session that has no mail, is not idle and has been greeted waits for a reply about mail
 * that it no longer has: the scheduler opens none in its place. */
#define ENDING "sessions-busy-idle-greeting"

static const char *const bound_words[SCHED_BOUNDS] = {
    [SCHED_BOUND_NONE] =
        "nothing[waiting>0: holds it back; [greeting>0:"
        "connections being made: {#greeting}, each takes mail after its greeting"
        "|[" ENDING ">0:sessions that end another delivery: {#" ENDING "}, each takes "
        "mail after the last reply|a session takes it next]]]",
    [SCHED_BOUND_DEAD] = "the site has been dead since {dead_since_ms@since}, tried "
                         "again {dead_until_ms@at}: {reason}",
    [SCHED_BOUND_TOKEN] = "it lacks a token to log in: {reason}",
    /* Ours, or the provider's. */
    [SCHED_BOUND_QUOTA] =
        "[quota>0:quota of {#quota} [quota_period=hour:an|a] {quota_period} is used up"
        "|it has refused mail because the account has reached its limit]" NEXT_WORDS,
    [SCHED_BOUND_PROBE] = "one session tries the site before others do",
    [SCHED_BOUND_TRANSPORT_DELAY] =
        "transport_rate_delay is {transport_rate_delay_ms@span}" NEXT_WORDS,
    [SCHED_BOUND_RATE_DELAY] =
        "destination_rate_delay is {rate_delay_ms@span}" NEXT_WORDS,
    [SCHED_BOUND_RATE] = "destination_rate is {rate}" NEXT_WORDS,
    [SCHED_BOUND_LEARNT_RATE] = NEXT_WORDS, /* behind the rate */
    [SCHED_BOUND_WINDOW] =
        "its window is full: {#sessions} of {#window} sessions are open, {#busy} carry "
        "mail[window>limit:|[limit>window:|; it is at its concurrency limit]]",
    [SCHED_BOUND_CEILING] =
        "it refused more than {#ceiling} sessions (ceiling)"
        "[?ceiling_probe_ms:; one more is tried {ceiling_probe_ms@at}]",
    [SCHED_BOUND_LEASE] = LEASE_WORDS,
    [SCHED_BOUND_LEASE_RATE] = LEASE_WORDS NEXT_WORDS,
    [SCHED_BOUND_PROOF] = "none of its sessions has proven what the domain demands of "
                          "TLS (DANE, MTA-STS); one of them ends for a new one",
    [SCHED_BOUND_CONGESTED] = "a connection is still waiting for its greeting: no "
                              "other is opened before it comes",
    [SCHED_BOUND_PAUSE] = "a connection failed ({#failures} in a row); the next one: "
                          "{bound_until_ms@until}",
    [SCHED_BOUND_BUDGET] = "delivery_session_limit: ",
};

/* Most reasons say themselves which host they are of. */
static bool
names(const char *reason, const char *remote)
{
    const char *port = strrchr(remote, ':');
    size_t length = port ? (size_t)(port - remote) : strlen(remote);
    return memmem(reason, strlen(reason), remote, length) != NULL;
}

void
site_view_explain(const json_t *view, int64_t delivery_session_limit, int64_t now_ms,
                  struct buffer *out)
{
    char rate[RATE_MAX];
    const char *remote = json_field_string(view, "remote");
    enum sched_bound bound = bound_of(view);
    if (bound == SCHED_BOUND_LEARNT_RATE)
        (void)!buffer_format(
            out, "its replies asked us to slow down: %s learnt",
            learnt_words(json_real_value(json_object_get(view, "learnt_rate")), rate));
    words_say(out, bound_words[bound], view, now_ms);
    if (bound == SCHED_BOUND_DEAD && !names(json_field_string(view, "reason"), remote))
        (void)!buffer_format(out, " (from %s)", remote);
    if (bound == SCHED_BOUND_BUDGET)
        (void)!buffer_format(out, "all %" PRId64 " sessions are in use",
                             delivery_session_limit);
    words_say(out, "[waiting>1:; {#waiting} recipients wait there]", view, now_ms);
}

/* --- As a table ------------------------------------------------------------------- */

static const char *
rate_of(const json_t *view, char out[RATE_MAX])
{
    char words[RATE_MAX];
    double learnt = json_real_value(json_object_get(view, "learnt_rate"));
    const char *configured = json_field_string(view, "rate");
    if (learnt > 0)
        snprintf(out, RATE_MAX, "%.30s*", learnt_words(learnt, words));
    else
        snprintf(out, RATE_MAX, "%.30s", configured[0] ? configured : "-");
    return out;
}

static int
wider(int width, const char *site)
{
    size_t length = strlen(site);
    return length > (size_t)width && length <= SITE_WIDTH_MAX ? (int)length : width;
}

/* A name that is too long even for a wide column stands on a line of its own. */
static void
print_site(const char *site, int width)
{
    bool fits = strlen(site) <= (size_t)width;
    if (!fits)
        printf("  %s\n", site);
    printf("  %-*s ", width, fits ? site : "");
}

/* "dead until ...: reason", "alive, window", "alive, rate until ..." */
#define STATE_WORDS                                                                    \
    "{state}[bound=nothing:|[?dead_until_ms:|, {bound}]"                               \
    "[?bound_until_ms: until {bound_until_ms@until}]]"                                 \
    "[?dead_until_ms:: {reason}|[bound=token:: {reason}]]\n"

static void
site_view_print_row(const json_t *view, int width, int64_t now_ms)
{
    char rate[RATE_MAX];
    print_site(json_field_string(view, "label"), width);
    words_print("{#waiting%7} {#backlogged%10} {#window%6} {#sessions%4} {#busy%4} "
                "{#idle%4} {ceiling@dash%7} ",
                view, now_ms);
    printf("%8s ", rate_of(view, rate));
    words_print("[latency_ms>0:{#latency_ms%5} ms|       -]  " STATE_WORDS, view,
                now_ms);
}

/* Sites of one name have different routes: their options are shown, too. */
static void
label_sites(const json_t *sites)
{
    size_t index;
    json_t *view, *names = json_object();
    json_array_foreach (sites, index, view) {
        const char *name = json_field_string(view, "site");
        json_object_set_new(names, name,
                            json_boolean(json_object_get(names, name) != NULL));
    }
    json_array_foreach (sites, index, view) {
        const char *name = json_field_string(view, "site"),
                   *options = json_field_string(view, "options");
        json_object_set_new(
            view, "label",
            json_is_true(json_object_get(names, name))
                ? json_sprintf("%s (%s)", name, options[0] ? options : "no options")
                : json_string(name));
    }
    json_decref(names);
}

void
site_view_print_table(const json_t *sites, int64_t now_ms)
{
    size_t index;
    json_t *view;
    int width = SITE_WIDTH;
    label_sites(sites);
    json_array_foreach (sites, index, view)
        width = wider(width, json_field_string(view, "label"));
    printf("  %-*s %7s %10s %6s %4s %4s %4s %7s %8s %8s  %s\n", width, "site",
           "waiting", "backlogged", "window", "open", "busy", "idle", "ceiling", "rate",
           "latency", "state, and bound");
    json_array_foreach (sites, index, view)
        site_view_print_row(view, width, now_ms);
}

struct row {
    uint64_t weight;
    size_t number; /* in the order of visits */
};

/* Most mail first; equals as they came. */
static int
site_view_compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* --- The top ---------------------------------------------------------------------- */

struct top_site {
    struct row row;
    struct site *site;
};

struct top {
    const char *name;       /* only sites of that name, quiet ones, too; NULL: all */
    struct top_site *sites; /* most mail first */
    size_t count, limit, visited;
    struct site_view_totals *totals;
};

static bool
is_quiet(const struct sched_glance *site)
{
    return site->waiting == 0 && site->backlogged == 0 && site->sessions == 0 &&
           !site->fails;
}

/* Insertion among a few: sorting all sites would take longer than a turn may. */
static void
weigh(void *context, const struct sched_glance *site)
{
    struct top *t = context;
    struct top_site it = {
        {site->waiting + site->backlogged, t->visited++},
        site->site
    };
    t->totals->sites++;
    t->totals->waiting += site->waiting;
    t->totals->backlogged += site->backlogged;
    t->totals->busy += (uint64_t)site->busy;
    bool is_asked = t->name ? strcasecmp(site->key, t->name) == 0 : !is_quiet(site);
    if (!is_asked || t->limit == 0)
        return;
    size_t at = t->count;
    while (at > 0 && site_view_compare(&it.row, &t->sites[at - 1].row) < 0)
        at--;
    if (at == t->limit)
        return;
    if (t->count < t->limit)
        t->count++;
    memmove(&t->sites[at + 1], &t->sites[at], (t->count - at - 1) * sizeof(*t->sites));
    t->sites[at] = it;
}

void
site_view_put(void *array, const struct sched_site *site)
{
    json_array_append_new(array, site_view_make(site));
}

static json_t *
top_list(const struct sched *sched, struct top *t)
{
    json_t *list = json_array();
    t->sites = memory_array(t->limit + 1, sizeof(*t->sites));
    *t->totals = (struct site_view_totals){0};
    sched_glance(sched, weigh, t);
    for (size_t i = 0; i < t->count; i++)
        sched_look(sched, t->sites[i].site, site_view_put, list);
    free(t->sites);
    return list;
}

json_t *
site_view_top(const struct sched *sched, size_t limit, struct site_view_totals *totals)
{
    struct top t = {.limit = limit, .totals = totals};
    return top_list(sched, &t);
}

json_t *
site_view_find(const struct sched *sched, const char *name)
{
    struct site_view_totals totals;
    struct top t = {.name = name, .limit = SITE_VIEW_NAMESAKES, .totals = &totals};
    return top_list(sched, &t);
}

/* --- All -------------------------------------------------------------------------- */

struct page {
    const struct sched *sched;
    size_t from, count, visited;
    json_t *list;
};

static void
put_in_page(void *context, const struct sched_glance *site)
{
    struct page *p = context;
    size_t number = p->visited++;
    if (number >= p->from && number - p->from < p->count)
        sched_look(p->sched, site->site, site_view_put, p->list);
}

json_t *
site_view_page(const struct sched *sched, size_t from, size_t count)
{
    struct page p = {
        .sched = sched, .from = from, .count = count, .list = json_array()};
    sched_glance(sched, put_in_page, &p);
    assert(json_array_size(p.list) <= count);
    return p.list;
}

static int
site_view_compare_mail(const json_t *a, const json_t *b)
{
    int64_t left = json_field_number(a, "waiting") + json_field_number(a, "backlogged"),
            right =
                json_field_number(b, "waiting") + json_field_number(b, "backlogged");
    return (left < right) - (left > right);
}

json_t *
site_view_sorted(const json_t *sites)
{
    return json_field_sort(sites, site_view_compare_mail);
}

/* --- The command ------------------------------------------------------------------ */

static void
site_view_print_one(const json_t *answer, int64_t now_ms)
{
    json_t *sites = json_object_get(answer, "sites"),
           *failed = json_object_get(answer, "failed");
    if (json_array_size(sites) > 0)
        site_view_print_table(sites, now_ms);
    words_print(json_is_object(failed)
                    ? "last failed conversation: {begun_ms@local}, with {relay}\n"
                      "[cut:           ...\n]"
                    : "no conversation with it has failed since startup\n",
                failed, now_ms);
    words_print_all("{#at_ms%7} ms [from=we:>|[from=they:<|-]] {text}\n",
                    json_object_get(failed, "lines"), now_ms);
}

static int
site_view_answer(json_t *answer, const char *name, bool json, int64_t now_ms)
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
    if (json)
        json_field_print(answer);
    else
        site_view_print_one(answer, now_ms);
    return fflush(stdout) != 0 ? EX_IOERR : 0;
}

int
site_view_command(const char *name, bool json, const struct options *options)
{
    int code = EX_UNAVAILABLE;
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_reach(loop, options->control, "petrel status", &code);
    json_t *question = json_pack("{s:s,s:s}", "command", "site", "name", name);
    json_t *answer = NULL;
    if (daemon != NULL && question != NULL) {
        control_client_be_brief(daemon);
        answer = control_client_question(daemon, question);
        question = NULL;
    }
    if (answer != NULL)
        code = site_view_answer(answer, name, json, loop_now_ms(loop));
    else if (daemon != NULL)
        fprintf(stderr, "petrel status: %s\n", control_client_trouble(daemon));
    json_decref(question);
    json_decref(answer);
    control_client_free(&daemon);
    loop_free(&loop);
    return code;
}
