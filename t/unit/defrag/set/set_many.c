/* defrag/set/set.c: no call does more than a bounded part of the work, however many
 * fragments are due. */
#include "defrag/set/set.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

#define NOW INT64_C(1700000000000)

enum { DUE_MS = 1000, SETS = 5000, PARTS = 3, AT_ONCE = 1000 };

static const struct text somebody = TEXT("a@x");

/* Its recipient is a@x, or one of its own. */
static enum set_verdict
many_add(struct sets *s, unsigned key, uint32_t number, uint64_t serial, bool own)
{
    char address[32];
    struct text recipient = somebody;
    struct set_answer answer = {.absorbed = (unsigned[1]){0}};
    struct fragment f = {
        .id = {(uint64_t)NOW, serial},
        .number = number,
        .total = PARTS + 1,
        .size = 100,
        .until_ms = NOW + DUE_MS,
        .memory_ms = DUE_MS,
        .recipients = &recipient,
        .count = 1
    };
    if (own) {
        snprintf(address, sizeof(address), "u%llu@x", (unsigned long long)serial);
        recipient = text_from(address);
    }
    memcpy(f.key, &key, sizeof(key));
    memset(f.digest, (int)number, sizeof(f.digest));
    sets_add(s, &f, NOW, &answer);
    return answer.verdict;
}

static struct sets *
fill(const struct set_limits *limits)
{
    struct sets *s = sets_new(limits);
    uint64_t serial = 0;
    for (unsigned key = 1; key <= SETS; key++)
        for (uint32_t number = 1; number <= PARTS; number++)
            if (many_add(s, key, number, ++serial, false) != SET_HOLDS)
                ok_named(false, "it is held");
    return s;
}

static size_t
take_released(struct sets *s, enum set_reason reason, int *wrong)
{
    struct set_released r;
    size_t count = 0;
    for (; sets_next_released(s, &r); count++)
        *wrong += r.reason != reason || (r.id.hash - 1) % PARTS != count % PARTS;
    return count;
}

/* Each call gives up a bounded number; all of them in the end. */
static void
take_all(struct sets *s, int64_t now_ms, enum set_reason reason, size_t wanted)
{
    size_t all = 0, most = 0, calls = 0;
    int wrong = 0;
    while (all < wanted && calls < wanted) {
        size_t count = take_released(s, reason, &wrong);
        most = count > most ? count : most;
        all += count;
        calls++;
        sets_tick(s, now_ms);
    }
    is_number((long long)all, (long long)wanted, "all are released");
    ok_named(most >= PARTS && most <= AT_ONCE + PARTS, "a bounded number at a time");
    is_number(wrong, 0, "by number within each set, for that reason");
}

TEST(due)
{
    struct sets *s = fill(&(struct set_limits){.parts = PARTS + 1});
    sets_tick(s, NOW + DUE_MS);
    sets_tick(s, NOW + DUE_MS);
    is_number(sets_wake_ms(s), NOW + DUE_MS, "the others are due");
    take_all(s, NOW + DUE_MS, SET_TIMEOUT, (size_t)SETS * PARTS);
    is_number((long long)sets_count(s).closed, SETS, "all sets are remembered");
    sets_tick(s, NOW + 2 * DUE_MS);
    ok_named(sets_count(s).closed >= SETS - 1000 && sets_count(s).closed < SETS,
             "some are forgotten");
    for (int i = 0; i < SETS; i++)
        sets_tick(s, NOW + 2 * DUE_MS);
    is_number((long long)sets_count(s).closed, 0, "then all");
    is_number(sets_wake_ms(s), INT64_MAX, "nothing is due");
    sets_free(&s);
}

/* A reload with a smaller limit. */
TEST(less_space)
{
    struct sets *s = fill(&(struct set_limits){.parts = PARTS + 1});
    sets_limit(s, &(struct set_limits){.parts = PARTS + 1, .sets = 1});
    ok(many_add(s, SETS + 1, 1, (uint64_t)SETS * PARTS + 1, false) == SET_HOLDS);
    take_all(s, NOW, SET_LIMIT, (size_t)SETS * PARTS);
    is_number((long long)sets_count(s).open, 1, "one is left");
    sets_free(&s);
}

/* Fragments of one number for ever more recipients. */
TEST(one_set)
{
    struct sets *s = sets_new(&(struct set_limits){.parts = PARTS + 1});
    uint64_t serial = 0;
    int wrong = 0;
    while (serial < SET_MESSAGES_MAX)
        if (many_add(s, 1, 1, ++serial, true) != SET_HOLDS)
            wrong++;
    is_number(wrong, 0, "so many messages a set may have");
    ok_named(many_add(s, 1, 1, ++serial, true) == SET_PASSES, "not one more");
    is_number((long long)take_released(s, SET_LIMIT, &wrong), SET_MESSAGES_MAX,
              "it is released");
    is_number(wrong, 0, "for that reason");
    sets_free(&s);
}
