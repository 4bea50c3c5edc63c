/* Leases: each rule, then groups of hosts with a bank, without one, and with one that
 * comes and goes, in virtual time. */
#include "sched/limits/lease.h"
#include "sched/limits/retry.h"

#include "t/support/tap.h"

#include <limits.h>

#define START_MS (INT64_C(1700000000000))

enum { HOSTS_MAX = 10, SPENT_MAX = 12000, QUEUE_MAX = 200 };

static uint64_t seed = 1;

/* With the burst that a rate has unless it says another. */
static struct lease_terms
terms(uint32_t amount, int64_t period_ms, int sessions)
{
    uint32_t burst = (uint32_t)(amount * 1000 / period_ms);
    return (struct lease_terms){
        .rate = {amount, burst > 0 ? burst : 1, period_ms},
        .sessions = sessions,
        .is_strict = true,
        .has_bank = true,
        .members = 1
    };
}

static struct bank_grant
grant(int tokens, int sessions, int64_t left_ms)
{
    return (struct bank_grant){tokens, sessions, sessions, 0, left_ms * 1000};
}

/* --- One host --------------------------------------------------------------------- */

TEST(questions)
{
    struct lease l = {0};
    struct lease_terms t = terms(100, 1000, 0);
    struct lease_load some = {.works = 40, .senders = 3, .need = 5}, none = {0};
    struct bank_question q;
    lease_update(&l, START_MS, &t, &none);
    is_number(lease_ask_ms(&l, &t), INT64_MAX, "nothing waits: no question");
    lease_update(&l, START_MS, &t, &some);
    is_number(lease_ask_ms(&l, &t), START_MS, "mail comes: it asks immediately");
    ok(lease_ready_ms(&l, START_MS, &t) > START_MS);
    ok(lease_ask(&l, START_MS, &t, &some, &seed, &q));
    ok_named(q.want == 40 && q.weight == 3 && q.interval_us == 10000 && !q.again &&
                 q.had == -1 && q.back == 0,
             "for what waits, and in the name of its senders");
    is_number(lease_ask_ms(&l, &t), INT64_MAX, "one question");
    struct bank_grant g = grant(20, 5, 3000);
    lease_granted(&l, &t, &g, &seed);
    ok_named(lease_ready_ms(&l, START_MS, &t) <= START_MS, "granted");
    is_number(lease_ask_ms(&l, &t), START_MS + LEASE_AGAIN_MS,
              "less than it wanted: it asks again in a quarter of a period");
    for (int i = 0; i < 5; i++)
        lease_take(&l, START_MS, &t);
    ok(lease_ask(&l, START_MS + LEASE_AGAIN_MS, &t, &some, &seed, &q));
    ok_named(q.again && q.want == 25 && q.back == 0, "for the rest");
    g = grant(3, 5, 1750);
    lease_granted(&l, &t, &g, &seed);
    int64_t next = lease_ask_ms(&l, &t);
    ok_named(next >= START_MS + 3500 && next <= START_MS + 4000,
             "once; then in the first fifth of the next period");
    ok(lease_ask(&l, next, &t, &none, &seed, &q));
    is_number(q.back, 18, "what is unspent goes back");
    is_number(q.want, 10, "it wants what it used, and as much again");
    lease_take(&l, next, &t);
    g = grant(11, 0, 4000);
    lease_granted(&l, &t, &g, &seed);
    next = lease_ask_ms(&l, &t);
    ok(lease_ask(&l, next, &t, &none, &seed, &q));
    is_number(q.back, 10, "but not what began before the answer");
    g = grant(0, 0, 4000);
    lease_granted(&l, &t, &g, &seed);
    ok(!lease_ask(&l, lease_ask_ms(&l, &t), &t, &none, &seed, &q));
    next = lease_ask_ms(&l, &t);
    ok_named(!lease_ask(&l, next, &t, &none, &seed, &q) &&
                 lease_ask_ms(&l, &t) == INT64_MAX,
             "nothing waits, and nothing was used: no question");
}

