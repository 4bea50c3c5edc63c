/* Fuzz target: the files of a journal. Bytes are read as they are, and as a recipe for
 * batches with true checksums and lying contents; then a journal opens on them and goes
 * on. */
#include "base/log/log_internal.h"
#include "queue/journal/segment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 4, FILE_MAX = 20 * JOURNAL_BLOCK, SPOOL_SEGMENT = 16 * JOURNAL_BLOCK };

#define must(condition) must_be((condition), #condition)

static void
must_be(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static struct disk *disk; /* one directory for all runs */

/* --- Results --------------------------------------------------------------------- */

struct reading {
    uint64_t records, digest, sequence;
    unsigned damages;
    struct journal_place places[64];
    size_t count;
    bool found; /* our own */
};

static bool
on_record(void *context, const struct journal_record *record)
{
    struct reading *r = context;
    uint64_t mix =
        (uint64_t)record->type + record->id.time_ms * 3 + record->id.hash * 5;
    must(record->place.length == record->payload.length && record->place.sequence > 0);
    must(record->place.sequence >= r->sequence); /* in order */
    r->sequence = record->place.sequence;
    for (size_t i = 0; i < record->payload.length; i++)
        mix = mix * 31 + (unsigned char)record->payload.at[i];
    r->digest = r->digest * 7 + mix;
    r->records++;
    r->found = r->found || text_equal(record->payload, TEXT("a message of our own"));
    if (record->type == RECORD_ACCEPT && r->count < 64)
        r->places[r->count++] = record->place;
    return record->id.hash % 5 != 1;
}

static void
on_damaged(void *context, struct text bytes, const char *where)
{
    struct reading *r = context;
    must(strlen(where) < 48 && bytes.length <= FILE_MAX);
    r->damages++;
}

static struct reading
read_all(void)
{
    struct reading r = {0};
    struct journal_summary summary;
    struct journal_reading reading = {
        .context = &r, .record = on_record, .damaged = on_damaged};
    must(journal_read(disk, "journal", &reading, &summary) == 0);
    must(summary.damages == r.damages && summary.records == r.records);
    return r;
}

/* --- A journal that goes on ------------------------------------------------------- */

static void
on_settled(void *context, uint64_t batch, int error)
{
    (void)context;
    must(batch > 0 && error == 0);
}

/* With lying lengths, what is new may lie beside what is old. */
static void
go_on(bool lies)
{
    struct journal_settings settings = {
        .directory = "journal", .segment_size = SPOOL_SEGMENT, .segments = FILES + 4};
    struct reading r = {0};
    struct journal_reading reading = {
        .context = &r, .record = on_record, .damaged = on_damaged};
    struct journal_events events = {.settled = on_settled};
    struct journal_summary summary;
    struct journal *journal;
    struct buffer lines;
    char error[200];
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&lines, 65536);
    log_capture(log, &lines);
    struct spool spool = {.disk = disk, .log = log};
    must(journal_open(&journal, &spool, loop, &settings, &reading, &events, &summary,
                      error, sizeof(error)) == 0);
    for (size_t i = 0; i < r.count; i++)
        journal_keep(journal, &r.places[i]);
    struct journal_place place;
    uint64_t batch;
    struct text text = TEXT("a message of our own");
    struct id id = {.time_ms = 12345, .hash = 5};
    /* A full ring takes nothing; else it does. */
    bool accepted =
        journal_accept(journal, id, &text, 1, true, &place, &batch) == JOURNAL_APPENDED;
    must(accepted || journal_figures(journal).free_segments == 0);
    for (size_t i = 0; i < r.count; i++)
        journal_end(journal, id, &r.places[i], RECORD_MOVED);
    journal_close(&journal);
    must(read_all().found || !accepted || lies);
    log_free(&log);
    buffer_free(&lines);
    loop_free(&loop);
}

/* --- Files ------------------------------------------------------------------------ */

static void
write_file(unsigned number, struct text bytes)
{
    char path[32];
    snprintf(path, sizeof(path), "journal/%04u", number);
    int file = disk_create(disk, path, 0600);
    must(file >= 0 && disk_write(disk, file, bytes) == 0);
    disk_close_file(disk, file);
}

static bool
remove_one(void *context, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "journal/%s", name);
    must(disk_unlink(context, path) == 0);
    return true;
}

struct recipe {
    const uint8_t *at, *end;
    struct buffer bytes;
    size_t batch; /* offset of the open one */
    bool lies;
    struct batch_header header;
};

static uint64_t
next(struct recipe *r)
{
    return r->at < r->end ? *r->at++ : 0;
}

