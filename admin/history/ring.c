/* Keeps the files of a ring. */
#include "admin/history/ring.h"

#include "admin/history/history_line.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The year 19,800 is not ours, and nothing could sort behind the last name that there is. */
#define RING_LAST_MS (UINT64_C(1) << 49)

enum {
    FILE_MODE = 0600,
    NAME_DIGITS = 10,
    TAIL_MAX = LOG_LINE_MAX + 2,
    RING_LOOK_MS = 1000
};

static void
ring_name(const struct ring *r, uint64_t first_ms, char out[RING_NAME_MAX])
{
    char id[ID_LENGTH + 1];
    id_format((struct id){.time_ms = first_ms}, id);
    snprintf(out, RING_NAME_MAX, "%s/%s.%.*s", r->directory, r->word, NAME_DIGITS, id);
}

bool
ring_read_name(const char *name, const char *word, uint64_t *first_ms)
{
    size_t length = strlen(word);
    char whole[ID_LENGTH + 1];
    struct id id;
    if (strncmp(name, word, length) != 0 || name[length] != '.' ||
        strlen(name + length + 1) != NAME_DIGITS)
        return false;
    snprintf(whole, sizeof(whole), "%s-00000000", name + length + 1);
    if (!id_parse(text_from(whole), &id))
        return false;
    *first_ms = id.time_ms;
    return true;
}

int64_t
ring_bytes(const struct ring *r)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < r->count; i++)
        sum += r->files[i].size;
    return sum;
}

static void
ring_close_last(struct ring *r)
{
    if (r->file >= 0)
        disk_close_file(r->disk, r->file);
    r->file = -1;
    r->torn = false;
}

/* A file that cannot be removed is forgotten: the next start finds it again. */
static void
ring_drop(struct ring *r, unsigned index)
{
    char name[RING_NAME_MAX];
    if (index + 1 == r->count)
        ring_close_last(r);
    ring_name(r, r->files[index].first_ms, name);
    (void)disk_unlink(r->disk, name);
    r->count--;
    memmove(&r->files[index], &r->files[index + 1],
            (r->count - index) * sizeof(r->files[0]));
}

/* Until `more` bytes and `files` more files fit. */
static void
ring_trim(struct ring *r, int64_t more, unsigned files)
{
    while (r->count > 0 &&
           (r->count + files > RING_FILES || ring_bytes(r) + more > r->limit))
        ring_drop(r, 0);
}

/* --- Startup ---------------------------------------------------------------------- */

static bool
ring_meet(void *context, const char *name)
{
    struct ring *r = context;
    struct disk_info info;
    uint64_t first_ms;
    char path[RING_NAME_MAX];
    if (!ring_read_name(name, r->word, &first_ms) || first_ms > RING_LAST_MS)
        return true;
    ring_name(r, first_ms, path);
    if (disk_inspect(r->disk, path, &info) != 0 || info.kind != DISK_FILE)
        return true;
    if (r->count == RING_FOUND_MAX)
        ring_drop(r, 0);
    unsigned at = r->count;
    while (at > 0 && r->files[at - 1].first_ms > first_ms)
        at--;
    memmove(&r->files[at + 1], &r->files[at], (r->count - at) * sizeof(r->files[0]));
    r->files[at] = (struct ring_file){first_ms, info.size};
    r->count++;
    return true;
}

/* The next line begins with the LF that is missing. */
static void
ring_look_torn(struct ring *r)
{
    const struct ring_file *last = &r->files[r->count - 1];
    char end = '\n';
    if (last->size > 0 && disk_read(r->disk, r->file, last->size - 1, &end, 1) == 1)
        r->torn = end != '\n';
}

static int
ring_repair(struct ring *r)
{
    if (!r->torn)
        return 0;
    int error = disk_write(r->disk, r->file, TEXT("\n"));
    if (error == 0) {
        r->torn = false;
        r->files[r->count - 1].size++;
    }
    return error;
}

static int
ring_discover(struct ring *r, struct disk *disk, const char *directory,
              const char *word, int64_t limit)
{
    char name[RING_NAME_MAX];
    *r = (struct ring){
        .disk = disk, .directory = directory, .word = word, .limit = limit, .file = -1};
    int error = disk_list(disk, directory, ring_meet, r);
    if (error < 0)
        return error;
    ring_trim(r, 0, 0);
    if (r->count == 0)
        return 0;
    ring_name(r, r->files[r->count - 1].first_ms, name);
    r->file = disk_open_file(disk, name, true);
    if (r->file < 0) { /* another user's: a new one is begun */
        r->file = -1;
        return 0;
    }
    ring_look_torn(r);
    return 0;
}

int
ring_open(struct ring *r, struct disk *disk, const char *directory, const char *word,
          int64_t limit)
{
    int error = ring_discover(r, disk, directory, word, limit);
    return error == 0 ? ring_repair(r) : error;
}

/* The bytes of the tail that have come into the files. */
static size_t
ring_count_written(struct ring *r, struct tail_mark mark, size_t length)
{
    size_t written = (size_t)mark.from;
    for (unsigned i = 0; i < r->count; i++) {
        const struct ring_file *f = &r->files[i];
        if (f->first_ms != mark.first_ms || f->size <= mark.offset)
            continue;
        uint64_t more = (uint64_t)(f->size - mark.offset);
        written = more < length - mark.from ? written + (size_t)more : length;
        if (i + 1 == r->count && written < length)
            r->torn = false; /* the bytes written now are the rest of its last line */
    }
    return written;
}

