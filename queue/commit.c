/* Makes messages durable, many at a time, and tells their owners. */
#include "queue/commit.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

enum commit_copy {
    COPY_UNWANTED, /* nobody waits for it, or it is made */
    COPY_UNSAID,   /* the copier hears of it when it is durable */
    COPY_AWAITED   /* until queue_copied() */
};

/* The time that a client waits in `blocked`. It hears 451 before it stops waiting (after
 * 10 minutes by RFC 5321 4.5.3.2.6, many after one or two), and would send again what we
 * take. */
enum { BLOCKED_MAX_MS = 60 * 1000 };

/* A message on its way to the disk. It is in one list of struct commits at a time
 * (files, syncing, blocked, appended, copying, done), and its owner is called from `done`
 * alone. */
struct commit {
    struct commits *commits;
    struct queue_draft *draft;
    struct envelope *envelope;
    struct buffer form; /* of todo/ID */
    int intd;           /* handle, -1: none */
    bool linked, ignored, held;
    bool durable; /* in `copying` */
    enum commit_copy copy;
    struct disk_sync sync;      /* of a large content */
    struct loop_timer patience; /* in `blocked` */
    uint64_t batch;
    queue_stored *stored;
    void *context;
    struct commit *prev, *next;
};

/* The stage of this turn may have passed already, so another turn is requested. */
static void
commit_wake(struct commits *all)
{
    loop_wake(all->loop, &all->wake);
}

static void
commit_free(struct commit *c)
{
    envelope_free(&c->envelope);
    buffer_free(&c->form);
    if (c->intd >= 0)
        disk_close_file(c->commits->spool->disk, c->intd);
    draft_free(c->draft);
    loop_timer_stop(c->commits->loop, &c->patience);
    free(c);
}

static void
set_done(struct commit *c)
{
    DL_APPEND(c->commits->done, c);
    commit_wake(c->commits);
}

/* --- Its copy --------------------------------------------------------------------- */

/* NULL: there is none. */
static const struct queue_copier *
commit_copier(const struct commit *c)
{
    const struct queue_copier *copier = c->commits->copier;
    return copier != NULL && copier->context != NULL ? copier : NULL;
}

static struct commit *
commit_waiter(struct commit *c)
{
    return c->draft->own ? NULL : c;
}

/* Beside our own sync, while the bytes are in memory. */
static void
commit_copy_begin(struct commit *c)
{
    const struct commits *all = c->commits;
    const struct queue_copier *copier = commit_copier(c);
    if (copier == NULL)
        return;
    const struct journaled_message *m = journaled_find(all->journaled, c->draft->id);
    c->copy = COPY_UNSAID;
    if (m != NULL && m->content != NULL &&
        copier->store(copier->context, c->draft->id, buffer_text(&c->form),
                      buffer_text(&m->content->bytes), commit_waiter(c)))
        c->copy = c->draft->own ? COPY_UNWANTED : COPY_AWAITED;
}

static void
commit_copy_end(const struct commit *c)
{
    const struct queue_copier *copier = commit_copier(c);
    if (copier != NULL)
        copier->ended(copier->context, c->draft->id);
}

/* --- Held already ----------------------------------------------------------------- */

/* Durable before the message is one: at no moment may it be delivered. Recovery must see
 * no unfinished message. */
static void
hold_first(struct commit *c)
{
    struct queue_draft *d = c->draft;
    struct spool *s = c->commits->spool;
    struct text why = c->envelope->moved.hold;
    if (!d->taken || why.length == 0 || d->refused)
        return;
    id_set_add(c->commits->seen, d->id);
    int file = spool_write_new(s, SPOOL_HOLD, d->id, why, true);
    int result = file < 0 ? file : spool_sync(s, file, &d->id);
    if (file >= 0)
        disk_close_file(s->disk, file);
    c->held = file >= 0;
    if (result < 0)
        draft_refuse(d, spool_refusal(result));
}

static void
unhold(struct commit *c)
{
    if (!c->held)
        return;
    c->held = false;
    (void)spool_remove(c->commits->spool, SPOOL_HOLD, c->draft->id);
    id_set_remove(c->commits->seen, c->draft->id);
}

/* The form has no hold: hold/ID says so alone, which an operator can remove. */
static void
write_form(struct commit *c)
{
    bool fits = true;
    c->envelope->moved.hold = TEXT("");
    if (c->draft->taken)
        fits = envelope_write_given(c->envelope, &c->form);
    else
        envelope_write_todo(c->envelope, &c->form);
    if (!fits) /* it came in such a form */
        draft_refuse(c->draft, outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 554, "5.5.4",
                                            "Its failures are too long"));
}

