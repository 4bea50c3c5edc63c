/* Reads the journal back, and tells whole, torn and damaged batches apart. Batches are
 * numbered consecutively through all segments. Each has the number of the batch that
 * was durable before it, so the next header proves whether a batch was acknowledged, or
 * that one is missing. */
#include "queue/journal/journal_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_DIGITS_MIN = 4,
    NUMBER_DIGITS_MAX = 8,
    SEGMENT_BYTES_MAX = 1024 * 1024 * 1024, /* a larger file is not a segment */
    UNREADABLE = 0xeb
};

/* A damaged range, reported after everything else, from the file again. */
struct damage {
    const struct found_segment *segment;
    size_t offset, length;
    bool padded; /* zeros at its end do not belong to it */
};

struct scanner {
    struct disk *disk;
    const char *directory;
    const struct journal_reading *reading;
    struct journal_summary *summary;
    struct journal_scan *scan;

    /* The last batch so far: the next one shows whether it was acknowledged. */
    struct found_segment *segment; /* NULL: none yet */
    struct text bytes;             /* of the whole segment */
    size_t offset;
    struct batch_header header;
    bool orphans; /* in the last segment */

    struct damage *damages;
    size_t damage_count, damage_capacity;
    int result;
};

void
journal_path(const char *directory, uint32_t number, char out[SEGMENT_PATH_MAX])
{
    int length = snprintf(out, SEGMENT_PATH_MAX, "%s/%04" PRIu32, directory, number);
    assert(length > 0 && length < SEGMENT_PATH_MAX);
}

/* --- Files ----------------------------------------------------------------------- */

static int
open_segment(struct scanner *s, uint32_t number)
{
    char path[SEGMENT_PATH_MAX];
    journal_path(s->directory, number, path);
    return disk_open_file(s->disk, path, false);
}

/* Reads around bad sectors. Unreadable blocks are filled with UNREADABLE, which is
 * neither a header nor a record, and not zeros, which would mean that nothing was
 * written. */
static int64_t
read_around(struct disk *disk, int file, int64_t offset, char *to, size_t size)
{
    int64_t got = disk_read(disk, file, offset, to, size);
    if (got != -EIO || size == 0)
        return got;
    for (size_t at = 0; at < size; at += JOURNAL_BLOCK) {
        size_t piece = size - at < JOURNAL_BLOCK ? size - at : JOURNAL_BLOCK;
        got = disk_read(disk, file, offset + (int64_t)at, to + at, piece);
        if (got == -EIO)
            memset(to + at, UNREADABLE, piece);
        else if (got < 0 || (size_t)got < piece)
            return got < 0 ? got : (int64_t)at + got;
    }
    return (int64_t)size;
}

/* Reads size bytes of a segment from offset on, fewer at its end; free with
 * free_bytes(). A missing file counts as empty: beside a running daemon segments may
 * disappear. */
static int
journal_read_load(struct scanner *s, const struct found_segment *f, size_t offset,
                  size_t size, struct text *bytes)
{
    *bytes = TEXT("");
    int file = open_segment(s, f->number);
    if (file < 0)
        return file == -ENOENT ? 0 : file;
    char *at = memory_resize(NULL, size + 1);
    int64_t got = read_around(s->disk, file, (int64_t)offset, at, size);
    disk_close_file(s->disk, file);
    *bytes = text_of(at, got > 0 ? (size_t)got : 0);
    return got < 0 ? (int)got : 0;
}

static void
free_bytes(struct text *bytes)
{
    if (bytes->at != NULL && bytes->at != TEXT("").at)
        free((void *)(uintptr_t)bytes->at);
    *bytes = (struct text){0};
}

static bool
is_zero(struct text bytes)
{
    for (size_t i = 0; i < bytes.length; i++)
        if (bytes.at[i] != '\0')
            return false;
    return true;
}

/* Identifies a segment by the headers at the two places that never hold content. They
 * may differ when the first batch was cut off or damaged: the later one counts. */
