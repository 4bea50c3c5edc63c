/* Several hosts and their bank, in virtual time: the scenarios t/scenarios/cluster-*, each
 * with what it promises, and what hosts and banks do. With HUNDRED=1 also cluster-hundred,
 * which takes minutes: `make simulate-hundred`. */
#include "t/simulation/simulation_internal.h"

#include "base/crc.h"
#include "base/disk/disk.h"

#include "t/support/tap.h"

#include <sys/resource.h>

struct experiment {
    struct scenario *scenario;
    struct simulation_result *result;
};

static struct scenario *
parse(const char *content, size_t length, const char *name)
{
    struct buffer mistakes;
    struct scenario_defaults defaults = scenario_defaults();
    buffer_init(&mistakes, 1 << 16);
    struct scenario *s =
        scenario_new(text_of(content, length), name, &defaults, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), name);
    buffer_free(&mistakes);
    if (!s)
        exit(1);
    return s;
}

static struct scenario *
scenario_read(const char *name)
{
    char path[200], *content;
    size_t length;
    snprintf(path, sizeof(path), "t/scenarios/%s.scenario", name);
    int error = disk_read_whole(path, 1 << 20, &content, &length);
    if (error != 0) {
        printf("Bail out! %s: %s\n", path, strerror(-error));
        exit(1);
    }
    struct scenario *s = parse(content, length, name);
    free(content);
    return s;
}

static struct experiment
run(struct scenario *s, const char *name)
{
    struct experiment e = {s, simulation_run(s, NULL, NULL)};
    const struct simulation_site *site = &e.result->sites[0];
    printf("# %s: %.1f %% of the rate, worst minute %.1f %%, five %.1f %%; %.1f %% of the "
           "sessions, %.1f s over, longest turn %.1f s\n",
           name, simulation_rate_use(e.result, 0), simulation_worst(site, 1),
           simulation_worst(site, 5), simulation_session_use(e.result, 0),
           (double)site->over_us / 1e6, (double)site->turn_us / 1e6);
    for (size_t i = 0; i < e.result->group_count; i++)
        printf("#   %s: mean %.3f s, 99 %% %.3f s, longest %.3f s\n",
               e.result->groups[i].name, (double)e.result->groups[i].mean_ms / 1000,
               (double)e.result->groups[i].p99_ms / 1000,
               (double)e.result->groups[i].max_ms / 1000);
    return e;
}

static struct experiment
run_text(const char *content)
{
    return run(parse(content, strlen(content), "text"), "text");
}

static void
end(struct experiment *e)
{
    scenario_free(&e->scenario);
    simulation_free(&e->result);
}

/* --- Bars ------------------------------------------------------------------------- */

/* A shared rate, and sessions, which are never over the limit. */
static void
test_rates(void)
{
    static const struct {
        const char *name;
        double use, minute;
    } rows[] = {
        {"cluster-hungry",      95, 102},
        {"cluster-hungry-many", 95, 105},
        {"cluster-small",       90, 102},
        {"cluster-away",        95, 102},
        {"cluster-old",         95, 107},
        {"cluster-empty",       95, 107},
        {"cluster-cut",         95, 105},
        {"cluster-newcomer",    95, 102},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct experiment e = run(scenario_read(rows[i].name), rows[i].name);
        const struct simulation_site *site = &e.result->sites[0];
        ok_named(simulation_rate_use(e.result, 0) >= rows[i].use, "the rate is used");
        ok_named(simulation_worst(site, 1) <= rows[i].minute, "and kept in any minute");
        is_number(site->over_us, 0, "and sessions are kept");
        if (e.result->group_count > 1)
            ok_named(e.result->groups[1].p99_ms <= (i == 2 ? 1000 : 30000),
                     "nobody waits for long");
        end(&e);
    }
}

/* Whenever in a period it happens. */
static void
test_any_time(void)
{
    static const char *const names[] = {"cluster-old", "cluster-empty", "cluster-cut"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        for (int64_t later_us = 700000; later_us < 5000000; later_us += 900000) {
            struct scenario *s = scenario_read(names[i]);
            for (size_t j = 0; j < s->change_count; j++)
                s->changes[j].at_us += later_us;
            struct experiment e = run(s, names[i]);
            const struct simulation_site *site = &e.result->sites[0];
            is_number(site->over_us, 0, "sessions are kept at any time");
            ok_named(simulation_worst(site, 1) <= 107, "and the rate");
            ok_named(simulation_rate_use(e.result, 0) >= 95, "which is used");
            end(&e);
        }
    }
}

/* Nothing waits for a limit that is far away, and questions are few. */
static void
test_far(void)
{
    struct experiment e = run(scenario_read("cluster-far"), "far");
    for (size_t i = 0; i < e.result->group_count; i++)
        ok_named(e.result->groups[i].p99_ms <= 20, "no wait");
    printf("# %llu questions\n", (unsigned long long)e.result->questions);
    ok_named(e.result->questions <= 10 * 150 * 4 / 10, "0.4 for each host and second");
    end(&e);
}

