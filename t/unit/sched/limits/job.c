/* Jobs: the order of service by Postfix's rules, accounts, classes, and that nothing is
 * lost when something ends in the middle. */
#include "sched/limits/limits_internal.h"

#include "t/support/job_post.h"
#include "t/support/job_reference.h"

#include <malloc.h>

struct vector {
    const char *name;
    unsigned sizes[8];
    int cost, loan, discount;
    const char *order;
};

static const struct vector vectors[] = {
    {"cost 2",                        {10, 2, 2},          2, 0, 0,  "11112211113311"                               },
    {"cost 2, half of it in advance", {10, 2, 2},          2, 0, 50, "11221111331111"                               },
    {"singles",                       {20, 1, 1, 1, 1, 1}, 5, 3, 50, "1211111311111411111511116"                    },
    {"the smallest first",
     {20, 4, 4, 1, 1},
     5,                                                       3,
     50,                                                             "141111151111111111111122223333"               },
    {"too small to be preempted",     {14, 1, 1},          5, 3, 50, "1111111111111123"                             },
    {"just large enough",             {15, 1, 1},          5, 3, 50, "12111113111111111"                            },
    {"too large for the candidate",
     {30, 10, 1, 1},
     5,                                                       3,
     50,                                                             "131111141111111111111111111111112222222222"   },
    {"cost 3",
     {30, 5, 5, 5},
     3,                                                       3,
     50,                                                             "122222111111111111111333331111111111111144444"},
    {"off",                           {30, 1, 1},          0, 3, 50, "11111111111111111111111111111123"             },
};

static void
post_vector(struct post *p, const struct vector *v, int sessions)
{
    post_start(p, sessions);
    p->target.transport.slot_cost = v->cost;
    p->target.transport.slot_loan = v->loan;
    p->target.transport.slot_discount = v->discount;
    for (int i = 0; i < 8 && v->sizes[i]; i++)
        post_add(p, v->sizes[i]);
}

TEST(vectors)
{
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
        const struct vector *v = &vectors[i];
        char order[128];
        FIXTURE(post, p, post_vector, post_end, v, 1);
        post_digits(&p, 0, order);
        is_string(order, v->order, v->name);
        ok(p.finishes == p.count && p.waits == 0);
    }
}

/* Several sessions take in turn and answer later: the order is of those that take. */
TEST(vectors_parallel)
{
    bool same = true;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(*vectors); i++) {
        struct sched_work works[3];
        char order[128];
        unsigned count = 0;
        bool busy[3] = {false};
        FIXTURE(post, p, post_vector, post_end, &vectors[i], 3);
        for (int at = 0, vain = 0; vain < 3; at = (at + 1) % 3) {
            if (busy[at])
                post_settle(&p, at, &works[at], VERDICT_DELIVERED, BLAME_NONE);
            int letter = post_take(&p, at, &works[at]);
            busy[at] = letter >= 0;
            vain = busy[at] ? 0 : vain + 1;
            if (busy[at])
                order[count++] = (char)('1' + letter);
        }
        order[count] = '\0';
        same &= !strcmp(order, vectors[i].order) && p.finishes == p.count;
    }
    ok_named(same, "with three sessions the same orders");
}

TEST(off)
{
    for (int cost = 0; cost < 2; cost++) {
        bool ordered = true;
        FIXTURE(post, p, post_start, post_end, 1);
        p.target.transport.slot_cost = cost;
        for (unsigned i = 0; i < 40; i++)
            post_add(&p, i % 4 ? 1 : 50);
        for (int last = 0, letter; (letter = post_serve(&p)) >= 0; last = letter)
            ordered &= letter >= last;
        ok_named(ordered, cost ? "cost 1 is off: first in, first out"
                               : "cost 0 is off: first in, first out");
        is_number(p.finishes, 40, "all of it");
    }
}

