/* The front door of the queue: opens the directories, passes messages between them. */
#include "queue/queue.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/envelope/envelope_form.h"
#include "base/event/event.h"
#include "queue/queue_internal.h"
#include "queue/spool/spool_form.h"
#include "queue/spool/injected.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { FILLING_PART = 4 /* of the journal */ };

/* --- Events from the directories ---------------------------------------------------*/

/* Nobody waits for this durable message any more: it is reported as one that was
 * found. */
static void
on_orphan(void *context, struct id id)
{
    struct queue *q = context;
    if (q->own_loop == NULL)
        recover_report(&q->recover, id);
}

static void
on_damaged(void *context, struct id id, const char *reason)
{
    queue_quarantine(context, id, reason);
}

static bool
queue_is_moving(void *context, struct id id)
{
    const struct queue *q = context;
    return marks_are_moving(&q->marks, id);
}

/* A listing is older than what this process has begun since. */
static bool
queue_is_at_work(void *context, struct id id)
{
    const struct queue *q = context;
    return drafts_have(&q->drafts, id) || removal_have(&q->removal, id);
}

void
queue_end(struct queue *q, struct id id, unsigned dirs)
{
    struct journaled_message *m = journaled_find(&q->journaled, id);
    if (q->copier.context != NULL)
        q->copier.ended(q->copier.context, id);
    if (id_set_has(&q->share.made, id)) {
        id_set_remove(&q->share.made, id);
        marker_drop(&q->spool, MARKER_REASSEMBLED, id);
    }
    /* The slice was taken over: its next daemon does not read the END in our
     * journal. */
    if (m == NULL && !share_is_own(&q->share, id)) {
        removal_end_foreign(&q->removal, id);
    } else if (m == NULL) {
        q->last_end = removal_end(&q->removal, id, dirs);
    } else {
        /* A message of the journal has no other files. */
        bool has_files = m->large || m->held;
        q->last_end = journaled_end(&q->journaled, m, RECORD_END);
        if (has_files)
            removal_add(&q->removal, id, q->last_end);
    }
}

static void
queue_on_ended(void *context, struct id id)
{
    queue_end(context, id, SPOOL_ANYWHERE);
}

static void
queue_on_found(void *context, const struct queue_entry *entry)
{
    struct queue *q = context;
    if (q->copier.context != NULL)
        q->copier.found(q->copier.context, entry->id);
    q->found(q->found_context, entry);
}

void
queue_changed(struct queue *q, struct id id)
{
    if (q->copier.context != NULL)
        q->copier.changed(q->copier.context, id);
}

static void
queue_on_changed(void *context, struct id id)
{
    queue_changed(context, id);
}

static void
on_moved(void *context)
{
    queue_barriers_wake(context);
}

static void
on_settled(void *context, uint64_t batch, int error)
{
    struct queue *q = context;
    uint64_t again = error < 0 ? journal_again(q->journaled.journal) : 0;
    if (error == 0)
        q->durable_batch = batch;
    queue_barriers_settled(q, again);
    journaled_settled(&q->journaled, batch, error);
    commits_settled(&q->commits, batch, error, again);
    removal_settled(&q->removal, batch, error, again);
}

/* Segments are recycled oldest first, so every message up to this sequence must leave
 * its segment. Mail of a slow site needs no files: it is copied to the end of the
 * journal, unless copies alone would fill it again. Mail whose batch is not durable is no
 * message yet: files would make it one, also when its client hears 451. */
static bool
on_crowded(void *context, uint64_t sequence)
{
    struct queue *q = context;
    struct journaled_message *m, *next;
    bool all = true;
    HASH_ITER (hh, q->journaled.messages, m, next) {
        if (m->place.sequence > sequence || marks_are_moving(&q->marks, m->id))
            continue;
        if (m->is_new)
            all = false;
        else if (queue_is_filling(q) || !journaled_copy(&q->journaled, m))
            marks_move(&q->marks, m->id);
    }
    return all;
}

