/* Lists and reads the files of the history. */
#include "admin/history/trace_files.h"

#include "admin/history/history.h"
#include "admin/history/ring.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A walk through the directories. */
struct trace_walk {
    struct trace_files *into;
    const char *directory; /* of a slice, or "" */
    size_t capacity;
};

static bool
trace_files_is_slice(const char *name)
{
    struct text rest = text_from(name), first;
    uint64_t number;
    return text_cut(&rest, '-', &first) && text_number(first, ID_SLICES_MAX, &number) &&
           text_number(rest, ID_SLICES_MAX, &number);
}

static void
trace_files_add(struct trace_walk *w, const char *name, uint64_t first_ms, bool is_mail)
{
    struct trace_files *f = w->into;
    if (f->count == TRACE_FILES_MAX)
        return;
    if (f->count == w->capacity) {
        w->capacity = w->capacity > 0 ? 2 * w->capacity : 32;
        f->list = memory_resize(f->list, w->capacity * sizeof(*f->list));
    }
    struct trace_file *file = &f->list[f->count++];
    *file = (struct trace_file){.first_ms = first_ms,
                                .until_ms = UINT64_MAX,
                                .is_mail = is_mail,
                                .end = INT64_MAX};
    snprintf(file->path, sizeof(file->path), HISTORY_DIRECTORY "%s%s/%s",
             w->directory[0] != '\0' ? "/" : "", w->directory, name);
}

static bool
trace_files_meet(void *context, const char *name)
{
    struct trace_walk *w = context;
    uint64_t first_ms;
    char directory[RING_DIRECTORY_MAX + sizeof(HISTORY_DIRECTORY)];
    if (ring_read_name(name, HISTORY_MAIL, &first_ms)) {
        trace_files_add(w, name, first_ms, true);
    } else if (ring_read_name(name, HISTORY_REFUSED, &first_ms)) {
        trace_files_add(w, name, first_ms, false);
    } else if (w->directory[0] == '\0' && strlen(name) < RING_DIRECTORY_MAX &&
               trace_files_is_slice(name)) {
        w->directory = name;
        w->into->directories++;
        snprintf(directory, sizeof(directory), HISTORY_DIRECTORY "/%s", name);
        (void)disk_list(w->into->spool, directory, trace_files_meet, w);
        w->directory = "";
    }
    return true;
}

static int
trace_files_compare_paths(const void *a, const void *b)
{
    const struct trace_file *one = a, *other = b;
    return strcmp(one->path, other->path);
}

static int
trace_files_compare(const void *a, const void *b)
{
    const struct trace_file *one = a, *other = b;
    if (one->first_ms != other->first_ms)
        return one->first_ms < other->first_ms ? -1 : 1;
    return trace_files_compare_paths(a, b);
}

/* Whether both are of the same ring and directory: all but the digits of the name is
 * the same. */
static bool
trace_files_same_ring(const struct trace_file *a, const struct trace_file *b)
{
    const char *end_a = strrchr(a->path, '.'), *end_b = strrchr(b->path, '.');
    return end_a - a->path == end_b - b->path &&
           memcmp(a->path, b->path, (size_t)(end_a - a->path)) == 0;
}

/* By their paths the files of a ring are neighbours, in the order of time. */
static void
trace_files_sort(struct trace_files *f)
{
    if (f->count == 0)
        return;
    qsort(f->list, f->count, sizeof(*f->list), trace_files_compare_paths);
    for (size_t i = 0; i + 1 < f->count; i++)
        if (trace_files_same_ring(&f->list[i], &f->list[i + 1]))
            f->list[i].until_ms = f->list[i + 1].first_ms;
    qsort(f->list, f->count, sizeof(*f->list), trace_files_compare);
}

static void
trace_files_keep_offsets(struct trace_files *f, const struct trace_files *old)
{
    for (size_t i = 0; i < old->count; i++) {
        struct trace_file *same = bsearch(&old->list[i], f->list, f->count,
                                          sizeof(*f->list), trace_files_compare);
        if (same != NULL)
            same->offset = old->list[i].offset;
    }
}

int
trace_files_find(struct trace_files *files)
{
    struct trace_files found = {.spool = files->spool};
    struct trace_walk walk = {.into = &found, .directory = ""};
    int error = disk_list(files->spool, HISTORY_DIRECTORY, trace_files_meet, &walk);
    if (error < 0) {
        free(found.list);
        return error;
    }
    trace_files_sort(&found);
    trace_files_keep_offsets(&found, files);
    trace_files_free(files);
    *files = found;
    return 0;
}

void
trace_files_free(struct trace_files *files)
{
    free(files->list);
    files->list = NULL;
    files->count = 0;
}

size_t
trace_file_read(struct disk *spool, struct trace_file *file,
                void (*each)(void *context, struct text line), void *context)
{
    int handle = disk_open_file(spool, file->path, false);
    if (handle < 0)
        return 0;
    char *piece = memory_new(TRACE_PIECE_BYTES);
    int64_t left = file->end - file->offset;
    int64_t got =
        disk_read(spool, handle, file->offset, piece,
                  left < TRACE_PIECE_BYTES ? (size_t)left : TRACE_PIECE_BYTES);
    disk_close_file(spool, handle);
    struct text rest = text_of(piece, got > 0 ? (size_t)got : 0), line;
    size_t last = text_find_last(rest, '\n');
    size_t whole = last == TEXT_NONE ? 0 : last + 1;
    if (whole == 0 && rest.length == TRACE_PIECE_BYTES)
        file->offset += got; /* not ours */
    file->offset += (int64_t)whole;
    size_t used = whole > 0 || rest.length < TRACE_PIECE_BYTES ? whole : rest.length;
    rest = text_before(rest, whole);
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        each(context, line);
    free(piece);
    return used;
}