/* 5000 single messages behind one of 10000 transactions. */
TEST(share)
{
    enum { LARGE = 10000, SMALL = 5000 };
    bool ordered = true;
    int last = 0, before = 0, served = 0;
    FIXTURE(post, p, post_start, post_end, 1);
    post_add(&p, LARGE);
    for (int i = 0; i < SMALL; i++)
        post_add(&p, 1);
    while (!p.letters[0].gone) {
        int letter = post_serve(&p);
        served++;
        before += letter > 0;
        ordered &= letter == 0 || letter == last + 1;
        last = letter > 0 ? letter : last;
    }
    is_number(before, LARGE / 5, "the large one lets a fifth of its size pass");
    is_number(served, LARGE + before, "and is done");
    ok_named(ordered, "the small ones come first in, first out");
    while (post_serve(&p) >= 0)
        ;
    is_number(p.finishes, SMALL + 1, "then come the others");
}

TEST(singles)
{
    bool ordered = true;
    FIXTURE(post, p, post_start, post_end, 1);
    for (int i = 0; i < 20000; i++)
        post_add(&p, 1);
    for (int i = 0; i < 20000; i++)
        ordered &= post_serve(&p) == i;
    ok_named(ordered, "20000 single messages: first in, first out");
}

TEST(age)
{
    struct post p;
    char order[64];
    post_start(&p, 1);
    post_add(&p, 20);
    post_add(&p, 4);
    p.now += 2000;
    post_add(&p, 1);
    post_digits(&p, 2, order);
    is_string(order, "13", "3 s by 4 is less than 1 s by 1");
    post_end(&p);
    post_start(&p, 1);
    post_add(&p, 20);
    post_add(&p, 4);
    p.now += 3000;
    post_add(&p, 1);
    post_digits(&p, 2, order);
    is_string(order, "12", "4 s by 4 is as much: the older one");
    post_end(&p);
    post_start(&p, 1);
    post_add(&p, 30);
    post_add(&p, 4);
    p.now += 9000;
    post_serve(&p);
    post_add(&p, 1);
    post_digits(&p, 5, order);
    is_string(order, "22221", "who comes meanwhile is a candidate at once");
    post_end(&p);
}

/* The choice is made anew as they grow older: 2/4 and 1/1, later 10/4 and 9/1. */
TEST(age_changes)
{
    struct job a = {.since_s = 0}, b = {.since_s = 7}, large = {.since_s = 0};
    struct jobs jobs = {0};
    struct transport_params t;
    transport_params_default(&t);
    t.slot_loan = 0;
    t.slot_discount = 0;
    jobs_add(&jobs, &large, 100);
    jobs_add(&jobs, &a, 4);
    jobs_add(&jobs, &b, 1);
    for (int i = 0; i < 4; i++)
        jobs_serve(&jobs, &large);
    ok_named(jobs_choose(&jobs, &t, &large, 7) == &large, "no slot yet");
    ok(jobs.candidate == &a);
    ok_named(jobs_choose(&jobs, &t, &large, 100) == &large && jobs.candidate == &b,
             "another candidate, later");
    jobs_serve(&jobs, &large);
    ok(jobs_choose(&jobs, &t, &large, 100) == &b && b.begun && large.account == 0);
    jobs_free(&jobs);
}

TEST(clock)
{
    const int64_t day = 86400000;
    struct post p;
    char order[64];
    post_start(&p, 1);
    post_add(&p, 30);
    post_add(&p, 4);
    p.now += 9000;
    post_add(&p, 1);
    p.now -= day;
    post_add(&p, 1);
    post_digits(&p, 8, order);
    is_string(order, "12222111", "the clock goes back a day: ages stay");
    p.now += 3 * day;
    post_add(&p, 1);
    post_digits(&p, 0, order);
    ok_named(strlen(order) == 29 && p.finishes == 5, "forward: all the same");
    post_end(&p);
    struct job young = {.since_s = 5}, wrapped = {.since_s = UINT32_MAX - 1};
    struct job large = {.since_s = UINT32_MAX - 2};
    struct jobs jobs = {0};
    struct transport_params t;
    transport_params_default(&t);
    jobs_add(&jobs, &large, 50);
    jobs_add(&jobs, &wrapped, 2);
    jobs_add(&jobs, &young, 1);
    jobs_serve(&jobs, &large);
    ok_named(jobs_choose(&jobs, &t, &large, 3) == &wrapped,
             "seconds may wrap, and who is from the future has no age");
    jobs_free(&jobs);
}

