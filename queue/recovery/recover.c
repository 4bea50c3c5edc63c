/* Finds the messages of a spool: at start, when the trigger is pulled, every 25
 * minutes. */
#include "queue/recovery/recover.h"

#include "base/memory.h"
#include "queue/recovery/clean.h"
#include "queue/spool/load.h"
#include "queue/spool/marker.h"
#include "queue/spool/spool_corrupt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
    PER_TURN = 500,           /* messages, so that service goes on, */
    BYTES_PER_TURN = 1 << 20, /* and of their contents, */
    SYNCS_PER_TURN = 8,       /* and syncs, each of which may take 10 ms */
    NAMES_PER_TURN = 5000,    /* beyond it the other directories wait */
    SCAN_MS = 25 * 60 * 1000, /* qmail's interval */
    AGAIN_MS = 60 * 1000,
    MOVED_MS = 1000,  /* a record of the journal is durable long before that */
    PAUSE_MS = 100,   /* between scans, however often the trigger is pulled, */
    IDLE_PER_MS = 20, /* and 1 ms for each 20 names that a scan found in vain, */
    PAUSE_MAX_MS = 10 * 1000, /* up to this */
    TRIGGER_DRAIN = 4096
};

enum {
    MESS = SPOOL_BIT(SPOOL_MESS),
    QUEUED = SPOOL_BIT(SPOOL_TODO),
    INTD = SPOOL_BIT(SPOOL_INTD),
    INFO = SPOOL_BIT(SPOOL_INFO),
    HOLD = SPOOL_BIT(SPOOL_HOLD),
    DEFRAG = SPOOL_BIT(SPOOL_DEFRAG),
    SCRAP = SPOOL_BIT(SPOOL_LOCAL) | SPOOL_BIT(SPOOL_REMOTE) | SPOOL_BIT(SPOOL_BOUNCE)
};

enum origin {
    START, /* a listing of the whole spool */
    SCAN,  /* a listing of todo/: S5 was reported at startup */
    ASKED  /* asked for by this process, even if seen before */
};

struct recover_row {
    struct id id;
    enum origin origin;
    unsigned dirs; /* START: the names that the listing saw */
};

/* --- One message ----------------------------------------------------------------- */

/* todo and S5 files: a whole S5 counts, with its marks; else todo does. Returns the
 * directories that are left. */
static unsigned
settle_conflict(struct recover *r, struct id id, unsigned dirs)
{
    struct spool *s = r->spool;
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX];
    enum load_result result = load_preprocessed(s, id, &e, reason);
    envelope_free(&e);
    /* It is whole, but perhaps not durable. */
    if (result == LOAD_DONE && spool_sync_preprocessed(s, id) < 0)
        result = LOAD_LATER;
    if (result == LOAD_LATER)
        return dirs; /* both stay: loading or the next startup decides */
    if (result == LOAD_DONE) {
        /* todo/ID remains; every scan would report the message anew. */
        if (spool_remove(s, SPOOL_TODO, id) < 0)
            id_set_add(r->seen, id);
        (void)spool_remove(s, SPOOL_INTD, id);
        return dirs & ~(unsigned)(QUEUED | INTD);
    }
    spool_remove_preprocessed(s, id, false);
    return dirs & ~(unsigned)(INFO | SCRAP);
}

/* Without todo and info the files are no message. */
static void
remove_rest(struct recover *r, struct id id, unsigned dirs)
{
    char name[ID_LENGTH + 1];
    if (r->is_at_work != NULL && r->is_at_work(r->context, id))
        return;
    if ((dirs & MESS) != 0 && spool_quarantine_rest(r->spool, id))
        return;
    if ((dirs & MESS) != 0 && (dirs & (SCRAP | HOLD)) == 0) {
        clean_leftover(r->spool, id, loop_now_ms(r->loop));
        return;
    }
    id_format(id, name);
    log_say(r->spool->log, LOG_LEVEL_INFO, "queue", name,
            "removing files left by a finished message");
    (void)spool_remove_all(r->spool, id);
}

static void
remove_ended(struct recover *r, struct id id)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    log_say(r->spool->log, LOG_LEVEL_INFO, "queue", name,
            "removing files left by a finished message");
    if (spool_remove_all(r->spool, id) < 0)
        id_set_add(r->seen, id);
}

