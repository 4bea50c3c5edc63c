/* Random weather: scenarios from a seed, of all that servers, settings and mail may do,
 * that end in good weather. Nobody may wait for ever, limits hold, nothing loops, and
 * the same seed gives the same trace.
 *
 *   weather.t [FIRST COUNT]   so many seeds; without, what a test may cost
 *   weather.t print SEED      the scenario, for t/bench/simulate.c
 *
 * Each runs in a process of its own, so that one that hangs or ends by an assertion is
 * told with its scenario, and the others go on. */
#include "base/crc.h"
#include "sched/limits/retry.h"
#include "t/simulation/simulation.h"

#include "t/support/tap.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SEEDS = TAP_ADDRESS_SANITIZER ? 60 : 400,
    TWICE = 8,            /* of so many one is run again */
    CPU_S = TAP_ADDRESS_SANITIZER ? 200 : 20, /* more: it hangs */
    AT_ONCE_MAX = 200000, /* lines of a trace at one millisecond */
    MESSAGES_MAX = 300,   /* in one statement */
    SITES_MAX = 5
};

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)

/* The mail being written, and the time it may take at worst once the weather is good:
 * that of one session alone for all of it. */
struct weather {
    uint64_t random;
    struct buffer text;
    int64_t good_ms; /* from then on */
    int sites, domains, addresses;
    int session_limit, active_limit, recipient_limit, concurrency, recipients;
    int most_recipients; /* of a message */
    bool adaptive, may_fail;
    int64_t longest_ms; /* backoff */
    int64_t pause_ms;   /* between two transactions, by the client's settings */
    int64_t idle_ms, dns_ms, rcpt_ms, message_ms, greeting_ms; /* the longest */
    int64_t work_ms;
};

static unsigned
draw(struct weather *w, unsigned below)
{
    return (unsigned)(retry_random(&w->random) % below);
}

static bool
one_in(struct weather *w, unsigned n)
{
    return draw(w, n) == 0;
}

static unsigned
pick(struct weather *w, const unsigned *of, size_t count)
{
    return of[draw(w, (unsigned)count)];
}

#define PICK(w, ...)                                                                   \
    pick(w, (const unsigned[]){__VA_ARGS__},                                           \
         sizeof((unsigned[]){__VA_ARGS__}) / sizeof(unsigned))

static void __attribute__((format(printf, 2, 3)))
say(struct weather *w, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    bool fits = buffer_format_list(&w->text, format, list);
    va_end(list);
    if (!fits)
        abort();
}

static void
most(int64_t *longest, int64_t time)
{
    if (time > *longest)
        *longest = time;
}

/* --- Settings --------------------------------------------------------------------- */

static void
say_rates(struct weather *w)
{
    if (one_in(w, 5)) {
        unsigned rate = PICK(w, 1, 5, 50, 1000);
        bool by_minute = one_in(w, 2);
        say(w, " rate=%u/%s", rate, by_minute ? "m" : "s");
        if (one_in(w, 2))
            say(w, ",burst=%u", 1 + draw(w, 20));
        w->pause_ms += (by_minute ? MINUTE_MS : SECOND_MS) / rate + 1;
    }
    if (one_in(w, 8)) {
        unsigned delay = PICK(w, 1, 2, 10);
        say(w, " rate_delay=%us", delay);
        w->pause_ms += delay * SECOND_MS;
        w->concurrency = 1;
    }
    if (one_in(w, 8)) {
        unsigned delay = PICK(w, 1, 3, 5);
        say(w, " transport_rate_delay=%us", delay);
        w->pause_ms += delay * SECOND_MS;
    }
}

