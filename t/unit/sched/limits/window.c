/* The concurrency window. All vectors are under Petrel's one rule
 * (doc/dev/design.md "Scheduler"): a cycle is ceil(1/g) events, nothing is carried over; a
 * drop is exactly 1 and comes at the start of its cycle, a rise at the end; dead at >=
 * the cohort limit. Where that differs from the rule of Postfix's SCHEDULER_README or
 * from its code, the test says so. */
#include "sched/limits/limits_internal.h"

#include "t/support/tap.h"

static const struct feedback one = {FEEDBACK_CONSTANT, 1, 1};
static const struct feedback quarter = {FEEDBACK_CONSTANT, 1, 4};
static const struct feedback per_n = {FEEDBACK_CONCURRENCY, 1, 1};
static const struct feedback per_root = {FEEDBACK_SQRT_CONCURRENCY, 1, 1};
static const struct feedback zero = {FEEDBACK_CONSTANT, 0, 1};

static struct transport_params
with(struct feedback both, int initial, int limit, int cohort)
{
    struct transport_params t;
    transport_params_default(&t);
    t.positive = t.negative = both;
    t.initial_concurrency = initial;
    t.concurrency_limit = limit;
    t.failed_cohort_limit = cohort;
    return t;
}

static void
test_cycle(void)
{
    is_number(window_cycle(&one, 5), 1, "1: every event");
    is_number(window_cycle(&quarter, 5), 4, "1/4: four events at any size");
    is_number(window_cycle(&per_n, 5), 5, "1/N: N events");
    is_number(window_cycle(&per_n, 1), 1, "1/N at 1");
    is_number(window_cycle(&per_root, 1), 1, "1/sqrt(1)");
    is_number(window_cycle(&per_root, 4), 2, "1/sqrt(4) is exact");
    is_number(window_cycle(&per_root, 5), 3, "1/sqrt(5): ceil, where Postfix has 2");
    is_number(window_cycle(&per_root, 9), 3, "1/sqrt(9)");
    is_number(window_cycle(&per_root, 100000), 317, "1/sqrt(100000)");
    is_number(window_cycle(&zero, 5), 0, "0: never");
    is_number(window_cycle(&(struct feedback){FEEDBACK_CONSTANT, 2, 3}, 5), 2, "2/3");
    is_number(window_cycle(&(struct feedback){FEEDBACK_CONSTANT, 3333, 10000}, 5), 4,
              "0.3333 is just below a third");
    is_number(window_cycle(&(struct feedback){FEEDBACK_CONCURRENCY, 1, 2}, 5), 10,
              "0.5/N");
    is_number(window_cycle(&(struct feedback){FEEDBACK_SQRT_CONCURRENCY, 1, 2}, 5), 5,
              "0.5/sqrt(N): ceil(4.47)");
}

/* Successes until the window is 20; *steps gets the events of the first rises. */
static int
grow(struct feedback f, int steps[8])
{
    struct transport_params t = with(f, 5, 20, 1);
    struct window w;
    int events = 0, step = 0;
    window_init(&w, &t);
    while (w.size < 20 && events < 100000) {
        int before = w.size;
        window_good(&w, &t, w.size);
        events++;
        if (w.size != before && step < 8)
            steps[step++] = events;
    }
    return events;
}

static void
test_growth(void) /* B.1, busy = window */
{
    static const int per_n_steps[8] = {5, 11, 18, 26, 35, 45, 56, 68};
    static const int root_steps[8] = {3, 6, 9, 12, 15, 19, 23, 27};
    int steps[8];
    is_number(grow(one, steps), 15, "B.1 constant 1: 15 successes from 5 to 20");
    is_number(grow(quarter, steps), 60, "B.1 1/4: 60");
    is_number(grow(per_n, steps), 180, "B.1 1/N: 180");
    ok_named(memcmp(steps, per_n_steps, sizeof(steps)) == 0, "B.1 1/N: the steps");
    is_number(grow(per_root, steps), 58,
              "B.1 1/sqrt(N): 58 (the README rule carries the rest over: 51)");
    ok_named(memcmp(steps, root_steps, sizeof(steps)) == 0, "1/sqrt(N): whole cycles");
}

static void
mixed(struct feedback f, const int want[28], const char *name)
{
    static const char events[] = "SSSSSFSSSSSFFSSSSSSSSSSFFFFF";
    struct transport_params t = with(f, 5, 20, 0);
    struct window w;
    int got[28];
    bool dead = false;
    window_init(&w, &t);
    for (int i = 0; i < 28; i++) {
        if (events[i] == 'S')
            window_good(&w, &t, w.size);
        else
            dead |= window_bad(&w, &t);
        got[i] = w.size;
    }
    ok_named(memcmp(got, want, sizeof(got)) == 0, name);
    ok_named(!dead, "and with a cohort limit of 0 nothing dies");
}

static void
test_mixed(void) /* B.2: here our rule and the README's are the same */
{
    mixed(one, (const int[]){6,  7,  8,  9,  10, 9,  10, 11, 12, 13, 14, 13, 12, 13,
                             14, 15, 16, 17, 18, 19, 20, 20, 20, 19, 18, 17, 16, 15},
          "B.2 feedback 1");
    mixed(per_n, (const int[]){5, 5, 5, 5, 6, 5, 5, 5, 5, 5, 6, 5, 5, 5,
                               5, 5, 5, 6, 6, 6, 6, 6, 6, 5, 5, 5, 5, 5},
          "B.2 feedback 1/N");
    mixed(quarter, (const int[]){5, 5, 5, 6, 6, 5, 5, 5, 5, 6, 6, 5, 5, 5,
                                 5, 5, 6, 6, 6, 6, 7, 7, 7, 6, 6, 6, 6, 5},
          "B.2 feedback 1/4");
}