static void
recover_report_one(struct recover *r, struct id id, unsigned dirs)
{
    struct queue_entry entry = {.id = id, .due_ms = loop_now_ms(r->loop)};
    /* Until it is S5 every scan of todo/ lists it again. */
    if ((dirs & QUEUED) != 0)
        id_set_add(r->seen, id);
    else if ((dirs & INTD) != 0)
        (void)spool_remove(r->spool, SPOOL_INTD, id);
    if ((dirs & INFO) != 0)
        due_times_take(&r->due, r->spool, id, &entry.due_ms, &entry.attempts);
    else if ((dirs & HOLD) == 0)
        due_times_read_todo(r->spool, id, &entry.due_ms, &entry.attempts);
    /* Before all others that are due, so that sets are soon complete again. */
    if ((dirs & DEFRAG) != 0 && entry.due_ms <= loop_now_ms(r->loop))
        entry.due_ms = 0;
    if ((dirs & HOLD) == 0)
        r->found(r->found_context, &entry);
}

/* Reports it after this time, or earlier with others that wait. */
static void
report_in(struct recover *r, struct id id, int64_t wait_ms)
{
    r->later = memory_resize(r->later, (r->later_count + 1) * sizeof(*r->later));
    r->later[r->later_count++] = id;
    if (!heap_has(&r->again.node) || wait_ms < AGAIN_MS)
        loop_timer_start(r->loop, &r->again, wait_ms, r->again.fire, r);
}

/* Journaled mail never has an envelope there: another user has put it there. */
static void
drop_planted(struct recover *r, struct id id, unsigned *dirs)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    log_say(r->spool->log, LOG_LEVEL_WARNING, "queue", name,
            "removing an envelope of the same name from todo/: the message itself is "
            "in the journal");
    (void)spool_remove(r->spool, SPOOL_TODO, id);
    *dirs &= ~(unsigned)QUEUED;
}

/* A message of the journal that the spool has too: it was moving. S5 counts when it is
 * whole, content included, unless that is one for both; else the journal does. True: it
 * is journaled, and dirs has no files of a move, unless the disk did not answer. */
static bool
settle_journaled(struct recover *r, struct journaled_message *m, unsigned *dirs)
{
    struct spool *s = r->spool;
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX];
    if ((*dirs & QUEUED) != 0)
        drop_planted(r, m->id, dirs);
    enum load_result result = load_moved(s, m->id, !m->large, &e, reason);
    envelope_free(&e);
    if (result == LOAD_DONE && spool_sync_preprocessed(s, m->id) < 0)
        result = LOAD_LATER;
    if (result == LOAD_LATER)
        return true;
    if (result == LOAD_DONE) {
        (void)journaled_end(r->journaled, m, RECORD_MOVED);
        return false;
    }
    spool_remove_preprocessed(s, m->id, !m->large);
    *dirs &= ~(unsigned)(INFO | SCRAP | (m->large ? 0 : MESS));
    return true;
}

static bool
is_under_move(const struct recover *r, struct id id)
{
    return r->is_moving != NULL && r->is_moving(r->context, id);
}

/* A crowded journal may already be moving it again: then its files are being made. */
static bool
was_moving(const struct recover *r, const struct journaled_message *m, unsigned dirs)
{
    return m->recovered && !is_under_move(r, m->id) &&
           ((dirs & (QUEUED | INFO | SCRAP)) != 0 || (!m->large && (dirs & MESS) != 0));
}

bool
recover_settle(struct recover *r, struct journaled_message *m)
{
    unsigned dirs;
    if (!m->recovered)
        return true;
    if (spool_dirs_of(r->spool, m->id, &dirs) < 0)
        return false;
    return !was_moving(r, m, dirs) || !settle_journaled(r, m, &dirs) ||
           !was_moving(r, m, dirs);
}

/* True: that was all. */
static bool
recover_journaled(struct recover *r, const struct recover_row *row, unsigned *dirs)
{
    struct journaled_message *m = journaled_find(r->journaled, row->id);
    struct queue_entry entry = {.id = row->id, .due_ms = loop_now_ms(r->loop)};
    if (m == NULL)
        return false;
    if (m->due_ms > entry.due_ms)
        entry.due_ms = m->due_ms;
    entry.attempts = m->attempts;
    if (!m->recovered && row->origin != ASKED)
        return true; /* accepted by this run, which knows about it */
    if (was_moving(r, m, *dirs) && !settle_journaled(r, m, dirs))
        return false;
    if (was_moving(r, m, *dirs)) { /* results would go to one of the two */
        recover_report_later(r, row->id);
        return true;
    }
    m->recovered = false;
    m->held = (*dirs & HOLD) != 0;
    if (guard_is_deadly(&r->spool->guard, row->id))
        r->damaged(r->damaged_context, row->id,
                   guard_reason(&r->spool->guard, row->id));
    else if (m->large && (*dirs & MESS) == 0)
        r->damaged(r->damaged_context, row->id, "the content is missing");
    else if ((*dirs & HOLD) == 0)
        r->found(r->found_context, &entry);
    return true;
}

