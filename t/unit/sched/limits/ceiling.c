/* The ceiling: found by refusals, kept, probed by time; not found by noise. */
#include "sched/limits/ceiling.h"

#include "t/support/tap.h"

#include <limits.h>

#define START INT64_C(5000000)

static struct ceiling
found_at(int others)
{
    struct ceiling c = {0};
    for (int i = 0; i < CEILING_REFUSALS; i++)
        ceiling_refused(&c, START, others);
    return c;
}

TEST(found)
{
    struct ceiling c = {0};
    is_number(ceiling_allows(&c, START), INT_MAX, "none known");
    ok_named(ceiling_wake_ms(&c) == INT64_MAX, "nothing to wait for");
    ceiling_greeted(&c, START, 7);
    is_number(ceiling_allows(&c, START), INT_MAX, "a greeting makes no ceiling");
    ceiling_refused(&c, START, 5);
    ceiling_refused(&c, START + 1, 5);
    is_number(ceiling_allows(&c, START + 1), 6, "after two refusals: one at a time");
    for (int i = 2; i < CEILING_REFUSALS; i++)
        ceiling_refused(&c, START + 2, 5);
    is_number(ceiling_allows(&c, START + 2), 5, "four do");
    is_number(ceiling_wake_ms(&c), START + 10002, "a probe after 10 s");
    is_number(ceiling_allows(&c, START + 10001), 5, "not before");
    is_number(ceiling_allows(&c, START + 10002), 6, "one more");
}

TEST(contradicted)
{
    struct ceiling c = {0};
    for (int i = 0; i < 100; i++) {
        ceiling_refused(&c, START + i, 5);
        ceiling_refused(&c, START + i, 5);
        ceiling_greeted(&c, START + i, 6);
    }
    is_number(ceiling_allows(&c, START + 200), INT_MAX, "greetings above contradict");
    ceiling_refused(&c, START, 5);
    ceiling_greeted(&c, START, 5);
    ceiling_refused(&c, START, 5);
    ceiling_greeted(&c, START, 4);
    ceiling_refused(&c, START, 4);
    is_number(ceiling_allows(&c, START), 5, "greetings not above do not");
}

TEST(probes)
{
    static const int64_t holds[] = {20, 40, 80, 160, 320, 600, 600};
    struct ceiling c = found_at(5);
    ceiling_refused(&c, START + 9999, 5);
    is_number(ceiling_wake_ms(&c), START + 10000, "a late one of the same is no probe");
    int64_t now = START;
    for (size_t i = 0; i < sizeof(holds) / sizeof(*holds); i++) {
        now = ceiling_wake_ms(&c);
        ceiling_refused(&c, now, 5);
        is_number(ceiling_wake_ms(&c) - now, holds[i] * 1000, "twice as long");
        is_number(ceiling_allows(&c, now), 5, "the ceiling stays");
    }
    now = ceiling_wake_ms(&c);
    ceiling_greeted(&c, now, 6);
    is_number(ceiling_allows(&c, now), 6, "a probe that greets is the ceiling");
    is_number(ceiling_allows(&c, now + CEILING_STEP_MS), 7, "the next follows soon");
    ceiling_greeted(&c, now + CEILING_STEP_MS, 7);
    struct ceiling soon = c, late = c;
    for (int i = 0; i < CEILING_REFUSALS; i++)
        ceiling_refused(&soon, now + 59999, 7);
    is_number(ceiling_wake_ms(&soon) - now - 59999, 600000, "refused before it lived");
    for (int i = 0; i < CEILING_REFUSALS; i++)
        ceiling_refused(&late, now + 60000, 7);
    is_number(ceiling_wake_ms(&late) - now - 60000, 10000, "lived: the old pace");
    is_number(ceiling_allows(&late, now + 60000), 7, "found anew above");
}

TEST(climb)
{
    struct ceiling c = found_at(2);
    int64_t now = ceiling_wake_ms(&c);
    ceiling_greeted(&c, now, 3);
    now += CEILING_STEP_MS;
    ceiling_refused(&c, now, 3);
    is_number(ceiling_allows(&c, now), 3, "one refusal on the way up: wait a step");
    is_number(ceiling_allows(&c, now + CEILING_STEP_MS), 4, "and try again");
    ceiling_greeted(&c, now + CEILING_STEP_MS, 4);
    is_number(c.misses, 0, "noise is forgotten");
    ceiling_greeted(&c, now + CEILING_STEP_MS, 2);
    is_number(ceiling_allows(&c, now + CEILING_STEP_MS), 4, "fewer open: it stays");
}

