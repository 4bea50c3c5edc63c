/* The journal: new messages and their delivery results, in a ring of files that are
 * overwritten in place, so that one sync makes a whole turn durable (doc/dev/queue.md
 * "Journal").
 *
 * It keeps records and never reads envelopes. Records are added to the open batch; at
 * the end of a turn (stage SYNC) the batch is written, and synced in the background
 * while the next one collects records: never two in flight. A batch that another one
 * follows has therefore been acknowledged; only the last one may be torn.
 *
 * On disk, in DIRECTORY/0000, 0001, ...: segments of one size, zero-filled when made,
 * recycled oldest first. Batches start at multiples of JOURNAL_BLOCK, so that durable
 * bytes are never overwritten, with
 *   a header    magic, length and count of its records, the segment's sequence (rising
 *               over all segments) and cookie (random: content cannot forge a header),
 *               the batch's number (rising by one), the number before it that became
 *               durable, the oldest sequence still needed, CRC32C of this header
 *   records     length, type, id, CRC32C of the cookie and these; CRC32C of all that
 *               and the payload; the payload
 * All numbers are little-endian. The last block has a copy of a header: see segment.h.
 * A segment is needed while a message accepted in it is neither ended nor moved nor
 * copied, or its checkpoint is to come, or an older segment is needed. */
#ifndef QUEUE_JOURNAL_JOURNAL_H
#define QUEUE_JOURNAL_JOURNAL_H

#include "base/loop/loop.h"
#include "queue/spool/spool.h"

enum { JOURNAL_BLOCK = 4096 };

enum record_type {
    RECORD_ACCEPT = 1, /* a message */
    RECORD_MARK,       /* results of recipients */
    RECORD_MOVED,      /* the spool has the message, durably, with all marks */
    RECORD_END,        /* nothing is left to do */
    RECORD_COPY        /* a message again, as ACCEPT, in a younger segment */
};

/* Where an accepted message's payload is; stays valid until its END or MOVED. */
struct journal_place {
    uint64_t sequence; /* of the segment; 0: nowhere */
    uint32_t segment;  /* the number in its name */
    uint32_t offset, length;
};

struct journal_settings {
    const char *directory; /* directory below the spool; made when missing */
    size_t segment_size;   /* multiple of JOURNAL_BLOCK, at least 16 of them */
    unsigned segments; /* at most; >= 4. Two are made at startup, others as needed */
};

/* Divides a ring of size bytes (journal_size) into about 16 segments, or into segments
 * of that size unless segment is 0, within limits. */
struct journal_settings journal_divide(const char *directory, int64_t size,
                                       int64_t segment);

struct journal;

struct journal_events {
    void *context;
    /* Once for each batch, in order, in stage SYNC. 0: durable. -errno: its messages
     * may or may not exist, and their clients must be refused; its other records are
     * written again elsewhere, with an END for each message. */
    void (*settled)(void *context, uint64_t batch, int error);
    /* Few segments are left: move every message that was accepted in a segment up to
     * this sequence. Called in stage SYNC, again for each later sequence, and every 10
     * s while segments are few: a move may have failed. False: some cannot leave before
     * their batch is durable; then it is called again soon. */
    bool (*crowded)(void *context, uint64_t sequence);
    /* Once in stage SYNC after journal_accept() refused: there is space again. */
    void (*space)(void *context);
};

/* --- Reading back ----------------------------------------------------------------- */

struct journal_record {
    enum record_type type;
    struct id id;
    struct text payload; /* valid during the call */
    struct journal_place place;
};
struct journal_reading {
    void *context;
    /* In the order of writing. False: the record is invalid and counts as damaged. */
    bool (*record)(void *context, const struct journal_record *record);
    /* Acknowledged bytes that cannot be read any more; called after the records around
     * them. where: "0003 at 8192". */
    void (*damaged)(void *context, struct text bytes, const char *where);
    /* also records that are not needed any more, as far as they are there and within
     * JOURNAL_PAST_MAX; damage is not looked for. */
    bool with_past;
};
enum { JOURNAL_PAST_MAX = 128 * 1024 * 1024 /* bytes */ };
struct journal_summary {
    unsigned segments;
    uint64_t records, bytes;
    bool torn; /* the last batch is incomplete: it was never acknowledged */
    unsigned damages;
};
/* Reads all records of a directory that are still needed, oldest first. Changes
 * nothing: also for an operator beside a running daemon (then the end may be missing).
 * 0 (a missing directory is empty), or -errno when the disk did not answer. */
