/* The commands of operators and of the manager for queued messages; health. */
#include "queue/queue_operator.h"

#include "queue/queue_internal.h"
#include "queue/spool/spool_corrupt.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { QUARANTINE_REASON_MAX = 480 }; /* fits a note */

int
queue_hold(struct queue *q, const struct envelope *e, const char *reason, bool durable)
{
    struct journaled_message *m = journaled_find(&q->journaled, e->id);
    /* Its END must remove hold/ID from now on. */
    if (m != NULL)
        m->held = true;
    int file = spool_write_new(&q->spool, SPOOL_HOLD, e->id, text_from(reason), true);
    if (file < 0)
        return file;
    /* A route holds the message again after a crash; an operator does not. */
    int result = durable ? spool_sync(&q->spool, file, &e->id) : 0;
    disk_close_file(q->spool.disk, file);
    queue_changed(q, e->id);
    return result;
}

static void
quarantine(struct queue *q, struct id id, const char *reason)
{
    if (marks_are_moving(&q->marks, id)) {
        recover_report_later(&q->recover, id);
        return;
    }
    char why[QUARANTINE_REASON_MAX];
    snprintf(why, sizeof(why), "%s", reason);
    /* Without its marks a release would deliver again. */
    bool yields = marks_yield(&q->marks, id, why, sizeof(why));
    struct journaled_message *m = journaled_find(&q->journaled, id);
    if (!yields || (m != NULL && journaled_quarantine(&q->journaled, m, why) < 0)) {
        recover_report_later(&q->recover, id);
        return;
    }
    if (m == NULL)
        spool_quarantine(&q->spool, id, why, loop_now_ms(q->loop));
    else
        (void)journaled_end(&q->journaled, m, RECORD_MOVED);
    /* A message that could not be moved must not be found again by every scan. */
    if (spool_has(&q->spool, SPOOL_TODO, id))
        id_set_add(&q->seen, id);
    else
        id_set_remove(&q->seen, id);
    if (!spool_has(&q->spool, SPOOL_TODO, id) && !spool_has(&q->spool, SPOOL_INFO, id))
        guard_forget(&q->spool.guard, id);
}

void
queue_quarantine(struct queue *q, struct id id, const char *reason)
{
    struct id before = queue_enter(q, id);
    quarantine(q, id, reason);
    queue_leave(q, before);
}

int
queue_release(struct queue *q, struct id id)
{
    if (queue_may_be_withheld(q, id))
        return -EAGAIN;
    struct journaled_message *m = journaled_find(&q->journaled, id);
    int result = release_held(&q->spool, id);
    bool is_held = result != -ENOENT;
    if (!is_held)
        result = release_quarantined(&q->spool, id);
    if (result != 0)
        return result;
    /* Else recovery would quarantine it again. */
    guard_forget(&q->spool.guard, id);
    if (is_held && m != NULL)
        m->held = false;
    queue_changed(q, id);
    /* The caller knows the message: a scan of todo/ need not report it. */
    if (!is_held && spool_has(&q->spool, SPOOL_TODO, id))
        id_set_add(&q->seen, id);
    return 0;
}

int
queue_keep_release(struct queue *q, const struct envelope *e)
{
    queue_changed(q, e->id);
    if (e->storage.preprocessed)
        return spool_keep_release(&q->spool, e);
    if (!e->storage.in_todo)
        return 0;
    int result = marker_put(&q->spool, MARKER_RELEASED, e->id);
    return result < 0 ? result : marker_sync(&q->spool, MARKER_RELEASED);
}

int
queue_note(struct queue *q, struct id id, enum queue_place place,
           char note[QUEUE_NOTE_MAX])
{
    assert((int)QUEUE_NOTE_MAX == (int)RELEASE_NOTE_MAX);
    return release_note(&q->spool, place == QUEUE_HOLD ? SPOOL_HOLD : SPOOL_CORRUPT, id,
                        note);
}

/* A message that is being accepted or that ends already is none to others. */
static bool
is_removable(const struct queue *q, struct id id)
{
    return !queue_is_no_message(q, id) && !queue_may_be_withheld(q, id) &&
           !commits_have(&q->commits, id);
}

