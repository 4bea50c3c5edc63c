/* The journal's writer: gathers records, one sync for all of a turn.
 *
 * The batches are a list, oldest first. The first may be in flight, the last one
 * gathers. A batch without a segment waits for space: it has marks and ends but no
 * message, and nothing overtakes it. An ACCEPT record is urgent, because a client waits
 * for it; all others are lazy and wait for company. */
#include "queue/journal/journal.h"

#include "base/memory.h"
#include "queue/journal/journal_batch.h"
#include "queue/journal/journal_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum flight { FLIGHT_NONE, FLIGHT_BATCH, FLIGHT_COPY };

struct journal {
    struct spool *spool;
    struct loop *loop;
    char *directory;
    struct journal_settings settings;
    struct journal_events events;
    struct ring ring;
    size_t tail; /* of the current segment: behind all batches that are settled */

    struct journal_batch *batches; /* oldest first; the last one gathers */
    struct journal_batch *failed;  /* their owners are not notified yet */
    size_t gathered;               /* bytes of batches */
    uint64_t number;               /* of the batch opened last */

    enum flight flight; /* the first of batches, or a copy of the header */
    bool landed;
    int result;
    uint64_t oldest; /* as its header says */
    struct disk_sync sync;

    unsigned urgent, lazy; /* records gathered */
    bool hurry, paused;
    unsigned failures; /* in a row */
    uint64_t again;    /* the last batch with ends of those that failed last */
    size_t refused;    /* bytes of a message that waits for space; 0: none */
    bool full_logged;
    uint64_t asked;                      /* reported as crowded up to this sequence */
    struct loop_timer delay, pause, ask; /* ask: again */
    struct loop_task wake;
    uint64_t syncs, batches_written, bytes_written, records;
};

enum {
    GATHERED_MAX = 8 * 1024 * 1024, /* bytes in memory; beyond it messages wait */
    LAZY_MS = 100,
    LAZY_MAX = 64,
    ASK_MS = 10 * 1000,
    ASK_SOON_MS = 10,
    PARTS = 4, /* of a segment: the largest message, about */
    SEGMENT_MIN = 1024 * 1024,
    SEGMENT_MAX = 16 * 1024 * 1024,
    SEGMENTS_MIN = 4,
    SEGMENTS_MAX = 1024,
    FLUSHES_PER_TURN = 16 /* of syncs that block */
};

/* Requests a turn, whose stage SYNC writes. */
static void
journal_wake(struct journal *j)
{
    loop_wake(j->loop, &j->wake);
}

/* --- Batches --------------------------------------------------------------------- */

static struct journal_batch *
last_batch(const struct journal *j)
{
    return j->batches != NULL ? j->batches->prev : NULL;
}

static bool
is_waiting(const struct journal *j)
{
    const struct journal_batch *b = last_batch(j);
    return b != NULL && b->segment == NULL;
}

/* Whether a record of this size may go into it. */
static bool
takes(const struct journal *j, const struct journal_batch *b, size_t size)
{
    bool is_flying = j->flight == FLIGHT_BATCH && b == j->batches;
    return !is_flying && !b->sealed && batch_space(b, j->settings.segment_size) >= size;
}

/* Where the next batch begins in the current segment. */
static size_t
next_offset(const struct journal *j)
{
    const struct journal_batch *b = last_batch(j);
    if (b != NULL && b->segment == j->ring.current && b->segment != NULL)
        return batch_end(b);
    return j->tail;
}

static bool
fits_current(const struct journal *j, size_t size)
{
    return j->ring.current != NULL && next_offset(j) + BATCH_HEADER_SIZE + size <=
                                          segment_batches_end(j->settings.segment_size);
}

/* segment: the current one, or NULL. The number rises even if the batch fails: readers
 * know the order by it. */
static struct journal_batch *
open_batch(struct journal *j, struct ring_segment *segment)
{
    size_t offset = segment != NULL ? next_offset(j) : 0;
    struct journal_batch *b =
        batch_new(++j->number, segment, offset, j->settings.segment_size);
    if (segment != NULL)
        segment->last_batch = b->number;
    j->gathered += b->bytes.length;
    DL_APPEND(j->batches, b);
    return b;
}