static void
on_space(void *context)
{
    struct queue *q = context;
    commits_resume(&q->commits);
}

/* Before a segment is recycled: files that its ENDs have removed must not come back. */
static void
checkpoint(void *context)
{
    struct queue *q = context;
    if (!q->checkpointing || !removal_are_removed(&q->removal, q->checkpoint_batch))
        return;
    q->checkpointing = false;
    /* A file that comes back elsewhere is no message, and recovery removes it. */
    int result =
        spool_sync_dirs(&q->spool, SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO) |
                                       SPOOL_BIT(SPOOL_MESS));
    journal_checkpointed(q->journaled.journal, result);
}

static void
on_removed(void *context)
{
    checkpoint(context);
    queue_barriers_wake(context);
}

static void
on_checkpoint(void *context)
{
    struct queue *q = context;
    q->checkpointing = true;
    q->checkpoint_batch = q->durable_batch;
    checkpoint(q);
}

/* --- Open and close -------------------------------------------------------------- */

static void
start_modules(struct queue *q)
{
    bool synchronous = q->own_loop != NULL;
    q->removal = (struct removal){.spool = &q->spool,
                                  .journaled = &q->journaled,
                                  .seen = &q->seen,
                                  .loop = q->loop,
                                  .removed = on_removed,
                                  .context = q};
    q->drafts = (struct drafts){.spool = &q->spool,
                                .loop = q->loop,
                                .settings = q->settings,
                                .synchronous = synchronous};
    q->commits = (struct commits){.spool = &q->spool,
                                  .loop = q->loop,
                                  .seen = &q->seen,
                                  .journaled = &q->journaled,
                                  .removal = &q->removal,
                                  .synchronous = synchronous,
                                  .copier = &q->copier,
                                  .withdrawn = queue_on_ended,
                                  .orphaned = on_orphan,
                                  .context = q};
    q->marks = (struct marks){.spool = &q->spool,
                              .loop = q->loop,
                              .seen = &q->seen,
                              .journaled = &q->journaled,
                              .synchronous = synchronous,
                              .in_use = q->settings.in_use,
                              .ended = queue_on_ended,
                              .changed = queue_on_changed,
                              .damaged = on_damaged,
                              .moved = on_moved,
                              .context = q};
    q->contents = (struct contents){.spool = &q->spool, .journaled = &q->journaled};
    q->journaled = (struct journaled){
        .spool = &q->spool, .loop = q->loop, .directory = q->share.journal};
    drafts_start(&q->drafts);
    /* The marks first, so that their records go with this turn's sync. */
    marks_start(&q->marks);
    commits_start(&q->commits);
    contents_start(&q->contents);
}

/* Marks become records before the journal writes its last batch, and removals wait for
 * the END records in it. */
static void
stop_modules(struct queue *q)
{
    queue_barriers_stop(q);
    queue_apart_stop(&q->apart);
    drafts_stop(&q->drafts);
    load_check_stop(&q->check);
    if (q->check.stage == LOAD_CHECK_UNWANTED)
        disk_sync_wait(q->spool.disk);
    marks_stop(&q->marks);
    removal_hurry(&q->removal);
    journaled_close(&q->journaled);
    commits_stop(&q->commits);
    removal_stop(&q->removal);
    contents_stop(&q->contents);
    id_set_free(&q->seen);
}

static void
begin_share(struct queue *q, const struct queue_settings *settings)
{
    q->settings = *settings;
    if (q->settings.slices == 0)
        q->settings.slices = 1;
    q->share = (struct share){.spool = &q->spool,
                              .loop = q->loop,
                              .recover = &q->recover,
                              .settings = &q->settings};
    share_init(&q->share);
}

static bool
is_daemon(const struct queue *q)
{
    return q->share.lock >= 0;
}