/* --- In files -------------------------------------------------------------------- */

/* S3 The envelope stands in intd/ under the name it will have: the link into todo/ is
 * the only step that makes it a message. */
static void
write_intd(struct commit *c)
{
    struct spool *s = c->commits->spool;
    if (c->draft->refused)
        return;
    int file =
        spool_write_new(s, SPOOL_INTD, c->draft->id, buffer_text(&c->form), false);
    if (file < 0)
        draft_refuse(c->draft, spool_refusal(file));
    else
        c->intd = file;
}

/* Before todo/ID exists: a name says nothing about content that was not synced
 * before. */
static void
sync_files(struct commit *c)
{
    struct queue_draft *d = c->draft;
    struct spool *s = c->commits->spool;
    if (d->refused)
        return;
    int result = spool_sync(s, d->file, &d->id);
    if (result == 0)
        result = spool_sync(s, c->intd, &d->id);
    if (result < 0)
        draft_refuse(d, spool_refusal(result));
}

/* S4 for every process, though not yet durable. A link, not a rename: intd/ID stays as
 * the proof that a half-made message was ours, and is removed with it. */
static void
link_todo(struct commit *c)
{
    struct queue_draft *d = c->draft;
    if (d->refused)
        return;
    c->linked = true;
    /* A scan of todo/ must not report a message that its owner is about to get. */
    id_set_add(c->commits->seen, d->id);
    int result = spool_enter_todo(c->commits->spool, d->id);
    if (result < 0)
        draft_refuse(d, spool_refusal(result));
}

static void
sync_todo(struct commits *all, struct commit *list)
{
    struct commit *c;
    int result = spool_sync_dirs(all->spool, SPOOL_BIT(SPOOL_TODO));
    if (result == 0 && !holder_is_ours(&all->spool->holder))
        result = -ESTALE;
    DL_FOREACH (list, c) {
        if (!c->linked || c->draft->refused)
            continue;
        int own = result;
        /* Other users may not open todo/ to sync it. The sync of their file makes its
         * new name durable, too (doc/dev/design.md "File systems"). */
        if (result == -EACCES)
            own = spool_sync(all->spool, c->intd, &c->draft->id);
        if (own < 0)
            draft_refuse(c->draft, spool_refusal(own));
    }
}

/* In the order in which the files mean less: without todo/ID it is no message, even if
 * a crash leaves other files. */
static void
undo(struct commit *c)
{
    struct queue_draft *d = c->draft;
    struct spool *s = c->commits->spool;
    id_set_remove(c->commits->seen, d->id);
    if (s->holder.is_lost)
        return; /* they are another host's, which perhaps delivers it now */
    if (c->linked)
        (void)spool_remove(s, SPOOL_TODO, d->id);
    if (c->intd >= 0)
        (void)spool_remove(s, SPOOL_INTD, d->id);
    draft_erase(d);
    unhold(c);
}

/* Makes those durable whose files are synced. All of a turn together: each step is one
 * sync for all, so a burst costs as many syncs as a single message. */
static void
link_in_files(struct commits *all, struct commit *list)
{
    struct commit *c;
    /* A failed sync is fatal for its whole batch (doc/dev/design.md "Crash rules"). */
    if (all->spool->trouble[0] != '\0')
        DL_FOREACH (list, c)
            draft_refuse(c->draft, spool_refusal(-EIO));
    DL_FOREACH (list, c)
        link_todo(c);
    sync_todo(all, list);
    DL_FOREACH (list, c)
        if (c->draft->refused)
            undo(c);
}

static void
start_in_files(struct commit *c)
{
    draft_want_file(c->draft);
    write_intd(c);
    if (commit_copier(c) != NULL)
        c->copy = COPY_UNSAID;
    DL_APPEND(c->commits->files, c);
    commit_wake(c->commits);
}

/* --- In the journal -------------------------------------------------------------- */

/* False: there is no space now. The journal takes the buffer of the content instead of
 * a copy: most messages are read from there a moment later. */