static void
take_first(struct journal *j)
{
    struct journal_batch *b = j->batches;
    DL_DELETE(j->batches, b);
    assert(j->gathered >= b->bytes.length);
    j->gathered -= b->bytes.length;
}

/* The rest of the current segment stays unused: a batch does not span two. */
static bool
next_segment(struct journal *j)
{
    if (!ring_advance(&j->ring))
        return false;
    j->tail = 0;
    return true;
}

/* The batch that a record of this size goes into; NULL: there is no space. While a
 * batch waits for space nothing may be added behind it, or ends would overtake
 * marks. */
static struct journal_batch *
batch_for(struct journal *j, size_t size)
{
    struct journal_batch *b = last_batch(j);
    if (is_waiting(j))
        return NULL;
    if (b != NULL && takes(j, b, size))
        return b;
    if (!fits_current(j, size) && !next_segment(j))
        return NULL;
    return open_batch(j, j->ring.current);
}

static struct journal_batch *
batch_that_waits(struct journal *j, size_t size)
{
    struct journal_batch *b = last_batch(j);
    if (!j->full_logged)
        log_say(j->spool->log, LOG_LEVEL_WARNING, "queue", NULL,
                "journal full: delivery results are held in memory");
    j->full_logged = true;
    if (b != NULL && b->segment == NULL && takes(j, b, size))
        return b;
    return open_batch(j, NULL);
}

static struct journal_batch *
journal_batch_for_end(struct journal *j, size_t size)
{
    struct journal_batch *b = batch_for(j, size);
    assert(BATCH_HEADER_SIZE + size <= segment_batches_end(j->settings.segment_size));
    if (b == NULL)
        b = batch_that_waits(j, size);
    b->gate = gate_number(j->spool->gate);
    return b;
}

static size_t
journal_add_record(struct journal *j, struct journal_batch *b, enum record_type type,
                   struct id id, const struct text *pieces, size_t count)
{
    size_t before = b->bytes.length;
    size_t payload = batch_add(b, type, id, pieces, count);
    j->gathered += b->bytes.length - before;
    j->records++;
    return payload;
}

/* --- After a failed write or sync ------------------------------------------------ */

/* Records begin anew in another segment, and clients get refusals. */
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
static void
journal_pause(struct journal *j)
{
    j->paused = true;
    loop_timer_start(j->loop, &j->pause, PAUSE_MS, pause_over, j);
}

/* A batch is never written again in the same place. Gathered batches belong behind it,
 * so they fail, too; their marks and ends begin anew in the next segment. */
static void
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

/* --- Writing --------------------------------------------------------------------- */

/* The batch is durable: work that waited for it may go on, segments that its header
 * does not need may be recycled. */
static void
finish_batch(struct journal *j)
{
    struct journal_batch *b = j->batches;
    struct ring_segment *s = b->segment;
    uint64_t number = b->number;
    j->failures = 0;
    s->used = true;
    j->ring.durable = number;
    if (j->ring.needed < j->oldest)
        j->ring.needed = j->oldest;
    if (s == j->ring.current && j->tail < batch_end(b))
        j->tail = batch_end(b);
    take_first(j);
    batch_free(b);
    /* Nothing is written into it any more. */
    if (s != j->ring.current && (j->batches == NULL || j->batches->segment != s))
        ring_close_file(&j->ring, s);
    j->events.settled(j->events.context, number, 0);
}

static void
finish_copy(struct journal *j, int result)
{
    if (result == 0) {
        j->ring.needed = j->oldest;
        return;
    }
    (void)spool_trouble(j->spool, result, NULL, "write the journal");
    journal_pause(j);
}

/* In stage SYNC, not in the callback of the disk: the next batch is decided on in one
 * place. */
static void
journal_finish(struct journal *j, int result)
{
    enum flight flight = j->flight;
    j->flight = FLIGHT_NONE;
    j->landed = false;
    if (result == 0 && !holder_is_ours(&j->spool->holder))
        result = -ESTALE;
    if (flight == FLIGHT_COPY)
        finish_copy(j, result);
    else if (result < 0)
        journal_fail(j, result);
    else
        finish_batch(j);
}

/* Only notes the answer. The stage SYNC takes it, before it decides on the next
 * batch. */
static void
journal_on_synced(void *context, int result)
{
    struct journal *j = context;
    assert(j->flight != FLIGHT_NONE && !j->landed);
    j->landed = true;
    j->result = result;
}

