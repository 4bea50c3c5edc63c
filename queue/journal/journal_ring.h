/* The ring of the journal's segments: which one is written, which are needed, which are
 * free; new ones are made ahead of need.
 *
 *   unused -> current -> closed -> unused
 *
 * Recycled strictly oldest first. A closed segment is released when its messages have
 * ended, durably, and what its records stand for is durable elsewhere (the checkpoint).
 * The next header says that it is not needed; once that is durable it is unused again.
 * The last unused one is a reserve for marks and ends. Part of journal.c; nobody else
 * includes it. */
#ifndef QUEUE_JOURNAL_RING_H
#define QUEUE_JOURNAL_RING_H

#include "queue/journal/journal_internal.h"

struct ring_segment {
    uint32_t number; /* in its name */
    uint64_t sequence, cookie;
    size_t size;
    int file;            /* -1: not open */
    bool used;           /* something durable is in it */
    unsigned live;       /* messages accepted in it that have neither ended nor moved */
    uint64_t last_batch; /* in it, or with an end of one of its messages */
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
    /* count: all of our size, with the one that is being made */
    unsigned count, unused_count;
    uint64_t sequence; /* given last */
    uint64_t durable;  /* the last batch that is */
    uint64_t needed;   /* as the disk knows: segments before this one are not */
    uint64_t released; /* the checkpoint has seen them, up to this sequence */
    bool pressed;      /* somebody waits for an unused one, */
    bool stuck;        /* even a mark: one more than the maximum may be made */

    struct ring_segment *made; /* not yet whole */
    enum filling filling;
    size_t filled;
    bool syncing, synced;
    int sync_result, sync_file;
    struct disk_sync sync;
    int64_t failed_ms; /* monotonic; 0: the last one could be made */
    bool failure_told;
    struct loop_task stir;
    struct loop_timer again;

    void (*checkpoint)(void *context);
    void *checkpoint_context;
    bool checkpointing;
    uint64_t checkpoint_up_to;
    int64_t checkpoint_failed_ms;
};

/* spool to segments_max are the caller's to set before. Takes over what was found, and
 * makes what was only seen durable. 0 or -errno. */
int ring_start(struct ring *r, const struct journal_scan *scan);
/* No sync may be under way. */
void ring_stop(struct ring *r);
/* Once a turn, in stage SYNC: recycles, and goes on with a new segment. */
void ring_turn(struct ring *r);
/* The part of it that recycles. */
void ring_recycle(struct ring *r);
void ring_checkpointed(struct ring *r, int error);

/* An unused segment becomes the current one. False: there is none. */
bool ring_advance(struct ring *r);
/* Nothing more goes into the current segment. */
void ring_close_current(struct ring *r);
struct ring_segment *ring_find(const struct ring *r, uint64_t sequence);
/* The newest that was taken; NULL: none. */
struct ring_segment *ring_newest(const struct ring *r);
/* The first sequence that is needed once this batch is durable. */
uint64_t ring_oldest(const struct ring *r, uint64_t batch);
/* When few are left: the sequence up to which messages should move; else 0. */
uint64_t ring_crowded(const struct ring *r);

int ring_open_file(struct ring *r, struct ring_segment *s);
void ring_close_file(struct ring *r, struct ring_segment *s);

#endif