static int
open_journal(struct queue *q, char *error, size_t error_size)
{
    const struct queue_settings *s = &q->settings;
    if (s->journal_size <= 0)
        return 0;
    int64_t size = space_journal(&q->drafts.space, s->journal_size, s->slices);
    struct journal_settings settings =
        journal_divide(q->share.journal, size, s->journal_segment);
    struct journal_events events = {
        .context = q, .settled = on_settled, .crowded = on_crowded, .space = on_space};
    if (journaled_open(&q->journaled, &settings, &events, error, error_size) < 0)
        return EX_CANTCREAT;
    q->durable_batch = journal_number(q->journaled.journal); /* it was read */
    journal_on_checkpoint(q->journaled.journal, on_checkpoint, q);
    size_t payload = journal_payload_max(q->journaled.journal);
    int64_t content = s->journal_message_max > 0 ? s->journal_message_max : 1;
    /* Leaves space for an envelope beside it. */
    q->drafts.memory_max =
        content < (int64_t)payload * 3 / 4 ? (size_t)content : payload * 3 / 4;
    return 0;
}

static int
start_recovery(struct queue *q, queue_found *found, void *context, char *error,
               size_t error_size)
{
    const struct queue_settings *settings = &q->settings;
    q->found = found;
    q->found_context = context;
    q->recover = (struct recover){.spool = &q->spool,
                                  .loop = q->loop,
                                  .seen = &q->seen,
                                  .journaled = &q->journaled,
                                  .slices = &q->share.slices,
                                  .blocked = &q->share.blocked,
                                  .withheld = &q->share.withheld,
                                  .found = queue_on_found,
                                  .found_context = q,
                                  .is_moving = queue_is_moving,
                                  .is_at_work = queue_is_at_work,
                                  .context = q,
                                  .damaged = on_damaged,
                                  .damaged_context = q};
    q->clean = (struct clean){.spool = &q->spool,
                              .loop = q->loop,
                              .journaled = &q->journaled,
                              .seen = &q->seen,
                              .removal = &q->removal,
                              .slices = &q->share.slices,
                              .careful = &q->share.careful,
                              .suspect = on_orphan,
                              .context = q};
    int result = recover_start(&q->recover);
    if (result < 0) {
        snprintf(error, error_size, "spool %s: cannot open its trigger in lock/: %s",
                 settings->spool, strerror(-result));
        return EX_CANTCREAT;
    }
    clean_start(&q->clean);
    return 0;
}

static void
queue_free(struct queue *q)
{
    free(q->journals.rows);
    guard_stop(&q->spool.guard);
    guard_close(&q->spool.guard);
    if (is_daemon(q))
        share_stop(&q->share);
    share_unlock(&q->share);
    spool_close(&q->spool);
    free(q);
}

/* The slice is ours, and the spool is not a newer version's. */
static int
queue_take_spool(struct queue *q, char *error, size_t error_size)
{
    char part[SLICES_SUFFIX_MAX];
    int code = share_lock(&q->share, error, error_size);
    slices_part(q->settings.slices, q->settings.slice, part);
    return code != 0 ? code
                     : spool_form_raise(q->spool.disk, envelope_form(), part, error,
                                        error_size);
}

/* The order is that of doc/dev/queue.md "Recovery": the lock, the guard, journals of other
 * daemons, our own journal, then the files. */
int
queue_open(struct queue **queue, struct loop *loop, struct log *log,
           const struct queue_settings *settings, queue_found *found, void *context,
           char *error, size_t error_size)
{
    struct queue *q = memory_new(sizeof(*q));
    q->loop = loop;
    begin_share(q, settings);
    *queue = NULL;
    if (spool_open(&q->spool, settings->spool, false, log, error, error_size) < 0) {
        free(q);
        return EX_CANTCREAT;
    }
    int code = queue_take_spool(q, error, error_size);
    if (code != 0) {
        queue_free(q);
        return code;
    }
    q->spool.loop = loop;
    q->spool.gate = event_hub_gate(settings->events);
    q->spool.is_local = settings->is_local;
    q->spool.is_local_context = context;
    guard_open(&q->spool.guard, q->spool.disk, log, q->settings.slices,
               q->settings.slice);
    share_adopt(&q->share);
    if (!q->settings.sync_blocks)
        (void)disk_sync_on(q->spool.disk, loop);
    start_modules(q);
    q->marks.in_use_context = context;
    code = open_journal(q, error, error_size);
    if (code == 0)
        code = start_recovery(q, found, context, error, error_size);
    if (code != 0) {
        stop_modules(q);
        queue_free(q);
        return code;
    }
    *queue = q;
    return 0;
}