/* result: of the write. */
static void
launch(struct journal *j, enum flight flight, int file, int result)
{
    j->flight = flight;
    if (result == 0) {
        j->syncs++;
        j->sync = (struct disk_sync){.done = journal_on_synced, .context = j};
        result = disk_sync_begin(j->spool->disk, file, true, &j->sync);
    }
    if (result != DISK_SYNCING)
        journal_finish(j, result);
}

/* Gives the first batch its place; false: there is none. All batches opened before it
 * are settled. */
static bool
journal_find_place(struct journal *j, struct journal_batch *b)
{
    size_t end = segment_batches_end(j->settings.segment_size);
    if (b->segment != NULL)
        return true;
    bool fits = j->ring.current != NULL && j->tail + b->bytes.length <= end;
    if (!fits && !next_segment(j))
        return false;
    batch_settle_in(b, j->ring.current, j->tail);
    j->tail = batch_end(b);
    return true;
}

/* Writes a header alone, which says which segments are not needed. batch: ends up to
 * this batch count. False: it would free nothing. Recycling needs a durable header that
 * says so. Without space for a batch, the reserved last block has one. */
static bool
free_segments(struct journal *j, uint64_t batch)
{
    struct ring_segment *s = ring_newest(&j->ring);
    uint64_t oldest = ring_oldest(&j->ring, batch);
    if (s == NULL || oldest <= j->ring.needed ||
        segment_batches_end(s->size) == s->size)
        return false;
    int result = batch_write_copy(s, &j->ring, j->ring.durable, oldest);
    j->oldest = oldest;
    launch(j, FLIGHT_COPY, s->file, result);
    return true;
}

/* False: nothing could be begun. */
static bool
journal_flush(struct journal *j)
{
    struct journal_batch *b = j->batches;
    j->ring.stuck = !journal_find_place(j, b);
    /* All placed batches are durable, and the waiting ones have no messages. So a
     * segment whose messages have ended is not needed, although their ends are still in
     * memory. */
    if (j->ring.stuck)
        return gate_is_open(j->spool->gate, last_batch(j)->gate) &&
               free_segments(j, UINT64_MAX);
    j->full_logged = j->full_logged && is_waiting(j);
    /* The header describes the state after this batch. */
    j->oldest = ring_oldest(&j->ring, b->number);
    /* Readers rely on this batch, so its own segment is needed. */
    if (j->oldest > b->segment->sequence)
        j->oldest = b->segment->sequence;
    int result = batch_write(b, &j->ring, j->ring.durable, j->oldest);
    j->urgent = j->lazy = 0;
    j->hurry = b->next != NULL; /* the next batch has waited long enough */
    loop_timer_stop(j->loop, &j->delay);
    j->batches_written++;
    j->bytes_written += b->bytes.length;
    launch(j, FLIGHT_BATCH, b->segment->file, result);
    return true;
}

/* Lazy records wait for company, since a sync for one mark costs as much as one for a
 * hundred messages. */
static bool
wants_flush(const struct journal *j)
{
    return j->batches != NULL && j->flight == FLIGHT_NONE && !j->paused &&
           (j->urgent > 0 || j->hurry || j->lazy >= LAZY_MAX);
}

/* The results in the batch must not be durable before their events. Later ones would
 * make it wait for later events, and so on: they go into the next batch. */
static bool
is_released(struct journal *j)
{
    struct journal_batch *b = j->batches;
    if (gate_is_open(j->spool->gate, b->gate))
        return true;
    b->sealed = true;
    return false;
}

/* --- Space ------------------------------------------------------------------------ */

/* Whether a message is admitted. It must not use the reserve, unless using it frees a
 * segment. */
static bool
admits(const struct journal *j, size_t size)
{
    const struct ring *r = &j->ring;
    const struct journal_batch *b = last_batch(j);
    /* After failures, one batch shows whether writing works again. */
    if (j->paused || (j->failures > 1 && b != NULL) || is_waiting(j) ||
        (b != NULL && j->gathered + size > GATHERED_MAX))
        return false;
    if ((b != NULL && takes(j, b, size)) || fits_current(j, size))
        return r->unused_count > 0;
    bool frees = r->closed == NULL && r->current != NULL && r->current->live == 0;
    return r->unused_count > 1 || (r->unused_count == 1 && frees);
}

