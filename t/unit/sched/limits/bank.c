/* The bank: rules one by one, then groups of up to 100 hosts at random, with deaths and
 * jumps of time. SEED=n, ROUNDS=n (of a group; 3,600 are ten million questions). */
#include "sched/limits/bank.h"

#include "t/support/tap.h"

#define START_US INT64_C(1700000000000000)
#define MS       INT64_C(1000)

enum { ROUNDS_DEFAULT = 120, PERIODS = 60, PERIODS_MAX = 1000, HOSTS_MAX = 100 };

static uint64_t state;

static unsigned
any(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static double
chance(void)
{
    return any(1000000) / 1000000.0;
}

static struct bank_grant
ask(struct bank *b, int64_t now_us, struct bank_question q)
{
    q.burst = q.burst ? q.burst : 1;
    q.weight = q.weight ? q.weight : 1;
    q.hosts = q.hosts ? q.hosts : 1;
    return bank_ask(b, TEXT("site"), now_us, &q);
}

/* --- One by one ------------------------------------------------------------------- */

TEST(tokens)
{
    struct bank *b = bank_new();
    struct bank_question q = {.interval_us = 100000, .want = 1000, .had = -1};
    struct bank_grant g = ask(b, START_US, q);
    is_number(g.tokens, 50, "a period's worth, for the bucket was empty");
    is_number(g.left_us, 5000000, "the period begins");
    q.again = true;
    is_number(ask(b, START_US + MS, q).tokens, 0, "nothing is left");
    q.again = false;
    g = ask(b, START_US + 5000 * MS, q);
    is_number(g.tokens, 50, "the next period's");
    q.back = 20;
    g = ask(b, START_US + 10000 * MS, q);
    is_number(g.tokens, 50, "what was not used in time is lost, for the burst is one");
    q.back = 0;
    g = ask(b, START_US + 42000 * MS, q);
    is_number(g.tokens, 41,
              "after a rest the burst, and the rest of the period with a fifth before");
    is_number(g.left_us, 3000000, "which ends then");
    g = ask(b, START_US + 50000 * MS, (struct bank_question){.had = -1});
    is_number(g.tokens, 0, "no rate: nothing to grant");
    bank_free(&b);
}

/* Hosts ask in the first fifth of a period, and what comes in it belongs to them. */
TEST(slack)
{
    struct bank *b = bank_new();
    struct bank_question q = {.interval_us = 100000, .want = 1000, .had = -1};
    (void)ask(b, START_US, q);
    is_number(ask(b, START_US + 5900 * MS, q).tokens, 50, "late by less than a fifth");
    is_number(ask(b, START_US + 13000 * MS, q).tokens, 31, "late by more");
    bank_free(&b);
}

/* Transactions given back of the last period count as far as the burst goes. */
TEST(back)
{
    struct bank *b = bank_new();
    struct bank_question q = {
        .interval_us = 100000, .want = 1000, .had = -1, .burst = 20};
    is_number(ask(b, START_US, q).tokens, 50, "the bucket was empty");
    q.back = 9;
    is_number(ask(b, START_US + 5000 * MS, q).tokens, 50, "a new bank believes nothing");
    q.back = 0;
    is_number(ask(b, START_US + 13000 * MS, q).tokens, 50, "a rest: the burst is full");
    is_number(ask(b, START_US + 15000 * MS, q).tokens, 50, "and used");
    q.back = 8;
    is_number(ask(b, START_US + 20000 * MS, q).tokens, 50, "that of the period");
    q.again = true;
    is_number(ask(b, START_US + 21500 * MS, q).tokens, 16, "and what comes back");
    q.back = 30;
    is_number(ask(b, START_US + 22500 * MS, q).tokens, 4, "no more than the burst");
    bank_free(&b);
}

/* The last hosts that want little get one in advance: all of them a tenth of a period. */
TEST(advance)
{
    struct bank *b = bank_new();
    struct bank_question all = {
        .interval_us = 100000, .want = 1000, .had = -1, .hosts = 7, .weight = 1000};
    struct bank_question one = {.interval_us = 100000, .want = 1, .had = -1, .hosts = 7};
    is_number(ask(b, START_US, all).tokens, 50, "one host takes all");
    is_number(ask(b, START_US + MS, all).tokens, 0, "nothing for another");
    int got = 0;
    for (int i = 0; i < 9; i++)
        got += ask(b, START_US + 2 * MS, one).tokens;
    is_number(got, 5, "those that want little get some in advance");
    is_number(ask(b, START_US + 5000 * MS, all).tokens, 22, "of the next period's");
    is_number(ask(b, START_US + 5000 * MS, all).tokens, 22, "in equal parts");
    one.hosts = 2;
    got = 0;
    for (int i = 0; i < 9; i++)
        got += ask(b, START_US + 5001 * MS, one).tokens;
    is_number(got, 3, "the one that is left, and no more than one a host");
    one.hosts = 7;
    one.want = 6;
    is_number(ask(b, START_US + 5002 * MS, one).tokens, 0, "nor those that want much");
    bank_free(&b);
}

/* It goes its own way. */
TEST(copy)
{
    struct bank *b = bank_new();
    struct bank_question q = {.interval_us = 100000, .want = 30, .had = -1};
    is_number(ask(b, START_US, q).tokens, 30, "a part");
    struct bank *copy = bank_copy(b);
    is_number(ask(b, START_US, q).tokens, 20, "and the rest");
    is_number(ask(copy, START_US, q).tokens, 20, "of which a copy does not know");
    is_number(bank_sites(copy), 1, "it has the site");
    bank_free(&b);
    is_number(ask(copy, START_US, q).tokens, 0, "for itself");
    bank_free(&copy);
}

TEST(weights)
{
    struct bank *b = bank_new();
    struct bank_question small = {
        .interval_us = 50000, .want = 3, .had = -1, .weight = 1};
    struct bank_question large = {
        .interval_us = 50000, .want = 5000, .had = -1, .weight = 3};
    int64_t now_us = START_US;
    (void)ask(b, now_us, large);
    (void)ask(b, now_us, small);
    now_us += BANK_PERIOD_US;
    is_number(ask(b, now_us, large).tokens, 75, "by weights: three of four parts");
    is_number(ask(b, now_us, small).tokens, 3, "no more than it wants");
    large.again = true;
    is_number(ask(b, now_us + 1500 * MS, large).tokens, 22,
              "what is left goes to those who ask again");
    now_us += BANK_PERIOD_US;
    large.again = false;
    large.chance = small.chance = 0.99;
    large.interval_us = small.interval_us = 30e6;
    now_us += 20 * BANK_PERIOD_US;
    (void)ask(b, now_us, large); /* a new site: nothing yet */
    int got = 0;
    for (int i = 0; i < 12; i++) {
        now_us += BANK_PERIOD_US;
        got += ask(b, now_us, large).tokens + ask(b, now_us, small).tokens;
    }
    is_number(got, 2, "two in a minute, in whose period nobody has luck");
    bank_free(&b);
}

static struct bank_grant
seats(struct bank *b, int64_t now_us, int before, int open, int need)
{
    return ask(b, now_us,
               (struct bank_question){.limit = 10,
                                      .had = -1,
                                      .before = before,
                                      .open = open,
                                      .need = need,
                                      .hosts = 4});
}

TEST(sessions)
{
    struct bank *b = bank_new();
    int64_t now_us = START_US;
    is_number(seats(b, now_us, 0, 0, 20).sessions, 3, "newborn: a part for each host");
    is_number(seats(b, now_us, 0, 5, 20).sessions, 5, "and what is open already");
    is_number(seats(b, now_us, 0, 0, 20).sessions, 2, "but never over the limit");
    is_number(seats(b, now_us, 0, 0, 20).sessions, 0, "the last has none");
    now_us += BANK_PERIOD_US;
    is_number(seats(b, now_us, 3, 3, 20).unmet, 4, "all had too few");
    is_number(seats(b, now_us, 5, 5, 20).sessions, 2, "no odd ones while one has none");
    is_number(seats(b, now_us, 2, 2, 20).sessions, 2, "equal parts");
    is_number(seats(b, now_us, 0, 0, 20).sessions, 0,
              "sessions that outlive a smaller lease still count");
    now_us += BANK_PERIOD_US;
    (void)seats(b, now_us, 3, 2, 20);
    (void)seats(b, now_us, 5, 2, 20);
    (void)seats(b, now_us, 2, 2, 20);
    is_number(seats(b, now_us, 0, 0, 20).sessions, 0, "for this period, too");
    now_us += BANK_PERIOD_US;
    is_number(seats(b, now_us, 0, 0, 20).sessions, 2, "until they have ended");
    now_us += 2 * BANK_PERIOD_US;
    is_number(seats(b, now_us, 0, 0, 20).sessions, 10,
              "what dead hosts had is free after two periods");
    bank_free(&b);
}

/* It knows nothing of the leases that another one gave before, in this period. */
TEST(emptied)
{
    struct bank *b = bank_new();
    struct bank_question again = {
        .limit = 10, .had = 3, .before = 2, .open = 2, .need = 9, .hosts = 4};
    is_number(ask(b, START_US + 2000 * MS, again).sessions, 3,
              "emptied: a host that asks again keeps its part");
    int64_t now_us = START_US + BANK_PERIOD_US;
    is_number(seats(b, now_us, 3, 2, 9).sessions, 3,
              "and one has no more in the next period, in which others use theirs");
    for (int i = 0; i < 3; i++)
        (void)seats(b, now_us, 2, 2, 2);
    now_us += BANK_PERIOD_US;
    is_number(seats(b, now_us, 3, 3, 9).sessions, 4, "then it knows who has how many");
    bank_free(&b);
}

/* Another Redis takes over, whose clock is behind. */
TEST(behind)
{
    struct bank *b = bank_new();
    struct bank_question q = {.interval_us = 100000,
                              .want = 1000,
                              .had = -1,
                              .limit = 8,
                              .hosts = 4,
                              .need = 9};
    is_number(ask(b, START_US, q).tokens, 50, "a period's worth");
    struct bank_grant g = ask(b, START_US - 7000 * MS, q);
    ok_named(g.tokens == 0 && g.left_us == 5000000, "a site's time does not go back");
    g = ask(b, START_US - 10000 * MS, q);
    ok_named(g.tokens == 0 && g.left_us == 5000000, "by two periods");
    g = ask(b, START_US - 11000 * MS, q);
    ok_named(g.tokens == 10 && g.left_us == 1000000 && g.sessions == 2,
             "but a site farther ahead is new: nothing waits for the clock");
    is_number(ask(b, START_US - 10000 * MS, q).tokens, 50, "it goes on");
    is_number(bank_sites(b), 1, "as the only one");
    bank_free(&b);
}

TEST(memory)
{
    struct bank *b = bank_new();
    struct bank_question q = {
        .interval_us = 1000, .burst = 1, .weight = 1, .had = -1, .hosts = 1};
    bank_ask(b, TEXT("a"), START_US, &q);
    bank_ask(b, TEXT("b"), START_US + 30000 * MS, &q);
    bank_ask(b, TEXT("a"), START_US + 50000 * MS, &q);
    is_number(bank_sites(b), 2, "two sites");
    bank_ask(b, TEXT("c"), START_US + 90000 * MS, &q);
    is_number(bank_sites(b), 2, "b is forgotten after a minute");
    for (unsigned i = 0; i < BANK_SITES_MAX; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%u", i);
        bank_ask(b, text_from(key), START_US + 95000 * MS, &q);
    }
    is_number(bank_sites(b), BANK_SITES_MAX, "the oldest give way to new ones");
    bank_ask(b, TEXT("0123456789012345678901234567890123456789"), START_US, &q);
    bank_ask(b, TEXT("01234567890123456789012345678901"), START_US, &q);
    is_number(bank_sites(b), BANK_SITES_MAX, "a long key is cut");
    bank_free(&b);
    bank_free(&b);
}

/* Each number of another process has its bounds. */
TEST(sound)
{
    enum { MAX = BANK_COUNT_MAX, LEFT_MAX = 3 * BANK_PERIOD_US };
    static const double odd[][13] = {
        {0.5}, {-1}, {1e300}, {0.0 / 0.0}, {1.0 / 0.0},
        {[1] = -1}, {[1] = MAX}, {[2] = -1}, {[2] = MAX + 1}, {[3] = -1}, {[3] = MAX + 1},
        {[4] = -1}, {[4] = BANK_WEIGHT_MAX}, {[5] = -1}, {[5] = 2}, {[6] = -1},
        {[6] = MAX + 1}, {[7] = -1}, {[7] = MAX + 1}, {[8] = -1}, {[8] = MAX + 2},
        {[9] = -1}, {[9] = MAX + 1}, {[10] = -1}, {[10] = MAX + 1},
        {[11] = 1.1}, {[11] = -0.1}, {[12] = -1}, {[12] = BANK_HOSTS_MAX}};
    static const struct bank_grant grants[] = {
        {.tokens = -1}, {.tokens = MAX + 1}, {.sessions = -1}, {.sessions = MAX + 1},
        {.counted = -1}, {.counted = MAX + 1}, {.unmet = -1}, {.unmet = MAX + 1},
        {.left_us = -1}, {.left_us = LEFT_MAX + 1}};
    struct bank_question q = {.burst = 1, .weight = 1, .had = -1, .hosts = 1};
    ok_named(bank_question_is_sound(&q), "the smallest numbers");
    q = (struct bank_question){1e15, MAX, MAX, MAX, BANK_WEIGHT_MAX, 1, MAX, MAX, MAX, MAX, MAX, 1, BANK_HOSTS_MAX};
    ok_named(bank_question_is_sound(&q), "the largest ones");
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        const double *n = odd[i]; /* added to the smallest ones */
        q = (struct bank_question){n[0], 1 + (int)n[1], (int)n[2], (int)n[3], 1 + (int)n[4], (int)n[5], (int)n[6],
                                   (int)n[7], -1 + (int)n[8], (int)n[9], (int)n[10], n[11], 1 + (int)n[12]};
        ok_named(!bank_question_is_sound(&q), "an odd question");
    }
    ok_named(bank_grant_is_sound(&(struct bank_grant){.tokens = 0}) &&
                 bank_grant_is_sound(&(struct bank_grant){MAX, MAX, MAX, MAX, LEFT_MAX}), "grants within bounds");
    for (size_t i = 0; i < sizeof(grants) / sizeof(*grants); i++)
        ok_named(!bank_grant_is_sound(&grants[i]), "an odd grant");
}

