/* D marks, bounce texts and due times: gathered, then written in few syncs.
 *
 * A message with something unwritten has one struct pending. The end of a turn writes
 * it in one of three ways: MARK records for a journaled message, a place in the line of
 * the preprocessor for one that must become S5, or S5 in place. A write that the disk
 * refuses leaves the pending as `failed`; a timer tries it again (doc/dev/queue.md "Crash
 * rules", 8). */
#include "queue/marks.h"

#include "base/memory.h"
#include "queue/queue_internal.h"
#include "queue/spool/load.h"
#include "queue/spool/marker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>
#include <errno.h>

enum {
    DELAY_MS = 100,
    MARKS_MAX = 64,         /* at this number the end of the turn writes them */
    MESSAGES_PER_TURN = 64, /* so that a flood of deferrals delays nothing else; */
    MARKS_PER_TURN = 4096,  /* nor one message with very many recipients */
    RETRY_MS = 10 * 1000,
    FIRST_PER_ROUND =
        PREPROCESSOR_MAX * 3 / 4, /* while others wait, too: their segments
                                                 * are needed */
    /* Above ENVELOPE_RECIPIENTS_MAX failures, and the notes that they are notified. */
    TEXTS_MAX = 88 * 1024 * 1024
};

struct pending {
    struct id id;
    struct envelope *envelope; /* NULL: it is not in memory */
    bool owned;                /* deferred: the envelope is ours */
    bool due;                  /* its due time is to be written */
    bool failed;               /* the write failed; a retry follows */
    bool waiting, moving;      /* queued for the preprocessor; being moved */
    bool first;                /* waits in that line */
    bool ended;                /* retired while it moved */
    uint64_t gate;             /* the number to wait for (base/gate.h) */
    int64_t since_ms;          /* monotonic: the first mark, or the due time */
    struct journaled_mark *marks;
    unsigned count, capacity, moved; /* the first `moved` are being moved */
    struct buffer texts;             /* of failures, as appended to bounce/ */
    struct pending *prev, *next;     /* in the queue for the preprocessor */
    UT_hash_handle hh;
};

static struct pending *
marks_find(const struct marks *m, struct id id)
{
    struct pending *p = NULL;
    HASH_FIND(hh, m->table, &id, sizeof(id), p);
    return p;
}

static struct pending *
pending_new(struct marks *m, struct id id)
{
    struct pending *p = memory_new(sizeof(*p));
    p->id = id;
    p->since_ms = m->synchronous ? 0 : loop_monotonic_ms(m->loop);
    buffer_init(&p->texts, TEXTS_MAX);
    HASH_ADD(hh, m->table, id, sizeof(p->id), p);
    return p;
}

static void
marks_leave_line(struct marks *m, struct pending *p)
{
    if (!p->waiting)
        return;
    DL_DELETE(m->lines[p->first], p);
    m->lined--;
    p->waiting = false;
}

static void
pending_free(struct marks *m, struct pending *p)
{
    assert(!p->moving);
    marks_leave_line(m, p);
    HASH_DEL(m->table, p);
    assert(m->unwritten >= p->count);
    m->unwritten -= p->count;
    if (p->owned)
        envelope_free(&p->envelope);
    buffer_free(&p->texts);
    free(p->marks);
    free(p);
}

/* The pending of e. One that was made for an older copy of the envelope now uses e. */
static struct pending *
pending_for(struct marks *m, struct envelope *e)
{
    struct pending *p = marks_find(m, e->id);
    if (p == NULL)
        p = pending_new(m, e->id);
    if (p->envelope != e && p->owned)
        envelope_free(&p->envelope);
    p->owned = p->owned && p->envelope == e;
    p->envelope = e;
    p->failed = false;
    return p;
}

static void
add_mark(struct marks *m, struct pending *p, unsigned index, size_t text_length)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity > 0 ? p->capacity * 2 : 4;
        p->marks = memory_resize(p->marks, p->capacity * sizeof(*p->marks));
    }
    p->marks[p->count++] = (struct journaled_mark){index, (uint32_t)text_length};
    p->gate = gate_number(m->spool->gate);
    m->unwritten++;
}