static void
say_transport(struct weather *w)
{
    static const char *const feedbacks[] = {"1", "1/4", "1/concurrency",
                                            "1/sqrt_concurrency", "0"};
    unsigned minimal = PICK(w, 5, 30, 60, 300), maximal = minimal * PICK(w, 1, 2, 13);
    w->adaptive = !one_in(w, 4);
    w->concurrency = (int)PICK(w, 0, 1, 2, 5, 20, 50);
    w->recipients = (int)PICK(w, 0, 1, 2, 50);
    w->longest_ms = maximal * SECOND_MS;
    if (w->longest_ms < MINUTE_MS) /* what a refusal for the rate waits at least */
        w->longest_ms = MINUTE_MS;
    say(w, "transport adaptive=%s concurrency=%d recipients=%d cohort=%u\n",
        w->adaptive ? "yes" : "no", w->concurrency, w->recipients,
        PICK(w, 0, 1, 1, 10));
    say(w, "transport minimal_backoff=%us maximal_backoff=%us reuse=%u initial=%u\n",
        minimal, maximal, PICK(w, 0, 0, 1, 2, 30), PICK(w, 1, 5, 5, 20));
    say(w, "transport positive=%s negative=%s", feedbacks[draw(w, 5)],
        feedbacks[draw(w, 5)]);
    say_rates(w);
    if (one_in(w, 12)) {
        say(w, " lifetime=%us", PICK(w, 0, 60, 1800, 7200));
        w->may_fail = true;
    }
    say(w, "\n");
}

static void
say_client(struct weather *w)
{
    w->active_limit = (int)(one_in(w, 2) ? 10 + draw(w, 191) : PICK(w, 1, 2, 20000));
    w->recipient_limit = (int)(one_in(w, 2) ? 1 + draw(w, 300) : PICK(w, 1, 8, 40000));
    w->session_limit = (int)(one_in(w, 2) ? 1 + draw(w, 50) : PICK(w, 1, 2, 10, 500));
    w->idle_ms = PICK(w, 0, 0, 10, 2000, 2000, 30000);
    w->dns_ms = PICK(w, 0, 5, 500);
    say(w, "active_limit %d\nsession_limit %d\nsite_active_share %u\n", w->active_limit,
        w->session_limit, PICK(w, 0, 10, 50, 50, 100));
    say(w, "active_recipient_limit %d\n", w->recipient_limit);
    say(w, "client dns=%lldms idle=%lldms\n", (long long)w->dns_ms,
        (long long)w->idle_ms);
}

/* --- Servers ---------------------------------------------------------------------- */

static void
say_over(struct weather *w)
{
    static const char *const modes[] = {"421", "rst", "refuse", "silent"};
    if (one_in(w, 4))
        say(w, " over=queue:%u", PICK(w, 0, 1, 6, 100));
    else
        say(w, " over=%s", modes[draw(w, 4)]);
}

static void
say_odds(struct weather *w, const char *name, bool is_certain)
{
    unsigned of = PICK(w, 2, 4, 10, 50), bad = is_certain ? of : 1 + draw(w, of - 1);
    say(w, " %s=%u/%u%s", name, bad, of, one_in(w, 2) ? ",random" : "");
}

/* Settings that may be bad; also those of a change. */
static void
say_weather(struct weather *w)
{
    if (one_in(w, 2)) {
        say(w, " sessions=%u", PICK(w, 1, 2, 5, 19));
        say_over(w);
    }
    if (one_in(w, 4))
        say_odds(w, "fail", one_in(w, 8));
    if (one_in(w, 4))
        say_odds(w, "tempfail", one_in(w, 8));
    if (one_in(w, 4)) {
        static const char *const units[] = {"s", "s", "m", "h"};
        say(w, " rate=%u/%s", PICK(w, 1, 5, 20, 100), units[draw(w, 4)]);
        if (one_in(w, 2))
            say(w, ",burst=%u", PICK(w, 1, 10, 100));
        say(w, " rate_reply=%u", PICK(w, 421, 450, 451, 452));
    }
}