int
queue_open_injector(struct queue **queue, struct log *log,
                    const struct queue_settings *settings, char *error,
                    size_t error_size)
{
    struct queue *q = memory_new(sizeof(*q));
    begin_share(q, settings);
    *queue = NULL;
    if (spool_open(&q->spool, settings->spool, true, log, error, error_size) < 0) {
        free(q);
        return EX_CANTCREAT;
    }
    q->loop = q->own_loop = loop_new();
    loop_turn(q->loop, 0);
    start_modules(q);
    *queue = q;
    return 0;
}

bool
queue_has_daemon(struct queue *q)
{
    /* Does not try the lock: a daemon that starts meanwhile would find it taken. Only
     * the daemon reads the trigger, so an open reader shows that it runs. */
    char path[SPOOL_PATH_MAX];
    spool_trigger_path(q->settings.slices, q->settings.slice, path);
    return is_daemon(q) || disk_pull_fifo(q->spool.disk, path) == 0;
}

bool
queue_is_busy(const struct queue *q)
{
    return !marks_are_quiet(&q->marks) || !commits_are_quiet(&q->commits);
}

void
queue_close(struct queue **queue)
{
    struct queue *q = *queue;
    if (q == NULL)
        return;
    *queue = NULL;
    if (is_daemon(q)) {
        share_stop(&q->share);
        clean_stop(&q->clean);
        filesystem_check_stop(&q->filesystem_check);
        recover_stop(&q->recover);
    }
    stop_modules(q);
    if (q->own_loop != NULL)
        loop_free(&q->own_loop);
    queue_free(q);
}

/* --- Accepting ------------------------------------------------------------------- */

static bool
queue_can_copy(const struct queue *q, struct outcome *refusal)
{
    return q->copier.context == NULL || q->copier.admits(q->copier.context, refusal);
}

static struct queue_draft *
queue_begin_draft(struct queue *q, int64_t size_expected, bool own,
                  struct outcome *refusal)
{
    if (q->own_loop != NULL)
        loop_turn(q->own_loop, 0); /* updates the clock: no other turns come */
    if (!own && !queue_can_copy(q, refusal))
        return NULL;
    return draft_begin(&q->drafts, size_expected, own, refusal);
}

bool
queue_admits(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    if (q->own_loop != NULL)
        loop_turn(q->own_loop, 0); /* updates the clock: no other turns come */
    return queue_can_copy(q, refusal) &&
           drafts_admit(&q->drafts, size_expected, false, refusal);
}

struct queue_draft *
queue_begin(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    return queue_begin_draft(q, size_expected, false, refusal);
}

struct queue_draft *
queue_begin_own(struct queue *q, int64_t size_expected, struct outcome *refusal)
{
    return queue_begin_draft(q, size_expected, true, refusal);
}

void
queue_commit(struct queue_draft **draft, struct envelope **e, queue_stored *stored,
             void *context)
{
    struct queue *q = memory_container((*draft)->drafts, struct queue, drafts);
    commits_add(&q->commits, draft, e, stored, context);
}

bool
queue_is_lost(const struct queue *q)
{
    return q->spool.holder.is_lost;
}

bool
queue_is_storing(const struct queue *q)
{
    return commits_are_under_way(&q->commits);
}

void
queue_each_taken(struct queue *q, size_t most,
                 void (*each)(void *context, const char *came, struct id id),
                 void *context)
{
    journaled_each_taken(&q->journaled, most, each, context);
}

void
queue_each_posted(struct queue *q, size_t most,
                  void (*each)(void *context, const char *mark, struct id id),
                  void *context)
{
    journaled_each_posted(&q->journaled, most, each, context);
}