/* Marks and texts have the same order: the first marks own the first bytes of texts. */
static void
drop_marks(struct marks *m, struct pending *p, unsigned count)
{
    size_t texts = 0;
    assert(count <= p->count);
    for (unsigned i = 0; i < count; i++)
        texts += p->marks[i].text_length;
    for (unsigned i = count; i < p->count; i++)
        p->marks[i - count] = p->marks[i];
    p->count -= count;
    m->unwritten -= count;
    buffer_take(&p->texts, texts);
}

/* Marks of journaled mail go into the journal's next batch, which needs no space on the
 * disk. */
static void
marks_to_journal(struct marks *m, struct pending *p,
                 struct journaled_message *journaled)
{
    if (p->count == 0)
        return;
    journaled_add_results(m->journaled, journaled, p->marks, p->count,
                          buffer_text(&p->texts));
    journal_hurry(m->journaled->journal);
    drop_marks(m, p, p->count);
    m->changed(m->context, p->id);
}

/* --- Where a message is ---------------------------------------------------------- */

static bool
marks_file_is_missing(struct spool *s, enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(dir, id, path);
    return disk_inspect(s->disk, path, &info) == -ENOENT;
}

/* In S4 they are still to be made. */
static bool
marks_have_place(const struct marks *m, const struct envelope *e)
{
    bool has[2] = {false, false};
    for (unsigned i = 0; i < e->count && e->storage.preprocessed; i++)
        has[e->recipients[i].mark.channel == CHANNEL_LOCAL] = true;
    return !(has[0] && marks_file_is_missing(m->spool, SPOOL_REMOTE, e->id)) &&
           !(has[1] && marks_file_is_missing(m->spool, SPOOL_LOCAL, e->id));
}

static bool
needs_move(const struct marks *m, const struct pending *p)
{
    const struct envelope *e = p->envelope;
    if (e == NULL || journaled_find(m->journaled, p->id) != NULL)
        return e == NULL || p->due;
    return !e->storage.preprocessed;
}

/* Files show results; the journal lets its own records wait. */
static bool
is_barred(const struct marks *m, const struct pending *p)
{
    return !gate_is_open(m->spool->gate, p->gate) &&
           (p->envelope == NULL || p->due ||
            journaled_find(m->journaled, p->id) == NULL);
}

/* --- Failures -------------------------------------------------------------------- */

static void marks_flush(struct marks *m);

/* Requests another turn, because the stage of this one may have passed. */
static void
write_soon(struct marks *m)
{
    m->urgent = true;
    if (m->synchronous)
        marks_flush(m);
    else
        loop_wake(m->loop, &m->wake);
}

/* Results of mail in todo/: they have no record until it has moved. */
static bool
is_bare(const struct marks *m, const struct pending *p)
{
    return p->count > 0 && journaled_find(m->journaled, p->id) == NULL;
}

static void
marks_enter_line(struct marks *m, struct pending *p)
{
    if (p->waiting || p->moving)
        return;
    p->first = is_bare(m, p);
    DL_APPEND(m->lines[p->first], p);
    m->lined++;
    p->waiting = true;
}

static void
try_again(void *context)
{
    struct marks *m = context;
    struct pending *p, *next;
    HASH_ITER (hh, m->table, p, next) {
        p->failed = false;
        if (needs_move(m, p))
            marks_enter_line(m, p);
    }
    write_soon(m);
}

/* Else the sender would be warned again. */
static bool
has_warning(const struct pending *p)
{
    return p->envelope != NULL &&
           p->envelope->delivery.warned_s != p->envelope->delivery.warned_kept_s;
}

/* A due time alone is not written again: the scheduler knows it, and after a restart
 * the message is merely tried early. A journaled message must move nevertheless,
 * because it pins its segment. */
static void
keep_failed(struct marks *m, struct pending *p)
{
    p->failed = true;
    marks_leave_line(m, p);
    m->changed(m->context, p->id); /* marks_overlay() knows them */
    if (p->count == 0 && (p->owned || p->envelope == NULL) && !has_warning(p) &&
        (p->envelope == NULL || !p->envelope->delivery.released) &&
        journaled_find(m->journaled, p->id) == NULL) {
        pending_free(m, p);
        return;
    }
    if (!m->synchronous && !heap_has(&m->retry.node))
        loop_timer_start(m->loop, &m->retry, RETRY_MS, try_again, m);
}

