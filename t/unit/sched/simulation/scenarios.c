/* Experiments with the scheduler in virtual time (t/scenarios): the published tables,
 * and what we promise beyond them. Exact: no clock, no chance but a seed. */
#include "t/simulation/simulation_internal.h"

#include "base/disk/disk.h"

#include "t/support/tap.h"

struct experiment {
    struct scenario *scenario;
    struct simulation_result *result;
};

/* Percentage of the connections tried that were refused or timed out. */
static double
refused_share(const struct simulation_result *r)
{
    return r->connects
               ? 100.0 * (double)(r->refused + r->timed_out) / (double)r->connects
               : 0;
}

static struct scenario *
scenario_read(const char *name)
{
    char path[200];
    char *content;
    size_t length;
    struct buffer mistakes;
    struct scenario_defaults defaults = scenario_defaults();
    snprintf(path, sizeof(path), "t/scenarios/%s.scenario", name);
    int error = disk_read_whole(path, 1 << 20, &content, &length);
    if (error != 0) {
        printf("Bail out! %s: %s\n", path, strerror(-error));
        exit(1);
    }
    buffer_init(&mistakes, 1 << 16);
    struct scenario *s =
        scenario_new(text_of(content, length), path, &defaults, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), name);
    buffer_free(&mistakes);
    free(content);
    if (!s)
        exit(1);
    return s;
}

static struct experiment
run(const char *name)
{
    struct experiment e = {.scenario = scenario_read(name)};
    e.result = simulation_run(e.scenario, NULL, NULL);
    const struct simulation_result *r = e.result;
    printf("# %s: %.1f s, %.2f/s, refused %.2f %% of connections, %.2f for 100 sent, "
           "4xx %llu, window %.2f / %.2f, deaths %llu, %.1f in a session\n",
           name, (double)r->last_delivery_ms / 1000,
           (double)r->works / ((double)r->last_delivery_ms / 1000), refused_share(r),
           simulation_refused_per_100(r), (unsigned long long)r->tempfails,
           r->window_mean, r->window_deviation, (unsigned long long)r->deaths,
           (double)r->transactions / (double)r->greeted);
    for (size_t i = 0; i < r->group_count; i++)
        printf("#   %s: mean %.3f s, 99 %% %.3f s, longest %.3f s\n", r->groups[i].name,
               (double)r->groups[i].mean_ms / 1000, (double)r->groups[i].p99_ms / 1000,
               (double)r->groups[i].max_ms / 1000);
    return e;
}

static void
end(struct experiment *e)
{
    scenario_free(&e->scenario);
    simulation_free(&e->result);
}

static bool
is_near(double got, double want, double within)
{
    if (got >= want - within && got <= want + within)
        return true;
    printf("#   got %.3f, want %.3f within %.3f\n", got, want, within);
    return false;
}

/* --- Published tables (Postfix's SCHEDULER_README) -------------------------------- */

/* Five runs, and of each figure the median. */
enum { SEEDS = 5 };

struct row {
    double refused, mean, deviation, used;
};

