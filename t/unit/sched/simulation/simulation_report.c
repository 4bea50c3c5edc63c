/* The report of a simulation, from results that were not simulated: words, figures, limits. */
#include "t/simulation/simulation.h"

#include "t/support/tap.h"

enum { SERVERS = 2, SITES = 25 };

static struct fake_server_settings servers[SERVERS] = {{.sessions = 5},
                                                       {.sessions = 3}};
static struct scenario_site provider = {.servers = servers, .server_count = SERVERS};
static struct fake_server_settings open_server[1];
static struct scenario_site unlimited = {.servers = open_server, .server_count = 1};

static void
reports(const struct simulation_result *r, const struct scenario *s, const char *want,
        const char *name)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 16);
    simulation_report(r, s, &out);
    is_text(buffer_text(&out), text_from(want), name);
}

TEST(nothing)
{
    struct simulation_result r = {.finished = true};
    struct scenario s = {0};
    reports(
        &r, &s,
        "finished after 0.000 s, last delivery after 0.000 s\n"
        "messages: 0, delivered 0, failed 0, left 0\n"
        "recipients: delivered 0, failed 0\n"
        "transactions delivered: 0, 0.00/s\n"
        "deferred: 0 recipients, 0 without a session; transactions with 4xx: 0, 0 of "
        "them for the rate\n"
        "peak queue: 0, active 0 with 0 recipients\n"
        "connections: 0, refused 0, timed out 0, lost 0; refused or timed out for 100 "
        "deliveries: 0.00\n"
        "sessions: 0, 0 at a time, transactions in each: 0.0; deaths: 0\n"
        "\n"
        "mail (times in s)    messages     sent   failed       mean     median       "
        "99 %    longest   behind\n"
        "\n"
        "site                 delivered  sessions     limit      used\n",
        "nothing was sent: no division by it");
}

TEST(figures)
{
    static char letters[] = "letters", first[] = "provider", second[] = "open";
    struct simulation_group group = {.name = letters,
                                     .messages = 10,
                                     .delivered = 7,
                                     .failed = 2,
                                     .mean_ms = 1500,
                                     .median_ms = 1250,
                                     .p99_ms = 60000,
                                     .max_ms = 3600001,
                                     .behind = 4};
    struct simulation_site sites[2] = {
        {.name = first, .delivered = 6, .peak_open = 4, .busy_us = 100000000},
        {.name = second,             .delivered = 1,              .peak_open = 1 }
    };
    struct scenario_site *site_at[2] = {&provider, &unlimited};
    struct scenario s = {.site_at = site_at};
    struct simulation_result r = {.end_ms = 3723000,
                                  .last_delivery_ms = 50000,
                                  .messages = 10,
                                  .messages_delivered = 7,
                                  .messages_failed = 2,
                                  .recipients_delivered = 70,
                                  .recipients_failed = 20,
                                  .works = 8,
                                  .deferred = 5,
                                  .suspended = 4,
                                  .tempfails = 3,
                                  .rate_limited = 2,
                                  .peak_queue = 9,
                                  .peak_active = 6,
                                  .peak_recipients = 60,
                                  .connects = 12,
                                  .refused = 1,
                                  .timed_out = 1,
                                  .lost = 3,
                                  .greeted = 4,
                                  .transactions = 10,
                                  .peak_sessions = 5,
                                  .deaths = 2,
                                  .window_events = 1,
                                  .window_mean = 9.5,
                                  .window_deviation = 0.25,
                                  .groups = &group,
                                  .group_count = 1,
                                  .sites = sites,
                                  .site_count = 2};
    reports(
        &r, &s,
        "stopped after 1:02:03, last delivery after 50.000 s\n"
        "messages: 10, delivered 7, failed 2, left 1\n"
        "recipients: delivered 70, failed 20\n"
        "transactions delivered: 8, 0.16/s\n"
        "deferred: 5 recipients, 4 without a session; transactions with 4xx: 3, 2 of "
        "them for the rate\n"
        "peak queue: 9, active 6 with 60 recipients\n"
        "connections: 12, refused 1, timed out 1, lost 3; refused or timed out for 100 "
        "deliveries: 25.00\n"
        "sessions: 4, 5 at a time, transactions in each: 2.5; deaths: 2\n"
        "window after each feedback: mean 9.50, standard deviation 0.25\n"
        "\n"
        "mail (times in s)    messages     sent   failed       mean     median       "
        "99 %    longest   behind\n"
        "letters                    10        7        2      1.500      1.250     "
        "60.000   3600.001        4\n"
        "\n"
        "site                 delivered  sessions     limit      used\n"
        "provider                     6         4         8    25.0 %\n"
        "open                         1         1      none          \n",
        "each figure at its place");
}

TEST(many_sites)
{
    static char name[] = "site";
    struct simulation_site sites[SITES];
    struct scenario_site *site_at[SITES];
    for (size_t i = 0; i < SITES; i++) {
        sites[i] = (struct simulation_site){.name = name};
        site_at[i] = &provider;
    }
    struct scenario s = {.site_at = site_at};
    struct simulation_result r = {.sites = sites, .site_count = SITES};
    FIXTURE(buffer, out, buffer_init, buffer_free, 1 << 16);
    simulation_report(&r, &s, &out);
    size_t lines = 0;
    for (struct text rest = buffer_text(&out), line; text_cut(&rest, '\n', &line);)
        lines += text_starts(line, TEXT("site  "));
    is_number(lines, 1 + 20, "the header and twenty sites are shown");
    ok(text_ends_nocase(buffer_text(&out), TEXT("\nand 5 more\n")));
}
