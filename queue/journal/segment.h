/* The bytes of the journal: writes and reads headers of batches and records.
 *
 * See journal.h. The last block of a segment has no batch but a copy of a header (with
 * number 0), written with the segment's first batch: when the first block is damaged,
 * the rest can still be distinguished from forged content. The copy has the oldest
 * sequence, too, and is written again to free segments when no other batch fits. */
#ifndef QUEUE_JOURNAL_SEGMENT_H
#define QUEUE_JOURNAL_SEGMENT_H

#include "queue/journal/journal.h"

enum { BATCH_HEADER_SIZE = 64, RECORD_HEADER_SIZE = 32 };

struct batch_header {
    uint32_t length, count; /* of header and records, in bytes; of records */
    uint64_t sequence, cookie;
    uint64_t number;   /* 0: the copy in the last block */
    uint64_t previous; /* number of the last batch durable before this one */
    uint64_t oldest;   /* sequence of the oldest segment that is still needed */
};

void segment_write_header(const struct batch_header *h, char out[BATCH_HEADER_SIZE]);
/* False: no header, or a damaged one. h->length may exceed the bytes. */
bool segment_read_header(struct text bytes, struct batch_header *h);

/* Appends a record; the buffer's limit must allow it. Returns the offset of the payload
 * in the buffer. */
size_t segment_add_record(struct buffer *out, uint64_t cookie, enum record_type type,
                          struct id id, const struct text *pieces, size_t count);
/* Takes one record off the front and sets all members but its place. BAD: not a record,
 * or damaged; rest then begins with the next record found. */
enum progress segment_take_record(struct text *rest, uint64_t cookie,
                                  struct journal_record *record);
/* A record begins here; its payload is not checked. */
bool segment_has_record(struct text bytes, uint64_t cookie);
/* The batch at the offset is inside the bytes and all its records are complete. */
bool segment_is_whole(struct text bytes, size_t offset, const struct batch_header *h);

/* Rounds offset up to a multiple of JOURNAL_BLOCK. */
size_t segment_align(size_t offset);
/* The offset of a segment's last block: batches end before it. Returns size if a
 * segment cannot have that size. */
size_t segment_batches_end(size_t size);

#endif
