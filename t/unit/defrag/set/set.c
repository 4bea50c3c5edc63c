/* defrag/set/set.c: what belongs together, for whom it is complete, what is given up. */
#include "defrag/set/set.h"

#include "base/memory.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1700000000000)

enum { RETENTION_MS = 1000000, MEMORY_MS = 500000, NAMES = 8 };

static const struct set_limits wide = {.parts = 1000};

struct world {
    struct sets *sets;
    uint64_t serial;
    int64_t now_ms, growth; /* of sizes, by number */
    struct set_answer answer;
    unsigned absorbed[NAMES];
};

static struct world
begin(const struct set_limits *limits)
{
    return (struct world){.sets = sets_new(limits), .now_ms = NOW};
}

static const struct text names[NAMES] = {
    TEXT("a@x"), TEXT("b@x"), TEXT("c@x"), TEXT("d@x"),
    TEXT("e@x"), TEXT("f@x"), TEXT("g@x"), TEXT("h@x"),
};

/* "ab": for a@x and b@x. The body is one letter. */
static struct id
add_of(struct world *w, char key, uint32_t number, uint32_t total, const char *who,
       char body, uint64_t sender)
{
    struct text recipients[NAMES];
    struct fragment f = {
        .id = {(uint64_t)NOW, ++w->serial},
        .number = number,
        .total = total,
        .size = 100 + w->growth * number,
        .until_ms = w->now_ms + RETENTION_MS,
        .memory_ms = MEMORY_MS,
        .sender = sender,
        .client = sender / 10,
        .recipients = recipients
    };
    memset(f.key, key, sizeof(f.key));
    memset(f.digest, body, sizeof(f.digest));
    for (; who[f.count] != '\0'; f.count++)
        recipients[f.count] = names[who[f.count] - 'a'];
    w->answer.absorbed = w->absorbed;
    sets_add(w->sets, &f, w->now_ms, &w->answer);
    return f.id;
}

static struct id
add(struct world *w, uint32_t number, uint32_t total, const char *who)
{
    return add_of(w, 'K', number, total, who, (char)('A' + number % 26), 1);
}

static bool
held(const struct world *w)
{
    return w->answer.verdict == SET_HOLDS;
}

static bool
passed(const struct world *w, enum set_reason reason)
{
    return w->answer.verdict == SET_PASSES && w->answer.reason == reason;
}

static bool
same(struct id a, struct id b)
{
    return id_compare(a, b) == 0;
}

/* So many messages are released, for that reason. */
static void
is_released(struct world *w, size_t count, enum set_reason reason, const char *name)
{
    struct set_released r;
    size_t got = 0, other = 0;
    for (; sets_next_released(w->sets, &r); got++)
        other += r.reason != reason;
    is_number((long long)got, (long long)count, name);
    is_number((long long)other, 0, set_reason_text(reason));
}

static void
is_counted(const struct world *w, size_t open, size_t closed, size_t messages)
{
    struct sets_count count = sets_count(w->sets);
    is_number((long long)count.open, (long long)open, "so many are open");
    is_number((long long)count.closed, (long long)closed, "so many are remembered");
    is_number((long long)count.messages, (long long)messages, "messages wait");
    is_number(count.bytes, (long long)messages * 100, "and bytes");
    ok_named((count.oldest_ms == NOW) == (open > 0), "the oldest is told");
}

static void
finish(struct world *w)
{
    sets_free(&w->sets);
    ok_named(w->sets == NULL, "it is gone");
}

/* --- Joins ------------------------------------------------------------------------ */

