/* The queue of ids against a plain sorted array. */
#include "sched/id_queue.h"

#include "t/support/tap.h"

enum { MANY = 200000, STEP = 7919 }; /* STEP has no factor in common with MANY */

static struct id
an_id(uint64_t time_ms, uint64_t hash)
{
    return (struct id){.time_ms = time_ms, .hash = hash};
}

static bool
takes(struct id_queue *q, struct id want)
{
    struct id first, id;
    return id_queue_first(q, &first) && id_queue_take(q, &id) &&
           id_compare(first, want) == 0 && id_compare(id, want) == 0;
}

static void
test_few(void)
{
    struct id_queue q = {0};
    struct id id;
    const struct id last = {(UINT64_C(1) << 50) - 1, (UINT64_C(1) << ID_HASH_BITS) - 1};
    ok(!id_queue_first(&q, &id) && !id_queue_take(&q, &id));
    is_number(id_queue_memory(&q), 0, "an empty one owns nothing");
    id_queue_add(&q, last);
    id_queue_add(&q, an_id(5, UINT64_C(1) << 39));
    id_queue_add(&q, an_id(5, 3));
    id_queue_add(&q, an_id(0, 0));
    id_queue_add(&q, an_id(UINT64_C(1) << 18, UINT64_C(1) << 26));
    is_number(q.count, 5, "added");
    ok_named(takes(&q, an_id(0, 0)), "the least");
    ok_named(takes(&q, an_id(5, UINT64_C(1) << 39)), "of one millisecond the first");
    ok_named(takes(&q, an_id(5, 3)), "then the next, whatever its hash");
    ok_named(takes(&q, an_id(UINT64_C(1) << 18, UINT64_C(1) << 26)), "all bits count");
    ok_named(takes(&q, last), "the greatest");
    is_number(q.count + id_queue_memory(&q), 0, "empty again: nothing");
    id_queue_add(&q, last);
    id_queue_free(&q);
    is_number(q.count + id_queue_memory(&q), 0, "freed: nothing");
}

/* In order, backwards and mixed; what is taken is freed. */
static void
test_many(uint64_t factor, uint64_t offset, double most, const char *name)
{
    struct id_queue q = {0};
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t n = (offset + i * factor) % MANY;
        id_queue_add(&q, an_id(1750000000000 + n, n * STEP));
    }
    double each = (double)id_queue_memory(&q) / MANY;
    printf("# %s: %.1f bytes each\n", name, each);
    ok_named(q.count == MANY && each < most, name);
    for (uint64_t i = 0; i < MANY / 2; i++)
        wrong += !takes(&q, an_id(1750000000000 + i, i * STEP));
    ok_named((double)id_queue_memory(&q) < MANY * most * 0.52, "half of it is freed");
    for (uint64_t i = MANY / 2; i < MANY; i++)
        wrong += !takes(&q, an_id(1750000000000 + i, i * STEP));
    is_number(wrong, 0, "oldest first");
    is_number(id_queue_memory(&q), 0, "all is freed");
}

/* Five blocks of one millisecond between two others, with additions in between. */
TEST(one_millisecond)
{
    struct id_queue q = {0};
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < 600; i++) {
        id_queue_add(&q, an_id(7, 600 - i));
        if (i % 3 == 0)
            id_queue_add(&q, an_id(9, i));
        if (i % 5 == 0)
            id_queue_add(&q, an_id(6, i));
    }
    for (uint64_t i = 0; i < 600; i += 5)
        wrong += !takes(&q, an_id(6, i));
    for (uint64_t i = 0; i < 600; i++)
        wrong += !takes(&q, an_id(7, 600 - i));
    for (uint64_t i = 0; i < 600; i += 3)
        wrong += !takes(&q, an_id(9, i));
    is_number(wrong, 0, "in the order of their addition");
    is_number(q.count, 0, "and no more");
}