/* It got all that it wanted, and then more mail comes. */
TEST(again)
{
    struct lease l = {0};
    struct lease_terms t = terms(1, 1000, 0);
    struct lease_load load = {.works = 2, .senders = 1}, none = {.open = 1};
    struct bank_question q;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &seed, &q) && q.want == 2);
    struct bank_grant g = grant(2, 0, 4000);
    lease_granted(&l, &t, &g, &seed);
    int64_t next = lease_ask_ms(&l, &t);
    lease_take(&l, START_MS, &t);
    lease_update(&l, START_MS, &t, &load);
    is_number(lease_ask_ms(&l, &t), next, "one is left: no question");
    lease_take(&l, START_MS, &t);
    load.works = 0;
    lease_update(&l, START_MS, &t, &load);
    is_number(lease_ask_ms(&l, &t), next, "nothing waits: none");
    load.works = 1;
    lease_update(&l, START_MS, &t, &load);
    is_number(lease_ask_ms(&l, &t), START_MS + LEASE_SOON_MS, "both: soon");
    ok(lease_ask(&l, START_MS + 250, &t, &load, &seed, &q) && q.again && q.want == 1);
    g = grant(1, 0, 3750);
    lease_granted(&l, &t, &g, &seed);
    lease_take(&l, START_MS + 300, &t);
    lease_update(&l, START_MS + 900, &t, &load);
    is_number(lease_ask_ms(&l, &t), START_MS + 900, "immediately, if that was long ago");
    ok(lease_ask(&l, START_MS + 900, &t, &load, &seed, &q) && q.again);
    g = grant(0, 0, 3100);
    lease_granted(&l, &t, &g, &seed);
    lease_update(&l, START_MS + 2000, &t, &load);
    ok_named(lease_ask_ms(&l, &t) >= START_MS + 4000, "until it is refused");
    t = terms(0, 1000, 5);
    l = (struct lease){0};
    lease_update(&l, START_MS, &t, &none);
    ok(lease_ask(&l, START_MS, &t, &none, &seed, &q) && q.need == 0);
    g = grant(0, 0, 4000);
    lease_granted(&l, &t, &g, &seed);
    load = (struct lease_load){.works = 1, .senders = 1, .need = 1};
    lease_update(&l, START_MS + 1000, &t, &load);
    is_number(lease_ask_ms(&l, &t), START_MS + 1000, "the same of sessions");
    l.yields = 1;
    l.is_again = false;
    l.due_ms = START_MS + 5000;
    lease_update(&l, START_MS + 1000, &t, &load);
    is_number(lease_ask_ms(&l, &t), START_MS + 5000, "but of one that it gives away");
}

/* When the last of so many transactions may begin, all of which are granted. */
static int64_t
last_ms(const struct lease_terms *t, size_t works)
{
    struct lease l = {0};
    struct lease_load load = {.works = works, .senders = 1};
    struct bank_question q;
    uint64_t random = 1;
    int64_t now_ms = START_MS;
    lease_update(&l, START_MS, t, &load);
    ok(lease_ask(&l, START_MS, t, &load, &random, &q) && q.want == (int)works);
    struct bank_grant g = grant(q.want, 0, 4000);
    lease_granted(&l, t, &g, &random);
    for (size_t i = 0; i < works; i++) {
        int64_t ready_ms = lease_ready_ms(&l, now_ms, t);
        now_ms = ready_ms > now_ms ? ready_ms : now_ms;
        lease_take(&l, now_ms, t);
    }
    return now_ms - START_MS;
}

/* Far below the limit nothing waits for an even pace, and a ramp not for a quarter of a
 * second at each step. */
