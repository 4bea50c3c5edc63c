/* Health of addresses: forgiven, suspect, held; the order in which they are tried. */
#include "sched/limits/limits_internal.h"

#include "t/support/tap.h"

#define START INT64_C(1700000000000)
#define A     TEXT("192.0.2.1")

static uint64_t dice = 7;

TEST(states)
{
    struct hosts *hosts = hosts_new();
    struct host_view v = hosts_find(hosts, START, A);
    is_number(v.state, HOST_UNKNOWN, "unknown");
    is_number(v.service_ms, -1, "never measured");
    hosts_good(hosts, START, A, 100);
    v = hosts_find(hosts, START, A);
    is_number(v.state, HOST_OK, "good");
    is_number(v.service_ms, 100, "the first greeting is the average");
    is_number(v.good_at_ms, START, "when");
    hosts_good(hosts, START, A, 200);
    is_number(hosts_find(hosts, START, A).service_ms, 125, "a quarter of the next");
    for (int i = 1; i <= HOSTS_SLIPS; i++) {
        hosts_bad(hosts, START + 60000, A, &dice);
        v = hosts_find(hosts, START + 60000, A);
        is_number(v.state, HOST_SUSPECT, "a slip is forgiven");
        is_number(v.failures, i, "but counted");
    }
    hosts_good(hosts, START + 60000, A, 125);
    is_number(hosts_find(hosts, START, A).state, HOST_OK, "good again");
    for (int i = 0; i <= HOSTS_SLIPS; i++)
        hosts_bad(hosts, START + 60000, A, &dice);
    v = hosts_find(hosts, START + 60000, A);
    is_number(v.state, HOST_HELD, "one more in a row is not forgiven");
    ok(v.until_ms >= START + 90000 && v.until_ms <= START + 93000);
    is_number(hosts_find(hosts, v.until_ms - 1, A).state, HOST_HELD, "till then");
    is_number(hosts_find(hosts, v.until_ms, A).state, HOST_SUSPECT, "then suspect");
    hosts_good(hosts, v.until_ms, A, 125);
    hosts_bad(hosts, v.until_ms + 60001, A, &dice);
    is_number(hosts_find(hosts, v.until_ms + 60001, A).state, HOST_HELD,
              "good too long ago: held at once");
    hosts_free(&hosts);
    ok(hosts == NULL);
    hosts_free(&hosts);
}

TEST(holds)
{
    static const int64_t want[] = {30, 60, 120, 240, 480, 900, 900};
    struct hosts *hosts = hosts_new();
    int64_t now = START;
    bool varied = false;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        hosts_bad(hosts, now, A, &dice);
        int64_t until = hosts_find(hosts, now, A).until_ms;
        hosts_bad(hosts, now + 1, A, &dice);
        is_number(hosts_find(hosts, now, A).until_ms, until, "those under way: no more");
        int64_t hold = until - now;
        ok_named(hold >= want[i] * 1000 && hold <= want[i] * 1100, "twice as long");
        varied |= hold != want[i] * 1000;
        now = until;
    }
    ok_named(varied, "not to the second");
    is_number(hosts_find(hosts, now, A).failures, 7, "failures in a row");
    hosts_good(hosts, now, A, 5);
    for (int i = 0; i <= HOSTS_SLIPS; i++)
        hosts_bad(hosts, now, A, &dice);
    ok_named(hosts_find(hosts, now, A).until_ms <= now + 33000, "good: from the beginning");
    hosts_free(&hosts);
}

enum { COUNT = 6 };

static const struct text six[COUNT] = {
    {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1},
};

static bool
is_permutation(const size_t *order, size_t count)
{
    unsigned seen = 0;
    for (size_t i = 0; i < count; i++)
        seen |= 1U << order[i];
    return seen == (1U << count) - 1;
}