/* --- Groups ----------------------------------------------------------------------- */

struct host {
    int granted, returned;  /* tokens of its last question's period */
    int64_t asked;          /* that period */
    int before, had, lease; /* sessions: counted before, counted now, granted */
    int held;               /* the most that it may have open */
    int open;
    int behind;          /* periods in a row without a session */
    int seated;          /* with one */
    int yields;          /* questions with need 0 to come */
    int64_t waits_since; /* a period; 0: it does not wait */
    bool is_dead, is_hungry;
    unsigned at; /* ms of the period in which it asks */
};

struct group {
    struct bank *bank;
    struct host hosts[HOSTS_MAX];
    int count;
    double interval_us;
    int burst, limit;
    bool are_all_hungry; /* and nobody dies: waits are measured */
    int64_t period, born, begun;
    int64_t granted[PERIODS_MAX]; /* less what is given back in that period */
    int64_t used[PERIODS_MAX];    /* less what of it is given back later */
    int64_t over, starved;
    long asked;
    int64_t clock_us; /* the bank's, perhaps behind what it was */
};

static void
host_wait(struct group *g, struct host *h, int need)
{
    if (need == 0 || h->lease > 0) {
        h->waits_since = 0;
        return;
    }
    if (h->waits_since == 0)
        h->waits_since = g->period;
    /* 90 s x hosts / limit, but at least two periods for the first one. */
    int64_t waited_s = (g->period - h->waits_since) * 5;
    if (g->are_all_hungry && g->limit > 0 &&
        waited_s > 10 + INT64_C(90) * g->count / g->limit)
        g->starved++;
}