TEST(unite)
{
    struct id_queue q = {0};
    uint64_t wrong = 0;
    id_queue_unite(&q);
    is_number(q.count, 0, "nothing remains nothing");
    for (unsigned round = 0; round < 3; round++)
        for (uint64_t i = 0; i < 1000; i++)
            id_queue_add(&q, an_id(i / 300, (i + 500 * round) * STEP % 1000));
    id_queue_unite(&q);
    /* The second round has other hashes in a millisecond, which follow the first's. */
    static bool seen[4][1000];
    uint64_t left = q.count;
    for (uint64_t time_ms = 0; time_ms < 4; time_ms++)
        for (unsigned round = 0; round < 3; round++)
            for (uint64_t i = time_ms * 300; i < 1000 && i < (time_ms + 1) * 300; i++) {
                uint64_t hash = (i + 500 * round) * STEP % 1000;
                if (!seen[time_ms][hash]) {
                    wrong += !takes(&q, an_id(time_ms, hash));
                    left--;
                }
                seen[time_ms][hash] = true;
            }
    is_number(wrong, 0, "one of each, in the order of the first additions");
    is_number(left + q.count, 0, "and no other");
}

static bool
is_odd(const void *context, struct id id)
{
    ++*(size_t *)(uintptr_t)context;
    return id.hash % 2 == 1;
}

/* A queue of many is sifted in steps while ids come at both ends and in the middle, and the
 * oldest go. */
TEST(sift)
{
    struct id_queue q = {0};
    struct id id, before = {0};
    size_t asked = 0, steps = 0, even = 0, most = 1000;
    for (uint64_t i = 0; i < MANY; i++)
        id_queue_add(&q, an_id(i / 3, i));
    id_queue_sift_begin(&q);
    while (!id_queue_sift(&q, &most, is_odd, &asked)) {
        uint64_t i = MANY + 7 * steps++;
        ok(most < 128);
        id_queue_add(&q, an_id(MANY / 3 + steps, i | 1));
        id_queue_add(&q, an_id(i % (MANY / 3), i | 1));
        ok(id_queue_take(&q, &id));
        most = 1000;
    }
    ok_named(steps > MANY / 1000 && steps < MANY / 800, "as many ids in a step");
    ok_named(asked >= MANY - steps && asked < MANY + 2 * steps, "each id once");
    ok_named((double)id_queue_memory(&q) < MANY / 2 * 25, "blocks stay full");
    uint64_t wrong = 0, left = 0;
    for (; id_queue_take(&q, &id); before = id) {
        wrong += id.time_ms < before.time_ms;
        even += id.hash % 2 == 0;
        left++;
    }
    is_number(even, 0, "none that was not wanted");
    is_number(wrong, 0, "in order");
    ok_named(left >= MANY / 2 && left < MANY / 2 + 2 * steps, "all others");
    is_number(q.count + id_queue_memory(&q), 0, "nothing is left");
    most = 0;
    id_queue_sift_begin(&q);
    ok_named(id_queue_sift(&q, &most, is_odd, &asked), "none: over immediately");
    for (uint64_t i = 0; i < 300; i++)
        id_queue_add(&q, an_id(5, 2 * i));
    most = 1000;
    id_queue_sift_begin(&q);
    ok(id_queue_sift(&q, &most, is_odd, &asked));
    is_number(q.count + id_queue_memory(&q), 0, "all are unwanted: nothing is left");
    is_number(most, 700, "they were counted");
}

TEST(has)
{
    struct id_queue q = {0};
    uint64_t wrong = 0;
    ok(!id_queue_has(&q, an_id(1, 1)));
    for (uint64_t i = 0; i < 3000; i++)
        id_queue_add(&q, an_id(2 * (i / 300), 2 * (i * STEP % 3000)));
    for (uint64_t i = 0; i < 3000; i++) {
        wrong += !id_queue_has(&q, an_id(2 * (i / 300), 2 * (i * STEP % 3000)));
        wrong += id_queue_has(&q, an_id(2 * (i / 300), 2 * (i * STEP % 3000) + 1));
        wrong += id_queue_has(&q, an_id(2 * (i / 300) + 1, 2 * (i * STEP % 3000)));
    }
    is_number(wrong, 0, "it has what was added, and nothing else");
    for (uint64_t i = 0; i < 5000; i++)
        id_queue_add(&q, an_id(77, i));
    ok_named(id_queue_has(&q, an_id(77, 4999)) && !id_queue_has(&q, an_id(77, 0)), "of very many the last");
    id_queue_free(&q);
}

int
main(void)
{
    test_few();
    test_many(1, 0, 12.4, "in order");
    test_many(MANY - 1, MANY - 1, 25, "backwards");
    test_many(STEP, 0, 25, "in no order");
    tap_tests("");
    return done();
}