/* The refused message sets the bar: with less space it would be refused again. */
static void
journal_report_space(struct journal *j)
{
    if (j->refused == 0 || !admits(j, j->refused))
        return;
    j->refused = 0;
    j->ring.pressed = false;
    if (j->events.space != NULL)
        j->events.space(j->events.context);
}

/* Repeated while it lasts, because a move may have failed. */
static void
report_crowd(struct journal *j)
{
    uint64_t up_to = ring_crowded(&j->ring);
    if (up_to == 0 || j->events.crowded == NULL ||
        (up_to <= j->asked && heap_has(&j->ask.node)))
        return;
    if (j->asked < up_to)
        j->asked = up_to;
    bool all = j->events.crowded(j->events.context, up_to);
    loop_timer_start(j->loop, &j->ask, all ? ASK_MS : ASK_SOON_MS, NULL, NULL);
}

static void
journal_at_stage_sync(void *context)
{
    struct journal *j = context;
    bool was_stuck = j->ring.stuck;
    unsigned flushes = 0;
    loop_unpost(j->loop, &j->wake);
    if (j->landed)
        journal_finish(j, j->result);
    if (j->spool->holder.is_lost)
        return; /* the ring is another host's */
    ring_turn(&j->ring);
    journal_report_space(j);
    while (flushes < FLUSHES_PER_TURN && wants_flush(j) && is_released(j) &&
           journal_flush(j)) {
        flushes++;
        ring_recycle(&j->ring);
    }
    /* Without a batch, a header is written only when segments are short. */
    if (flushes == 0 && j->flight == FLIGHT_NONE && !j->paused && !wants_flush(j) &&
        j->ring.unused_count < 2 && free_segments(j, j->ring.durable))
        flushes++;
    report_crowd(j);
    /* The next turn uses freed segments and makes missing ones. */
    if (flushes == FLUSHES_PER_TURN || (flushes > 0 && j->refused > 0) ||
        j->ring.stuck != was_stuck)
        journal_wake(j);
}

void
journal_on_checkpoint(struct journal *j, void (*checkpoint)(void *context),
                      void *context)
{
    j->ring.checkpoint = checkpoint;
    j->ring.checkpoint_context = context;
}

void
journal_checkpointed(struct journal *j, int error)
{
    ring_checkpointed(&j->ring, error);
    if (error == 0)
        journal_wake(j);
}

/* --- Input ----------------------------------------------------------------------- */

size_t
journal_payload_max(const struct journal *j)
{
    return j->settings.segment_size / PARTS - BATCH_HEADER_SIZE - RECORD_HEADER_SIZE;
}

uint64_t
journal_size(const struct journal *j)
{
    return (uint64_t)j->settings.segment_size * j->settings.segments;
}

static void
journal_delay_over(void *context)
{
    struct journal *j = context;
    j->hurry = true; /* the end of this turn writes */
}

void
journal_hurry(struct journal *j)
{
    const struct journal_batch *b = last_batch(j);
    if (b == NULL || (j->flight == FLIGHT_BATCH && b == j->batches))
        return;
    j->hurry = true;
    if (j->flight == FLIGHT_NONE)
        journal_wake(j);
}

static void
count_lazy(struct journal *j)
{
    j->lazy++;
    if (j->lazy >= LAZY_MAX)
        journal_hurry(j);
    else if (!heap_has(&j->delay.node))
        loop_timer_start(j->loop, &j->delay, LAZY_MS, journal_delay_over, j);
}

/* A message counts in its segment until journal_leave(). */
static uint64_t
add_message(struct journal *j, struct journal_batch *b, enum record_type type,
            struct id id, const struct text *pieces, size_t count,
            struct journal_place *place)
{
    size_t before = b->bytes.length;
    size_t payload = journal_add_record(j, b, type, id, pieces, count);
    b->live++;
    b->segment->live++;
    *place = (struct journal_place){
        .sequence = b->segment->sequence,
        .segment = b->segment->number,
        .offset = (uint32_t)(b->offset + payload),
        .length = (uint32_t)(b->bytes.length - before - RECORD_HEADER_SIZE)};
    return b->number;
}