/* A file in mess/ that the end of a message has left behind, at a crash, is no message. */
bool
queue_lacks(struct queue *q, struct id id)
{
    unsigned dirs = 0;
    char note[QUEUE_NOTE_MAX];
    return journaled_find(&q->journaled, id) == NULL && !queue_may_be_withheld(q, id) &&
           !commits_have(&q->commits, id) && !marks_are_moving(&q->marks, id) &&
           spool_dirs_of(&q->spool, id, &dirs) == 0 &&
           (dirs & (SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO))) == 0 &&
           queue_note(q, id, QUEUE_CORRUPT, note) == -ENOENT;
}

/* Files in corrupt/ go, too: the operator wants to be rid of it. */
bool
queue_remove(struct queue *q, struct id id)
{
    if (!is_removable(q, id))
        return false;
    /* It is being moved, and ends after that. */
    if (marks_forget(&q->marks, id))
        return true;
    unsigned dirs = 0;
    bool found = spool_erase_corrupt(&q->spool, id);
    if (journaled_find(&q->journaled, id) == NULL &&
        (spool_dirs_of(&q->spool, id, &dirs) < 0 || dirs == 0))
        return found;
    queue_end(q, id, SPOOL_ANYWHERE);
    return true;
}

void
queue_disown(struct queue *q, struct id id)
{
    if (q->journaled.journal != NULL)
        (void)journal_end_refused(q->journaled.journal, id, NULL);
    (void)queue_remove(q, id);
}

bool
queue_remove_listed(struct queue *q, struct id id)
{
    if (!is_removable(q, id))
        return false;
    if (marks_forget(&q->marks, id))
        return true;
    if (journaled_find(&q->journaled, id) == NULL &&
        !spool_has(&q->spool, SPOOL_INFO, id) && !spool_has(&q->spool, SPOOL_TODO, id))
        return false;
    queue_end(q, id, SPOOL_ANYWHERE);
    return true;
}

size_t
queue_removals(const struct queue *q)
{
    assert((int)QUEUE_REMOVALS_MAX == (int)REMOVAL_MAX);
    return removal_count(&q->removal);
}

int
queue_each(struct queue *q,
           bool (*each)(void *context, struct id id, enum queue_place place),
           void *context)
{
    queue_read_journals(q);
    return queue_listing_each(&q->spool, &q->journaled, each, context);
}

/* --- Health ----------------------------------------------------------------------- */

void
queue_check_disk(struct queue *q)
{
    assert(q->share.lock >= 0); /* a daemon */
    q->filesystem_check = (struct filesystem_check){
        .disk = q->spool.disk, .log = q->spool.log, .loop = q->loop};
    filesystem_check_start(&q->filesystem_check);
    space_check(&q->drafts.space, q->journaled.journal != NULL);
}

void
queue_describe_space(const struct queue *q, char out[QUEUE_SPACE_MAX])
{
    assert((int)QUEUE_SPACE_MAX == (int)SPACE_TEXT_MAX);
    space_describe(&q->drafts.space, out);
}

struct queue_health
queue_health(struct queue *q)
{
    struct queue_health health = {.stored = q->commits.stored + q->picked_up,
                                  .retired = q->retired,
                                  .quarantined = q->spool.quarantined,
                                  .syncs = q->spool.syncs,
                                  .journaled = HASH_COUNT(q->journaled.messages),
                                  .unsafe = q->filesystem_check.unsafe,
                                  .damages = q->journaled.damages};
    health.sync_blocks = disk_sync_way(q->spool.disk) == DISK_SYNC_BLOCKS;
    if (q->journaled.journal != NULL) {
        struct journal_figures figures = journal_figures(q->journaled.journal);
        health.segments = figures.segments;
        health.free_segments = figures.free_segments;
        health.batches = figures.batches;
        health.syncs += figures.syncs;
        health.journal_full = figures.full;
    }
    drafts_health(&q->drafts, &health);
    health.accepting = health.reason[0] == '\0';
    return health;
}

bool
queue_has_found_all(const struct queue *q)
{
    return recover_has_found_all(&q->recover);
}

uint64_t
queue_bytes_read(const struct queue *q)
{
    return q->spool.bytes_read;
}

struct queue_apart
queue_count_apart(struct queue *q)
{
    q->apart.spool = &q->spool;
    q->apart.loop = q->loop;
    return queue_apart_count(&q->apart);
}

/* --- Counts of hold/ and corrupt/ ------------------------------------------------ */