void
queue_commit_begin(struct queue *q)
{
    assert(q->own_loop != NULL);
    q->commits.gathers = true;
}

void
queue_commit_end(struct queue *q)
{
    commits_gathered(&q->commits);
}

void
queue_commit_ignore(struct queue *q, void *context)
{
    commits_ignore(&q->commits, context);
}

/* --- Mail of sendmail(1), when the daemon has read it for the first time --------- */

enum { PICKUP_HEAD_MAX = 4096 /* where Message-ID and tag are looked for */ };

static void
read_names(struct queue *q, const struct envelope *e, struct injected_names *names)
{
    char head[PICKUP_HEAD_MAX];
    int content = queue_content_open(q, e);
    int64_t got =
        content >= 0 ? queue_content_read(q, content, 0, head, sizeof(head)) : 0;
    injected_read_names(e->prefix, text_of(head, got > 0 ? (size_t)got : 0), names);
    if (content >= 0)
        queue_content_close(q, content);
}

static void
tell_pickup(struct queue *q, const struct envelope *e, struct text message_id)
{
    struct event_origin origin = {.tag = e->tag};
    q->picked_up++;
    event_tell(q->settings.events, &(struct event){.kind = EVENT_SUBMITTED,
                                                   .message_id = message_id,
                                                   .id = e->id,
                                                   .origin = &origin,
                                                   .sender = e->sender,
                                                   .size = e->content_size,
                                                   .recipients = e->count,
                                                   .injector = e->storage.injector});
}

/* The envelope lacks the facts of the header: its writer may be anybody. */
static void
queue_picked_up(struct queue *q, struct envelope *e)
{
    struct injected_names names;
    bool kept = event_are_kept(q->settings.events);
    bool ours = e->storage.injected && q->own_loop == NULL;
    bool first = ours && id_set_report(&q->seen, e->id);
    if (!first && !(ours && kept))
        return;
    read_names(q, e, &names);
    if (kept) {
        e->message_id = envelope_text(e, text_from(names.message_id));
        e->tag = envelope_text(e, text_from(names.tag));
    }
    if (first)
        tell_pickup(q, e, text_from(names.message_id));
}

/* --- Delivering ------------------------------------------------------------------ */

static struct envelope *
read_later(struct queue *q, struct id id, const char *reason)
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    log_say(q->spool.log, LOG_LEVEL_ERROR, "queue", name,
            "cannot read the message now: %s", reason);
    if (is_daemon(q))
        recover_report_later(&q->recover, id);
    return NULL;
}

static struct envelope *
with_marks(struct queue *q, struct envelope *e)
{
    struct id id = e->id;
    if (marks_overlay(&q->marks, e))
        return e;
    envelope_free(&e);
    return read_later(q, id, "its results are too long");
}

static struct envelope *
queue_load_journaled(struct queue *q, struct journaled_message *m)
{
    struct id id = m->id;
    bool later = false;
    char reason[LOAD_REASON_MAX] = "";
    struct envelope *e =
        journaled_load(&q->journaled, m, &later, reason, sizeof(reason));
    if (e == NULL && later)
        return read_later(q, id, reason);
    if (e == NULL && is_daemon(q))
        queue_quarantine(q, id, reason);
    if (e != NULL) {
        /* A daemon knows, except for messages that its startup has found and not yet
         * reported. */
        bool may_be = m->held || m->recovered || !is_daemon(q);
        e->delivery.held = may_be && spool_has(&q->spool, SPOOL_HOLD, id);
        e->fragment.awaits_parts = m->awaits_parts;
        e = with_marks(q, e);
    }
    return e;
}

void
queue_read_journals(struct queue *q)
{
    if (q->own_loop == NULL || q->journals_read)
        return;
    q->journals_read = true;
    queue_listing_read(&q->spool, &q->journaled, &q->journals);
}

/* A foreign journal still has it, so that it would come again even if its files are
 * gone. */