/* --- Moving ---------------------------------------------------------------------- */

/* Loads the envelope of a message that is not in memory from the journal. False: the
 * message cannot be moved now. */
static bool
want_envelope(struct marks *m, struct pending *p, struct journaled_message *journaled)
{
    char reason[LOAD_REASON_MAX];
    bool later = false;
    if (p->envelope != NULL)
        return true;
    assert(journaled != NULL); /* else it has files */
    p->envelope =
        journaled_load(m->journaled, journaled, &later, reason, sizeof(reason));
    p->owned = p->envelope != NULL;
    if (p->owned) {
        p->envelope->fragment.awaits_parts = journaled->awaits_parts;
        return true;
    }
    struct id id = p->id;
    if (later) {
        keep_failed(m, p);
    } else {
        pending_free(m, p);
        m->damaged(m->context, id, reason);
    }
    return false;
}

static void
fill_move(struct marks *m, struct pending *p)
{
    struct journaled_message *journaled = journaled_find(m->journaled, p->id);
    struct preprocess move = {.id = p->id};
    marks_leave_line(m, p);
    /* It has left the journal: recovery found its files whole while it was queued. */
    if (journaled == NULL &&
        (p->envelope == NULL || p->envelope->storage.preprocessed)) {
        if (p->envelope == NULL)
            pending_free(m, p);
        else
            write_soon(m);
        return;
    }
    if (!want_envelope(m, p, journaled))
        return;
    move.envelope = p->envelope;
    if (journaled != NULL && !journaled->large) {
        int error = 0;
        move.content = journaled_read_content(m->journaled, journaled, &error);
        if (move.content == NULL) {
            (void)spool_trouble(m->spool, error, &p->id, "read the journal");
            marks_to_journal(m, p, journaled);
            keep_failed(m, p);
            return;
        }
    }
    move.released = p->envelope->delivery.released;
    p->due = false;
    p->moving = true;
    /* The new files get the state of this moment; later results are written in place
     * afterwards. */
    p->moved = p->count;
    m->preprocessor.moves[m->preprocessor.count++] = move;
}

/* It has the recipients of the files (take_list()), unless these were changed from
 * outside. */
static void
give_places(struct envelope *e, const struct preprocess *move)
{
    if (e != NULL && e->count == move->recipients)
        envelope_take_places(e, move->places);
}

/* The files count from this moment on: every envelope of the message learns where its
 * marks are. */
static void
marks_arrive(struct marks *m, struct pending *p, const struct preprocess *move)
{
    struct journaled_message *journaled = journaled_find(m->journaled, p->id);
    drop_marks(m, p, p->moved);
    if (journaled != NULL)
        (void)journaled_end(m->journaled, journaled, RECORD_MOVED);
    else if (spool_leave_todo(m->spool, p->id, move->released) == 0)
        id_set_remove(m->seen, p->id);
    give_places(p->envelope, move);
    if (m->in_use != NULL)
        give_places(m->in_use(m->in_use_context, p->id), move);
    if (p->envelope != NULL && p->envelope->fragment.awaits_parts && !p->ended)
        (void)marker_put(m->spool, MARKER_AWAITING, p->id);
    m->changed(m->context, p->id);
}

/* The pending is freed afterwards, unless there is more to write. */
static void
take_move(struct marks *m, struct preprocess *move)
{
    struct id id = move->id;
    struct pending *p = marks_find(m, id);
    struct journaled_message *journaled = journaled_find(m->journaled, id);
    bool ended = p->ended;
    p->moving = false;
    if (move->result == 0)
        marks_arrive(m, p, move);
    bool more = move->result < 0 || p->due || p->count > 0;
    if (ended || !more) {
        pending_free(m, p);
    } else if (move->result < 0) {
        p->due = p->due || p->owned;
        if (journaled != NULL)
            marks_to_journal(m, p, journaled);
        keep_failed(m, p);
    } else {
        write_soon(m);
    }
    if (ended)
        m->ended(m->context, id);
}