static void
test_starved(void) /* B.3 */
{
    static const int want[6] = {6, 7, 8, 8, 8, 8};
    struct transport_params t = with(one, 5, 20, 1);
    struct window w;
    window_init(&w, &t);
    for (int i = 0; i < 6; i++) {
        window_good(&w, &t, 3);
        is_number(w.size, want[i],
                  "B.3 busy 3: never ahead of use by more than initial");
    }
}

static int
kill_it(struct feedback f, int initial, int cohort)
{
    struct transport_params t = with(f, initial, 20, cohort);
    struct window w;
    window_init(&w, &t);
    for (int i = 1; i < 1000; i++) {
        if (window_bad(&w, &t))
            return i;
        if (w.size < 1)
            return -1;
    }
    return 0;
}

static void
test_death(void) /* B.4, the README steps with >= */
{
    is_number(kill_it(one, 5, 1), 4, "B.4 start 5, feedback 1 (Postfix's code: 3)");
    is_number(kill_it(per_n, 5, 1), 5, "B.4 start 5, 1/N");
    is_number(kill_it(quarter, 5, 1), 5, "B.4 start 5, 1/4");
    is_number(kill_it(zero, 5, 1), 5, "B.4 start 5, 0");
    is_number(kill_it(one, 20, 1), 13, "B.4 start 20, feedback 1");
    is_number(kill_it(per_n, 20, 1), 20, "B.4 start 20, 1/N");
    is_number(kill_it(quarter, 20, 1), 18, "B.4 start 20, 1/4");
    is_number(kill_it(one, 5, 10), 13, "B.4 start 5, cohort 10, feedback 1");
    is_number(kill_it(per_n, 5, 10), 17, "B.4 start 5, cohort 10, 1/N");
    is_number(kill_it(zero, 5, 2), 10,
              "ten fifths are 2: in doubles they are not, and it takes 11");
    is_number(kill_it(zero, 3, 7), 21, "and 21 thirds are 7");
    is_number(kill_it(one, 5, 0), 0, "cohort limit 0: never");
    is_number(kill_it(one, 1, 1), 1, "one session, one failure");
}

TEST(success_forgives)
{
    struct transport_params t = with(zero, 5, 20, 1);
    struct window w;
    bool dead = false;
    window_init(&w, &t);
    for (int i = 0; i < 100; i++) {
        dead |= window_bad(&w, &t);
        if (i % 4 == 3)
            window_good(&w, &t, 5);
    }
    ok_named(!dead, "a success now and then keeps it alive");
    is_number(w.size, 5, "feedback 0 moves nothing");
}

TEST(limits)
{
    struct transport_params t = with(one, 5, 3, 1);
    struct window w;
    window_init(&w, &t);
    is_number(w.size, 3, "initial is clipped to the limit");
    window_good(&w, &t, 3);
    is_number(w.size, 3, "and the limit holds");
    t.concurrency_limit = 0;
    window_init(&w, &t);
    for (int i = 0; i < 500; i++)
        window_good(&w, &t, w.size);
    is_number(w.size, 505, "limit 0 is none");
    t = with(one, 5, 20, 0);
    window_init(&w, &t);
    for (int i = 0; i < 50; i++)
        ok_named(!window_bad(&w, &t) && w.size >= 1, "never below 1");
    t.rate_delay_ms = 1000;
    window_init(&w, &t);
    is_number(w.size, 1, "a rate delay makes it 1");
    window_good(&w, &t, 1);
    is_number(w.size, 1, "for good");
}

TEST(change)
{
    struct transport_params t = with(one, 5, 20, 1), other = with(one, 3, 4, 1);
    struct window w;
    window_init(&w, &t);
    for (int i = 0; i < 4; i++)
        window_good(&w, &t, w.size);
    int size = w.size;
    window_change(&w, &t);
    is_number(w.size, size, "the same parameters change nothing");
    window_change(&w, &other);
    is_number(w.size, 4, "a smaller limit holds at once");
    window_probe(&w);
    window_good(&w, &other, 1);
    is_number(w.size, 3, "and so does the new initial size");
    t.concurrency_limit = 0;
    window_change(&w, &t);
    is_number(w.size, 3, "a larger limit is for growth");
    other.rate_delay_ms = 1000;
    window_change(&w, &other);
    is_number(w.size, 1, "a rate delay makes it 1");
}

TEST(probe)
{
    struct transport_params t = with(one, 5, 20, 1);
    struct window w;
    window_init(&w, &t);
    for (int i = 0; i < 4; i++)
        window_good(&w, &t, w.size);
    window_probe(&w);
    is_number(w.size, 1, "revived with one session");
    ok_named(window_bad(&w, &t), "one failed probe is a whole cohort");
    window_probe(&w);
    window_good(&w, &t, 1);
    is_number(w.size, 5, "after a good one the initial size");
    window_good(&w, &t, 5);
    is_number(w.size, 6, "and growth from there");
    window_answered(&w);
    is_number(w.size, 6, "answered means nothing outside a probe");
    window_probe(&w);
    window_answered(&w);
    is_number(w.size, 5, "an answer ends a probe too");
}

int
main(void)
{
    test_cycle();
    test_growth();
    test_mixed();
    test_starved();
    test_death();
    tap_tests("");
    return done();
}
