/* Describes sites: their numbers, their state and their bounds. */
#include "admin/control/site_view.h"

#include "admin/control/json_field.h"
#include "admin/control/listing.h"
#include "admin/control/format_time.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    RATE_MAX = 40,
    SITE_WIDTH = 34,
    SITE_WIDTH_MAX = 60,
    AT_MAX = 3 + FORMAT_TIME_MAX
};

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

static const char *
rate_words(const struct rate *r, char out[RATE_MAX])
{
    static const struct {
        int64_t ms;
        char letter;
    } units[] = {
        {1000,     's'},
        {60000,    'm'},
        {3600000,  'h'},
        {86400000, 'd'}
    };
    out[0] = '\0';
    for (size_t i = 0; i < sizeof(units) / sizeof(*units) && r->amount > 0; i++)
        if (units[i].ms == r->period_ms)
            snprintf(out, RATE_MAX, "%" PRIu32 "/%c", r->amount, units[i].letter);
    if (r->amount > 0 && out[0] == '\0')
        snprintf(out, RATE_MAX, "%" PRIu32 " in %" PRId64 " ms", r->amount,
                 r->period_ms);
    return out;
}

/* As settings write it: 0.017 a second is 1/m. */
static const char *
learnt_words(double per_second, char out[RATE_MAX])
{
    static const struct {
        double seconds;
        char letter;
    } units[] = {
        {1,     's'},
        {60,    'm'},
        {3600,  'h'},
        {86400, 'd'}
    };
    size_t i = 0;
    while (i < 3 && per_second * units[i].seconds < 0.95)
        i++;
    snprintf(out, RATE_MAX, "%.3g/%c", per_second * units[i].seconds, units[i].letter);
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

static void
put_numbers(json_t *view, const struct sched_site *site)
{
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"destinations",            site->destinations                      },
        {"window",                  site->window                            },
        {"limit",                   site->limit                             },
        {"sessions",                site->sessions                          },
        {"busy",                    site->busy                              },
        {"idle",                    site->idle                              },
        {"greeting",                site->greeting                          },
        {"waiting",                 (int64_t)site->waiting                  },
        {"waits_s",                 site->waits_s                           },
        {"backlogged",              (int64_t)site->backlogged               },
        {"ceiling",                 site->ceiling                           },
        {"rate_delay_ms",           site->transport->rate_delay_ms          },
        {"transport_rate_delay_ms", site->transport->transport_rate_delay_ms},
        {"latency_ms",              site->latency_ms                        },
        {"failures",                site->failures                          },
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        json_object_set_new(view, numbers[i].key, json_integer(numbers[i].value));
}

static void
put_lease(json_t *view, const struct sched_site *site)
{
    json_object_set_new(view, "hosts", json_integer(site->hosts));
    json_object_set_new(view, "lease_tokens", json_integer(site->lease_tokens));
    json_object_set_new(view, "shared_tokens", json_integer(site->shared_tokens));
    json_object_set_new(view, "lease_sessions", json_integer(site->lease_sessions));
}

