/* Moves the mail of foreign journals into the spool. */
#include "queue/recovery/adopt.h"

#include "base/memory.h"
#include "queue/spool/marker.h"
#include "queue/spool/load.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDED_PER_TURN = 200 };

static const char above[] = "journal", lock_path[] = "lock/adopt";

/* --- Rooms ----------------------------------------------------------------------- */

static void
name_journal(unsigned first, unsigned last, char journal[ADOPT_PATH_MAX])
{
    snprintf(journal, ADOPT_PATH_MAX, "%s/%04u-%04u", above, first, last);
}

void
adopt_journal_path(unsigned slices, unsigned slice, char journal[ADOPT_PATH_MAX])
{
    unsigned width = slices_width(slices);
    assert(slice < slices);
    name_journal(slice * width, (slice + 1) * width - 1, journal);
}

static bool
read_journal(const char *name, struct adopt_journal *journal)
{
    if (!slices_part_read(text_from(name), &journal->first, &journal->last))
        return false;
    name_journal(journal->first, journal->last, journal->path);
    return true;
}

static bool
note_journal(void *context, const char *name)
{
    struct adopt_journals *all = context;
    struct adopt_journal journal;
    if (!read_journal(name, &journal))
        return true;
    all->rows = memory_resize(all->rows, (all->count + 1) * sizeof(*all->rows));
    all->rows[all->count++] = journal;
    return true;
}

static void
adopt_marker_path(const char *journal, char path[SPOOL_PATH_MAX])
{
    snprintf(path, SPOOL_PATH_MAX, "%s/moved", journal);
}

/* From then on its segments do not count. */
static bool
has_marker(struct disk *disk, const char *journal)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    adopt_marker_path(journal, path);
    return disk_inspect(disk, path, &info) == 0;
}

/* A missing folder is an empty one: no daemon with a journal has run yet. */
static int
list_journals(struct disk *disk, struct adopt_journals *journals)
{
    *journals = (struct adopt_journals){0};
    int result = disk_list(disk, above, note_journal, journals);
    return result == -ENOENT ? 0 : result;
}

/* Journals with the mark of a finished adoption have no mail any more, only files to be
 * removed. */
int
adopt_list(struct disk *disk, struct adopt_journals *journals)
{
    int result = list_journals(disk, journals);
    size_t kept = 0;
    for (size_t i = 0; i < journals->count; i++)
        if (!has_marker(disk, journals->rows[i].path))
            journals->rows[kept++] = journals->rows[i];
    journals->count = kept;
    return result;
}

/* --- Removal --------------------------------------------------------------------- */

struct names {
    char (*rows)[SPOOL_PATH_MAX];
    size_t count;
    const char *journal;
};

/* Longer names are not ours; they would not fit the path. */
static bool
note_file(void *context, const char *name)
{
    struct names *all = context;
    if (strlen(name) > 16)
        return true;
    all->rows = memory_resize(all->rows, (all->count + 1) * sizeof(*all->rows));
    snprintf(all->rows[all->count++], SPOOL_PATH_MAX, "%s/%s", all->journal, name);
    return true;
}

/* From here on the segments do not count: a part of them would bring ended mail
 * back. */
static int
put_marker(struct disk *disk, const char *journal)
{
    char path[SPOOL_PATH_MAX];
    adopt_marker_path(journal, path);
    int file = disk_create(disk, path, 0600);
    if (file == -EEXIST)
        file = disk_open_file(disk, path, true);
    if (file < 0)
        return file;
    int result = disk_sync(disk, file);
    disk_close_file(disk, file);
    return result == 0 ? disk_sync_directory(disk, journal) : result;
}

static int
adopt_remove_files(struct disk *disk, const char *journal)
{
    char marker[SPOOL_PATH_MAX];
    struct names all = {.journal = journal};
    adopt_marker_path(journal, marker);
    int result = disk_list(disk, journal, note_file, &all);
    for (size_t i = 0; i < all.count && result == 0; i++)
        if (strcmp(all.rows[i], marker) != 0)
            result = disk_unlink(disk, all.rows[i]);
    free(all.rows);
    if (result == 0)
        result = disk_sync_directory(disk, journal);
    /* The marker goes last: without it, segments that a crash leaves would count
     * again. */
    return result == 0 ? disk_unlink(disk, marker) : result;
}