/* A listing is outdated when its turn comes: files that do not make a whole message are
 * checked again before anything is concluded. */
static bool
is_doubtful(const struct recover *r, const struct recover_row *row)
{
    if (row->origin != START)
        return true;
    if (row->dirs == 0 && journaled_find(r->journaled, row->id) != NULL)
        return false;
    return (row->dirs & MESS) == 0 || (row->dirs & (QUEUED | INFO)) == 0;
}

/* True: there is no message in todo/, and nothing else to do. What cannot be removed is
 * not looked at again. */
static bool
is_junk_gone(struct recover *r, struct id id, unsigned *dirs)
{
    enum junk_fate fate = junk_remove_queued(r->spool, id);
    if (fate == JUNK_NONE)
        return false;
    if (fate == JUNK_STUCK)
        id_set_add(r->seen, id);
    *dirs &= ~(unsigned)QUEUED;
    /* The hourly sweep removes the content when it is old. */
    return (*dirs & ~(unsigned)(MESS | INTD)) == 0;
}

/* The state that the files of id show:
 *   in a foreign journal      not our business before that is adopted
 *   todo that is no message   removed (junk.h)
 *   in the journal            journaled; with S5 files: it was moving there
 *   END in the journal        ended, and its files were about to go
 *   todo or info, no mess     damage: mess is made first and removed last
 *   mess, todo                S4: due now
 *   mess, todo, info...       crashed between S4 and S5
 *   mess, info                S5: due when info says; an intd may be left from S4
 *   mess, intd or nothing     S2, S3: a daemon that died; an injector at work, or one
 *                             that died
 *   at work in crashes        quarantined, once it is clear which of these it is
 *   else                      left by a removal that crashed: only we make these files,
 *                             and they outlive todo and info in no other way */
static void
recover_examine(struct recover *r, const struct recover_row *row, bool marked)
{
    struct id id = row->id;
    unsigned dirs = row->dirs & ~(unsigned)DEFRAG;
    if (id_set_has(r->withheld, id) ||
        (row->origin != ASKED && id_set_has(r->seen, id)))
        return;
    if (id_set_has(&r->journaled->ended, id)) {
        remove_ended(r, id);
        return;
    }
    bool moved = journaled_find(r->journaled, id) != NULL;
    /* Until its END or MOVED the journal is the authority, whatever files there are. */
    if ((!moved && is_under_move(r, id)) ||
        (is_doubtful(r, row) && spool_dirs_of(r->spool, id, &dirs) < 0)) {
        recover_report_later(r, id);
        return;
    }
    if (recover_journaled(r, row, &dirs))
        return;
    if ((dirs & QUEUED) != 0 && is_junk_gone(r, id, &dirs))
        return;
    if ((dirs & MESS) == 0 && (dirs & (QUEUED | INFO)) != 0) {
        r->damaged(r->damaged_context, id, "the content is missing");
        return;
    }
    if ((dirs & QUEUED) != 0 && (dirs & (INFO | SCRAP)) != 0)
        dirs = settle_conflict(r, id, dirs);
    if ((dirs & (QUEUED | INFO)) != 0 && guard_is_deadly(&r->spool->guard, id)) {
        /* While MOVED is not durable the marks are in these files alone. */
        if (moved)
            report_in(r, id, MOVED_MS);
        else
            r->damaged(r->damaged_context, id, guard_reason(&r->spool->guard, id));
        return;
    }
    if (dirs == 0 || (row->origin == SCAN && (dirs & QUEUED) == 0))
        return;
    if ((dirs & (QUEUED | INFO)) == 0)
        remove_rest(r, id, dirs);
    else
        recover_report_one(r, id, dirs | (marked ? (unsigned)DEFRAG : 0));
}