static void
say_server(struct weather *w)
{
    unsigned greeting = PICK(w, 0, 10, 200, 5000), rcpt = PICK(w, 0, 1, 50),
             message = PICK(w, 0, 10, 300, 2000, 10000);
    most(&w->greeting_ms, greeting);
    most(&w->rcpt_ms, rcpt);
    most(&w->message_ms, message);
    say(w, " delay.greeting=%ums delay.rcpt=%ums delay.message=%ums", greeting, rcpt,
        message);
    if (one_in(w, 2))
        say(w, " delay.jitter=%u%%", PICK(w, 2, 30, 100));
    if (one_in(w, 4))
        say(w, " per_session=%u", PICK(w, 1, 2, 10, 100));
    if (one_in(w, 10)) {
        say_odds(w, "reject", one_in(w, 8));
        w->may_fail = true;
    }
    if (one_in(w, 6))
        say(w, " %s", one_in(w, 2) ? "down" : "silent");
    say_weather(w);
}

static void
say_sites(struct weather *w)
{
    w->sites = 1 + (int)draw(w, SITES_MAX);
    for (int i = 1; i <= w->sites; i++) {
        int addresses = one_in(w, 2) ? 1 : 1 + (int)draw(w, 4);
        say(w, "site s%d", i);
        say_server(w);
        say(w, "\n");
        for (int j = 0; addresses > 1 && j < addresses; j++) {
            say(w, "address s%d a%d preference=%u", i, j, PICK(w, 10, 10, 20));
            if (one_in(w, 2))
                say_server(w);
            say(w, "\n");
        }
        if (addresses > w->addresses)
            w->addresses = addresses;
        w->domains = (int)PICK(w, 1, 1, 3, 20, 60);
        say(w, "domain d%d-%%d.example 1..%d site s%d\n", i, w->domains, i);
    }
}

/* Outages and other changes, each at its time; at last all is well. */
static void
say_changes(struct weather *w)
{
    for (unsigned i = draw(w, 12); i > 0; i--) {
        unsigned at = draw(w, (unsigned)(w->good_ms / SECOND_MS));
        say(w, "at %us site s%d %s", at, 1 + (int)draw(w, (unsigned)w->sites),
            one_in(w, 2)   ? "up"
            : one_in(w, 2) ? "down"
                           : "silent");
        say_weather(w);
        say(w, "\n");
    }
    for (int i = 1; i <= w->sites; i++)
        say(w, "at %lldms site s%d up sessions=0 fail=0/1 tempfail=0/1 rate=none\n",
            (long long)w->good_ms, i);
}

/* --- Mail ------------------------------------------------------------------------- */

static void
say_arrival(struct weather *w)
{
    static const char *const classes[] = {"normal", "urgent", "bulk"};
    unsigned count = 1 + draw(w, PICK(w, 1, 30, MESSAGES_MAX)),
             recipients = one_in(w, 4) ? 1 + draw(w, 300) : 1,
             at = draw(w, (unsigned)(w->good_ms / SECOND_MS) + 60);
    if (recipients > 1 && count > 30)
        count = 30;
    if ((int)recipients > w->most_recipients)
        w->most_recipients = (int)recipients;
    say(w, "arrive domain=d%d-%%d.example count=%u recipients=%u at=%us size=%uK",
        1 + (int)draw(w, (unsigned)w->sites), count, recipients, one_in(w, 2) ? 0 : at,
        PICK(w, 1, 10, 5000));
    say(w, " sender=%s@x.example class=%s", one_in(w, 2) ? "list" : "u%d",
        classes[draw(w, 3)]);
    if (one_in(w, 2))
        say(w, " every=%ums%s", PICK(w, 1, 100, 3000), one_in(w, 2) ? " random" : "");
    say(w, "\n");
    int64_t limit = w->recipients > 0 ? w->recipients : (int)recipients,
            works = (recipients + limit - 1) / limit;
    int64_t carried = works * (w->message_ms + w->greeting_ms + w->dns_ms +
                               w->pause_ms + 10 * w->addresses) +
                      recipients * w->rcpt_ms;
    w->work_ms += count * carried * 2 + count * 3000; /* jitter; it arrives late */
}

/* The time for work still under way when the weather turns good, and for the state
 * learnt before. */
