/* The loop's stand-in: virtual time, seeded chance, readiness and signals on command.
 */
#include "t/sim/sim.h"

#include "base/memory.h"
#include "base/loop/loop_turn.h"

#include <assert.h>
#include <poll.h>
#include <stdlib.h>
#include <utlist.h>

struct sim_loop {
    struct loop turn; /* first: what everybody else sees */
    int64_t step_ms;  /* wall clock against monotonic */
    uint64_t random, turns;
    struct loop_watch *watches;
    struct sim_signal *signals;
};

struct loop_watch {
    struct sim_loop *loop;
    int descriptor, events;
    int happened; /* since the last turn */
    bool freed;
    void (*ready)(void *context, int events);
    void *context;
    struct loop_watch *prev, *next;
};

struct sim_signal {
    int number;
    bool happened;
    void (*fire)(void *context);
    void *context;
    struct sim_signal *next;
};

/* Those of loop_new(). */
static uint64_t start_seed = 1;
static int64_t start_now_ms, start_step_ms;
/* The owner of all descriptors, which says whether one is ready; NULL: tests say so. */
static int (*ask_owner)(int descriptor);

static struct sim_loop *
sim(struct loop *loop)
{
    return memory_container(loop, struct sim_loop, turn);
}

static void
free_watch(void *object)
{
    struct loop_watch *watch = object;

    DL_DELETE(watch->loop->watches, watch);
    free(watch);
}

static int
ready_events(const struct loop_watch *watch)
{
    int happened = watch->happened;

    if (ask_owner != NULL && watch->events != 0)
        happened |= ask_owner(watch->descriptor);
    return happened & watch->events;
}

static bool
is_ready(const struct loop_watch *watch)
{
    return ready_events(watch) != 0;
}

static bool
is_pressing(const struct sim_loop *loop)
{
    const struct loop_watch *watch;
    const struct sim_signal *each;

    DL_FOREACH (loop->watches, watch)
        if (is_ready(watch))
            return true;
    LL_FOREACH (loop->signals, each)
        if (each->happened)
            return true;
    return turn_is_pressing(&loop->turn);
}

static void
run_happened(struct sim_loop *loop)
{
    struct sim_signal *each;
    struct loop_watch *watch = NULL;

    LL_FOREACH (loop->signals, each) {
        bool happened = each->happened;

        each->happened = false;
        if (happened)
            each->fire(each->context);
    }
    /* Watches leave the list only at the end of the turn; new ones have no events yet.
     */
    DL_FOREACH (loop->watches, watch) {
        int events = ready_events(watch);

        watch->happened &= ~events;
        if (events)
            watch->ready(watch->context, events);
    }
}

static void
run_turn(struct sim_loop *loop, int64_t monotonic_ms)
{
    int64_t since_start_ms = monotonic_ms - SIM_MONOTONIC_START_MS;

    loop->turns++;
    turn_begin(&loop->turn, SIM_WALL_START_MS + since_start_ms + loop->step_ms,
               monotonic_ms);
    run_happened(loop);
    turn_end(&loop->turn);
}

/* When the next turn has something to do, at most end_ms; end_ms when nothing has. */
static int64_t
next_ms(const struct sim_loop *loop, int64_t end_ms)
{
    int64_t due_ms = turn_due_ms(&loop->turn);

    if (is_pressing(loop))
        return loop->turn.monotonic_ms;
    if (due_ms < 0 || due_ms > end_ms)
        return end_ms;
    return due_ms > loop->turn.monotonic_ms ? due_ms : loop->turn.monotonic_ms;
}

struct loop *
sim_loop_new_at(uint64_t seed, int64_t now_ms, int64_t step_ms)
{
    struct sim_loop *loop = memory_new(sizeof(*loop));

    turn_init(&loop->turn, SIM_WALL_START_MS + now_ms + step_ms,
              SIM_MONOTONIC_START_MS + now_ms);
    loop->random = seed;
    loop->step_ms = step_ms;
    return &loop->turn;
}

struct loop *
sim_loop_new(uint64_t seed)
{
    return sim_loop_new_at(seed, 0, 0);
}

void
sim_loop_on_ask(int (*ask)(int descriptor))
{
    ask_owner = ask;
}

int64_t
sim_loop_due_ms(struct loop *loop)
{
    int64_t at_ms = next_ms(sim(loop), INT64_MAX);

    return at_ms == INT64_MAX ? at_ms : at_ms - SIM_MONOTONIC_START_MS;
}

void
sim_loop_turn_at(struct loop *loop, int64_t now_ms)
{
    run_turn(sim(loop), SIM_MONOTONIC_START_MS + now_ms);
}

bool
sim_loop_is_stopped(const struct loop *loop)
{
    return loop->stopping;
}

void
sim_loop_begin_at(uint64_t seed, int64_t now_ms, int64_t step_ms)
{
    start_seed = seed;
    start_now_ms = now_ms;
    start_step_ms = step_ms;
}

