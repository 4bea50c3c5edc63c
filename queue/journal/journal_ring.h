/* The ring of the journal's segments: the current one, those still needed, and unused
 * ones, which are made ahead of need.
 *
 *   unused -> current -> closed -> unused
 *
 * Recycled strictly oldest first. A closed segment is released when its messages have
 * ended, durably, and the effects of its records are durable elsewhere (the
 * checkpoint). The next header then declares the segment not needed; when that header
 * is durable, the segment is unused again. The last unused segment is a reserve for
 * marks and ends. Part of the journal; no other file includes it. */
#ifndef QUEUE_JOURNAL_JOURNAL_RING_H
#define QUEUE_JOURNAL_JOURNAL_RING_H

#include "queue/journal/journal_internal.h"

struct ring_segment {
    uint32_t number; /* in its name */
    uint64_t sequence, cookie;
    size_t size;
    int file;            /* -1: not open */
    bool used;           /* has durable bytes */
    unsigned live;       /* messages accepted in it that have neither ended nor moved */
    uint64_t last_batch; /* in the segment, or with an end of one of its messages */
    struct ring_segment *prev, *next;
};

enum filling { FILLING_NONE, FILLING_ZEROS, FILLING_FILE, FILLING_NAME };

struct ring {
    struct spool *spool;
    struct loop *loop;
    const char *directory;
    size_t segment_size;
    unsigned segments_max;

    struct ring_segment *current;         /* NULL: the next record takes one */
    struct ring_segment *closed, *unused; /* oldest first */
    /* count: segments of our size, with the one being made */
    unsigned count, unused_count;
    uint64_t sequence; /* the last one given */
    uint64_t durable;  /* the last durable batch */
    uint64_t needed;   /* the oldest needed sequence that is durably declared */
    uint64_t released; /* by the checkpoint, up to this sequence */
    bool pressed;      /* a message waits for an unused segment */
    bool stuck;        /* a mark does: one above the maximum may be made */

    struct ring_segment *made; /* not yet complete */
    enum filling filling;
    size_t filled;
    bool syncing, synced;
    int sync_result, sync_file;
    struct disk_sync sync;
    int64_t failed_ms; /* monotonic; 0: the last one was made */
    bool failure_logged;
    struct loop_task wake;
    struct loop_timer again;

    void (*checkpoint)(void *context);
    void *checkpoint_context;
    bool checkpointing;
    uint64_t checkpoint_up_to;
    int64_t checkpoint_failed_ms;
};

/* The caller sets the members from spool to segments_max before. Takes over the
 * segments found, and syncs those that were only read. 0 or -errno. */
int ring_start(struct ring *r, const struct journal_scan *scan);
/* No sync may be in progress. */
void ring_stop(struct ring *r);
/* Once a turn, in stage SYNC: recycles segments and continues making a new one. */
void ring_turn(struct ring *r);
/* The recycling alone. */
void ring_recycle(struct ring *r);
void ring_checkpointed(struct ring *r, int error);

/* Makes an unused segment the current one. False: there is none. */
bool ring_advance(struct ring *r);
/* Adds nothing more to the current segment. */
void ring_close_current(struct ring *r);
struct ring_segment *ring_find(const struct ring *r, uint64_t sequence);
/* The newest segment in use; NULL: none. */
struct ring_segment *ring_newest(const struct ring *r);
/* The first sequence still needed when this batch is durable. */
uint64_t ring_oldest(const struct ring *r, uint64_t batch);
/* If few segments are left, the sequence up to which messages should move; else 0. */
uint64_t ring_crowded(const struct ring *r);

int ring_open_file(struct ring *r, struct ring_segment *s);
void ring_close_file(struct ring *r, struct ring_segment *s);

#endif