json_t *
site_view_make(const struct sched_site *site)
{
    char rate[RATE_MAX];
    json_t *view = json_object();
    json_object_set_new(view, "site", listing_text(text_from(site->key)));
    json_object_set_new(view, "domains", make_domains(site));
    json_object_set_new(view, "state", json_string(state_of(site)));
    put_numbers(view, site);
    json_object_set_new(view, "rate",
                        json_string(rate_words(&site->transport->rate, rate)));
    json_object_set_new(view, "learnt_rate", json_real(site->rate / 1000.0));
    json_object_set_new(view, "bound", json_string(sched_bound_word(site->bound)));
    put_time(view, "bound_until_ms", site->bound_until_ms);
    if (site->quota > 0) {
        json_object_set_new(view, "quota", json_integer(site->quota));
        json_object_set_new(view, "quota_period", json_string(site->quota_period));
    }
    if (site->hosts > 0)
        put_lease(view, site);
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

/* "at 14:03:20Z (in 12 s)", or "now". */
static const char *
at_time(int64_t ms, int64_t now_ms, char out[AT_MAX])
{
    memcpy(out, "at ", 3);
    format_time_until(ms, now_ms, out + 3);
    return ms > now_ms ? out : out + 3;
}

static enum sched_bound
bound_of(const json_t *view)
{
    const char *word = json_field_string(view, "bound");
    for (int i = 0; i < SCHED_BOUNDS; i++)
        if (strcmp(sched_bound_word((enum sched_bound)i), word) == 0)
            return (enum sched_bound)i;
    return SCHED_BOUNDS;
}

static void
say_next(const json_t *view, int64_t now_ms, struct buffer *out)
{
    char at[AT_MAX];
    if (json_object_get(view, "bound_until_ms"))
        (void)!buffer_format(
            out, "; the next delivery may begin %s",
            at_time(json_field_number(view, "bound_until_ms"), now_ms, at));
    else
        (void)!buffer_add(out,
                          TEXT("; the next delivery begins when this one has ended"));
}

/* Most reasons say themselves which host they are of. */
static bool
names(const char *reason, const char *remote)
{
    const char *port = strrchr(remote, ':');
    size_t length = port ? (size_t)(port - remote) : strlen(remote);
    return memmem(reason, strlen(reason), remote, length) != NULL;
}

static void
say_dead(const json_t *view, int64_t now_ms, struct buffer *out)
{
    char since[FORMAT_TIME_MAX], until[AT_MAX];
    int64_t until_ms = json_field_number(view, "dead_until_ms");
    (void)!buffer_format(
        out, "the site has been dead since %s",
        format_time_since(json_field_number(view, "dead_since_ms"), now_ms, since));
    (void)!buffer_format(out, ", tried again %s: %s", at_time(until_ms, now_ms, until),
                         json_field_string(view, "reason"));
    if (!names(json_field_string(view, "reason"), json_field_string(view, "remote")))
        (void)!buffer_format(out, " (from %s)", json_field_string(view, "remote"));
}

static void
say_delay(const char *name, int64_t ms, struct buffer *out)
{
    char span[FORMAT_TIME_MAX];
    (void)!buffer_format(out, "%s is %s", name, format_time_span(ms, span));
}

static void
say_window(const json_t *view, struct buffer *out)
{
    (void)!buffer_format(out,
                         "its window is full: %" PRId64 " of %" PRId64
                         " sessions are open, %" PRId64 " carry mail",
                         json_field_number(view, "sessions"),
                         json_field_number(view, "window"),
                         json_field_number(view, "busy"));
    if (json_field_number(view, "window") == json_field_number(view, "limit"))
        (void)!buffer_add(out, TEXT("; it is at its concurrency limit"));
}

static void
say_ceiling(const json_t *view, int64_t now_ms, struct buffer *out)
{
    char at[AT_MAX];
    (void)!buffer_format(out, "it refused more than %" PRId64 " sessions (ceiling)",
                         json_field_number(view, "ceiling"));
    if (json_object_get(view, "ceiling_probe_ms"))
        (void)!buffer_format(
            out, "; one more is tried %s",
            at_time(json_field_number(view, "ceiling_probe_ms"), now_ms, at));
}

static void
say_pause(const json_t *view, int64_t now_ms, struct buffer *out)
{
    char at[AT_MAX];
    (void)!buffer_format(
        out, "a connection failed (%" PRId64 " in a row); the next one: %s",
        json_field_number(view, "failures"),
        format_time_until(json_field_number(view, "bound_until_ms"), now_ms, at));
}

/* A session that has no mail, is not idle and has been greeted waits for a reply about mail
 * that it no longer has: the scheduler opens none in its place. */
static void
say_nothing(const json_t *view, struct buffer *out)
{
    int64_t ending = json_field_number(view, "sessions") -
                     json_field_number(view, "busy") - json_field_number(view, "idle") -
                     json_field_number(view, "greeting");
    if (json_field_number(view, "waiting") == 0)
        (void)!buffer_add(out, TEXT("nothing"));
    else if (json_field_number(view, "greeting") > 0)
        (void)!buffer_format(out,
                             "nothing holds it back; connections being made: %" PRId64
                             ", each takes mail after its greeting",
                             json_field_number(view, "greeting"));
    else if (ending > 0)
        (void)!buffer_format(
            out,
            "nothing holds it back; sessions that end another delivery: %" PRId64
            ", each takes mail after the last reply",
            ending);
    else
        (void)!buffer_add(out, TEXT("nothing holds it back; a session takes it next"));
}

/* Ours, or the provider's. */
static void
say_quota(const json_t *view, struct buffer *out)
{
    int64_t quota = json_field_number(view, "quota");
    const char *period = json_field_string(view, "quota_period");
    if (quota > 0)
        (void)!buffer_format(out, "quota of %" PRId64 " %s %s is used up", quota,
                             strcmp(period, "hour") == 0 ? "an" : "a", period);
    else
        (void)!buffer_add(out,
                          TEXT("it has refused mail because the account has reached "
                               "its limit"));
}

/* The limits that several hosts share. */
static void
say_lease(const json_t *view, struct buffer *out)
{
    int64_t shared = json_field_number(view, "shared_tokens");
    int64_t limit = json_field_number(view, "limit");
    (void)!buffer_add(out, TEXT("our part of the group's limit: "));
    if (shared > 0)
        (void)!buffer_format(out, "%" PRId64 " of %" PRId64 " transactions in 5 s, ",
                             json_field_number(view, "lease_tokens"), shared);
    if (limit > 0)
        (void)!buffer_format(out, "%" PRId64 " of %" PRId64 " sessions, ",
                             json_field_number(view, "lease_sessions"), limit);
    (void)!buffer_format(out, "%" PRId64 " hosts", json_field_number(view, "hosts"));
}

static void
say_bound(const json_t *view, int64_t delivery_session_limit, int64_t now_ms,
          struct buffer *out)
{
    char rate[RATE_MAX];
    switch (bound_of(view)) {
    case SCHED_BOUND_NONE:
    case SCHED_BOUNDS:
        say_nothing(view, out);
        return;
    case SCHED_BOUND_DEAD:
        say_dead(view, now_ms, out);
        return;
    case SCHED_BOUND_TOKEN:
        (void)!buffer_format(out, "it lacks a token to log in: %s",
                             json_field_string(view, "reason"));
        return;
    case SCHED_BOUND_QUOTA:
        say_quota(view, out);
        break;
    case SCHED_BOUND_PROBE:
        (void)!buffer_add(out, TEXT("one session tries the site before others do"));
        return;
    case SCHED_BOUND_TRANSPORT_DELAY:
        say_delay("transport_rate_delay",
                  json_field_number(view, "transport_rate_delay_ms"), out);
        break;
    case SCHED_BOUND_RATE_DELAY:
        say_delay("destination_rate_delay", json_field_number(view, "rate_delay_ms"),
                  out);
        break;
    case SCHED_BOUND_RATE:
        (void)!buffer_format(out, "destination_rate is %s",
                             json_field_string(view, "rate"));
        break;
    case SCHED_BOUND_LEARNT_RATE:
        (void)!buffer_format(
            out, "its replies asked us to slow down: %s learnt",
            learnt_words(json_real_value(json_object_get(view, "learnt_rate")), rate));
        break;
    case SCHED_BOUND_WINDOW:
        say_window(view, out);
        return;
    case SCHED_BOUND_CEILING:
        say_ceiling(view, now_ms, out);
        return;
    case SCHED_BOUND_LEASE:
        say_lease(view, out);
        return;
    case SCHED_BOUND_LEASE_RATE:
        say_lease(view, out);
        break;
    case SCHED_BOUND_PROOF:
        (void)!buffer_add(out, TEXT("none of its sessions has proven what the domain "
                                    "demands of TLS (DANE, MTA-STS); one of them ends "
                                    "for a new one"));
        return;
    case SCHED_BOUND_CONGESTED:
        (void)!buffer_add(out, TEXT("a connection waits long for its greeting; no "
                                    "more are made until then"));
        return;
    case SCHED_BOUND_PAUSE:
        say_pause(view, now_ms, out);
        return;
    case SCHED_BOUND_BUDGET:
        (void)!buffer_format(
            out, "delivery_session_limit: all %" PRId64 " sessions are in use",
            delivery_session_limit);
        return;
    }
    say_next(view, now_ms, out);
}

void
site_view_explain(const json_t *view, int64_t delivery_session_limit, int64_t now_ms,
                  struct buffer *out)
{
    say_bound(view, delivery_session_limit, now_ms, out);
    if (json_field_number(view, "waiting") > 1)
        (void)!buffer_format(out, "; %" PRId64 " recipients wait there",
                             json_field_number(view, "waiting"));
}

/* --- As a table ------------------------------------------------------------------- */

static const char *
dash(int64_t value, const char *unit, char out[RATE_MAX])
{
    if (value == 0)
        snprintf(out, RATE_MAX, "-");
    else
        snprintf(out, RATE_MAX, "%" PRId64 "%s", value, unit);
    return out;
}

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

/* "dead until ...: reason", "alive, window", "alive, rate until ..." */
static void
print_state(const json_t *view, int64_t now_ms)
{
    char until[FORMAT_TIME_MAX];
    bool dead = json_object_get(view, "dead_until_ms") != NULL;
    fputs(json_field_string(view, "state"), stdout);
    if (!dead && bound_of(view) != SCHED_BOUND_NONE)
        printf(", %s", json_field_string(view, "bound"));
    if (json_object_get(view, "bound_until_ms") && bound_of(view) != SCHED_BOUND_NONE)
        printf(" until %s", format_time_until(json_field_number(view, "bound_until_ms"),
                                              now_ms, until));
    if (dead || bound_of(view) == SCHED_BOUND_TOKEN)
        printf(": %s", json_field_string(view, "reason"));
    putchar('\n');
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

static void
site_view_print_row(const json_t *view, int width, int64_t now_ms)
{
    char ceiling[RATE_MAX], rate[RATE_MAX], latency[RATE_MAX];
    print_site(json_field_string(view, "site"), width);
    printf("%7" PRId64 " %10" PRId64 " %6" PRId64 " %4" PRId64 " %4" PRId64 " %4" PRId64
           " %7s %8s %8s  ",
           json_field_number(view, "waiting"), json_field_number(view, "backlogged"),
           json_field_number(view, "window"), json_field_number(view, "sessions"),
           json_field_number(view, "busy"), json_field_number(view, "idle"),
           dash(json_field_number(view, "ceiling"), "", ceiling), rate_of(view, rate),
           dash(json_field_number(view, "latency_ms"), " ms", latency));
    print_state(view, now_ms);
}

void
site_view_print_table(const json_t *sites, int64_t now_ms)
{
    size_t index;
    json_t *view;
    int width = SITE_WIDTH;
    json_array_foreach (sites, index, view)
        width = wider(width, json_field_string(view, "site"));
    printf("  %-*s %7s %10s %6s %4s %4s %4s %7s %8s %8s  %s\n", width, "site",
           "waiting", "backlogged", "window", "open", "busy", "idle", "ceiling", "rate",
           "latency", "state, and bound");
    json_array_foreach (sites, index, view)
        site_view_print_row(view, width, now_ms);
}
