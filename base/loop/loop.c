/* The real loop: libev for readiness and signals, clocks and randomness of the
 * system. */
#include "base/loop/loop.h"

#include "base/memory.h"
#include "base/loop/loop_turn.h"

#include <assert.h>
#include <errno.h>
#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>
#include <time.h>
#include <utlist.h>

enum {
    RANDOM_POOL = 32, /* 256 bytes: getrandom() never cuts those short */
    PAUSE_MS = 100    /* after a failed wait */
};

struct loop_signal {
    struct ev_signal signal;
    void (*fire)(void *context);
    void *context;
    struct loop_signal *next;
};

struct real_loop {
    struct loop turn; /* first: users of loop.h have this pointer */
    struct ev_loop *ev;
    struct ev_check begin;
    struct ev_timer alarm;
    int64_t alarm_us; /* monotonic; the time of the alarm, 0 = not set */
    int64_t now_us;   /* monotonic, of this turn */
    struct loop_signal *signals;
    uint64_t random[RANDOM_POOL];
    size_t random_left;
};

struct loop_watch {
    struct ev_io io;
    struct real_loop *loop;
    void (*ready)(void *context, int events);
    void *context;
};

static struct real_loop *
real(struct loop *loop)
{
    return memory_container(loop, struct real_loop, turn);
}

/* Ends the process: the loop cannot work. */
static _Noreturn void
loop_give_up(const char *what)
{
    fprintf(stderr, "petrel: %s: %s\n", what, strerror(errno));
    exit(EX_OSERR);
}

static int64_t
clock_us(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) < 0)
        loop_give_up("cannot read the clock");
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* libev would abort. A failed wait counts as a turn in which nothing is ready; the
 * next turn does not follow immediately. */
static void
on_trouble(const char *what)
{
    if (strcmp(what, "(libev) epoll_wait") != 0 && strcmp(what, "(libev) poll") != 0)
        loop_give_up(what);
    fprintf(stderr, "petrel: %s: %s\n", what, strerror(errno));
    (void)!poll(NULL, 0, PAUSE_MS);
}

/* libev calls this after the wait and before all other callbacks of a turn: they see
 * the time of the turn, and its tasks and timers have run. */
static void
on_wake(struct ev_loop *ev, struct ev_check *check, int events)
{
    struct real_loop *loop = check->data;
    int64_t now_us = clock_us(CLOCK_MONOTONIC);
    (void)ev;
    (void)events;
    loop->now_us = now_us > loop->now_us ? now_us : loop->now_us;
    turn_begin(&loop->turn, clock_us(CLOCK_REALTIME) / 1000, loop->now_us / 1000);
}

static void
on_alarm(struct ev_loop *ev, struct ev_timer *alarm, int events)
{
    struct real_loop *loop = alarm->data;
    /* Nothing to do: the wait is over, and turn_begin() runs the timers. */
    (void)ev;
    (void)events;
    loop->alarm_us = 0;
}

static void
loop_signal_came(struct ev_loop *ev, struct ev_signal *signal, int events)
{
    struct loop_signal *s = signal->data;
    (void)ev;
    (void)events;
    s->fire(s->context);
}

/* A callback may free other watches: loop_watch_free() stops them, so that libev drops
 * their events of this turn, too. */
static void
loop_on_ready(struct ev_loop *ev, struct ev_io *io, int events)
{
    struct loop_watch *watch = io->data;
    (void)ev;
    /* For a descriptor that cannot be watched libev reports all events. */
    events &= io->events;
    watch->ready(watch->context, (events & EV_READ ? LOOP_READ : 0) |
                                     (events & EV_WRITE ? LOOP_WRITE : 0));
}

/* Sets the one alarm to the first timer or to the end of the wait if that is earlier.
 * Our timers are in a heap that the simulated loop shares (loop_turn.h): libev knows
 * this alarm only. */
static void
set_alarm(struct real_loop *loop, int64_t wait_ms)
{
    int64_t due_ms = turn_due_ms(&loop->turn);
    int64_t end_ms = wait_ms < 0 ? INT64_MAX : loop->turn.monotonic_ms + wait_ms;
    int64_t alarm_us;
    if (due_ms < 0 || due_ms > end_ms)
        due_ms = end_ms;
    alarm_us = due_ms < INT64_MAX / 1000 ? due_ms * 1000 : 0;
    if (alarm_us == loop->alarm_us)
        return;
    loop->alarm_us = alarm_us;
    ev_timer_stop(loop->ev, &loop->alarm);
    if (!alarm_us)
        return;
    ev_timer_set(&loop->alarm, (double)(alarm_us - loop->now_us) / 1e6, 0.);
    ev_timer_start(loop->ev, &loop->alarm);
}