static int64_t
patience_ms(const struct weather *w)
{
    int64_t hang = w->addresses * (30 + 300) * SECOND_MS;
    return w->longest_ms * 11 / 10 + 2 * hang + 15 * MINUTE_MS + HOUR_MS + w->work_ms +
           w->idle_ms * 60;
}

/* In good weather without anybody delivered. */
static int64_t
gap_max_ms(const struct weather *w)
{
    int64_t hang = w->addresses * (30 + 300) * SECOND_MS;
    return w->longest_ms * 11 / 10 + hang + 15 * MINUTE_MS + w->pause_ms;
}

static void
weather_make(struct weather *w, uint64_t seed)
{
    *w = (struct weather){.random = seed, .addresses = 1};
    buffer_init(&w->text, 1 << 20);
    w->good_ms = PICK(w, 1, 10, 60, 400) * MINUTE_MS;
    say(w, "seed %llu\n", (unsigned long long)seed);
    say_client(w);
    say_transport(w);
    say_sites(w);
    say_changes(w);
    for (unsigned i = 1 + draw(w, 5); i > 0; i--)
        say_arrival(w);
    say(w, "until %llds\n", (long long)((w->good_ms + patience_ms(w)) / SECOND_MS + 1));
}

/* --- A run ------------------------------------------------------------------------ */

/* The trace, and how much of it at one millisecond. */
struct watch {
    uint32_t crc;
    struct text ms; /* "12.345", kept in space */
    char space[32];
    unsigned at_once, worst;
    int64_t good_ms, last_ms, gap_ms; /* the longest without a final verdict, in good */
};

/* A recipient has its final verdict. */
static void
see_verdict(struct watch *watch, struct text time, struct text line)
{
    struct text seconds = text_before(time, text_find(time, '.')),
                rest = text_after(line, text_find(line, ' ') + 1);
    uint64_t s;
    if ((!text_starts(rest, TEXT("sent")) && !text_starts(rest, TEXT("bounced"))) ||
        !text_number(seconds, UINT64_MAX, &s))
        return;
    int64_t now_ms = (int64_t)s * SECOND_MS;
    if (watch->last_ms < watch->good_ms)
        watch->last_ms = watch->good_ms;
    if (now_ms - watch->last_ms > watch->gap_ms)
        watch->gap_ms = now_ms - watch->last_ms;
    watch->last_ms = now_ms;
}

static void
see(void *context, struct text line)
{
    struct watch *watch = context;
    struct text time = text_before(line, text_find(line, ' '));
    if (time.length > 3)
        time.length -= 3;
    see_verdict(watch, time, line);
    watch->crc = crc_add(watch->crc, line.at, line.length);
    if (!text_equal(time, watch->ms)) {
        watch->at_once = 0;
        watch->ms = text_of(watch->space, time.length);
        memcpy(watch->space, time.at, time.length);
    }
    if (++watch->at_once > watch->worst)
        watch->worst = watch->at_once;
    if (watch->at_once > AT_ONCE_MAX) {
        printf("# a loop at one time: %.*s\n", TEXT_ARGS(line));
        fflush(stdout);
        abort();
    }
}

static bool
holds(bool good, const char *what)
{
    if (!good)
        printf("# does not hold: %s\n", what);
    return good;
}

/* An eighth is for small mail; what has no room in the rest comes alone. */
static size_t
most_in_memory(const struct weather *w)
{
    int own = w->recipient_limit >= 8 ? w->recipient_limit / 8 : 1;
    return (size_t)(w->most_recipients > w->recipient_limit - own
                        ? w->most_recipients + own
                        : w->recipient_limit);
}

static bool
check_limits(const struct weather *w, const struct simulation_result *r)
{
    bool good =
        holds(r->peak_active <= (size_t)w->active_limit, "active_limit") &&
        holds(r->peak_recipients <= most_in_memory(w), "active_recipient_limit") &&
        holds(r->peak_sessions <= 2 * (size_t)w->session_limit,
              "twice session_limit, with idle ones");
    for (size_t i = 0; i < r->site_count; i++)
        good = holds(w->concurrency == 0 ||
                         r->sites[i].peak_sessions <= (unsigned)w->concurrency,
                     "concurrency") &&
               good;
    return good;
}