/* A child takes its last transaction; its verdicts come much later. */
TEST(child_ends)
{
    struct sched_work first, second, third;
    FIXTURE(post, p, post_start, post_end, 3);
    post_add(&p, 20);
    post_add(&p, 2);
    ok(post_take(&p, 0, &first) == 0);
    ok(post_take(&p, 1, &second) == 1);
    ok(post_take(&p, 2, &third) == 1);
    post_settle(&p, 0, &first, VERDICT_DELIVERED, BLAME_NONE);
    ok_named(post_take(&p, 0, &first) == 0, "a child that has nothing left is no more");
    post_settle(&p, 2, &third, VERDICT_DELIVERED, BLAME_NONE);
    is_number(p.finishes, 0, "its verdicts are its own affair");
    post_settle(&p, 1, &second, VERDICT_DELIVERED, BLAME_NONE);
    is_number(p.finishes, 1, "now it is finished");
    post_settle(&p, 0, &first, VERDICT_DELIVERED, BLAME_NONE);
    while (post_serve(&p) == 0)
        ;
    is_number(p.finishes, 2, "and its parent goes on");
}

TEST(recursion)
{
    char order[256];
    FIXTURE(post, p, post_start, post_end, 1);
    p.target.transport.slot_loan = 100;
    post_add(&p, 100);
    post_add(&p, 20);
    post_serve(&p);
    post_serve(&p);
    post_add(&p, 2);
    post_add(&p, 2);
    post_add(&p, 1);
    post_digits(&p, 24, order);
    is_string(order, "522222332222222222222211",
              "who preempts is preempted in its turn, within what it earns");
    post_digits(&p, 0, order);
    ok_named(strspn(order, "1") == strlen(order) - 2, "then the first goes on");
    is_string(order + strlen(order) - 2, "44", "which has nothing to spend any more");
    is_number(p.finishes, 5, "all are done");
}

/* Large passed by middle, passed by small, which is under way in the last session. */
static void
stack(struct post *p, struct sched_work works[3])
{
    post_start(p, 3);
    p->target.transport.slot_cost = 2;
    post_add(p, 40);
    post_must(post_take(p, 0, &works[0]) == 0, "the large one first");
    post_add(p, 6);
    post_must(post_take(p, 1, &works[1]) == 1, "the middle one passes it");
    post_add(p, 2);
    post_must(post_take(p, 2, &works[2]) == 2, "the small one passes that");
}

TEST(site_dies)
{
    struct sched_work works[3];
    char order[128];
    FIXTURE(post, p, stack, post_end, works);
    for (int i = 2; i >= 0; i--)
        post_settle(&p, i, &works[i], VERDICT_DEFERRED, BLAME_SITE);
    is_number(sched_count(p.s).dead, 1, "the site dies under a stack of three");
    is_number(p.settles, 39 + 5 + 1, "all that waits is settled");
    is_number(p.waits, 3, "and waits for its next round");
    ok(post_take(&p, 0, &works[0]) < 0);
    p.now += 400000;
    post_run(&p);
    ok_named(p.letters[0].loaded && sched_count(p.s).active == 1,
             "which comes, with the oldest");
    p.session_count = 1;
    post_digits(&p, 0, order);
    ok_named(strlen(order) == 48 && order[0] == '1',
             "everybody once, the oldest first");
    is_number(p.finishes, 3, "delivered");
}