static int
compare_figures(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
median(double *figures)
{
    qsort(figures, SEEDS, sizeof(*figures), compare_figures);
    return figures[SEEDS / 2];
}

static struct row
row_median(const char *name)
{
    double refused[SEEDS], mean[SEEDS], deviation[SEEDS], used[SEEDS];
    struct scenario *s = scenario_read(name);
    for (unsigned i = 0; i < SEEDS; i++) {
        s->seed = i + 1;
        struct simulation_result *r = simulation_run(s, NULL, NULL);
        refused[i] = refused_share(r);
        mean[i] = r->window_mean;
        deviation[i] = r->window_deviation;
        used[i] = simulation_use(r, 0, 5);
        simulation_free(&r);
    }
    scenario_free(&s);
    return (struct row){median(refused), median(mean), median(deviation), median(used)};
}

TEST(tables)
{
    static const struct {
        const char *name;
        double refused, mean, deviation;
        double within, used; /* of refused, in points; of the capacity, at least */
    } rows[] = {
        {"table1-1n",   10.5, 19.46, 0.50, 1.0, 0 },
        {"table1-sqrt", 10.7, 19.60, 0.59, 1.0, 0 },
        {"table1-one",  10.8, 19.72, 0.97, 1.0, 0 },
        {"table2-1n",   1.23, 19.89, 0.31, 0.2, 0 },
        {"table2-sqrt", 1.26, 19.96, 0.23, 0.2, 0 },
        {"table2-one",  1.26, 19.97, 0.32, 0.2, 0 },
        {"table3-1n",   16.5, 5.17,  0.38, 1.0, 99},
        {"table3-sqrt", 24.8, 5.26,  0.44, 1.0, 99},
        {"table3-one",  49.7, 5.54,  0.55, 1.0, 99},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct row row = row_median(rows[i].name);
        printf("# %s: median of %d: %.2f %% refused, window %.2f / %.2f\n",
               rows[i].name, SEEDS, row.refused, row.mean, row.deviation);
        ok(is_near(row.refused, rows[i].refused, rows[i].within));
        ok(is_near(row.mean, rows[i].mean, 0.1));
        ok(is_near(row.deviation, rows[i].deviation, 0.1));
        ok(row.used >= rows[i].used);
    }
}

/* The same server, and what was learnt of it. */
TEST(table3)
{
    struct experiment e = run("table3");
    ok_named(simulation_refused_per_100(e.result) <= 1,
             "one refused for 100 delivered");
    ok_named(simulation_use(e.result, 0, 5) >= 95, "95 % of the capacity");
    is_number(e.result->deferred, 0, "nothing is deferred");
    is_number(e.result->sites[0].peak_open, 5, "sessions that the server gave");
    end(&e);
}

/* --- E4 to E11 -------------------------------------------------------------------- */

/* One front end of K is broken: 20 sessions of 2 s could take ten a second. */
TEST(noise)
{
    static const char *const names[] = {"e4-2", "e4-4", "e4-8"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct experiment e = run(names[i]);
        ok_named(simulation_use(e.result, 0, 20) >= 95, "95 % of the good capacity");
        is_number(e.result->deaths, 0, "no death");
        is_number(e.result->deferred, 0, "nothing is deferred");
        end(&e);
    }
}

/* Small mail beside a list, and beside a sender of much: two service times. */
TEST(fair)
{
    static const char *const names[] = {"e5-2", "e5-6", "e6-2", "e6-6"};
    static const int64_t ends_s[] = {440, 520, 440, 520}; /* the sum of the work */
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct experiment e = run(names[i]);
        const struct simulation_group *bulk = &e.result->groups[0],
                                      *small = &e.result->groups[1];
        ok_named(small->p99_ms <= 2000, "99 % of small mail within two service times");
        is_number(small->delivered, small->messages, "all of it");
        ok_named(bulk->last_ms <= ends_s[i] * 1010, "nothing is lost by taking turns");
        end(&e);
    }
}

/* From the first timeouts on, a dead exchange costs next to nothing. */
TEST(dead_exchange)
{
    struct experiment one = run("e7-one"), e = run("e7");
    int64_t alone_ms = one.result->groups[1].last_ms - 31000,
            took_ms = e.result->groups[1].last_ms - 31000;
    printf("# e7: %.2f %% of the rate with one exchange\n",
           100.0 * (double)alone_ms / (double)took_ms);
    ok_named(alone_ms * 100 >= took_ms * 95, "95 % of the rate with one exchange");
    is_number(e.result->groups[1].delivered, 6000, "all of it");
    is_number(e.result->deferred, 0, "nothing is deferred");
    end(&e);
    end(&one);
}

TEST(one_site)
{
    struct experiment e = run("e8");
    const struct simulation_result *r = e.result;
    ok_named(r->sites[0].peak_sessions <= 20, "500 domains share a site's sessions");
    ok_named(r->transactions >= 10 * r->greeted, "ten messages in a session");
    ok(r->finished);
    end(&e);
}

/* 100 a second can be served, when it is back. */
TEST(outage)
{
    struct experiment e = run("e9");
    const struct simulation_result *r = e.result;
    ok_named(r->last_delivery_ms <= 1800000 + 50000 * 10 + 60000,
             "drained in the time that its capacity needs and a minute");
    is_number(r->messages_delivered, 50000, "all of it");
    ok_named(r->sites[0].peak_open <= 20, "within its limit");
    end(&e);
}

TEST(slow_neighbours)
{
    struct experiment alone = run("e10-alone"), e = run("e10");
    const struct simulation_group *slow = &e.result->groups[0],
                                  *fast = &e.result->groups[1];
    is_number(fast->delivered, fast->messages, "all fast mail");
    ok_named(fast->p99_ms * 10 <= alone.result->groups[0].p99_ms * 11,
             "as fast as without neighbours");
    ok_named(slow->delivered > 1000, "and the slow ones are served");
    end(&e);
    end(&alone);
    /* With so few sessions the slow ones take nine tenths, and idle ones count. */
    e = run("e10-tight");
    fast = &e.result->groups[1];
    ok_named(fast->delivered == fast->messages && fast->p99_ms <= 1000,
             "with a hundred sessions in all: 99 % within a second");
    end(&e);
}