/* A host whose session others may need gives it away after 30 s. */
static int
host_need(struct group *g, struct host *h, int work)
{
    if (h->yields > 0) {
        if (h->before == 0)
            h->yields--;
        return 0;
    }
    if (g->limit < g->count && h->seated >= 6) {
        h->yields = 1;
        h->seated = 0;
        return 0;
    }
    return work;
}

static void
host_ask(struct group *g, struct host *h, int64_t now_us)
{
    bool again = h->asked == g->period;
    int work = h->is_hungry ? 1 + (int)any(500) : (int)any(3);
    if (!again) {
        h->before = h->asked == g->period - 1 ? h->had : 0;
        h->had = -1;
    }
    int need = again ? work : host_need(g, h, work);
    need = need < g->limit ? need : g->limit;
    if (h->yields > 0)
        h->open = h->held = need = 0;
    /* Some of the last question's tokens were used; those of this period stay. */
    int unused = h->granted > 0 ? (int)any((unsigned)h->granted + 1) : 0;
    if (h->is_hungry && any(4) != 0)
        unused = 0;
    if (h->asked < g->period - 1 || again)
        unused = 0;
    struct bank_question q = {.interval_us = g->interval_us,
                              .burst = g->burst,
                              .limit = g->limit,
                              .want = 2 * work + 1,
                              .weight = 1 + (int)any(h->is_hungry ? 5 : 2),
                              .again = again,
                              .back = unused,
                              .before = h->before,
                              .had = h->had,
                              .open = h->open,
                              .need = need,
                              .chance = chance(),
                              .hosts = g->count};
    struct bank_grant a = bank_ask(g->bank, TEXT("s"), now_us, &q);
    g->asked++;
    g->granted[g->period] += a.tokens - unused;
    g->used[g->period] += a.tokens;
    if (unused > 0)
        g->used[h->asked] -= unused;
    h->granted = again ? h->granted + a.tokens : a.tokens;
    h->asked = g->period;
    h->had = a.counted;
    h->lease = a.sessions;
    h->held = a.counted;
    if (!again) {
        h->behind = need > 0 && a.sessions == 0 ? h->behind + 1 : 0;
        h->seated = a.unmet > 0 && a.sessions > 0 ? h->seated + 1 : 0;
        host_wait(g, h, need);
    }
}