TEST(far)
{
    struct lease l = {0};
    struct lease_terms t = terms(1000, 1000, 0);
    struct lease_load load = {.works = 1, .senders = 1};
    struct bank_question q;
    uint64_t random = 1;
    int asked = 0;
    t.members = 2;
    lease_update(&l, START_MS, &t, &load);
    for (int used = 0; used < 127; asked++) {
        is_number(lease_ask_ms(&l, &t), START_MS, "one that grows asks immediately");
        ok(lease_ask(&l, START_MS, &t, &load, &random, &q));
        struct bank_grant g = grant(q.want, 0, 4000);
        lease_granted(&l, &t, &g, &random);
        for (; l.used < l.tokens; used++)
            lease_take(&l, START_MS, &t);
        lease_update(&l, START_MS, &t, &load);
    }
    is_number(asked, 7, "for as much again, so it asks a few times");
    is_number(lease_ask_ms(&l, &t), START_MS + LEASE_SOON_MS,
              "until it is not far any more");
    t = terms(100, 1000, 0);
    t.members = 2;
    is_number(last_ms(&t, 25), 400, "a tenth of the own part goes at the rate of that");
    ok_named(last_ms(&t, 26) > 3000, "more goes evenly");
}

TEST(pace)
{
    struct lease l = {0};
    struct lease_terms t = terms(10, 1000, 0);
    struct lease_load load = {.works = 1000, .senders = 1};
    struct bank_question q;
    t.rate.burst = 1;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &seed, &q));
    struct bank_grant g = grant(10, 0, 5000);
    lease_granted(&l, &t, &g, &seed);
    int64_t now_ms = START_MS, gap_ms = 0;
    for (int i = 0; i < 10; i++) {
        int64_t ready_ms = lease_ready_ms(&l, now_ms, &t);
        if (ready_ms - now_ms > gap_ms)
            gap_ms = ready_ms - now_ms;
        now_ms = ready_ms > now_ms ? ready_ms : now_ms;
        lease_take(&l, now_ms, &t);
    }
    is_number(gap_ms, 550, "ten transactions go evenly");
    is_number(now_ms, START_MS + 4950, "until the next answer may come");
    is_number(lease_ready_ms(&l, now_ms, &t), START_MS + 6250, "no eleventh");
    lease_shift(&l, 7000);
    is_number(lease_ready_ms(&l, now_ms + 7000, &t), START_MS + 13250,
              "the clock was set");
    t.rate.burst = 10;
    l = (struct lease){0};
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &seed, &q));
    g = grant(25, 0, 5000);
    lease_granted(&l, &t, &g, &seed);
    is_number(l.pace.burst, 5, "half of the group's transactions: half of its burst");
}

TEST(ends)
{
    struct lease l = {0};
    struct lease_terms t = terms(10, 1000, 8);
    struct lease_load load = {.works = 1000, .senders = 1, .need = 8};
    struct bank_question q;
    is_number(lease_sessions(&l, START_MS, &t, true), 0, "before the answer: none");
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &seed, &q));
    struct bank_grant g = grant(50, 6, 2000);
    lease_granted(&l, &t, &g, &seed);
    is_number(lease_sessions(&l, START_MS + 6999, &t, true), 6,
              "sessions last until the end of the next period");
    is_number(lease_wake_ms(&l, START_MS + 5000, &t), START_MS + 7000,
              "which wakes it");
    ok_named(lease_ready_ms(&l, START_MS + 3249, &t) <= START_MS + 3249,
             "transactions for a quarter of it");
    ok_named(lease_ask(&l, START_MS + 2500, &t, &load, &seed, &q) && q.before == 6 &&
                 q.had == -1,
             "the next question says what was counted");
    lease_failed(&l, START_MS + 2750);
    is_number(lease_ask_ms(&l, &t), START_MS + 3750, "no answer: again in a second");
    ok_named(lease_ask(&l, START_MS + 20000, &t, &load, &seed, &q) && q.before == 0 &&
                 q.back == 0,
             "after a pause nothing of it is left");
    g.unmet = 0;
    lease_granted(&l, &t, &g, &seed);
    lease_granted(&l, &t, &g, &seed);
    is_number(l.tokens, 50, "a second answer is none");
}

