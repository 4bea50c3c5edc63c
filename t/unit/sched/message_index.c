/* The index of known messages: against a plain array, in order of due time, and its
 * size. */
#include "sched/message_index.h"

#include "t/support/tap.h"

enum { MODEL_MAX = 3000 };

struct model {
    struct id id;
    int64_t due;
    unsigned attempts;
    int place; /* -1 = unknown */
};

static uint64_t state = 42;

static unsigned
chance(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((state >> 33) % below);
}

static struct id
id_of(unsigned n)
{
    return (struct id){.time_ms = n / 3 + 1000, .hash = n % 3};
}

static bool
model_before(const struct model *a, const struct model *b)
{
    return a->due != b->due ? a->due < b->due : id_compare(a->id, b->id) < 0;
}

/* The oldest ids, as the models have them. */
static bool
same_oldest(const struct message_index_set *set, const struct model *models)
{
    struct id ids[70];
    size_t most = chance(70) + 1, count = message_index_oldest(set, ids, most), seen = 0;
    for (int i = 0; i < MODEL_MAX && seen < most; i++)
        if (models[i].place >= 0 && (seen >= count || id_compare(ids[seen++], models[i].id) != 0))
            return false;
    return seen == count;
}

static bool
same_first(const struct message_index_set *set, const struct model *models, enum message_index_age age)
{
    const struct model *first = NULL;
    for (int i = 0; i < MODEL_MAX; i++) {
        const struct model *m = &models[i];
        if (m->place == MESSAGE_INDEX_WAITING && (m->attempts > 0) == (age == MESSAGE_INDEX_OLD) &&
            (!first || model_before(m, first)))
            first = m;
    }
    const struct message_index *k = message_index_first(set, age);
    if (!k || !first)
        return !k == !first;
    return id_compare(message_index_id(k), first->id) == 0 && k->due_ms == first->due;
}

static bool
same(struct message_index_set *set, const struct model *models)
{
    size_t count = 0, waiting[2] = {0};
    for (int i = 0; i < MODEL_MAX; i++) {
        const struct model *m = &models[i];
        struct message_index *k = message_index_find(set, m->id);
        if ((k != NULL) != (m->place >= 0))
            return false;
        if (!k)
            continue;
        count++;
        if ((int)k->place != m->place || k->attempts != m->attempts)
            return false;
        if (m->place == MESSAGE_INDEX_WAITING) {
            waiting[m->attempts > 0]++;
            if (k->due_ms != m->due)
                return false;
        }
    }
    return set->count == count && set->waiting[0] == waiting[0] &&
           set->waiting[1] == waiting[1] && same_first(set, models, MESSAGE_INDEX_NEW) &&
           same_first(set, models, MESSAGE_INDEX_OLD) && same_oldest(set, models);
}

static bool
step(struct message_index_set *set, struct model *m)
{
    struct message_index *k = message_index_find(set, m->id);
    switch (chance(6)) {
    case 0:
    case 1:
        if (m->place >= 0)
            return !message_index_add(set, m->id, 5, 5);
        m->due = chance(1000);
        m->attempts = chance(3);
        m->place = MESSAGE_INDEX_WAITING;
        return message_index_add(set, m->id, m->due, m->attempts);
    case 2:
        if (m->place < 0)
            return true;
        message_index_remove(set, m->id);
        m->place = -1;
        return true;
    case 3:
        if (m->place != MESSAGE_INDEX_WAITING)
            return true;
        message_index_load(set, k);
        m->place = MESSAGE_INDEX_LOADING;
        return true;
    case 4:
        if (m->place != MESSAGE_INDEX_LOADING)
            return true;
        message_index_activate(set, k, NULL);
        m->place = MESSAGE_INDEX_ACTIVE;
        return true;
    default:
        if (m->place < 0)
            return true;
        m->due = chance(1000);
        m->attempts = chance(3);
        m->place = MESSAGE_INDEX_WAITING;
        message_index_wait(set, k, m->due, m->attempts);
        return true;
    }
}

TEST(model)
{
    static struct model models[MODEL_MAX];
    bool good = true;
    FIXTURE(message_index_set, set, message_index_init, message_index_free);
    for (unsigned i = 0; i < MODEL_MAX; i++)
        models[i] = (struct model){.id = id_of(i), .place = -1};
    for (unsigned i = 0; i < 200000 && good; i++) {
        good = step(&set, &models[chance(i < 100000 ? MODEL_MAX : MODEL_MAX / 20)]);
        if (i % 1000 == 0)
            good = good && same(&set, models);
    }
    ok_named(good, "200000 random steps, as a plain array would have it");
    message_index_shift(&set, -500);
    for (int i = 0; i < MODEL_MAX; i++)
        models[i].due -= 500;
    ok_named(same(&set, models), "a shift moves all that waits");
    message_index_force_all(&set, 100);
    for (int i = 0; i < MODEL_MAX; i++)
        if (models[i].due > 100)
            models[i].due = 100;
    ok_named(same(&set, models),
             "force_all makes all due, and keeps what was due before");
}