static void
group_check_sessions(struct group *g)
{
    int64_t sum = 0;
    for (int i = 0; i < g->count; i++)
        if (g->hosts[i].asked >= g->period - 1)
            sum += g->hosts[i].held;
    if (g->limit > 0 && g->period > g->born + 1 && sum > g->limit)
        g->over++;
}

/* Sessions begin and end. */
static void
host_live(struct host *h)
{
    if (h->open > h->lease && any(3) == 0) /* those over the lease end */
        h->open = h->lease;
    else if (h->open < h->lease)
        h->open += (int)any((unsigned)(h->lease - h->open) + 1);
    h->held = h->open > h->lease ? h->open : h->lease;
}

/* Back, by the clock of another Redis, once the period has begun; not so far that the site
 * would be new. */
static int64_t
group_jump_us(struct group *g)
{
    bool has_begun = g->begun == g->period;
    g->begun = g->period;
    return has_begun && any(40) == 0 ? any(BANK_AHEAD_PERIODS * BANK_PERIOD_US) : 0;
}

static void
group_period(struct group *g)
{
    for (int i = 0; i < g->count; i++) {
        struct host *h = &g->hosts[i];
        if (h->asked < g->period - 1) /* its lease has ended */
            *h = (struct host){.is_dead = h->is_dead,
                               .is_hungry = h->is_hungry,
                               .asked = h->asked,
                               .waits_since = h->waits_since,
                               .behind = h->behind};
        if (!g->are_all_hungry && any(50) == 0)
            h->is_dead = !h->is_dead;
        h->at = (500 + any(500)) / (1 + (unsigned)h->behind);
    }
    for (unsigned ms = 0; ms < 5000; ms++) {
        if (ms % 500 == 0)
            group_check_sessions(g);
        for (int i = 0; i < g->count && (ms < 1001 || ms % 700 == 0); i++) {
            struct host *h = &g->hosts[i];
            bool is_late = ms >= 1400 && h->asked == g->period && any(4) == 0;
            if (h->is_dead)
                continue;
            if (ms == h->at || is_late)
                host_ask(g, h, g->clock_us + ms * MS - group_jump_us(g));
            if (ms % 1000 == 999 || ms == h->at)
                host_live(h);
        }
    }
    group_check_sessions(g);
}