static bool
is_withheld(const struct queue *q, struct id id)
{
    return id_set_has(&q->share.withheld, id);
}

/* Or may have it, which cannot be known before it is adopted. */
bool
queue_may_be_withheld(const struct queue *q, struct id id)
{
    return is_withheld(q, id) ||
           (q->share.blocked && journaled_find(&q->journaled, id) == NULL);
}

bool
queue_is_no_message(const struct queue *q, struct id id)
{
    const struct journaled_message *m = journaled_find(&q->journaled, id);
    return (m != NULL ? m->is_new : commits_wait_for_copy(&q->commits, id)) ||
           removal_have(&q->removal, id) || marks_have_ended(&q->marks, id);
}

/* The content was checked before, or is checked now in one go; a check in progress is
 * abandoned. */
static enum load_result
load_whole(struct queue *q, struct id id, struct envelope **e,
           char reason[LOAD_REASON_MAX])
{
    struct load_check *c = &q->check;
    bool ours = c->stage != LOAD_CHECK_NONE && id_compare(c->id, id) == 0;
    bool over = ours && c->stage == LOAD_CHECK_OVER;
    if (ours && !over)
        load_check_stop(c);
    enum load_result result = load_checked(&q->spool, id, over ? c : NULL, e, reason);
    if (over)
        load_check_stop(c);
    if (result == LOAD_DONE)
        queue_picked_up(q, *e);
    return result;
}

static struct envelope *
queue_load_stored(struct queue *q, struct id id, bool whole)
{
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX] = "";
    marks_write(&q->marks, id);
    queue_read_journals(q);
    struct journaled_message *m = journaled_find(&q->journaled, id);
    /* Its results must go where it is. */
    if (m != NULL && is_daemon(q) && !recover_settle(&q->recover, m))
        return read_later(q, id, "whether its files count is unknown");
    m = journaled_find(&q->journaled, id);
    if (m != NULL)
        return queue_load_journaled(q, m);
    switch (whole ? load_whole(q, id, &e, reason)
                  : load_envelope(&q->spool, id, &e, reason)) {
    case LOAD_DONE:
        return with_marks(q, e);
    case LOAD_GONE:
        id_set_remove(&q->seen, id);
        break;
    case LOAD_DAMAGED:
        /* Beside a running daemon a command may see a message that is just being
         * removed. */
        if (is_daemon(q))
            queue_quarantine(q, id, reason);
        break;
    case LOAD_LATER:
        return read_later(q, id, reason);
    }
    return NULL;
}

static struct envelope *
load_guarded(struct queue *q, struct id id, bool whole)
{
    if (queue_is_no_message(q, id) || is_withheld(q, id))
        return NULL;
    struct id before = queue_enter(q, id);
    struct envelope *e = queue_load_stored(q, id, whole);
    queue_leave(q, before);
    return e;
}

struct envelope *
queue_load(struct queue *q, struct id id)
{
    return load_guarded(q, id, true);
}

struct envelope *
queue_load_envelope(struct queue *q, struct id id)
{
    struct envelope *e = load_guarded(q, id, false);
    if (e != NULL && journaled_find(&q->journaled, id) == NULL)
        load_places(&q->spool, e);
    return e;
}

struct envelope *
queue_peek(struct queue *q, struct id id, enum queue_place place)
{
    struct envelope *e = load_guarded(q, id, false);
    if (e != NULL) {
        e->delivery.held = place == QUEUE_HOLD;
        e->fragment.awaits_parts = place == QUEUE_DEFRAG;
    }
    return e;
}

static bool
is_checking(const struct load_check *c, struct id id)
{
    return (c->stage == LOAD_CHECK_READING || c->stage == LOAD_CHECK_SYNCING ||
            c->stage == LOAD_CHECK_OVER) &&
           id_compare(c->id, id) == 0;
}

