/* The loop: readiness, time and chance. The only door to libev, clock and randomness.
 *
 * Laws (doc/dev/design.md "Laws of the loop"): a start function never calls its callback
 * before it returns; nothing is freed inside a callback, loop_release() frees it at the
 * end of the turn; the end of the turn runs in a fixed order: sync the disk, answer
 * durable writes, write to sockets, free. */
#ifndef BASE_LOOP_LOOP_H
#define BASE_LOOP_LOOP_H

#include "base/heap.h"

#include <stdint.h>

struct loop;
struct loop_watch;

struct loop *loop_new(void);
void loop_free(struct loop **loop);
/* "libev 4.33" */
const char *loop_version(void);
/* Runs turns until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* One turn, waiting at most wait_ms for something to happen (0 = do not wait). For
 * tests. */
void loop_turn(struct loop *loop, int64_t wait_ms);

/* Wall clock, ms since the epoch. Changes between turns, never within one. */
int64_t loop_now_ms(const struct loop *loop);
/* Where that time is, as long as the loop lives. */
const int64_t *loop_turn_ms(const struct loop *loop);
/* Never goes back; for durations. */
int64_t loop_monotonic_ms(const struct loop *loop);
/* Monotonic, read at each call: to measure the duration of a call within a turn. */
int64_t loop_clock_us(void);
/* 64 random bits, from the system. */
uint64_t loop_random(struct loop *loop);

/* How long turns took, without their waits: measured, never simulated. */
enum {
    LOOP_PACE_BOUNDS = 4, /* 1, 10, 100 ms, 1 s */
    LOOP_SLOW_US = 250 * 1000,
    LOOP_JUMP_MS = 60 * 1000 /* of the wall clock alone */
};
struct loop_pace {
    uint64_t turns[LOOP_PACE_BOUNDS + 1]; /* by those bounds; the last: beyond */
    int64_t sum_us;
    /* The last turn of LOOP_SLOW_US or more: how long, when (monotonic; us 0: never),
     * and its longest part. */
    int64_t slow_us, slow_ms;
    const char *slow_part;
    /* When the wall clock last jumped (monotonic; by 0: never), and by how much. */
    int64_t jump_by_ms, jump_ms;
};
const struct loop_pace *loop_pace(const struct loop *loop);

/* Embedded in its owner, zeroed before the first use. A timer fires once. */
struct loop_timer {
    struct heap_node node;
    int64_t due_ms; /* monotonic */
    void (*fire)(void *context);
    void *context;
};
/* Starts or restarts. delay_ms <= 0 fires in the next turn. fire may be NULL: the timer
 * is to cause a turn, no more. */
void loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms,
                      void (*fire)(void *context), void *context);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer); /* may be stopped */

/* Runs once at the start of the next turn (which then does not wait). */
struct loop_task {
    struct loop_task *next;
    bool queued;
    void (*run)(void *context);
    void *context;
};
void loop_post(struct loop *loop, struct loop_task *task, void (*run)(void *context),
               void *context);
/* Posts a task without a function, so that the next turn does not wait. */
void loop_wake(struct loop *loop, struct loop_task *task);
void loop_unpost(struct loop *loop, struct loop_task *task); /* may be not posted */

/* Readiness of a descriptor; level-triggered. events may be 0 (paused). */
enum { LOOP_READ = 1, LOOP_WRITE = 2 };
struct loop_watch *loop_watch_new(struct loop *loop, int descriptor, int events,
                                  void (*ready)(void *context, int events),
                                  void *context);
void loop_watch_set(struct loop_watch *watch, int events);
/* No callback comes after it returns; the memory is freed at the end of the turn. */
void loop_watch_free(struct loop_watch **watch);

/* Calls fire in a turn, not in the signal handler. */
void loop_on_signal(struct loop *loop, int signal_number, void (*fire)(void *context),
                    void *context);

/* The end of the turn, in this order, every turn: the writes of the turn are submitted to
 * the disk, durable ones are answered and the scheduler runs, then sockets are written. A
 * hook may make work for later slots of the same turn, never for earlier ones. Hooks of one
 * slot run in the order they were added. */
enum loop_slot {
    LOOP_SYNC_LOG,
    LOOP_SYNC_MARKS, /* begins with the events of the turn (base/gate.h) */
    LOOP_SYNC_COMMIT,
    LOOP_SYNC_JOURNAL,
    LOOP_ANSWER_COMMIT,
    LOOP_ANSWER_MANAGER,
    LOOP_ANSWER_GROUP,
    LOOP_ANSWER_DELIVERY,
    LOOP_ANSWER_SIGNING,
    LOOP_ANSWER_HISTORY,
    LOOP_ANSWER_SESSIONS, /* behind the manager, which routes the messages of the turn */
    LOOP_SEND_COPIES,     /* all that has happened in this turn */
    LOOP_SEND_LOG,        /* a reply follows the line that tells of it */
    LOOP_SEND_NET,
    LOOP_SEND_DISK,
    LOOP_SLOTS
};
void loop_at_end(struct loop *loop, enum loop_slot slot, void (*run)(void *context),
                 void *context);
void loop_at_end_remove(struct loop *loop, enum loop_slot slot,
                        void (*run)(void *context), void *context);
/* Calls release(object) at the end of this turn, after all slots. */
void loop_release(struct loop *loop, void (*release)(void *object), void *object);

#endif
