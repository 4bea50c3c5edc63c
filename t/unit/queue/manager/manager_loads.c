/* queue/manager/manager.c: the queue of loads takes space for what waits in it, not for
 * all that has ever passed through it. */
/* link: t/sim/loop.c */
#include "queue/manager/manager_internal.h"
#include "t/support/manager_world.h"

enum { WAITING = 100, PASSED = 100000 };

static struct id
load_id(unsigned number)
{
    return (struct id){1700000000000 + number, number};
}

/* As after an outage, when the disk is slower than the network: a hundred always wait. */
TEST(never_empty)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://h");
    struct manager *m = w.manager;
    unsigned wrong = 0, next = 0;
    for (unsigned i = 0; i < PASSED; i++) {
        manager_load(m, load_id(i));
        if (i >= WAITING)
            wrong += id_compare(m->loads[m->load_next++], load_id(next++)) != 0;
    }
    is_number(m->load_count - m->load_next, WAITING, "so many wait");
    ok_named(m->load_capacity <= 4 * WAITING, "and take space for themselves alone");
    for (; m->load_next < m->load_count; m->load_next++)
        wrong += id_compare(m->loads[m->load_next], load_id(next++)) != 0;
    is_number(wrong, 0, "in their order");
    is_number(next, PASSED, "each once");
}