/* On failure: once the marker is durable the rest may wait for the next pass. */
static void
remove_segments(struct adopt *a, const char *journal)
{
    struct disk *disk = a->spool->disk;
    int result = put_marker(disk, journal);
    if (result < 0)
        a->failed = true;
    else
        result = adopt_remove_files(disk, journal);
    if (result == 0)
        return;
    (void)spool_trouble(a->spool, result, NULL, "remove an old journal");
    a->result.refused = true;
}

/* The records that we read may not be durable when their daemon was killed: files made
 * from it must not survive a power cut that the journal does not. */
static int
sync_records(struct disk *disk, const char *journal)
{
    struct names all = {.journal = journal};
    int result = disk_list(disk, journal, note_file, &all);
    for (size_t i = 0; i < all.count && result == 0; i++) {
        int file = disk_open_file(disk, all.rows[i], false);
        if (file < 0)
            continue; /* a foreign file; the reader skips it, too */
        result = disk_sync(disk, file);
        disk_close_file(disk, file);
    }
    free(all.rows);
    return result == 0 ? disk_sync_directory(disk, journal) : result;
}

static bool
adopt_is_empty(struct adopt *a, const char *journal)
{
    struct names all = {.journal = journal};
    int result = disk_list(a->spool->disk, journal, note_file, &all);
    free(all.rows);
    return result == 0 && all.count == 0;
}

/* --- One message ----------------------------------------------------------------- */

/* A message that cannot be set aside keeps the journal: nothing of it may be lost. */
static void
adopt_quarantine(struct adopt *a, struct journaled_message *m, const char *reason)
{
    if (journaled_quarantine(&a->journaled, m, reason) < 0)
        a->failed = true;
}

/* Its files are durable and need a marker to be known as a reassembled message. */
static void
adopt_note_made(struct adopt *a, const struct envelope *e)
{
    if (e->fragment.made_of.length == 0)
        return;
    if (a->made != NULL)
        id_set_add(a->made, e->id);
    a->marked = true;
    if (marker_put(a->spool, MARKER_REASSEMBLED, e->id) < 0)
        a->failed = true;
}

/* Its own daemon, or a pass that was killed, has moved it already. True: that was
 * all. */
static bool
adopt_is_there(struct adopt *a, const struct journaled_message *m)
{
    struct id id = m->id;
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX];
    enum load_result result = load_moved(a->spool, id, !m->large, &e, reason);
    bool whole =
        result == LOAD_DONE && (!m->large || spool_has(a->spool, SPOOL_MESS, id));
    bool failed =
        result == LOAD_LATER || (whole && spool_sync_preprocessed(a->spool, id) < 0);
    if (failed)
        a->failed = true;
    else if (whole)
        adopt_note_made(a, e);
    envelope_free(&e);
    return failed || whole;
}

/* A message that cannot be read now is tried in the next pass; damage is set aside. */
static void
add_move(struct adopt *a, struct journaled_message *m)
{
    struct preprocess move = {.id = m->id};
    bool later = false;
    char reason[LOAD_REASON_MAX];
    int error = 0;
    move.envelope = journaled_load(&a->journaled, m, &later, reason, sizeof(reason));
    if (move.envelope == NULL && !later) {
        adopt_quarantine(a, m, reason);
        return;
    }
    if (move.envelope != NULL && !m->large)
        move.content = journaled_read_content(&a->journaled, m, &error);
    if (move.envelope == NULL || (!m->large && move.content == NULL)) {
        envelope_free(&move.envelope);
        a->failed = true;
        return;
    }
    a->preprocessor.moves[a->preprocessor.count++] = move;
}

static void
adopt_examine(struct adopt *a, struct journaled_message *m)
{
    unsigned dirs;
    if (adopt_is_there(a, m))
        return;
    if (guard_is_deadly(&a->spool->guard, m->id))
        adopt_quarantine(a, m, guard_reason(&a->spool->guard, m->id));
    else if (spool_dirs_of(a->spool, m->id, &dirs) < 0)
        a->failed = true;
    else if (m->large && (dirs & SPOOL_BIT(SPOOL_MESS)) == 0)
        adopt_quarantine(a, m, "the content is missing");
    else
        add_move(a, m);
}

/* A message that crashes the adoption is found by the guard, and quarantined in the
 * next one. */
static void
adopt_prepare(struct adopt *a, struct journaled_message *m)
{
    struct id before = guard_enter(&a->spool->guard, m->id);
    adopt_examine(a, m);
    guard_leave(&a->spool->guard, before);
}