/* The most that any window of periods had beyond its rate. */
static double
group_excess(const struct group *g, const int64_t counts[PERIODS_MAX])
{
    double most = 0, sum = 0;
    for (int64_t p = 0; p <= g->period; p++) {
        sum += (double)counts[p] - BANK_PERIOD_US / g->interval_us;
        if (sum < 0)
            sum = 0;
        if (sum > most)
            most = sum;
    }
    return most - 1e-6; /* of so many roundings */
}

static void
group_make(struct group *g)
{
    static const double intervals[] = {1000, 7777.7, 60000, 1e6, 142857.142857, 3e7};
    static const int limits[] = {1, 2, 5, 20, 100, 0};
    *g = (struct group){.bank = bank_new(),
                        .count = 1 + (int)any(any(3) ? 20 : HOSTS_MAX),
                        .interval_us = intervals[any(6)],
                        .burst = any(2) ? 1 : 1 + (int)any(100),
                        .limit = limits[any(6)],
                        .are_all_hungry = any(3) == 0,
                        .period = 1,
                        .born = 1};
    for (int i = 0; i < g->count; i++)
        g->hosts[i].is_hungry = g->are_all_hungry || any(2);
    for (int i = 0; i < g->count; i++)
        g->hosts[i].asked = -9;
}