enum journal_appended
journal_accept(struct journal *j, struct id id, const struct text *pieces, size_t count,
               bool own, struct journal_place *place, uint64_t *batch)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += pieces[i].length;
    assert(length <= journal_payload_max(j));
    size_t size = RECORD_HEADER_SIZE + length;
    struct journal_batch *b = own || admits(j, size) ? batch_for(j, size) : NULL;
    if (b == NULL) {
        j->refused = size;
        j->ring.pressed = true;
        journal_wake(j);
        return JOURNAL_NO_ROOM;
    }
    *batch = add_message(j, b, RECORD_ACCEPT, id, pieces, count, place);
    if (own) /* a notification may note that failures are reported */
        b->gate = gate_number(j->spool->gate);
    j->urgent++;
    if (j->flight == FLIGHT_NONE)
        journal_wake(j);
    return JOURNAL_APPENDED;
}

bool
journal_copy(struct journal *j, struct id id, struct text payload,
             struct journal_place *place, uint64_t *batch)
{
    size_t size = RECORD_HEADER_SIZE + payload.length;
    struct journal_batch *b = admits(j, size) ? batch_for(j, size) : NULL;
    if (b == NULL)
        return false;
    *batch = add_message(j, b, RECORD_COPY, id, &payload, 1, place);
    count_lazy(j);
    return true;
}

void
journal_mark(struct journal *j, struct id id, struct text payload)
{
    struct journal_batch *b =
        journal_batch_for_end(j, RECORD_HEADER_SIZE + payload.length);
    (void)journal_add_record(j, b, RECORD_MARK, id, &payload, 1);
    count_lazy(j);
}

void
journal_leave(struct journal *j, const struct journal_place *place, uint64_t batch)
{
    if (batch_find(j->failed, place) != NULL)
        return; /* the segment does not count any more */
    struct ring_segment *s = ring_find(&j->ring, place->sequence);
    struct journal_batch *b = batch_find(j->batches, place);
    assert(s != NULL && s->live > 0);
    s->live--;
    if (s->last_batch < batch)
        s->last_batch = batch;
    if (b != NULL) {
        assert(b->live > 0);
        b->live--;
    }
}

static uint64_t
journal_add_end(struct journal *j, struct id id, const struct journal_place *place,
                enum record_type type, struct text payload)
{
    assert(type == RECORD_END || type == RECORD_MOVED);
    struct journal_batch *b =
        journal_batch_for_end(j, RECORD_HEADER_SIZE + payload.length);
    (void)journal_add_record(j, b, type, id, &payload, 1);
    if (place != NULL)
        journal_leave(j, place, b->number);
    count_lazy(j);
    return b->number;
}

uint64_t
journal_end(struct journal *j, struct id id, const struct journal_place *place,
            enum record_type type)
{
    return journal_add_end(j, id, place, type, TEXT(""));
}

uint64_t
journal_end_refused(struct journal *j, struct id id, const struct journal_place *place)
{
    return journal_add_end(j, id, place, RECORD_END, TEXT("refused"));
}

uint64_t
journal_again(const struct journal *j)
{
    return j->again;
}

uint64_t
journal_number(const struct journal *j)
{
    return j->number;
}

bool
journal_is_quiet(const struct journal *j)
{
    return j->batches == NULL && j->flight == FLIGHT_NONE;
}

struct journal_figures
journal_figures(const struct journal *j)
{
    return (struct journal_figures){.segments = j->ring.count,
                                    .free_segments = j->ring.unused_count,
                                    .batches = j->batches_written,
                                    .syncs = j->syncs,
                                    .bytes = j->bytes_written,
                                    .records = j->records,
                                    .full = j->refused > 0};
}

/* --- Open and close -------------------------------------------------------------- */

/* Makes the directories above it, too: at the first start journal/ is missing. */
static int
journal_make_directory(struct disk *disk, const char *directory)
{
    int result = 0;
    for (const char *slash = strchr(directory, '/'); slash != NULL && result == 0;
         slash = strchr(slash + 1, '/')) {
        char *above = text_string(text_of(directory, (size_t)(slash - directory)));
        result = disk_make_directory(disk, above, 0700);
        free(above);
    }
    return result == 0 ? disk_make_directory(disk, directory, 0700) : result;
}

static void
journal_free(struct journal *j)
{
    ring_stop(&j->ring);
    free(j->directory);
    free(j);
}