static enum queue_check
queue_check_settings(struct queue *q, struct id id, int64_t *budget)
{
    struct load_check *c = &q->check;
    if (!is_checking(c, id)) {
        load_check_stop(c);
        /* The sync of the last check still uses its files. */
        if (c->stage == LOAD_CHECK_UNWANTED)
            return QUEUE_CHECK_WAITS;
        marks_write(&q->marks, id);
        if (!load_check_start(c, &q->spool, id, *budget))
            return QUEUE_CHECKED;
    }
    switch (load_check_go(c, budget)) {
    case LOAD_STEP_MORE:
        return QUEUE_CHECK_MORE;
    case LOAD_STEP_WAITS:
        return QUEUE_CHECK_WAITS;
    case LOAD_STEP_OVER:
        break;
    }
    return QUEUE_CHECKED;
}

enum queue_check
queue_check(struct queue *q, struct id id, int64_t *budget)
{
    if (queue_is_no_message(q, id) || is_withheld(q, id) ||
        journaled_find(&q->journaled, id) != NULL)
        return QUEUE_CHECKED;
    struct id before = queue_enter(q, id);
    enum queue_check result = queue_check_settings(q, id, budget);
    queue_leave(q, before);
    return result;
}

void
queue_defer(struct queue *q, struct envelope **e, int64_t due_ms, unsigned attempts)
{
    struct id before = queue_enter(q, (*e)->id);
    (*e)->delivery.due_ms = due_ms;
    (*e)->delivery.attempts = attempts;
    guard_rest(&q->spool.guard, (*e)->id);
    marks_defer(&q->marks, e);
    queue_leave(q, before);
}

/* Without an END record hold/ID must not go while it is a message: a power cut would
 * bring the message back without it, and it would be delivered. */
static void
end_held(struct queue *q, struct id id)
{
    struct spool *s = &q->spool;
    if (q->journaled.journal != NULL || !gate_is_open(s->gate, gate_number(s->gate)))
        return;
    (void)spool_remove(s, SPOOL_TODO, id);
    (void)spool_remove(s, SPOOL_INFO, id);
    (void)spool_sync_dirs(s, SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO));
}

void
queue_retire(struct queue *q, struct envelope **e)
{
    struct id id = (*e)->id, before = queue_enter(q, id);
    bool held = (*e)->delivery.held;
    unsigned dirs = spool_places_of(*e);
    q->retired++;
    guard_forget(&q->spool.guard, id);
    if (!marks_retire(&q->marks, e)) {
        envelope_free(e);
        if (held)
            end_held(q, id);
        queue_end(q, id, dirs);
    }
    queue_leave(q, before);
}

void
queue_hurry(struct queue *q)
{
    if (q->journaled.journal != NULL)
        journal_hurry(q->journaled.journal);
}

bool
queue_is_filling(const struct queue *q)
{
    const struct journal *j = q->journaled.journal;
    return j != NULL && q->journaled.live > journal_size(j) / FILLING_PART;
}

/* --- Crashes --------------------------------------------------------------------- */

struct id
queue_enter(struct queue *q, struct id id)
{
    return guard_enter(&q->spool.guard, id);
}

struct guard *
queue_guard(struct queue *q)
{
    return &q->spool.guard;
}

void
queue_leave(struct queue *q, struct id before)
{
    guard_leave(&q->spool.guard, before);
}

/* --- Slices ---------------------------------------------------------------------- */

bool
queue_handles(const struct queue *q, struct id id)
{
    return slices_have(&q->share.slices, id);
}

const char *
queue_adopt(struct queue *q, unsigned slice, queue_adopted *adopted, void *context)
{
    assert(is_daemon(q));
    return share_take_over(&q->share, slice, adopted, context);
}

void
queue_adopt_ignore(struct queue *q, void *context)
{
    share_ignore(&q->share, context);
}

/* --------------------------------------------------------------------------------- */

size_t
queue_made(struct queue *q, struct id **ids)
{
    return queue_listing_made(&q->spool, &q->journaled, &q->share.made, ids);
}

uint64_t
queue_adoptions(const struct queue *q)
{
    return q->share.adoptions;
}

struct disk *
queue_disk(struct queue *q)
{
    return q->spool.disk;
}
