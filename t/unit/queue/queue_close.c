/* A queue that is closed while messages move, on a disk that fails at one call. */
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

static int64_t journal_size;

static bool
start(void)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .journal_size = journal_size,
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

struct losses {
    unsigned messages, marks;
};

/* Two move while the end of a third is synced. False: the call was not reached. Marks count
 * that the disk refused before the end: it takes them then. */
static bool
close_at(uint64_t call, int64_t after_ms, struct losses *lost)
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
        queue_settle(kit.queue, e[i], 0, NULL);
        queue_defer(kit.queue, &e[i], loop_now_ms(kit.loop) + 3600 * 1000, 1);
    }
    queue_retire(kit.queue, &e[2]);
    sim_disk_count_anew();
    sim_disk_fail_at(call, EIO);
    if (after_ms >= 0)
        sim_loop_advance(kit.loop, after_ms);
    bool is_well = call == 0 || sim_disk_has_failed();
    kit_close(&kit);
    bool failed = sim_disk_has_failed();
    sim_disk_restart();
    if (!start())
        abort();
    for (unsigned i = 0; i < 2; i++) {
        struct envelope *again = queue_load(kit.queue, ids[i]);
        lost->messages += again == NULL;
        lost->marks += is_well && again != NULL && again->delivery.done == 0;
        envelope_free(&again);
    }
    kit_close(&kit);
    return failed;
}

static void
test_close(int64_t size, const char *name)
{
    struct losses lost = {0};
    unsigned most = 0;
    journal_size = size;
    printf("# %s\n", name);
    for (int64_t after_ms = -1; after_ms < 40; after_ms += 3)
        for (uint64_t call = 1; call < 500 && close_at(call, after_ms, &lost); call++)
            most = call > most ? (unsigned)call : most;
    for (int64_t after_ms = -1; after_ms < 40; after_ms++)
        (void)close_at(0, after_ms, &lost);
    is_number(lost.messages, 0, "each message is there after the next start");
    is_number(lost.marks, 0, "and so is each mark that the disk takes at the end");
    printf("# %u calls\n", most);
    ok(most > 20);
}

int
main(void)
{
    test_close(4 * 65536, "with a journal");
    test_close(0, "without one");
    sim_disk_reset();
    return done();
}