TEST(orders)
{
    static const uint32_t orders[6][3] = {
        {1, 2, 3},
        {1, 3, 2},
        {2, 1, 3},
        {2, 3, 1},
        {3, 1, 2},
        {3, 2, 1}
    };
    for (int i = 0; i < 18; i++) {
        struct world w = begin(&wide);
        struct id ids[4];
        int who_says = i / 6; /* all, the last, the first */
        for (int k = 0; k < 3; k++) {
            uint32_t number = orders[i % 6][k];
            bool says = who_says == 0 || (who_says == 1) == (number == 3);
            ok_named(sets_next_reassembly(w.sets) == NULL, "not yet");
            ids[number] = add(&w, number, says ? 3 : 0, "a");
            ok(held(&w) && w.answer.have == (uint32_t)k + 1);
        }
        is_number(w.answer.total, 3, "the total is known");
        const struct set_reassembly *join = sets_next_reassembly(w.sets);
        ok_named(join != NULL && join->count == 3 && join->recipient_count == 1 &&
                     join->served_count == 3,
                 who_says == 0   ? "check 14: complete"
                 : who_says == 1 ? "check 15: E2: complete, the last says the total"
                                 : "check 16: complete, the first says the total");
        if (join != NULL) {
            ok_named(same(join->parts[0], ids[1]) && same(join->parts[1], ids[2]) &&
                         same(join->parts[2], ids[3]),
                     "in the order of their numbers");
            is_text(join->recipients[0], names[0], "for the recipient");
            ok(join->key[0] == 'K');
            ok_named(sets_next_reassembly(w.sets) == NULL, "once");
            is_counted(&w, 1, 0, 3);
            sets_reassembled(w.sets, join, w.now_ms);
        }
        is_counted(&w, 0, 1, 0);
        is_released(&w, 0, SET_TIMEOUT, "nothing is released");
        finish(&w);
    }
}

TEST(sizes)
{
    struct world w = begin(&wide);
    w.growth = 7;
    add(&w, 3, 3, "a");
    add(&w, 1, 3, "a");
    add(&w, 2, 3, "a");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok_named(join != NULL && join->sizes[0] == 107 && join->sizes[1] == 114 &&
                 join->sizes[2] == 121,
             "the sizes of the bodies, in the order of their numbers");
    sets_reassembled(w.sets, join, NOW);
    finish(&w);
}

TEST(no_total)
{
    struct world w = begin(&wide);
    for (uint32_t n = 1; n <= 3; n++)
        add(&w, n, 0, "a");
    ok_named(sets_next_reassembly(w.sets) == NULL, "E2: without a total nobody knows");
    sets_tick(w.sets, NOW + RETENTION_MS);
    is_released(&w, 3, SET_TIMEOUT, "so they go on");
    finish(&w);
    w = begin(&wide);
    add(&w, 1, 1, "ab");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok_named(join != NULL && join->count == 1 && join->recipient_count == 2,
             "one of one is complete at once");
    sets_reassembled(w.sets, join, NOW);
    finish(&w);
}

/* The parts of one reassembly are not gone with another one: each of them takes
 * messages that it serves itself. */
TEST(two_copies)
{
    struct world w = begin(&wide);
    struct id ids[5];
    struct set_view view;
    for (uint32_t i = 1; i <= 4; i++)
        ids[i] = add(&w, i <= 2 ? i : i - 2, 2, i <= 2 ? "a" : "b");
    const struct set_reassembly *first = sets_next_reassembly(w.sets);
    const struct set_reassembly *second = sets_next_reassembly(w.sets);
    ok(first != NULL && second != NULL);
    is_text(first->recipients[0], names[0], "first for a");
    sets_reassembled(w.sets, first, NOW);
    ok_named(!sets_find(w.sets, ids[1], &view) && !sets_find(w.sets, ids[2], &view),
             "its messages are gone");
    ok_named(same(second->parts[0], ids[3]) && same(second->parts[1], ids[4]),
             "the second has its own");
    sets_reassembled(w.sets, second, NOW);
    is_counted(&w, 0, 1, 0);
    finish(&w);
}

/* Petrel may stop at any time. */
TEST(freed_amid_joins)
{
    for (int taken = 0; taken <= 3; taken++) {
        struct world w = begin(&wide);
        add(&w, 1, 1, "a");
        add_of(&w, 'L', 1, 1, "b", 'B', 2);
        add_of(&w, 'M', 1, 1, "b", 'B', 2);
        add_of(&w, 'N', 1, 2, "b", 'B', 2);
        for (int i = 0; i < taken; i++)
            ok(sets_next_reassembly(w.sets) != NULL);
        finish(&w);
    }
}

