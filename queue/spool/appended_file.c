/* Reads a file of lines, appends to it, and writes it anew. */
#include "queue/spool/appended_file.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 * 1024, PENDING_MAX = 64 << 20 };

static void
file_path(const struct appended_file *f, const char *suffix,
          char out[APPENDED_PATH_MAX + 8])
{
    snprintf(out, APPENDED_PATH_MAX + 8, "%s%s", f->path, suffix);
}

/* In which the file is. */
static void
file_directory(const struct appended_file *f, char out[APPENDED_PATH_MAX])
{
    struct text path = text_from(f->path);
    (void)!text_copy(out, APPENDED_PATH_MAX,
                     text_before(path, text_find_last(path, '/')));
}

static void
file_hold(struct appended_file *f, bool held)
{
    if (f->kind->hold != NULL)
        f->kind->hold(f->context, held);
}

/* --- Failures ---------------------------------------------------------------------- */

/* A handle stays open as long as it is synced. */
static void
file_drop_fresh(struct appended_file *f)
{
    char path[APPENDED_PATH_MAX + 8];
    f->drops = f->syncs && f->syncing == f->fresh;
    f->is_whole = false;
    if (f->fresh < 0 || f->drops)
        return;
    file_path(f, ".new", path);
    disk_close_file(f->disk, f->fresh);
    (void)disk_unlink(f->disk, path); /* it takes space where there is none */
    f->fresh = -1;
    file_hold(f, false);
}

/* A line that was written in part would spoil the next one: only a file that is written
 * anew has all again. */
static void
file_fail(struct appended_file *f, int error)
{
    file_drop_fresh(f);
    f->is_stale = true;
    if (error != f->error)
        log_say(f->log, LOG_LEVEL_ERROR, f->kind->program, NULL,
                "%s: cannot be written: %s; after a restart %s", f->path,
                strerror(-error), f->kind->loss);
    f->error = error;
    loop_timer_start(f->loop, &f->again, APPENDED_AGAIN_MS, NULL, NULL);
}

static void
file_recovered(struct appended_file *f)
{
    f->is_stale = false;
    if (f->error != 0)
        log_say(f->log, LOG_LEVEL_INFO, f->kind->program, NULL, "%s: written again",
                f->path);
    f->error = 0;
}

/* --- Syncs ------------------------------------------------------------------------- */

static void file_on_synced(void *context, int result);

static void
file_sync(struct appended_file *f, int handle)
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
    struct appended_file *f = context;
    if (f->syncs || f->file < 0 || f->is_stale || f->is_synced)
        return; /* the end of a sync comes here, too */
    if (!f->is_named) {
        char path[APPENDED_PATH_MAX];
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
file_put_aside(struct appended_file *f)
{
    char aside[APPENDED_PATH_MAX + 8];
    file_path(f, ".bad", aside);
    int result = disk_rename(f->disk, f->path, aside);
    f->is_foreign = result < 0 && result != -ENOENT;
    return f->is_foreign ? result : 0;
}

/* fresh is durable, and takes the name. */
static int
file_replace(struct appended_file *f)
{
    char path[APPENDED_PATH_MAX + 8];
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
    f->is_named = f->is_synced = f->is_whole = false;
    file_hold(f, false);
    loop_timer_start(f->loop, &f->timer, f->kind->sync_ms, file_on_sync_due, f);
    file_recovered(f);
    return 0;
}

static void
file_on_synced(void *context, int result)
{
    struct appended_file *f = context;
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
    } else if (!f->is_synced) {
        loop_timer_start(f->loop, &f->timer, f->kind->sync_ms, file_on_sync_due, f);
    }
    if (result < 0)
        file_fail(f, result);
}

/* --- The file that is written anew ------------------------------------------------- */

static int
file_create(struct appended_file *f, const char *path, int *file)
{
    *file = disk_create(f->disk, path, 0600);
    if (*file == -EEXIST && disk_unlink(f->disk, path) == 0)
        *file = disk_create(f->disk, path, 0600);
    return *file < 0 ? *file : disk_write(f->disk, *file, f->kind->title);
}