static void
marks_on_moved(void *context)
{
    struct marks *m = context;
    unsigned count = m->preprocessor.count;
    for (unsigned i = 0; i < count; i++) {
        struct preprocess *move = &m->preprocessor.moves[i];
        struct id before = guard_enter(&m->spool->guard, move->id);
        take_move(m, move);
        preprocess_free(move);
        guard_leave(&m->spool->guard, before);
    }
    m->preprocessor.count = 0;
    m->rounds++;
    if (m->moved != NULL)
        m->moved(m->context);
    if (m->lined > 0)
        write_soon(m);
}

/* On a slow disk the line is minutes long. What has its results in the journal can wait;
 * those of the others would be lost with the process, and delivered again. */
static struct pending *
marks_next_move(const struct marks *m)
{
    bool first = m->preprocessor.count < FIRST_PER_ROUND;
    struct pending *p = m->lines[first];
    return p != NULL ? p : m->lines[!first];
}

static void
marks_move_some(struct marks *m)
{
    struct pending *p;
    if (m->preprocessor.count > 0)
        return; /* busy */
    while (m->preprocessor.count < PREPROCESSOR_MAX &&
           (p = marks_next_move(m)) != NULL) {
        if (!gate_is_open(m->spool->gate, p->gate)) {
            m->barred = true;
            break;
        }
        struct id before = guard_enter(&m->spool->guard, p->id);
        fill_move(m, p);
        guard_leave(&m->spool->guard, before);
    }
    if (m->preprocessor.count > 0 && preprocess_prepare(&m->preprocessor))
        marks_on_moved(m);
}

/* --- Writing --------------------------------------------------------------------- */

/* Writes marks in place, which works on a full disk: those without a text, or all. */
static int
mark_some(struct marks *m, const struct pending *p, unsigned count, bool all)
{
    unsigned *marks = memory_array(count + 1, sizeof(*marks)), some = 0;
    for (unsigned i = 0; i < count; i++)
        if (all || p->marks[i].text_length == 0)
            marks[some++] = p->marks[i].recipient;
    int result = spool_mark(m->spool, p->envelope, marks, some);
    free(marks);
    return result;
}

/* Texts first, for all of these. When they cannot be written, failed recipients are not
 * marked and fail again; delivered ones are, because they must not get the message
 * twice. */
static int
write_marks(struct marks *m, const struct pending *p, unsigned count)
{
    int result = 0;
    size_t texts = 0;
    for (unsigned i = 0; i < count; i++)
        texts += p->marks[i].text_length;
    if (texts > 0)
        result = spool_append_failures(m->spool, p->id,
                                       text_before(buffer_text(&p->texts), texts));
    int marked = mark_some(m, p, count, result == 0);
    return result == 0 ? marked : result;
}

/* True: there is more to write. */
static bool
write_preprocessed(struct marks *m, struct pending *p)
{
    unsigned count = p->count < MARKS_PER_TURN ? p->count : MARKS_PER_TURN;
    int result = write_marks(m, p, count);
    if (result == 0 && count < p->count) {
        drop_marks(m, p, count);
        return true;
    }
    if (result == 0 && p->due)
        result = spool_write_due(m->spool, p->envelope);
    m->changed(m->context, p->id);
    if (result < 0)
        keep_failed(m, p);
    else
        pending_free(m, p);
    return false;
}

/* True: there is more to write. */
static bool
write_one(struct marks *m, struct pending *p)
{
    struct journaled_message *journaled = journaled_find(m->journaled, p->id);
    struct id before = guard_enter(&m->spool->guard, p->id);
    bool more = false;
    if (needs_move(m, p)) {
        marks_enter_line(m, p);
    } else if (journaled == NULL) {
        more = write_preprocessed(m, p);
    } else if (p->count > 0) {
        marks_to_journal(m, p, journaled);
        pending_free(m, p);
    }
    guard_leave(&m->spool->guard, before);
    return more;
}

