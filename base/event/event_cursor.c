/* Up to where a program has the events: batches, `done`, removal of files. */
#include "base/event/event_spool_internal.h"

#include "base/crc.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DONE_TITLE "petrel events 1\n"
enum {
    DONE_MAX = 128,
    DONE_SUM_DIGITS = 8,
    DONE_OWED_MS = 100,   /* for a next batch: one sync for both */
    READ_AGAIN_MS = 2000, /* a file that could not be read */
    READ_TRIES = 5
};

static void
done_path(const struct event_spool *s, bool is_new, char out[EVENT_PATH_MAX])
{
    snprintf(out, EVENT_PATH_MAX, "%s/done%s", s->directory, is_new ? ".new" : "");
}

static struct event_file *
cursor_file(const struct event_spool *s)
{
    for (size_t i = 0; i < s->file_count; i++)
        if (s->files[i].number == s->cursor.number)
            return &s->files[i];
    return NULL;
}

static bool
cursor_is_last(const struct event_spool *s, const struct event_file *f)
{
    return f == &s->files[s->file_count - 1];
}

/* --- `done` ----------------------------------------------------------------------- */

/* A write in place that a crash has cut is the beginning of the new line and the end of
 * the old one: its numbers would pass over events. */
static uint32_t
done_sum(uint32_t number, int64_t offset, int64_t end)
{
    char text[DONE_MAX];
    int length = snprintf(text, sizeof(text), "%" PRIu32 " %" PRId64 " %" PRId64,
                          number, offset, end);
    return crc_add(0, text, (size_t)length);
}

/* Earlier versions wrote no sum. */
static bool
read_done(struct text content, struct event_cursor *c)
{
    struct text line, number, offset, end, sum;
    uint64_t values[3];
    char want[DONE_SUM_DIGITS + 1];
    if (!text_starts(content, TEXT(DONE_TITLE)) ||
        content.at[content.length - 1] != '\n')
        return false;
    content = text_after(content, sizeof(DONE_TITLE) - 1);
    if (!text_cut(&content, '\n', &line) || content.length > 0 ||
        !text_cut(&line, ' ', &number) || !text_cut(&line, ' ', &offset) ||
        !text_cut(&line, ' ', &end))
        return false;
    bool summed = text_cut(&line, ' ', &sum);
    if (!text_number(number, EVENT_NUMBER_MAX, &values[0]) ||
        !text_number(offset, INT64_MAX, &values[1]) ||
        !text_number(end, INT64_MAX, &values[2]) || values[2] < values[1])
        return false;
    snprintf(want, sizeof(want), "%08" PRIx32,
             done_sum((uint32_t)values[0], (int64_t)values[1], (int64_t)values[2]));
    if (summed && !text_equal(sum, text_from(want)))
        return false;
    c->number = (uint32_t)values[0];
    c->offset = (int64_t)values[1];
    c->end = (int64_t)values[2];
    c->is_fixed = c->end > c->offset;
    return true;
}

/* Without it the oldest event is the next: better twice than never. */
static void
load_done(struct event_spool *s)
{
    char path[EVENT_PATH_MAX], content[DONE_MAX];
    done_path(s, false, path);
    int64_t got = disk_read_at(s->settings.disk, path, 0, content, sizeof(content));
    if (got == -ENOENT)
        return;
    if (got < 0 || !read_done(text_of(content, (size_t)got), &s->cursor))
        log_say(event_hub_log(s->settings.hub), LOG_LEVEL_WARNING, "events", NULL,
                "%s cannot be read (%s): events that were taken come again", path,
                got < 0 ? strerror((int)-got) : "it is damaged");
}

/* Files that the program has. Without them an older `done` points to the next one. */
static void
remove_taken(struct event_spool *s)
{
    char path[EVENT_PATH_MAX];
    size_t kept = 0;
    for (size_t i = 0; i < s->file_count; i++) {
        struct event_file f = s->files[i];
        event_spool_path(s, f.number, path);
        if (f.number >= s->cursor.number)
            s->files[kept++] = f;
        else /* one that remains is removed at the next startup */
            (void)disk_unlink(s->settings.disk, path);
    }
    s->file_count = kept;
}

static void
note_done(struct event_spool *s, const char *path, int result)
{
    struct event_cursor *c = &s->cursor;
    int64_t now = loop_monotonic_ms(s->settings.loop);
    if (result == 0)
        c->said_ms = 0;
    else if (c->said_ms == 0 || now - c->said_ms >= EVENT_SAY_MS) {
        c->said_ms = now;
        log_say(event_hub_log(s->settings.hub), LOG_LEVEL_WARNING, "events", NULL,
                "cannot write %s (%s): after a restart events come again", path,
                strerror(-result));
    }
}