TEST(nowhere)
{
    struct sched_work works[3];
    FIXTURE(post, p, stack, post_end, works);
    post_settle(&p, 2, &works[2], VERDICT_DELIVERED, BLAME_NONE);
    struct outcome gone =
        outcome_make(VERDICT_FAILED, BLAME_SITE, 0, "5.1.2", "no such domain");
    sched_session_ended(p.s, p.sessions[2], &gone);
    post_run(&p);
    is_number(p.settles, 39 + 5 + 1, "the domain is gone: what waits fails");
    is_number(p.finishes, 1, "two are still under way");
    p.session_count = 0; /* numbers above are of sessions that end */
    struct sched_session *a = p.sessions[0], *b = p.sessions[1];
    post_settle(&p, 0, &works[0], VERDICT_DELIVERED, BLAME_NONE);
    post_settle(&p, 1, &works[1], VERDICT_DELIVERED, BLAME_NONE);
    is_number(p.finishes, 3, "and finish");
    unsigned late = post_add(&p, 3);
    sched_session_ended(p.s, a, &outcome_no_trouble);
    sched_session_ended(p.s, b, &outcome_no_trouble);
    post_run(&p);
    ok_named(p.session_count > 0 && post_serve(&p) == (int)late,
             "later mail is tried afresh");
}

TEST(expires)
{
    struct sched_work works[3];
    FIXTURE(post, p, stack, post_end, works);
    for (int i = 0; i < 3; i++)
        post_settle(&p, i, &works[i], VERDICT_DEFERRED, BLAME_MESSAGE);
    is_number(p.waits, 0, "greylisted, others are not yet tried");
    p.now += INT64_C(5) * 86400000;
    int served = 0;
    for (; post_serve(&p) >= 0; served++)
        ;
    is_number(served, 39 + 5 + 1, "five days later the rest is served");
    is_number(p.expired, 3, "and who was deferred has expired");
    is_number(p.finishes, 3, "that was all");
}

TEST(drains)
{
    struct post p;
    struct sched_work works[3];
    char order[128];
    stack(&p, works);
    unsigned waiting = p.count;
    sched_drain(p.s);
    post_add(&p, 1);
    ok_named(!p.letters[waiting].loaded, "a drain loads nothing");
    for (int i = 0; i < 3; i++)
        post_settle(&p, i, &works[i], VERDICT_DELIVERED, BLAME_NONE);
    p.session_count = 1;
    post_digits(&p, 8, order);
    is_string(order, "32222211", "what is loaded keeps its order");
    ok_named(!sched_forget(p.s, post_id(0)), "who is passed is active, not forgotten");
    ok_named(sched_forget(p.s, post_id(waiting)), "who is not loaded is");
    post_end(&p);
    stack(&p, works);
    post_end(&p); /* freed in the middle: for the sanitizer */
    ok(p.s == NULL);
}

/* Experiment E5: a list of 8000 transactions of 1 s each in 20 sessions, and two single
 * messages a second. Turns of 50 ms: in each one session answers. */
static void
test_list(int cost)
{
    enum { LIST = 8000, TURN_MS = 50, EVERY = 10, BUCKETS = 20000 };
    static unsigned waits[BUCKETS];
    struct sched_work works[POST_SESSIONS];
    int64_t sum = 0, born[BUCKETS];
    bool busy[POST_SESSIONS] = {false};
    int turn = 0, small = 0;
    memset(waits, 0, sizeof(waits));
    FIXTURE(post, p, post_start, post_end, POST_SESSIONS);
    p.target.transport.slot_cost = cost;
    post_add(&p, LIST);
    for (; !p.letters[0].gone; turn++, p.now += TURN_MS) {
        int at = turn % POST_SESSIONS;
        if (turn % EVERY == 0)
            born[post_add(&p, 1)] = turn;
        if (busy[at]) {
            unsigned letter = (unsigned)(uintptr_t)works[at].owner - 1;
            post_settle(&p, at, &works[at], VERDICT_DELIVERED, BLAME_NONE);
            if (letter > 0) {
                small++;
                sum += turn - born[letter];
                waits[turn - born[letter]]++;
            }
        }
        busy[at] = post_take(&p, at, &works[at]) >= 0;
    }
    int p99 = 0;
    for (int seen = 0; seen * 100 < small * 99; p99++)
        seen += (int)waits[p99];
    printf("# cost %d: the list takes %d s; %d single messages, %" PRId64
           " ms on average, p99 %d ms\n",
           cost, turn / 20, small, small ? sum * TURN_MS / small : 0, p99 * TURN_MS);
    if (cost == 5) {
        ok_named(p99 * TURN_MS <= 2000, "small mail waits two service times at most");
        ok_named(turn <= LIST + small + 2 * POST_SESSIONS,
                 "and the list longer by what has passed it");
    } else {
        is_number(small, 0, "without preemption nothing passes the list");
    }
}

