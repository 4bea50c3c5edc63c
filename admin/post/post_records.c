/* Keeps records in a table, and in a file of lines that are appended. */
#include "admin/post/post_records.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "queue/queue.h"
#include "queue/spool/appended_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

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
    struct record_row *by_key, *oldest;
    struct record_owner *owners;
    struct appended_file file;
    const struct record_row *unwritten; /* to a file that is made anew: the first */
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
    if (r->unwritten == row)
        r->unwritten = row->next;
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

static bool
record_add_line(const struct record_row *row, struct buffer *out)
{
    char mark[POST_MARK_MAX];
    record_write_mark(&row->record, mark);
    return buffer_format(out, "%" PRId64 " %s %s\n", row->time_ms,
                         ID_TEXT(row->record.id), mark);
}

static void
record_note(struct post_records *r, const struct record_row *row)
{
    appended_file_note(&r->file, record_add_line(row, appended_file_lines(&r->file)));
}

static bool
record_write(void *context, bool begins, struct buffer *out)
{
    struct post_records *r = context;
    const struct record_row *row = begins ? r->oldest : r->unwritten;
    while (row != NULL && row->record.pending)
        row = row->next;
    r->unwritten = row != NULL ? row->next : NULL;
    return row != NULL && record_add_line(row, out);
}

static size_t
record_count_all(const void *context)
{
    const struct post_records *r = context;
    return HASH_COUNT(r->by_key);
}

/* One whose key is there is of the journal, or was made anew with the file. */
static bool
record_read(void *context, struct text line)
{
    struct post_records *r = context;
    struct post_record record = {.pending = false};
    struct text time, id;
    uint64_t time_ms;
    if (!text_cut(&line, ' ', &time) || !text_number(time, INT64_MAX, &time_ms) ||
        !text_cut(&line, ' ', &id) || !id_parse(id, &record.id) ||
        !record_read_mark(line, &record))
        return false;
    if (record_find(r, record.key) == NULL)
        record_enter(r, &record, (int64_t)time_ms);
    return true;
}

/* From the journal: the file may not have it yet. */
static void
record_recall(void *context, const char *mark, struct id id)
{
    struct post_records *r = context;
    struct post_record record = {.id = id};
    if (!record_read_mark(text_from(mark), &record) ||
        record_find(r, record.key) != NULL)
        return;
    record_enter(r, &record, (int64_t)id.time_ms);
    record_note(r, r->oldest->prev);
}

/* --- public ------------------------------------------------------------------------- */

struct post_records *
post_records_new(struct loop *loop, struct log *log, struct queue *queue,
                 const char *path)
{
    static const struct appended_kind kind = {
        .title = TEXT("petrel posted 1\n"),
        .program = "http",
        .loss = "messages that were posted since may be accepted once more",
        .read = record_read,
        .write = record_write,
        .count = record_count_all};
    struct post_records *r = memory_new(sizeof(*r));
    r->loop = loop;
    r->file = (struct appended_file){.disk = queue_disk(queue),
                                     .loop = loop,
                                     .log = log,
                                     .kind = &kind,
                                     .context = r};
    (void)!text_copy(r->file.path, sizeof(r->file.path), text_from(path));
    appended_file_open(&r->file);
    queue_each_posted(queue, POST_RECORDS_MAX, record_recall, r);
    record_forget_old(r);
    appended_file_write(&r->file);
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
    appended_file_close(&r->file);
    DL_FOREACH_SAFE (r->oldest, row, next)
        record_remove(r, row);
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
    record_forget_old(r);
    record_note(r, row);
    appended_file_write(&r->file);
}

void
post_records_drop(struct post_records *r, const unsigned char key[POST_DIGEST_SIZE])
{
    struct record_row *row = record_find(r, key);
    assert(row != NULL && row->record.pending);
    record_remove(r, row);
}