static void
test_turns(void)
{
    struct experiment e = run(scenario_read("cluster-two-sessions"), "two sessions");
    ok_named(simulation_session_use(e.result, 0) >= 75, "75 % of two sessions");
    ok_named(e.result->sites[0].over_us == 0 && e.result->sites[0].peak_open == 2,
             "never more");
    ok_named(e.result->sites[0].turn_us <= INT64_C(480000000),
             "each of ten hosts has one every eight minutes");
    end(&e);
    e = run(scenario_read("cluster-two-a-minute"), "two a minute");
    ok_named(simulation_rate_use(e.result, 0) >= 95, "two a minute");
    is_number(e.result->sites[0].worst_five, 11, "ten in five minutes, and the burst");
    end(&e);
}

/* The same mail, sent by one host of the same capacity. */
static int64_t
alone_ms(const char *name)
{
    struct scenario *s = scenario_read(name);
    s->host_count = 1;
    s->has_bank = false;
    s->change_count = 0;
    s->sched.session_limit = 50000;
    s->sched.active_limit = s->sched.recipient_limit = 1000000;
    for (size_t i = 0; i < s->arrival_count; i++) {
        s->arrivals[i].first_host = 0;
        s->arrivals[i].host_count = 1;
    }
    struct experiment e = run(s, "one host");
    int64_t last_ms = e.result->last_delivery_ms;
    end(&e);
    return last_ms;
}

/* Hosts that die, a bank that is away: all is done nearly as soon as by one host, and no
 * site sees more than its limits, and a transaction for each host. */
static void
test_many(const char *name)
{
    struct experiment e = run(scenario_read(name), name);
    const struct simulation_result *r = e.result;
    size_t fast = 0, over = 0;
    for (size_t i = 0; i < r->site_count; i++) {
        const struct simulation_site *site = &r->sites[i];
        double most = simulation_per_minute(&site->rate) + site->rate.burst +
                      (double)e.scenario->host_count;
        fast += site->rate.amount > 0 && site->worst_minute > most;
        over += site->over_us > 0;
    }
    is_number(r->messages_delivered, r->messages, "all is delivered");
    is_number(fast, 0, "rates are kept everywhere");
    is_number(over, 0, "and sessions");
    int64_t alone = alone_ms(name);
    printf("# %s: %.1f s, one host %.1f s; %llu questions\n", name,
           (double)r->last_delivery_ms / 1000, (double)alone / 1000,
           (unsigned long long)r->questions);
    ok_named(r->last_delivery_ms * 100 <= alone * 110,
             "within 10 % of the time of one host");
    end(&e);
}

TEST(hundred)
{
    struct rusage usage;
    if (!getenv("HUNDRED"))
        return;
    test_many("cluster-hundred");
    getrusage(RUSAGE_SELF, &usage);
    printf("# %ld s of the processor, %ld MiB\n", (long)usage.ru_utime.tv_sec,
           usage.ru_maxrss / 1024);
    ok_named(usage.ru_maxrss <= 4L * 1024 * 1024, "in 4 GiB");
}

/* --- Hosts ------------------------------------------------------------------------ */

#define BASE                                                                           \
    "hosts 3\nbank period=5s\ntransport rate=60/m,burst=1\nsite s delay.message=1s\n"  \
    "domain d site s\n"

static uint64_t
delivered(const char *content)
{
    struct experiment e = run_text(content);
    uint64_t count = e.result->messages_delivered;
    end(&e);
    return count;
}

TEST(hosts)
{
    is_number(delivered(BASE "arrive domain=d count=30 host=2\nuntil 100s\n"), 30,
              "one host of three has all of the rate");
    is_number(delivered(BASE "at 0s host 2 die\narrive domain=d count=5 at=1s host=2\n"
                             "until 100s\n"),
              5, "mail for a dead host goes to another");
    is_number(delivered(BASE "at 0s host 1..3 die\narrive domain=d count=5 at=1s\n"
                             "until 100s\n"),
              0, "if one is alive");
    is_number(delivered(BASE "at 0s host 1..3 die\narrive domain=d count=5 at=1s\n"
                             "at 30s host 1..3 join\n"),
              5, "else it waits");
    struct experiment e = run_text(BASE "arrive domain=d count=40 host=2\n"
                                        "at 10500ms host 2 die\nat 60s host 2 join\n");
    ok_named(e.result->messages_delivered == 40 && e.result->last_delivery_ms > 85000,
             "a host that died comes back with its queue");
    end(&e);
    e = run_text(BASE "arrive domain=d count=40 host=2\nat 10500ms host 2 drain\n");
    ok_named(e.result->messages_delivered == 40 && e.result->last_delivery_ms < 60000,
             "one that drains gives it to the others");
    end(&e);
    e = run_text(BASE "arrive domain=d count=40 host=2\nat 10500ms host 2 drain\n"
                      "at 11s host 2 join\n");
    is_number(e.result->messages_delivered, 40, "or thinks better of it");
    end(&e);
    e = run_text(BASE "arrive domain=d count=4 host=3\nat 20s host 3 join\nuntil 19s\n");
    is_number(e.result->messages_delivered, 4, "a host that joins was not there before");
    end(&e);
}

