/* Searches the history. */
#include "admin/history/trace.h"

#include "admin/history/history.h"
#include "admin/history/life.h"
#include "admin/history/ring.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* --- Files ------------------------------------------------------------------------ */

/* The files of the history in all slices, oldest first, and their lines. */
enum {
    TRACE_PATH_MAX = 64,
    TRACE_FILES_MAX = 20000,      /* of all slices */
    TRACE_PIECE_BYTES = 64 * 1024 /* that are read with one call */
};

struct trace_file {
    char path[TRACE_PATH_MAX];
    uint64_t first_ms;
    uint64_t until_ms; /* the next file of its ring begins then */
    bool is_mail;
    int64_t offset; /* up to which it was read, behind a line's end */
    int64_t end;    /* nothing behind it is read */
};

/* Zeroed before the first use. */
struct trace_files {
    struct disk *spool;
    struct trace_file *list;
    size_t count;
    size_t directories; /* of slices; 0: one daemon */
};

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

static void
trace_files_free(struct trace_files *files)
{
    free(files->list);
    files->list = NULL;
    files->count = 0;
}

/* Finds them anew; a file that was known keeps its offset. 0 or -errno. */
static int
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

/* Reads whole lines from the file's offset on, a piece at most. Bytes read, 0: there are
 * no more now. */
static size_t
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

enum trace_stage { TRACE_FINDS, TRACE_GATHERS, TRACE_IS_DONE };

/* A message with a line that meets some queries, not all. */
struct trace_candidate {
    struct id id;
    uint32_t met; /* a bit for each query */
    UT_hash_handle hh;
};

/* One of the answer. */
struct trace_life {
    struct id id; /* all 0: a line alone */
    int64_t time_ms;
    struct buffer lines;
    size_t more;
    UT_hash_handle hh;
};

struct trace {
    struct trace_request request;
    struct trace_files files;
    enum trace_stage stage;
    size_t at; /* the file that is read */
    struct trace_file gather;
    size_t gathered;   /* its index + 1 */
    struct id *chosen; /* messages that meet all queries, the newest, in order */
    size_t chosen_count, chosen_max;
    struct trace_candidate *candidates;
    struct trace_life *alone; /* lines; a ring of request.limit */
    size_t alone_count;       /* so far, the forgotten ones included */
    struct trace_life *lives, *by_id;
    size_t life_count, taken;
    void (*each)(void *context, struct id id, struct text line);
    void *each_context;
};

static uint32_t
trace_all(const struct trace *t)
{
    return (uint32_t)((UINT64_C(1) << t->request.count) - 1);
}

/* --- Candidates ------------------------------------------------------------------- */

static int
trace_compare_ids(const void *a, const void *b)
{
    return id_compare(*(const struct id *)a, *(const struct id *)b);
}

/* The ids of candidates, oldest first. The caller frees. */
static struct id *
trace_ids(const struct trace *t, size_t *count)
{
    struct trace_candidate *c, *next;
    struct id *ids = memory_array(HASH_COUNT(t->candidates) + 1, sizeof(*ids));
    *count = 0;
    HASH_ITER (hh, t->candidates, c, next) {
        ids[(*count)++] = c->id;
    }
    qsort(ids, *count, sizeof(*ids), trace_compare_ids);
    return ids;
}

static void
trace_drop(struct trace *t, struct trace_candidate *c)
{
    HASH_DEL(t->candidates, c);
    free(c);
}

/* The answer has the newest messages: the older half can go. */
static void
trace_make_space(struct trace *t)
{
    size_t count;
    struct trace_candidate *c, *next;
    struct id *ids = trace_ids(t, &count), middle = ids[count / 2];
    HASH_ITER (hh, t->candidates, c, next) {
        if (id_compare(c->id, middle) < 0)
            trace_drop(t, c);
    }
    free(ids);
}