struct loop *
loop_new(void)
{
    return sim_loop_new_at(start_seed, start_now_ms, start_step_ms);
}

const char *
loop_version(void)
{
    return "virtual";
}

void
loop_free(struct loop **loop)
{
    struct sim_loop *s;

    if (!*loop)
        return;
    s = sim(*loop);
    turn_free(&s->turn);
    while (s->watches)
        free_watch(s->watches);
    while (s->signals) {
        struct sim_signal *first = s->signals;

        LL_DELETE(s->signals, first);
        free(first);
    }
    free(s);
    *loop = NULL;
}

void
loop_run(struct loop *loop)
{
    while (!loop->stopping) {
        int64_t at_ms = next_ms(sim(loop), INT64_MAX);

        if (at_ms == INT64_MAX)
            break;
        run_turn(sim(loop), at_ms);
    }
    loop->stopping = false;
}

void
loop_turn(struct loop *loop, int64_t wait_ms)
{
    int64_t end_ms = loop->monotonic_ms + (wait_ms > 0 ? wait_ms : 0);

    run_turn(sim(loop), next_ms(sim(loop), end_ms));
}

void
sim_loop_advance(struct loop *loop, int64_t ms)
{
    int64_t end_ms = loop->monotonic_ms + ms;

    assert(ms >= 0);
    while (!loop->stopping) {
        int64_t at_ms = next_ms(sim(loop), end_ms);

        run_turn(sim(loop), at_ms);
        if (at_ms == end_ms && next_ms(sim(loop), end_ms + 1) > end_ms)
            break;
    }
    loop->stopping = false;
}

void
sim_loop_step_wall(struct loop *loop, int64_t ms)
{
    sim(loop)->step_ms += ms;
}

void
sim_loop_ready(struct loop *loop, int descriptor, int events)
{
    struct loop_watch *watch;

    DL_FOREACH (sim(loop)->watches, watch)
        if (watch->descriptor == descriptor && !watch->freed)
            watch->happened |= events;
}

void
sim_loop_poll(struct loop *loop)
{
    struct loop_watch *watch;

    DL_FOREACH (sim(loop)->watches, watch) {
        struct pollfd asked = {.fd = watch->descriptor, .events = POLLIN | POLLOUT};

        if (!watch->freed && poll(&asked, 1, 0) > 0)
            watch->happened |= (asked.revents & ~POLLOUT ? LOOP_READ : 0) |
                               (asked.revents & POLLOUT ? LOOP_WRITE : 0);
    }
}

void
sim_loop_signal(struct loop *loop, int signal_number)
{
    struct sim_signal *each;

    LL_FOREACH (sim(loop)->signals, each)
        if (each->number == signal_number)
            each->happened = true;
}

uint64_t
sim_loop_turns(const struct loop *loop)
{
    return ((const struct sim_loop *)loop)->turns;
}

bool
sim_loop_has_task(const struct loop *loop)
{
    const struct loop_task *task;
    LL_FOREACH (loop->posted, task)
        if (task->run != NULL)
            return true;
    for (size_t i = 0; i < loop->soon.count; i++)
        if (memory_container(loop->soon.nodes[i], struct loop_timer, node)->fire !=
            NULL)
            return true;
    return false;
}

size_t
sim_loop_timers(const struct loop *loop)
{
    return loop->timers.count + loop->soon.count;
}

int64_t
loop_clock_us(void)
{
    /* Simulated calls take no time, but no two of them happen at once. */
    static int64_t us;

    return ++us;
}

uint64_t
loop_random(struct loop *loop)
{
    /* SplitMix64: any seed is a good one. */
    uint64_t mixed = sim(loop)->random += UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

struct loop_watch *
loop_watch_new(struct loop *loop, int descriptor, int events,
               void (*ready)(void *context, int events), void *context)
{
    struct loop_watch *watch = memory_new(sizeof(*watch));

    assert(descriptor >= 0 && ready);
    watch->loop = sim(loop);
    watch->descriptor = descriptor;
    watch->events = events;
    watch->ready = ready;
    watch->context = context;
    DL_APPEND(watch->loop->watches, watch);
    return watch;
}

void
loop_watch_set(struct loop_watch *watch, int events)
{
    watch->events = events;
}

void
loop_watch_free(struct loop_watch **watch)
{
    if (!*watch)
        return;
    (*watch)->freed = true;
    (*watch)->events = 0;
    loop_release(&(*watch)->loop->turn, free_watch, *watch);
    *watch = NULL;
}

void
loop_on_signal(struct loop *loop, int signal_number, void (*fire)(void *context),
               void *context)
{
    struct sim_signal *s = memory_new(sizeof(*s));

    s->number = signal_number;
    s->fire = fire;
    s->context = context;
    LL_APPEND(sim(loop)->signals, s);
}
