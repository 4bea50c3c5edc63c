/* Keeps records in a table, and in a file of lines that are appended. */
#include "admin/post/post_records.h"

#include "base/buffer.h"
#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/queue.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#define TITLE "petrel posted 1\n"

enum {
    PATH_MAX_BYTES = 64,
    LINE_MAX_BYTES = 256,
    FILE_MAX = (POST_RECORDS_MAX + 1) * 2 * LINE_MAX_BYTES,
    SPARE_BYTES = 256 * 1024 /* more than twice of it: it is made anew */
};

struct record_row {
    struct post_record record;
    int64_t time_ms;
    struct record_row *prev, *next; /* the oldest first */
    UT_hash_handle hh;
};

/* How many records a submission key has. */
struct record_owner {
    char name[POST_KEY_NAME_MAX + 1];
    size_t count;
    UT_hash_handle hh;
};

struct post_records {
    struct loop *loop;
    struct log *log;
    struct disk *disk;
    char path[PATH_MAX_BYTES];
    struct record_row *by_key, *oldest;
    struct record_owner *owners;
    int file;           /* -1: none */
    size_t bytes, made; /* of the file; when it was made */
    bool dirty, syncing, failed;
    struct disk_sync sync;
};

/* --- The table ---------------------------------------------------------------------- */

static void
record_count(struct post_records *r, const char *name, int by)
{
    struct record_owner *o = NULL;
    HASH_FIND_STR(r->owners, name, o);
    if (o == NULL) {
        o = memory_new(sizeof(*o));
        (void)!text_copy(o->name, sizeof(o->name), text_from(name));
        HASH_ADD_STR(r->owners, name, o);
    }
    o->count += (size_t)by;
    if (o->count > 0)
        return;
    HASH_DEL(r->owners, o);
    free(o);
}

static void
record_remove(struct post_records *r, struct record_row *row)
{
    HASH_DEL(r->by_key, row);
    DL_DELETE(r->oldest, row);
    record_count(r, row->record.name, -1);
    free(row);
}

/* A clock that was set back makes none older. */
static void
record_forget_old(struct post_records *r)
{
    int64_t now_ms = loop_now_ms(r->loop);
    struct record_row *row, *next;
    DL_FOREACH_SAFE (r->oldest, row, next) {
        bool over = HASH_COUNT(r->by_key) > POST_RECORDS_MAX;
        if (row->record.pending || (!over && row->time_ms > now_ms - POST_RECORD_MS))
            return;
        record_remove(r, row);
    }
}

static struct record_row *
record_find(const struct post_records *r, const unsigned char key[POST_DIGEST_SIZE])
{
    struct record_row *row = NULL;
    HASH_FIND(hh, r->by_key, key, POST_DIGEST_SIZE, row);
    return row;
}

/* A record of a clock that was ahead is as new as now: it would keep its place, and those
 * behind it, for as long. */
static void
record_enter(struct post_records *r, const struct post_record *record, int64_t time_ms)
{
    struct record_row *row = memory_new(sizeof(*row));
    int64_t now_ms = loop_now_ms(r->loop);
    row->record = *record;
    row->time_ms = time_ms < now_ms ? time_ms : now_ms;
    HASH_ADD(hh, r->by_key, record.key, POST_DIGEST_SIZE, row);
    DL_APPEND(r->oldest, row);
    record_count(r, record->name, 1);
}

/* --- Marks -------------------------------------------------------------------------- */

static void
record_write_mark(const struct post_record *record, char mark[POST_MARK_MAX])
{
    char key[2 * POST_DIGEST_SIZE + 1], body[2 * POST_DIGEST_SIZE + 1];
    text_hex(record->key, POST_DIGEST_SIZE, key);
    text_hex(record->body, POST_DIGEST_SIZE, body);
    snprintf(mark, POST_MARK_MAX, "%s/%s/%s", record->name, key, body);
}

static bool
record_read_mark(struct text mark, struct post_record *record)
{
    struct text name, key;
    return text_cut(&mark, '/', &name) && post_key_is_name(name) &&
           text_copy(record->name, sizeof(record->name), name) &&
           text_cut(&mark, '/', &key) &&
           text_unhex(key, record->key, POST_DIGEST_SIZE) &&
           text_unhex(mark, record->body, POST_DIGEST_SIZE);
}

