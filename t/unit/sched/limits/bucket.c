/* Rates: how they are written, the bucket, and what is learnt from a receiver with a
 * token bucket of its own, in virtual time. */
#include "sched/limits/bucket.h"

#include "t/support/tap.h"

#define START INT64_C(1700000000000)

enum { SESSIONS = 20, TAKES_MS = 50 };

/* A receiver with a token bucket, and a sender that always has mail. */
struct world {
    struct learnt_rate learnt;
    int64_t now_ms;
    int64_t per_s_milli, depth; /* receiver: messages in 1000 s; tokens */
    int64_t tokens;             /* millionths */
    int64_t window_ms;          /* it counts so long, then begins anew; 0 = a bucket */
    unsigned refuses;           /* at random, of a thousand; 1000 = all */
    uint32_t random;
    int64_t ends_ms[SESSIONS]; /* 0 = idle */
    bool good[SESSIONS];
    int64_t demand_ms, wanted_ms; /* one message each, 0 = always */
    int64_t accepted, refused;
};

static void
world_make(struct world *w, int64_t per_1000_s, int64_t depth)
{
    *w = (struct world){.now_ms = START, .per_s_milli = per_1000_s, .depth = depth};
    bucket_learnt_init(&w->learnt);
    w->tokens = depth * 1000000;
}

static void
world_run(struct world *w, int64_t for_ms)
{
    w->accepted = w->refused = 0;
    for (int64_t end = w->now_ms + for_ms; w->now_ms < end; w->now_ms++) {
        if (w->window_ms == 0)
            w->tokens += w->per_s_milli; /* a message in 1000 s: a millionth in 1 ms */
        else if (w->now_ms % w->window_ms == 0)
            w->tokens = w->per_s_milli * w->window_ms;
        if (w->window_ms == 0 && w->tokens > w->depth * 1000000)
            w->tokens = w->depth * 1000000;
        for (int i = 0; i < SESSIONS; i++) {
            if (w->ends_ms[i] == w->now_ms) {
                w->ends_ms[i] = 0;
                if (w->good[i])
                    bucket_learnt_accepted(&w->learnt, w->now_ms), w->accepted++;
                else
                    bucket_learnt_refused(&w->learnt, w->now_ms), w->refused++;
            }
        }
        for (int i = 0; i < SESSIONS; i++) {
            if (w->ends_ms[i] != 0)
                continue;
            if (w->wanted_ms > w->now_ms ||
                bucket_learnt_ready_ms(&w->learnt, w->now_ms) > w->now_ms)
                break;
            bucket_learnt_take(&w->learnt, w->now_ms);
            w->wanted_ms = w->now_ms + w->demand_ms;
            w->ends_ms[i] = w->now_ms + TAKES_MS;
            w->random = w->random * 1664525 + 1013904223;
            w->good[i] = w->tokens >= 1000000 && w->random / 4294968 >= w->refuses;
            if (w->good[i])
                w->tokens -= 1000000;
        }
    }
}

static int64_t
per_1000_s(int64_t count, int64_t ms)
{
    return count * 1000000 / ms;
}

TEST(parse)
{
    static const struct {
        const char *text;
        uint32_t amount, burst;
        int64_t period_ms;
    } good[] = {
        {"100/m",               100,     1,       60000   },
        {"5/s,burst=20",        5,       20,      1000    },
        {"20/min",              20,      1,       60000   },
        {" 7200 / H ",          7200,    2,       3600000 },
        {"90/s",                90,      90,      1000    },
        {"1/d , BURST=1000000", 1,       1000000, 86400000},
        {"0",                   0,       1,       1000    },
        {"None",                0,       1,       1000    },
        {"1000000/s",           1000000, 1000000, 1000    },
    };
    static const char *const bad[] = {
        "",
        "5",
        "5/",
        "/s",
        "0/s",
        "-1/s",
        "5/w",
        "1000001/s",
        "5/s,",
        "5/s,burst=",
        "5/s,burst=0",
        "5/s,20",
        "5/s,burst=1000001",
        "5/s/s",
        "5/s,burst=2,burst=3",
        "5.5/s",
        "s",
        "none/s",
        "99999999999999999999/s",
    };
    struct rate r = {.amount = 77};
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        ok_named(bucket_rate_parse(text_from(good[i].text), &r), good[i].text);
        ok_named(r.amount == good[i].amount && r.burst == good[i].burst &&
                     r.period_ms == good[i].period_ms,
                 "and what it means");
    }
    r.amount = 77;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!bucket_rate_parse(text_from(bad[i]), &r) && r.amount == 77, bad[i]);
}

