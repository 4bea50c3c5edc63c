/* Waits until everything that was retired up to now is durable. */
#include "queue/queue_barrier.h"

#include "queue/queue_internal.h"

#include <assert.h>
#include <utlist.h>

enum {
    LINING_MS = 20 /* a busy queue has marks to write in every turn */
};

/* Marks are written at the end of a turn, some at a time. Those that need files are
 * queued for the preprocessor. */
static bool
barrier_is_lined(const struct queue *q, struct queue_barrier *b)
{
    if (b->lined)
        return true;
    if (q->marks.urgent && loop_monotonic_ms(q->loop) - b->begun_ms < LINING_MS)
        return false;
    b->round = q->marks.rounds + marks_rounds_left(&q->marks);
    b->lined = true;
    return true;
}

/* A message that is being moved to files ends after the move, so the preprocessor comes
 * first. The ENDs of a batch that failed are in the next one. */
static bool
barrier_is_over(struct queue *q, struct queue_barrier *b)
{
    if (!barrier_is_lined(q, b) ||
        (!b->moved && q->marks.rounds < b->round && marks_rounds_left(&q->marks) > 0))
        return false;
    if (q->removal.barred != NULL) /* for a second at most; on_removed() tells */
        return false;
    if (!b->moved) {
        b->batch = q->last_end;
        removal_sync(&q->removal);
        if (q->journaled.journal != NULL)
            journal_hurry(q->journaled.journal);
    }
    b->moved = true;
    return q->durable_batch >= b->batch;
}

/* Finished barriers leave the list first: a callback may begin or cancel others. */
static void
check_barriers(void *context)
{
    struct queue *q = context;
    struct queue_barrier *b, *next;
    bool is_lining = false;
    DL_FOREACH_SAFE (q->barriers, b, next) {
        if (barrier_is_over(q, b)) {
            DL_DELETE(q->barriers, b);
            DL_APPEND(q->barriers_over, b);
            b->is_over = true;
        }
        is_lining = is_lining || !b->lined;
    }
    if (is_lining)
        queue_barriers_wake(q);
    while ((b = q->barriers_over) != NULL) {
        DL_DELETE(q->barriers_over, b);
        b->queue = NULL;
        b->done(b->context);
    }
}

void
queue_barriers_wake(struct queue *q)
{
    if (q->barriers != NULL)
        loop_post(q->loop, &q->barrier_check, check_barriers, q);
}

/* The ends of a failed batch are in later ones. */
void
queue_barriers_settled(struct queue *q, uint64_t again)
{
    struct queue_barrier *b;
    DL_FOREACH (q->barriers, b)
        if (b->moved && b->batch < again)
            b->batch = again;
    if (q->last_end < again)
        q->last_end = again;
    queue_barriers_wake(q);
}

void
queue_barrier(struct queue *q, struct queue_barrier *b, void (*done)(void *context),
              void *context)
{
    assert(b->queue == NULL);
    *b = (struct queue_barrier){.queue = q,
                                .begun_ms = loop_monotonic_ms(q->loop),
                                .done = done,
                                .context = context};
    DL_APPEND(q->barriers, b);
    queue_barriers_wake(q);
}

void
queue_barrier_cancel(struct queue_barrier *b)
{
    struct queue *q = b->queue;
    if (q == NULL)
        return;
    b->queue = NULL;
    if (b->is_over)
        DL_DELETE(q->barriers_over, b);
    else
        DL_DELETE(q->barriers, b);
}

void
queue_barriers_stop(struct queue *q)
{
    while (q->barriers != NULL)
        queue_barrier_cancel(q->barriers);
    while (q->barriers_over != NULL)
        queue_barrier_cancel(q->barriers_over);
    loop_unpost(q->loop, &q->barrier_check);
}