static void
close_done(struct event_spool *s)
{
    if (s->cursor.file >= 0)
        disk_close_file(s->settings.disk, s->cursor.file);
    s->cursor.file = -1;
}

static void
done_over(struct event_spool *s, int result)
{
    char path[EVENT_PATH_MAX];
    done_path(s, false, path);
    s->cursor.writing = false;
    if (result != 0)
        close_done(s);
    /* Also after a failure: a full disk would never get space again. */
    remove_taken(s);
    note_done(s, path, result);
    event_spool_tell_more(s);
}

static void
name_written(void *context, int result)
{
    struct event_spool *s = context;
    disk_close_file(s->settings.disk, s->cursor.directory);
    done_over(s, result);
}

/* Else a power cut would bring back the `done` of an older process, and with it all events
 * since: what is written in place has no name then. */
static int
done_sync_name(struct event_spool *s)
{
    struct event_cursor *c = &s->cursor;
    c->directory = disk_open_directory(s->settings.disk, s->directory);
    if (c->directory < 0)
        return c->directory;
    c->sync = (struct disk_sync){.done = name_written, .context = s};
    int result = disk_sync_begin(s->settings.disk, c->directory, false, &c->sync);
    if (result != DISK_SYNCING)
        disk_close_file(s->settings.disk, c->directory);
    return result;
}

static void
done_written(void *context, int result)
{
    struct event_spool *s = context;
    char from[EVENT_PATH_MAX], to[EVENT_PATH_MAX];
    done_path(s, true, from);
    done_path(s, false, to);
    if (result == 0 && s->cursor.is_new)
        result = disk_rename(s->settings.disk, from, to);
    if (result == 0 && s->cursor.is_new)
        result = done_sync_name(s);
    if (result != DISK_SYNCING)
        done_over(s, result);
}

/* The first time a new file, which takes the name of the old one when it is durable; then
 * in place, in one sector and of one length: a new file costs four times as much. */
static void
write_done(struct event_spool *s)
{
    struct event_cursor *c = &s->cursor;
    char path[EVENT_PATH_MAX], content[DONE_MAX];
    assert(!c->writing);
    c->writing = true;
    c->owed = false;
    loop_timer_stop(s->settings.loop, &c->owing);
    c->is_fixed = c->end > c->offset;
    done_path(s, true, path);
    snprintf(content, sizeof(content),
             DONE_TITLE "%08" PRIu32 " %019" PRId64 " %019" PRId64 " %08" PRIx32 "\n",
             c->number, c->offset, c->end, done_sum(c->number, c->offset, c->end));
    c->is_new = c->file < 0;
    if (c->is_new) {
        (void)disk_unlink(s->settings.disk, path);
        c->file = disk_create(s->settings.disk, path, 0600);
    }
    int result = c->file < 0
                     ? c->file
                     : disk_write_at(s->settings.disk, c->file, 0, text_from(content));
    c->sync = (struct disk_sync){.done = done_written, .context = s};
    if (result == 0)
        result = disk_sync_begin(s->settings.disk, c->file, !c->is_new, &c->sync);
    if (result != DISK_SYNCING)
        done_written(s, result);
}

/* --- Where it stands -------------------------------------------------------------- */

static void
cursor_go_to(struct event_spool *s, const struct event_file *f)
{
    s->cursor.number = f->number;
    s->cursor.offset = s->cursor.end = 0;
    s->cursor.taken = 0;
    s->cursor.is_fixed = false;
}

void
event_cursor_settle(struct event_spool *s)
{
    struct event_cursor *c = &s->cursor;
    for (size_t i = 0; i < s->file_count; i++) {
        struct event_file *f = &s->files[i];
        if (f->number < c->number)
            continue;
        if (f->number > c->number)
            cursor_go_to(s, f);
        if (cursor_is_last(s, f) || c->offset < f->size)
            break;
    }
}

void
event_cursor_open(struct event_spool *s)
{
    struct event_cursor *c = &s->cursor;
    load_done(s);
    const struct event_file *f = cursor_file(s);
    if (f != NULL && (c->offset > f->size || c->end > f->size)) {
        c->end = f->size; /* it was cut off by a power cut */
        c->offset = c->offset < f->size ? c->offset : f->size;
        c->is_fixed = c->end > c->offset;
    }
    event_cursor_settle(s);
    remove_taken(s);
    if (s->file_count > 0)
        event_spool_tell_more(s);
}