static void
add_zeros(struct recipe *r, size_t to)
{
    while (r->bytes.length < to && buffer_add_byte(&r->bytes, '\0'))
        ;
}

static void
close_batch(struct recipe *r)
{
    char header[BATCH_HEADER_SIZE];
    if (r->batch == SIZE_MAX)
        return;
    r->header.length = (uint32_t)(r->bytes.length - r->batch);
    uint64_t lie = next(r);
    if (lie >= 250) {
        r->header.length ^= 1u << (lie - 250) * 5;
        r->lies = true;
    }
    if (lie == 249)
        r->header.count = UINT32_MAX;
    segment_write_header(&r->header, header);
    memcpy(r->bytes.at + r->batch, header, sizeof(header));
    r->batch = SIZE_MAX;
}

static void
begin_batch(struct recipe *r, uint64_t sequence, uint64_t number)
{
    size_t offset = segment_align(r->bytes.length);
    if (offset + BATCH_HEADER_SIZE > FILE_MAX)
        return;
    add_zeros(r, offset + BATCH_HEADER_SIZE);
    r->batch = offset;
    r->header = (struct batch_header){.sequence = sequence,
                                      .cookie = sequence * 77,
                                      .number = number,
                                      .previous = number - next(r) % 4,
                                      .oldest = sequence - next(r) % 4};
}

static void
add_record(struct recipe *r)
{
    char payload[512];
    size_t length = (size_t)next(r) * 2;
    struct id id = {.time_ms = next(r), .hash = next(r)};
    struct text piece = text_of(payload, length);
    memset(payload, (int)(id.hash & 0xff), sizeof(payload));
    if (r->batch == SIZE_MAX || r->bytes.length + length + 64 > FILE_MAX)
        return;
    enum record_type type = (enum record_type)(1 + next(r) % 4);
    (void)segment_add_record(&r->bytes, r->header.cookie, type, id, &piece, 1);
    r->header.count++;
}

static void
cook_file(struct recipe *r, uint64_t sequence, uint64_t *number)
{
    uint64_t op;
    buffer_init(&r->bytes, FILE_MAX + BATCH_HEADER_SIZE);
    r->batch = SIZE_MAX;
    while ((op = next(r)) != 0 && r->bytes.length + JOURNAL_BLOCK < FILE_MAX)
        switch (op % 5) {
        case 0:
        case 1:
            add_record(r);
            break;
        case 2:
            close_batch(r);
            *number += op / 5 % 3;
            begin_batch(r, sequence, *number);
            break;
        case 3:
            if (r->bytes.length > 0)
                r->bytes.at[next(r) * 257 % r->bytes.length] ^= (char)op;
            break;
        case 4:
            close_batch(r);
            break;
        }
    close_batch(r);
    if (next(r) % 3 > 0)
        add_zeros(r, SPOOL_SEGMENT);
    if (next(r) % 3 == 0 && r->bytes.length == SPOOL_SEGMENT) {
        r->bytes.length -= JOURNAL_BLOCK;
        begin_batch(r, sequence, 0);
        close_batch(r);
        add_zeros(r, SPOOL_SEGMENT);
    }
}

static void
remove_directory(void)
{
    char path[80];
    (void)disk_list(disk, "journal", remove_one, disk);
    snprintf(path, sizeof(path), "%s/journal", disk_path(disk));
    (void)rmdir(path);
    (void)rmdir(disk_path(disk));
}

static void
make_directory(void)
{
    char path[64];
    if (disk != NULL)
        return;
    snprintf(path, sizeof(path), "%s/petrel-fuzz-%ld",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
    must(disk_open(&disk, path, true) == 0 &&
         disk_make_directory(disk, "journal", 0700) == 0);
    (void)atexit(remove_directory);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recipe r = {.at = data, .end = data + size};
    bool raw = next(&r) % 4 == 0;
    make_directory();
    uint64_t number = 1;
    must(disk_list(disk, "journal", remove_one, disk) == 0);
    for (unsigned i = 0; i < FILES; i++) {
        size_t rest = (size_t)(r.end - r.at);
        if (raw) {
            size_t part = rest / (FILES - i);
            write_file(i, text_of(r.at, part));
            r.at += part;
            continue;
        }
        cook_file(&r, 1 + next(&r) % 8, &number);
        write_file(i, buffer_text(&r.bytes));
        buffer_free(&r.bytes);
    }
    struct reading first = read_all(), second = read_all();
    must(first.digest == second.digest && first.damages == second.damages);
    go_on(r.lies);
    return 0;
}