/* The bank may have counted a question whose answer is lost. */
TEST(lost)
{
    struct lease l = {0};
    struct lease_terms t = terms(10, 1000, 8);
    struct lease_load load = {.works = 1000, .senders = 1, .open = 3, .need = 8};
    struct bank_question q;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &seed, &q));
    lease_failed(&l, START_MS + 250);
    ok(lease_ask(&l, START_MS + 1250, &t, &load, &seed, &q));
    is_number(q.had, 0, "no answer: not the first question of the period");
    struct bank_grant g = grant(50, 6, 2000);
    lease_granted(&l, &t, &g, &seed);
    ok(lease_ask(&l, START_MS + 3500, &t, &load, &seed, &q));
    ok_named(q.had == -1 && q.before == 6 && q.back == 50,
             "the next period begins with what is unspent");
    lease_failed(&l, START_MS + 3750);
    ok(lease_ask(&l, START_MS + 4750, &t, &load, &seed, &q));
    ok_named(q.had == 0 && q.before == 6 && q.back == 0, "which goes back once");
    lease_shift(&l, 7000);
    lease_failed(&l, START_MS + 12000);
    ok(lease_ask(&l, START_MS + 15250, &t, &load, &seed, &q));
    is_number(q.had, -1, "nor does it count in another period");
    g = grant(5, 6, 5000);
    lease_granted(&l, &t, &g, &seed);
    ok(lease_ask(&l, START_MS + 16500, &t, &load, &seed, &q) && q.again);
    lease_failed(&l, START_MS + 16750);
    is_number(lease_sessions(&l, START_MS + 16750, &t, true), 3,
              "a second question may have been answered with what is open");
    ok(lease_ask(&l, START_MS + 17750, &t, &load, &seed, &q));
    ok_named(q.again && q.had == 3, "so much is certain");
}

/* Another bank has taken over, which may not know who has how many. */
TEST(doubt)
{
    struct lease l = {0};
    uint64_t random = 1;
    struct lease_terms t = terms(0, 1000, 20);
    struct lease_load load = {.works = 50, .senders = 1, .open = 4, .need = 20};
    struct bank_question q;
    t.members = 4;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &random, &q) && q.need == 20);
    struct bank_grant g = grant(0, 7, 1000);
    lease_granted(&l, &t, &g, &random);
    t.doubt_ms = START_MS + LEASE_DOUBT_MS;
    ok(lease_ask(&l, START_MS + 1500, &t, &load, &random, &q));
    is_number(q.need, 7, "in doubt it keeps what it had");
    g = grant(0, 7, 4500);
    lease_granted(&l, &t, &g, &random);
    load.open = 7;
    lease_update(&l, START_MS + 2000, &t, &load);
    ok_named(lease_ask_ms(&l, &t) >= START_MS + 6000, "and does not ask for more again");
    load.open = 9;
    ok(lease_ask(&l, lease_ask_ms(&l, &t), &t, &load, &random, &q));
    is_number(q.need, 9, "or what is open");
    lease_failed(&l, START_MS + 7000);
    load.open = 0;
    t.doubt_ms = START_MS + 30000;
    ok(lease_ask(&l, START_MS + 20000, &t, &load, &random, &q));
    is_number(q.need, 5, "one without a lease its own part");
    lease_failed(&l, START_MS + 20250);
    ok(lease_ask(&l, START_MS + 30000, &t, &load, &random, &q));
    is_number(q.need, 20, "then all that it would like");
}

/* Others that may be lost may go on with their own parts soon. */
TEST(others_late)
{
    struct lease l = {0};
    uint64_t random = 1;
    struct lease_terms t = terms(100, 1000, 20);
    struct lease_load load = {.works = 50, .senders = 1, .need = 20};
    struct bank_question q;
    t.members = 5;
    t.late = 1;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &random, &q));
    is_number(q.need, 4, "one may be lost: no more than the own part of the sessions");
    is_number(q.interval_us, 12500, "and what the others have of the rate");
    is_number(q.limit, 20, "of all of them");
    lease_failed(&l, START_MS + 250);
    t.late = 0;
    t.members = 4;
    t.lost = 1;
    ok(lease_ask(&l, START_MS + 1250, &t, &load, &random, &q));
    ok_named(q.need == 16 && q.limit == 16 && q.interval_us == 12500,
             "it is lost: its part is kept");
}

