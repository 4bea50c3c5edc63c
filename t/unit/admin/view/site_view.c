/* Sites in words, in a table, and in lists. */
#include "admin/view/site_view.h"

#include "base/format_time.h"
#include "t/support/printed.h"
#include "t/support/sched_world.h"

static const int64_t now = INT64_C(1700000000000); /* 22:13:20Z */

/* --- Words ------------------------------------------------------------------------ */

TEST(words)
{
    char out[FORMAT_TIME_MAX];
    static const struct {
        int64_t ms;
        const char *words;
    } spans[] = {
        {-5,                      "0 s"        },
        {0,                       "0 s"        },
        {1,                       "1 ms"       },
        {999,                     "999 ms"     },
        {1000,                    "1 s"        },
        {59999,                   "59 s"       },
        {60000,                   "1 min"      },
        {3600000,                 "1 h 0 min"  },
        {86399999,                "23 h 59 min"},
        {90000000,                "1 d 1 h"    },
        {INT64_C(86400000) * 400, "400 d 0 h"  },
    };
    for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++)
        is_string(format_time_span(spans[i].ms, out), spans[i].words, "a span");
    is_string(format_time_until(now, now, out), "now", "it has come");
    is_string(format_time_until(now - 1, now, out), "now", "it was");
    is_string(format_time_until(now + 12000, now, out), "22:13:32Z (in 12 s)", "soon");
    is_string(format_time_until(now + 86400000, now, out),
              "2023-11-15 22:13:20Z (in 1 d 0 h)", "with the date");
    is_string(format_time_since(now - 60000, now, out), "22:12:20Z (1 min ago)",
              "it was");
    is_string(format_time_since(now - 86400000, now, out),
              "2023-11-13 22:13:20Z (1 d 0 h ago)", "long ago");
    ok(strlen(format_time_until(INT64_MAX, now, out)) < FORMAT_TIME_MAX);
    ok(strlen(format_time_since(INT64_MIN / 2, now, out)) < FORMAT_TIME_MAX);
}

/* --- Sentences -------------------------------------------------------------------- */

static const char *
sentence(const struct sched_site *site)
{
    static char text[2000];
    struct buffer out;
    json_t *hop = site_view_make(site);
    buffer_init(&out, sizeof(text));
    site_view_explain(hop, 500, now, &out);
    text_copy(text, sizeof(text), buffer_text(&out));
    buffer_free(&out);
    json_decref(hop);
    return text;
}

/* A site with everything to report. */
struct case_site {
    struct transport_params transport;
    struct outcome refused;
    struct sched_site site;
};

static struct sched_site *
case_begin(struct case_site *c)
{
    struct transport_params *t = &c->transport;
    transport_params_default(t);
    t->rate = (struct rate){.amount = 10, .burst = 1, .period_ms = 1000};
    t->rate_delay_ms = 5000;
    t->transport_rate_delay_ms = 2000;
    c->refused = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1",
                              "connection \x1b[31mrefused");
    snprintf(c->refused.remote, sizeof(c->refused.remote), "mx.test[192.0.2.1]:25");
    c->site = (struct sched_site){.key = "mx:one.test",
                                  .transport = t,
                                  .window = 5,
                                  .limit = 20,
                                  .sessions = 5,
                                  .busy = 3,
                                  .waiting = 120,
                                  .ceiling = 5,
                                  .ceiling_probe_ms = now + 10000,
                                  .rate = 9500,
                                  .failures = 2,
                                  .hosts = 10,
                                  .lease_tokens = 8,
                                  .shared_tokens = 83,
                                  .lease_sessions = 2,
                                  .bound_until_ms = now + 3000};
    return &c->site;
}

