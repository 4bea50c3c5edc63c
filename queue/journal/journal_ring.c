/* The life of the journal's segments: made, written, closed, recycled, removed. */
#include "queue/journal/journal_ring.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    PIECE = 256 * 1024, /* zeros written in a turn */
    SPARE = 2,          /* unused ones ahead of need: one, and the reserve */
    AGAIN_MS = 10 * 1000,
    NUMBER_MAX = 9999999
};

/* --- Files ----------------------------------------------------------------------- */

void
ring_close_file(struct ring *r, struct ring_segment *s)
{
    if (s->file >= 0)
        disk_close_file(r->spool->disk, s->file);
    s->file = -1;
}

int
ring_open_file(struct ring *r, struct ring_segment *s)
{
    char path[SEGMENT_PATH_MAX];
    if (s->file >= 0)
        return 0;
    journal_path(r->directory, s->number, path);
    int file = disk_open_file(r->spool->disk, path, true);
    if (file < 0)
        return file;
    s->file = file;
    return 0;
}

static struct ring_segment *
segment_new(struct ring *r, uint32_t number, size_t size)
{
    struct ring_segment *s = memory_new(sizeof(*s));
    s->number = number;
    s->size = size;
    s->file = -1;
    r->count += size == r->segment_size;
    return s;
}

static void
segment_free(struct ring *r, struct ring_segment *s)
{
    ring_close_file(r, s);
    r->count -= s->size == r->segment_size;
    free(s);
}

/* Only segments that no header needs are removed, so a crash before or after makes no
 * difference. */