enum {
    /* Times of files are as exact as the kernel's ticks: a directory that has just
     * changed may change again without another time. */
    APART_SETTLED_MS = 100,
    APART_TRUSTED_MS = 60 * 1000 /* the disk's clock may be another one */
};

static bool
apart_count_held(void *context, const char *name)
{
    struct queue_apart *apart = context;
    struct id id;
    if (!id_parse(text_from(name), &id))
        return true;
    apart->held++;
    if (apart->oldest_held_ms == 0 || (int64_t)id.time_ms < apart->oldest_held_ms)
        apart->oldest_held_ms = (int64_t)id.time_ms;
    return true;
}

/* Each message has a note; other names are bytes of a damaged journal. */
static bool
apart_count_quarantined(void *context, const char *name)
{
    struct queue_apart *apart = context;
    struct id id;
    apart->quarantined +=
        spool_corrupt_id(name, &id) && strcmp(name + ID_LENGTH, ".note") == 0;
    return true;
}

static bool
apart_is_current(const struct queue_apart_directory *d, int64_t changed_ms,
                 int64_t now_ms)
{
    return d->is_counted && d->changed_ms == changed_ms &&
           d->changed_ms < d->counted_ms - APART_SETTLED_MS &&
           now_ms >= d->counted_ms && now_ms - d->counted_ms < APART_TRUSTED_MS;
}

static void
apart_begin(struct queue_apart_count *c, struct queue_apart_directory *d,
            enum spool_dir dir)
{
    const char *name = spool_dir_name(dir);
    struct disk_info info;
    int64_t now_ms = loop_now_ms(c->loop);
    if (disk_inspect(c->spool->disk, name, &info) != 0 ||
        apart_is_current(d, info.changed_ms, now_ms) ||
        disk_listing_open(c->spool->disk, name, &d->listing) != 0)
        return;
    d->next = (struct queue_apart){0};
    d->next_changed_ms = info.changed_ms;
    d->next_counted_ms = now_ms;
}

/* True: there is more. A directory with an error counts as far as it was read. */
static bool
apart_read(struct queue_apart_directory *d, size_t most,
           bool (*each)(void *context, const char *name))
{
    if (d->listing == NULL)
        return false;
    if (disk_listing_read(d->listing, most, each, &d->next) > 0)
        return true;
    disk_listing_close(&d->listing);
    d->is_counted = true;
    d->result = d->next;
    d->changed_ms = d->next_changed_ms;
    d->counted_ms = d->next_counted_ms;
    return false;
}

static void
apart_read_on(void *context)
{
    struct queue_apart_count *c = context;
    bool more = apart_read(&c->held, QUEUE_APART_STEP, apart_count_held);
    more = apart_read(&c->corrupt, QUEUE_APART_STEP, apart_count_quarantined) || more;
    if (more)
        loop_post(c->loop, &c->task, apart_read_on, c);
}

static void
apart_ask(struct queue_apart_count *c, struct queue_apart_directory *d,
          enum spool_dir dir, bool (*each)(void *context, const char *name))
{
    if (d->listing != NULL)
        return; /* apart_read_on() reads it */
    apart_begin(c, d, dir);
    if (apart_read(d, QUEUE_APART_STEP, each))
        loop_post(c->loop, &c->task, apart_read_on, c);
}

static const struct queue_apart *
apart_known(const struct queue_apart_directory *d)
{
    return d->is_counted ? &d->result : &d->next;
}

static bool
apart_is_partial(const struct queue_apart_directory *d)
{
    return !d->is_counted && d->listing != NULL;
}

struct queue_apart
queue_apart_count(struct queue_apart_count *c)
{
    apart_ask(c, &c->held, SPOOL_HOLD, apart_count_held);
    apart_ask(c, &c->corrupt, SPOOL_CORRUPT, apart_count_quarantined);
    struct queue_apart apart = *apart_known(&c->held);
    apart.quarantined = apart_known(&c->corrupt)->quarantined;
    apart.is_partial = apart_is_partial(&c->held) || apart_is_partial(&c->corrupt);
    return apart;
}

void
queue_apart_stop(struct queue_apart_count *c)
{
    if (c->loop != NULL)
        loop_unpost(c->loop, &c->task);
    disk_listing_close(&c->held.listing);
    disk_listing_close(&c->corrupt.listing);
}