TEST(sentences)
{
    struct case_site c;
    struct sched_site *site = case_begin(&c);
    static const struct {
        enum sched_bound bound;
        const char *sentence;
    } cases[] = {
        {SCHED_BOUND_PROBE,           "one session tries the site before others do"                         },
        {SCHED_BOUND_QUOTA, "it has refused mail because the account has reached its limit; the next "
                            "delivery may begin at 22:13:23Z (in 3 s)"},
        {SCHED_BOUND_TRANSPORT_DELAY, "transport_rate_delay is 2 s; the next delivery "
                                      "may begin at 22:13:23Z (in 3 s)"},
        {SCHED_BOUND_RATE_DELAY,      "destination_rate_delay is 5 s; the next delivery "
                                 "may begin at 22:13:23Z (in 3 s)"          },
        {SCHED_BOUND_RATE,            "destination_rate is 10/s; the next delivery may "
                           "begin at 22:13:23Z (in 3 s)"                          },
        {SCHED_BOUND_LEARNT_RATE,
         "its replies asked us to slow down: 9.5/s learnt; the next "
         "delivery may begin at 22:13:23Z (in 3 s)"                                                         },
        {SCHED_BOUND_WINDOW,          "its window is full: 5 of 5 sessions are open, 3 "
                             "carry mail"                                       },
        {SCHED_BOUND_CEILING,         "it refused more than 5 sessions (ceiling); one "
                              "more is tried at 22:13:30Z (in 10 s)"           },
        {SCHED_BOUND_LEASE,           "our part of the group's limit: 8 of 83 transactions in 5 s, 2 of 20 sessions, "
                            "10 hosts"},
        {SCHED_BOUND_LEASE_RATE,      "our part of the group's limit: 8 of 83 transactions in 5 s, 2 of 20 sessions, "
                                 "10 hosts; the next delivery may begin at 22:13:23Z (in 3 s)"},
        {SCHED_BOUND_PROOF,           "none of its sessions has proven what the domain demands of TLS (DANE, MTA-STS); "
                            "one of them ends for a new one"},
        {SCHED_BOUND_CONGESTED,       "a connection is still waiting for its greeting: no other is opened before it comes"                        },
        {SCHED_BOUND_PAUSE,           "a connection failed (2 in a row); the next one: "
                            "22:13:23Z (in 3 s)"                                 },
        {SCHED_BOUND_BUDGET,          "delivery_session_limit: all 500 sessions are in use"                 },
        {SCHED_BOUND_NONE,            "nothing holds it back; sessions that end another delivery: 2, each takes "
                           "mail after the last reply"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char want[400];
        site->bound = cases[i].bound;
        snprintf(want, sizeof(want), "%s; 120 recipients wait there",
                 cases[i].sentence);
        is_string(sentence(site), want, sched_bound_word(cases[i].bound));
    }
}

TEST(more_sentences)
{
    struct case_site c;
    struct sched_site *site = case_begin(&c);
    site->bound = SCHED_BOUND_NONE;
    site->waiting = 1;
    site->idle = 2;
    is_string(sentence(site), "nothing holds it back; a session takes it next",
              "idle sessions are ready");
    site->idle = 0;
    site->greeting = 2;
    is_string(sentence(site),
              "nothing holds it back; connections being made: 2, each takes mail after its greeting",
              "sessions greet");
    site->waiting = 0;
    is_string(sentence(site), "nothing", "nothing waits");
    site->bound = SCHED_BOUND_TRANSPORT_DELAY;
    site->bound_until_ms = INT64_MAX;
    is_string(sentence(site),
              "transport_rate_delay is 2 s; the next delivery begins when this one has "
              "ended",
              "no time is known");
    site->bound = SCHED_BOUND_WINDOW;
    site->limit = 5;
    is_string(
        sentence(site),
        "its window is full: 5 of 5 sessions are open, 3 carry mail; it is at its "
        "concurrency limit",
        "the window is as large as it may be");
    site->bound = SCHED_BOUND_CEILING;
    site->ceiling_probe_ms = INT64_MAX;
    is_string(sentence(site), "it refused more than 5 sessions (ceiling)",
              "no probe by time");
    struct outcome lack =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.0", "nobody has logged in");
    site->bound = SCHED_BOUND_TOKEN;
    site->reason = &lack;
    is_string(sentence(site), "it lacks a token to log in: nobody has logged in",
              "what to do about it is in the reason");
    site->bound = SCHED_BOUND_DEAD;
    site->dead_since_ms = now - 60000;
    site->dead_until_ms = site->bound_until_ms = now + 12000;
    site->reason = &c.refused;
    is_string(
        sentence(site),
        "the site has been dead since 22:12:20Z (1 min ago), tried again at 22:13:32Z "
        "(in 12 s): connection \\x1b[31mrefused (from mx.test[192.0.2.1]:25)",
        "by whom and why, fit for a terminal");
    c.refused = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 421, "4.3.2",
                             "host mx.test[192.0.2.1] said: 421 later");
    snprintf(c.refused.remote, sizeof(c.refused.remote), "mx.test[192.0.2.1]:25");
    ok(strstr(sentence(site), ": host mx.test[192.0.2.1] said: 421 later") &&
       !strstr(sentence(site), "from"));
}