void
event_cursor_close(struct event_spool *s)
{
    if (s->cursor.owed && !s->cursor.writing)
        write_done(s);
    while (s->cursor.writing) /* the file, then its name */
        disk_sync_wait(s->settings.disk);
    close_done(s);
    loop_timer_stop(s->settings.loop, &s->cursor.owing);
    loop_timer_stop(s->settings.loop, &s->cursor.again);
}

static uint64_t
pending_bytes(const struct event_spool *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->file_count; i++) {
        const struct event_file *f = &s->files[i];
        if (f->number == s->cursor.number)
            bytes += (uint64_t)(f->size - s->cursor.offset);
        else if (f->number > s->cursor.number)
            bytes += (uint64_t)f->size;
    }
    return bytes;
}

/* A file is about 1 MiB. Its events are counted where this process has not written
 * them. */
static uint64_t
count_left(const struct event_spool *s, const struct event_file *f)
{
    bool begun = f->number == s->cursor.number;
    uint64_t count = 0;
    char path[EVENT_PATH_MAX], piece[4096];
    int64_t at = begun ? s->cursor.offset : 0, got;
    if (f->events > 0)
        return f->events - (begun && s->cursor.taken < f->events ? s->cursor.taken : 0);
    event_spool_path(s, f->number, path);
    int file = disk_open_file(s->settings.disk, path, false);
    while (file >= 0 &&
           (got = disk_read(s->settings.disk, file, at, piece, sizeof(piece))) > 0) {
        for (int64_t i = 0; i < got; i++)
            count += piece[i] == '\n';
        at += got;
    }
    if (file >= 0)
        disk_close_file(s->settings.disk, file);
    return count;
}

/* `done` is written with the next batch. The last file stays. */
void
event_cursor_limit(struct event_spool *s)
{
    char path[EVENT_PATH_MAX];
    while (s->file_count > 1 && pending_bytes(s) > (uint64_t)s->settings.bytes_max) {
        struct event_file first = s->files[0];
        uint64_t left = first.number >= s->cursor.number ? count_left(s, &first) : 0;
        event_spool_path(s, first.number, path);
        (void)disk_unlink(s->settings.disk, path);
        s->file_count--;
        memmove(s->files, s->files + 1, s->file_count * sizeof(*s->files));
        if (first.number >= s->cursor.number) {
            cursor_go_to(s, &s->files[0]);
            s->cursor.dropped++;
        }
        if (left > 0)
            event_spool_lose(s, left,
                             "more events wait than events_max, and the oldest go");
    }
}

/* --- Batches ---------------------------------------------------------------------- */

enum event_offer
event_spool_offer(const struct event_spool *s, unsigned events)
{
    const struct event_cursor *c = &s->cursor;
    const struct event_file *f = cursor_file(s);
    if (c->writing || heap_has(&c->again.node))
        return EVENT_OFFER_BUSY;
    if (f == NULL || (cursor_is_last(s, f) && c->offset >= f->size))
        return EVENT_OFFER_NONE;
    bool whole = !cursor_is_last(s, f) || s->file < 0 || c->is_fixed ||
                 f->events >= c->taken + events ||
                 f->size - c->offset >= EVENT_BATCH_BYTES;
    return whole ? EVENT_OFFER_WHOLE : EVENT_OFFER_FEW;
}

/* The lines from the cursor on, as many as fit; -errno. */
static int64_t
read_lines(struct event_spool *s, const struct event_file *f, int64_t end,
           struct buffer *out)
{
    char path[EVENT_PATH_MAX];
    int64_t size = end - s->cursor.offset;
    if (size > EVENT_BATCH_BYTES)
        size = EVENT_BATCH_BYTES;
    buffer_clear(out);
    char *at = buffer_reserve(out, (size_t)size);
    assert(at != NULL); /* the caller's limit */
    event_spool_path(s, f->number, path);
    int64_t got =
        disk_read_at(s->settings.disk, path, s->cursor.offset, at, (size_t)size);
    if (got > 0)
        out->length = (size_t)got;
    return got;
}

/* The extent of at most that number of events. A rest without a line end is nothing, when
 * no more comes: a crash has cut it off. */
static size_t
extent_of(struct text lines, unsigned events)
{
    size_t length = 0;
    for (unsigned i = 0; i < events; i++) {
        size_t end = text_find(text_after(lines, length), '\n');
        if (end == TEXT_NONE)
            break;
        length += end + 1;
    }
    return length > 0 ? length : lines.length;
}