static int
file_begin_fresh(struct appended_file *f)
{
    char path[APPENDED_PATH_MAX + 8];
    file_path(f, ".new", path);
    f->fresh_lines = 0;
    f->begins = true;
    f->is_whole = false;
    file_hold(f, true);
    return file_create(f, path, &f->fresh);
}

/* Some lines of it. */
static int
file_go_on(struct appended_file *f)
{
    struct buffer lines;
    buffer_init(&lines, APPENDED_LINES_A_TURN * APPENDED_LINE_MAX);
    for (int i = 0; i < APPENDED_LINES_A_TURN && !f->is_whole; i++) {
        f->is_whole = !f->kind->write(f->context, f->begins, &lines);
        f->fresh_lines += !f->is_whole;
        f->begins = false;
    }
    int result = disk_write(f->disk, f->fresh, buffer_text(&lines));
    buffer_free(&lines);
    return result;
}

static bool
file_is_long(const struct appended_file *f)
{
    return f->lines > 2 * f->kind->count(f->context) + APPENDED_LINES_LEAST;
}

static void
file_renew(struct appended_file *f)
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
file_renew_now(struct appended_file *f)
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

struct buffer *
appended_file_lines(struct appended_file *f)
{
    return &f->pending;
}

void
appended_file_note(struct appended_file *f, bool fits)
{
    f->pending_lines += fits;
    f->is_stale = f->is_stale || !fits; /* more in a turn than anybody has */
    loop_wake(f->loop, &f->wake);
}

static int
file_append(struct appended_file *f)
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
        loop_timer_start(f->loop, &f->timer, f->kind->sync_ms, file_on_sync_due, f);
    f->is_synced = false;
    buffer_clear(&f->pending);
    f->pending_lines = 0;
    return result;
}

void
appended_file_write(struct appended_file *f)
{
    int result = f->pending.length > 0 ? file_append(f) : 0;
    if (result < 0)
        file_fail(f, result);
    file_renew(f);
}

static void
file_turn(void *context)
{
    appended_file_write(context);
}

/* --- Reading ----------------------------------------------------------------------- */

/* False: the first line is not the title. */
static bool
reading_line(struct appended_reading *r, struct text line)
{
    const struct text title = r->kind->title;
    if (!r->begun) {
        r->begun = true;
        return text_equal(line, text_before(title, title.length - 1));
    }
    r->lines++;
    r->bad += r->skips || !r->kind->read(r->context, line);
    r->skips = false;
    return true;
}

/* 1: there is more, perhaps; 0: no whole line; or -errno. */
static int
reading_piece(struct appended_reading *r)
{
    char *room = memory_new(PIECE);
    int64_t got = disk_read(r->disk, r->file, r->offset, room, PIECE);
    struct text rest = text_of(room, got > 0 ? (size_t)got : 0), line;
    int result = got < 0 ? (int)got : got == PIECE;
    while (result >= 0 && text_find(rest, '\n') != TEXT_NONE)
        if (text_cut(&rest, '\n', &line) && !reading_line(r, line))
            result = -EILSEQ;
    if (rest.length == PIECE) {
        r->skips = true;
        rest.length = 0;
    }
    r->offset += got > 0 ? got - (int64_t)rest.length : 0;
    r->is_torn = rest.length > 0 || r->skips;
    free(room);
    return result;
}

/* 0, or -EILSEQ: it is not such a file, or -errno. */
static int
reading_all(struct appended_reading *r)
{
    int result;
    while ((result = reading_piece(r)) > 0)
        ;
    return result == 0 && !r->begun ? -EILSEQ : result;
}

