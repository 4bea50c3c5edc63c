/* Appends the sets that end to their file, and reads it at startup. Every line is checked
 * by itself. */
#include "defrag/closed_file.h"

#include "queue/manager/manager.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CLOSED_FILE "fragments"
#define TITLE       "petrel fragments 1\n"

/* Half of the longest `notices`, 100 days: no set is remembered for longer. */
#define MEMORY_MAX_MS (INT64_C(50) * 24 * 60 * 60 * 1000)

static const char *const words[] = {[SET_REASSEMBLED] = "reassembled",
                                    [SET_TIMEOUT] = "timeout",
                                    [SET_CONFLICT] = "conflict",
                                    [SET_LIMIT] = "limit",
                                    [SET_TROUBLE] = "trouble"};
enum { WORDS = sizeof(words) / sizeof(words[0]) };

/* --- Writing ---------------------------------------------------------------------- */

/* A line that does not fit is omitted as a whole. */
static void
closed_file_put(struct buffer *out, const struct set_closed *closed, int64_t ended_ms)
{
    char key[2 * SET_KEY_SIZE + 1];
    text_hex(closed->key, SET_KEY_SIZE, key);
    size_t before = out->length;
    if (!buffer_format(out, "%s %" PRId64 " %" PRId64 " %s\n", key, ended_ms,
                       closed->memory_ms, words[closed->reason]))
        out->length = before;
}

static void
closed_file_put_one(void *context, const struct set_closed *closed, int64_t ended_ms)
{
    closed_file_put(context, closed, ended_ms);
}

static int
closed_file_rewrite(struct closed_file *f, const struct sets *sets)
{
    struct buffer all;
    buffer_init(&all, CLOSED_FILE_MAX);
    (void)!buffer_add(&all, TEXT(TITLE));
    sets_each_closed(sets, CLOSED_FILE_SETS_MAX, closed_file_put_one, &all);
    int result = manager_hint_write(f->manager, CLOSED_FILE, buffer_text(&all));
    size_t closed = sets_count(sets).closed;
    f->count = closed < CLOSED_FILE_SETS_MAX ? closed : CLOSED_FILE_SETS_MAX;
    buffer_free(&all);
    return result;
}

static void
closed_file_tell(struct closed_file *f, int error)
{
    if (error == f->error)
        return;
    f->error = error;
    if (error == 0)
        log_say(f->log, LOG_LEVEL_INFO, "defrag", NULL, "%s: written again", f->path);
    else
        log_say(f->log, LOG_LEVEL_WARNING, "defrag", NULL,
                "%s: cannot be written: %s; after a restart late fragments of the sets "
                "that have ended since would wait",
                f->path, strerror(-error));
}

void
closed_file_note(struct closed_file *f, const struct set_closed *closed, int64_t now_ms)
{
    if (closed->memory_ms <= 0)
        return;
    closed_file_put(&f->lines, closed, now_ms);
    f->count++;
}

void
closed_file_flush(struct closed_file *f, const struct sets *sets)
{
    int result = -ENOENT;
    if (f->lines.length == 0)
        return;
    bool is_full = f->count > (size_t)2 * CLOSED_FILE_SETS_MAX;
    if (!f->is_stale && !is_full)
        result = manager_hint_append(f->manager, CLOSED_FILE, buffer_text(&f->lines));
    if (result < 0)
        result = closed_file_rewrite(f, sets);
    f->is_stale = result < 0;
    buffer_clear(&f->lines);
    closed_file_tell(f, result < 0 ? result : 0);
}

/* --- Reading ---------------------------------------------------------------------- */

/* False: not a line of ours. */
static bool
closed_file_read_line(struct text line, struct sets *sets, int64_t now_ms)
{
    struct set_closed closed;
    struct text key, ended, memory;
    uint64_t ended_ms, memory_ms;
    if (!text_cut(&line, ' ', &key) || !text_cut(&line, ' ', &ended) ||
        !text_cut(&line, ' ', &memory) || !text_unhex(key, closed.key, SET_KEY_SIZE) ||
        !text_number(ended, INT64_MAX / 2, &ended_ms) ||
        !text_number(memory, MEMORY_MAX_MS, &memory_ms))
        return false;
    int reason = 0;
    while (reason < WORDS && !text_equal(line, text_from(words[reason])))
        reason++;
    if (reason == WORDS)
        return false;
    closed.reason = (enum set_reason)reason;
    closed.memory_ms = (int64_t)memory_ms;
    int64_t since_ms = (int64_t)ended_ms < now_ms ? (int64_t)ended_ms : now_ms;
    if (since_ms + closed.memory_ms > now_ms)
        sets_recall(sets, &closed, since_ms);
    return true;
}

static bool
closed_file_read(struct closed_file *f, struct text rest, struct sets *sets,
                 int64_t now_ms)
{
    struct text line, title = TEXT(TITLE);
    bool good = text_starts(rest, title) && rest.at[rest.length - 1] == '\n';
    if (text_starts(rest, title))
        rest = text_after(rest, title.length);
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        good = closed_file_read_line(line, sets, now_ms) && good;
        f->count++;
    }
    return good;
}

void
closed_file_start(struct closed_file *f, struct manager *manager, struct log *log,
                  struct sets *sets, int64_t now_ms)
{
    struct buffer all;
    *f = (struct closed_file){.manager = manager, .log = log};
    manager_hint_path(manager, CLOSED_FILE, f->path);
    buffer_init(&f->lines, CLOSED_FILE_MAX);
    buffer_init(&all, CLOSED_FILE_MAX);
    int result = manager_hint_read(manager, CLOSED_FILE, &all);
    bool is_good = closed_file_read(f, buffer_text(&all), sets, now_ms);
    f->is_stale = result < 0 || !is_good;
    if (f->is_stale && result != -ENOENT)
        log_say(log, LOG_LEVEL_WARNING, "defrag", NULL,
                "%s: %s; late fragments of the sets that it lacks would wait", f->path,
                result < 0 && result != -EFBIG ? strerror(-result)
                                               : "damaged, or not written by Petrel");
    buffer_free(&all);
}

void
closed_file_end(struct closed_file *f)
{
    buffer_free(&f->lines);
}