TEST(order)
{
    static const int groups[COUNT] = {10, 10, 10, 20, 20, 20};
    struct hosts *hosts = hosts_new();
    size_t order[COUNT];
    bool good = true, best = true, last = true;
    hosts_good(hosts, START, six[0], 10);
    hosts_bad(hosts, START, six[0], &dice);     /* suspect */
    hosts_bad(hosts, START, six[3], &dice);     /* held */
    hosts_bad(hosts, START - 5000, six[1], &dice); /* held, ends sooner */
    for (int i = 0; i < 1000; i++) {
        hosts_order(hosts, START, six, groups, COUNT, &dice, order);
        good &= is_permutation(order, COUNT);
        best &= order[0] == 2 && order[1] == 0;
        last &= order[4] == 1 && order[5] == 3 && order[2] >= 4 && order[3] >= 4;
    }
    ok_named(good, "each once");
    ok_named(best, "the best preference first, suspect ones last of it");
    ok_named(last, "held ones behind all, the soonest first");
    hosts_order(hosts, START, six, groups, 0, &dice, order);
    hosts_order(hosts, START, six, groups, 1, &dice, order);
    is_number(order[0], 0, "the only one");
    for (size_t i = 0; i < COUNT; i++) {
        hosts_bad(hosts, START + 100000, six[i], &dice);
        for (int j = 0; j <= HOSTS_SLIPS; j++)
            hosts_bad(hosts, START + 100000, six[i], &dice);
    }
    hosts_order(hosts, START + 100000, six, groups, COUNT, &dice, order);
    ok_named(is_permutation(order, COUNT), "all held: all there");
    bool sorted = true;
    for (size_t i = 1; i < COUNT; i++)
        sorted &= hosts_find(hosts, START, six[order[i - 1]]).until_ms <=
                  hosts_find(hosts, START, six[order[i]]).until_ms;
    ok_named(sorted, "soonest first");
    hosts_free(&hosts);
}

static void
count_first(struct hosts *hosts, size_t count, int first[COUNT])
{
    static const int groups[COUNT] = {0};
    size_t order[COUNT];
    memset(first, 0, COUNT * sizeof(*first));
    for (int i = 0; i < 6000; i++) {
        hosts_order(hosts, START, six, groups, count, &dice, order);
        first[order[0]]++;
    }
}

TEST(weights)
{
    struct hosts *hosts = hosts_new();
    int first[COUNT];
    bool even = true;
    count_first(hosts, COUNT, first);
    for (int i = 0; i < COUNT; i++)
        even &= first[i] > 850 && first[i] < 1150;
    ok_named(even, "none measured: a shuffle");
    hosts_good(hosts, START, six[0], 100);
    hosts_good(hosts, START, six[1], 300);
    count_first(hosts, 2, first);
    printf("# 100 ms: %d, 300 ms: %d\n", first[0], first[1]);
    ok_named(first[0] > 4350 && first[0] < 4650, "three times as fast, three times as often");
    count_first(hosts, 3, first);
    ok_named(first[2] > 2400 && first[2] < 2750, "one not measured like the fastest");
    hosts_good(hosts, START, six[2], INT64_MAX);
    count_first(hosts, 3, first);
    ok_named(first[2] < 20, "a very slow one hardly ever");
    hosts_good(hosts, START, six[3], -5);
    is_number(hosts_find(hosts, START, six[3]).service_ms, 0, "no time at all");
    count_first(hosts, 4, first);
    ok_named(first[3] > 5700 && first[0] > 0, "very often, not always");
    hosts_free(&hosts);
}

TEST(limit)
{
    struct hosts *hosts = hosts_new();
    char address[HOSTS_ADDRESS_MAX + 2];
    for (int i = 0; i < HOSTS_MAX; i++) {
        snprintf(address, sizeof(address), "host%d", i);
        hosts_good(hosts, START, text_from(address), 1);
    }
    hosts_bad(hosts, START, TEXT("host0"), &dice);
    hosts_good(hosts, START, A, 1);
    is_number(hosts_count(hosts), HOSTS_MAX, "bounded");
    is_number(hosts_find(hosts, START, TEXT("host0")).state, HOST_SUSPECT, "used: stays");
    is_number(hosts_find(hosts, START, TEXT("host1")).state, HOST_UNKNOWN, "unused: goes");
    is_number(hosts_find(hosts, START, A).state, HOST_OK, "the new one");
    memset(address, 'x', sizeof(address));
    hosts_good(hosts, START, text_of(address, HOSTS_ADDRESS_MAX), 1);
    is_number(hosts_find(hosts, START, text_of(address, HOSTS_ADDRESS_MAX)).state, HOST_OK,
              "the longest address");
    hosts_free(&hosts);
}

TEST(shift)
{
    struct hosts *hosts = hosts_new();
    hosts_bad(hosts, START, A, &dice);
    hosts_good(hosts, START, six[0], 1);
    int64_t until = hosts_find(hosts, START, A).until_ms, delta = -3600000;
    hosts_shift(hosts, delta);
    is_number(hosts_find(hosts, START + delta, A).until_ms, until + delta, "set back");
    is_number(hosts_find(hosts, START, A).good_at_ms, 0, "never stays never");
    is_number(hosts_find(hosts, START, six[0]).good_at_ms, START + delta, "good then");
    is_number(hosts_find(hosts, START, six[0]).until_ms, 0, "not held");
    hosts_free(&hosts);
}
