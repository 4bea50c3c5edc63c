/* A batch: the records that are written together, from the first one to the disk. Part
 * of journal.c; nobody else includes it. */
#ifndef QUEUE_JOURNAL_BATCH_H
#define QUEUE_JOURNAL_BATCH_H

#include "queue/journal/journal_ring.h"

struct journal_batch {
    uint64_t number;
    struct ring_segment *segment; /* NULL: it waits for one; no messages then */
    size_t offset;
    struct buffer bytes; /* space for the header first */
    uint64_t cookie;
    uint32_t count, live; /* records; messages among them that have not ended */
    struct journal_batch *prev, *next;
};

/* Empty; segment may be NULL. */
struct journal_batch *batch_new(uint64_t number, struct ring_segment *segment,
                                size_t offset, size_t segment_size);
void batch_free(struct journal_batch *b);
/* How many bytes may still be added: one record may be as large as what is left of its
 * segment, many only a part of that. */
size_t batch_space(const struct journal_batch *b, size_t segment_size);
/* The next one begins here, at the earliest. */
size_t batch_end(const struct journal_batch *b);
/* Returns the offset of the payload in the bytes. */
size_t batch_add(struct journal_batch *b, enum record_type type, struct id id,
                 const struct text *pieces, size_t count);
/* One that waited gets its place. */
void batch_settle_in(struct journal_batch *b, struct ring_segment *segment,
                     size_t offset);
/* The one in the list that has the message; NULL: none. */
struct journal_batch *batch_find(struct journal_batch *list,
                                 const struct journal_place *place);
/* Writes it; 0 or -errno. previous, oldest: for its header. */
int batch_write(struct journal_batch *b, struct ring *ring, uint64_t previous,
                uint64_t oldest);
/* Writes a header alone into the segment's last block. 0 or -errno. */
int batch_write_copy(struct ring_segment *segment, struct ring *ring, uint64_t previous,
                     uint64_t oldest);

#endif