TEST(order)
{
    FIXTURE(message_index_set, set, message_index_init, message_index_free);
    ok(message_index_first(&set, MESSAGE_INDEX_NEW) == NULL);
    ok(message_index_find(&set, id_of(1)) == NULL);
    is_number(message_index_memory(&set), 0, "nothing known, nothing allocated");
    ok(message_index_add(&set, id_of(7), 10, 0));
    ok(message_index_add(&set, id_of(3), 10, 0));
    ok(message_index_add(&set, id_of(9), 5, 1));
    ok(message_index_add(&set, id_of(1), 20, 0));
    ok(!message_index_add(&set, id_of(3), 1, 0));
    is_number(id_compare(message_index_id(message_index_first(&set, MESSAGE_INDEX_NEW)), id_of(3)), 0,
              "equal due times: the older message");
    is_number(id_compare(message_index_id(message_index_first(&set, MESSAGE_INDEX_OLD)), id_of(9)), 0,
              "deferred mail is another order");
    message_index_remove(&set, id_of(3));
    is_number(id_compare(message_index_id(message_index_first(&set, MESSAGE_INDEX_NEW)), id_of(7)), 0,
              "the next");
}

TEST(extremes)
{
    struct id last = {(UINT64_C(1) << 50) - 1, (UINT64_C(1) << 40) - 1}, zero = {0, 0};
    FIXTURE(message_index_set, set, message_index_init, message_index_free);
    ok(message_index_add(&set, last, INT64_MAX, UINT32_MAX));
    ok(message_index_add(&set, zero, INT64_MIN, 0));
    const struct message_index *k = message_index_find(&set, last);
    ok(k && k->due_ms == INT64_MAX && id_compare(message_index_id(k), last) == 0);
    is_number(k->attempts, MESSAGE_INDEX_ATTEMPTS_MAX, "attempts stop at their limit");
    ok(message_index_find(&set, zero) != NULL);
    message_index_wait(&set, message_index_find(&set, zero), 7, UINT32_MAX);
    is_number(message_index_find(&set, zero)->attempts, MESSAGE_INDEX_ATTEMPTS_MAX, "here too");
    message_index_remove(&set, last);
    message_index_remove(&set, zero);
    is_number(set.block_count, 0, "empty again");
}

TEST(memory)
{
    enum { MANY = 100000 };
    struct message_index_set set;
    message_index_init(&set);
    for (unsigned i = 0; i < MANY; i++)
        message_index_add(&set, id_of(i), i, 1);
    double ordered = (double)message_index_memory(&set) / MANY;
    printf("# %.1f bytes a message that came in order\n", ordered);
    ok_named(ordered < 28, "in order: below 28 bytes a message");
    for (unsigned i = 0; i < MANY; i++)
        if (chance(2))
            message_index_remove(&set, id_of(i));
    double sparse = (double)message_index_memory(&set) / (double)set.count;
    printf("# %.1f bytes a message after half of them went\n", sparse);
    ok_named(sparse < 60, "with gaps: below 60");
    for (unsigned i = 0; i < MANY; i++)
        if (chance(10) && message_index_find(&set, id_of(i)))
            message_index_remove(&set, id_of(i));
    sparse = (double)message_index_memory(&set) / (double)set.count;
    printf("# %.1f bytes a message after 95 of 100 went\n", sparse);
    ok_named(sparse < 70, "blocks that empty are merged");
    message_index_free(&set);
    message_index_init(&set);
    for (unsigned i = 0; i < MANY; i++)
        message_index_add(&set, (struct id){chance(1u << 31), chance(1u << 31)}, i, 1);
    double random = (double)message_index_memory(&set) / (double)set.count;
    printf("# %.1f bytes a message in random order\n", random);
    ok_named(random < 42, "in random order: below 42");
    message_index_free(&set);
}

static void
count_one(void *context, struct message_index *k)
{
    (void)k;
    ++*(size_t *)context;
}

TEST(each)
{
    size_t count = 0;
    FIXTURE(message_index_set, set, message_index_init, message_index_free);
    for (unsigned i = 0; i < 1000; i++)
        message_index_add(&set, id_of(i * 7919 % 1000), i, 0);
    message_index_each(&set, count_one, &count);
    is_number(count, 1000, "each visits all");
}