static struct journal *
journal_new(struct spool *spool, struct loop *loop,
            const struct journal_settings *settings,
            const struct journal_events *events)
{
    struct journal *j = memory_new(sizeof(*j));
    assert(settings->segment_size % JOURNAL_BLOCK == 0 && settings->segments >= 4 &&
           settings->segment_size >= (size_t)16 * JOURNAL_BLOCK &&
           settings->segment_size <= UINT32_MAX);
    j->spool = spool;
    j->loop = loop;
    j->directory = memory_string(settings->directory);
    j->settings = *settings;
    j->settings.directory = j->directory;
    j->events = *events;
    j->ring = (struct ring){.spool = spool,
                            .loop = loop,
                            .directory = j->directory,
                            .segment_size = settings->segment_size,
                            .segments_max = settings->segments};
    return j;
}

int
journal_open(struct journal **journal, struct spool *spool, struct loop *loop,
             const struct journal_settings *settings,
             const struct journal_reading *reading, const struct journal_events *events,
             struct journal_summary *summary, char *error, size_t error_size)
{
    struct journal *j = journal_new(spool, loop, settings, events);
    struct journal_scan scan = {0};
    *journal = NULL;
    int result = journal_make_directory(spool->disk, j->directory);
    if (result == 0)
        result = journal_scan(spool->disk, j->directory, reading, summary, &scan);
    if (result == 0)
        result = ring_start(&j->ring, &scan);
    /* Above the number of a torn batch, too: a number is never given twice. */
    j->number = scan.highest;
    j->ring.durable = scan.number;
    j->tail = scan.end;
    free(scan.segments);
    if (result < 0) {
        snprintf(error, error_size, "spool %s: cannot open the journal %s: %s",
                 disk_path(spool->disk), settings->directory, strerror(-result));
        journal_free(j);
        return result;
    }
    loop_at_end(loop, LOOP_SYNC_JOURNAL, journal_at_stage_sync, j);
    *journal = j;
    return 0;
}

void
journal_keep(struct journal *j, const struct journal_place *place)
{
    struct ring_segment *s = ring_find(&j->ring, place->sequence);
    assert(s != NULL);
    s->live++;
}

/* Ends when all is durable, a write fails again, or there is no space. */
static void
journal_write_out(struct journal *j)
{
    j->paused = false;
    gate_wait(j->spool->gate);
    while (!j->paused) {
        if (j->flight == FLIGHT_NONE && (j->batches == NULL || !journal_flush(j)))
            break;
        if (j->flight != FLIGHT_NONE && !j->landed)
            disk_sync_wait(j->spool->disk);
        if (j->flight != FLIGHT_NONE && !j->landed)
            break;
        if (j->landed)
            journal_finish(j, j->result);
        ring_recycle(&j->ring);
    }
}

void
journal_close(struct journal **journal)
{
    struct journal *j = *journal;
    struct journal_batch *b, *next;
    if (j == NULL)
        return;
    journal_write_out(j);
    if (j->ring.syncing || j->flight != FLIGHT_NONE)
        disk_sync_wait(j->spool->disk);
    *journal = NULL;
    loop_at_end_remove(j->loop, LOOP_SYNC_JOURNAL, journal_at_stage_sync, j);
    loop_timer_stop(j->loop, &j->delay);
    loop_timer_stop(j->loop, &j->pause);
    loop_timer_stop(j->loop, &j->ask);
    loop_unpost(j->loop, &j->wake);
    DL_FOREACH_SAFE (j->batches, b, next)
        batch_free(b);
    journal_free(j);
}

struct journal_settings
journal_divide(const char *directory, int64_t size, int64_t segment)
{
    int64_t least = segment > 0 ? JOURNAL_BLOCK : SEGMENT_MIN;
    segment = segment > 0 ? segment : size / 16;
    segment = segment / JOURNAL_BLOCK * JOURNAL_BLOCK;
    if (segment < least)
        segment = least;
    if (segment > SEGMENT_MAX)
        segment = SEGMENT_MAX;
    int64_t segments = size / segment;
    return (struct journal_settings){.directory = directory,
                                     .segment_size = (size_t)segment,
                                     .segments = segments > SEGMENTS_MAX ? SEGMENTS_MAX
                                                 : segments < SEGMENTS_MIN
                                                     ? SEGMENTS_MIN
                                                     : (unsigned)segments};
}
