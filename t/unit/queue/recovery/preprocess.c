/* From S4 and the journal to S5: files, syncs in the background, failures of some. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/recovery/preprocess.h"

#include "base/log/log_internal.h"
#include "base/memory.h"
#include "queue/spool/load.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/spool_kit.h"
#include "t/support/tap.h"

#include <errno.h>

struct world {
    struct loop *loop;
    struct log *log;
    struct buffer lines;
    struct spool spool;
    struct preprocessor preprocessor;
    unsigned done;
};

static void
on_done(void *context)
{
    struct world *w = context;
    w->done++;
}

static void
begin(struct world *w, bool aio)
{
    char error[300] = "";
    sim_disk_reset();
    *w = (struct world){.loop = sim_loop_new(3)};
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&w->lines, 1 << 20);
    log_capture(w->log, &w->lines);
    if (spool_open(&w->spool, "/spool", false, w->log, error, sizeof(error)) != 0)
        ok_named(false, error);
    w->spool.is_local = spool_kit_is_local;
    if (aio)
        (void)disk_sync_on(w->spool.disk, w->loop);
    w->preprocessor =
        (struct preprocessor){.spool = &w->spool, .done = on_done, .context = w};
}

static void
end(struct world *w)
{
    spool_close(&w->spool);
    log_free(&w->log);
    buffer_free(&w->lines);
    loop_free(&w->loop);
}

/* Young: the content is written with it. */
static void
add(struct world *w, unsigned number, bool young)
{
    struct preprocess *move = &w->preprocessor.moves[w->preprocessor.count++];
    struct envelope *e = envelope_new();
    e->id = (struct id){.time_ms = 1000 + number, .hash = number};
    e->sender = envelope_text(e, TEXT("s@x"));
    e->envelope_id = e->prefix = envelope_text(e, TEXT(""));
    e->content_size = 4;
    e->content_crc = 0x86a072c0; /* of "test", in Castagnoli's way */
    if (!envelope_add(e, TEXT("a@x"), 0, TEXT("")) ||
        !envelope_add(e, TEXT("b@x"), 0, TEXT("")))
        abort();
    struct outcome no = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.0.0", "no");
    envelope_fail(e,
                  &(struct failure){.recipient = 1, .expired = false, .outcome = no});
    e->recipients[1].done = true;
    e->delivery.done = 1;
    *move = (struct preprocess){.id = e->id, .envelope = e};
    if (!young)
        return;
    move->content = memory_new(sizeof(*move->content));
    move->content->references = 1;
    buffer_init(&move->content->bytes, 100);
    if (!buffer_add(&move->content->bytes, TEXT("test")))
        abort();
}

static void
forget(struct world *w)
{
    for (unsigned i = 0; i < w->preprocessor.count; i++)
        envelope_free(&w->preprocessor.moves[i].envelope);
    preprocess_end(&w->preprocessor);
}

static void
test_whole(bool aio)
{
    FIXTURE(world, w, begin, end, aio);
    for (unsigned i = 0; i < PREPROCESSOR_MAX; i++)
        add(&w, i, true);
    ok(preprocess_prepare(&w.preprocessor) == !aio);
    if (aio)
        is_number(w.done, 0, "nothing is told before it has returned");
    sim_loop_advance(w.loop, 100);
    is_number(w.done, aio ? 1 : 0, "told once");
    unsigned bad = 0;
    for (unsigned i = 0; i < PREPROCESSOR_MAX; i++) {
        struct preprocess *move = &w.preprocessor.moves[i];
        bad += move->result != 0 || move->recipients != 2 ||
               move->places[0].channel != CHANNEL_LOCAL ||
               move->places[1].offset <= 0 || move->content != NULL ||
               move->envelope->recipients[1].mark.offset != -1;
    }
    is_number(bad, 0, "all of them have moved");
    sim_disk_power_cut();
    is_number(sim_disk_count("/spool/mess") + sim_disk_count("/spool/info") +
                  sim_disk_count("/spool/local") + sim_disk_count("/spool/remote") +
                  sim_disk_count("/spool/bounce"),
              5 * PREPROCESSOR_MAX, "durably");
    forget(&w);
}

/* Each call fails once: a message has moved, or is what it was, without a trace. */
static void
test_failures(bool aio, int error)
{
    unsigned wrong = 0, at = 0;
    for (bool failed = true; failed && at < 500; at++) {
        FIXTURE(world, w, begin, end, aio);
        add(&w, 1, true);
        add(&w, 2, true);
        sim_disk_count_anew();
        sim_disk_fail_at(at + 1, error);
        (void)preprocess_prepare(&w.preprocessor);
        sim_loop_advance(w.loop, 100);
        failed = sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        for (unsigned i = 0; i < 2; i++) {
            struct preprocess *move = &w.preprocessor.moves[i];
            char reason[LOAD_REASON_MAX];
            struct envelope *e = NULL;
            enum load_result loaded =
                load_message(&w.spool, move->envelope->id, &e, reason);
            wrong += loaded != (move->result == 0 ? LOAD_DONE : LOAD_GONE);
            wrong += move->envelope->storage.preprocessed;
            envelope_free(&e);
        }
        forget(&w);
    }
    char label[80];
    snprintf(label, sizeof(label), "error %d at each of %u calls", error, at);
    is_number(wrong, 0, label);
    ok(at > 10);
}

/* While the sync of a directory is under way nothing that it covers is durable: who needs
 * that must not go on, as the journal's checkpoint would. */
TEST(names_in_flight)
{
    FIXTURE(world, w, begin, end, true);
    sim_disk_set_syncing(DISK_SYNC_AIO, 5);
    add(&w, 1, true);
    ok(!preprocess_prepare(&w.preprocessor));
    for (unsigned ms = 0; ms < 20 && w.spool.unsynced[SPOOL_INFO]; ms++)
        sim_loop_advance(w.loop, 1);
    ok(w.done == 0 && spool_needs_sync(&w.spool, SPOOL_INFO));
    uint64_t syncs = w.spool.syncs;
    ok(spool_sync_dirs(&w.spool, SPOOL_BIT(SPOOL_INFO)) == 0);
    is_number((int64_t)(w.spool.syncs - syncs), 1, "synced, not only begun");
    sim_loop_advance(w.loop, 100);
    ok(w.done == 1 && !spool_needs_sync(&w.spool, SPOOL_INFO));
    forget(&w);
}

TEST(end_in_flight)
{
    struct world w;
    begin(&w, true);
    add(&w, 1, true);
    ok(!preprocess_prepare(&w.preprocessor));
    forget(&w);
    is_number(w.preprocessor.count, 0, "idle again");
    end(&w);
    is_number(w.done, 0, "nobody hears of it");
}

int
main(void)
{
    test_whole(false);
    test_whole(true);
    test_failures(false, EIO);
    test_failures(true, EIO);
    test_failures(true, ENOSPC);
    tap_tests("");
    sim_disk_reset();
    return done();
}
