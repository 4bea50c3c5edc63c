/* Quotas: no window of a period ever has more than the quota, for any mail at any
 * time. */
#include "sched/limits/quota.h"

#include "t/support/tap.h"

#define DAY_MS  INT64_C(86400000)
#define HOUR_MS INT64_C(3600000)

/* A Wednesday, in ms. */
#define NOW INT64_C(1700000000000)

static struct quota
quota(const char *text)
{
    struct quota q = {.first = 0};
    if (!quota_parse(text_from(text), &q))
        printf("# not a quota: %s\n", text);
    return q;
}

TEST(parse)
{
    static const char *const bad[] = {"",      "5",       "/d",      "5/",    "0/d",
                                      "-1/d",  "5/w",     "5/day",   "x/d",   "5/d,",
                                      ",5/d",  "5/d,6/d", "1/m,2/min", "5/d none", "none,5/d",
                                      "5.5/d", "100000001/d", "5/d/h", "5 d"};
    struct quota q = quota("500/d, 100/h");
    is_number(q.amounts[QUOTA_DAY], 500, "a day");
    is_number(q.amounts[QUOTA_HOUR], 100, "an hour");
    is_number(q.amounts[QUOTA_MINUTE], 0, "no minute");
    q = quota(" 7/MIN,3/s ");
    is_number(q.amounts[QUOTA_MINUTE], 7, "min, in any case");
    is_number(q.amounts[QUOTA_SECOND], 3, "a second");
    q = quota("100000000 / m");
    is_number(q.amounts[QUOTA_MINUTE], QUOTA_AMOUNT_MAX, "the largest");
    ok(!quota_is_none(&q));
    q = quota("none");
    ok(quota_is_none(&q));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        q = quota("9/d");
        ok_named(!quota_parse(text_from(bad[i]), &q) && q.amounts[QUOTA_DAY] == 9, bad[i]);
    }
    is_string(quota_period_word(QUOTA_DAY), "day", "its word");
    is_number(quota_period_ms(QUOTA_HOUR), HOUR_MS, "its length");
}

/* 2026-12-01 */
#define RAMP INT64_C(1796083200000)

TEST(ramp)
{
    static const char *const bad[] = {
        "200/d..50000/d", "200/d..50000/d in 30d", "200/d..50000/d in 30d since", "200/d..50000/d in 30d since 2026-13-01",
        "200/d..50000/d in 30d since 2026-12-32", "200/d..50000/d in 30d since 2026-02-29", "200/d..50000/d in 30d since 2026-12-00", "200/d..50000/d in 30d since 26-12-01", "200/d..50000/d in 30d since 2026-12-01 x",
        "200/d..50000/h in 30d since 2026-12-01", "200/h..50000/h in 30d since 2026-12-01", "200/d..200/d in 30d since 2026-12-01",
        "300/d..200/d in 30d since 2026-12-01", "200/d..50000/d in 0d since 2026-12-01", "200/d..50000/d in 366d since 2026-12-01",
        "200/d..50000/d in 30 since 2026-12-01", "200/d..50000/d in 30h since 2026-12-01", "5/d,200/d..50000/d in 30d since 2026-12-01",
        "200/d..50000/d in 30d since 2026-12-01,5/d", "..5/d in 3d since 2026-12-01", "5/d.. in 3d since 2026-12-01", "0/d..5/d in 3d since 2026-12-01",
        "200/d..50000/d on 30d since 2026-12-01", "200/d..50000/d in 30d at 2026-12-01", "200/d..50000/d in 30d since 1969-12-31"};
    struct quota q, plain = {.first = 0};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!quota_parse_ramp(text_from(bad[i]), &q), bad[i]);
    ok(quota_parse_ramp(TEXT("200/d..50000/d+in+30d+since+2026-12-01,100/m"), &q));
    ok(!quota_parse(TEXT("200/d..50000/d in 30d since 2026-12-01"), &plain) && plain.amounts[QUOTA_DAY] == 0);
    is_number(q.since_ms, RAMP, "midnight of that day");
    ok(!quota_is_none(&q));
    is_number(quota_on(&q, RAMP - DAY_MS * 1000).amounts[QUOTA_DAY], 200, "long before");
    is_number(quota_on(&q, RAMP - 1).amounts[QUOTA_DAY], 200, "before");
    is_number(quota_on(&q, RAMP).amounts[QUOTA_DAY], 200, "day 0");
    is_number(quota_on(&q, RAMP + DAY_MS - 1).amounts[QUOTA_DAY], 200, "its end");
    is_number(quota_on(&q, RAMP + DAY_MS).amounts[QUOTA_DAY], 240, "a fifth more");
    is_number(quota_on(&q, RAMP + 15 * DAY_MS).amounts[QUOTA_DAY], 3162, "half of the way: the geometric mean");
    is_number(quota_on(&q, RAMP + 30 * DAY_MS).amounts[QUOTA_DAY], 50000, "the last day");
    is_number(quota_on(&q, RAMP + 4000 * DAY_MS).amounts[QUOTA_DAY], 50000, "and for ever");
    is_number(quota_on(&q, RAMP).amounts[QUOTA_MINUTE], 100, "the minute stays");
    ok_named(quota_on(&q, RAMP).first == 0, "without a ramp");
    is_number(quota_grows_ms(&q, RAMP - 5 * DAY_MS), RAMP + DAY_MS, "it grows on day 1");
    is_number(quota_grows_ms(&q, RAMP), RAMP + DAY_MS, "from day 0");
    is_number(quota_grows_ms(&q, RAMP + DAY_MS), RAMP + 2 * DAY_MS, "then on day 2");
    is_number(quota_grows_ms(&q, RAMP + 30 * DAY_MS), INT64_MAX, "and ends");
    uint32_t before = 0;
    bool rises = true;
    for (int day = 0; day <= 31; day++) {
        uint32_t now = quota_on(&q, RAMP + day * DAY_MS).amounts[QUOTA_DAY];
        rises = rises && now >= before && now >= 200 && now <= 50000;
        before = now;
    }
    ok_named(rises, "no day has less than the one before");
    ok(quota_parse_ramp(TEXT("1/d..100000000/d in 1d since 2024-02-29"), &q));
    is_number(quota_on(&q, q.since_ms + DAY_MS).amounts[QUOTA_DAY], 100000000, "in one step");
    is_number(q.since_ms, INT64_C(1709164800000), "a leap day");
    ok(quota_parse_ramp(TEXT("1/d..2/d in 365d since 2026-12-01"), &q));
    is_number(quota_on(&q, RAMP + 364 * DAY_MS).amounts[QUOTA_DAY], 1, "rounded down");
}