TEST(throttle)
{
    struct experiment e = run("e11");
    const struct simulation_result *r = e.result;
    double rate = (double)r->works / ((double)r->end_ms / 1000);
    ok_named(rate >= 9 && rate <= 10.1, "nine to ten messages a second");
    ok_named(r->tempfails * 100 < r->transactions * 2, "less than 2 % are refused");
    end(&e);
}

/* Trouble of 20 s costs minutes: what was refused waits for one, nothing else for long. */
TEST(slow_down)
{
    struct experiment e = run("slow-down");
    const struct simulation_result *r = e.result;
    is_number(r->messages_delivered, 150, "all are delivered");
    ok_named(r->last_delivery_ms <= 120 * 1000, "within two minutes");
    ok_named(r->rate_limited <= 20, "few were refused");
    end(&e);
}

/* No session for mail that the rate keeps. */
TEST(rate)
{
    struct experiment e = run("rate");
    const struct simulation_result *r = e.result;
    is_number(r->messages_delivered, 100, "all are delivered");
    ok_named(r->connects <= 100, "with a connection for each at most");
    end(&e);
}

/* --- A few more, as text ---------------------------------------------------------- */

static struct experiment
run_text(const char *content)
{
    struct experiment e;
    struct buffer mistakes;
    struct scenario_defaults defaults = scenario_defaults();
    buffer_init(&mistakes, 1 << 16);
    e.scenario = scenario_new(text_from(content), "text", &defaults, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "a good scenario");
    buffer_free(&mistakes);
    e.result = simulation_run(e.scenario, NULL, NULL);
    return e;
}

/* With the content of one message a prompt server gets the next: urgent mail that comes
 * then is behind it. */
TEST(early)
{
    static const char *const content =
        "transport concurrency=1\nsite s delay.message=%dms %s\n"
        "domain a.example site s\narrive domain=a.example count=4 at=1s every=1ms\n"
        "arrive domain=a.example class=urgent at=%dms\n";
    char text[400];
    snprintf(text, sizeof(text), content, 100, "", 1150);
    struct experiment e = run_text(text);
    ok_named(e.result->groups[1].max_ms >= 250 && e.result->groups[1].max_ms < 300,
             "the third message goes before");
    end(&e);
    snprintf(text, sizeof(text), content, 300, "", 1450);
    e = run_text(text);
    ok_named(e.result->groups[1].max_ms >= 450 && e.result->groups[1].max_ms < 500,
             "a slow server gets it first");
    end(&e);
    snprintf(text, sizeof(text), content, 100, "per_session=3", 1150);
    e = run_text(text);
    is_number(e.result->greeted, 2, "a server that hangs up is connected to again");
    is_number(e.result->messages_delivered, 5, "for what it has not taken");
    is_number(e.result->deferred, 0, "which is no failure of it");
    end(&e);
    snprintf(text, sizeof(text), content, 100,
             "\nat 1250ms site s down\nat 10m site s up", 1150);
    e = run_text(text);
    ok_named(e.result->deferred >= 2 && e.result->lost == 1,
             "both are lost with the connection");
    is_number(e.result->messages_delivered, 5, "and come later");
    end(&e);
    snprintf(text, sizeof(text), content, 100,
             "per_session=3\nat 1290ms site s fail=1/1\nat 10m site s fail=0/1", 1150);
    e = run_text(text);
    ok_named(e.result->deferred >= 1, "nor can it be connected to");
    is_number(e.result->messages_delivered, 5, "for some time");
    end(&e);
}

/* --- A fair feed ------------------------------------------------------------------ */

/* The longest wait in a queue that is strictly first in, first out. */
static double
wait_in_order(const char *name)
{
    struct scenario *s = scenario_read(name);
    s->sched.active_limit = 1000000;
    s->sched.site_share = 0;
    struct simulation_result *r = simulation_run(s, NULL, NULL);
    double longest = (double)r->groups[0].max_ms;
    simulation_free(&r);
    scenario_free(&s);
    return longest;
}