/* Only S5 that is not held can have a marker in defrag/. */
static bool
may_be_marked(struct recover *r, struct id id)
{
    return journaled_find(r->journaled, id) == NULL &&
           spool_has(r->spool, SPOOL_INFO, id) && !spool_has(r->spool, SPOOL_HOLD, id);
}

static void
recover_one(struct recover *r, const struct recover_row *row)
{
    struct id before = guard_enter(&r->spool->guard, row->id);
    bool marked =
        (row->dirs & DEFRAG) != 0 ||
        (row->origin == ASKED && marker_has(r->spool, MARKER_AWAITING, row->id));
    recover_examine(r, row, marked);
    if (marked && !may_be_marked(r, row->id))
        marker_drop(r->spool, MARKER_AWAITING, row->id);
    guard_leave(&r->spool->guard, before);
}

/* --- Lists ----------------------------------------------------------------------- */

struct listing {
    struct recover *recover;
    const struct slices *slices;
};

static bool
recover_note_name(void *context, const char *name)
{
    struct listing *l = context;
    struct recover *r = l->recover;
    struct id id;
    r->seen_now++;
    if (!id_parse(text_from(name), &id))
        r->strange++;
    else if (r->names_origin != START && id_set_has(r->seen, id))
        r->idle++;
    else if (slices_have(l->slices, id))
        id_list_note(&r->names, id, SPOOL_BIT(r->dir));
    return true;
}

/* Lists some names of r->dir. 1: there are more; 0: these were the last; or -errno. */
static int
list_piece(struct recover *r, const struct slices *slices)
{
    struct spool *s = r->spool;
    struct listing l = {.recover = r, .slices = slices};
    int result = 0;
    if (r->listing == NULL) {
        r->strange = r->idle = 0;
        result = disk_listing_open(s->disk, spool_dir_name(r->dir), &r->listing);
    }
    if (result == 0)
        result = disk_listing_read(r->listing, NAMES_PER_TURN, recover_note_name, &l);
    if (result > 0)
        return result;
    disk_listing_close(&r->listing);
    id_list_sort(&r->names);
    if (result < 0)
        return spool_trouble(s, result, NULL, "list a directory");
    if (r->dir == SPOOL_TODO)
        junk_note_strange(s, r->strange);
    else
        spool_log_strange(s, r->dir, r->strange);
    return 0;
}

static void
drop_names(struct recover *r)
{
    disk_listing_close(&r->listing);
    id_list_free(&r->names);
    r->dir = 0;
    r->names_ready = false;
}

static void
names_complete(struct recover *r)
{
    r->dir = 0;
    r->names_ready = true;
    r->names_marked = true;
    r->names_next = r->names_asked = 0;
}

static void
recover_add_row(struct recover *r, struct recover_row row)
{
    if (r->next == r->count)
        r->next = r->count = 0;
    if (r->count == r->capacity) {
        r->capacity = r->capacity > 0 ? r->capacity * 2 : 64;
        r->rows = memory_resize(r->rows, r->capacity * sizeof(*r->rows));
    }
    r->rows[r->count++] = row;
}

static bool
is_of_pass(const struct recover *r, const struct id_list_row *row)
{
    return ((row->dirs & DEFRAG) != 0) == r->names_marked;
}

/* A crash is attributed to the message, as in all work on it. */
static bool
ask_due_time(struct recover *r, struct id id)
{
    struct id before = guard_enter(&r->spool->guard, id);
    bool asked = due_times_ask(&r->due, r->spool, id);
    guard_leave(&r->spool->guard, before);
    return asked;
}

/* Begins to read the due times of the names from names_next on. */
static void
ask_due_times(struct recover *r)
{
    due_times_drop(&r->due, r->spool);
    r->names_asked = r->names_next;
    for (bool more = true; more && r->names_asked < r->names.count;
         r->names_asked += more) {
        const struct id_list_row *row = &r->names.rows[r->names_asked];
        if (is_of_pass(r, row) && (row->dirs & INFO) != 0)
            more = ask_due_time(r, id_list_id(row));
    }
}

/* The next of the listed names: those with markers before all others. */
static bool
next_name(struct recover *r, struct recover_row *row)
{
    while (r->names_ready) {
        while (r->names_next < r->names.count) {
            if (r->names_next >= r->names_asked)
                ask_due_times(r);
            const struct id_list_row *found = &r->names.rows[r->names_next++];
            if (!is_of_pass(r, found))
                continue;
            *row = (struct recover_row){id_list_id(found), (enum origin)r->names_origin,
                                        found->dirs};
            return true;
        }
        if (!r->names_marked)
            drop_names(r);
        r->names_marked = false;
        r->names_next = r->names_asked = 0;
    }
    return false;
}

