/* Draws the picture of `petrel top`. */
#include "admin/command/top_view.h"

#include "admin/control/format_time.h"
#include "admin/control/json_field.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MINUTE_MS = 60 * 1000,
    SECOND_MS = 1000,
    FINDINGS_SHOWN = 3,
    NAME_WIDTH = 30,
    RATE_MAX = 32
};

/* --- Rates ------------------------------------------------------------------------ */

/* A daemon that was restarted counts from 0. */
static void
top_view_sample(struct top_view *v, int64_t at_ms)
{
    const json_t *totals = json_object_get(v->status, "totals");
    int64_t uptime_s = json_field_number(v->status, "uptime_s");
    struct top_sample now = {at_ms, json_field_number(totals, "stored"),
                             json_field_number(totals, "ended")};
    if (uptime_s < v->uptime_s || now.in < v->last.in || now.out < v->last.out)
        v->count = 0;
    v->uptime_s = uptime_s;
    v->before = v->count > 0 ? v->last : now;
    v->last = now;
    size_t newest = (v->count + TOP_SAMPLES - 1) % TOP_SAMPLES;
    if (v->count == 0 || at_ms - v->samples[newest].at_ms >= SECOND_MS)
        v->samples[v->count++ % TOP_SAMPLES] = now;
}

/* The oldest that is not older than a minute. */
static struct top_sample
top_view_minute(const struct top_view *v)
{
    size_t first = v->count > TOP_SAMPLES ? v->count - TOP_SAMPLES : 0;
    for (size_t i = first; i < v->count; i++)
        if (v->last.at_ms - v->samples[i % TOP_SAMPLES].at_ms <= MINUTE_MS)
            return v->samples[i % TOP_SAMPLES];
    return v->before;
}

static const char *
top_view_rate(int64_t count, int64_t span_ms, char out[RATE_MAX])
{
    if (span_ms <= 0)
        return "-";
    snprintf(out, RATE_MAX, "%.1f", (double)count * SECOND_MS / (double)span_ms);
    return out;
}

static void
top_view_rates(const struct top_view *v, struct buffer *out)
{
    struct top_sample old = top_view_minute(v);
    int64_t now = v->last.at_ms - v->before.at_ms, minute = v->last.at_ms - old.at_ms;
    char words[4][RATE_MAX];
    (void)!buffer_format(out, "a second   in %s (last minute %s), out %s (%s)\n",
                         top_view_rate(v->last.in - v->before.in, now, words[0]),
                         top_view_rate(v->last.in - old.in, minute, words[1]),
                         top_view_rate(v->last.out - v->before.out, now, words[2]),
                         top_view_rate(v->last.out - old.out, minute, words[3]));
}

/* --- Lines ------------------------------------------------------------------------ */

static const char *const top_orders[] = {"mail", "sessions", "name"};

static void
top_view_head(const struct top_view *v, struct buffer *out)
{
    char up[FORMAT_TIME_MAX];
    bool accepting = json_field_is_true(v->status, "accepting");
    (void)!buffer_format(
        out, "petrel %s, up %s; %s%s%s\n", json_field_string(v->status, "version"),
        format_time_span(SECOND_MS * json_field_number(v->status, "uptime_s"), up),
        accepting ? "accepts mail" : "accepts no mail: ",
        accepting ? "" : json_field_string(v->status, "reason"),
        v->paused ? "; paused" : "");
    if (v->trouble != NULL)
        (void)!buffer_format(out, "as it was:  %s\n", v->trouble);
}

static void
top_view_findings(const json_t *findings, struct buffer *out)
{
    size_t index;
    const json_t *f;
    json_array_foreach (findings, index, f) {
        const char *subject = json_field_string(f, "subject");
        if (index == FINDINGS_SHOWN)
            break;
        (void)!buffer_format(out, "%-10s %s%s%s: %s\n",
                             json_field_string(f, "severity"),
                             json_field_string(f, "code"), subject[0] ? " " : "",
                             subject, json_field_string(f, "text"));
    }
    if (json_array_size(findings) > FINDINGS_SHOWN)
        (void)!buffer_format(out, "           and %zu more: see petrel status\n",
                             json_array_size(findings) - FINDINGS_SHOWN);
}

static void
top_view_counts(const json_t *status, struct buffer *out)
{
    const json_t *queue = json_object_get(status, "queue"),
                 *sessions = json_object_get(status, "sessions"),
                 *sites = json_object_get(status, "site_totals");
    (void)!buffer_format(
        out,
        "queue      %" PRId64 " incoming, %" PRId64 " active, %" PRId64
        " deferred, %" PRId64 " hold, %" PRId64 " corrupt, %" PRId64 " defrag\n",
        json_field_number(queue, "incoming"), json_field_number(queue, "active"),
        json_field_number(queue, "deferred"), json_field_number(queue, "hold"),
        json_field_number(queue, "corrupt"), json_field_number(queue, "defrag"));
    (void)!buffer_format(
        out,
        "sessions   %" PRId64 " in%s, %" PRId64 " out (%" PRId64 " busy, %" PRId64
        " idle)\n",
        json_field_number(sessions, "in"),
        json_field_is_true(sessions, "stress") ? " (near the limit)" : "",
        json_field_number(sessions, "out"), json_field_number(sessions, "busy"),
        json_field_number(sessions, "idle"));
    (void)!buffer_format(
        out,
        "sites      %" PRId64 ", %" PRId64 " dead; %" PRId64
        " recipients waiting, %" PRId64 " messages backlogged\n",
        json_field_number(sites, "sites"), json_field_number(sites, "dead"),
        json_field_number(sites, "waiting"), json_field_number(sites, "backlogged"));
}

