/* Tasks, timers and the end of a turn: the part of the loop that needs no system.
 *
 * Two rules keep every turn finite. Tasks that a task posts, and timers that start
 * without a delay, run in the next turn: one that renews itself does not hold up the
 * end of this one. And hooks never make work for earlier slots. The order of the
 * slots makes a reply true: the writes of a turn are submitted to the disk, then
 * durable writes are reported, then replies go to sockets. */
#include "base/loop/loop_turn.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

/* due_ms of a timer that waits in `soon`. */
enum { SOON = -1 };

static bool
turn_due_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct loop_timer *left = memory_container(a, struct loop_timer, node);
    const struct loop_timer *right = memory_container(b, struct loop_timer, node);
    return left->due_ms < right->due_ms;
}

static void
calls_add(struct turn_calls *calls, void (*run)(void *), void *context)
{
    assert(run);
    if (calls->count == calls->capacity) {
        calls->capacity = calls->capacity ? calls->capacity * 2 : 8;
        calls->rows =
            memory_resize(calls->rows, calls->capacity * sizeof(*calls->rows));
    }
    calls->rows[calls->count++] = (struct turn_call){run, context};
}

static void
run_slot(struct turn_calls *hooks)
{
    size_t kept = 0;
    /* A hook may add or remove hooks, so rows and count are read anew each time. */
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->rows[i].run)
            hooks->rows[i].run(hooks->rows[i].context);
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->rows[i].run)
            hooks->rows[kept++] = hooks->rows[i];
    hooks->count = kept;
}

static void
run_releases(struct turn_calls *releases)
{
    /* A release may release more: that goes in the same sweep. */
    for (size_t i = 0; i < releases->count; i++) {
        struct turn_call call = releases->rows[i];

        call.run(call.context);
    }
    releases->count = 0;
}

/* Now they get a due time, so that they fire in order with the other timers. */
static void
ripen(struct loop *loop)
{
    struct heap_node *node;
    while ((node = heap_first(&loop->soon)) != NULL) {
        heap_remove(&loop->soon, node);
        memory_container(node, struct loop_timer, node)->due_ms = loop->monotonic_ms;
        heap_add(&loop->timers, node);
    }
}

static void
run_tasks(struct loop *loop)
{
    struct loop_task *task;
    /* Tasks posted from here on are for the next turn. */
    loop->running = loop->posted;
    loop->posted = loop->last = NULL;
    while ((task = loop->running) != NULL) {
        loop->running = task->next;
        task->next = NULL;
        task->queued = false;
        if (task->run != NULL)
            task->run(task->context);
    }
}

/* Ends, since a timer that is started here is due later, or waits in `soon`. */
static void
run_timers(struct loop *loop)
{
    struct heap_node *node;
    while ((node = heap_first(&loop->timers)) != NULL) {
        struct loop_timer *timer = memory_container(node, struct loop_timer, node);

        if (timer->due_ms > loop->monotonic_ms)
            break;
        heap_remove(&loop->timers, node);
        if (timer->fire != NULL)
            timer->fire(timer->context);
    }
}

void
turn_init(struct loop *loop, int64_t wall_ms, int64_t monotonic_ms)
{
    *loop = (struct loop){.wall_ms = wall_ms > 0 ? wall_ms : 0,
                          .monotonic_ms = monotonic_ms > 0 ? monotonic_ms : 0};
    heap_init(&loop->timers, turn_due_before);
    heap_init(&loop->soon, turn_due_before);
}

void
turn_free(struct loop *loop)
{
    assert(!loop->in_turn);
    run_releases(&loop->releases);
    free(loop->releases.rows);
    for (int slot = 0; slot < LOOP_SLOTS; slot++)
        free(loop->hooks[slot].rows);
    heap_free(&loop->timers);
    heap_free(&loop->soon);
}

/* The wall clock was set; a wait passes by both clocks. */
static void
turn_note_jump(struct loop *loop, int64_t wall_ms, int64_t monotonic_ms)
{
    int64_t by_ms = wall_ms - loop->wall_ms - (monotonic_ms - loop->monotonic_ms);
    if (by_ms < LOOP_JUMP_MS && by_ms > -LOOP_JUMP_MS)
        return;
    loop->pace.jump_by_ms = by_ms;
    loop->pace.jump_ms = monotonic_ms;
}

void
turn_begin(struct loop *loop, int64_t wall_ms, int64_t monotonic_ms)
{
    assert(!loop->in_turn);
    loop->in_turn = true;
    loop->began_us = loop_clock_us();
    wall_ms = wall_ms > 0 ? wall_ms : 0;
    if (monotonic_ms < loop->monotonic_ms) /* some virtual machines step back */
        monotonic_ms = loop->monotonic_ms;
    turn_note_jump(loop, wall_ms, monotonic_ms);
    loop->wall_ms = wall_ms;
    loop->monotonic_ms = monotonic_ms;
    ripen(loop);
    run_tasks(loop);
    run_timers(loop);
    loop->timed_us = loop_clock_us();
}

