/* A queue that is closed while messages move, on a disk that fails just then. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue.h"

#include "base/log/log_internal.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

static struct kit kit;
static const char *const two[] = {"a@x", "b@x", NULL};

static bool
start(void)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size = 4 * 65536,
                                      .journal_segment = 65536,
                                      .journal_message_max = 8192};
    kit = (struct kit){.loop = loop_new()};
    kit.log = log_new(kit.loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&kit.lines, 1024 * 1024);
    log_capture(kit.log, &kit.lines);
    bool opened = queue_open(&kit.queue, kit.loop, kit.log, &settings, kit_found, &kit,
                             kit.error, sizeof(kit.error)) == 0;
    sim_loop_advance(kit.loop, 10);
    return opened;
}

/* Two move while the journal syncs the end of a third. False: the call was not reached.
 */
static bool
close_at(uint64_t call, int64_t after_ms, unsigned *wrong)
{
    struct envelope *e[3];
    struct id ids[3];
    sim_disk_reset();
    sim_disk_set_syncing(DISK_SYNC_AIO, 7);
    if (!start())
        abort();
    for (unsigned i = 0; i < 3; i++) {
        e[i] = queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("x\r\n"));
        ids[i] = e[i]->id;
    }
    for (unsigned i = 0; i < 2; i++) {
        queue_settle(kit.queue, e[i], 0, CHANNEL_REMOTE, NULL);
        queue_defer(kit.queue, &e[i], loop_now_ms(kit.loop) + 3600 * 1000, 1);
    }
    queue_retire(kit.queue, &e[2]);
    sim_disk_count_anew();
    sim_disk_fail_at(call, EIO);
    sim_loop_advance(kit.loop, after_ms);
    kit_close(&kit);
    bool failed = sim_disk_has_failed();
    sim_disk_restart();
    if (!start())
        abort();
    for (unsigned i = 0; i < 2; i++) {
        struct envelope *again = queue_load(kit.queue, ids[i]);
        *wrong += again == NULL;
        envelope_free(&again);
    }
    kit_close(&kit);
    return failed;
}

int
main(void)
{
    unsigned wrong = 0, most = 0;
    for (int64_t after_ms = 0; after_ms < 40; after_ms += 3)
        for (uint64_t call = 1; call < 500 && close_at(call, after_ms, &wrong); call++)
            most = call > most ? (unsigned)call : most;
    is_number(wrong, 0, "each message is there after the next start");
    printf("# %u calls\n", most);
    ok(most > 20);
    sim_disk_reset();
    return done();
}
