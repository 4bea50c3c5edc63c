/* D marks, bounce texts and due times: gathered, then written in few syncs. */
#include "queue/marks.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <uthash.h>

enum {
    DELAY_MS = 100,
    MARKS_MAX = 64,         /* written at the end of the turn then */
    MESSAGES_PER_TURN = 64, /* so that a flood of deferrals stalls nobody */
    RETRY_MS = 10 * 1000,
    TEXTS_MAX = 80 * 1024 * 1024 /* above ENVELOPE_RECIPIENTS_MAX failures */
};

struct pending {
    struct id id;
    struct envelope *envelope;
    bool owned;       /* deferred: the envelope is ours */
    bool due;         /* its due time is to be written */
    bool failed;      /* the disk refused; waits for the retry */
    int64_t since_ms; /* monotonic: the first mark, or the due time */
    unsigned *marks;
    unsigned count, capacity;
    struct buffer texts; /* of failures, as appended to bounce/ */
    UT_hash_handle hh;
};

static struct pending *
find(const struct marks *m, struct id id)
{
    struct pending *p = NULL;
    HASH_FIND(hh, m->table, &id, sizeof(id), p);
    return p;
}

static void
pending_free(struct marks *m, struct pending *p)
{
    HASH_DEL(m->table, p);
    assert(m->unwritten >= p->count);
    m->unwritten -= p->count;
    if (p->owned)
        envelope_free(&p->envelope);
    buffer_free(&p->texts);
    free(p->marks);
    free(p);
}

/* The pending of e; one that is left from an older copy of the envelope goes on with e.
 */
static struct pending *
pending_for(struct marks *m, struct envelope *e)
{
    struct pending *p = find(m, e->id);
    if (p == NULL) {
        p = memory_new(sizeof(*p));
        p->id = e->id;
        p->envelope = e;
        p->since_ms = m->at_once ? 0 : loop_monotonic_ms(m->loop);
        buffer_init(&p->texts, TEXTS_MAX);
        HASH_ADD(hh, m->table, id, sizeof(p->id), p);
    } else if (p->envelope != e) {
        assert(p->owned);
        envelope_free(&p->envelope);
        p->owned = false;
        p->envelope = e;
    }
    p->failed = false;
    return p;
}

static void
add_mark(struct marks *m, struct pending *p, unsigned index)
{
    if (p->count == p->capacity) {
        p->capacity = p->capacity > 0 ? p->capacity * 2 : 4;
        p->marks = memory_resize(p->marks, p->capacity * sizeof(*p->marks));
    }
    p->marks[p->count++] = index;
    m->unwritten++;
}

/* --- Writing --------------------------------------------------------------------- */

struct batch {
    struct pending *rows[MESSAGES_PER_TURN];
    size_t count;
    bool young; /* some were left out */
};

/* First half of S4 to S5 for all of them, then the rooms once, then the todos go. */
static void
materialise(struct marks *m, struct batch *all)
{
    struct batch fresh = {.count = 0};
    for (size_t i = 0; i < all->count; i++) {
        struct pending *p = all->rows[i];
        if (p->envelope->preprocessed)
            continue;
        if (spool_materialise(m->spool, p->envelope) < 0)
            p->failed = true;
        else
            fresh.rows[fresh.count++] = p;
    }
    if (fresh.count == 0)
        return;
    int result = spool_sync_rooms(
        m->spool, ROOM_BIT(ROOM_QUEUED) | ROOM_BIT(ROOM_BOUNCE) | ROOM_BIT(ROOM_INFO) |
                      ROOM_BIT(ROOM_LOCAL) | ROOM_BIT(ROOM_REMOTE));
    for (size_t i = 0; i < fresh.count; i++) {
        struct pending *p = fresh.rows[i];
        if (result < 0) {
            p->failed = true; /* todo stays: still S4 */
            continue;
        }
        if (spool_leave_todo(m->spool, p->envelope) == 0)
            seen_remove(m->seen, p->id);
        pending_free(m, p);
    }
}

static void
write_preprocessed(struct marks *m, struct pending *p)
{
    int result = 0;
    if (p->count > 0)
        result = spool_mark(m->spool, p->envelope, buffer_text(&p->texts), p->marks,
                            p->count);
    if (result == 0 && p->due)
        result = spool_write_due(m->spool, p->envelope);
    if (result < 0)
        p->failed = true;
    else
        pending_free(m, p);
}

static void
try_again(void *context)
{
    struct marks *m = context;
    struct pending *p, *next;
    HASH_ITER (hh, m->table, p, next)
        p->failed = false;
    m->urgent = true;
}

/* A due time alone is not worth keeping: the scheduler has it, and a restart is early.
 */
static void
keep_failed(struct marks *m, struct pending *p)
{
    if (p->owned && p->count == 0) {
        pending_free(m, p);
        return;
    }
    if (!m->at_once && !heap_has(&m->retry.node))
        loop_timer_start(m->loop, &m->retry, RETRY_MS, try_again, m);
}

