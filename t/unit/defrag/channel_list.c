/* The view that operators have of the sets that wait: numbers that are there and missing, in bounds, in
 * pages. */
/* link: t/sim/loop.c */
#include "t/support/channel_world.h"

enum { SEEN_MAX = 10 };

struct seen {
    size_t count;
    struct manager_set sets[SEEN_MAX];
    char recipients[SEEN_MAX][64], owners[SEEN_MAX][64];
};

static void
saw(void *context, const struct manager_set *set)
{
    struct seen *seen = context;
    if (seen->count == SEEN_MAX)
        abort();
    snprintf(seen->recipients[seen->count], 64, "%.*s", TEXT_ARGS(set->recipient));
    snprintf(seen->owners[seen->count], 64, "%s", set->owner);
    seen->sets[seen->count++] = *set;
}

static struct seen
look(const struct stage *s, size_t from, size_t count)
{
    struct seen seen = {.count = 0};
    size_t listed = manager_list_sets(s->w.manager, from, count, saw, &seen);
    is_number(listed, seen.count, "each is counted");
    return seen;
}

TEST(sets)
{
    FIXTURE(stage, s, stage_begin, stage_end, "* smtp://h?defragment=yes&notices=2h");
    is_number(look(&s, 0, 10).count, 0, "none waits");
    stage_part(&s, "i", 2, 4, "two\r\n");
    struct id first = s.w.id;
    stage_part(&s, "i", 4, 4, "four\r\n");
    stage_part_to(&s, "a@x", "c@y d@y", "j", 3, 0, "three\r\n");
    struct seen seen = look(&s, 0, 10);
    is_number(seen.count, 2, "two wait");
    const struct manager_set *set = &seen.sets[0];
    is_number(strlen(set->name), 12, "the name is that of the log");
    ok(world_logged(&s.w, set->name));
    ok_named(id_compare(set->first, first) == 0, "one of its messages");
    is_string(seen.recipients[0], "b@y", "its recipient");
    is_string(seen.owners[0], "this host", "its owner");
    ok(set->recipients == 1 && set->messages == 2 && set->have == 2 && set->total == 4);
    ok(set->there_count == 2 && set->there[0] == 2 && set->there[1] == 4);
    ok(set->missing_count == 2 && set->missing[0] == 1 && set->missing[1] == 3);
    is_number(set->bytes, 11, "bytes of bodies");
    is_number(set->until_ms - set->since_ms, STAGE_HALF_MS, "and until when it waits");
    ok(!set->is_reassembling);
    set = &seen.sets[1];
    ok_named(set->total == 0 && set->there_count == 1 && set->missing_count == 2, "nobody knows the total");
    is_number(set->recipients, 2, "all recipients");

    is_number(look(&s, 0, 1).count, 1, "a page");
    seen = look(&s, 1, 10);
    ok_named(seen.count == 1 && seen.sets[0].total == 0, "and the next");
    is_number(look(&s, 2, 10).count, 0, "and its end");
}

TEST(bounds)
{
    FIXTURE(stage, s, stage_begin, stage_end, "* smtp://h?defragment=yes&notices=2h");
    for (unsigned n = 1; n <= 150; n++)
        stage_put(&s, "a@x", "b@y", "i", n, 1000, "x\r\n");
    world_turns(&s.w);
    stage_part(&s, "i", 1000, 1000, "x\r\n");
    struct seen seen = look(&s, 0, 10);
    const struct manager_set *set = &seen.sets[0];
    ok(set->have == 151 && set->total == 1000);
    ok(set->there_count == MANAGER_SET_NUMBERS && set->there[99] == 100);
    ok(set->missing_count == MANAGER_SET_NUMBERS && set->missing[0] == 151 && set->missing[99] == 250);
    manager_set_defragment(s.w.manager, NULL);
    is_number(look(&s, 0, 10).count, 0, "nothing without a channel");
}

/* It came by a clock that was ten days ahead: it waits no longer for that. */
TEST(clock_ahead)
{
    FIXTURE(stage, s, stage_begin, stage_end, "* smtp://h?defragment=yes&notices=2h");
    stage_part(&s, "i", 2, 3, "two\r\n");
    stage_stop(&s);
    sim_loop_step_wall(s.w.loop, -INT64_C(864000000));
    loop_turn(s.w.loop, 0);
    manager_world_start(&s.w);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS / 2);
    is_number(s.count, 0, "it waits");
    sim_loop_advance(s.w.loop, STAGE_HALF_MS / 2 + 2000);
    is_number(s.count, 1, "its time, and goes on");
}