/* Part 1 for a and b, part 2 for a, part 2 again for b: two joins. */
TEST(recipients)
{
    struct world w = begin(&wide);
    struct id first = add(&w, 1, 2, "ab");
    add(&w, 2, 2, "a");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok(join != NULL && join->recipient_count == 1 && join->served_count == 2);
    is_text(join->recipients[0], names[0], "check 38: a has both");
    struct id last = add(&w, 2, 2, "b");
    ok_named(held(&w), "the same for another one is no repetition");
    const struct set_reassembly *other = sets_next_reassembly(w.sets);
    ok(other != NULL && other->recipient_count == 1 && other->served_count == 2);
    is_text(other->recipients[0], names[1], "check 38: then b");
    ok_named(same(other->parts[0], first), "the first is for both");
    sets_reassembled(w.sets, join, NOW);
    is_counted(&w, 1, 0, 2);
    struct set_view view;
    ok_named(sets_find(w.sets, first, &view) && view.reassembling, "b's is under way");
    sets_reassembled(w.sets, other, NOW);
    ok_named(!sets_find(w.sets, last, &view), "nothing is left");
    is_counted(&w, 0, 1, 0);
    finish(&w);
}

TEST(some_wait)
{
    struct world w = begin(&wide);
    add(&w, 1, 2, "abc");
    add(&w, 2, 2, "ac");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok(join != NULL && join->recipient_count == 2 && join->served_count == 4);
    sets_reassembled(w.sets, join, NOW);
    is_counted(&w, 1, 0, 1);
    add(&w, 2, 2, "ac");
    ok_named(w.answer.verdict == SET_ABSORBS, "who has it all needs no more");
    add(&w, 2, 2, "abc");
    ok_named(held(&w) && w.answer.absorbed_count == 2 && w.absorbed[0] == 0 &&
                 w.absorbed[1] == 2,
             "only who waits needs it");
    join = sets_next_reassembly(w.sets);
    ok(join != NULL && join->recipient_count == 1);
    sets_reassembled(w.sets, join, NOW);
    is_counted(&w, 0, 1, 0);
    finish(&w);
}

/* --- Odd input -------------------------------------------------------------------- */

TEST(repeated)
{
    struct world w = begin(&wide);
    add(&w, 1, 2, "a");
    add(&w, 1, 2, "a");
    ok_named(w.answer.verdict == SET_ABSORBS, "check 32: E7: a repetition");
    add(&w, 1, 0, "ab");
    ok_named(held(&w) && w.answer.absorbed_count == 1 && w.absorbed[0] == 0,
             "for b it is none");
    is_counted(&w, 1, 0, 2);
    add(&w, 2, 2, "ab");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok(join != NULL && join->recipient_count == 2 && join->served_count == 4);
    sets_reassembled(w.sets, join, NOW);
    add(&w, 2, 2, "b");
    ok_named(w.answer.verdict == SET_ABSORBS, "check 39: afterwards, too");
    add(&w, 2, 2, "c");
    ok_named(passed(&w, SET_REASSEMBLED), "but not for somebody else");
    add_of(&w, 'K', 2, 2, "a", 'z', 1);
    ok_named(passed(&w, SET_REASSEMBLED), "nor with another body");
    add(&w, 3, 0, "a");
    ok_named(passed(&w, SET_REASSEMBLED), "nor another number");
    is_counted(&w, 0, 1, 0);
    sets_tick(w.sets, NOW + MEMORY_MS - 1);
    is_counted(&w, 0, 1, 0);
    is_number(sets_wake_ms(w.sets), NOW + MEMORY_MS, "it is remembered until then");
    sets_tick(w.sets, NOW + MEMORY_MS);
    is_counted(&w, 0, 0, 0);
    is_number(sets_wake_ms(w.sets), INT64_MAX, "nothing is due");
    finish(&w);
}

static void
is_conflict(uint32_t number, uint32_t total, char body, const char *name)
{
    struct world w = begin(&wide);
    add(&w, 2, 3, "a");
    add(&w, 3, 3, "b");
    add_of(&w, 'K', number, total, "a", body, 1);
    ok_named(passed(&w, SET_CONFLICT), name);
    is_released(&w, 2, SET_CONFLICT, "all goes on as it is");
    is_counted(&w, 0, 1, 0);
    add(&w, 1, 3, "a");
    ok_named(passed(&w, SET_CONFLICT), "what comes later, too, with the reason");
    sets_tick(w.sets, NOW + MEMORY_MS);
    add(&w, 1, 3, "a");
    ok_named(held(&w), "until it is forgotten");
    finish(&w);
}