/* --- Sites ------------------------------------------------------------------------ */

static int64_t
top_view_mail(const json_t *site)
{
    return json_field_number(site, "waiting") + json_field_number(site, "backlogged");
}

static int
top_view_by_name(const void *left, const void *right)
{
    const json_t *const *a = left, *const *b = right;
    return strcmp(json_field_string(*a, "site"), json_field_string(*b, "site"));
}

static int
top_view_by_mail(const void *left, const void *right)
{
    const json_t *const *a = left, *const *b = right;
    int64_t more = top_view_mail(*b) - top_view_mail(*a);
    return more != 0 ? (more > 0 ? 1 : -1) : top_view_by_name(left, right);
}

static int
top_view_by_sessions(const void *left, const void *right)
{
    const json_t *const *a = left, *const *b = right;
    int64_t more =
        json_field_number(*b, "sessions") - json_field_number(*a, "sessions");
    return more != 0 ? (more > 0 ? 1 : -1) : top_view_by_mail(left, right);
}

/* The caller frees the array; its sites are the status's. */
static const json_t **
top_view_sorted(const struct top_view *v, size_t *count)
{
    static int (*const compare[])(const void *, const void *) = {
        top_view_by_mail, top_view_by_sessions, top_view_by_name};
    const json_t *sites = json_object_get(v->status, "sites");
    *count = json_array_size(sites);
    const json_t **list = memory_array(*count + 1, sizeof(*list));
    for (size_t i = 0; i < *count; i++)
        list[i] = json_array_get(sites, i);
    qsort(list, *count, sizeof(*list), compare[v->order]);
    return list;
}

static void
top_view_site(const json_t *site, int64_t now_ms, struct buffer *out)
{
    const char *state = json_field_string(site, "state"),
               *bound = json_field_string(site, "bound");
    int64_t until_ms = json_field_number(site, "bound_until_ms") - now_ms;
    bool alive = strcmp(state, "alive") == 0, bare = strcmp(bound, state) == 0;
    char latency[RATE_MAX], span[FORMAT_TIME_MAX];
    snprintf(latency, sizeof(latency), "%" PRId64 " ms",
             json_field_number(site, "latency_ms"));
    (void)!buffer_format(
        out, "%-*s %7" PRId64 " %6" PRId64 " %4" PRId64 " %4" PRId64 " %8s  %s%s%s",
        NAME_WIDTH, json_field_string(site, "site"), top_view_mail(site),
        json_field_number(site, "window"), json_field_number(site, "sessions"),
        json_field_number(site, "busy"), latency, alive ? "" : state,
        alive || bare ? "" : ", ", bare ? "" : bound);
    if (until_ms > 0)
        (void)!buffer_format(out, ", %s in %s",
                             strcmp(bound, "dead") == 0 ? "tried again" : "next",
                             format_time_span(until_ms, span));
    (void)!buffer_add_byte(out, '\n');
}

static void
top_view_sites(struct top_view *v, size_t rows, int64_t now_ms, struct buffer *out)
{
    size_t count;
    const json_t **list = top_view_sorted(v, &count);
    if (v->scroll >= count)
        v->scroll = count > 0 ? count - 1 : 0;
    (void)!buffer_format(out, "\n%-*s %7s %6s %4s %4s %8s  %s (order: %s)\n",
                         NAME_WIDTH, "site", "mail", "window", "open", "busy",
                         "latency", "bound", top_orders[v->order]);
    for (size_t i = v->scroll; i < count && (rows == 0 || i - v->scroll < rows); i++)
        top_view_site(list[i], now_ms, out);
    free(list);
}

/* ---------------------------------------------------------------------------------- */

void
top_view_take(struct top_view *v, json_t *status, int64_t at_ms)
{
    json_decref(v->status);
    v->status = status;
    v->trouble = NULL;
    top_view_sample(v, at_ms);
}

void
top_view_draw(struct top_view *v, size_t rows, int64_t now_ms, struct buffer *out)
{
    size_t used = 0;
    top_view_head(v, out);
    top_view_findings(json_object_get(v->status, "findings"), out);
    top_view_counts(v->status, out);
    top_view_rates(v, out);
    for (size_t i = 0; i < out->length; i++)
        used += out->at[i] == '\n';
    used += 2; /* the heading of the table, and the empty line before it */
    if (rows == 0 || used < rows)
        top_view_sites(v, rows == 0 ? 0 : rows - used, now_ms, out);
}

void
top_view_end(struct top_view *v)
{
    json_decref(v->status);
    *v = (struct top_view){0};
}