/* Settled in this turn: most such messages are retired before it ends. */
static bool
is_fresh(const struct marks *m, const struct pending *p)
{
    return !p->due && m->unwritten < MARKS_MAX &&
           p->since_ms == loop_monotonic_ms(m->loop);
}

/* A message may be tried again until its turn has come: what this attempt delivered goes
 * into the journal, or the message before the others. */
static void
marks_while_waiting(struct marks *m, struct pending *p)
{
    struct journaled_message *journaled = journaled_find(m->journaled, p->id);
    if (journaled != NULL) {
        marks_to_journal(m, p, journaled);
    } else if (p->count > 0 && !p->first) {
        marks_leave_line(m, p);
        marks_enter_line(m, p);
    }
}

/* False: that was all. */
static bool
marks_write_some(struct marks *m, bool with_fresh, bool *left_fresh)
{
    struct pending *p, *next;
    unsigned written = 0;
    HASH_ITER (hh, m->table, p, next) {
        if (p->waiting)
            marks_while_waiting(m, p);
        if (p->failed || p->waiting || p->moving)
            continue;
        if (is_barred(m, p)) {
            m->barred = true;
            continue;
        }
        if (!with_fresh && is_fresh(m, p)) {
            *left_fresh = true;
            continue;
        }
        if (written >= MESSAGES_PER_TURN)
            return true;
        /* A message with many marks takes a larger share of the turn. */
        written += 1 + p->count * MESSAGES_PER_TURN / MARKS_PER_TURN;
        if (write_one(m, p))
            return true;
    }
    return false;
}

static void
marks_delay_over(void *context)
{
    struct marks *m = context;
    m->urgent = true; /* the end of this very turn writes */
}

/* Whether the barred marks may be written now. */
static bool
marks_unbarred(const struct marks *m)
{
    return m->barred && m->spool->gate->durable != m->barred_at;
}

/* The first to write in a turn, so the events of the turn go before. */
static void
marks_at_stage_sync(void *context)
{
    struct marks *m = context;
    bool left_fresh = false;
    loop_unpost(m->loop, &m->wake);
    gate_write(m->spool->gate);
    if (!m->urgent && !marks_unbarred(m))
        return;
    loop_timer_stop(m->loop, &m->delay);
    m->barred = false;
    m->urgent = marks_write_some(m, false, &left_fresh);
    marks_move_some(m);
    if (m->barred)
        m->barred_at = m->spool->gate->durable;
    if (m->urgent || (m->lined > 0 && m->preprocessor.count == 0 && !m->barred))
        write_soon(m);
    else if (left_fresh)
        loop_timer_start(m->loop, &m->delay, DELAY_MS, marks_delay_over, m);
}

static void
marks_flush(struct marks *m)
{
    bool more = true, left_fresh = false;
    gate_wait(m->spool->gate);
    while (more) {
        more = marks_write_some(m, true, &left_fresh);
        marks_move_some(m);
        if (m->preprocessor.count > 0)
            disk_sync_wait(m->spool->disk);
        more = more || (m->lined > 0 && m->preprocessor.count == 0);
    }
    m->urgent = false;
}

/* --- Input ----------------------------------------------------------------------- */

void
queue_settle(struct queue *q, struct envelope *e, unsigned index,
             const struct failure *failure)
{
    struct marks *m = &q->marks;
    assert(index < e->count && (failure == NULL || failure->recipient == index));
    struct recipient *r = &e->recipients[index];
    struct pending *p = pending_for(m, e);
    size_t before = p->texts.length;
    assert(!r->done);
    r->done = true;
    e->delivery.done++;
    if (failure != NULL) {
        envelope_fail(e, failure);
        envelope_write_failure(e, failure, &p->texts);
    }
    add_mark(m, p, index, p->texts.length - before);
    if (m->synchronous || m->unwritten >= MARKS_MAX)
        write_soon(m);
    else if (!heap_has(&m->delay.node))
        loop_timer_start(m->loop, &m->delay, DELAY_MS, marks_delay_over, m);
}

bool
queue_may_notify(struct queue *q, const struct envelope *e)
{
    marks_write(&q->marks, e->id);
    const struct pending *p = marks_find(&q->marks, e->id);
    return p == NULL || !p->failed;
}