static int
identify_open(struct scanner *s, int file, struct found_segment *f)
{
    char first[BATCH_HEADER_SIZE] = {0}, copy[BATCH_HEADER_SIZE] = {0};
    struct disk_info info;
    struct batch_header h;
    int result = disk_file_info(s->disk, file, &info);
    if (result == 0 && info.size > SEGMENT_BYTES_MAX)
        result = -EFBIG;
    if (result < 0)
        return result;
    f->size = (size_t)info.size;
    size_t end = segment_batches_end(f->size);
    int64_t got = read_around(s->disk, file, 0, first, sizeof(first));
    if (got >= 0)
        got = read_around(s->disk, file, (int64_t)end, copy, sizeof(copy));
    if (got < 0)
        return (int)got;
    if (segment_read_header(text_of(first, sizeof(first)), &h) && h.number > 0) {
        f->sequence = h.sequence;
        f->cookie = h.cookie;
    }
    if (segment_read_header(text_of(copy, sizeof(copy)), &h) && h.number == 0 &&
        h.sequence >= f->sequence && h.oldest <= h.sequence + 1) {
        f->sequence = h.sequence;
        f->cookie = h.cookie;
        f->oldest = h.oldest;
    }
    /* The copy is written first: with no copy and zeros here, the segment was never
     * begun. */
    f->strange = f->sequence == 0 && !is_zero(text_of(first, sizeof(first)));
    return 0;
}

/* Returns 0 also for a foreign file; only its number is taken. */
static int
identify(struct scanner *s, struct found_segment *f, bool *ours)
{
    int file = open_segment(s, f->number);
    *ours = file >= 0;
    if (file == -ENOENT || file == -EINVAL || file == -ELOOP)
        return 0;
    if (file < 0)
        return file;
    int result = identify_open(s, file, f);
    disk_close_file(s->disk, file);
    return result;
}

static bool
note_segment(void *context, const char *name)
{
    struct scanner *s = context;
    struct journal_scan *scan = s->scan;
    size_t length = strlen(name);
    if (length < NUMBER_DIGITS_MIN || length > NUMBER_DIGITS_MAX ||
        strspn(name, "0123456789") != length ||
        (length > NUMBER_DIGITS_MIN && name[0] == '0'))
        return true;
    struct found_segment f = {.number = (uint32_t)strtoul(name, NULL, 10)};
    scan->segments =
        memory_resize(scan->segments, (scan->count + 1) * sizeof(*scan->segments));
    scan->segments[scan->count++] = f;
    return true;
}