TEST(conflicts)
{
    is_conflict(2, 3, 'z', "check 33: E7: two bodies for one number");
    is_conflict(2, 4, 'C', "check 34: two totals");
    is_conflict(1, 4, 'B', "check 34: also of another number");
    is_conflict(4, 0, 'E', "check 35: a number beyond the total");
    is_conflict(1, 2, 'B', "check 35: a total below a number");
}

TEST(keys)
{
    struct world w = begin(&wide);
    add_of(&w, 'K', 1, 2, "a", 'A', 1);
    add_of(&w, 'L', 2, 2, "a", 'B', 1);
    ok_named(sets_next_reassembly(w.sets) == NULL, "check 36: two keys are two sets");
    is_counted(&w, 2, 0, 2);
    finish(&w);
}

/* --- Time ------------------------------------------------------------------------- */

TEST(time)
{
    struct world w = begin(&wide);
    struct id first = add(&w, 1, 3, "a");
    w.now_ms += 600000;
    add(&w, 2, 3, "a");
    struct set_view view;
    ok(sets_find(w.sets, first, &view) && view.have == 2 && view.total == 3);
    is_number(view.until_ms, NOW + RETENTION_MS,
              "check 42: the first counts, no later one");
    is_number(view.highest, 2, "the highest number");
    ok(sets_has(w.sets, view.key, 1) && sets_has(w.sets, view.key, 2) &&
       !sets_has(w.sets, view.key, 3));
    is_number(sets_wake_ms(w.sets), NOW + RETENTION_MS, "then it is due");
    sets_tick(w.sets, NOW + RETENTION_MS - 1);
    is_released(&w, 0, SET_TIMEOUT, "not before");
    sets_tick(w.sets, NOW + RETENTION_MS);
    struct set_released r;
    ok(sets_next_released(w.sets, &r) && same(r.id, first));
    ok_named(r.key[0] == 'K', "oldest first");
    is_released(&w, 1, SET_TIMEOUT, "then the other");
    ok(!sets_find(w.sets, first, &view) && !sets_has(w.sets, r.key, 1));
    finish(&w);
}

/* The first is the one born first, not the one that came first. */
TEST(born_first)
{
    struct world w = begin(&wide);
    struct set_view view;
    add_of(&w, 'O', 1, 3, "a", 'A', 1);
    w.now_ms += 5000;
    struct id late = add(&w, 2, 3, "a");
    w.now_ms -= 10000;
    add(&w, 1, 3, "a");
    ok(sets_find(w.sets, late, &view));
    is_number(view.until_ms, w.now_ms + RETENTION_MS, "the earliest time counts");
    is_number(sets_wake_ms(w.sets), w.now_ms + RETENTION_MS, "of all sets' as well");
    w.now_ms += 20000;
    add(&w, 3, 4, "a");
    ok_named(passed(&w, SET_CONFLICT), "a conflict");
    is_released(&w, 2, SET_CONFLICT, "ends it");
    is_number(sets_wake_ms(w.sets), w.now_ms + MEMORY_MS,
              "it is remembered from then on");
    finish(&w);
}

TEST(release_order)
{
    static const uint32_t order[] = {5, 2, 4, 1, 2};
    struct world w = begin(&wide);
    struct id ids[5];
    for (size_t i = 0; i < 5; i++)
        ids[i] = add(&w, order[i], 7, i == 4 ? "b" : "a");
    sets_tick(w.sets, NOW + RETENTION_MS);
    static const size_t wanted[] = {3, 1, 4, 2, 0};
    for (size_t i = 0; i < 5; i++) {
        struct set_released r;
        ok_named(sets_next_released(w.sets, &r) && same(r.id, ids[wanted[i]]),
                 "check 43: by number, then as they came");
    }
    is_released(&w, 0, SET_TIMEOUT, "no more");
    finish(&w);
}

/* --- Ends of joins ---------------------------------------------------------------- */

TEST(failure)
{
    struct world w = begin(&wide);
    add(&w, 1, 2, "a");
    add(&w, 2, 2, "ab");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    sets_failed(w.sets, join, NOW);
    is_released(&w, 2, SET_TROUBLE, "what cannot be joined goes on");
    is_counted(&w, 0, 1, 0);
    finish(&w);
}