TEST(json)
{
    struct transport_params t;
    transport_params_default(&t);
    struct sched_site site = {
        .key = "a",
        .transport = &t,
        .members = {"a.test", "b.test"},
        .ceiling_probe_ms = INT64_MAX,
        .bound_until_ms = INT64_MAX
    };
    static const struct {
        struct rate rate;
        const char *words;
    } rates[] = {
        {{0, 1, 0},              ""            },
        {{3, 1, 60000},          "3/m"         },
        {{3, 1, 3600000},        "3/h"         },
        {{1000000, 1, 86400000}, "1000000/d"   },
        {{3, 1, 1234},           "3 in 1234 ms"},
    };
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        t.rate = rates[i].rate;
        json_t *hop = site_view_make(&site);
        is_string(json_string_value(json_object_get(hop, "rate")), rates[i].words,
                  "the rate");
        is_string(json_string_value(json_object_get(hop, "state")), "alive", "state");
        is_number((long)json_array_size(json_object_get(hop, "domains")), 2, "domains");
        ok(!json_object_get(hop, "bound_until_ms"));
        ok(!json_object_get(hop, "dead_until_ms"));
        ok(!json_object_get(hop, "ceiling_probe_ms"));
        ok(!json_object_get(hop, "reason"));
        json_decref(hop);
    }
}

/* Sites of one name: their options tell them apart, and stand nowhere else. */
TEST(options)
{
    static const struct {
        const char *key, *options, *words, *row;
    } rows[] = {
        {"one", "",                                    NULL,                              "\n  one         "},
        {"two", "",                                    NULL,                              "\n  two (no options)      "},
        {"two", "rate=10/s&recipients=1&verp=yes",     "rate=10/s recipients=1 verp=1",   "\n  two (rate=10/s recipients=1 verp=1) "},
        {"two", "quota=5/m,7/d&lifetime=1h",           "quota/m=5 quota/d=7 lifetime_ms=3600000", "\n  two (quota/m=5 quota/d=7 lifetime_ms=3600000) "},
        {"six", "rate=1/s",                            "rate=1/s",                        "\n  six         "},
    };
    json_t *sites = json_array();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct target target = {.kind = TARGET_SMTP};
        struct sched_site site = {.key = rows[i].key, .transport = &target.transport, .target = &target};
        struct text rest = text_from(rows[i].options), option;
        transport_params_default(&target.transport);
        while (text_cut(&rest, '&', &option)) {
            size_t at = text_find(option, '=');
            ok(at == TEXT_NONE || transport_params_option(&target.transport, text_before(option, at), text_after(option, at + 1)));
        }
        site_view_put(sites, &site);
        const char *words = json_string_value(json_object_get(json_array_get(sites, i), "options"));
        ok_named(rows[i].words == NULL ? words == NULL : words != NULL && strcmp(words, rows[i].words) == 0, rows[i].options);
    }
    struct printed p;
    printed_begin(&p);
    site_view_print_table(sites, now);
    const char *text = printed_end(&p);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        ok_named(strstr(text, rows[i].row) != NULL, rows[i].row + 1);
    json_decref(sites);
}

/* --- Lists ------------------------------------------------------------------------ */