static bool
next_row(struct recover *r, struct recover_row *row)
{
    if (r->next == r->count)
        return next_name(r, row);
    *row = r->rows[r->next++];
    return true;
}

static bool
has_rows(const struct recover *r)
{
    return r->next < r->count || r->names_ready;
}

bool
recover_has_found_all(const struct recover *r)
{
    return r->listed && !has_rows(r) && r->later_count == 0;
}

/* Messages of the slices that are listed now: one of another slice, which a failed call has
 * left to be reported later, would seem to have no files. */
static void
recover_note_journaled(struct recover *r)
{
    struct journaled_message *m, *next;
    HASH_ITER (hh, r->journaled->messages, m, next)
        if (m->recovered && slices_have(&r->wanted, m->id))
            id_list_note(&r->names, m->id, 0);
    id_list_sort(&r->names);
}

/* Lists some names, so that clients are served meanwhile. False: the disk failed.
 * Listing begins anew then, because a partial listing must not be judged. */
static bool
list_some(struct recover *r)
{
    int more = 0;
    r->names_origin = START;
    if (r->dir == 0) {
        recover_note_journaled(r);
        r->dir = SPOOL_TODO;
    }
    r->seen_now = 0;
    /* mess/ is last: a message of todo/ is never seen before its content is. */
    while (r->dir <= SPOOL_MESS && r->seen_now < NAMES_PER_TURN) {
        more = list_piece(r, &r->wanted);
        if (more < 0) {
            drop_names(r);
            return false;
        }
        if (more == 0)
            r->dir++;
    }
    r->listed = r->dir > SPOOL_MESS;
    if (r->listed) {
        memset(r->wanted.has, 0, sizeof(r->wanted.has));
        names_complete(r);
    }
    return true;
}

/* Lists some of todo/, for mail of injectors. */
static bool
list_queued(struct recover *r)
{
    if (r->listing == NULL)
        r->rescan = false; /* a trigger from now on means another scan */
    r->names_origin = SCAN;
    r->dir = SPOOL_TODO;
    int more = list_piece(r, r->slices);
    if (more < 0) {
        drop_names(r);
        r->rescan = true;
    } else if (more == 0) {
        names_complete(r);
    }
    return more >= 0;
}

/* --- In slices ------------------------------------------------------------------- */

static void
take_later(struct recover *r)
{
    for (size_t i = 0; i < r->later_count; i++)
        recover_add_row(r, (struct recover_row){.id = r->later[i], .origin = ASKED});
    r->later_count = 0;
}

static bool
make_list(struct recover *r)
{
    if (*r->blocked || r->names_ready)
        return true;
    if (!r->listed)
        return list_some(r);
    if (r->next < r->count || (!r->rescan && r->listing == NULL))
        return true;
    return list_queued(r);
}

static void
tell_junk(void *context)
{
    struct recover *r = context;
    int64_t wait_ms = junk_tell(r->spool, loop_now_ms(r->loop));
    if (wait_ms > 0)
        loop_timer_start(r->loop, &r->tell, wait_ms, tell_junk, r);
}

static void
recover_work(void *context)
{
    struct recover *r = context;
    struct recover_row row;
    if (!heap_has(&r->again.node))
        take_later(r);
    bool good = make_list(r);
    uint64_t bytes_max = r->spool->bytes_read + BYTES_PER_TURN;
    uint64_t syncs_max = r->spool->syncs + SYNCS_PER_TURN;
    for (unsigned i = 0; i < PER_TURN && r->spool->bytes_read < bytes_max &&
                         r->spool->syncs < syncs_max && next_row(r, &row);
         i++)
        recover_one(r, &row);
    due_times_drop(&r->due, r->spool);
    r->names_asked = r->names_next;
    if (!good)
        loop_timer_start(r->loop, &r->again, AGAIN_MS, recover_work, r);
    /* Every id has been judged, so no file of an ended message is left to be found. */
    if (r->listed && !has_rows(r))
        journaled_forget_ended(r->journaled);
    bool more = good && !*r->blocked && (r->rescan || !r->listed || r->listing != NULL);
    if (has_rows(r) || more)
        loop_post(r->loop, &r->task, recover_work, r);
    else if (!heap_has(&r->tell.node))
        tell_junk(r);
}