TEST(lower)
{
    struct ceiling c = found_at(20);
    ceiling_refused(&c, START + 100, 3);
    is_number(ceiling_allows(&c, START + 100), 4, "refused below: it was none");
    ceiling_greeted(&c, START + 200, 4);
    is_number(ceiling_allows(&c, START + 200), INT_MAX, "nor is it there: noise");
    ceiling_refused(&c, START + 300, 3);
    ceiling_refused(&c, START + 300, 3);
    ceiling_refused(&c, START + 300, 2);
    is_number(ceiling_allows(&c, START + 300), 3, "one at a time, lower still");
    for (int i = 1; i < CEILING_REFUSALS; i++)
        ceiling_refused(&c, START + 300, 2);
    is_number(ceiling_allows(&c, START + 300), 2, "the site bears less");
    is_number(ceiling_wake_ms(&c), START + 300 + 20000, "and is probed later");
}

static void
test_burst(void) /* 20 at once, 5 let in, refusals and greetings mixed */
{
    struct ceiling c = {0};
    int open = 1, refused = 0;
    for (int i = 0; i < 19; i++)
        if (i % 2 == 1 && open < 5)
            ceiling_greeted(&c, START + i, ++open);
        else
            ceiling_refused(&c, START + i, open), refused++;
    is_number(open + refused, 20, "all answered");
    is_number(ceiling_allows(&c, START + 20), 5, "one burst is enough");
}

/* A site that lets in limit, each opening as the ceiling allows, one try a second, for
 * an hour; one in noise fails in any case. Returns the sessions refused. */
static int
simulate(int limit, int noise, struct ceiling *c, int wish, int *most)
{
    uint64_t random = 42;
    int open = 1, refused = 0;
    *most = 1;
    for (int64_t now = START; now < START + 3600000; now += 100) {
        if (now % 20000 == 0 && open > 1)
            open--; /* sessions end now and then */
        if (open >= wish || open >= ceiling_allows(c, now))
            continue;
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        if (open < limit && (noise == 0 || (random >> 33) % (unsigned)noise != 0)) {
            ceiling_greeted(c, now, ++open);
        } else {
            ceiling_refused(c, now, open);
            refused++;
        }
        *most = open > *most ? open : *most;
    }
    return refused;
}

static void
test_hour(void)
{
    struct ceiling c = {0};
    int most;
    int refused = simulate(5, 0, &c, 20, &most);
    printf("# %d refused in an hour\n", refused);
    ok_named(refused <= 20, "few sessions are refused in an hour");
    is_number(most, 5, "all that are let in are used");
    for (int noise = 4; noise <= 8; noise *= 2) {
        c = (struct ceiling){0};
        simulate(1000, noise, &c, 20, &most);
        is_number(most, 20, "noise does not keep the sessions down");
    }
    c = found_at(5);
    simulate(1000, 0, &c, 20, &most);
    is_number(most, 20, "a site that bears more now is found out");
}

static void
test_shift(void)
{
    struct ceiling c = {0}, same = found_at(5);
    ceiling_shift(&c, 1000);
    ok_named(ceiling_wake_ms(&c) == INT64_MAX, "never stays never");
    c = found_at(5);
    ceiling_greeted(&c, START + 10000, 6);
    ceiling_shift(&c, -3600000);
    is_number(ceiling_wake_ms(&c), START + 11000 - 3600000, "the clock was set back");
    is_number(c.probed_at_ms, START + 10000 - 3600000, "so was the trial");
    ceiling_shift(&same, 77);
    is_number(same.probed_at_ms, 0, "no trial stays none");
    c = (struct ceiling){.sessions = INT_MAX};
    is_number(ceiling_allows(&c, START), INT_MAX, "no overflow");
}

int
main(void)
{
    tap_tests("");
    test_burst();
    test_hour();
    test_shift();
    return done();
}