/* Without a bank each has its part, from the beginning; with one that is gone, later. */
TEST(alone)
{
    struct experiment e =
        run_text("hosts 3\ntransport rate=60/m,burst=1\nsite s\ndomain d site s\n"
                 "arrive domain=d count=900 host=1\nuntil 300s\n");
    ok_named(e.result->sites[0].begun >= 99 && e.result->sites[0].begun <= 101,
             "one host of three has a third of the rate");
    is_number(e.result->questions, 0, "and asks nobody");
    end(&e);
    e = run_text(BASE "arrive domain=d count=900 host=1\nat 0s bank down\nuntil 300s\n");
    ok_named(e.result->sites[0].begun >= 98 && e.result->sites[0].begun <= 101,
             "likewise if the bank does not answer");
    end(&e);
    e = run_text(BASE "arrive domain=d count=900 host=1\nat 0s host 1 cut\nuntil 300s\n");
    ok_named(e.result->sites[0].begun >= 98 && e.result->sites[0].begun <= 101,
             "or if it cannot be reached");
    end(&e);
}

/* --- Words ------------------------------------------------------------------------ */

struct trace {
    uint32_t sum;
    unsigned grants, changes, alone, banks;
};

static void
trace_line(void *context, struct text line)
{
    struct trace *t = context;
    struct text rest = text_after(line, text_find(line, ' ') + 1);
    t->sum = crc_add(t->sum, line.at, line.length);
    t->grants += text_starts(rest, TEXT("grant host "));
    t->changes += text_starts(rest, TEXT("change "));
    t->alone += text_starts(rest, TEXT("alone host "));
    t->banks += text_starts(rest, TEXT("bank host "));
}

TEST(trace)
{
    static const char content[] =
        BASE "arrive domain=d count=300 random rate=2/s zipf\nat 20s bank down\n"
             "at 40s bank up\nat 50s bank empty\nat 60s bank lose 5s\nat 70s host 1 die\n"
             "at 75s host 1 join\nat 80s host 2..3 cut\nat 90s host 2..3 join\n";
    struct trace traces[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        struct scenario *s = parse(content, strlen(content), "trace");
        struct simulation_result *r = simulation_run(s, trace_line, &traces[i]);
        is_number(r->messages_delivered, 300, "all");
        ok(r->questions >= traces[i].grants && r->batches > 0);
        simulation_free(&r);
        scenario_free(&s);
    }
    is_number(traces[0].sum, traces[1].sum, "the same each time");
    ok(traces[0].grants > 50);
    is_number(traces[0].changes, 9, "each change, and the copy that is lost to");
    ok(traces[0].alone >= 4 && traces[0].banks >= 5);
}

TEST(report)
{
    struct experiment e =
        run_text("hosts 2\nbank period=5s\ntarget t shared=yes concurrency=2\n"
                 "target r rate=60/m\nsite none\nsite a\nsite b delay.message=1s\n"
                 "domain n site none\ndomain a site a target r\n"
                 "domain b site b target t\narrive domain=a count=10\n"
                 "arrive domain=b count=10\narrive domain=n\n");
    struct buffer out;
    buffer_init(&out, 1 << 16);
    simulation_report(e.result, e.scenario, &out);
    struct text report = buffer_text(&out);
    size_t at = 0;
    while (at < report.length && !text_starts(text_after(report, at), TEXT("\nshared ")))
        at++;
    struct text rest = text_after(report, at + 1), line;
    ok(text_cut(&rest, '\n', &line) && text_ends_nocase(line, TEXT("turn, s")));
    ok(text_cut(&rest, '\n', &line) && text_starts(line, TEXT("a    ")));
    ok_named(memmem(line.at, line.length, " 60.0 ", 6) != NULL, "its rate by the minute");
    ok(text_cut(&rest, '\n', &line) && text_starts(line, TEXT("b    ")));
    ok_named(memmem(line.at, line.length, " none ", 6) != NULL, "or none");
    ok(text_cut(&rest, '\n', &line) && text_starts(line, TEXT("questions to the bank: ")));
    buffer_free(&out);
    end(&e);
}

int
main(void)
{
    test_rates();
    test_any_time();
    test_far();
    test_turns();
    test_many("cluster-twenty");
    tap_tests("");
    return done();
}