/* Leaves out lines that are no events, and notes the first. */
static void
sift(struct event_batch *batch)
{
    struct text rest = buffer_text(&batch->lines), line;
    size_t kept = 0;
    batch->count = 0;
    while (text_find(rest, '\n') != TEXT_NONE && text_cut(&rest, '\n', &line)) {
        char id[EVENT_ID_MAX];
        int64_t time_ms;
        if (!event_record_read(line, id, &time_ms))
            continue;
        if (batch->count++ == 0) {
            memcpy(batch->id, id, sizeof(id));
            batch->time_ms = time_ms;
        }
        memmove(batch->lines.at + kept, line.at, line.length + 1);
        kept += line.length + 1;
    }
    batch->lines.length = kept;
}

static void
event_cursor_pass(struct event_spool *s, unsigned events)
{
    struct event_cursor *c = &s->cursor;
    c->offset = c->end;
    c->taken += events;
    c->is_fixed = false;
    event_cursor_settle(s);
}

static void
read_again(void *context)
{
    struct event_spool *s = context;
    event_spool_tell_more(s);
}

/* A file that cannot be read is tried again, and then given up. */
static void
skip_file(struct event_spool *s, const struct event_file *f, int64_t error)
{
    if (++s->cursor.unread < READ_TRIES) {
        loop_timer_start(s->settings.loop, &s->cursor.again, READ_AGAIN_MS, read_again,
                         s);
        return;
    }
    s->cursor.unread = 0;
    log_say(event_hub_log(s->settings.hub), LOG_LEVEL_ERROR, "events", NULL,
            "cannot read %s/%08" PRIu32 " (%s): its events are lost", s->directory,
            f->number, error < 0 ? strerror((int)-error) : "it is too short");
    event_spool_lose(s, f->events > s->cursor.taken ? f->events - s->cursor.taken : 1,
                     "events cannot be read");
    s->cursor.end = f->size;
    event_cursor_pass(s, 0);
}

/* Fills batch->lines with the batch under way, or the next one. */
static bool
fill(struct event_spool *s, unsigned events, struct event_batch *batch)
{
    struct event_cursor *c = &s->cursor;
    const struct event_file *f = cursor_file(s);
    int64_t got = read_lines(s, f, c->is_fixed ? c->end : f->size, &batch->lines);
    if (got <= 0) {
        skip_file(s, f, got);
        return false;
    }
    c->unread = 0;
    size_t extent = c->is_fixed && c->end - c->offset <= got
                        ? (size_t)(c->end - c->offset)
                        : extent_of(buffer_text(&batch->lines), events);
    batch->lines.length = extent;
    c->end = c->offset + (int64_t)extent;
    sift(batch);
    if (batch->count == 0)
        event_cursor_pass(s, 0);
    return batch->count > 0;
}

bool
event_spool_batch(struct event_spool *s, unsigned events, struct event_batch *batch)
{
    struct event_cursor *c = &s->cursor;
    enum event_offer offer = event_spool_offer(s, events);
    if (offer == EVENT_OFFER_BUSY || offer == EVENT_OFFER_NONE)
        return false;
    if (!fill(s, events, batch)) {
        if (!heap_has(&c->again.node))
            event_spool_tell_more(s);
        return false;
    }
    c->batch_dropped = c->dropped;
    c->batch_limit = events;
    c->batch_count = batch->count;
    if (c->is_fixed)
        return true;
    write_done(s);
    return false;
}

static void
on_owed(void *context)
{
    struct event_spool *s = context;
    if (s->cursor.owed && !s->cursor.writing)
        write_done(s);
}

/* With the extent of the next batch, if that is known soon: one sync for both. */
void
event_spool_taken(struct event_spool *s)
{
    struct event_cursor *c = &s->cursor;
    struct event_batch next = {0};
    if (c->batch_dropped != c->dropped)
        return;
    event_cursor_pass(s, c->batch_count);
    c->end = c->offset;
    if (event_spool_offer(s, c->batch_limit) == EVENT_OFFER_WHOLE) {
        buffer_init(&next.lines, EVENT_BATCH_BYTES);
        (void)fill(s, c->batch_limit, &next);
        buffer_free(&next.lines);
        write_done(s);
        return;
    }
    c->owed = true;
    loop_timer_start(s->settings.loop, &c->owing, DONE_OWED_MS, on_owed, s);
}

struct event_spool_figures
event_spool_figures(const struct event_spool *s)
{
    return (struct event_spool_figures){.kept = s->kept,
                                        .lost = s->lost,
                                        .pending_bytes =
                                            pending_bytes(s) + s->open.length,
                                        .failing = s->ungated};
}