int journal_read(struct disk *disk, const char *directory,
                 const struct journal_reading *reading,
                 struct journal_summary *summary);
/* Payload bytes of an accepted message, from the disk: bytes read or -errno. */
int64_t journal_read_place(struct disk *disk, const char *directory,
                           const struct journal_place *place, uint32_t offset, char *to,
                           size_t size);

/* --- Writing ---------------------------------------------------------------------- */

/* Reads the journal (reading), then writes behind its end. 0, or -errno with one line
 * in error. Keeps the messages that journal_keep() then names; each of them must get
 * its journal_end(). */
int journal_open(struct journal **journal, struct spool *spool, struct loop *loop,
                 const struct journal_settings *settings,
                 const struct journal_reading *reading,
                 const struct journal_events *events, struct journal_summary *summary,
                 char *error, size_t error_size);
void journal_keep(struct journal *journal, const struct journal_place *place);
/* Writes the open batch, waits for it (settled is called), closes. May wait for all
 * syncs of the disk (disk_sync_wait()), so done callbacks of other modules come,
 * too. */
void journal_close(struct journal **journal);

/* The largest payload of a message. */
size_t journal_payload_max(const struct journal *journal);
/* The bytes that the ring may have. */
uint64_t journal_size(const struct journal *journal);
enum journal_appended { JOURNAL_APPENDED, JOURNAL_NO_ROOM };
/* Adds a message; the payload is the pieces in sequence. own: our own mail, which
 * may use the reserve for marks and ends. NO_ROOM: wait for space. */
enum journal_appended journal_accept(struct journal *journal, struct id id,
                                     const struct text *pieces, size_t count, bool own,
                                     struct journal_place *place, uint64_t *batch);
/* Adds a copy of a message, whose payload is as ACCEPT has it, so that the older place
 * is not needed once this batch has settled: then call journal_leave() for that place,
 * or, after an error, forget the copy. False: there is no space for it. */
bool journal_copy(struct journal *journal, struct id id, struct text payload,
                  struct journal_place *place, uint64_t *batch)
    __attribute__((warn_unused_result));
/* The message does not need this place any more, by a record in this batch. */
void journal_leave(struct journal *journal, const struct journal_place *place,
                   uint64_t batch);
/* Never refused. Written with the next batch, within 100 ms or 64 such records.
 * payload: at most a segment less two blocks. */
void journal_mark(struct journal *journal, struct id id, struct text payload);
/* Adds END or MOVED; place: of the ACCEPT, or NULL for a message of the spool. Returns
 * the batch; if that fails: journal_again(). */
uint64_t journal_end(struct journal *journal, struct id id,
                     const struct journal_place *place, enum record_type type);
/* END of a message whose client was refused, or that is another host's: it has a payload, so that
 * nobody is answered that the message was accepted (journaled_each_taken()). */
uint64_t journal_end_refused(struct journal *journal, struct id id,
                             const struct journal_place *place);
/* After a failed batch, when `settled` is called: the batch with the last of the ends that
 * were gathered again, those of refused messages included. All are durable with it. */
uint64_t journal_again(const struct journal *journal);
/* The number of the batch that was opened last. */
uint64_t journal_number(const struct journal *journal);
/* Writes lazy records at the end of this turn. */
void journal_hurry(struct journal *journal);

/* Before a segment is recycled, the effects of its records must be durable elsewhere:
 * checkpoint is called in stage SYNC and answers, later or immediately, by
 * journal_checkpointed(). The batches concerned are settled by then. After an error it
 * is called again, not before 10 s. Without it segments are recycled freely. */
void journal_on_checkpoint(struct journal *journal, void (*checkpoint)(void *context),
                           void *context);
void journal_checkpointed(struct journal *journal, int error);

struct journal_figures {
    unsigned segments, free_segments;
    uint64_t batches, syncs, bytes, records;
    bool full; /* messages wait for space */
};
struct journal_figures journal_figures(const struct journal *journal);

#endif