/* While one is under way nothing of its set is given up; at its end it is. */
TEST(doom)
{
    for (int how = 0; how < 3; how++) {
        struct world w = begin(&wide);
        add(&w, 1, 2, "ab");
        struct id second = add(&w, 2, 2, "a");
        const struct set_reassembly *join = sets_next_reassembly(w.sets);
        if (how == 0)
            sets_tick(w.sets, NOW + RETENTION_MS);
        else
            add_of(&w, 'K', 1, 2, "a", 'z', 1);
        is_released(&w, 0, SET_TIMEOUT, "not now");
        ok_named(!sets_forget(w.sets, second), "nor taken away");
        if (how == 2)
            sets_failed(w.sets, join, NOW);
        else
            sets_reassembled(w.sets, join, NOW);
        static const enum set_reason reasons[] = {SET_TIMEOUT, SET_CONFLICT,
                                                  SET_TROUBLE};
        is_released(&w, how == 2 ? 2 : 1, reasons[how], "now");
        is_counted(&w, 0, 1, 0);
        finish(&w);
    }
    struct world w = begin(&wide);
    add(&w, 1, 2, "ab");
    add(&w, 2, 2, "a");
    const struct set_reassembly *a = sets_next_reassembly(w.sets);
    add(&w, 2, 2, "b");
    const struct set_reassembly *b = sets_next_reassembly(w.sets);
    sets_failed(w.sets, a, NOW);
    is_released(&w, 0, SET_TROUBLE, "the other is under way");
    sets_reassembled(w.sets, b, NOW);
    is_released(&w, 2, SET_TROUBLE, "then what has failed goes on");
    finish(&w);
}

TEST(forget)
{
    struct world w = begin(&wide);
    struct id first = add(&w, 1, 3, "a"), second = add(&w, 2, 3, "ab");
    ok(sets_forget(w.sets, first) && !sets_forget(w.sets, first));
    struct set_view view;
    ok(sets_find(w.sets, second, &view) && view.have == 1);
    add_of(&w, 'K', 1, 3, "a", 'z', 1);
    ok_named(held(&w), "what is gone is no conflict");
    add(&w, 3, 3, "a");
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok_named(join != NULL && join->recipient_count == 1, "it is complete with that");
    sets_reassembled(w.sets, join, NOW);
    ok(sets_forget(w.sets, second));
    is_counted(&w, 1, 0, 0);
    is_released(&w, 0, SET_TIMEOUT, "nothing is released");
    finish(&w);
    w = begin(&wide);
    add(&w, 1, 2, "a");
    add(&w, 2, 2, "a"); /* its join is never taken */
    finish(&w);
}

/* --- Limits ----------------------------------------------------------------------- */

TEST(quotas)
{
    struct set_limits limits = wide;
    limits.sender_sets = 2;
    limits.client_sets = 3;
    struct world w = begin(&limits);
    add_of(&w, 'A', 1, 2, "a", 'A', 10);
    add_of(&w, 'B', 1, 2, "a", 'A', 10);
    add_of(&w, 'C', 1, 2, "a", 'A', 10);
    ok_named(passed(&w, SET_LIMIT), "a sender has so many sets");
    add_of(&w, 'A', 1, 2, "b", 'A', 10);
    ok_named(held(&w), "more for an open one is taken");
    add_of(&w, 'D', 1, 2, "a", 'A', 11);
    ok_named(held(&w), "another sender has his own");
    add_of(&w, 'E', 1, 2, "a", 'A', 12);
    ok_named(passed(&w, SET_LIMIT), "a client has so many");
    add_of(&w, 'B', 2, 2, "a", 'B', 10);
    sets_reassembled(w.sets, sets_next_reassembly(w.sets), NOW);
    add_of(&w, 'C', 1, 2, "a", 'A', 10);
    ok_named(held(&w), "a set that has ended counts no more");
    for (char key = 'a'; key < 'i'; key++) {
        add_of(&w, key, 1, 2, "a", 'A', (uint64_t)(key - 'a') % 9 + 1);
        ok_named(held(&w), "who is nobody has no quota");
    }
    finish(&w);
}