static void
send_some(struct quota_use *use, uint32_t count, int64_t now_ms)
{
    quota_reserve(use, count);
    quota_settle(use, count, count, now_ms);
}

TEST(use)
{
    struct quota q = quota("10/d");
    struct quota_use use = {.reserved = 0};
    enum quota_period period = QUOTA_SECOND;
    is_number(quota_left(&use, &q, NOW), 10, "all are left");
    is_number(quota_ready_ms(&use, &q, 10, NOW, &period), NOW, "all of them now");
    is_number(quota_ready_ms(&use, &q, 11, NOW, &period), INT64_MAX, "more never");
    is_number(period, QUOTA_DAY, "because of the day");
    quota_reserve(&use, 4);
    is_number(quota_left(&use, &q, NOW), 6, "reserved ones count");
    is_number(quota_left(&use, &q, NOW + 9 * DAY_MS), 6, "however long that takes");
    quota_settle(&use, 4, 1, NOW);
    is_number(quota_left(&use, &q, NOW), 9, "those not sent are given back");
    send_some(&use, 9, NOW);
    is_number(quota_left(&use, &q, NOW), 0, "none is left");
    is_number(quota_used(&use, QUOTA_DAY, NOW), 10, "ten are used");
    is_number(quota_used(&use, QUOTA_HOUR, NOW), 10, "in the hour, too");
    int64_t ready = quota_ready_ms(&use, &q, 1, NOW, &period);
    ok_named(ready >= NOW + DAY_MS, "not within a day");
    ok_named(ready <= NOW + DAY_MS + HOUR_MS, "but within 25 hours");
    is_number(quota_left(&use, &q, ready - 1), 0, "not a moment sooner");
    is_number(quota_left(&use, &q, ready), 10, "then all are back");
    is_number(quota_left(&use, &q, NOW - DAY_MS), 0, "a step back frees nothing");
    is_number(quota_left(&use, &q, NOW + 1000 * DAY_MS), 10, "a long time does");
}

TEST(ready_in_steps)
{
    struct quota q = quota("6/d");
    struct quota_use use = {.reserved = 0};
    enum quota_period period;
    int64_t start = NOW / HOUR_MS * HOUR_MS;
    for (int i = 0; i < 3; i++)
        send_some(&use, 2, start + i * HOUR_MS);
    int64_t now = start + 3 * HOUR_MS;
    is_number(quota_ready_ms(&use, &q, 1, now, &period), start + 25 * HOUR_MS, "one");
    is_number(quota_ready_ms(&use, &q, 2, now, &period), start + 25 * HOUR_MS, "two");
    is_number(quota_ready_ms(&use, &q, 3, now, &period), start + 26 * HOUR_MS, "three");
    is_number(quota_ready_ms(&use, &q, 6, now, &period), start + 27 * HOUR_MS, "six");
    quota_reserve(&use, 1);
    ok_named(quota_ready_ms(&use, &q, 6, now, &period) > start + 27 * HOUR_MS,
             "what is reserved leaves last");
    is_number(quota_left(&use, &q, start + 25 * HOUR_MS), 1, "and counts");
}