static void
write_batch(struct marks *m, struct batch *batch)
{
    struct batch old = {.count = 0}, failed = {.count = 0};
    struct id ids[MESSAGES_PER_TURN];
    for (size_t i = 0; i < batch->count; i++) {
        ids[i] = batch->rows[i]->id;
        if (batch->rows[i]->envelope->preprocessed)
            old.rows[old.count++] = batch->rows[i];
    }
    materialise(m, batch);
    for (size_t i = 0; i < old.count; i++)
        write_preprocessed(m, old.rows[i]);
    for (size_t i = 0; i < batch->count; i++) {
        struct pending *left = find(m, ids[i]);
        if (left != NULL && left->failed)
            failed.rows[failed.count++] = left;
    }
    for (size_t i = 0; i < failed.count; i++)
        keep_failed(m, failed.rows[i]);
}

/* Settled in this very turn: most such messages are retired before it ends. */
static bool
is_young(const struct marks *m, const struct pending *p)
{
    return !p->due && m->unwritten < MARKS_MAX &&
           p->since_ms == loop_monotonic_ms(m->loop);
}

/* The next ones to write; false: that was all. */
static bool
gather(struct marks *m, struct batch *batch, bool with_young)
{
    struct pending *p, *next;
    *batch = (struct batch){.count = 0};
    HASH_ITER (hh, m->table, p, next) {
        if (p->failed)
            continue;
        if (!with_young && is_young(m, p)) {
            batch->young = true;
            continue;
        }
        if (batch->count == MESSAGES_PER_TURN)
            return true;
        batch->rows[batch->count++] = p;
    }
    return false;
}

static void
nothing(void *context)
{
    (void)context;
}

static void
delay_over(void *context)
{
    struct marks *m = context;
    m->urgent = true; /* the end of this very turn writes */
}

static void
at_stage_sync(void *context)
{
    struct marks *m = context;
    struct batch batch;
    loop_unpost(m->loop, &m->stir);
    if (!m->urgent)
        return;
    loop_timer_stop(m->loop, &m->delay);
    m->urgent = gather(m, &batch, false);
    write_batch(m, &batch);
    if (m->urgent)
        loop_post(m->loop, &m->stir, nothing, m);
    else if (batch.young)
        loop_timer_start(m->loop, &m->delay, DELAY_MS, delay_over, m);
}

void
marks_flush(struct marks *m)
{
    struct batch batch;
    bool more = true;
    while (more) {
        more = gather(m, &batch, true);
        write_batch(m, &batch);
    }
    m->urgent = false;
}

/* Also when the stage of this turn has passed. */
static void
write_soon(struct marks *m)
{
    m->urgent = true;
    if (m->at_once)
        marks_flush(m);
    else
        loop_post(m->loop, &m->stir, nothing, m);
}

/* --- What comes in --------------------------------------------------------------- */

void
marks_settle(struct marks *m, struct envelope *e, unsigned index, enum channel channel,
             const struct failure *failure)
{
    assert(index < e->count && (failure == NULL || failure->recipient == index));
    struct recipient *r = &e->recipients[index];
    struct pending *p = pending_for(m, e);
    assert(!r->done);
    if (!e->preprocessed)
        r->channel = channel;
    r->done = true;
    e->done++;
    if (failure != NULL) {
        envelope_fail(e, index, failure->expired, &failure->outcome);
        envelope_write_failure(e, failure, &p->texts);
    }
    add_mark(m, p, index);
    if (m->at_once || m->unwritten >= MARKS_MAX)
        write_soon(m);
    else if (!heap_has(&m->delay.node))
        loop_timer_start(m->loop, &m->delay, DELAY_MS, delay_over, m);
}

void
marks_defer(struct marks *m, struct envelope **e)
{
    struct pending *p = pending_for(m, *e);
    p->owned = p->due = true;
    *e = NULL;
    write_soon(m);
}

void
marks_write(struct marks *m, struct id id)
{
    struct pending *p = find(m, id);
    struct batch one = {.rows = {p}, .count = 1};
    if (p == NULL)
        return;
    p->failed = false;
    write_batch(m, &one);
}

void
marks_overlay(struct marks *m, struct envelope *e)
{
    struct pending *p = find(m, e->id);
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->count; i++) {
        struct recipient *r = &e->recipients[p->marks[i]];
        assert(p->marks[i] < e->count);
        if (!e->preprocessed)
            r->channel = p->envelope->recipients[p->marks[i]].channel;
        if (!r->done) {
            r->done = true;
            e->done++;
        }
    }
    envelope_read_failures(buffer_text(&p->texts), e);
}

void
marks_forget(struct marks *m, struct id id)
{
    struct pending *p = find(m, id);
    if (p != NULL)
        pending_free(m, p);
}

/* --- Start and stop -------------------------------------------------------------- */

void
marks_start(struct marks *m)
{
    if (!m->at_once)
        loop_at_end(m->loop, LOOP_STAGE_SYNC, at_stage_sync, m);
}

void
marks_stop(struct marks *m)
{
    struct pending *p, *next;
    marks_flush(m);
    HASH_ITER (hh, m->table, p, next)
        pending_free(m, p);
    if (m->at_once)
        return;
    loop_at_end_remove(m->loop, LOOP_STAGE_SYNC, at_stage_sync, m);
    loop_timer_stop(m->loop, &m->delay);
    loop_timer_stop(m->loop, &m->retry);
    loop_unpost(m->loop, &m->stir);
}