static int
by_sequence(const void *a, const void *b)
{
    const struct found_segment *left = a, *right = b;
    if (left->sequence != right->sequence)
        return left->sequence < right->sequence ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

static void
find_segments(struct scanner *s)
{
    struct journal_scan *scan = s->scan;
    unsigned kept = 0;
    s->result = disk_list(s->disk, s->directory, note_segment, s);
    if (s->result == -ENOENT)
        s->result = 0;
    for (unsigned i = 0; i < scan->count && s->result == 0; i++) {
        struct found_segment f = scan->segments[i];
        bool ours = false;
        s->result = identify(s, &f, &ours);
        if (ours)
            scan->segments[kept++] = f;
    }
    scan->count = kept;
    if (kept > 0)
        qsort(scan->segments, kept, sizeof(*scan->segments), by_sequence);
}

static bool
has_header(struct text bytes, size_t offset, const struct found_segment *f,
           struct batch_header *h)
{
    return offset < segment_batches_end(f->size) &&
           segment_read_header(text_after(bytes, offset), h) && h->number > 0 &&
           h->cookie == f->cookie && h->sequence == f->sequence &&
           h->previous < h->number && h->oldest <= h->sequence;
}

/* The search for the last batch, with its known neighbours. */
struct search {
    struct journal_scan *scan;
    struct batch_header last;
    bool whole;                /* last is, */
    size_t end;                /* and ends here */
    struct batch_header first; /* of the segment, */
    struct batch_header after; /* and of the next one; number 0: none */
};

/* A batch counts when the next header names it as durable, or when it is whole and no
 * later header leaves it out. One that is left out has failed: its clients were
 * refused. */
static void
keep_last(struct search *search, const struct batch_header *next)
{
    struct journal_scan *scan = search->scan;
    const struct batch_header *last = &search->last;
    bool failed = next->number > last->number && next->previous < last->number;
    bool acknowledged = next->number > last->number && next->previous == last->number;
    if (last->number > 0 && (acknowledged || (search->whole && !failed))) {
        scan->number = last->number;
        scan->sequence = last->sequence;
        scan->oldest = last->oldest;
        scan->end = search->end;
    }
}

static void
search_segment(struct search *search, struct text bytes, const struct found_segment *f)
{
    struct batch_header h;
    search->first = search->last = (struct batch_header){0};
    for (size_t at = 0; at < bytes.length;) {
        if (!has_header(bytes, at, f, &h) || h.number <= search->last.number) {
            at += JOURNAL_BLOCK;
            continue;
        }
        if (search->first.number == 0)
            search->first = h;
        if (h.number > search->scan->highest)
            search->scan->highest = h.number;
        keep_last(search, &h);
        search->last = h;
        search->whole = segment_is_whole(bytes, at, &h);
        at = search->end = segment_align(at + h.length);
    }
    keep_last(search, &search->after);
    if (search->first.number > 0)
        search->after = search->first;
}

/* The last good batch of all says how far back to read. */
static void
find_last(struct scanner *s)
{
    struct journal_scan *scan = s->scan;
    struct search search = {.scan = scan};
    for (unsigned i = scan->count; i-- > 0 && scan->number == 0 && s->result == 0;) {
        struct text bytes;
        if (scan->segments[i].sequence == 0)
            break;
        s->result =
            journal_read_load(s, &scan->segments[i], 0, scan->segments[i].size, &bytes);
        search_segment(&search, bytes, &scan->segments[i]);
        free_bytes(&bytes);
    }
    for (unsigned i = 0; i < scan->count; i++)
        if (scan->segments[i].oldest > scan->oldest)
            scan->oldest = scan->segments[i].oldest;
}

/* --- Damage ---------------------------------------------------------------------- */

static void
note_damage(struct scanner *s, const struct found_segment *f, size_t offset,
            size_t length, bool padded)
{
    if (s->damage_count == s->damage_capacity) {
        s->damage_capacity = s->damage_capacity > 0 ? s->damage_capacity * 2 : 16;
        s->damages =
            memory_resize(s->damages, s->damage_capacity * sizeof(*s->damages));
    }
    s->damages[s->damage_count++] = (struct damage){f, offset, length, padded};
}

static void
report_damage(struct scanner *s, const struct damage *d)
{
    char where[48];
    struct text bytes;
    int result = journal_read_load(s, d->segment, d->offset, d->length, &bytes);
    if (result < 0 && s->result == 0)
        s->result = result;
    struct text shown = bytes;
    while (d->padded && shown.length > 0 && shown.at[shown.length - 1] == '\0')
        shown.length--;
    snprintf(where, sizeof(where), "%04" PRIu32 " at %zu", d->segment->number,
             d->offset);
    s->summary->damages++;
    if (s->reading->damaged != NULL)
        s->reading->damaged(s->reading->context, shown, where);
    free_bytes(&bytes);
}

static void
report_damages(struct scanner *s)
{
    for (size_t i = 0; i < s->damage_count; i++)
        report_damage(s, &s->damages[i]);
    /* Neither ours nor new: a damaged segment of unknown age. */
    for (unsigned i = 0; i < s->scan->count; i++) {
        const struct found_segment *f = &s->scan->segments[i];
        if (f->strange)
            report_damage(s, &(struct damage){f, 0, f->size, true});
    }
}

/* --- Records --------------------------------------------------------------------- */

/* Whether the block can be read: then a message merely has these bytes. */
static bool
is_readable(struct scanner *s, const struct found_segment *f, size_t offset)
{
    char block[JOURNAL_BLOCK];
    int file = open_segment(s, f->number);
    if (file < 0)
        return false;
    int64_t got = disk_read(s->disk, file, (int64_t)offset, block, sizeof(block));
    disk_close_file(s->disk, file);
    return got >= 0;
}

/* Notes blocks that could not be read, also in the last batch, where any other damage
 * means that it was never acknowledged. */
static void
note_unreadable(struct scanner *s, const struct found_segment *f, struct text bytes)
{
    char block[JOURNAL_BLOCK];
    memset(block, UNREADABLE, sizeof(block));
    for (size_t at = 0; at + sizeof(block) <= bytes.length; at += sizeof(block))
        if (memcmp(bytes.at + at, block, sizeof(block)) == 0 && !is_readable(s, f, at))
            note_damage(s, f, at, sizeof(block), false);
}

static void
read_batch(struct scanner *s)
{
    const struct found_segment *f = s->segment;
    struct text rest = text_before(text_after(s->bytes, s->offset), s->header.length);
    rest = text_after(rest, BATCH_HEADER_SIZE);
    for (uint32_t i = 0; i < s->header.count && rest.length > 0; i++) {
        struct journal_record record;
        const char *at = rest.at;
        bool good =
            segment_take_record(&rest, s->header.cookie, &record) == PROGRESS_DONE;
        if (good) {
            record.place = (struct journal_place){
                .sequence = f->sequence,
                .segment = f->number,
                .offset = (uint32_t)(record.payload.at - s->bytes.at),
                .length = (uint32_t)record.payload.length};
            s->summary->records++;
            good = s->reading->record(s->reading->context, &record);
        }
        if (!good)
            note_damage(s, f, (size_t)(at - s->bytes.at), (size_t)(rest.at - at),
                        false);
    }
}

/* Whether the header says so. What is not needed any more may have lost the segment that
 * said otherwise: there only the next batch knows. */
static bool
acknowledges(const struct scanner *s, const struct batch_header *next)
{
    return s->reading->with_past ? next->previous == s->header.number
                                 : next->previous >= s->header.number;
}

/* Judges the last batch by the next one; NULL: there is none. */
static void
settle_last(struct scanner *s, const struct batch_header *next)
{
    if (s->segment == NULL)
        return;
    bool acknowledged = next != NULL && acknowledges(s, next);
    if (next != NULL && !acknowledged)
        return; /* it had failed, and its records come again */
    if (!acknowledged && !segment_is_whole(s->bytes, s->offset, &s->header)) {
        s->summary->torn = true;
        return;
    }
    s->scan->number = s->header.number;
    s->scan->sequence = s->header.sequence;
    s->scan->end = segment_align(s->offset + s->header.length);
    size_t there = s->bytes.length - s->offset;
    if (s->header.length > there) /* the file was longer */
        note_damage(s, s->segment, s->offset + there, 0, false);
    read_batch(s);
}

/* Notes the bytes between the last batch and the one at offset of f. */
static void
note_gap(struct scanner *s, const struct found_segment *f, size_t offset)
{
    bool noted = false;
    size_t from = 0;
    const struct found_segment *at = f;
    if (s->segment != NULL) {
        at = s->segment;
        from = segment_align(s->offset + s->header.length);
    }
    for (; at <= f; at++, from = 0) {
        size_t to = at == f ? offset : segment_batches_end(at->size);
        if (to <= from)
            continue;
        note_damage(s, at, from, to - from, true);
        noted = true;
    }
    if (!noted)
        note_damage(s, f, offset, 0, true);
}

/* Whether something acknowledged should be before this batch and is not. */
static bool
is_missing(const struct scanner *s, const struct found_segment *f, size_t offset,
           const struct batch_header *h)
{
    if (s->segment != NULL)
        return h->previous > s->header.number;
    if (s->scan->number > 0)
        return f->sequence != s->scan->oldest || offset > 0;
    /* The very first one may be torn. */
    return h->previous > 0 && (h->oldest < f->sequence || offset > 0);
}

/* False: it is older than the batch before it: left by a cut-off write before a
 * restart. */
static bool
meet_batch(struct scanner *s, const struct found_segment *f, size_t offset,
           const struct batch_header *h)
{
    if (h->number > s->scan->highest)
        s->scan->highest = h->number;
    if (s->segment != NULL && h->number <= s->header.number)
        return false;
    settle_last(s, h);
    if (is_missing(s, f, offset, h))
        note_gap(s, f, offset);
    return true;
}

/* Whether there are records without a header where the next batch would begin. */
static bool
has_orphans(const struct scanner *s, const struct found_segment *f, struct text bytes)
{
    size_t at = s->segment == f ? segment_align(s->offset + s->header.length) : 0;
    struct batch_header h;
    return at < segment_batches_end(f->size) && !has_header(bytes, at, f, &h) &&
           segment_has_record(text_after(bytes, at + BATCH_HEADER_SIZE), f->cookie);
}

static void
read_segment(struct scanner *s, struct found_segment *f)
{
    struct batch_header h;
    struct text bytes;
    s->result = journal_read_load(s, f, 0, f->size, &bytes);
    s->summary->segments++;
    s->summary->bytes += bytes.length;
    for (size_t at = 0; s->result == 0 && at < bytes.length;) {
        /* Batches begin at a block, so damage hides no batch behind it. */
        if (!has_header(bytes, at, f, &h) || !meet_batch(s, f, at, &h)) {
            at += JOURNAL_BLOCK;
            continue;
        }
        /* The old bytes were kept until now, to judge the last batch in them. */
        if (s->segment != f)
            free_bytes(&s->bytes);
        s->segment = f;
        s->bytes = bytes;
        s->offset = at;
        s->header = h;
        at = segment_align(at + h.length);
    }
    note_unreadable(s, f, bytes);
    s->orphans = has_orphans(s, f, bytes);
    if (s->segment != f)
        free_bytes(&bytes);
}

/* The segments are sorted by their sequence. */
static unsigned
first_segment(const struct scanner *s)
{
    const struct journal_scan *scan = s->scan;
    unsigned first = 0;
    while (first < scan->count && scan->segments[first].sequence < scan->oldest)
        first++;
    size_t past = 0;
    while (s->reading->with_past && first > 0 &&
           past + scan->segments[first - 1].size <= JOURNAL_PAST_MAX)
        past += scan->segments[--first].size;
    return first;
}

int
journal_scan(struct disk *disk, const char *directory,
             const struct journal_reading *reading, struct journal_summary *summary,
             struct journal_scan *scan)
{
    struct scanner s = {.disk = disk,
                        .directory = directory,
                        .reading = reading,
                        .summary = summary,
                        .scan = scan};
    assert(reading->record != NULL);
    *scan = (struct journal_scan){0};
    *summary = (struct journal_summary){0};
    find_segments(&s);
    if (s.result == 0)
        find_last(&s);
    for (unsigned i = first_segment(&s); i < scan->count && s.result == 0; i++)
        if (scan->segments[i].sequence > 0)
            read_segment(&s, &scan->segments[i]);
    if (s.result == 0)
        settle_last(&s, NULL);
    summary->torn = summary->torn || s.orphans;
    free_bytes(&s.bytes);
    if (s.result == 0 && !reading->with_past)
        report_damages(&s);
    free(s.damages);
    return s.result;
}

/* --- For everybody --------------------------------------------------------------- */

int
journal_read(struct disk *disk, const char *directory,
             const struct journal_reading *reading, struct journal_summary *summary)
{
    struct journal_scan scan;
    int result = journal_scan(disk, directory, reading, summary, &scan);
    free(scan.segments);
    return result;
}

int64_t
journal_read_place(struct disk *disk, const char *directory,
                   const struct journal_place *place, uint32_t offset, char *to,
                   size_t size)
{
    char path[SEGMENT_PATH_MAX];
    assert(place->sequence > 0 && offset <= place->length &&
           size <= place->length - offset);
    journal_path(directory, place->segment, path);
    return disk_read_at(disk, path, (int64_t)place->offset + offset, to, size);
}