/* Several limits stand together. */
TEST(several)
{
    struct quota q = quota("10/d,3/h");
    struct quota_use use = {.reserved = 0};
    enum quota_period period = QUOTA_SECOND;
    int64_t now = NOW;
    send_some(&use, 3, now);
    is_number(quota_left(&use, &q, now), 0, "the hour's are used");
    int64_t ready = quota_ready_ms(&use, &q, 1, now, &period);
    is_number(period, QUOTA_HOUR, "by the hour");
    for (int i = 0; i < 2; i++) {
        now = ready;
        is_number(quota_left(&use, &q, now), 3, "the next hour has three");
        send_some(&use, 3, now);
        ready = quota_ready_ms(&use, &q, 1, now, &period);
    }
    now = ready;
    is_number(quota_left(&use, &q, now), 1, "the day has one more");
    send_some(&use, 1, now);
    ready = quota_ready_ms(&use, &q, 1, now, &period);
    is_number(period, QUOTA_DAY, "now the day decides");
    ok_named(ready >= NOW + DAY_MS, "a day after the first");
    q = quota("11/d,3/h");
    is_number(quota_left(&use, &q, now), 1, "a new quota knows the past");
    struct quota none = quota("none");
    is_number(quota_left(&use, &none, now), QUOTA_AMOUNT_MAX, "none is no limit");
    is_number(quota_ready_ms(&use, &none, 5, now, &period), now, "now");
}

/* --- Random arrivals ---------------------------------------------------------------- */

static uint64_t
next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static int
by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum { HELD = 64 };

struct trial {
    struct quota q;
    struct quota_use use;
    uint64_t random;
    int64_t now;
    int64_t held[HELD]; /* when they were reserved */
    size_t held_count, refused;
    int64_t *sent;
    size_t sent_count;
};

/* The receiver counts it at any time between the reservation and its end. */
static void
settle_one(struct trial *t)
{
    int64_t since = t->held[0], at = since + (int64_t)(next(&t->random) %
                                                       (uint64_t)(t->now - since + 1));
    bool is_sent = next(&t->random) % 8 != 0;
    if (is_sent)
        t->sent[t->sent_count++] = at;
    quota_settle(&t->use, 1, is_sent, t->now);
    memmove(t->held, t->held + 1, --t->held_count * sizeof(t->held[0]));
}

static void
arrive(struct trial *t)
{
    enum quota_period period;
    bool fits = quota_left(&t->use, &t->q, t->now) > 0;
    if (fits != (quota_ready_ms(&t->use, &t->q, 1, t->now, &period) <= t->now))
        ok_named(false, "the two answers agree");
    if (!fits) {
        t->refused++;
        return;
    }
    quota_reserve(&t->use, 1);
    t->held[t->held_count++] = t->now;
}

/* The most in any window of that length. */
static size_t
most_within(const struct trial *t, int64_t length_ms)
{
    size_t most = 0;
    for (size_t first = 0, last = 0; last < t->sent_count; last++) {
        while (t->sent[last] - t->sent[first] >= length_ms)
            first++;
        if (last - first + 1 > most)
            most = last - first + 1;
    }
    return most;
}

/* pause: of the mean of the times between two, in ms. */
static void
try_random(const char *limits, uint64_t pause, size_t arrivals, uint64_t seed)
{
    struct trial t = {.q = quota(limits), .random = seed, .now = NOW};
    t.sent = calloc(arrivals, sizeof(*t.sent));
    for (size_t i = 0; i < arrivals; i++) {
        uint64_t kind = next(&t.random) % 1000;
        /* Bursts, calm, and now and then a step of the clock. */
        t.now += kind < 2     ? (int64_t)(next(&t.random) % (400 * pause))
                 : kind < 700 ? 0
                              : (int64_t)(next(&t.random) % (7 * pause));
        while (t.held_count == HELD || (t.held_count > 0 && next(&t.random) % 3 == 0))
            settle_one(&t);
        if (kind == 999)
            t.now -= (int64_t)(next(&t.random) % pause);
        for (size_t j = 0; j < t.held_count; j++)
            t.held[j] = t.held[j] < t.now ? t.held[j] : t.now;
        arrive(&t);
    }
    qsort(t.sent, t.sent_count, sizeof(*t.sent), by_time);
    char name[200];
    bool used = true;
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++) {
        if (t.q.amounts[p] == 0)
            continue;
        size_t most = most_within(&t, quota_period_ms(p));
        snprintf(name, sizeof(name), "%s: at most %u a %s (%zu), %zu sent", limits,
                 t.q.amounts[p], quota_period_word(p), most, t.sent_count);
        ok_named(most <= t.q.amounts[p], name);
        used = used && most * 2 >= t.q.amounts[p];
    }
    snprintf(name, sizeof(name), "%s: and at least half of it; %zu waited", limits,
             t.refused);
    ok_named(used && t.refused > 0, name);
    free(t.sent);
}