/* Idle sessions of the own part do not end in each period. */
TEST(busy)
{
    struct lease l = {0};
    struct lease_terms t = terms(0, 1000, 20);
    struct lease_load load = {.works = 3, .senders = 1, .need = 3};
    struct bank_question q;
    uint64_t random = 1;
    t.members = 4;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &random, &q) && q.need == 3);
    struct bank_grant g = grant(0, 3, 5000);
    lease_granted(&l, &t, &g, &random);
    load.need = 9;
    lease_update(&l, START_MS + 100, &t, &load);
    load = (struct lease_load){.open = 3};
    lease_update(&l, START_MS + 200, &t, &load);
    ok(lease_ask(&l, START_MS + 5000, &t, &load, &random, &q));
    is_number(q.need, 5, "it needs what it needed, as far as that is its own part");
    g = grant(0, 5, 5000);
    lease_granted(&l, &t, &g, &random);
    ok(lease_ask(&l, START_MS + 10000, &t, &load, &random, &q));
    is_number(q.need, 0, "but not for long");
}

/* The part that is kept for lost hosts is not asked for again and again. */
TEST(kept)
{
    struct lease l = {0};
    uint64_t random = 1;
    struct lease_terms t = terms(0, 1000, 20);
    struct lease_load load = {.works = 50, .senders = 1, .need = 20};
    struct bank_question q;
    t.members = 3;
    t.lost = 1;
    lease_update(&l, START_MS, &t, &load);
    ok(lease_ask(&l, START_MS, &t, &load, &random, &q) && q.need == 15);
    struct bank_grant g = grant(0, 15, 4000);
    lease_granted(&l, &t, &g, &random);
    load.open = 15;
    lease_update(&l, START_MS + 1000, &t, &load);
    ok_named(lease_ask_ms(&l, &t) >= START_MS + 4000,
             "a host that has all of it asks once in a period");
}

TEST(loose)
{
    struct lease l = {0};
    struct lease_terms t = terms(0, 1000, 20);
    t.is_strict = false;
    t.members = 3;
    t.lost = 1;
    struct lease_load load = {.works = 5, .need = 5};
    lease_update(&l, START_MS, &t, &load);
    is_number(lease_ask_ms(&l, &t), INT64_MAX,
              "a loose site asks for no part of its own");
    is_number(lease_sessions(&l, START_MS, &t, true), 5, "which it has");
    is_number(lease_ready_ms(&l, START_MS, &t), INT64_MIN, "without a rate");
    load.need = 6;
    lease_update(&l, START_MS, &t, &load);
    is_number(lease_ask_ms(&l, &t), START_MS, "more it asks for");
    struct bank_question q;
    ok(lease_ask(&l, START_MS, &t, &load, &seed, &q));
    is_number(q.limit, 15, "what the lost host may use is kept for it");
    struct bank_grant g = grant(0, 6, 5000);
    lease_granted(&l, &t, &g, &seed);
    is_number(lease_sessions(&l, START_MS, &t, true), 6, "and gets");
    t.sessions = 0;
    is_number(lease_sessions(&l, START_MS, &t, true), INT_MAX, "no limit");
    t.sessions = 2;
    is_number(lease_sessions(&l, START_MS + 99999, &t, true), 1, "at least one");
}

/* --- A group ---------------------------------------------------------------------- */

struct group {
    struct bank *bank;
    struct lease leases[HOSTS_MAX];
    int open[HOSTS_MAX];
    int64_t first_ms[HOSTS_MAX]; /* without a session since; 0: has one */
    int64_t waited_ms;           /* the most */
    struct lease_terms terms;
    int hosts;
    int cut, lost; /* the first hosts that reach no bank; of these the others know */
    int deaf;      /* of 100 answers so many are lost */
    int small;     /* the last hosts: they send a little, the others always have mail */
    int64_t queues[HOSTS_MAX][QUEUE_MAX]; /* of small ones: when each message came */
    int queued[HOSTS_MAX];
    int64_t small_sent, small_late, small_lost; /* after a second; two periods */
    int64_t now_ms;
    int64_t spent, used, over, most;
    int64_t leased_over; /* but for hosts without a lease, which have their own part */
    int64_t times[SPENT_MAX];
};