TEST(limits)
{
    struct set_limits limits = wide;
    limits.sets = 2;
    struct world w = begin(&limits);
    struct id first = add_of(&w, 'A', 1, 2, "a", 'A', 1);
    add_of(&w, 'B', 1, 2, "a", 'A', 1);
    add_of(&w, 'C', 1, 2, "a", 'A', 1);
    ok(held(&w));
    struct set_released r;
    ok_named(sets_next_released(w.sets, &r) && same(r.id, first) &&
                 r.reason == SET_LIMIT,
             "the oldest set goes");
    is_counted(&w, 2, 1, 2);
    for (char key = 'D'; key <= 'I'; key++)
        add_of(&w, key, 1, 2, "a", 'A', 1);
    is_released(&w, 6, SET_LIMIT, "and the next");
    is_counted(&w, 2, 2, 2);
    finish(&w);

    limits = wide;
    limits.bytes = 500;
    limits.set_bytes = 300;
    w = begin(&limits);
    for (uint32_t n = 1; n <= 3; n++)
        add_of(&w, 'A', n, 0, "a", (char)('A' + n), 1);
    add_of(&w, 'B', 1, 0, "a", 'A', 1);
    add_of(&w, 'B', 2, 0, "a", 'B', 1);
    is_released(&w, 0, SET_LIMIT, "as much as may be");
    add_of(&w, 'B', 3, 0, "a", 'C', 1);
    ok(held(&w));
    is_released(&w, 3, SET_LIMIT, "the oldest set makes room");
    add_of(&w, 'B', 4, 0, "a", 'D', 1);
    ok_named(passed(&w, SET_LIMIT), "a set that is too large");
    is_released(&w, 3, SET_LIMIT, "is given up");
    finish(&w);

    limits = wide;
    limits.recipients = 4;
    w = begin(&limits);
    add(&w, 1, 2, "abc");
    add(&w, 2, 2, "de");
    ok_named(passed(&w, SET_LIMIT), "recipients cost memory");
    add(&w, 2, 2, "a");
    ok(held(&w));
    limits.recipients = 0;
    sets_limit(w.sets, &limits);
    add(&w, 2, 2, "bcde");
    ok_named(held(&w), "limits may change");
    finish(&w);
}

/* --- Chance ----------------------------------------------------------------------- */

enum { KEYS = 5, STEPS = 30000, MESSAGES = STEPS };

struct walk {
    struct world w;
    uint64_t random;
    struct {
        unsigned left; /* recipients it is still for, as bits */
        bool is_out;
    } messages[MESSAGES + 1];
    const struct set_reassembly *joins[64];
    size_t join_count;
    unsigned long long held, out, joined;
    int wrong;
};

static unsigned
draw(struct walk *k, unsigned below)
{
    k->random = k->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(k->random >> 33) % below;
}

static void
take_actions(struct walk *k)
{
    struct set_released r;
    const struct set_reassembly *join;
    while (sets_next_released(k->w.sets, &r)) {
        k->wrong += k->messages[r.id.hash].is_out || k->messages[r.id.hash].left == 0;
        k->messages[r.id.hash].is_out = true;
        k->out++;
    }
    while (k->join_count < 64 && (join = sets_next_reassembly(k->w.sets)) != NULL)
        k->joins[k->join_count++] = join;
}

static void
end_join(struct walk *k)
{
    size_t at = draw(k, (unsigned)k->join_count);
    const struct set_reassembly *join = k->joins[at];
    k->joins[at] = k->joins[--k->join_count];
    if (draw(k, 5) == 0) {
        sets_failed(k->w.sets, join, k->w.now_ms);
        return;
    }
    for (size_t i = 0; i < join->served_count; i++) {
        unsigned bit = 1u << (join->served[i].recipient.at[0] - 'a');
        uint64_t message = join->served[i].id.hash;
        k->wrong += k->messages[message].is_out || !(k->messages[message].left & bit);
        k->messages[message].left &= ~bit;
        k->joined += k->messages[message].left == 0;
    }
    k->wrong += join->served_count < join->count * join->recipient_count;
    sets_reassembled(k->w.sets, join, k->w.now_ms);
}