/* A second record for a failure, and a second D mark, which changes nothing: so that
 * the note needs no form of its own in the journal. */
void
queue_notified(struct queue *q, struct envelope *e)
{
    struct marks *m = &q->marks;
    struct pending *p = pending_for(m, e);
    for (unsigned i = 0; i < e->delivery.failure_count; i++) {
        struct failure *f = &e->delivery.failures[i];
        if (f->notified)
            continue;
        f->notified = true;
        struct failure note = *f;
        note.outcome.text[0] = note.outcome.remote[0] = '\0';
        size_t before = p->texts.length;
        envelope_write_failure(e, &note, &p->texts);
        add_mark(m, p, f->recipient, p->texts.length - before);
    }
    write_soon(m);
}

void
marks_defer(struct marks *m, struct envelope **e)
{
    struct pending *p = pending_for(m, *e);
    p->owned = p->due = true;
    *e = NULL;
    write_soon(m);
}

/* Counts marks that are still to be written or being written as well. */
void
queue_wait(struct queue *q, struct envelope *e, bool waits)
{
    struct marks *m = &q->marks;
    struct journaled_message *journaled = journaled_find(m->journaled, e->id);
    struct pending *p = marks_find(m, e->id);
    bool was = e->fragment.awaits_parts;
    e->fragment.awaits_parts = waits;
    if (journaled != NULL)
        journaled->awaits_parts = waits;
    if (p != NULL && p->envelope != NULL)
        p->envelope->fragment.awaits_parts = waits;
    if (waits == was || !e->storage.preprocessed)
        return;
    if (!waits)
        marker_drop(m->spool, MARKER_AWAITING, e->id);
    else
        (void)marker_put(m->spool, MARKER_AWAITING, e->id);
}

/* A message that is being moved ends when it has arrived. */
bool
marks_forget(struct marks *m, struct id id)
{
    struct pending *p = marks_find(m, id);
    if (p == NULL)
        return false;
    if (!p->moving) {
        pending_free(m, p);
        return false;
    }
    p->ended = true;
    return true;
}

static void
note_lost(const struct pending *p, char *reason, size_t size)
{
    size_t length = strlen(reason);
    for (unsigned i = 0; i < p->count && length < size; i++)
        length += (size_t)snprintf(
            reason + length, size - length, "%s%u",
            i == 0 ? "; done, but these files do not say so: recipients " : ", ",
            p->marks[i].recipient);
}

bool
marks_yield(struct marks *m, struct id id, char *reason, size_t reason_size)
{
    struct pending *p = marks_find(m, id);
    struct journaled_message *journaled = journaled_find(m->journaled, id);
    assert(p == NULL || !p->moving);
    if (p != NULL && journaled != NULL)
        marks_to_journal(m, p, journaled);
    else if (p != NULL && p->count > 0)
        marks_write(m, id);
    p = marks_find(m, id);
    if (p != NULL && p->count > 0 && marks_have_place(m, p->envelope))
        return false;
    if (p != NULL && p->count > 0)
        note_lost(p, reason, reason_size);
    if (p != NULL)
        pending_free(m, p);
    return true;
}

bool
marks_are_moving(const struct marks *m, struct id id)
{
    const struct pending *p = marks_find(m, id);
    return p != NULL && p->moving;
}

bool
marks_have_ended(const struct marks *m, struct id id)
{
    const struct pending *p = marks_find(m, id);
    return p != NULL && p->ended;
}

bool
marks_retire(struct marks *m, struct envelope **e)
{
    if (!marks_forget(m, (*e)->id))
        return false;
    struct pending *p = marks_find(m, (*e)->id);
    if (p->envelope == *e) {
        assert(!p->owned);
        p->envelope = NULL;
    }
    envelope_free(e);
    return true;
}

void
marks_move(struct marks *m, struct id id)
{
    struct pending *p = marks_find(m, id);
    if (p == NULL)
        p = pending_new(m, id);
    /* The retry timer puts it into the line. */
    if (p->failed)
        return;
    marks_enter_line(m, p);
    write_soon(m);
}