static void
group_open(struct group *g, const struct lease_terms *t)
{
    *g = (struct group){
        .bank = bank_new(), .terms = *t, .hosts = t->members, .now_ms = START_MS};
}

static void
group_ask(struct group *g, struct lease *l, const struct lease_load *load)
{
    struct bank_question q;
    if (lease_ask_ms(l, &g->terms) > g->now_ms ||
        !lease_ask(l, g->now_ms, &g->terms, load, &seed, &q))
        return;
    if (g->bank == NULL || l < &g->leases[g->cut]) {
        lease_failed(l, g->now_ms);
        return;
    }
    struct bank_grant a = bank_ask(g->bank, TEXT("s"), g->now_ms * 1000, &q);
    if (g->deaf > 0 && (int)(retry_random(&seed) % 100) < g->deaf) {
        lease_failed(l, g->now_ms);
        return;
    }
    lease_granted(l, &g->terms, &a, &seed);
}

/* A message in ten seconds, at random. */
static void
group_arrive(struct group *g, int i)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if ((seed >> 33) % 1000 == 0 && g->queued[i] < QUEUE_MAX)
        g->queues[i][g->queued[i]++] = g->now_ms;
}

static void
group_sent(struct group *g, int i)
{
    g->small_sent++;
    g->small_late += g->now_ms - g->queues[i][0] > 1000;
    g->small_lost += g->now_ms - g->queues[i][0] > 2 * LEASE_PERIOD_MS;
    memmove(&g->queues[i][0], &g->queues[i][1],
            sizeof(g->queues[i][0]) * QUEUE_MAX - sizeof(g->queues[i][0]));
    g->queued[i]--;
}

/* A hungry host: it opens what it may, and closes what it must. */
static void
group_host(struct group *g, int i)
{
    struct lease *l = &g->leases[i];
    bool is_small = i >= HOSTS_MAX - g->small;
    if (is_small)
        group_arrive(g, i);
    struct lease_load load = {.works = is_small ? (size_t)g->queued[i] : 1000,
                              .senders = 1,
                              .open = g->open[i],
                              .need = is_small ? g->queued[i] : 50};
    g->terms.index = i;
    if (g->cut > 0) {
        g->terms.lost = i < g->cut ? 0 : g->lost;
        g->terms.members = HOSTS_MAX - g->terms.lost;
    }
    lease_update(l, g->now_ms, &g->terms, &load);
    group_ask(g, l, &load);
    int may = lease_sessions(l, g->now_ms, &g->terms, false);
    if (g->open[i] > may)
        g->open[i] = may;
    else if (g->open[i] < lease_sessions(l, g->now_ms, &g->terms, true))
        g->open[i] = lease_sessions(l, g->now_ms, &g->terms, true);
    if (g->open[i] > 0 || g->first_ms[i] == 0)
        g->first_ms[i] = g->now_ms;
    if (g->now_ms - g->first_ms[i] > g->waited_ms)
        g->waited_ms = g->now_ms - g->first_ms[i];
    while (g->terms.rate.amount > 0 && (!is_small || g->queued[i] > 0) &&
           lease_ready_ms(l, g->now_ms, &g->terms) <= g->now_ms) {
        lease_take(l, g->now_ms, &g->terms);
        g->times[g->spent++ % SPENT_MAX] = g->now_ms;
        if (is_small)
            group_sent(g, i);
    }
}