static const char *
key_of(const json_t *hops, size_t i)
{
    const char *key =
        json_string_value(json_object_get(json_array_get(hops, i), "site"));
    return key ? key : "(none)";
}

TEST(lists)
{
    struct site_view_totals totals;
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    w.target.transport.initial_concurrency = w.target.transport.concurrency_limit = 1;
    world_add(&w, "a.test", 0, 0);
    world_add(&w, "b.test b.test b.test", 0, 0);
    world_add(&w, "c.test c.test", 0, 0);
    world_add(&w, "quiet.test", 0, 0);
    world_run(&w);
    channel_drain(&w, world_channel(&w, "quiet.test", 0));
    json_t *top = site_view_top(w.s, 2, &totals);
    is_number((long)json_array_size(top), 2, "no more than wanted");
    is_string(key_of(top, 0), "smtp:b.test", "most mail");
    is_string(key_of(top, 1), "smtp:c.test", "then less");
    is_number((long)totals.sites, 4, "all sites");
    is_number((long)totals.waiting, 6, "all mail");
    is_number((long)totals.backlogged, 0, "none is backlogged");
    is_number((long)totals.busy, 0, "nothing is carried");
    json_decref(top);
    top = site_view_top(w.s, 20, &totals);
    is_number((long)json_array_size(top), 3, "a quiet one is not worth a line");
    json_decref(top);
    top = site_view_top(w.s, 0, &totals);
    is_number((long)json_array_size(top), 0, "none is wanted");
    json_decref(top);

    json_t *named = site_view_find(w.s, "SMTP:quiet.test");
    is_number((long)json_array_size(named), 1, "a quiet one has a name");
    is_string(key_of(named, 0), "smtp:quiet.test", "in any case");
    json_decref(named);
    named = site_view_find(w.s, "quiet.test");
    is_number((long)json_array_size(named), 0, "no site has that name");
    json_decref(named);

    json_t *all = json_array();
    for (size_t from = 0; from < 4; from++) {
        json_t *page = site_view_page(w.s, from, 1);
        is_number((long)json_array_size(page), 1, "a page of one");
        json_array_extend(all, page);
        json_decref(page);
    }
    json_t *page = site_view_page(w.s, 4, 10);
    is_number((long)json_array_size(page), 0, "the end");
    json_decref(page);
    json_t *sorted = site_view_sorted(all);
    is_number((long)json_array_size(sorted), 4, "all of them");
    is_string(key_of(sorted, 0), "smtp:b.test", "sorted");
    is_string(key_of(sorted, 2), "smtp:a.test", "by mail");
    is_string(key_of(sorted, 3), "smtp:quiet.test", "the quiet one is there");
    struct printed p;
    printed_begin(&p);
    site_view_print_table(sorted, now);
    const char *text = printed_end(&p);
    ok(strstr(text,
              "  smtp:b.test                              3          0      1    1    0"
              "    0       -        -        -  alive, window\n"));
    json_decref(all);
    json_decref(sorted);
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
    sorted = site_view_sorted(NULL);
    is_number((long)json_array_size(sorted), 0, "of nothing");
    json_decref(sorted);
}

/* A name means all sites that have it. */
TEST(namesakes)
{
    FIXTURE(world, w, sched_world_start, sched_world_end, 100, 100);
    for (unsigned limit = 1; limit <= SITE_VIEW_NAMESAKES + 1; limit++) {
        w.target.transport.initial_concurrency = w.target.transport.concurrency_limit = (int)limit;
        world_add(&w, limit == 2 ? "a.test a.test a.test" : "a.test", 0, 0);
        world_run(&w);
        json_t *sites = site_view_find(w.s, "smtp:a.test");
        is_number((long)json_array_size(sites), limit < SITE_VIEW_NAMESAKES ? limit : SITE_VIEW_NAMESAKES, "all, up to a limit");
        json_t *first = json_array_get(sites, 0);
        ok_named(limit == 1 || json_number_value(json_object_get(first, "limit")) == 2, "most mail first");
        json_decref(sites);
    }
    for (struct channel *c; (c = world_channel(&w, "", 0));)
        channel_drain(&w, c);
}