int
ring_resume(struct ring *r, struct disk *disk, const char *directory, const char *word,
            int64_t limit, struct tail *tail, int64_t now_ms)
{
    int error = ring_discover(r, disk, directory, word, limit);
    if (error != 0)
        return error;
    r->tail = tail;
    struct text lines = tail_lines(tail);
    size_t written = ring_count_written(r, tail_mark(tail), lines.length);
    (void)!ring_write(r, now_ms, text_after(lines, written)); /* or they are lost */
    tail_clear(tail);
    return ring_repair(r);
}

void
ring_close(struct ring *r)
{
    if (r->disk != NULL)
        ring_close_last(r);
    *r = (struct ring){.file = -1};
}

/* --- Writing ---------------------------------------------------------------------- */

static int64_t
ring_file_max(const struct ring *r)
{
    return r->limit / RING_FILES;
}

/* A name that sorts behind all others, also after the clock was set back. */
static int
ring_begin_file(struct ring *r, int64_t now_ms)
{
    char name[RING_NAME_MAX];
    ring_close_last(r);
    ring_trim(r, ring_file_max(r), 1);
    uint64_t first_ms = now_ms > 0 ? (uint64_t)now_ms : 0;
    if (r->count > 0 && r->files[r->count - 1].first_ms >= first_ms)
        first_ms = r->files[r->count - 1].first_ms + 1;
    ring_name(r, first_ms, name);
    int file = disk_create(r->disk, name, FILE_MODE);
    for (int tries = 0; file == -EEXIST && tries < RING_FILES; tries++) {
        ring_name(r, ++first_ms, name);
        file = disk_create(r->disk, name, FILE_MODE);
    }
    if (file < 0)
        return file;
    r->file = file;
    r->files[r->count++] = (struct ring_file){.first_ms = first_ms};
    return 0;
}

/* The bytes of whole lines that fit into room; 0: not even one. */
static size_t
lines_within(struct text lines, int64_t room)
{
    if (room <= 0)
        return 0;
    size_t end = text_find_last(text_before(lines, (size_t)room), '\n');
    return end == TEXT_NONE ? 0 : end + 1;
}

static bool
ring_look_size(struct ring *r)
{
    struct disk_info info;
    if (disk_file_info(r->disk, r->file, &info) != 0)
        return false;
    r->files[r->count - 1].size = info.size;
    return true;
}

/* Somebody may have emptied the file. */
static void
ring_look_again(struct ring *r, int64_t now_ms)
{
    if (r->file >= 0 && now_ms / RING_LOOK_MS != r->looked)
        (void)ring_look_size(r);
    r->looked = now_ms / RING_LOOK_MS;
}

static int
ring_append(struct ring *r, struct text lines)
{
    struct ring_file *last = &r->files[r->count - 1];
    int error = ring_repair(r);
    if (r->tail != NULL)
        tail_set_mark(r->tail, last->first_ms, last->size, lines.at);
    if (error == 0)
        error = disk_write_at(r->disk, r->file, last->size, lines);
    if (error == 0)
        last->size += (int64_t)lines.length;
    else if (ring_look_size(r)) /* some of it may be there */
        ring_look_torn(r);
    return error;
}

int
ring_write(struct ring *r, int64_t now_ms, struct text lines)
{
    int error = 0;
    ring_look_again(r, now_ms);
    while (error == 0 && lines.length > 0) {
        int64_t used = r->file >= 0 ? r->files[r->count - 1].size : -1;
        size_t part = used < 0 ? 0 : lines_within(lines, ring_file_max(r) - used);
        if (part == 0 && used == 0) { /* a line that is longer than a file */
            size_t end = text_find(lines, '\n');
            part = end == TEXT_NONE ? lines.length : end + 1;
        }
        if (part == 0) {
            error = ring_begin_file(r, now_ms);
        } else {
            error = ring_append(r, text_before(lines, part));
            lines = text_after(lines, part);
        }
    }
    return error;
}

/* --- Age -------------------------------------------------------------------------- */

/* The time of the last line that has one; without any, that of the last change. -1: the
 * file is gone. */
static int64_t
ring_last_time(struct ring *r, const char *name)
{
    struct disk_info info = {0};
    int64_t time_ms = -1, got = 0;
    int file = disk_open_file(r->disk, name, false);
    if (file < 0)
        return file == -ENOENT ? -1 : INT64_MAX;
    char *tail = memory_new(TAIL_MAX);
    if (disk_file_info(r->disk, file, &info) == 0)
        got = disk_read(r->disk, file, info.size > TAIL_MAX ? info.size - TAIL_MAX : 0,
                        tail, TAIL_MAX);
    struct text rest = text_of(tail, got > 0 ? (size_t)got : 0), line;
    while (text_cut(&rest, '\n', &line)) {
        struct id id;
        int64_t found;
        if (history_line_glance(line, &found, &id))
            time_ms = found;
    }
    free(tail);
    disk_close_file(r->disk, file);
    return time_ms >= 0 ? time_ms : info.changed_ms;
}

void
ring_expire(struct ring *r, int64_t before_ms)
{
    char name[RING_NAME_MAX];
    for (unsigned i = 0; i < r->count;) {
        ring_name(r, r->files[i].first_ms, name);
        if (ring_last_time(r, name) < before_ms)
            ring_drop(r, i);
        else
            i++;
    }
}
