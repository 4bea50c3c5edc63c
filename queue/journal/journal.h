/* The journal: young mail and what became of it, in a ring of files that are
 * overwritten in place, so that one sync makes everything of a turn durable
 * (doc/queue.md "Journal").
 *
 * It keeps records and knows nothing of envelopes. A record is gathered into the open
 * batch; at the end of a turn (stage SYNC) the batch is written, and synced in the
 * background while the next one gathers: never two in flight. A batch that another one
 * follows has therefore been acknowledged; only the last one may be torn.
 *
 * On disk, in ROOM/0000, 0001, ...: segments of one size, zero-filled when made,
 * recycled oldest first. Batches start at multiples of JOURNAL_BLOCK, so that nothing
 * durable is ever written over, with
 *   a header    magic, length and count of its records, the segment's sequence (rising
 *               over all segments) and cookie (random: content cannot forge a header),
 *               the batch's number (rising by one), the number before it that became
 *               durable, the oldest sequence still needed, CRC32C of this header
 *   records     length, type, id, CRC32C of the cookie and these; CRC32C of all that
 *               and the payload; the payload
 * All numbers are little-endian. The last block has a copy of a header: see segment.h.
 * A segment is needed while a message accepted in it is neither ended nor moved, or its
 * checkpoint is to come, or an older segment is needed. */
#ifndef QUEUE_JOURNAL_H
#define QUEUE_JOURNAL_H

#include "base/loop/loop.h"
#include "queue/spool/spool.h"

enum { JOURNAL_BLOCK = 4096 };

enum record_type {
    RECORD_ACCEPT = 1, /* a message */
    RECORD_MARK,       /* something became of its recipients */
    RECORD_MOVED,      /* the spool has it, durably, with every mark so far */
    RECORD_END         /* nothing is left to do */
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
    unsigned segments;     /* at most; >= 4. Two are made at once, others as needed */
};

/* A ring of that many bytes (journal_size) in about 16 segments, or in segments of that
 * size unless it is 0, within limits. */
struct journal_settings journal_divide(const char *directory, int64_t size,
                                       int64_t segment);

struct journal;

struct journal_events {
    void *context;
    /* Once a batch, in order, in stage SYNC: it is durable (0), or its messages may or
     * may not exist (-errno) and their clients must hear so. Its other records are
     * written anew elsewhere, with an END for each message. */
    void (*settled)(void *context, uint64_t batch, int error);
    /* Few segments are left: every message that was accepted in one up to this sequence
     * should be moved. Called in stage SYNC, again for each later sequence, and every
     * 10 s while it stays so: moving may have failed. */
    void (*crowded)(void *context, uint64_t sequence);
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
    /* In the order in which they were written. False: it makes no sense (and counts as
     * damaged). */
    bool (*record)(void *context, const struct journal_record *record);
    /* Bytes that had been acknowledged and cannot be read any more; called after the
     * records around them. where: "0003 at 8192". */
    void (*damaged)(void *context, struct text bytes, const char *where);
};
struct journal_summary {
    unsigned segments;
    uint64_t records, bytes;
    bool torn; /* the last batch was not complete: it was never acknowledged */
    unsigned damages;
};
/* Reads all of a space that is still needed, oldest first. Changes nothing: also for an
 * operator beside a running daemon (then the end may be missing). 0 (a missing space is
 * empty), or -errno when the disk did not answer. */
int journal_read(struct disk *disk, const char *directory,
                 const struct journal_reading *reading,
                 struct journal_summary *summary);
/* Payload bytes of an accepted message, from the disk: bytes read or -errno. */
int64_t journal_read_place(struct disk *disk, const char *directory,
                           const struct journal_place *place, uint32_t offset, char *to,
                           size_t size);

/* --- Writing ---------------------------------------------------------------------- */

/* Reads what is there (reading), then goes on behind it. 0, or -errno with one line in
 * error. Of what it has read it keeps what journal_keep() then names, and counts on a
 * journal_end() for each of these. */
int journal_open(struct journal **journal, struct spool *spool, struct loop *loop,
                 const struct journal_settings *settings,
                 const struct journal_reading *reading,
                 const struct journal_events *events, struct journal_summary *summary,
                 char *error, size_t error_size);
void journal_keep(struct journal *journal, const struct journal_place *place);
/* Writes what is gathered, waits for it (settled is called), closes. It may wait for
 * all syncs of the disk (disk_sync_wait), so others' done callbacks come, too. */
void journal_close(struct journal **journal);

/* The largest payload of a message. */
size_t journal_payload_max(const struct journal *journal);
enum journal_appended { JOURNAL_APPENDED, JOURNAL_NO_ROOM };
/* Adds a message: the payload is the pieces one after the other. Our own mail (notices)
 * may use the reserve that is kept for marks and ends. NO_ROOM: wait for space. */
enum journal_appended journal_accept(struct journal *journal, struct id id,
                                     const struct text *pieces, size_t count, bool own,
                                     struct journal_place *place, uint64_t *batch);
/* Never refused. Written with the next batch, within 100 ms or 64 such records (R7).
 * payload: at most a segment less two blocks. */
void journal_mark(struct journal *journal, struct id id, struct text payload);
/* END or MOVED; place: of the ACCEPT, or NULL for a message of the spool. Returns the
 * batch (when it fails, the record is in the next one). */
uint64_t journal_end(struct journal *journal, struct id id,
                     const struct journal_place *place, enum record_type type);
/* Writes lazy records at the end of this turn. */
void journal_hurry(struct journal *journal);
/* True when nothing gathers and nothing is in flight. */
bool journal_is_quiet(const struct journal *journal);

/* Before a segment is recycled everything that its records stand for must be durable
 * elsewhere; sync is asked in stage SYNC and answers later, or at once, by
 * journal_checkpointed(). When asked, the batches that it is about are settled. After
 * an error it is asked again, not before 10 s. Without it segments are recycled freely.
 */
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
