/* Gathers the records of a batch, and writes them with one call. */
#include "queue/journal/journal_batch.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

enum {
    BATCH_MAX = 1024 * 1024,
    PARTS = 4 /* of a segment: the largest batch of many records */
};

static void
add_header_space(struct buffer *bytes)
{
    char header[BATCH_HEADER_SIZE] = {0};
    bool fits = buffer_add(bytes, text_of(header, sizeof(header)));
    assert(fits);
}

struct journal_batch *
batch_new(uint64_t number, struct ring_segment *segment, size_t offset,
          size_t segment_size)
{
    struct journal_batch *b = memory_new(sizeof(*b));
    assert(offset % JOURNAL_BLOCK == 0);
    b->number = number;
    b->segment = segment;
    b->offset = offset;
    b->cookie = segment != NULL ? segment->cookie : 0;
    buffer_init(&b->bytes, segment_size);
    add_header_space(&b->bytes);
    return b;
}

void
batch_free(struct journal_batch *b)
{
    buffer_free(&b->bytes);
    free(b);
}

size_t
batch_space(const struct journal_batch *b, size_t segment_size)
{
    size_t end = segment_batches_end(segment_size) - b->offset;
    size_t limit = segment_size / PARTS;
    if (limit > BATCH_MAX)
        limit = BATCH_MAX;
    /* A single record may be larger, if only it fits into the segment. */
    if (b->count == 0 || limit > end)
        limit = end;
    return limit > b->bytes.length ? limit - b->bytes.length : 0;
}

size_t
batch_end(const struct journal_batch *b)
{
    return segment_align(b->offset + b->bytes.length);
}

size_t
batch_add(struct journal_batch *b, enum record_type type, struct id id,
          const struct text *pieces, size_t count)
{
    b->count++;
    return segment_add_record(&b->bytes, b->cookie, type, id, pieces, count);
}

void
batch_settle_in(struct journal_batch *b, struct ring_segment *segment, size_t offset)
{
    /* Its records have no cookie yet. */
    struct text rest = text_after(buffer_text(&b->bytes), BATCH_HEADER_SIZE);
    struct journal_record record;
    struct buffer bytes;
    assert(b->segment == NULL && b->live == 0);
    buffer_init(&bytes, b->bytes.limit);
    add_header_space(&bytes);
    for (uint32_t i = 0; i < b->count; i++) {
        enum progress progress = segment_take_record(&rest, b->cookie, &record);
        assert(progress == PROGRESS_DONE);
        (void)segment_add_record(&bytes, segment->cookie, record.type, record.id,
                                 &record.payload, 1);
    }
    assert(bytes.length == b->bytes.length);
    buffer_free(&b->bytes);
    b->bytes = bytes;
    b->cookie = segment->cookie;
    b->segment = segment;
    b->offset = offset;
    if (segment->last_batch < b->number)
        segment->last_batch = b->number;
}

struct journal_batch *
batch_find(struct journal_batch *list, const struct journal_place *place)
{
    struct journal_batch *b;
    DL_FOREACH (list, b)
        if (b->segment != NULL && b->segment->sequence == place->sequence &&
            place->offset >= b->offset && place->offset <= b->offset + b->bytes.length)
            return b;
    return NULL;
}

/* Number 0 tells a copy of the header from a batch. */
int
batch_write_copy(struct ring_segment *segment, struct ring *ring, uint64_t previous,
                 uint64_t oldest)
{
    char header[BATCH_HEADER_SIZE];
    struct batch_header h = {.length = BATCH_HEADER_SIZE,
                             .sequence = segment->sequence,
                             .cookie = segment->cookie,
                             .previous = previous,
                             .oldest = oldest};
    size_t offset = segment_batches_end(segment->size);
    int result = ring_open_file(ring, segment);
    assert(offset < segment->size);
    segment_write_header(&h, header);
    if (result == 0)
        result = disk_write_at(ring->spool->disk, segment->file, (int64_t)offset,
                               text_of(header, sizeof(header)));
    return result;
}

int
batch_write(struct journal_batch *b, struct ring *ring, uint64_t previous,
            uint64_t oldest)
{
    struct ring_segment *s = b->segment;
    struct batch_header h = {.length = (uint32_t)b->bytes.length,
                             .count = b->count,
                             .sequence = s->sequence,
                             .cookie = b->cookie,
                             .number = b->number,
                             .previous = previous,
                             .oldest = oldest};
    segment_write_header(&h, b->bytes.at);
    /* The copy must be true whether or not this batch becomes durable. */
    int result = b->offset == 0 ? batch_write_copy(s, ring, previous, ring->needed)
                                : ring_open_file(ring, s);
    if (result == 0)
        result = disk_write_at(ring->spool->disk, s->file, (int64_t)b->offset,
                               buffer_text(&b->bytes));
    return result;
}