TEST(random)
{
    try_random("100/d", 60000, 250000, 1);
    try_random("500/d,100/h", 30000, 250000, 2);
    try_random("20/s", 10, 250000, 3);
    try_random("40/m,5/s", 100, 250000, 4);
    try_random("1/h", 20000, 20000, 5);
}

/* A stolen password: 1,000 a second for an hour. */
TEST(flood)
{
    struct quota q = quota("500/d");
    struct quota_use use = {.reserved = 0};
    unsigned sent = 0;
    for (int64_t ms = 0; ms < HOUR_MS; ms++)
        if (quota_left(&use, &q, NOW + ms) > 0) {
            send_some(&use, 1, NOW + ms);
            sent++;
        }
    is_number(sent, 500, "3,600,000 tries, exactly 500 pass");
}

/* A steady stream gets its quota, but for a part of a 25th. */
TEST(steady)
{
    struct quota q = quota("240/h");
    struct quota_use use = {.reserved = 0};
    unsigned sent = 0;
    for (int64_t ms = 0; ms < 100 * HOUR_MS; ms += 1000)
        if (quota_left(&use, &q, NOW + ms) > 0) {
            send_some(&use, 1, NOW + ms);
            sent++;
        }
    ok_named(sent <= 24000 + 240, "no more than the quota");
    ok_named(sent >= 24000 * 24 / 25, "no less than 24 of 25 parts");
}

/* --- Over a restart ----------------------------------------------------------------- */

/* The new process counts its time from another moment. */
static void
test_restart_at(int64_t epoch, int64_t pause)
{
    struct quota q = quota("10/d");
    struct quota_use before = {.reserved = 0}, after = {.reserved = 0};
    uint32_t counts[QUOTA_SLOTS];
    int64_t end, restart = NOW + 5 * HOUR_MS + pause;
    enum quota_period period;
    send_some(&before, 3, NOW);
    send_some(&before, 4, NOW + 2 * HOUR_MS);
    quota_reserve(&before, 2);
    ok(quota_keep(&before, QUOTA_DAY, NOW + 5 * HOUR_MS, counts, &end));
    quota_restore(&after, QUOTA_DAY, restart - epoch, counts, end - epoch);
    is_number(quota_left(&after, &q, restart - epoch), 1, "what was reserved counts");
    int64_t ready = quota_ready_ms(&after, &q, 4, restart - epoch, &period) + epoch;
    ok_named(ready >= NOW + DAY_MS && ready <= NOW + DAY_MS + 2 * HOUR_MS,
             "the first leave after a day");
    ready = quota_ready_ms(&after, &q, 8, restart - epoch, &period) + epoch;
    ok_named(ready >= NOW + DAY_MS + 2 * HOUR_MS && ready <= NOW + DAY_MS + 4 * HOUR_MS,
             "the next two hours later");
}

TEST(restart)
{
    for (int i = 0; i < 50; i++)
        test_restart_at(NOW - 1234567 * i, 7654321 * i % HOUR_MS);
    struct quota_use use = {.reserved = 0};
    uint32_t counts[QUOTA_SLOTS];
    int64_t end;
    ok_named(!quota_keep(&use, QUOTA_DAY, NOW, counts, &end), "nothing to keep");
    send_some(&use, 5, NOW);
    ok_named(!quota_keep(&use, QUOTA_MINUTE, NOW + HOUR_MS, counts, &end), "it is over");
    ok_named(quota_keep(&use, QUOTA_DAY, NOW + HOUR_MS, counts, &end), "the day is not");
}

TEST(bad_file)
{
    struct quota q = quota("100000000/d");
    struct quota_use use = {.reserved = 0};
    enum quota_period period;
    uint32_t counts[QUOTA_SLOTS];
    memset(counts, 0xff, sizeof(counts));
    quota_restore(&use, QUOTA_DAY, NOW, counts, NOW + 1000 * DAY_MS);
    is_number(quota_left(&use, &q, NOW), 0, "counts are limited");
    ok_named(quota_ready_ms(&use, &q, 1, NOW, &period) <= NOW + DAY_MS + 2 * HOUR_MS,
             "a time in the future is now");
    quota_restore(&use, QUOTA_DAY, NOW, counts, INT64_MIN);
    is_number(quota_left(&use, &q, NOW), QUOTA_AMOUNT_MAX, "one long ago is over");
    quota_restore(&use, QUOTA_DAY, NOW, counts, INT64_MAX);
    is_number(quota_left(&use, &q, NOW), 0, "as far as numbers go");
}
