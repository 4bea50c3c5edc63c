/* The list of ids with their directories. */
#include "queue/spool/id_list.h"

#include "t/support/tap.h"

enum { MANY = 1000000, STEP = 7919 }; /* STEP has no factor in common with MANY */

static struct id
an_id(uint64_t n)
{
    return (struct id){.time_ms = 1750000000000 + n / 16, .hash = n % 16};
}

/* As a directory lists them: every id once, in no order. */
static void
note_many(struct id_list *l, unsigned dirs)
{
    for (uint64_t i = 0; i < MANY; i++)
        id_list_note(l, an_id(i * STEP % MANY), dirs);
}

TEST(few)
{
    struct id_list l = {0};
    id_list_sort(&l);
    is_number((int64_t)l.count, 0, "nothing sorted is nothing");
    id_list_note(&l, an_id(7), 1);
    id_list_note(&l, an_id(3), 2);
    id_list_note(&l, an_id(7), 4);
    id_list_sort(&l);
    is_number((int64_t)l.count, 2, "an id noted twice before sorting is one");
    ok_named(id_compare(id_list_id(&l.rows[0]), an_id(3)) == 0, "the oldest is first");
    is_number(l.rows[1].dirs, 5, "with the directories of both notes");
    id_list_note(&l, an_id(7), 8);
    id_list_note(&l, an_id(5), 1);
    id_list_note(&l, an_id(9), 1);
    id_list_note(&l, an_id(1), 1);
    id_list_sort(&l);
    unsigned wrong = 0;
    for (size_t i = 0; i < l.count; i++)
        wrong += id_compare(id_list_id(&l.rows[i]), an_id(2 * i + 1)) != 0;
    is_number((int64_t)l.count, 5, "one noted after sorting is found");
    is_number(wrong, 0, "later ones are merged");
    is_number(l.rows[3].dirs, 13, "and nothing is lost");
    id_list_free(&l);
    is_number((int64_t)(l.count + id_list_memory(&l)), 0, "freed: empty");
}

/* More notes than are taken together: new ids, known ones and repeated ones between
 * each other, against a plain table. */
TEST(mixed)
{
    enum { IDS = 20000, NOTES = 100000 };
    static unsigned want[IDS];
    struct id_list l = {0};
    unsigned wrong = 0;
    size_t count = 0;
    for (uint64_t i = 0; i < NOTES; i++) {
        uint64_t n = i * i * 31 % 65537 % IDS;
        unsigned dirs = 1u << i % 7;
        want[n] |= dirs;
        id_list_note(&l, an_id(n), dirs);
        if (i % 30011 == 0)
            id_list_sort(&l);
    }
    ok_named(id_list_memory(&l) > l.capacity * sizeof(*l.rows), "notes that wait count");
    id_list_sort(&l);
    is_number(id_list_memory(&l), l.capacity * sizeof(*l.rows), "and none waits");
    for (uint64_t n = 0; n < IDS; n++) {
        if (want[n] == 0)
            continue;
        wrong += count >= l.count || l.rows[count].dirs != want[n] ||
                 id_compare(id_list_id(&l.rows[count]), an_id(n)) != 0;
        count++;
    }
    ok_named(count > IDS / 2 && count < NOTES, "some are new, some known, some repeated");
    is_number(wrong, 0, "each has all its directories");
    is_number((int64_t)l.count, (int64_t)count, "once");
    id_list_note(&l, an_id(1), 1);
    id_list_free(&l);
    is_number((int64_t)(l.count + id_list_memory(&l)), 0, "freed with a note: empty");
}

TEST(limits)
{
    struct id_list l = {0};
    struct id last = {(UINT64_C(1) << 50) - 1, (UINT64_C(1) << ID_HASH_BITS) - 1};
    id_list_note(&l, last, (1u << 24) - 1);
    id_list_note(&l, (struct id){0}, 1);
    id_list_sort(&l);
    ok_named(id_compare(id_list_id(&l.rows[0]), (struct id){0}) == 0, "the least id");
    ok_named(id_compare(id_list_id(&l.rows[1]), last) == 0, "the greatest");
    is_number(l.rows[1].dirs, (1 << 24) - 1, "every directory");
    id_list_free(&l);
}

TEST(million)
{
    struct id_list l = {0};
    unsigned wrong = 0;
    note_many(&l, 1);
    id_list_sort(&l);
    size_t memory = id_list_memory(&l);
    note_many(&l, 2);
    note_many(&l, 4);
    id_list_sort(&l);
    is_number((int64_t)l.count, MANY, "a million ids in three directories are a million");
    for (size_t i = 0; i < l.count; i++)
        wrong += l.rows[i].dirs != 7 || id_compare(id_list_id(&l.rows[i]), an_id(i)) != 0;
    is_number(wrong, 0, "each is in its place, with all directories");
    ok_named(memory <= (size_t)MANY * 20, "at most 20 bytes each");
    ok_named(id_list_memory(&l) == memory, "more directories need no more");
    id_list_free(&l);
}