/* A move that failed leaves the journal as it is: the next pass finds the others in
 * files. */
static void
take_moves(struct adopt *a)
{
    for (unsigned i = 0; i < a->preprocessor.count; i++) {
        struct preprocess *move = &a->preprocessor.moves[i];
        struct id before = guard_enter(&a->spool->guard, move->id);
        if (move->result < 0) {
            a->failed = true;
        } else {
            adopt_note_made(a, move->envelope);
            a->result.messages++;
        }
        envelope_free(&move->envelope);
        preprocess_free(move);
        guard_leave(&a->spool->guard, before);
    }
    a->preprocessor.count = 0;
}

/* --- Ended messages --------------------------------------------------------------- */

static void
note_ended(void *context, struct id id)
{
    struct adopt *a = context;
    a->ended[a->ended_count++] = id;
}

static void
list_ended(struct adopt *a)
{
    a->ended = memory_new(id_set_count(&a->journaled.ended) * sizeof(*a->ended) + 1);
    a->ended_count = a->ended_next = 0;
    id_set_each(&a->journaled.ended, note_ended, a);
}

/* Any of its files may be left: after a power cut none of the removals need be
 * durable. */
static void
remove_some(struct adopt *a)
{
    unsigned dirs;
    for (unsigned i = 0; i < ENDED_PER_TURN && a->ended_next < a->ended_count; i++) {
        struct id id = a->ended[a->ended_next++];
        if (spool_dirs_of(a->spool, id, &dirs) < 0 ||
            (dirs != 0 && spool_remove_all(a->spool, id) < 0))
            a->failed = true;
    }
}

/* --- One journal ----------------------------------------------------------------*/

static const struct adopt_journal *
adopt_current(const struct adopt *a)
{
    return &a->journals.rows[a->next];
}

static void
leave_journal(struct adopt *a)
{
    journaled_close(&a->journaled);
    free(a->ended);
    a->ended = NULL;
    a->ended_count = a->ended_next = 0;
    disk_close_file(a->spool->disk, a->lock);
    a->lock = -1;
    a->next++;
}

static void
withhold(void *context, struct id id)
{
    struct adopt *a = context;
    id_set_add(&a->withheld, id);
}

static void
end_journal(struct adopt *a)
{
    struct journaled_message *m, *next;
    const char *journal = adopt_current(a)->path;
    /* Files and marks must be durable before the segments stop to count. */
    if (!a->failed && spool_sync_dirs(a->spool, ~0u) < 0)
        a->failed = true;
    if (!a->failed && a->marked && marker_sync(a->spool, MARKER_REASSEMBLED) < 0)
        a->failed = true;
    if (!a->failed)
        remove_segments(a, journal);
    if (a->failed) {
        a->result.refused = true;
        /* The journal still has these messages: even without their files they would
         * come again with the next pass. */
        HASH_ITER (hh, a->journaled.messages, m, next)
            withhold(a, m->id);
        id_set_each(&a->journaled.ended, withhold, a);
    }
    a->result.journals++;
    log_say(a->spool->log, a->failed ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "queue", NULL,
            "%s: %u messages moved to files%s", journal, a->result.messages - a->before,
            a->failed ? "; all of it waits until the disk takes the rest" : "");
    leave_journal(a);
}

/* The contents of this journal are unknown. */
static void
adopt_note_closed(struct adopt *a)
{
    const struct adopt_journal *journal = adopt_current(a);
    a->result.blocking |= slices_overlap(&a->ours, journal->first, journal->last);
}

static void
begin_journal(struct adopt *a)
{
    const char *journal = adopt_current(a)->path;
    a->failed = a->marked = false;
    a->before = a->result.messages;
    a->journaled =
        (struct journaled){.spool = a->spool, .loop = a->loop, .directory = journal};
    if (has_marker(a->spool->disk, journal)) {
        remove_segments(a, journal);
        leave_journal(a);
        return;
    }
    int result = sync_records(a->spool->disk, journal);
    if (result == 0)
        result = journaled_read(&a->journaled, true);
    if (result < 0) {
        (void)spool_trouble(a->spool, result, NULL, "read an old journal");
        a->result.unreadable = true;
        adopt_note_closed(a);
        leave_journal(a);
        return;
    }
    list_ended(a);
    a->at = a->journaled.messages;
}