static void
step(struct walk *k)
{
    char who[4] = "", key = (char)('A' + draw(k, KEYS));
    size_t count = 0;
    uint32_t total = 1 + (uint32_t)(key - 'A'), number = 1 + draw(k, total);
    unsigned bits = 0;
    for (char c = 'a'; c <= 'c'; c++)
        if (draw(k, 2) == 0)
            who[count++] = c, bits |= 1u << (c - 'a');
    if (count == 0)
        return;
    char body = draw(k, 60) == 0 ? 'z' : (char)('A' + number);
    uint32_t said = draw(k, 60) == 0 ? total + 1 : draw(k, 3) > 0 ? total : 0;
    struct id id = add_of(&k->w, key, number, said, who, body, draw(k, 4));
    k->messages[id.hash].left = bits;
    if (!held(&k->w)) {
        k->messages[id.hash].is_out = true;
        k->out++;
        return;
    }
    k->held++;
    for (size_t i = 0; i < k->w.answer.absorbed_count; i++)
        k->messages[id.hash].left &= ~(1u << (who[k->w.absorbed[i]] - 'a'));
}

/* Every message is held, out or served to the last recipient, never two of these. */
TEST(walk)
{
    struct set_limits limits = wide;
    limits.sets = 4;
    limits.sender_sets = 3;
    limits.bytes = 1500;
    limits.recipients = 30;
    struct walk *k = memory_new(sizeof(*k));
    k->w = begin(&limits);
    k->random = 7;
    for (int i = 0; i < STEPS; i++) {
        k->w.now_ms += draw(k, 20000);
        if (draw(k, 10) == 0)
            sets_tick(k->w.sets, k->w.now_ms);
        step(k);
        take_actions(k);
        if (k->join_count > 0 && draw(k, 2) == 0)
            end_join(k);
        take_actions(k);
    }
    while (k->join_count > 0) {
        end_join(k);
        take_actions(k);
    }
    size_t left = 0;
    for (uint64_t i = 1; i <= k->w.serial; i++) {
        struct set_view view;
        bool waits = sets_find(k->w.sets, (struct id){(uint64_t)NOW, i}, &view);
        bool is_over = k->messages[i].is_out || k->messages[i].left == 0;
        k->wrong += waits == is_over;
        left += waits;
    }
    printf("# %llu held, %llu out, %llu joined, %zu left\n", k->held, k->out, k->joined,
           left);
    is_number(k->wrong, 0, "all are accounted for");
    is_number((long long)sets_count(k->w.sets).messages, (long long)left,
              "as it counts");
    ok_named(k->joined > 1000 && k->out > 1000, "all of it has happened often");
    finish(&k->w);
    free(k);
}

/* Closed sets remember their recipients; of too many the oldest are forgotten. */
TEST(closed_limit)
{
    enum { MOST = 2000, SETS = 100 }; /* 16,000 bytes are for less than 50 */
    struct set_limits limits = {.parts = 1000, .recipients = MOST};
    struct world w = begin(&limits);
    for (int i = 0; i < SETS; i++) {
        add_of(&w, (char)(i + 1), 1, 2, "abcd", 'A', 1);
        add_of(&w, (char)(i + 1), 2, 2, "abcd", 'B', 1);
        const struct set_reassembly *join = sets_next_reassembly(w.sets);
        ok(join != NULL);
        sets_reassembled(w.sets, join, w.now_ms);
    }
    size_t closed = sets_count(w.sets).closed;
    ok_named(closed > 10 && closed < 50, "not more of them than fit");
    add_of(&w, (char)SETS, 1, 2, "abcd", 'A', 1);
    ok_named(w.answer.verdict == SET_ABSORBS, "the latest is remembered");
    add_of(&w, 1, 1, 2, "abcd", 'A', 1);
    ok_named(held(&w), "the oldest is not: another set begins");
    finish(&w);

    limits.recipients = 3; /* what is open may be less than what it costs closed */
    w = begin(&limits);
    add_of(&w, 'x', 1, 1, "ab", 'A', 1);
    const struct set_reassembly *join = sets_next_reassembly(w.sets);
    ok(join != NULL);
    sets_reassembled(w.sets, join, w.now_ms);
    is_number((long long)sets_count(w.sets).closed, 1, "one there may be");
    finish(&w);
}