/* Taken in that time by a user that looks every tick_ms. */
static int64_t
taken(struct bucket *b, const struct rate *r, int64_t from, int64_t for_ms,
      int64_t tick_ms)
{
    int64_t count = 0;
    for (int64_t now = from; now < from + for_ms; now += tick_ms)
        while (bucket_ready_ms(b, r, now) <= now) {
            bucket_take(b, r, now);
            count++;
        }
    return count;
}

TEST(bucket)
{
    struct rate r;
    struct bucket b = {0};
    ok(bucket_rate_parse(TEXT("5/s,burst=20"), &r));
    is_number(taken(&b, &r, START, 1, 1), 20, "the burst at once");
    is_number(bucket_ready_ms(&b, &r, START), START + 200, "then one in 200 ms");
    is_number(taken(&b, &r, START + 1, 10000, 1), 50, "at the rate");
    is_number(taken(&b, &r, START + 100000, 1, 1), 20, "a rest fills it, not more");
    static const char *const rates[] = {"3/s,burst=1",   "7/m",      "333/s,burst=1",
                                        "700/s,burst=1", "300000/s", "11/h",
                                        "7000/h,burst=3"};
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
        b = (struct bucket){0};
        ok(bucket_rate_parse(text_from(rates[i]), &r));
        int64_t hours = r.amount > 100000 ? 1 : 3600,
                got = taken(&b, &r, START, 1000 * hours, 1);
        int64_t want = hours * 1000 * r.amount / r.period_ms + r.burst;
        printf("# %s: %" PRId64 " of %" PRId64 "\n", rates[i], got, want);
        ok_named(got <= want && got >= want - 1 - r.amount / r.period_ms,
                 "rounding does not add up");
    }
    ok(bucket_rate_parse(TEXT("none"), &r));
    b = (struct bucket){0};
    bucket_take(&b, &r, START);
    ok_named(bucket_ready_ms(&b, &r, START) == INT64_MIN, "unlimited");
}

static uint32_t
taken_by(struct bucket b, const struct rate *r, int64_t now_ms, int64_t until_ms)
{
    uint32_t count = 0;
    for (int64_t at = now_ms; at <= until_ms && count < 1000; at++)
        for (; bucket_ready_ms(&b, r, at) <= at && count < 1000; count++)
            bucket_take(&b, r, at);
    return count;
}

/* It is what taking them one after the other comes to. */
TEST(passes)
{
    static const struct rate rates[] = {
        {.amount = 2,   .burst = 1,  .period_ms = 60000},
        {.amount = 10,  .burst = 10, .period_ms = 1000 },
        {.amount = 7,   .burst = 3,  .period_ms = 1000 },
        {.amount = 100, .burst = 1,  .period_ms = 60000},
        {.amount = 3,   .burst = 2,  .period_ms = 10   },
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        struct bucket b = {0};
        for (int taken = 0; taken < 12; taken++) {
            for (int64_t span = 0; span <= 2000; span += 250) {
                uint32_t told = bucket_passes(&b, &rates[i], START, START + span);
                uint32_t is = taken_by(b, &rates[i], START, START + span);
                /* One more where a bucket is full within the millisecond. */
                wrong += told != is && told != is + 1;
            }
            bucket_take(&b, &rates[i], START);
        }
    }
    is_number(wrong, 0, "so many pass");
    struct bucket b = {0};
    static const struct rate none;
    is_number(bucket_passes(&b, &none, START, START), RATE_AMOUNT_MAX, "no limit");
    is_number(bucket_passes(&b, &rates[0], START, START + 1000), 1,
              "one a half minute");
    bucket_take(&b, &rates[0], START);
    is_number(bucket_passes(&b, &rates[0], START, START + 1000), 0, "and no more");
    is_number(bucket_passes(&b, &rates[0], START, START + 30000), 1,
              "until it is over");
    struct learnt_rate learnt;
    bucket_learnt_init(&learnt);
    is_number(bucket_learnt_passes(&learnt, START, START), RATE_AMOUNT_MAX,
              "nothing is learnt");
}

