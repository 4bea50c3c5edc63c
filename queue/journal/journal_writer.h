/* The state of the journal's writer. Part of the journal; no other file includes it. */
#ifndef QUEUE_JOURNAL_JOURNAL_WRITER_H
#define QUEUE_JOURNAL_JOURNAL_WRITER_H

#include "queue/journal/journal_batch.h"
#include "queue/journal/journal_internal.h"

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
    struct loop_task stir;
    uint64_t syncs, batches_written, bytes_written, records;
};

/* The batch that a mark or end of this size goes into. Never refuses: with the reserve
 * used up, marks and ends wait in memory. */
struct journal_batch *journal_batch_for_end(struct journal *j, size_t size);
/* Adds a record to a batch that takes it. Returns the offset of its payload there. */
size_t journal_add_record(struct journal *j, struct journal_batch *b,
                          enum record_type type, struct id id,
                          const struct text *pieces, size_t count);

/* Begins all gathered records anew after a failed batch, the first one, and has their
 * owners notified. error: -errno. */
void journal_fail(struct journal *j, int error);
/* Writes nothing for a while. */
void journal_pause(struct journal *j);

#endif