TEST(feed_overload)
{
    struct experiment e = run("feed-order");
    ok_named(e.result->groups[0].behind == 0 && e.result->groups[1].behind == 0,
             "mail of one sender leaves in order of arrival");
    ok_named(e.result->peak_active <= 100, "and most of it waits on disk");
    end(&e);
    static const char *const names[] = {"feed-overload", "feed-senders"};
    for (size_t i = 0; i < 2; i++) {
        e = run(names[i]);
        ok_named((double)e.result->groups[0].max_ms <= 1.2 * wait_in_order(names[i]),
                 "no message waits much longer than in order of arrival");
        ok_named(e.result->peak_active < 13000, "with a share of the active set");
        end(&e);
    }
    e = run("feed-burst");
    ok_named(e.result->groups[0].behind == 0 && e.result->groups[1].behind == 0,
             "after a burst, too, mail leaves in order of arrival");
    end(&e);
    e = run("feed-passing");
    ok_named(e.result->groups[1].p99_ms <= 1000,
             "a sender of little mail passes another's backlog");
    ok_named(e.result->groups[0].behind == 0, "which keeps its order");
    end(&e);
}

TEST(feed_recipients)
{
    struct experiment e = run("feed-recipients");
    ok_named(e.result->finished && e.result->peak_recipients <= 40000,
             "never more recipients than the limit in memory");
    ok_named(e.result->groups[0].behind == 0, "large mail leaves in its order");
    ok_named(e.result->groups[1].max_ms <= 1000,
             "that of another site does not wait with it");
    ok_named(e.result->groups[2].max_ms <= 1000, "nor does small mail");
    end(&e);
}

TEST(feed_flush)
{
    static const char *const names[] = {"feed-flush", "feed-flush-small"};
    for (size_t i = 0; i < 2; i++) {
        struct experiment e = run(names[i]);
        const struct simulation_group *deferred = &e.result->groups[0],
                                      *fresh = &e.result->groups[1];
        struct scenario *s = scenario_read(names[i]);
        for (size_t j = 0; j < s->change_count; j++)
            if (s->changes[j].kind == SCENARIO_FLUSH)
                s->changes[j].at_us = INT64_C(100000) * 1000000;
        struct simulation_result *calm = simulation_run(s, NULL, NULL);
        ok_named(fresh->p99_ms <= 2 * calm->groups[1].p99_ms,
                 "a flush does not delay new mail");
        ok_named(deferred->last_ms <= 180000 + 41000 &&
                     calm->groups[0].last_ms > 300000,
                 "and takes all that the site can beside it");
        simulation_free(&calm);
        scenario_free(&s);
        end(&e);
    }
    struct experiment e = run("feed-flush-busy");
    ok_named(e.result->groups[0].mean_ms < 255000,
             "an eighth of what leaves is deferred mail while new mail comes");
    ok_named(e.result->groups[1].p99_ms <= 18000,
             "and new mail waits little longer by it");
    end(&e);
    e = run("feed-flush-burst");
    ok_named(
        e.result->groups[1].p99_ms < 2000 && e.result->groups[2].p99_ms < 2000,
        "new mail that comes faster than the site takes it does not wait for a flush");
    is_number(e.result->groups[0].delivered, 600, "which gets what new mail leaves");
    end(&e);
}

/* With Postfix's rules and with ours. */
TEST(feed_outage)
{
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        struct experiment e = {.scenario = scenario_read("feed-outage")};
        for (size_t i = 0; i < e.scenario->target_count; i++)
            e.scenario->targets[i].transport.adaptive = adaptive;
        e.result = simulation_run(e.scenario, NULL, NULL);
        const struct simulation_group *waiting = &e.result->groups[0];
        is_number(waiting->delivered, 2000, "all mail that waited for a site");
        is_number(waiting->behind, 0, "leaves in order of arrival");
        ok_named(waiting->last_ms <= 1200000 + 360000,
                 "when the first that is due has found the site");
        ok_named(e.result->groups[1].max_ms <= 1000, "later mail is not delayed");
        ok_named(adaptive || e.result->deaths == 4,
                 "and nothing was tried before mail was due");
        end(&e);
    }
}

/* The wait depends on the moment of a transaction of the slow target at which the mail
 * comes. */
TEST(feed_targets)
{
    for (int64_t part = 0; part < 8; part++) {
        struct experiment e = {.scenario = scenario_read("feed-targets")};
        e.scenario->arrivals[1].at_us += part * 50000;
        e.result = simulation_run(e.scenario, NULL, NULL);
        ok_named(e.result->groups[1].max_ms <= 500,
                 "the other target's mail waits for no more than one transaction");
        ok_named(e.result->groups[0].max_ms <= 11000,
                 "and the first loses little by it");
        end(&e);
    }
    struct experiment e = run("feed-targets-steady");
    ok_named(e.result->groups[1].max_ms <= 500, "nor does later mail wait longer");
    ok_named(e.result->groups[0].max_ms <= 42000, "beside a target that loses little");
    end(&e);
}