TEST(bucket_clock)
{
    struct rate r = {.amount = 1, .burst = 2, .period_ms = 1000};
    struct bucket b = {0};
    bucket_shift(&b, 5000);
    ok_named(bucket_ready_ms(&b, &r, START) <= START, "a full one stays full");
    taken(&b, &r, START, 1, 1);
    bucket_shift(&b, -3600000);
    is_number(bucket_ready_ms(&b, &r, START - 3600000), START - 3600000 + 1000,
              "shifted");
    bucket_shift(&b, 7200000);
    is_number(bucket_ready_ms(&b, &r, START), START + 1000,
              "set back unnoticed: empty");
    bucket_take(&b, &r, START);
    is_number(bucket_ready_ms(&b, &r, START), START + 1000, "taken all the same");
}

/* One taken at 1/h, before the rate was raised. */
TEST(raised)
{
    struct rate slow, fast;
    struct bucket b = {0};
    ok(bucket_rate_parse(TEXT("1/h"), &slow) && bucket_rate_parse(TEXT("1/s"), &fast));
    bucket_take(&b, &slow, 5000);
    is_number(bucket_ready_ms(&b, &slow, 6000), 5000 + 3600000, "an hour");
    is_number(bucket_ready_ms(&b, &fast, 6000), 7000, "then a second");
    is_number(bucket_ready_ms(&b, &fast, 6500), 7000, "which passes");
    is_number(bucket_passes(&b, &fast, 6500, 8500), 2, "and goes on");
}