void
recover_report(struct recover *r, struct id id)
{
    recover_add_row(r, (struct recover_row){.id = id, .origin = ASKED});
    loop_post(r->loop, &r->task, recover_work, r);
}

void
recover_report_later(struct recover *r, struct id id)
{
    report_in(r, id, AGAIN_MS);
}

/* --- Mail of injectors ------------------------------------------------------------ */

struct recover_trigger {
    struct recover *recover;
    int fifo;
    struct loop_watch *watch;
    struct recover_trigger *next;
};

static void
watch_triggers(struct recover *r, int events)
{
    struct recover_trigger *t;
    LL_FOREACH (r->triggers, t)
        loop_watch_set(t->watch, events);
}

static void
scan_soon(struct recover *r)
{
    r->rescan = true;
    loop_post(r->loop, &r->task, recover_work, r);
}

static void
on_scan(void *context)
{
    struct recover *r = context;
    loop_timer_start(r->loop, &r->scan, SCAN_MS, on_scan, r);
    scan_soon(r);
}

static void
recover_on_pause_over(void *context)
{
    struct recover *r = context;
    watch_triggers(r, LOOP_READ);
}

/* Names that stay in todo/ must not be listed ten times a second. */
static int64_t
pause_after(const struct recover *r)
{
    int64_t wait_ms = PAUSE_MS + (int64_t)((r->idle + r->strange) / IDLE_PER_MS);
    return wait_ms < PAUSE_MAX_MS ? wait_ms : PAUSE_MAX_MS;
}

/* The trigger is emptied before the scan, like qmail's re-open. A byte that comes later
 * means another scan; its link was there before it. */
static void
on_trigger(void *context, int events)
{
    struct recover_trigger *t = context;
    struct recover *r = t->recover;
    char bytes[TRIGGER_DRAIN];
    (void)events;
    (void)!disk_read(r->spool->disk, t->fifo, 0, bytes, sizeof(bytes));
    watch_triggers(r, 0);
    loop_timer_start(r->loop, &r->pause, pause_after(r), recover_on_pause_over, r);
    scan_soon(r);
}

static int
open_trigger(struct recover *r, unsigned slice)
{
    char path[SPOOL_PATH_MAX];
    spool_trigger_path(r->slices->count, slice, path);
    int fifo = spool_make_trigger(r->spool, path);
    if (fifo == 0)
        fifo = disk_open_fifo(r->spool->disk, path);
    if (fifo < 0)
        return fifo;
    struct recover_trigger *t = memory_new(sizeof(*t));
    *t = (struct recover_trigger){.recover = r, .fifo = fifo};
    t->watch = loop_watch_new(r->loop, fifo, LOOP_READ, on_trigger, t);
    LL_PREPEND(r->triggers, t);
    return 0;
}

void
recover_go_on(struct recover *r)
{
    loop_post(r->loop, &r->task, recover_work, r);
}

int
recover_add_slice(struct recover *r, unsigned slice)
{
    int result = open_trigger(r, slice);
    if (result < 0)
        return result;
    /* From the first directory on, so that moving messages are found, too. */
    if (r->listing != NULL && r->names_origin == SCAN)
        r->rescan = true;
    if (!r->names_ready)
        drop_names(r);
    slices_add(&r->wanted, slice);
    r->listed = false;
    recover_go_on(r);
    return 0;
}

int
recover_start(struct recover *r)
{
    assert(r->spool != NULL && r->found != NULL && r->slices != NULL);
    r->wanted = *r->slices;
    r->again.fire = recover_work;
    int result = open_trigger(r, r->slices->own);
    if (result < 0)
        return result;
    loop_timer_start(r->loop, &r->scan, SCAN_MS, on_scan, r);
    recover_go_on(r);
    return 0;
}

void
recover_stop(struct recover *r)
{
    struct recover_trigger *t, *next;
    LL_FOREACH_SAFE (r->triggers, t, next) {
        loop_watch_free(&t->watch);
        disk_close_file(r->spool->disk, t->fifo);
        loop_release(r->loop, free, t);
    }
    r->triggers = NULL;
    loop_timer_stop(r->loop, &r->scan);
    loop_timer_stop(r->loop, &r->pause);
    loop_timer_stop(r->loop, &r->again);
    loop_timer_stop(r->loop, &r->tell);
    loop_unpost(r->loop, &r->task);
    drop_names(r);
    free(r->rows);
    free(r->later);
}
