/* Reads, appends to and writes anew the file of suppressed addresses. */
#include "queue/suppression/suppression_file.h"

#include "base/memory.h"
#include "queue/suppression/suppression_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TITLE "petrel suppressed 1\n"

enum { PIECE = 64 * 1024, PENDING_MAX = 64 << 20 };

static void
file_path(const struct suppression_file *f, const char *suffix,
          char out[SUPPRESSION_PATH_MAX + 8])
{
    snprintf(out, SUPPRESSION_PATH_MAX + 8, "%s%s", f->path, suffix);
}

/* In which the file is. */
static void
file_directory(const struct suppression_file *f, char out[SUPPRESSION_PATH_MAX])
{
    struct text path = text_from(f->path);
    (void)!text_copy(out, SUPPRESSION_PATH_MAX,
                     text_before(path, text_find_last(path, '/')));
}

/* --- Failures ---------------------------------------------------------------------- */

/* A handle stays open as long as it is synced. */
static void
file_drop_fresh(struct suppression_file *f)
{
    char path[SUPPRESSION_PATH_MAX + 8];
    f->drops = f->syncs && f->syncing == f->fresh;
    f->is_whole = false;
    if (f->fresh < 0 || f->drops)
        return;
    file_path(f, ".new", path);
    disk_close_file(f->disk, f->fresh);
    (void)disk_unlink(f->disk, path); /* it takes space where there is none */
    f->fresh = -1;
    f->list->pinned = false;
}

/* A line that was written in part would spoil the next one: only a file that is written
 * anew has all again. */
static void
file_fail(struct suppression_file *f, int error)
{
    file_drop_fresh(f);
    f->is_stale = true;
    if (error != f->error)
        log_say(f->log, LOG_LEVEL_ERROR, "queue", NULL,
                "%s: cannot be written: %s; after a restart addresses that were "
                "suppressed since may be tried again",
                f->path, strerror(-error));
    f->error = error;
    loop_timer_start(f->loop, &f->again, SUPPRESSION_AGAIN_MS, NULL, NULL);
}

static void
file_recovered(struct suppression_file *f)
{
    f->is_stale = false;
    if (f->error != 0)
        log_say(f->log, LOG_LEVEL_INFO, "queue", NULL, "%s: written again", f->path);
    f->error = 0;
}

/* --- Syncs ------------------------------------------------------------------------- */

static void file_on_synced(void *context, int result);

static void
file_sync(struct suppression_file *f, int handle)
{
    f->syncs = true;
    f->syncing = handle;
    f->sync = (struct disk_sync){.done = file_on_synced, .context = f};
    int result = disk_sync_begin(f->disk, handle, false, &f->sync);
    if (result != DISK_SYNCING)
        file_on_synced(f, result);
}

static void
file_on_sync_due(void *context)
{
    struct suppression_file *f = context;
    if (f->file < 0 || f->is_stale || f->is_synced)
        return;
    if (f->syncs) {
        loop_timer_start(f->loop, &f->timer, SUPPRESSION_SYNC_MS, file_on_sync_due, f);
        return;
    }
    if (!f->is_named) {
        char path[SUPPRESSION_PATH_MAX];
        file_directory(f, path);
        f->directory = disk_open_directory(f->disk, path);
    }
    if (f->directory < 0 && !f->is_named) {
        file_fail(f, f->directory);
        return;
    }
    f->is_synced = f->is_named; /* until the next line */
    file_sync(f, f->is_named ? f->file : f->directory);
}

static int
file_put_aside(struct suppression_file *f)
{
    char aside[SUPPRESSION_PATH_MAX + 8];
    file_path(f, ".bad", aside);
    int result = disk_rename(f->disk, f->path, aside);
    f->is_foreign = result < 0 && result != -ENOENT;
    return f->is_foreign ? result : 0;
}

/* fresh is durable, and takes the name. */
static int
file_replace(struct suppression_file *f)
{
    char path[SUPPRESSION_PATH_MAX + 8];
    file_path(f, ".new", path);
    int result = f->is_foreign ? file_put_aside(f) : 0;
    if (result == 0)
        result = disk_rename(f->disk, path, f->path);
    if (result < 0)
        return result;
    if (f->file >= 0)
        disk_close_file(f->disk, f->file);
    f->file = f->fresh;
    f->lines = f->fresh_lines;
    f->fresh = -1;
    f->is_named = f->is_synced = f->is_whole = f->list->pinned = false;
    loop_timer_start(f->loop, &f->timer, SUPPRESSION_SYNC_MS, file_on_sync_due, f);
    file_recovered(f);
    return 0;
}