/* --- Against the rules as told ------------------------------------------------------
 */

struct course {
    struct post post;
    struct reference reference;
    uint64_t random;
    unsigned messages, waiting_max, different;
};

static unsigned
chance(struct course *c, unsigned below)
{
    c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((c->random >> 33) % below);
}

static unsigned
chance_size(struct course *c)
{
    unsigned kind = chance(c, 100);
    if (kind < 70)
        return 1 + chance(c, 3);
    if (kind < 90)
        return 1 + chance(c, 30);
    return kind < 98 ? 1 + chance(c, 150) : 1 + chance(c, 2000);
}

static unsigned
waiting(const struct course *c)
{
    return c->post.count - c->post.finishes;
}

static void
course_run(struct course *c)
{
    struct transport_params *t = &c->post.target.transport;
    post_start(&c->post, 1);
    t->slot_cost = c->reference.t.slot_cost;
    t->slot_loan = c->reference.t.slot_loan;
    t->slot_discount = c->reference.t.slot_discount;
    t->minimum_slots = c->reference.t.minimum_slots;
    c->reference.exact_use = true;
    while (c->post.finishes < c->messages) {
        int64_t now_s = c->post.now / 1000;
        unsigned come = chance(c, 40) ? 0 : chance(c, 30);
        for (; (come || waiting(c) == 0) && c->post.count < c->messages;
             come -= !!come) {
            unsigned size = chance_size(c);
            reference_add(&c->reference, post_add(&c->post, size), size, now_s);
        }
        if (waiting(c) > c->waiting_max)
            c->waiting_max = waiting(c);
        unsigned due = reference_serve(&c->reference, now_s);
        c->different += post_serve(&c->post) != (int)due;
        c->post.now += chance(c, 4) ? 0 : chance(c, 3000);
    }
    reference_end(&c->reference);
    post_end(&c->post);
}

static void
test_reference(unsigned messages, int cost, int loan, int discount, int minimum)
{
    struct course c = {.random = messages + (unsigned)cost, .messages = messages};
    char name[128];
    transport_params_default(&c.reference.t);
    c.reference.t.slot_cost = cost;
    c.reference.t.slot_loan = loan;
    c.reference.t.slot_discount = discount;
    c.reference.t.minimum_slots = minimum;
    course_run(&c);
    snprintf(name, sizeof(name),
             "%u messages, cost %d, loan %d, discount %d, minimum %d", messages, cost,
             loan, discount, minimum);
    is_number(c.different, 0, name);
    ok_named(c.reference.exact_use, "no child leaves anything to be given back");
    printf(
        "# %u transactions, %u preemptions, %u deep, %u waited at most; %u decisions "
        "with a better one inside a class\n",
        c.post.verdicts, c.reference.preemptions, c.reference.depth, c.waiting_max,
        c.reference.hidden);
}

static void
test_references(void)
{
    test_reference(TAP_ADDRESS_SANITIZER ? 2000 : 10000, 5, 3, 50, 3);
    test_reference(1000, 2, 0, 0, 0);
    test_reference(1000, 2, 3, 100, 1);
    test_reference(1000, 3, 100, 0, 3);
    test_reference(1000, 10, 1, 99, 5);
    test_reference(1000, 100000, 100000, 0, 100000);
    test_reference(1000, 1, 3, 50, 3);
}