TEST(converge)
{
    static const struct {
        int64_t per_1000_s, depth, least,
            percent_refused;   /* least: of the rate, per cent */
        int64_t refused_later; /* from the 60th second on */
    } rows[] = {
        {10000,  10,   90, 50,  20 },
        {10000,  1,    90, 50,  20 },
        {10000,  100,  90, 50,  40 },
        {1000,   10,   90, 220, 24 },
        {100000, 100,  90, 50,  60 },
        {100000, 1000, 90, 50,  200},
        {333,    10,   80, 500, 20 },
        {333,    1,    80, 500, 12 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct world w;
        world_make(&w, rows[i].per_1000_s, rows[i].depth);
        world_run(&w, 60000);
        int64_t accepted = w.accepted, refused = w.refused;
        world_run(&w, 140000);
        int64_t soon = per_1000_s(w.accepted, 140000), later = w.refused;
        accepted += w.accepted;
        world_run(&w, 1600000);
        int64_t rate = per_1000_s(w.accepted, 1600000);
        later += w.refused;
        accepted += w.accepted;
        refused += later;
        int64_t share = refused * 10000 / (accepted + refused);
        printf("# %" PRId64 " in 1000 s, depth %" PRId64 ": 60-200 s %" PRId64
               ", 200-1800 s %" PRId64 ", refused %" PRId64 " (%" PRId64
               " later), %" PRId64 "/10000\n",
               rows[i].per_1000_s, rows[i].depth, soon, rate, refused, later, share);
        int64_t least = rows[i].per_1000_s * rows[i].least / 100;
        ok_named(rate >= least && rate <= rows[i].per_1000_s * 102 / 100,
                 "the rate is found");
        ok_named(soon >= least || rows[i].per_1000_s < 10000 || rows[i].depth == 1,
                 "within a minute");
        ok_named(share < rows[i].percent_refused, "few are refused");
        ok_named(later <= rows[i].refused_later, "the first minute aside");
    }
}

TEST(change)
{
    static const int64_t faster[] = {30000, 100000, 300000};
    for (int i = 0; i < 3; i++) {
        struct world w;
        world_make(&w, 10000, 10);
        world_run(&w, 3000000); /* holds are the longest now */
        w.per_s_milli = faster[i];
        int64_t minutes = 0;
        do
            world_run(&w, 60000);
        while (++minutes < 60 && per_1000_s(w.accepted, 60000) < faster[i] * 9 / 10);
        printf("# 10/s to %" PRId64 "/s: %" PRId64 " minutes\n", faster[i] / 1000,
               minutes);
        ok_named(minutes <= 14, "a faster site is found out");
        w.per_s_milli = 1000;
        world_run(&w, 20000);
        printf("# to 1/s: %" PRId64 " refused in 20 s, rate %u\n", w.refused,
               w.learnt.rate);
        ok_named(w.learnt.rate < 2000, "a slower one within seconds");
        ok_named(w.refused < 100, "at little cost");
    }
}

TEST(phases)
{
    struct learnt_rate l;
    int64_t now = START;
    bucket_learnt_init(&l);
    ok_named(bucket_learnt_ready_ms(&l, now) == INT64_MIN, "no limit");
    bucket_learnt_take(&l, now);
    for (int i = 0; i < 200; i++)
        bucket_learnt_accepted(&l, now += 50);
    bucket_learnt_refused(&l, now);
    is_number(l.known, 20000, "a steady rate is measured");
    is_number(l.rate, 14000, "0.7 of it are tried");
    is_number(bucket_learnt_ready_ms(&l, now), now + LEARNT_PAUSE_MS, "after a pause");
    struct learnt_rate once = l;
    bucket_learnt_refused(&l, now + LEARNT_PAUSE_MS - 1);
    ok_named(memcmp(&l, &once, sizeof(l)) == 0, "those under way count as one");
    bucket_learnt_ready_ms(&l, now + 3000);
    is_number(l.phase, LEARNT_HELD, "the rest is over");
    is_number(l.rate, 19400, "just below what is known");
    bucket_learnt_ready_ms(&l, now + 33000);
    is_number(l.phase, LEARNT_PROBE, "half a minute later it is raised");
    for (int64_t t = now + 33000; t < now + 500000; t += 1000)
        bucket_learnt_ready_ms(&l, t);
    is_number(l.rate, 19400, "not while nothing is sent");
    bucket_learnt_ready_ms(&l, now + 599999);
    is_number(l.rate, 19400, "kept for ten minutes");
    is_number(bucket_learnt_rate(&l, now + 599999), 19400, "and shown");
    is_number(bucket_learnt_rate(&l, now + 600000), 0, "then not");
    ok_named(bucket_learnt_ready_ms(&l, now + 600000) == INT64_MIN, "then forgotten");
    is_number(l.phase, LEARNT_NONE, "all of it");
}

static void
test_shut(void) /* everything is refused, for hours */
{
    struct world w;
    world_make(&w, 10000, 10);
    world_run(&w, 120000);
    w.per_s_milli = w.tokens = 0;
    world_run(&w, 3600000);
    printf("# shut for an hour: %" PRId64 " refused\n", w.refused);
    ok_named(w.accepted <= 1, "shut, but for one under way");
    ok_named(w.refused < 120, "asked seldom");
    ok_named(w.learnt.rate > 6000, "the rate is not blamed");
    w.per_s_milli = 10000;
    int64_t minutes = 0;
    do
        world_run(&w, 60000);
    while (++minutes < 120 && per_1000_s(w.accepted, 60000) < 9000);
    printf("# open again: %" PRId64 " minutes\n", minutes);
    ok_named(minutes <= 15, "open again: found out");
}

static void
test_window(
    void) /* as many counters do: so much in a minute, all at once if one likes */
{
    static const int64_t windows[] = {1000, 10000, 60000};
    for (int i = 0; i < 3; i++) {
        struct world w;
        world_make(&w, 10000, 10);
        w.window_ms = windows[i];
        world_run(&w, 300000);
        world_run(&w, 1500000);
        printf("# 10/s counted for %" PRId64 " s: %" PRId64 " in 1000 s, %" PRId64
               " refused\n",
               windows[i] / 1000, per_1000_s(w.accepted, 1500000), w.refused);
        ok_named(per_1000_s(w.accepted, 1500000) > 5500,
                 "more than half of what it grants");
        ok_named(w.refused * 100 < w.accepted * 3, "few are refused");
    }
}

static void
test_demand(void) /* 2/s wanted of 10/s for an hour, then all: no burst of refusals */
{
    struct world w;
    world_make(&w, 10000, 10);
    world_run(&w, 120000);
    w.demand_ms = 500;
    world_run(&w, 3600000);
    is_number(w.refused, 0, "little mail is never refused");
    ok_named(w.accepted >= 7199, "and never late");
    w.demand_ms = 0;
    world_run(&w, 60000);
    printf("# after an hour of little mail: %" PRId64 " refused of %" PRId64 "\n",
           w.refused, w.accepted);
    ok_named(w.refused <= SESSIONS,
             "forgotten meanwhile, it is found anew at little cost");
    world_run(&w, 60000);
    ok_named(w.accepted > 520, "in a minute");
    w.demand_ms = 500;
    world_run(&w, 300000);
    w.demand_ms = 0;
    world_run(&w, 60000);
    ok_named(w.refused <= 5 && w.accepted > 520,
             "after five minutes it was not raised unused");
}

/* A host refuses for 20 s, all or at random, and is well again: 150 messages that wait
 * leave within five minutes, whatever the rate was before, and in ten there is none. */
static void
test_passing_trouble(void)
{
    static const unsigned refuses[] = {1000, 990, 900, 700, 500, 300, 100, 20};
    int64_t longest_ms = 0, fewest = INT64_MAX;
    bool all_leave = true, all_forgotten = true, none_below = true;
    for (size_t i = 0; i < sizeof(refuses) / sizeof(refuses[0]); i++)
        for (unsigned seed = 0; seed < 40; seed++) {
            struct world w;
            int64_t waited_ms = 0;
            world_make(&w, 1000000, 1000);
            w.random = seed * 2654435761u;
            w.demand_ms = (int64_t[]){0, 20, 100, 1000}[seed % 4];
            if (seed >= 20)
                world_run(&w, 30000);
            w.refuses = refuses[i];
            world_run(&w, 20000);
            w.refuses = 0;
            w.demand_ms = 0;
            none_below =
                none_below && (w.learnt.rate == 0 || w.learnt.rate >= LEARNT_MIN);
            for (int64_t left = 150; left > 0 && waited_ms < 3600000;
                 waited_ms += 1000) {
                world_run(&w, 1000);
                left -= w.accepted;
            }
            longest_ms = waited_ms > longest_ms ? waited_ms : longest_ms;
            all_leave = all_leave && waited_ms <= 300000;
            world_run(&w, 620000 - waited_ms);
            all_forgotten = all_forgotten && w.learnt.phase == LEARNT_NONE;
            fewest = w.accepted < fewest ? w.accepted : fewest;
        }
    printf("# at most %" PRId64 " s after the trouble\n", longest_ms / 1000);
    ok_named(all_leave, "150 messages leave within five minutes");
    ok_named(all_forgotten, "after ten there is no limit");
    ok_named(none_below, "at least one a minute");
}

/* Without a refusal the lowest rate doubles in each minute from its hold on, and is gone
 * after ten. */
static void
test_climb(void)
{
    for (enum learnt_phase phase = LEARNT_SEARCH; phase <= LEARNT_PROBE; phase++) {
        struct world w;
        world_make(&w, 1000000, 1000);
        w.learnt = (struct learnt_rate){.phase = phase,
                                        .rate = LEARNT_MIN,
                                        .known = LEARNT_MIN,
                                        .step = phase == LEARNT_SEARCH ? 1000 : 10,
                                        .hold_ms = LEARNT_HOLD_MAX_MS,
                                        .next_hold_ms = LEARNT_HOLD_MAX_MS,
                                        .refused_at_ms = START,
                                        .next_at_ms = START};
        bool doubles = true;
        uint32_t least = LEARNT_MIN, most = 1000000 / TAKES_MS * SESSIONS; /* used */
        for (int minute = 1; minute < 10; minute++) {
            world_run(&w, 60000);
            doubles = doubles && w.learnt.rate >= (least < most ? least : most);
            least *= 2;
        }
        ok_named(doubles, "it doubles in each minute");
        ok_named(w.learnt.phase != LEARNT_NONE, "nine minutes");
        world_run(&w, 61000);
        is_number(w.learnt.phase, LEARNT_NONE, "after ten minutes there is none");
    }
}

static void
test_learnt_shift(void)
{
    struct world w;
    world_make(&w, 10000, 10);
    world_run(&w, 120000);
    struct world same = w;
    int64_t delta = -7200000;
    w.now_ms += delta;
    bucket_learnt_shift(&w.learnt, delta);
    for (int i = 0; i < SESSIONS; i++)
        w.ends_ms[i] += w.ends_ms[i] != 0 ? delta : 0;
    w.wanted_ms += delta;
    world_run(&w, 300000);
    world_run(&same, 300000);
    is_number(w.accepted, same.accepted, "the clock was set: nothing changes");
    is_number(w.refused, same.refused, "nor are more refused");
    is_number(w.learnt.next_at_ms, same.learnt.next_at_ms + delta, "all in step");
    struct learnt_rate l = {0};
    bucket_learnt_shift(&l, delta);
    is_number(l.refused_at_ms, 0, "a new one stays new");
}

static void
test_no_limit_again(void)
{
    struct learnt_rate l = {.phase = LEARNT_PROBE,
                            .rate = LEARNT_MAX,
                            .known = LEARNT_MAX,
                            .step = 500,
                            .refused_at_ms = START,
                            .next_at_ms = START,
                            .used = 1000000};
    ok_named(bucket_learnt_ready_ms(&l, START) == INT64_MIN,
             "above the most: no limit");
    is_number(l.phase, LEARNT_NONE, "none is known");
}

int
main(void)
{
    tap_tests("");
    test_shut();
    test_window();
    test_demand();
    test_passing_trouble();
    test_climb();
    test_learnt_shift();
    test_no_limit_again();
    return done();
}