/* ready_us: behind the connections and files that were ready. */
static void
turn_note_pace(struct loop *loop, int64_t ready_us)
{
    static const int64_t bounds_us[LOOP_PACE_BOUNDS] = {1000, 10000, 100000, 1000000};
    struct loop_pace *pace = &loop->pace;
    int64_t end_us = loop_clock_us(), took_us = end_us - loop->began_us;
    int64_t timers_us = loop->timed_us - loop->began_us,
            sockets_us = ready_us - loop->timed_us, rest_us = end_us - ready_us;
    size_t i = 0;
    while (i < LOOP_PACE_BOUNDS && took_us > bounds_us[i])
        i++;
    pace->turns[i]++;
    pace->sum_us += took_us;
    if (took_us < LOOP_SLOW_US)
        return;
    pace->slow_us = took_us;
    pace->slow_ms = loop->monotonic_ms;
    pace->slow_part = timers_us >= sockets_us && timers_us >= rest_us
                          ? "timers and long work"
                      : sockets_us >= rest_us ? "input of clients and servers"
                                              : "the disk, replies and the log";
}

void
turn_end(struct loop *loop)
{
    int64_t ready_us = loop_clock_us();
    assert(loop->in_turn);
    for (int slot = 0; slot < LOOP_SLOTS; slot++)
        run_slot(&loop->hooks[slot]);
    run_releases(&loop->releases);
    loop->in_turn = false;
    turn_note_pace(loop, ready_us);
}

const struct loop_pace *
loop_pace(const struct loop *loop)
{
    return &loop->pace;
}

bool
turn_is_pressing(const struct loop *loop)
{
    return loop->posted || heap_first(&loop->soon);
}

int64_t
turn_due_ms(const struct loop *loop)
{
    struct heap_node *node = heap_first(&loop->timers);
    return node ? memory_container(node, struct loop_timer, node)->due_ms : -1;
}

void
loop_stop(struct loop *loop)
{
    loop->stopping = true;
}

int64_t
loop_now_ms(const struct loop *loop)
{
    return loop->wall_ms;
}

const int64_t *
loop_turn_ms(const struct loop *loop)
{
    return &loop->wall_ms;
}

int64_t
loop_monotonic_ms(const struct loop *loop)
{
    return loop->monotonic_ms;
}

/* A timer without a delay waits in `soon`, so that it never fires in the turn that
 * starts it. */
void
loop_timer_start(struct loop *loop, struct loop_timer *timer, int64_t delay_ms,
                 void (*fire)(void *context), void *context)
{
    loop_timer_stop(loop, timer);
    timer->fire = fire;
    timer->context = context;
    if (delay_ms <= 0) {
        timer->due_ms = SOON;
        heap_add(&loop->soon, &timer->node);
    } else {
        timer->due_ms = delay_ms < INT64_MAX - loop->monotonic_ms
                            ? loop->monotonic_ms + delay_ms
                            : INT64_MAX;
        heap_add(&loop->timers, &timer->node);
    }
}

void
loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
    if (heap_has(&timer->node))
        heap_remove(timer->due_ms == SOON ? &loop->soon : &loop->timers, &timer->node);
}

static void
add_task(struct loop *loop, struct loop_task *task, void (*run)(void *context),
         void *context)
{
    task->run = run;
    task->context = context;
    if (task->queued)
        return;
    task->queued = true;
    LL_APPEND_ELEM(loop->posted, loop->last, task);
    loop->last = task;
}

void
loop_post(struct loop *loop, struct loop_task *task, void (*run)(void *context),
          void *context)
{
    assert(run);
    add_task(loop, task, run, context);
}

void
loop_wake(struct loop *loop, struct loop_task *task)
{
    add_task(loop, task, NULL, NULL);
}

/* A task may be unposted by another one that runs before it in the same turn. */
void
loop_unpost(struct loop *loop, struct loop_task *task)
{
    struct loop_task *before = NULL, *each = NULL;
    if (!task->queued)
        return;
    task->queued = false;
    LL_FOREACH (loop->posted, each) {
        if (each == task)
            break;
        before = each;
    }
    if (each) {
        if (loop->last == task)
            loop->last = before;
        LL_DELETE(loop->posted, task);
    } else {
        LL_DELETE(loop->running, task);
    }
    task->next = NULL;
}

void
loop_at_end(struct loop *loop, enum loop_slot slot, void (*run)(void *context),
            void *context)
{
    assert(slot < LOOP_SLOTS);
    calls_add(&loop->hooks[slot], run, context);
}

void
loop_at_end_remove(struct loop *loop, enum loop_slot slot, void (*run)(void *context),
                   void *context)
{
    struct turn_calls *hooks = &loop->hooks[slot];
    /* Only marked: run_slot() may be walking through the rows, and sweeps them. */
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->rows[i].run == run && hooks->rows[i].context == context)
            hooks->rows[i].run = NULL;
}

/* Functions further up the stack may still use the object: law 2 of the loop. */
void
loop_release(struct loop *loop, void (*release)(void *object), void *object)
{
    calls_add(&loop->releases, release, object);
}