static bool
append(struct commit *c)
{
    struct queue_draft *d = c->draft;
    struct buffer *content = d->file < 0 ? &d->content : NULL;
    if (c->commits->journaled->journal == NULL)
        return false; /* the queue is being closed */
    size_t in_memory = d->content.length;
    struct journaled_note note = {d->reported, buffer_text(&d->reports)};
    enum journal_appended result =
        journaled_accept(c->commits->journaled, c->envelope, buffer_text(&c->form),
                         content, &note, d->own, &c->batch);
    if (result == JOURNAL_NO_ROOM)
        return false;
    loop_timer_stop(c->commits->loop, &c->patience);
    /* The message owns the buffer now. */
    d->drafts->in_memory -= in_memory - d->content.length;
    commit_copy_begin(c);
    buffer_free(&c->form);
    if (c->held)
        journaled_find(c->commits->journaled, d->id)->held = true;
    DL_APPEND(c->commits->appended, c);
    return true;
}

/* No record has it. */
static void
refuse_unwritten(struct commit *c, int error)
{
    draft_refuse(c->draft, spool_refusal(error));
    unhold(c);
    draft_erase(c->draft);
    set_done(c);
}

/* The disk refuses the journal, or what would make room in it. */
static void
commit_give_up(void *context)
{
    struct commit *c = context;
    DL_DELETE(c->commits->blocked, c);
    refuse_unwritten(c, -ETIMEDOUT);
    commits_resume(c->commits); /* a smaller one may fit */
}

static void
append_or_wait(struct commit *c)
{
    struct commits *all = c->commits;
    /* First come, first served; but our own mail frees more than it takes. */
    if ((all->blocked == NULL || c->draft->own) && append(c))
        return;
    DL_APPEND(all->blocked, c);
    if (!c->draft->own)
        loop_timer_start(all->loop, &c->patience, BLOCKED_MAX_MS, commit_give_up, c);
}

/* Strictly in order: a small message that overtook a large one would make it wait as
 * long as small ones come. */
void
commits_resume(struct commits *all)
{
    while (all->blocked != NULL) {
        struct commit *first = all->blocked;
        DL_DELETE(all->blocked, first);
        if (append(first))
            continue;
        DL_PREPEND(all->blocked, first);
        return;
    }
}

/* A large content is durable in its file before the record that makes it a message. */
static void
on_content_synced(void *context, int result)
{
    struct commit *c = context;
    struct commits *all = c->commits;
    DL_DELETE(all->syncing, c);
    all->spool->syncs++;
    if (result == 0) {
        append_or_wait(c);
        return;
    }
    refuse_unwritten(c,
                     spool_trouble(all->spool, result, &c->draft->id, "sync a file"));
}

/* The sync runs in the background: at some hundred MB it would stop the loop for
 * seconds. */
static void
start_large(struct commit *c)
{
    struct commits *all = c->commits;
    c->sync = (struct disk_sync){.done = on_content_synced, .context = c};
    DL_APPEND(all->syncing, c);
    int result = disk_sync_begin(all->spool->disk, c->draft->file, false, &c->sync);
    if (result != DISK_SYNCING)
        on_content_synced(c, result);
}

/* A crash may bring it back: its client has heard 451, and it is delivered twice at worst. */
static void
commit_withdraw(struct commit *c)
{
    struct commits *all = c->commits;
    struct id id = c->draft->id;
    struct journaled_message *m = journaled_find(all->journaled, id);
    if (m == NULL) {
        undo(c);
        commit_copy_end(c);
        return;
    }
    m->refused = true;
    all->withdrawn(all->context, id);
    if (c->held)
        id_set_remove(all->seen, id);
    c->held = false;
}

static void
commit_finish(struct commit *c)
{
    if (c->draft->refused)
        commit_withdraw(c);
    set_done(c);
}

static void
commit_durable(struct commit *c)
{
    const struct queue_copier *copier = commit_copier(c);
    if (c->copy == COPY_UNSAID && copier != NULL) {
        copier->stored(copier->context, c->draft->id, commit_waiter(c));
        c->copy = c->draft->own ? COPY_UNWANTED : COPY_AWAITED;
    }
    if (c->held && copier != NULL)
        copier->changed(copier->context, c->draft->id);
    c->durable = c->copy == COPY_AWAITED;
    if (c->durable)
        DL_APPEND(c->commits->copying, c);
    else
        commit_finish(c);
}

void
commits_copied(struct commits *all, struct commit *c, const struct outcome *refusal)
{
    assert(c->copy == COPY_AWAITED);
    c->copy = COPY_UNWANTED;
    if (refusal != NULL)
        draft_refuse(c->draft, *refusal);
    if (!c->durable)
        return;
    DL_DELETE(all->copying, c);
    c->durable = false;
    commit_finish(c);
}

/* The client hears 451 and sends the message again. A record that may be on disk
 * already gets an END, so that it is not delivered as well. */