static void
file_on_synced(void *context, int result)
{
    struct suppression_file *f = context;
    int handle = f->syncing;
    f->syncs = false;
    if (f->drops)
        file_drop_fresh(f);
    else if (result == 0 && handle == f->fresh)
        result = file_replace(f);
    if (handle == f->directory) {
        disk_close_file(f->disk, f->directory);
        f->directory = -1;
        f->is_named = result == 0;
        loop_timer_start(f->loop, &f->timer, 0, file_on_sync_due, f);
    }
    if (result < 0)
        file_fail(f, result);
}

/* --- The file that is written anew ------------------------------------------------- */

static int
file_create(struct suppression_file *f, const char *path, int *file)
{
    *file = disk_create(f->disk, path, 0600);
    if (*file == -EEXIST && disk_unlink(f->disk, path) == 0)
        *file = disk_create(f->disk, path, 0600);
    return *file < 0 ? *file : disk_write(f->disk, *file, TEXT(TITLE));
}

static int
file_begin_fresh(struct suppression_file *f)
{
    char path[SUPPRESSION_PATH_MAX + 8];
    file_path(f, ".new", path);
    f->at = f->fresh_lines = 0;
    f->is_whole = false;
    f->list->pinned = true;
    return file_create(f, path, &f->fresh);
}

/* Some lines of it. */
static int
file_go_on(struct suppression_file *f)
{
    struct suppression_entry entry;
    struct buffer lines;
    buffer_init(&lines, SUPPRESSION_LINES_A_TURN * SUPPRESSION_LINE_MAX);
    for (int i = 0; i < SUPPRESSION_LINES_A_TURN && !f->is_whole; i++) {
        f->is_whole = !suppression_list_next(f->list, &f->at, &entry);
        if (!f->is_whole)
            f->fresh_lines += suppression_record_write(&entry, &lines);
    }
    int result = disk_write(f->disk, f->fresh, buffer_text(&lines));
    buffer_free(&lines);
    return result;
}

static bool
file_is_long(const struct suppression_file *f)
{
    return f->lines > 2 * f->list->count + SUPPRESSION_LINES_LEAST;
}

static void
file_renew(struct suppression_file *f)
{
    int result = 0;
    if (f->syncs || f->drops || heap_has(&f->again.node) ||
        (f->fresh < 0 && !f->is_stale && !file_is_long(f)))
        return;
    if (f->fresh < 0)
        result = file_begin_fresh(f);
    if (result == 0)
        result = file_go_on(f);
    if (result < 0)
        file_fail(f, result);
    else if (f->is_whole)
        file_sync(f, f->fresh);
    else
        loop_wake(f->loop, &f->wake);
}

/* The whole, and waits for it: before the first turn, and after the last. */
static void
file_renew_now(struct suppression_file *f)
{
    int result = file_begin_fresh(f);
    while (result == 0 && !f->is_whole)
        result = file_go_on(f);
    if (result == 0)
        result = disk_sync(f->disk, f->fresh);
    if (result == 0)
        result = file_replace(f);
    if (result < 0)
        file_fail(f, result);
}

/* --- Lines ------------------------------------------------------------------------- */

void
suppression_file_note(struct suppression_file *f, const struct suppression_entry *entry)
{
    if (suppression_record_write(entry, &f->pending))
        f->pending_lines++;
    else
        f->is_stale = true; /* more in a turn than anybody has */
    loop_wake(f->loop, &f->wake);
}

static int
file_append(struct suppression_file *f)
{
    int result = 0;
    if (f->file < 0 && !f->is_stale) {
        result = file_create(f, f->path, &f->file);
        f->is_named = false;
    }
    if (result == 0 && !f->is_stale) {
        result = disk_write(f->disk, f->file, buffer_text(&f->pending));
        f->lines += f->pending_lines;
    }
    if (result == 0 && f->fresh >= 0 && !f->drops) {
        result = disk_write(f->disk, f->fresh, buffer_text(&f->pending));
        f->fresh_lines += f->pending_lines;
    }
    if (f->is_synced || !heap_has(&f->timer.node))
        loop_timer_start(f->loop, &f->timer, SUPPRESSION_SYNC_MS, file_on_sync_due, f);
    f->is_synced = false;
    buffer_clear(&f->pending);
    f->pending_lines = 0;
    return result;
}

