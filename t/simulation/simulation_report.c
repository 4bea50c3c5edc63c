/* The report of a simulation: results in words and figures. */
#include "t/simulation/simulation_internal.h"

#include <stdio.h>

enum { SITES_SHOWN_MAX = 20 };

double
simulation_refused_per_100(const struct simulation_result *r)
{
    return r->works ? 100.0 * (double)(r->refused + r->timed_out) / (double)r->works
                    : 0;
}

double
simulation_use(const struct simulation_result *r, size_t site, unsigned sessions)
{
    double span_us = (double)r->last_delivery_ms * 1000.0 * sessions;
    return span_us > 0 ? 100.0 * (double)r->sites[site].busy_us / span_us : 0;
}

static void __attribute__((format(printf, 2, 3)))
simulation_report_say(struct buffer *out, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)!buffer_format_list(out, format, list);
    va_end(list);
}

/* "12.345 s", "1:02:03". */
static void
say_time(struct buffer *out, int64_t ms)
{
    if (ms < 120 * 1000)
        simulation_report_say(out, "%lld.%03lld s", (long long)(ms / 1000),
                              (long long)(ms % 1000));
    else
        simulation_report_say(out, "%lld:%02lld:%02lld", (long long)(ms / 3600000),
                              (long long)(ms / 60000 % 60),
                              (long long)(ms / 1000 % 60));
}

static void
report_mail(const struct simulation_result *r, struct buffer *out)
{
    double seconds = (double)r->last_delivery_ms / 1000;
    simulation_report_say(out, "%s after ", r->finished ? "finished" : "stopped");
    say_time(out, r->end_ms);
    simulation_report_say(out, ", last delivery after ");
    say_time(out, r->last_delivery_ms);
    simulation_report_say(
        out, "\nmessages: %llu, delivered %llu, failed %llu, left %llu\n",
        (unsigned long long)r->messages, (unsigned long long)r->messages_delivered,
        (unsigned long long)r->messages_failed,
        (unsigned long long)(r->messages - r->messages_delivered - r->messages_failed));
    simulation_report_say(out, "recipients: delivered %llu, failed %llu\n",
                          (unsigned long long)r->recipients_delivered,
                          (unsigned long long)r->recipients_failed);
    simulation_report_say(out, "transactions delivered: %llu, %.2f/s\n",
                          (unsigned long long)r->works,
                          seconds > 0 ? (double)r->works / seconds : 0.0);
    simulation_report_say(
        out,
        "deferred: %llu recipients, %llu without a session; transactions with 4xx: "
        "%llu, %llu of them for the rate\n",
        (unsigned long long)r->deferred, (unsigned long long)r->suspended,
        (unsigned long long)r->tempfails, (unsigned long long)r->rate_limited);
    simulation_report_say(out, "peak queue: %zu, active %zu with %zu recipients\n",
                          r->peak_queue, r->peak_active, r->peak_recipients);
}

static void
report_sessions(const struct simulation_result *r, struct buffer *out)
{
    simulation_report_say(
        out,
        "connections: %llu, refused %llu, timed out %llu, lost %llu; refused or timed "
        "out for 100 deliveries: %.2f\n",
        (unsigned long long)r->connects, (unsigned long long)r->refused,
        (unsigned long long)r->timed_out, (unsigned long long)r->lost,
        simulation_refused_per_100(r));
    simulation_report_say(
        out,
        "sessions: %llu, %zu at a time, transactions in each: %.1f; deaths: %llu\n",
        (unsigned long long)r->greeted, r->peak_sessions,
        r->greeted ? (double)r->transactions / (double)r->greeted : 0.0,
        (unsigned long long)r->deaths);
    if (r->window_events > 0)
        simulation_report_say(
            out, "window after each feedback: mean %.2f, standard deviation %.2f\n",
            r->window_mean, r->window_deviation);
}

static void
report_groups(const struct simulation_result *r, struct buffer *out)
{
    simulation_report_say(out, "\n%-20s %8s %8s %8s %10s %10s %10s %10s %8s\n",
                          "mail (times in s)", "messages", "sent", "failed", "mean",
                          "median", "99 %", "longest", "behind");
    for (size_t i = 0; i < r->group_count; i++) {
        const struct simulation_group *g = &r->groups[i];
        simulation_report_say(
            out, "%-20s %8u %8u %8u %10.3f %10.3f %10.3f %10.3f %8u\n", g->name,
            g->messages, g->delivered, g->failed, (double)g->mean_ms / 1000,
            (double)g->median_ms / 1000, (double)g->p99_ms / 1000,
            (double)g->max_ms / 1000, g->behind);
    }
}

/* The sessions of all its servers, 0: no limit. */
static unsigned
site_limit(const struct scenario_site *site)
{
    unsigned sum = 0;
    for (size_t i = 0; i < site->server_count; i++) {
        if (site->servers[i].sessions == 0)
            return 0;
        sum += site->servers[i].sessions;
    }
    return sum;
}

static void
report_sites(const struct simulation_result *r, const struct scenario *scenario,
             struct buffer *out)
{
    simulation_report_say(out, "\n%-20s %9s %9s %9s %9s\n", "site", "delivered",
                          "sessions", "limit", "used");
    for (size_t i = 0; i < r->site_count && i < SITES_SHOWN_MAX; i++) {
        const struct simulation_site *site = &r->sites[i];
        unsigned limit = site_limit(scenario->site_at[i]);
        simulation_report_say(out, "%-20s %9llu %9u ", site->name,
                              (unsigned long long)site->delivered, site->peak_open);
        if (limit > 0)
            simulation_report_say(out, "%9u %7.1f %%\n", limit,
                                  simulation_use(r, i, limit));
        else
            simulation_report_say(out, "%9s %9s\n", "none", "");
    }
    if (r->site_count > SITES_SHOWN_MAX)
        simulation_report_say(out, "and %zu more\n", r->site_count - SITES_SHOWN_MAX);
}

void
simulation_report(const struct simulation_result *r, const struct scenario *scenario,
                  struct buffer *out)
{
    report_mail(r, out);
    report_sessions(r, out);
    report_groups(r, out);
    report_sites(r, scenario, out);
}
