/* Writes and reads the bytes of the journal. */
#include "queue/journal/segment.h"

#include "base/crc.h"

#include <assert.h>
#include <string.h>

/* "PetrJrn1" */
static const uint64_t magic = UINT64_C(0x316e724a72746550);

enum {
    HEADER_CHECKED = 56, /* bytes that the checksum covers */
    HEAD_CHECKED = 24,   /* of a record: length, type, id; then this checksum, */
    RECORD_CHECKED = 28  /* then one over all of it, and the payload */
};

static void
segment_put(char *at, uint64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)(number >> 8 * i & 0xff);
}

static uint64_t
get(const char *at, size_t size)
{
    uint64_t number = 0;
    for (size_t i = size; i-- > 0;)
        number = number << 8 | (unsigned char)at[i];
    return number;
}

size_t
segment_align(size_t offset)
{
    return (offset + JOURNAL_BLOCK - 1) / JOURNAL_BLOCK * JOURNAL_BLOCK;
}

size_t
segment_batches_end(size_t size)
{
    bool has_copy = size % JOURNAL_BLOCK == 0 && size > JOURNAL_BLOCK;
    return has_copy ? size - JOURNAL_BLOCK : size;
}

/* --- Records --------------------------------------------------------------------- */

/* The cookie comes first: without it content cannot forge a checksum. */
static uint32_t
crc_start(uint64_t cookie)
{
    char bytes[8];
    segment_put(bytes, cookie, sizeof(bytes));
    return crc_add(0, bytes, sizeof(bytes));
}

size_t
segment_add_record(struct buffer *out, uint64_t cookie, enum record_type type,
                   struct id id, const struct text *pieces, size_t count)
{
    char head[RECORD_HEADER_SIZE];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += pieces[i].length;
    assert(length <= UINT32_MAX);
    segment_put(head, length, 4);
    segment_put(head + 4, type, 4);
    segment_put(head + 8, id.time_ms, 8);
    segment_put(head + 16, id.hash, 8);
    uint32_t start = crc_start(cookie);
    segment_put(head + HEAD_CHECKED, crc_add(start, head, HEAD_CHECKED), 4);
    uint32_t crc = crc_add(start, head, RECORD_CHECKED);
    for (size_t i = 0; i < count; i++)
        crc = crc_add(crc, pieces[i].at, pieces[i].length);
    segment_put(head + RECORD_CHECKED, crc, 4);
    bool fits = buffer_add(out, text_of(head, sizeof(head)));
    size_t payload = out->length;
    for (size_t i = 0; i < count; i++)
        fits = fits && buffer_add(out, pieces[i]);
    assert(fits);
    return payload;
}

static bool
is_type(uint64_t type)
{
    return type == RECORD_ACCEPT || type == RECORD_MARK || type == RECORD_MOVED ||
           type == RECORD_END || type == RECORD_COPY;
}

/* Whether length and type can be trusted, even if the payload is damaged. */
static bool
is_head(struct text bytes, uint32_t start)
{
    return bytes.length >= RECORD_HEADER_SIZE && is_type(get(bytes.at + 4, 4)) &&
           get(bytes.at + HEAD_CHECKED, 4) == crc_add(start, bytes.at, HEAD_CHECKED);
}

bool
segment_has_record(struct text bytes, uint64_t cookie)
{
    return is_head(bytes, crc_start(cookie));
}

/* The length of a damaged record cannot be trusted, so a head may begin at any byte. */
static struct text
find_head(struct text bytes, uint32_t start)
{
    while (bytes.length >= RECORD_HEADER_SIZE && !is_head(bytes, start))
        bytes = text_after(bytes, 1);
    return is_head(bytes, start) ? bytes : text_after(bytes, bytes.length);
}

enum progress
segment_take_record(struct text *rest, uint64_t cookie, struct journal_record *record)
{
    struct text bytes = *rest;
    uint32_t start = crc_start(cookie);
    if (!is_head(bytes, start)) {
        *rest = find_head(text_after(bytes, 1), start);
        return PROGRESS_BAD;
    }
    uint64_t length = get(bytes.at, 4);
    *rest = text_after(bytes, RECORD_HEADER_SIZE);
    if (length > rest->length) {
        *rest = find_head(*rest, start); /* not written by us, but possible */
        return PROGRESS_BAD;
    }
    struct text payload = text_before(*rest, (size_t)length);
    *rest = text_after(*rest, (size_t)length);
    uint32_t crc = crc_add(start, bytes.at, RECORD_CHECKED);
    crc = crc_add(crc, payload.at, payload.length);
    /* The head is good: the next record begins behind this payload. */
    if (crc != get(bytes.at + RECORD_CHECKED, 4))
        return PROGRESS_BAD;
    *record = (struct journal_record){
        .type = (enum record_type)get(bytes.at + 4, 4),
        .id = {.time_ms = get(bytes.at + 8, 8), .hash = get(bytes.at + 16, 8)},
        .payload = payload
    };
    return PROGRESS_DONE;
}

/* --- Batches --------------------------------------------------------------------- */

void
segment_write_header(const struct batch_header *h, char out[BATCH_HEADER_SIZE])
{
    segment_put(out, magic, 8);
    segment_put(out + 8, h->length, 4);
    segment_put(out + 12, h->count, 4);
    segment_put(out + 16, h->sequence, 8);
    segment_put(out + 24, h->cookie, 8);
    segment_put(out + 32, h->number, 8);
    segment_put(out + 40, h->previous, 8);
    segment_put(out + 48, h->oldest, 8);
    segment_put(out + HEADER_CHECKED, crc_add(0, out, HEADER_CHECKED), 4);
    segment_put(out + HEADER_CHECKED + 4, 0, 4);
}

bool
segment_read_header(struct text bytes, struct batch_header *h)
{
    if (bytes.length < BATCH_HEADER_SIZE || get(bytes.at, 8) != magic ||
        get(bytes.at + HEADER_CHECKED, 4) != crc_add(0, bytes.at, HEADER_CHECKED))
        return false;
    *h = (struct batch_header){.length = (uint32_t)get(bytes.at + 8, 4),
                               .count = (uint32_t)get(bytes.at + 12, 4),
                               .sequence = get(bytes.at + 16, 8),
                               .cookie = get(bytes.at + 24, 8),
                               .number = get(bytes.at + 32, 8),
                               .previous = get(bytes.at + 40, 8),
                               .oldest = get(bytes.at + 48, 8)};
    bool is_sane = h->number == 0 ? h->oldest <= h->sequence + 1
                                  : h->oldest <= h->sequence && h->previous < h->number;
    return is_sane && h->length >= BATCH_HEADER_SIZE && h->sequence > 0 &&
           h->sequence < UINT64_MAX - 1;
}

bool
segment_is_whole(struct text bytes, size_t offset, const struct batch_header *h)
{
    struct text batch = text_after(bytes, offset);
    struct journal_record record;
    if (h->length > batch.length)
        return false;
    batch = text_after(text_before(batch, h->length), BATCH_HEADER_SIZE);
    for (uint32_t i = 0; i < h->count; i++)
        if (segment_take_record(&batch, h->cookie, &record) != PROGRESS_DONE)
            return false;
    return batch.length == 0;
}