void
suppression_file_turn(struct suppression_file *f)
{
    int result = f->pending.length > 0 ? file_append(f) : 0;
    if (result < 0)
        file_fail(f, result);
    file_renew(f);
}

/* --- Reading ----------------------------------------------------------------------- */

struct file_reading {
    struct suppression_file *file;
    size_t bad;
    bool begun, skips; /* the title was read; the rest of a long line */
};

/* False: the first line is not the title. */
static bool
reading_line(struct file_reading *r, struct text line)
{
    struct suppression_record record;
    if (!r->begun) {
        r->begun = true;
        return text_equal(line, text_before(TEXT(TITLE), sizeof(TITLE) - 2));
    }
    r->file->lines++;
    if (r->skips || !suppression_record_read(line, &record) ||
        !suppression_list_put(r->file->list, &record.entry))
        r->bad++;
    r->skips = false;
    return true;
}

/* 0, or -EILSEQ: it is not such a file, or -errno. A part of a line is left at the end if
 * *torn. */
static int
reading_all(struct file_reading *r, bool *torn)
{
    struct suppression_file *f = r->file;
    char *room = memory_new(PIECE);
    size_t kept = 0;
    int64_t offset = 0, got = 0;
    int result = 0;
    while (result == 0 &&
           (got = disk_read(f->disk, f->file, offset, room + kept, PIECE - kept)) > 0) {
        struct text rest = text_of(room, kept + (size_t)got), line;
        offset += got;
        while (result == 0 && text_find(rest, '\n') != TEXT_NONE)
            if (text_cut(&rest, '\n', &line) && !reading_line(r, line))
                result = -EILSEQ;
        r->skips = r->skips || rest.length == PIECE;
        kept = rest.length == PIECE ? 0 : rest.length;
        if (kept > 0)
            memmove(room, rest.at, kept);
    }
    *torn = kept > 0 || r->skips;
    free(room);
    return result == 0 && got < 0     ? (int)got
           : result == 0 && !r->begun ? -EILSEQ
                                      : result;
}

static void
file_complain(struct suppression_file *f, const struct file_reading *r, bool torn,
              int result)
{
    f->is_stale = true;
    if (result < 0) {
        f->is_foreign = true;
        log_say(f->log, LOG_LEVEL_ERROR, "queue", NULL,
                "%s: %s: it is %s.bad now, and the list goes on with the %zu addresses "
                "that could be read",
                f->path,
                result == -EILSEQ ? "damaged, or not written by Petrel"
                                  : strerror(-result),
                f->path, f->list->count);
    } else if (r->bad > 0) {
        log_say(f->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: passed over %zu damaged lines; their addresses may be tried again",
                f->path, r->bad);
    } else if (torn) {
        log_say(f->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: cut off its last line, which was not whole", f->path);
    }
}

void
suppression_file_open(struct suppression_file *f)
{
    struct file_reading r = {.file = f};
    bool torn = false;
    f->fresh = f->directory = -1;
    f->is_named = f->is_synced = true;
    buffer_init(&f->pending, PENDING_MAX);
    f->file = disk_open_file(f->disk, f->path, true);
    if (f->file == -ENOENT)
        return;
    int result = f->file < 0 ? f->file : reading_all(&r, &torn);
    if (result == 0 && !torn && r.bad == 0)
        return;
    file_complain(f, &r, torn, result);
    file_renew_now(f);
}

/* All that has been written is synced, and has its name. */
static void
file_settle(struct suppression_file *f)
{
    char path[SUPPRESSION_PATH_MAX];
    file_directory(f, path);
    if (f->file < 0 || f->is_stale || (f->is_named && f->is_synced))
        return;
    int result = disk_sync(f->disk, f->file);
    if (result == 0 && !f->is_named)
        result = disk_sync_directory(f->disk, path);
    if (result < 0)
        file_fail(f, result);
}

void
suppression_file_close(struct suppression_file *f)
{
    if (f->syncs)
        disk_sync_wait(f->disk);
    if (f->pending.length > 0 && file_append(f) < 0)
        f->is_stale = true;
    file_drop_fresh(f);
    if (f->is_stale)
        file_renew_now(f);
    file_settle(f);
    loop_timer_stop(f->loop, &f->timer);
    loop_timer_stop(f->loop, &f->again);
    loop_unpost(f->loop, &f->wake);
    if (f->file >= 0)
        disk_close_file(f->disk, f->file);
    buffer_free(&f->pending);
}