/* --- Parts --------------------------------------------------------------------------
 */

static void
test_classes(void)
{
    bool rises = true, exact = true, narrow = true;
    unsigned first = 1; /* the smallest size of the class */
    for (unsigned size = 2; size < 300000; size++) {
        unsigned last = job_class(size - 1), now = job_class(size);
        rises &= now == last || now == last + 1;
        exact &= size > JOB_EXACT || now == size - 1;
        first = now != last ? size : first;
        narrow &= now == JOB_CLASSES - 1 || (size - first) * 16 < first;
    }
    ok_named(rises, "classes rise with sizes, without a gap");
    ok_named(exact, "small sizes have one each");
    ok_named(narrow, "others are as wide as a sixteenth");
    is_number(job_class(1), 0, "the first");
    is_number(job_class(JOB_EXACT), JOB_EXACT - 1, "the last that is exact");
    is_number(job_class(JOB_EXACT + 1), JOB_EXACT, "the first that is not");
    is_number(job_class(INT32_MAX), JOB_CLASSES - 1, "the last has no end");
}

static void
test_accounts(void)
{
    struct jobs jobs = {0};
    struct job large = {.since_s = 1}, small = {.since_s = 1}, middle = {.since_s = 1};
    struct job other = {.since_s = 1};
    struct transport_params t;
    transport_params_default(&t);
    jobs_add(&jobs, &large, 100);
    jobs_add(&jobs, &middle, 7);
    jobs_serve(&jobs, &large);
    ok(jobs_choose(&jobs, &t, &large, 1) == &large);
    ok_named(jobs.is_cached && jobs.candidate == &middle, "3 slots lent, 3.5 needed");
    for (int i = 0; i < 3; i++) {
        jobs_serve(&jobs, &large);
        ok(jobs_choose(&jobs, &t, &large, 1) == &large && jobs.is_cached);
    }
    jobs_serve(&jobs, &large);
    ok_named(jobs_choose(&jobs, &t, &large, 1) == &middle, "4 are enough");
    is_number(large.account, 5 - 7 * 5, "paid in full, on credit");
    ok(middle.begun && middle.account == 0 && middle.served == 0);
    jobs_add(&jobs, &small, 1);
    jobs_serve(&jobs, &middle);
    ok_named(jobs_choose(&jobs, &t, &middle, 1) == &middle, "too small to be passed");
    ok_named(jobs_choose(&jobs, &t, &large, 1) == &large,
             "who is in debt is not passed");
    jobs_clear(&jobs);
    large.account = 50;
    ok_named(jobs_choose(&jobs, &t, &large, 1) == &large, "cleared: nobody is there");
    jobs_add(&jobs, &other, 1);
    ok_named(jobs_choose(&jobs, &t, &large, 1) == &other, "and a new one is");
    jobs_free(&jobs);
    jobs_free(&jobs);
    ok(jobs.class_count == 0 && !jobs.classes);
}

static void
test_memory(void)
{
    enum { MESSAGES = 10000 };
    FIXTURE(post, p, post_start, post_end, 1);
    post_add(&p, 1);
    p.letters = memory_resize(p.letters, (MESSAGES + 2) * sizeof(*p.letters));
    p.capacity = MESSAGES + 2;
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < MESSAGES; i++)
        post_add(&p, 1);
    double single = (double)(mallinfo2().uordblks - before) / MESSAGES;
    before = mallinfo2().uordblks;
    post_add(&p, MESSAGES);
    double list = (double)(mallinfo2().uordblks - before) / MESSAGES;
    printf("# bytes for a recipient in memory: %.0f of a message with one, %.0f of a "
           "list with its bookkeeping here\n",
           single, list);
    ok_named(TAP_ADDRESS_SANITIZER || single < 256,
             "a single message: below 256 bytes");
}

int
main(void)
{
    tap_tests("");
    test_list(5);
    test_list(0);
    test_references();
    test_classes();
    test_accounts();
    test_memory();
    return done();
}