/* --- The file ----------------------------------------------------------------------- */

static void
record_complain(struct post_records *r, int error)
{
    if (!r->failed)
        log_say(r->log, LOG_LEVEL_WARNING, "http", NULL,
                "cannot keep idempotency keys in %s: %s", r->path, strerror(-error));
    r->failed = true;
}

static bool
record_add_line(const struct record_row *row, struct buffer *out)
{
    char mark[POST_MARK_MAX];
    record_write_mark(&row->record, mark);
    return buffer_format(out, "%" PRId64 " %s %s\n", row->time_ms,
                         ID_TEXT(row->record.id), mark);
}

/* All of it anew, under another name until it is whole. */
static void
record_rewrite(struct post_records *r)
{
    char draft[PATH_MAX_BYTES + 8];
    struct buffer lines;
    const struct record_row *row;
    record_forget_old(r);
    snprintf(draft, sizeof(draft), "%s.new", r->path);
    buffer_init(&lines, FILE_MAX);
    bool fits = buffer_add(&lines, TEXT(TITLE));
    DL_FOREACH (r->oldest, row)
        fits = fits && (row->record.pending || record_add_line(row, &lines));
    (void)disk_unlink(r->disk, draft);
    int file = disk_create(r->disk, draft, 0600);
    int result = file < 0 ? file : disk_write(r->disk, file, buffer_text(&lines));
    if (result >= 0)
        result = disk_sync(r->disk, file);
    if (result >= 0)
        result = disk_rename(r->disk, draft, r->path);
    r->bytes = r->made = lines.length;
    buffer_free(&lines);
    int unused = result < 0 ? file : r->file;
    if (unused >= 0)
        disk_close_file(r->disk, unused);
    if (result < 0) {
        record_complain(r, result);
        return;
    }
    r->file = file;
    r->failed = false;
}

static void record_sync(struct post_records *r);

static void
record_synced(void *context, int result)
{
    struct post_records *r = context;
    r->syncing = false;
    if (result < 0)
        record_complain(r, result);
    if (r->dirty)
        record_sync(r);
}

/* One at a time; lines that come meanwhile are of the next. A sync that is under way keeps
 * its file, so the file is made anew between two of them. One that failed is: its content
 * is unknown. The sync that follows makes the new name durable. */
static void
record_sync(struct post_records *r)
{
    r->dirty = true;
    if (r->syncing)
        return;
    if (r->file < 0 || r->failed || r->bytes > 2 * r->made + SPARE_BYTES)
        record_rewrite(r);
    if (r->file < 0)
        return;
    r->dirty = false;
    r->syncing = true;
    r->sync = (struct disk_sync){.done = record_synced, .context = r};
    int result = disk_sync_begin(r->disk, r->file, false, &r->sync);
    if (result != DISK_SYNCING)
        record_synced(r, result);
}

static void
record_append(struct post_records *r, const struct record_row *row)
{
    struct buffer line;
    buffer_init(&line, LINE_MAX_BYTES);
    bool fits = record_add_line(row, &line);
    assert(fits);
    int result = r->file >= 0 ? disk_write(r->disk, r->file, buffer_text(&line)) : 0;
    r->bytes += line.length;
    buffer_free(&line);
    if (result < 0)
        record_complain(r, result);
    record_sync(r);
}

/* A line that is torn or foreign is passed over. */
static void
record_read_line(struct post_records *r, struct text line)
{
    struct post_record record = {.pending = false};
    struct text time, id;
    uint64_t time_ms;
    if (text_cut(&line, ' ', &time) && text_number(time, INT64_MAX, &time_ms) &&
        text_cut(&line, ' ', &id) && id_parse(id, &record.id) &&
        record_read_mark(line, &record) && record_find(r, record.key) == NULL)
        record_enter(r, &record, (int64_t)time_ms);
}