/* Where the id is among the chosen, or belongs. */
static size_t
trace_place(const struct trace *t, struct id id)
{
    size_t low = 0, high = t->chosen_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (id_compare(t->chosen[middle], id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool
trace_is_chosen(const struct trace *t, struct id id)
{
    size_t at = trace_place(t, id);
    return at < t->chosen_count && id_compare(t->chosen[at], id) == 0;
}

/* The newest are kept, in order. */
static void
trace_choose_id(struct trace *t, struct id id)
{
    size_t at = trace_place(t, id);
    if (at < t->chosen_count && id_compare(t->chosen[at], id) == 0)
        return;
    if (t->chosen_count < t->chosen_max) {
        memmove(t->chosen + at + 1, t->chosen + at,
                (t->chosen_count - at) * sizeof(id));
        t->chosen[at] = id;
        t->chosen_count++;
    } else if (at > 0) {
        memmove(t->chosen, t->chosen + 1, (at - 1) * sizeof(id));
        t->chosen[at - 1] = id;
    }
}

/* A line of the message meets these. Whether its lines meet all. */
static bool
trace_note(struct trace *t, struct id id, uint32_t met)
{
    struct trace_candidate *c;
    if (met == trace_all(t))
        trace_choose_id(t, id);
    if (met == trace_all(t) || trace_is_chosen(t, id))
        return true;
    if (met == 0)
        return false;
    HASH_FIND(hh, t->candidates, &id, sizeof(id), c);
    if (c == NULL) {
        if (HASH_COUNT(t->candidates) >= TRACE_FOUND_MAX)
            trace_make_space(t);
        c = memory_new(sizeof(*c));
        c->id = id;
        HASH_ADD(hh, t->candidates, id, sizeof(c->id), c);
    }
    c->met |= met;
    if (c->met != trace_all(t))
        return false;
    trace_drop(t, c);
    trace_choose_id(t, id);
    return true;
}

/* --- The first pass --------------------------------------------------------------- */

static uint32_t
trace_met(const struct trace *t, struct id id, struct text line)
{
    uint32_t met = 0;
    for (size_t i = 0; i < t->request.count; i++)
        if (trace_query_matches(&t->request.queries[i], id, line))
            met |= UINT32_C(1) << i;
    return met;
}

static void
trace_keep_alone(struct trace *t, int64_t time_ms, struct text line)
{
    struct trace_life *l = &t->alone[t->alone_count++ % t->request.limit];
    buffer_free(&l->lines);
    buffer_init(&l->lines, LOG_LINE_MAX + 1);
    l->time_ms = time_ms;
    (void)!(buffer_add(&l->lines, line) && buffer_add_byte(&l->lines, '\n'));
}

static void
trace_find_line(void *context, struct text line)
{
    struct trace *t = context;
    struct id id;
    int64_t time_ms;
    if (!history_line_glance(line, &time_ms, &id) || time_ms < t->request.since_ms)
        return;
    uint32_t met = trace_met(t, id, line);
    if (id.time_ms != 0)
        (void)trace_note(t, id, met);
    else if (met == trace_all(t))
        trace_keep_alone(t, time_ms, line);
}

/* --- Between ---------------------------------------------------------------------- */

static int
trace_compare_lives(const void *a, const void *b)
{
    const struct trace_life *one = a, *other = b;
    if (one->time_ms != other->time_ms)
        return one->time_ms < other->time_ms ? -1 : 1;
    return id_compare(one->id, other->id);
}

/* The newest of messages and lines alone. */
static void
trace_choose(struct trace *t)
{
    size_t limit = t->request.limit, count = 0;
    size_t first = t->chosen_count > limit ? t->chosen_count - limit : 0;
    size_t alone = t->alone_count < limit ? t->alone_count : limit;
    t->lives = memory_array(t->chosen_count - first + alone + 1, sizeof(*t->lives));
    for (size_t i = first; i < t->chosen_count; i++)
        t->lives[count++] = (struct trace_life){
            .id = t->chosen[i], .time_ms = (int64_t)t->chosen[i].time_ms};
    for (size_t i = 0; i < alone; i++) {
        t->lives[count++] = t->alone[i];
        t->alone[i] = (struct trace_life){0};
    }
    qsort(t->lives, count, sizeof(*t->lives), trace_compare_lives);
    t->taken = count > limit ? count - limit : 0;
    t->life_count = count;
    size_t most = TRACE_LINES_MAX / limit;
    for (size_t i = t->taken; i < count; i++) {
        struct trace_life *l = &t->lives[i];
        if (l->id.time_ms == 0)
            continue;
        buffer_init(&l->lines, most > TRACE_LINES_LEAST ? most : TRACE_LINES_LEAST);
        HASH_ADD(hh, t->by_id, id, sizeof(l->id), l);
    }
}

/* --- The second pass -------------------------------------------------------------- */

static void
trace_gather_line(void *context, struct text line)
{
    struct trace *t = context;
    struct trace_life *l;
    struct id id;
    int64_t time_ms;
    if (!history_line_glance(line, &time_ms, &id) || id.time_ms == 0)
        return;
    HASH_FIND(hh, t->by_id, &id, sizeof(id), l);
    if (l == NULL)
        return;
    if (l->lines.limit - l->lines.length <= line.length) {
        l->more++; /* the first ones stay */
        return;
    }
    (void)!(buffer_add(&l->lines, line) && buffer_add_byte(&l->lines, '\n'));
}

/* It has been read as far as it is written. */
static void
trace_pass_over(const struct trace *t, struct trace_file *f)
{
    struct disk_info info;
    if (disk_inspect(t->files.spool, f->path, &info) == 0)
        f->offset = info.size;
}

/* The message of the smallest id has no line in files that ended before. */
static bool
trace_skips(const struct trace *t, const struct trace_file *f)
{
    if (t->stage == TRACE_FINDS)
        return t->request.since_ms > 0 && f->until_ms < (uint64_t)t->request.since_ms;
    for (size_t i = t->taken; i < t->life_count; i++)
        if (t->lives[i].id.time_ms != 0)
            return !f->is_mail || f->until_ms < t->lives[i].id.time_ms;
    return true;
}

static void
trace_end_pass(struct trace *t)
{
    t->at = 0;
    if (t->stage == TRACE_GATHERS) {
        t->stage = TRACE_IS_DONE;
        return;
    }
    trace_choose(t);
    t->stage = TRACE_GATHERS;
}

enum progress
trace_step(struct trace *t, size_t bytes)
{
    size_t used = 0;
    while (t->stage != TRACE_IS_DONE && used < bytes) {
        if (t->at == t->files.count) {
            trace_end_pass(t);
            continue;
        }
        struct trace_file *f = &t->files.list[t->at];
        bool finds = t->stage == TRACE_FINDS;
        if (t->gathered != t->at + 1 && !finds) {
            t->gather = *f; /* its own offset: the other one is for following */
            t->gather.offset = 0;
            t->gathered = t->at + 1;
            if (t->request.follows)
                t->gather.end = f->offset; /* lines written now are followed */
        }
        bool skips = trace_skips(t, f);
        if (skips && finds)
            trace_pass_over(t, f); /* nothing of it is new */
        size_t got =
            skips   ? 0
            : finds ? trace_file_read(t->files.spool, f, trace_find_line, t)
                    : trace_file_read(t->files.spool, &t->gather, trace_gather_line, t);
        used += got;
        t->at += got == 0;
    }
    return t->stage == TRACE_IS_DONE ? PROGRESS_DONE : PROGRESS_MORE;
}

/* --- The answer ------------------------------------------------------------------- */

static int64_t
trace_line_time(struct text line)
{
    struct id id;
    int64_t time_ms;
    (void)!history_line_glance(line, &time_ms, &id);
    return time_ms;
}

/* Lines of several slices in the order of their time: a message whose slice was taken
 * over has lines in two. */
static void
trace_sort_lines(struct buffer *lines)
{
    struct text rest = buffer_text(lines), line;
    size_t count = 0, capacity = 0;
    struct text *list = NULL;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        if (count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 64;
            list = memory_resize(list, capacity * sizeof(*list));
        }
        size_t at = count++;
        for (; at > 0 && trace_line_time(list[at - 1]) > trace_line_time(line); at--)
            list[at] = list[at - 1];
        list[at] = line;
    }
    struct buffer sorted;
    buffer_init(&sorted, lines->limit);
    for (size_t i = 0; i < count; i++)
        (void)!(buffer_add(&sorted, list[i]) && buffer_add_byte(&sorted, '\n'));
    free(list);
    buffer_free(lines);
    *lines = sorted;
}

json_t *
trace_take(struct trace *t)
{
    while (t->taken < t->life_count) {
        struct trace_life *l = &t->lives[t->taken++];
        if (l->lines.length == 0)
            continue; /* an id that nothing is known of */
        if (t->files.directories > 1)
            trace_sort_lines(&l->lines);
        json_t *life = life_make(l->id, buffer_text(&l->lines), l->more);
        buffer_free(&l->lines);
        return life;
    }
    return NULL;
}

int64_t
trace_reaches_ms(const struct trace *t)
{
    for (size_t i = 0; i < t->files.count; i++)
        if (t->files.list[i].is_mail)
            return (int64_t)t->files.list[i].first_ms;
    return -1;
}

/* --- Later lines ------------------------------------------------------------------ */

static void
trace_follow_line(void *context, struct text line)
{
    struct trace *t = context;
    struct id id;
    int64_t time_ms;
    if (!history_line_glance(line, &time_ms, &id))
        return;
    uint32_t met = trace_met(t, id, line);
    if (id.time_ms != 0 ? trace_note(t, id, met) : met == trace_all(t))
        t->each(t->each_context, id, line);
}

void
trace_follow(struct trace *t,
             void (*each)(void *context, struct id id, struct text line), void *context)
{
    t->each = each;
    t->each_context = context;
    if (trace_files_find(&t->files) != 0)
        return;
    for (size_t i = 0; i < t->files.count; i++)
        while (trace_file_read(t->files.spool, &t->files.list[i], trace_follow_line,
                               t) > 0)
            ;
}

/* --- Begin and end ---------------------------------------------------------------- */

/* An id needs no search: its lines are gathered. */
static void
trace_begin_id(struct trace *t)
{
    const struct trace_query *q = &t->request.queries[0];
    if (t->request.count != 1 || q->kind != TRACE_ID || t->request.since_ms > 0)
        return;
    trace_choose_id(t, q->id);
    for (size_t i = 0; i < t->files.count; i++)
        trace_pass_over(t, &t->files.list[i]);
    t->at = t->files.count;
}

int
trace_begin(struct trace **trace, struct disk *spool,
            const struct trace_request *request)
{
    struct trace *t = memory_new(sizeof(*t));
    t->request = *request;
    t->files.spool = spool;
    int error = trace_files_find(&t->files);
    if (error < 0) {
        free(t);
        return error;
    }
    t->chosen_max = request->follows && request->limit < TRACE_FOLLOWED
                        ? TRACE_FOLLOWED
                        : request->limit;
    t->chosen = memory_array(t->chosen_max, sizeof(*t->chosen));
    t->alone = memory_array(request->limit, sizeof(*t->alone));
    trace_begin_id(t);
    *trace = t;
    return 0;
}

json_t *
trace_life(struct disk *spool, struct id id)
{
    struct trace *t = NULL;
    json_t *life = NULL;
    struct trace_request *request = memory_new(sizeof(*request));
    request->queries[0] = (struct trace_query){.kind = TRACE_ID, .id = id};
    request->count = request->limit = 1;
    if (trace_begin(&t, spool, request) == 0) {
        while (trace_step(t, TRACE_STEP_BYTES) == PROGRESS_MORE)
            ;
        life = trace_take(t);
    }
    trace_end(&t);
    free(request);
    return life;
}

void
trace_end(struct trace **trace)
{
    struct trace *t = *trace;
    struct trace_candidate *c, *next;
    *trace = NULL;
    if (t == NULL)
        return;
    HASH_ITER (hh, t->candidates, c, next) {
        trace_drop(t, c);
    }
    HASH_CLEAR(hh, t->by_id);
    for (size_t i = 0; i < t->life_count; i++)
        buffer_free(&t->lives[i].lines);
    for (size_t i = 0; i < t->request.limit; i++)
        buffer_free(&t->alone[i].lines);
    trace_files_free(&t->files);
    free(t->lives);
    free(t->chosen);
    free(t->alone);
    free(t);
}