static bool
check(const struct weather *w, const struct simulation_result *r)
{
    bool good = check_limits(w, r);
    if (!holds(r->finished, "every message has come to its end")) {
        printf("# %llu of %llu messages at %lld s, good since %lld s\n",
               (unsigned long long)(r->messages_delivered + r->messages_failed),
               (unsigned long long)r->messages, (long long)r->end_ms / 1000,
               (long long)w->good_ms / 1000);
        return false;
    }
    return holds(r->messages_delivered + r->messages_failed == r->messages,
                 "each is delivered or failed") &&
           holds(w->may_fail || r->messages_failed == 0, "none failed") && good;
}

static bool
run(uint64_t seed, bool twice, bool tell)
{
    struct weather w;
    struct buffer mistakes;
    struct scenario_defaults defaults = scenario_defaults();
    struct watch watch = {0}, again = {0};
    weather_make(&w, seed);
    buffer_init(&mistakes, 1 << 16);
    struct scenario *s =
        scenario_new(buffer_text(&w.text), "weather", &defaults, &mistakes);
    if (!s)
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&mistakes)));
    bool good = s != NULL;
    if (good) {
        watch.good_ms = w.good_ms;
        struct simulation_result *r = simulation_run(s, see, &watch);
        good =
            check(&w, r) && holds(watch.gap_ms <= gap_max_ms(&w), "somebody is served");
        if (tell)
            printf(
                "# seed %llu: %lld s after %lld s, %lld s allowed; at once %u, nobody "
                "for %lld s of %lld s\n",
                (unsigned long long)seed, (long long)r->last_delivery_ms / 1000,
                (long long)w.good_ms / 1000, (long long)patience_ms(&w) / 1000,
                watch.worst, (long long)watch.gap_ms / 1000,
                (long long)gap_max_ms(&w) / 1000);
        simulation_free(&r);
    }
    if (good && twice) {
        struct simulation_result *r = simulation_run(s, see, &again);
        good = holds(watch.crc == again.crc, "the same trace again");
        simulation_free(&r);
    }
    scenario_free(&s);
    buffer_free(&mistakes);
    buffer_free(&w.text);
    return good;
}

static void
print(uint64_t seed, const char *before)
{
    struct weather w;
    struct text rest, line;
    weather_make(&w, seed);
    rest = buffer_text(&w.text);
    while (text_cut(&rest, '\n', &line) && line.length > 0)
        printf("%s%.*s\n", before, TEXT_ARGS(line));
    buffer_free(&w.text);
}

/* In a process of its own. */
static bool
try(uint64_t seed, bool tell)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        setrlimit(RLIMIT_CPU, &(struct rlimit){CPU_S, CPU_S + 1});
        exit(run(seed, seed % TWICE == 0, tell) ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        printf("Bail out! no process\n");
        exit(1);
    }
    if (status == 0)
        return true;
    if (WIFSIGNALED(status))
        printf("# ended by signal %d\n", WTERMSIG(status));
    printf("# seed %llu:\n", (unsigned long long)seed);
    if (!tell)
        print(seed, "#   ");
    return false;
}

int
main(int argc, char **argv)
{
    uint64_t first = 1, count = SEEDS, bad = 0;
    if (argc == 3 && strcmp(argv[1], "print") == 0) {
        print(strtoull(argv[2], NULL, 10), "");
        return 0;
    }
    if (argc == 3) {
        first = strtoull(argv[1], NULL, 10);
        count = strtoull(argv[2], NULL, 10);
    }
    for (uint64_t seed = first; seed < first + count; seed++)
        bad += !try(seed, argc == 3);
    printf("# %llu seeds from %llu on\n", (unsigned long long)count,
           (unsigned long long)first);
    is_number(bad, 0, "all come to their end in good weather");
    return done();
}