static void
test_groups(long rounds)
{
    static struct group g;
    long asked = 0, fast = 0, faster = 0, over = 0, starved = 0;
    for (long r = 0; r < rounds; r++) {
        group_make(&g);
        for (int i = 0; i < PERIODS; i++) {
            if (!g.are_all_hungry && any(20) == 0) /* the bank's clock jumps */
                g.period += any(8);
            g.clock_us = START_US + g.period * BANK_PERIOD_US;
            group_period(&g);
            g.period++;
        }
        asked += g.asked;
        over += g.over;
        starved += g.starved;
        if (group_excess(&g, g.granted) > g.burst + g.count)
            fast++;
        if (group_excess(&g, g.used) > g.burst + g.count)
            faster++;
        bank_free(&g.bank);
    }
    printf("# %ld questions\n", asked);
    ok_named(asked > rounds * PERIODS, "hosts have asked");
    is_number(fast, 0, "granted in any window: the rate, the burst and one a host");
    is_number(faster, 0, "used: not more either, for what goes back is counted once");
    is_number(over, 0, "sessions are never over the limit");
    is_number(starved, 0, "no host with work waits for long");
}

int
main(void)
{
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");
    state = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    tap_tests("");
    test_groups(rounds != NULL ? strtol(rounds, NULL, 10) : ROUNDS_DEFAULT);
    return done();
}