void
marks_write(struct marks *m, struct id id)
{
    struct pending *p = marks_find(m, id);
    if (p == NULL || p->moving || p->envelope == NULL)
        return;
    if (is_barred(m, p)) { /* marks_overlay() applies them meanwhile */
        write_soon(m);
        return;
    }
    p->failed = false;
    bool more = !p->waiting;
    while (more)
        more = write_one(m, p);
    if (m->lined > 0)
        write_soon(m);
}

/* todo/ has the aliases. Their members, as they were looked up, are those of the results and
 * of the files that will be made: by now the table may say something else. */
static bool
take_list(const struct pending *p, struct envelope *e)
{
    if (p->envelope == NULL || !e->storage.in_todo || e->storage.preprocessed)
        return true;
    e->storage.fixed = true;
    return envelope_take_recipients(e, p->envelope);
}

/* The envelope was read from the disk, which refused these results. Without them a
 * recipient that is done would get the message twice. Files that are being made do not
 * count yet, though they can be read: the move may fail. */
bool
marks_overlay(struct marks *m, struct envelope *e)
{
    struct pending *p = marks_find(m, e->id);
    if (p == NULL)
        return true;
    if (p->moving)
        e->storage.preprocessed = false;
    if (!take_list(p, e))
        return false;
    if (has_warning(p))
        e->delivery.warned_s = p->envelope->delivery.warned_s;
    e->delivery.released =
        e->delivery.released || (p->envelope != NULL && p->envelope->delivery.released);
    e->fragment.awaits_parts =
        e->fragment.awaits_parts ||
        (p->envelope != NULL && p->envelope->fragment.awaits_parts);
    for (unsigned i = 0; i < p->count; i++) {
        if (p->marks[i].recipient >= e->count)
            continue; /* the file was changed meanwhile */
        struct recipient *r = &e->recipients[p->marks[i].recipient];
        if (!r->done) {
            r->done = true;
            e->delivery.done++;
        }
    }
    envelope_read_failures(buffer_text(&p->texts), e);
    return true;
}

/* A round has at least this number of each line. */
uint64_t
marks_rounds_left(const struct marks *m)
{
    enum { LEAST = PREPROCESSOR_MAX - FIRST_PER_ROUND };
    return (m->preprocessor.count > 0) + (m->lined + LEAST - 1) / LEAST;
}

bool
queue_waits_for_move(const struct queue *q, struct id id)
{
    const struct pending *p = marks_find(&q->marks, id);
    return p != NULL && !p->moving && needs_move(&q->marks, p);
}

size_t
queue_moves(const struct queue *q)
{
    return q->marks.lined;
}

bool
marks_are_quiet(const struct marks *m)
{
    return m->preprocessor.count == 0 && m->lined == 0 && !m->urgent;
}

/* --- Start and stop -------------------------------------------------------------- */

void
marks_start(struct marks *m)
{
    m->preprocessor =
        (struct preprocessor){.spool = m->spool, .done = marks_on_moved, .context = m};
    if (!m->synchronous)
        loop_at_end(m->loop, LOOP_SYNC_MARKS, marks_at_stage_sync, m);
}

/* Moves under way end first: then what the disk has refused is tried once more. */
void
marks_stop(struct marks *m)
{
    struct pending *p, *next;
    if (m->preprocessor.count > 0)
        disk_sync_wait(m->spool->disk);
    HASH_ITER (hh, m->table, p, next)
        p->failed = false;
    marks_flush(m);
    /* Syncs that the system has lost track of: the message stays where it was. */
    for (unsigned i = 0; i < m->preprocessor.count; i++) {
        p = marks_find(m, m->preprocessor.moves[i].id);
        p->moving = false;
    }
    preprocess_end(&m->preprocessor);
    HASH_ITER (hh, m->table, p, next)
        pending_free(m, p);
    if (m->synchronous)
        return;
    loop_at_end_remove(m->loop, LOOP_SYNC_MARKS, marks_at_stage_sync, m);
    loop_timer_stop(m->loop, &m->delay);
    loop_timer_stop(m->loop, &m->retry);
    loop_unpost(m->loop, &m->wake);
}