static void
refuse_batch(struct commit *c, int error, uint64_t again)
{
    struct commits *all = c->commits;
    struct journaled_message *m = journaled_find(all->journaled, c->draft->id);
    draft_refuse(c->draft, spool_refusal(error));
    assert(m != NULL);
    /* The record may be on disk. The file may go only when an END after it is
     * durable. */
    if (m->large || m->held)
        removal_add(all->removal, m->id, again);
    journaled_drop(all->journaled, m);
    commit_copy_end(c);
}

/* The owner is called later, in stage ANSWER: here the journal is still at work. */
void
commits_settled(struct commits *all, uint64_t batch, int error, uint64_t again)
{
    struct commit *c, *next;
    DL_FOREACH_SAFE (all->appended, c, next) {
        /* Batches settle in the order of their numbers, in which `appended` is
         * sorted. */
        if (c->batch > batch)
            break;
        DL_DELETE(all->appended, c);
        if (error == 0) {
            commit_durable(c);
        } else {
            refuse_batch(c, error, again);
            set_done(c);
        }
    }
}

/* --- Answers --------------------------------------------------------------------- */

/* Calls the owner and frees c. */
static void
commit_answer(struct commits *all, struct commit *c)
{
    struct outcome *refusal = c->draft->refusal;
    bool refused = c->draft->refused;
    c->draft->refusal = NULL;
    struct id id = c->draft->id;
    queue_stored *stored = c->stored;
    void *context = c->context;
    bool ignored = c->ignored;
    struct envelope *e = NULL;
    struct journaled_message *m = journaled_find(all->journaled, id);
    if (m != NULL)
        /* From here on the message can be loaded: queue_is_no_message(). */
        m->is_new = false;
    if (m != NULL && c->held)
        id_set_remove(all->seen, id); /* it is the journal's now */
    if (!refused && !ignored) {
        e = c->envelope;
        c->envelope = NULL;
    }
    if (!refused)
        all->stored++;
    commit_free(c);
    const struct id nobody = {0};
    struct id before = guard_enter(&all->spool->guard, refused ? nobody : id);
    if (!ignored)
        stored(context, e, refusal);
    else if (!refused)
        all->orphaned(all->context, id);
    guard_leave(&all->spool->guard, before);
    free(refusal);
}

static void
commit_at_stage_answer(void *context)
{
    struct commits *all = context;
    /* One at a time: a callback may cancel another owner's message. */
    while (all->done != NULL) {
        struct commit *first = all->done;
        DL_DELETE(all->done, first);
        commit_answer(all, first);
    }
}

static void
commit_at_stage_sync(void *context)
{
    struct commits *all = context;
    struct commit *c, *next;
    loop_unpost(all->loop, &all->wake);
    if (all->files == NULL)
        return;
    DL_FOREACH (all->files, c)
        sync_files(c);
    link_in_files(all, all->files);
    DL_FOREACH_SAFE (all->files, c, next) {
        DL_DELETE(all->files, c);
        if (c->draft->refused)
            set_done(c);
        else
            commit_durable(c);
    }
    loop_unpost(all->loop, &all->wake); /* the answers follow in this turn */
}

/* --- Input ----------------------------------------------------------------------- */

/* Before the first todo/ID exists: one that is refused now refuses the others. */
static void
refuse_together(struct commit *list)
{
    struct commit *c, *bad;
    DL_SEARCH_SCALAR(list, bad, draft->refused, true);
    if (bad != NULL)
        DL_FOREACH (list, c)
            draft_refuse(c->draft, *bad->draft->refusal);
}

/* For sendmail(1), which has no loop: it exits with the message durable, or with an
 * error. */
void
commits_gathered(struct commits *all)
{
    struct commit *c, *list = all->files;
    all->gathers = false;
    all->files = NULL;
    DL_FOREACH (list, c)
        sync_files(c);
    refuse_together(list);
    link_in_files(all, list);
    DL_FOREACH (list, c)
        if (!c->draft
                 ->refused) /* a daemon that starts later finds the message anyway */
            spool_pull_trigger(all->spool, c->draft->id);
    DL_CONCAT(all->done, list);
    commit_at_stage_answer(all);
}

/* The answer about a recipient of our own mail is found again for files in todo/ alone, and
 * after days it may be another. */
static bool
must_be_files(const struct envelope *e)
{
    return e->ours && envelope_has_refused(e);
}

/* The mark of a posted message is found again in the journal alone: its content may go to
 * a file, its envelope may not. */