/* wait_ms < 0: without limit. */
static void
run_turn(struct real_loop *loop, int64_t wait_ms)
{
    if (turn_is_pressing(&loop->turn))
        wait_ms = 0;
    if (wait_ms)
        set_alarm(loop, wait_ms);
    ev_run(loop->ev, wait_ms ? EVRUN_ONCE : EVRUN_NOWAIT);
    turn_end(&loop->turn);
}

struct loop *
loop_new(void)
{
    struct real_loop *loop = memory_new(sizeof(*loop));
    ev_set_syserr_cb(on_trouble);
    /* NOENV: the environment does not select the backend. */
    loop->ev = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL | EVBACKEND_POLL);
    if (!loop->ev)
        loop_give_up("cannot make an event loop");
    loop->now_us = clock_us(CLOCK_MONOTONIC);
    turn_init(&loop->turn, clock_us(CLOCK_REALTIME) / 1000, loop->now_us / 1000);
    ev_check_init(&loop->begin, on_wake);
    ev_set_priority(&loop->begin,
                    EV_MAXPRI); /* before every other callback of a turn */
    loop->begin.data = loop;
    ev_check_start(loop->ev, &loop->begin);
    ev_timer_init(&loop->alarm, on_alarm, 0., 0.);
    loop->alarm.data = loop;
    return &loop->turn;
}

void
loop_free(struct loop **loop)
{
    struct real_loop *r;
    if (!*loop)
        return;
    r = real(*loop);
    turn_free(&r->turn);
    while (r->signals) {
        struct loop_signal *first = r->signals;

        ev_signal_stop(r->ev, &first->signal);
        LL_DELETE(r->signals, first);
        free(first);
    }
    ev_loop_destroy(r->ev);
    free(r);
    *loop = NULL;
}

void
loop_run(struct loop *loop)
{
    while (!loop->stopping)
        run_turn(real(loop), -1);
    loop->stopping = false;
}

void
loop_turn(struct loop *loop, int64_t wait_ms)
{
    run_turn(real(loop), wait_ms > 0 ? wait_ms : 0);
}

int64_t
loop_clock_us(void)
{
    return clock_us(CLOCK_MONOTONIC);
}

uint64_t
loop_random(struct loop *loop)
{
    struct real_loop *r = real(loop);
    if (!r->random_left) {
        ssize_t got;

        do { /* early at boot it waits, and a signal can interrupt it */
            got = getrandom(r->random, sizeof(r->random), 0);
        } while (got < 0 && errno == EINTR);
        if (got != sizeof(r->random))
            loop_give_up("cannot get random numbers");
        r->random_left = RANDOM_POOL;
    }
    return r->random[--r->random_left];
}

struct loop_watch *
loop_watch_new(struct loop *loop, int descriptor, int events,
               void (*ready)(void *context, int events), void *context)
{
    struct loop_watch *watch = memory_new(sizeof(*watch));
    assert(descriptor >= 0 && ready);
    watch->loop = real(loop);
    watch->ready = ready;
    watch->context = context;
    ev_io_init(&watch->io, loop_on_ready, descriptor, 0);
    watch->io.data = watch;
    loop_watch_set(watch, events);
    return watch;
}

void
loop_watch_set(struct loop_watch *watch, int events)
{
    int wanted =
        (events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0);
    if ((watch->io.events & (EV_READ | EV_WRITE)) == wanted)
        return;
    ev_io_stop(watch->loop->ev, &watch->io);
    /* libev forbids the change of an active watcher. */
    ev_io_modify(&watch->io, wanted);
    if (wanted)
        ev_io_start(watch->loop->ev, &watch->io);
}

void
loop_watch_free(struct loop_watch **watch)
{
    if (!*watch)
        return;
    ev_io_stop((*watch)->loop->ev, &(*watch)->io);
    loop_release(&(*watch)->loop->turn, free, *watch);
    *watch = NULL;
}

void
loop_on_signal(struct loop *loop, int signal_number, void (*fire)(void *context),
               void *context)
{
    struct loop_signal *s = memory_new(sizeof(*s));
    s->fire = fire;
    s->context = context;
    ev_signal_init(&s->signal, loop_signal_came, signal_number);
    s->signal.data = s;
    ev_signal_start(real(loop)->ev, &s->signal);
    LL_PREPEND(real(loop)->signals, s);
}

const char *
loop_version(void)
{
#define TEXT_OF(number)  #number
#define VERSION_OF(a, b) "libev " TEXT_OF(a) "." TEXT_OF(b)
    return VERSION_OF(EV_VERSION_MAJOR, EV_VERSION_MINOR);
}
