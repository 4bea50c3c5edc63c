/* The journal after a failed write or sync: records begin anew in another segment, and
 * clients get refusals. */
#include "queue/journal/journal_writer.h"

#include <assert.h>
#include <utlist.h>

enum { PAUSE_MS = 10 * 1000 }; /* after two failures in a row */

/* Gathers the records of failed batches again, in two sweeps: ends first, so that marks do
 * not delay them (journal_again() says up to which batch they are), then marks. A message
 * gets an end, because its client gets a refusal. Each failed record is in memory still,
 * and nothing of it may count as written: a part of the batch can be on disk. A copy is
 * forgotten: the message is where it was. */
static void
save_records(struct journal *j, const struct journal_batch *b, bool ends)
{
    struct text rest = text_after(buffer_text(&b->bytes), BATCH_HEADER_SIZE);
    struct journal_record record;
    for (uint32_t i = 0; i < b->count; i++) {
        enum progress progress = segment_take_record(&rest, b->cookie, &record);
        assert(progress == PROGRESS_DONE);
        if (record.type == RECORD_COPY || (record.type != RECORD_MARK) != ends)
            continue;
        if (record.type == RECORD_ACCEPT) {
            record.type = RECORD_END;
            record.payload = TEXT("");
        }
        struct journal_batch *to =
            journal_batch_for_end(j, RECORD_HEADER_SIZE + record.payload.length);
        (void)journal_add_record(j, to, record.type, record.id, &record.payload, 1);
        j->lazy++;
    }
}

/* Ends of failed batches are in batches up to `again` now. A segment waits for the batch that
 * has the ends of its messages. That batch failed; the one with the copies counts
 * now. */
static void
move_ends(struct journal *j, uint64_t first)
{
    struct ring_segment *s;
    DL_FOREACH (j->ring.closed, s)
        if (s->last_batch >= first)
            s->last_batch = j->again;
    s = j->ring.current;
    if (s != NULL && s->last_batch >= first)
        s->last_batch = j->again;
}

/* After all records are saved, because an owner may add others from its callback. */
static void
report_failed(struct journal *j, int error)
{
    while (j->failed != NULL) {
        struct journal_batch *b = j->failed;
        uint64_t number = b->number;
        DL_DELETE(j->failed, b);
        batch_free(b);
        j->events.settled(j->events.context, number, error);
    }
}

static void
pause_over(void *context)
{
    struct journal *j = context;
    j->paused = false;
}

/* After two failures in a row the disk is likely full or broken, and each attempt costs
 * a segment. */
void
journal_pause(struct journal *j)
{
    j->paused = true;
    loop_timer_start(j->loop, &j->pause, PAUSE_MS, pause_over, j);
}

/* A batch is never written again in the same place. Gathered batches belong behind it,
 * so they fail, too; their marks and ends begin anew in the next segment. */
void
journal_fail(struct journal *j, int error)
{
    struct journal_batch *b;
    uint64_t first = j->batches->number;
    (void)spool_trouble(j->spool, error, NULL, "write the journal");
    if (j->batches->segment == j->ring.current)
        ring_close_current(&j->ring);
    j->failed = j->batches;
    j->batches = NULL;
    j->gathered = 0;
    j->urgent = j->lazy = 0;
    DL_FOREACH (j->failed, b)
        if (b->segment != NULL) {
            assert(b->segment->live >= b->live);
            b->segment->live -= b->live;
            ring_close_file(&j->ring, b->segment);
        }
    DL_FOREACH (j->failed, b)
        save_records(j, b, true);
    j->again = j->number;
    move_ends(j, first);
    DL_FOREACH (j->failed, b)
        save_records(j, b, false);
    j->hurry = true;
    if (++j->failures > 1)
        journal_pause(j);
    /* Last, because the owners may add records from their callback. */
    report_failed(j, error);
}
