/* Messages that an old journal still has while the disk refuses to take them: nobody
 * may end them.
 */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "queue/recovery/share.h"

#include "t/support/slices_kit.h"

#include <errno.h>

static struct kit kit;
static struct dead dead;

/* The journal was turned off, and its adoption fails at that call; then an operator
 * removes everything, or releases what was held. False: the last call was before it. */
static bool
operate_after(uint64_t call, unsigned *wrong, unsigned *refused)
{
    bool removed[MESSAGES] = {false};
    dead_make(&dead, 1, 0);
    sim_disk_count_anew();
    sim_disk_fail_at(call, ENOSPC);
    bool started = slices_start(&kit, 1, 0, 0), failed = sim_disk_has_failed();
    sim_disk_fail_at(0, 0);
    for (unsigned i = 0; i < MESSAGES && started; i++) {
        struct envelope *e = queue_load(kit.queue, dead.ids[i]);
        *refused += e == NULL && i != 4;
        if (e != NULL && i == 3)
            *wrong += queue_release(kit.queue, dead.ids[i]) != 0;
        if (e != NULL) { /* as if it had been delivered */
            removed[i] = true;
            queue_retire(kit.queue, &e);
        } else {
            removed[i] = queue_remove(kit.queue, dead.ids[i]);
        }
    }
    sim_loop_advance(kit.loop, 130 * 1000);
    for (unsigned i = 0; i < MESSAGES && started; i++) {
        struct envelope *e = queue_load(kit.queue, dead.ids[i]);
        *wrong += (e != NULL) != (i != 4 && !removed[i]);
        *wrong += e != NULL && e->delivery.held != (i == 3);
        envelope_free(&e);
    }
    kit_close(&kit);
    return failed;
}

int
main(void)
{
    unsigned wrong = 0, refused = 0;
    uint64_t call = 1;
    while (call < 2000 && operate_after(call, &wrong, &refused))
        call++;
    printf("# %u calls, %u refused\n", (unsigned)call, refused);
    is_number(wrong, 0, "what was removed stays away, what was not is there");
    ok(call > 50 && refused > 50);
    sim_disk_reset();
    return done();
}