static void
record_read_file(struct post_records *r)
{
    int64_t got = 0, offset = 0;
    char piece[LINE_MAX_BYTES * 16];
    struct buffer rest;
    int file = disk_open_file(r->disk, r->path, false);
    if (file < 0)
        return;
    buffer_init(&rest, 2 * sizeof(piece));
    while ((got = disk_read(r->disk, file, offset, piece, sizeof(piece))) > 0 &&
           buffer_add(&rest, text_of(piece, (size_t)got))) {
        size_t end;
        offset += got;
        while ((end = text_find(buffer_text(&rest), '\n')) != TEXT_NONE) {
            record_read_line(r, text_before(buffer_text(&rest), end));
            buffer_take(&rest, end + 1);
        }
        if (rest.length > LINE_MAX_BYTES)
            buffer_clear(&rest);
    }
    buffer_free(&rest);
    disk_close_file(r->disk, file);
}

/* From the journal: the file may not have it yet. */
static void
record_recall(void *context, const char *mark, struct id id)
{
    struct post_records *r = context;
    struct post_record record = {.id = id};
    if (record_read_mark(text_from(mark), &record) &&
        record_find(r, record.key) == NULL)
        record_enter(r, &record, (int64_t)id.time_ms);
}

/* --- public ------------------------------------------------------------------------- */

struct post_records *
post_records_new(struct loop *loop, struct log *log, struct queue *queue,
                 const char *path)
{
    struct post_records *r = memory_new(sizeof(*r));
    r->loop = loop;
    r->log = log;
    r->disk = queue_disk(queue);
    r->file = -1;
    (void)!text_copy(r->path, sizeof(r->path), text_from(path));
    record_read_file(r);
    queue_each_posted(queue, POST_RECORDS_MAX, record_recall, r);
    record_forget_old(r);
    if (r->oldest != NULL)
        record_rewrite(r);
    return r;
}

void
post_records_free(struct post_records **records)
{
    struct post_records *r = *records;
    struct record_row *row, *next;
    if (r == NULL)
        return;
    *records = NULL;
    if (r->syncing)
        disk_sync_wait(r->disk);
    DL_FOREACH_SAFE (r->oldest, row, next)
        record_remove(r, row);
    if (r->file >= 0)
        disk_close_file(r->disk, r->file);
    free(r);
}

void
post_records_digest(const char *name, struct text idempotency_key,
                    unsigned char key[POST_DIGEST_SIZE])
{
    unsigned char whole[DIGEST_SIZE];
    struct digest digest;
    digest_begin(&digest);
    digest_add(&digest, text_of(name, strlen(name) + 1));
    digest_add(&digest, idempotency_key);
    digest_end(&digest, whole);
    memcpy(key, whole, POST_DIGEST_SIZE);
}

const struct post_record *
post_records_find(struct post_records *r, const unsigned char key[POST_DIGEST_SIZE])
{
    record_forget_old(r);
    const struct record_row *row = record_find(r, key);
    return row != NULL ? &row->record : NULL;
}

bool
post_records_have_room(struct post_records *r, const char *name)
{
    const struct record_owner *o = NULL;
    record_forget_old(r);
    HASH_FIND_STR(r->owners, name, o);
    return HASH_COUNT(r->by_key) < POST_RECORDS_MAX &&
           (o == NULL || o->count < POST_RECORDS_OF_KEY);
}

void
post_records_add(struct post_records *r, const char *name,
                 const unsigned char key[POST_DIGEST_SIZE],
                 const unsigned char body[POST_DIGEST_SIZE], char mark[POST_MARK_MAX])
{
    struct post_record record = {.pending = true};
    assert(record_find(r, key) == NULL);
    memcpy(record.key, key, POST_DIGEST_SIZE);
    memcpy(record.body, body, POST_DIGEST_SIZE);
    (void)!text_copy(record.name, sizeof(record.name), text_from(name));
    record_enter(r, &record, loop_now_ms(r->loop));
    record_write_mark(&record, mark);
}

void
post_records_keep(struct post_records *r, const unsigned char key[POST_DIGEST_SIZE],
                  struct id id)
{
    struct record_row *row = record_find(r, key);
    assert(row != NULL && row->record.pending);
    row->record.pending = false;
    row->record.id = id;
    record_append(r, row);
}

void
post_records_drop(struct post_records *r, const unsigned char key[POST_DIGEST_SIZE])
{
    struct record_row *row = record_find(r, key);
    assert(row != NULL && row->record.pending);
    record_remove(r, row);
}