static void
keep_mark(struct commit *c)
{
    struct queue_draft *d = c->draft;
    const struct journaled *y = c->commits->journaled;
    if (c->envelope->posted.length == 0 || y->journal == NULL || d->refused ||
        journaled_fits(y, c->envelope, c->form.length, d->file >= 0))
        return;
    draft_want_file(d);
    if (!journaled_fits(y, c->envelope, c->form.length, true))
        draft_refuse(d, outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 552, "5.3.4",
                                     "too many recipients for Idempotency-Key with "
                                     "this journal_size"));
}

/* The order of the tests is that of cost: a refused draft writes nothing; a message in
 * the journal needs no file; the rest becomes files. */
void
commits_add(struct commits *all, struct queue_draft **draft, struct envelope **e,
            queue_stored *stored, void *context)
{
    struct queue_draft *d = *draft;
    assert(d->named && id_compare(d->id, (*e)->id) == 0 && stored != NULL);
    struct commit *c = memory_new(sizeof(*c));
    *c = (struct commit){.commits = all, .draft = d, .envelope = *e, .intd = -1};
    c->stored = stored;
    c->context = context;
    buffer_init(&c->form, SPOOL_FILE_MAX);
    hold_first(c);
    write_form(c);
    keep_mark(c);
    *draft = NULL;
    *e = NULL;
    if (all->synchronous) {
        write_intd(c);
        DL_APPEND(all->files, c);
        if (!all->gathers)
            commits_gathered(all);
    } else if (d->refused) {
        unhold(c);
        draft_erase(d);
        set_done(c);
    } else if (all->journaled->journal == NULL ||
               (!d->taken && must_be_files(c->envelope)) ||
               !journaled_fits(all->journaled, c->envelope, c->form.length,
                               d->file >= 0))
        start_in_files(c);
    else if (d->file >= 0)
        start_large(c);
    else
        append_or_wait(c);
}

static void
ignore_in(struct commit *list, void *context)
{
    struct commit *c;
    DL_FOREACH (list, c)
        if (c->context == context)
            c->ignored = true;
}

/* The owner has gone, but the message may be durable: it is reported as one that was
 * found, and delivered. */
void
commits_ignore(struct commits *all, void *context)
{
    ignore_in(all->files, context);
    ignore_in(all->syncing, context);
    ignore_in(all->blocked, context);
    ignore_in(all->appended, context);
    ignore_in(all->copying, context);
    ignore_in(all->done, context);
}

/* A scan of the directories must not judge files of a message that is being made. */
bool
commits_have(const struct commits *all, struct id id)
{
    const struct commit *const lists[] = {all->files,    all->syncing, all->blocked,
                                          all->appended, all->copying, all->done};
    const struct commit *c;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        DL_FOREACH (lists[i], c)
            if (id_compare(c->draft->id, id) == 0)
                return true;
    return false;
}

bool
commits_wait_for_copy(const struct commits *all, struct id id)
{
    const struct commit *c;
    DL_FOREACH (all->copying, c)
        if (id_compare(c->draft->id, id) == 0)
            return true;
    return false;
}

bool
commits_are_quiet(const struct commits *all)
{
    return all->files == NULL && all->syncing == NULL && all->appended == NULL &&
           all->copying == NULL && all->done == NULL;
}

bool
commits_are_under_way(const struct commits *all)
{
    return all->blocked != NULL || !commits_are_quiet(all);
}

/* --- Start and stop -------------------------------------------------------------- */

void
commits_start(struct commits *all)
{
    if (all->synchronous)
        return;
    loop_at_end(all->loop, LOOP_SYNC_COMMIT, commit_at_stage_sync, all);
    loop_at_end(all->loop, LOOP_ANSWER_COMMIT, commit_at_stage_answer, all);
}

static void
drop_all(struct commit **list, bool durable)
{
    struct commit *c, *next;
    DL_FOREACH_SAFE (*list, c, next) {
        DL_DELETE(*list, c);
        if (!durable) {
            draft_refuse(c->draft, spool_refusal(-EIO));
            undo(c);
        }
        commit_free(c);
    }
}

void
commits_stop(struct commits *all)
{
    if (!all->synchronous) {
        loop_at_end_remove(all->loop, LOOP_SYNC_COMMIT, commit_at_stage_sync, all);
        loop_at_end_remove(all->loop, LOOP_ANSWER_COMMIT, commit_at_stage_answer, all);
        loop_unpost(all->loop, &all->wake);
    }
    drop_all(&all->files, false);
    drop_all(&all->syncing, false);
    drop_all(&all->blocked, false);
    drop_all(&all->appended, true);
    drop_all(&all->copying, true);
    drop_all(&all->done, true);
}
