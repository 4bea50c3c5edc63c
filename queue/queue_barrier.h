/* Tells once when everything that was retired, removed, marked or deferred before the
 * call is durable: a crash cannot bring it back. */
#ifndef QUEUE_QUEUE_BARRIER_H
#define QUEUE_QUEUE_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

struct queue;

/* Embedded in its owner, zeroed before first use. */
struct queue_barrier {
    struct queue_barrier *prev, *next;
    struct queue *queue;        /* NULL: not waiting */
    bool lined, moved, is_over; /* stages, see queue_barrier.c */
    int64_t begun_ms;
    uint64_t round, batch;
    void (*done)(void *context);
    void *context;
};

/* Calls done in a later turn, with and without a journal; never while the disk fails.
 * The barrier must not be waiting. */
void queue_barrier(struct queue *queue, struct queue_barrier *barrier,
                   void (*done)(void *context), void *context);
/* Ends the wait without a callback; the barrier need not be waiting. queue_close()
 * cancels all barriers. */
void queue_barrier_cancel(struct queue_barrier *barrier);

/* --- Within queue/ ---------------------------------------------------------------- */

/* Records have moved to files: checks all in the next turn. */
void queue_barriers_wake(struct queue *queue);
/* A batch is durable, or (again: journal_again()) has failed. */
void queue_barriers_settled(struct queue *queue, uint64_t again);
void queue_barriers_stop(struct queue *queue);

#endif