static void
group_run(struct group *g, int64_t for_ms)
{
    g->small_sent = g->small_late = g->small_lost = 0;
    g->spent = g->used = g->over = g->leased_over = g->most = g->waited_ms = 0;
    for (int64_t end_ms = g->now_ms + for_ms; g->now_ms < end_ms; g->now_ms += 10) {
        int64_t open = 0, leased = 0;
        for (int i = 0; i < g->hosts; i++) {
            group_host(g, i);
            open += g->open[i];
            if (g->now_ms < g->leases[i].end_ms + LEASE_PERIOD_MS)
                leased += g->open[i];
        }
        g->used += open;
        g->over += open > g->terms.sessions;
        g->leased_over += leased > g->terms.sessions;
        g->most = open > g->most ? open : g->most;
    }
}

/* The most in any minute. */
static int64_t
group_minute(const struct group *g)
{
    int64_t most = 0, count = g->spent < SPENT_MAX ? g->spent : SPENT_MAX;
    for (int64_t i = 0, j = 0; i < count; i++) {
        while (g->times[i] - g->times[j] >= 60000)
            j++;
        most = i - j + 1 > most ? i - j + 1 : most;
    }
    return most;
}

TEST(all_hungry)
{
    static struct group g;
    struct lease_terms t = terms(300, 60000, 20);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    group_run(&g, 60000);
    group_run(&g, 300000);
    printf("# %" PRId64 " of 1500, a minute has %" PRId64 ", sessions %" PRId64 " %%\n",
           g.spent, group_minute(&g), g.used * 100 / 30000 / 20);
    ok_named(g.spent >= 1500 * 95 / 100, "hungry hosts use 95 % of a rate");
    ok_named(group_minute(&g) <= 300 * 102 / 100 + 5, "and not more than it");
    ok_named(g.over == 0 && g.used * 100 >= 95 * INT64_C(30000) * 20,
             "95 % of the sessions, and never more");
    bank_free(&g.bank);
}

TEST(turns)
{
    static struct group g;
    struct lease_terms t = terms(0, 60000, 2);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    group_run(&g, 3600000);
    printf("# two sessions of ten hosts: %" PRId64 " %%, the longest wait %" PRId64
           " s\n",
           g.used * 100 / 360000 / 2, g.waited_ms / 1000);
    is_number(g.over, 0, "ten hosts never have more than two sessions");
    ok_named(g.used * 100 >= 75 * INT64_C(360000) * 2, "but 75 % of them");
    ok_named(g.waited_ms <= 480000, "and each has one every eight minutes");
    bank_free(&g.bank);
}

TEST(slow)
{
    static struct group g;
    struct lease_terms t = terms(2, 60000, 0);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    group_run(&g, 60000);
    group_run(&g, 3600000);
    printf("# two a minute: %" PRId64 " of 120\n", g.spent);
    ok_named(g.spent >= 114 && g.spent <= 121, "two a minute for ten hosts");
    bank_free(&g.bank);
}

TEST(alone)
{
    static struct group g;
    struct lease_terms t = terms(100, 60000, 13);
    t.members = HOSTS_MAX - 2;
    t.lost = 2;
    t.has_bank = false;
    group_open(&g, &t);
    group_run(&g, 600000);
    is_number(g.over, 0, "without a bank no more sessions than the limit");
    is_number(g.most, 11, "of which the lost hosts' part is left");
    is_number(g.spent, 800, "of the rate each has its part");
    ok_named(group_minute(&g) <= 81, "in every minute");
    bank_free(&g.bank);
    t.members = HOSTS_MAX;
    t.lost = 0;
    group_open(&g, &t);
    group_run(&g, 10000);
    is_number(g.spent, 16, "at even intervals from the beginning");
    group_run(&g, 590000);
    is_number(g.most, 13, "all sessions of the limit");
    ok_named(g.used * 100 >= 90 * INT64_C(59000) * 13, "nearly all the time");
    bank_free(&g.bank);
}