/* False: it is not ours, or not available now. */
static bool
lock_journal(struct adopt *a)
{
    const struct adopt_journal *journal = adopt_current(a);
    bool is_own = a->own != NULL && strcmp(journal->path, a->own) == 0;
    /* Our own journal is read elsewhere; only the rest that an adoption has left of it
     * is removed here. */
    if (!slices_overlap(&a->slices, journal->first, journal->last) ||
        (is_own && !has_marker(a->spool->disk, journal->path)) ||
        adopt_is_empty(a, journal->path))
        return false;
    int lock = disk_lock(a->spool->disk, lock_path, journal->first,
                         journal->last - journal->first + 1);
    if (lock == -EWOULDBLOCK) {
        a->result.busy = true;
    } else if (lock < 0) {
        (void)spool_trouble(a->spool, lock, NULL, "lock an old journal");
        a->result.unreadable = true;
    }
    if (lock < 0)
        adopt_note_closed(a);
    a->lock = lock < 0 ? -1 : lock;
    return lock >= 0;
}

/* --- The pass -------------------------------------------------------------------- */

static void
adopt_move_some(struct adopt *a)
{
    while (a->at != NULL && a->preprocessor.count < PREPROCESSOR_MAX) {
        struct journaled_message *m = a->at;
        a->at = m->hh.next;
        adopt_prepare(a, m);
    }
    if (a->preprocessor.count == 0)
        return;
    if (preprocess_prepare(&a->preprocessor))
        take_moves(a);
    else
        a->moving = true;
}

static void
end_pass(struct adopt *a)
{
    free(a->journals.rows);
    a->journals = (struct adopt_journals){0};
    a->running = false;
    if (!a->synchronous)
        a->done(a->context);
}

/* One step: some ended messages, a batch to move, or the begin or end of a journal. */
static void
adopt_go_on(struct adopt *a)
{
    assert(a->running && !a->moving);
    if (a->ended_next < a->ended_count)
        remove_some(a);
    else if (a->lock >= 0 && a->at != NULL)
        adopt_move_some(a);
    else if (a->lock >= 0)
        end_journal(a);
    else if (a->next == a->journals.count)
        end_pass(a);
    else if (lock_journal(a))
        begin_journal(a);
    else
        a->next++;
}

static void
adopt_work(void *context)
{
    struct adopt *a = context;
    adopt_go_on(a);
    if (a->running && !a->moving)
        loop_post(a->loop, &a->task, adopt_work, a);
}

static void
adopt_on_moved(void *context)
{
    struct adopt *a = context;
    if (!a->running)
        return; /* adopt_stop() */
    take_moves(a);
    a->moving = false;
    if (!a->synchronous)
        loop_post(a->loop, &a->task, adopt_work, a);
}

static void
begin_pass(struct adopt *a, bool synchronous)
{
    assert(!a->running);
    a->running = true;
    a->synchronous = synchronous;
    a->result = (struct adopted){0};
    a->withheld = (struct id_set){0};
    a->next = 0;
    a->lock = -1;
    a->preprocessor =
        (struct preprocessor){.spool = a->spool, .done = adopt_on_moved, .context = a};
    int listed = list_journals(a->spool->disk, &a->journals);
    if (listed == 0 && a->made != NULL)
        listed = marker_list(a->spool, a->made);
    if (listed == 0)
        return;
    a->journals.count = 0;
    (void)spool_trouble(a->spool, listed, NULL, "list journal/");
    a->result.unreadable = a->result.blocking = true;
}

void
adopt_start(struct adopt *a)
{
    begin_pass(a, false);
    loop_post(a->loop, &a->task, adopt_work, a);
}

void
adopt_synchronously(struct adopt *a)
{
    begin_pass(a, true);
    while (a->running)
        if (a->moving)
            disk_sync_wait(a->spool->disk);
        else
            adopt_go_on(a);
}

bool
adopt_is_running(const struct adopt *a)
{
    return a->running;
}

void
adopt_stop(struct adopt *a)
{
    if (!a->running)
        return;
    loop_unpost(a->loop, &a->task);
    for (unsigned i = 0; i < a->preprocessor.count; i++)
        envelope_free(&a->preprocessor.moves[i].envelope);
    preprocess_end(&a->preprocessor);
    if (a->lock >= 0)
        leave_journal(a);
    id_set_free(&a->withheld);
    free(a->journals.rows);
    a->running = false;
}