static void
file_complain(struct appended_file *f, const struct appended_reading *r, int result)
{
    f->is_stale = true;
    if (result < 0) {
        f->is_foreign = true;
        log_say(f->log, LOG_LEVEL_ERROR, f->kind->program, NULL,
                "%s: %s: it is %s.bad now, and goes on with the %zu entries that could "
                "be read",
                f->path,
                result == -EILSEQ ? "damaged, or not written by Petrel"
                                  : strerror(-result),
                f->path, f->kind->count(f->context));
    } else if (r->bad > 0) {
        log_say(f->log, LOG_LEVEL_WARNING, f->kind->program, NULL,
                "%s: passed over %zu damaged lines", f->path, r->bad);
    } else if (r->is_torn) {
        log_say(f->log, LOG_LEVEL_WARNING, f->kind->program, NULL,
                "%s: cut off its last line, which was not whole", f->path);
    }
}

void
appended_file_open(struct appended_file *f)
{
    f->fresh = f->directory = -1;
    f->is_named = f->is_synced = true;
    buffer_init(&f->pending, PENDING_MAX);
    /* Behind what is judged in a turn, and before replies leave. */
    loop_at_end(f->loop, LOOP_ANSWER_HISTORY, file_turn, f);
    f->file = disk_open_file(f->disk, f->path, true);
    if (f->file == -ENOENT)
        return;
    struct appended_reading r = {
        .disk = f->disk, .file = f->file, .kind = f->kind, .context = f->context};
    int result = f->file < 0 ? f->file : reading_all(&r);
    f->lines = r.lines;
    if (result == 0 && !r.is_torn && r.bad == 0)
        return;
    file_complain(f, &r, result);
    file_renew_now(f);
}

/* All that has been written is synced, and has its name. */
static void
file_sync_now(struct appended_file *f)
{
    char path[APPENDED_PATH_MAX];
    file_directory(f, path);
    if (f->file < 0 || f->is_stale || (f->is_named && f->is_synced))
        return;
    int result = disk_sync(f->disk, f->file);
    if (result == 0 && !f->is_named)
        result = disk_sync_directory(f->disk, path);
    if (result < 0)
        file_fail(f, result);
    else
        f->is_named = f->is_synced = true;
}

bool
appended_file_settle(struct appended_file *f)
{
    if (f->syncs)
        disk_sync_wait(f->disk);
    if (f->pending.length > 0 && file_append(f) < 0)
        f->is_stale = true;
    file_drop_fresh(f);
    if (f->is_stale)
        file_renew_now(f);
    file_sync_now(f);
    return !f->is_stale;
}

void
appended_file_close(struct appended_file *f)
{
    loop_at_end_remove(f->loop, LOOP_ANSWER_HISTORY, file_turn, f);
    (void)appended_file_settle(f);
    loop_timer_stop(f->loop, &f->timer);
    loop_timer_stop(f->loop, &f->again);
    loop_unpost(f->loop, &f->wake);
    if (f->file >= 0)
        disk_close_file(f->disk, f->file);
    buffer_free(&f->pending);
}

/* --- The file of another process ----------------------------------------------------- */

void
appended_follow_end(struct appended_follow *f)
{
    if (f->is_open)
        disk_close_file(f->disk, f->reading.file);
    f->is_open = false;
}

static int
follow_open(struct appended_follow *f)
{
    struct disk_info info;
    appended_follow_end(f);
    int file = disk_open_file(f->disk, f->path, false);
    int result = file < 0 ? file : disk_file_info(f->disk, file, &info);
    if (file >= 0 && result < 0)
        disk_close_file(f->disk, file);
    if (result < 0)
        return result;
    f->reading = (struct appended_reading){
        .disk = f->disk, .file = file, .kind = f->kind, .context = f->context};
    f->inode = info.inode;
    f->is_open = true;
    f->is_unread = false;
    return 0;
}

int
appended_follow_read(struct appended_follow *f)
{
    struct disk_info info;
    int result = disk_inspect(f->disk, f->path, &info);
    if (result < 0)
        return result;
    if (!f->is_open || info.inode != f->inode || info.size < f->reading.offset)
        result = follow_open(f);
    else if (f->is_unread || info.size == f->reading.offset)
        return 0;
    if (result == 0)
        result = reading_piece(&f->reading);
    f->is_unread = result == -EILSEQ;
    if (result < 0 && !f->is_unread)
        appended_follow_end(f); /* it is read from the first line on */
    return result;
}