static void
remove_file(struct ring *r, uint32_t number)
{
    char path[SEGMENT_PATH_MAX];
    journal_path(r->directory, number, path);
    int result = disk_unlink(r->spool->disk, path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(r->spool, result, NULL, "remove a segment of the journal");
}

/* Whether a segment does not fit changed settings: of another size, or one too many. */
static bool
is_misfit(const struct ring *r, const struct ring_segment *s)
{
    return s->size != r->segment_size ||
           (r->count > r->segments_max && r->unused_count >= SPARE);
}

/* A segment keeps its sequence until it is used again: so readers know the order of
 * segments. */
static void
make_unused(struct ring *r, struct ring_segment *s)
{
    ring_close_file(r, s);
    if (is_misfit(r, s)) {
        remove_file(r, s->number);
        segment_free(r, s);
        return;
    }
    s->live = 0;
    s->last_batch = 0;
    DL_APPEND(r->unused, s);
    r->unused_count++;
}

/* --- Which one ------------------------------------------------------------------- */

/* The list is short: journal_divide() makes about 16 segments. */
struct ring_segment *
ring_find(const struct ring *r, uint64_t sequence)
{
    struct ring_segment *s;
    if (r->current != NULL && r->current->sequence == sequence)
        return r->current;
    DL_FOREACH (r->closed, s)
        if (s->sequence == sequence)
            return s;
    return NULL;
}

struct ring_segment *
ring_newest(const struct ring *r)
{
    if (r->current != NULL)
        return r->current;
    return r->closed != NULL ? r->closed->prev : NULL;
}

static bool
is_over(const struct ring_segment *s, uint64_t batch)
{
    return s->live == 0 && s->last_batch <= batch;
}

/* A segment without live messages is still needed until the checkpoint: only its END
 * records say that files which come back after a crash have ended. */
uint64_t
ring_oldest(const struct ring *r, uint64_t batch)
{
    const struct ring_segment *s;
    DL_FOREACH (r->closed, s)
        if (!is_over(s, batch) ||
            (s->used && r->checkpoint != NULL && s->sequence > r->released))
            return s->sequence;
    return r->current != NULL ? r->current->sequence : r->sequence + 1;
}

void
ring_close_current(struct ring *r)
{
    if (r->current != NULL)
        DL_APPEND(r->closed, r->current);
    r->current = NULL;
}

bool
ring_advance(struct ring *r)
{
    struct ring_segment *s = r->unused;
    if (s == NULL)
        return false;
    DL_DELETE(r->unused, s);
    r->unused_count--;
    ring_close_current(r);
    s->sequence = ++r->sequence;
    /* Records of the segment's former use do not match the new cookie. */
    s->cookie = loop_random(r->loop);
    s->used = false; /* readers rely on a batch in the oldest needed segment */
    r->current = s;
    return true;
}

/* The limit is a quarter of the segments, so that the oldest messages move to files
 * before new mail has to wait. */
uint64_t
ring_crowded(const struct ring *r)
{
    unsigned low = r->segments_max / 4 + 1, seen = 0;
    unsigned more = r->count < r->segments_max && r->failed_ms == 0
                        ? r->segments_max - r->count
                        : 0;
    unsigned left = r->unused_count + more + (r->made != NULL);
    uint64_t up_to = 0;
    const struct ring_segment *s;
    if (left >= low)
        return 0;
    DL_FOREACH (r->closed, s) {
        if (seen++ == low - left)
            break;
        if (s->live > 0)
            up_to = s->sequence;
    }
    return up_to;
}

/* --- Recycling ------------------------------------------------------------------- */

static bool
is_recent(const struct ring *r, int64_t failed_ms)
{
    return failed_ms != 0 && loop_monotonic_ms(r->loop) - failed_ms < AGAIN_MS;
}

/* An idle daemon does not wake up for a segment that nothing waits for. */
static void
try_again_later(struct ring *r)
{
    if ((r->pressed || r->stuck) && !heap_has(&r->again.node))
        loop_timer_start(r->loop, &r->again, AGAIN_MS, NULL, NULL);
}

/* Asks for a checkpoint: effects of the records may be durable only in these
 * segments. */
static void
ask_checkpoint(struct ring *r)
{
    uint64_t up_to = 0;
    const struct ring_segment *s;
    DL_FOREACH (r->closed, s) {
        if (!is_over(s, r->stuck ? UINT64_MAX : r->durable))
            break;
        up_to = s->sequence;
    }
    if (up_to <= r->released || r->checkpointing)
        return;
    if (is_recent(r, r->checkpoint_failed_ms)) {
        try_again_later(r);
        return;
    }
    r->checkpointing = true;
    r->checkpoint_up_to = up_to;
    r->checkpoint(r->checkpoint_context);
}

/* Strictly oldest first: a younger segment that is empty may hold the END of a message
 * in an older one. */
void
ring_recycle(struct ring *r)
{
    while (r->closed != NULL && r->closed->sequence < r->needed) {
        struct ring_segment *s = r->closed;
        assert(s->live == 0);
        DL_DELETE(r->closed, s);
        make_unused(r, s);
    }
    if (r->checkpoint != NULL)
        ask_checkpoint(r);
}

void
ring_checkpointed(struct ring *r, int error)
{
    assert(r->checkpointing);
    r->checkpointing = false;
    r->checkpoint_failed_ms = error < 0 ? loop_monotonic_ms(r->loop) : 0;
    if (error == 0)
        r->released = r->checkpoint_up_to;
}

/* --- New segments ---------------------------------------------------------------- */

static bool
journal_ring_is_taken(const struct ring *r, uint32_t number)
{
    const struct ring_segment *lists[] = {r->closed, r->unused}, *s;
    if (r->current != NULL && r->current->number == number)
        return true;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        DL_FOREACH (lists[i], s)
            if (s->number == number)
                return true;
    return false;
}

/* A number is reused when its file is gone: names are no order, sequences are. */
static int
begin_segment(struct ring *r)
{
    char path[SEGMENT_PATH_MAX];
    int file = -EEXIST;
    uint32_t number = 0;
    while (file == -EEXIST && number <= NUMBER_MAX) {
        while (journal_ring_is_taken(r, number))
            number++;
        journal_path(r->directory, number, path);
        file = disk_create(r->spool->disk, path, 0600);
        if (file == -EEXIST)
            number++; /* a foreign file has this name */
    }
    if (file < 0)
        return file;
    r->made = segment_new(r, number, r->segment_size);
    r->made->file = file;
    r->filled = 0;
    r->filling = FILLING_ZEROS;
    return 0;
}

/* Writing zeros once, and syncing them, spares every later sync the metadata. */
static int
fill_piece(struct ring *r)
{
    size_t size = r->segment_size - r->filled;
    if (size > PIECE)
        size = PIECE;
    char *zeros = memory_new(size);
    int result = disk_write_at(r->spool->disk, r->made->file, (int64_t)r->filled,
                               text_of(zeros, size));
    free(zeros);
    r->filled += size;
    return result;
}

static void
journal_ring_on_synced(void *context, int result)
{
    struct ring *r = context;
    r->syncing = false;
    r->synced = true;
    r->sync_result = result;
}

static void
begin_sync(struct ring *r, int file)
{
    r->synced = false;
    r->sync_file = file;
    r->sync = (struct disk_sync){.done = journal_ring_on_synced, .context = r};
    int result = disk_sync_begin(r->spool->disk, file, false, &r->sync);
    r->syncing = result == DISK_SYNCING;
    if (!r->syncing)
        journal_ring_on_synced(r, result);
}

/* A batch must not become durable in a segment whose name may vanish. */
static int
sync_name(struct ring *r)
{
    int directory = disk_open_directory(r->spool->disk, r->directory);
    if (directory < 0)
        return directory;
    r->filling = FILLING_NAME;
    begin_sync(r, directory);
    return 0;
}

/* Usable only now: file and name are durable. */
static void
finish_segment(struct ring *r)
{
    struct ring_segment *s = r->made;
    disk_close_file(r->spool->disk, r->sync_file);
    r->made = NULL;
    r->filling = FILLING_NONE;
    r->failed_ms = 0;
    r->failure_logged = false;
    make_unused(r, s);
}

/* A full disk is no error here: the existing segments must do. */
static void
give_up_segment(struct ring *r, int error)
{
    if (r->filling == FILLING_NAME)
        disk_close_file(r->spool->disk, r->sync_file);
    r->filling = FILLING_NONE;
    if (r->made != NULL) {
        uint32_t number = r->made->number;
        segment_free(r, r->made);
        r->made = NULL;
        remove_file(r, number);
    }
    r->failed_ms = loop_monotonic_ms(r->loop);
    if (error != -ENOSPC && error != -EDQUOT)
        (void)spool_trouble(r->spool, error, NULL, "make a segment of the journal");
    else if (!r->failure_logged)
        log_say(r->spool->log, LOG_LEVEL_WARNING, "queue", NULL,
                "journal: cannot grow beyond %u segments: %s", r->count,
                strerror(-error));
    r->failure_logged = true;
}

/* One step; true while the next one can follow in this turn. In pieces, and with syncs
 * in the background: a segment of 16 MiB must not stop the loop. */
static bool
journal_ring_fill(struct ring *r, int *error)
{
    switch (r->filling) {
    case FILLING_NONE:
        return false;
    case FILLING_ZEROS:
        *error = fill_piece(r);
        if (*error == 0 && r->filled == r->segment_size) {
            r->filling = FILLING_FILE;
            begin_sync(r, r->made->file);
        }
        break;
    case FILLING_FILE:
        *error = r->sync_result;
        if (*error == 0)
            *error = sync_name(r);
        break;
    case FILLING_NAME:
        *error = r->sync_result;
        if (*error == 0)
            finish_segment(r);
        break;
    }
    return *error == 0 && r->filling != FILLING_NONE;
}

/* Stuck, even the reserve is used up. One segment above the maximum lets marks and ends
 * reach the disk. */
static bool
wants_more(const struct ring *r)
{
    return r->unused_count < SPARE &&
           (r->count < r->segments_max || (r->stuck && r->count == r->segments_max));
}

static void
journal_ring_grow(struct ring *r)
{
    int error = 0;
    if (r->filling == FILLING_NONE && wants_more(r)) {
        if (!is_recent(r, r->failed_ms))
            error = begin_segment(r);
        else
            try_again_later(r);
    }
    if (error == 0 && !r->syncing && journal_ring_fill(r, &error) && !r->syncing)
        loop_wake(r->loop, &r->wake);
    if (error < 0)
        give_up_segment(r, error);
    else if (r->filling == FILLING_NONE && wants_more(r) && !is_recent(r, r->failed_ms))
        loop_wake(r->loop, &r->wake); /* the next one */
}

/* Recycled segments come first, so that none is made while one is free. */
void
ring_turn(struct ring *r)
{
    ring_recycle(r);
    journal_ring_grow(r);
}

/* --- Start and stop -------------------------------------------------------------- */

/* Makes durable the writes that a dead process may have left visible but not durable:
 * the last batch, and unused files. */
static int
sync_found(struct ring *r, struct ring_segment *s)
{
    int result = ring_open_file(r, s);
    if (result == 0)
        result = disk_sync(r->spool->disk, s->file);
    ring_close_file(r, s);
    return result;
}

/* Writing continues only in the newest segment: leftovers of a failure or crash in a
 * newer one must stay older than new batches. And not in one that exists twice, for a
 * copy of a file looks like the original. */
static bool
is_newest(const struct journal_scan *scan, uint64_t sequence)
{
    const struct found_segment *last = scan->segments + scan->count - 1;
    return last->sequence == sequence &&
           (scan->count == 1 || last[-1].sequence != sequence);
}

/* A segment of another size, from older settings, is read and then removed. */
static int
adopt_segment(struct ring *r, const struct journal_scan *scan,
              const struct found_segment *f)
{
    struct ring_segment *s = segment_new(r, f->number, f->size);
    bool is_last = scan->number > 0 && f->sequence == scan->sequence;
    s->sequence = f->sequence;
    s->cookie = f->cookie;
    s->used = f->sequence > 0;
    if (f->sequence > r->sequence)
        r->sequence = f->sequence;
    int result = is_last || f->sequence == 0 ? sync_found(r, s) : 0;
    /* Behind the last whole batch nothing was acknowledged. */
    if (scan->number == 0 || f->sequence < scan->oldest || f->sequence > scan->sequence)
        DL_APPEND(r->unused, s);
    else if (is_last && s->size == r->segment_size && is_newest(scan, f->sequence))
        r->current = s;
    else
        DL_APPEND(r->closed, s);
    return result;
}

/* Sorts out the unused segments that can be used. Strange ones come last. */
static void
sift_unused(struct ring *r)
{
    struct ring_segment *list = r->unused, *s, *next;
    r->unused = NULL;
    DL_FOREACH_SAFE (list, s, next) {
        if (s->sequence == 0)
            continue;
        DL_DELETE(list, s);
        make_unused(r, s);
    }
    DL_FOREACH_SAFE (list, s, next) {
        DL_DELETE(list, s);
        make_unused(r, s);
    }
}

static int
sync_directory(struct ring *r)
{
    const char *slash = strchr(r->directory, '/');
    int result = disk_sync_directory(r->spool->disk, r->directory);
    if (slash != NULL && result == 0) {
        char *above =
            text_string(text_of(r->directory, (size_t)(slash - r->directory)));
        result = disk_sync_directory(r->spool->disk, above);
        free(above);
    }
    return result;
}

/* Makes the first segments, without a loop. Two segments at startup, so that the first
 * message does not wait for one. */
static int
make_first(struct ring *r)
{
    while (r->unused_count < SPARE && r->count < r->segments_max) {
        int error = begin_segment(r);
        while (error == 0 && r->filled < r->segment_size)
            error = fill_piece(r);
        if (error == 0)
            error = disk_sync(r->spool->disk, r->made->file);
        if (error == 0)
            error = disk_sync_directory(r->spool->disk, r->directory);
        if (error == 0) {
            struct ring_segment *s = r->made;
            r->made = NULL;
            r->filling = FILLING_NONE;
            make_unused(r, s);
            continue;
        }
        give_up_segment(r, error);
        return error == -ENOSPC || error == -EDQUOT ? 0 : error;
    }
    return 0;
}

int
ring_start(struct ring *r, const struct journal_scan *scan)
{
    int result = sync_directory(r);
    r->needed = scan->oldest;
    r->sequence = scan->oldest > 0 ? scan->oldest - 1 : 0;
    for (unsigned i = 0; i < scan->count && result == 0; i++)
        result = adopt_segment(r, scan, &scan->segments[i]);
    if (result == 0) {
        sift_unused(r);
        result = make_first(r);
    }
    return result;
}

static void
free_list(struct ring *r, struct ring_segment **list)
{
    struct ring_segment *s, *next;
    DL_FOREACH_SAFE (*list, s, next) {
        DL_DELETE(*list, s);
        segment_free(r, s);
    }
}

void
ring_stop(struct ring *r)
{
    loop_unpost(r->loop, &r->wake);
    loop_timer_stop(r->loop, &r->again);
    ring_close_current(r);
    free_list(r, &r->closed);
    free_list(r, &r->unused);
    if (r->made == NULL)
        return;
    if (r->filling == FILLING_NAME)
        disk_close_file(r->spool->disk, r->sync_file);
    uint32_t number = r->made->number;
    segment_free(r, r->made);
    remove_file(r, number);
}