TEST(away)
{
    static struct group g;
    struct lease_terms t = terms(300, 60000, 20);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    struct bank *bank = g.bank;
    group_run(&g, 120000);
    g.bank = NULL;
    group_run(&g, 100000);
    printf("# while the bank is away: %" PRId64 " of 500\n", g.spent);
    ok_named(g.spent <= 500 + 5 && g.spent >= 500 * 95 / 100,
             "a bank that does not answer: the sum is the same");
    is_number(g.over, 0, "of sessions, too");
    g.bank = bank;
    group_run(&g, 100000);
    ok_named(g.spent <= 500 + 10 && g.spent >= 500 * 90 / 100 && g.over == 0,
             "it is back");
    bank_free(&g.bank);
    g.bank = bank_new();
    group_run(&g, 100000);
    ok_named(g.spent <= 500 + 30 && g.over == 0, "another one, that knows nothing");
    bank_free(&g.bank);
}

TEST(small)
{
    static struct group g;
    struct lease_terms t = terms(1000, 60000, 0);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    g.small = 8;
    group_run(&g, 60000);
    group_run(&g, 600000);
    printf("# two campaigns, eight small hosts: %" PRId64
           " of 10000, a minute has %" PRId64 ", late %" PRId64 " of %" PRId64 "\n",
           g.spent, group_minute(&g), g.small_late, g.small_sent);
    ok_named(g.spent >= 9000, "campaigns use 90 % of what small hosts leave");
    ok_named(group_minute(&g) <= 1000 + 16 + HOSTS_MAX,
             "and no more than the rate, its burst, and one for each host");
    ok_named(g.small_sent > 400 && g.small_lost == 0 &&
                 g.small_late * 100 <= g.small_sent * 2,
             "behind which a small host's mail waits for a second at most");
    bank_free(&g.bank);
}

TEST(deaf)
{
    static struct group g;
    struct lease_terms t = terms(1000, 60000, 20);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    g.small = 8;
    g.deaf = 30;
    group_run(&g, 60000);
    group_run(&g, 600000);
    printf("# 30 %% of the answers are lost: %" PRId64
           " of 10000, a minute has %" PRId64 ", over %" PRId64 " of 60000\n",
           g.spent, group_minute(&g), g.leased_over);
    ok_named(g.spent > 5000 && group_minute(&g) <= 1020,
             "lost answers: no rate is exceeded");
    is_number(g.leased_over, 0, "nor have those with a lease more sessions");
    bank_free(&g.bank);
}

TEST(cut)
{
    static struct group g;
    struct lease_terms t = terms(1000, 60000, 20);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    group_run(&g, 60000);
    g.cut = 3;
    group_run(&g, 10000);
    int64_t first = g.spent;
    g.lost = 3; /* by now the others know */
    group_run(&g, 10000);
    int64_t most = g.most;
    group_run(&g, 120000);
    printf("# three of ten cut off: %" PRId64 " in ten seconds, then %" PRId64
           " of 2000, a minute has %" PRId64 "; sessions %" PRId64 ", then %" PRId64
           "\n",
           first, g.spent, group_minute(&g), most, g.most);
    ok_named(first <= 167 * 13 / 10 + 17, "three of ten hosts are cut off: 30 % over");
    ok_named(g.spent >= 1900 && group_minute(&g) <= 1050, "for ten seconds; then none");
    ok_named(most <= 26 && g.over == 0, "so it is with sessions");
    bank_free(&g.bank);
}

TEST(newcomer)
{
    static struct group g;
    struct lease_terms t = terms(0, 60000, 20);
    t.members = HOSTS_MAX;
    group_open(&g, &t);
    g.hosts = HOSTS_MAX - 1;
    group_run(&g, 60000);
    g.hosts = HOSTS_MAX;
    group_run(&g, 60000);
    printf("# a newcomer waits %" PRId64 " s\n", g.waited_ms / 1000);
    ok_named(g.waited_ms <= 30000, "a host that comes has its first session in 30 s");
    is_number(g.over, 0, "from the others");
    bank_free(&g.bank);
}

int
main(void)
{
    if (getenv("SEED"))
        seed = strtoull(getenv("SEED"), NULL, 10);
    tap_tests("");
    return done();
}
