/* A batch: records that are written together, from the first record to the disk. Part
 * of the journal; no other file includes it. */
#ifndef QUEUE_JOURNAL_JOURNAL_BATCH_H
#define QUEUE_JOURNAL_JOURNAL_BATCH_H

#include "queue/journal/journal_ring.h"

struct journal_batch {
    uint64_t number;
    struct ring_segment
        *segment; /* NULL: the batch waits for one and has no messages */
    size_t offset;
    struct buffer bytes; /* space for the header first */
    uint64_t cookie;
    uint64_t gate;        /* the number to wait for before it is written
                           * (base/gate.h) */
    bool sealed;          /* it waits for that, and takes no more records */
    uint32_t count, live; /* records; messages among them that have not ended */
    struct journal_batch *prev, *next;
};

/* Empty; segment may be NULL. */
struct journal_batch *batch_new(uint64_t number, struct ring_segment *segment,
                                size_t offset, size_t segment_size);
void batch_free(struct journal_batch *b);
/* The number of bytes that may still be added: one record may fill the rest of the
 * segment, several only a part of it. */
size_t batch_space(const struct journal_batch *b, size_t segment_size);
/* The earliest offset of the next batch. */
size_t batch_end(const struct journal_batch *b);
/* Returns the offset of the payload in the bytes. */
size_t batch_add(struct journal_batch *b, enum record_type type, struct id id,
                 const struct text *pieces, size_t count);
/* Gives a batch that waited its place. */
void batch_settle_in(struct journal_batch *b, struct ring_segment *segment,
                     size_t offset);
/* The batch in the list that has the message; NULL: none. */
struct journal_batch *batch_find(struct journal_batch *list,
                                 const struct journal_place *place);
/* Writes the batch; 0 or -errno. previous, oldest: for its header. */
int batch_write(struct journal_batch *b, struct ring *ring, uint64_t previous,
                uint64_t oldest);
/* Writes a header alone into the segment's last block. 0 or -errno. */
int batch_write_copy(struct ring_segment *segment, struct ring *ring, uint64_t previous,
                     uint64_t oldest);

#endif
