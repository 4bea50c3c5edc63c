/* The simulated loop keeps the laws of the real one, in virtual time. */
/* link: t/sim/loop.c */
#include "t/sim/sim.h"

#include "t/support/loop_story.h"
#include "t/support/tap.h"

#include <signal.h>

enum { DAY_MS = 24 * 3600 * 1000, DESCRIPTOR = 7 };

static void
note_time(void *context)
{
    struct story *s = context;

    story_add(s, 'n');
    s->seen_ms = loop_monotonic_ms(s->loop);
}

TEST(time)
{
    struct story s = {.loop = sim_loop_new(42)};

    is_number(loop_now_ms(s.loop), SIM_WALL_START_MS,
              "the wall clock's start is fixed");
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS, "the other's too");
    loop_timer_start(s.loop, &s.timer, 5 * (int64_t)DAY_MS, note_time, &s);
    is_string(s.told, "", "starting a timer calls nothing");
    loop_run(s.loop);
    is_string(s.told, "n", "five days pass at once, and loop_run() ends by itself");
    is_number(s.seen_ms, SIM_MONOTONIC_START_MS + 5 * (int64_t)DAY_MS,
              "the timer sees exactly its time");
    is_number(loop_now_ms(s.loop), SIM_WALL_START_MS + 5 * (int64_t)DAY_MS,
              "and the wall clock has come along");
    loop_timer_start(s.loop, &s.timer, INT64_MAX, say_a, &s);
    loop_run(s.loop);
    is_string(s.told, "n", "what is due never is nothing to wait for");
    story_finish(&s);
}

TEST(wall_step)
{
    struct story s = {.loop = sim_loop_new(42)};

    sim_loop_step_wall(s.loop, -DAY_MS);
    is_number(loop_now_ms(s.loop), SIM_WALL_START_MS, "a step waits for the next turn");
    loop_timer_start(s.loop, &s.timer, 1000, note_time, &s);
    loop_run(s.loop);
    is_number(loop_now_ms(s.loop), SIM_WALL_START_MS - DAY_MS + 1000,
              "the wall clock has gone back");
    is_number(s.seen_ms, SIM_MONOTONIC_START_MS + 1000, "durations did not notice");
    story_finish(&s);
}

static void
again(void *context)
{
    struct story *s = context;

    s->count++;
    loop_timer_start(s->loop, &s->timer, 10, again, s);
}

TEST(advance)
{
    struct story s = {.loop = sim_loop_new(42)};

    loop_timer_start(s.loop, &s.timer, 10, again, &s);
    sim_loop_advance(s.loop, 100);
    is_number(s.count, 10, "a timer every 10 ms fires ten times in 100 ms");
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS + 100, "exactly there");
    sim_loop_advance(s.loop, 9);
    is_number(s.count, 10, "not in the 9 ms after that");
    sim_loop_advance(s.loop, 1);
    is_number(s.count, 11, "but in the next");
    loop_post(s.loop, &s.task, story_stop, &s);
    sim_loop_advance(s.loop, 100);
    is_number(s.count, 11, "loop_stop() ends it at once");
    loop_timer_stop(s.loop, &s.timer);
    sim_loop_advance(s.loop, 100);
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS + 210,
              "time passes with nothing to do");
    story_finish(&s);
}

TEST(turn)
{
    struct story s = {.loop = sim_loop_new(42)};

    loop_timer_start(s.loop, &s.timer, 50, say_a, &s);
    loop_turn(s.loop, 20);
    is_string(s.told, "", "a turn waits no longer than it may");
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS + 20, "20 ms of 50");
    loop_turn(s.loop, 1000);
    is_string(s.told, "a", "nor longer than it must");
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS + 50, "30 ms more");
    loop_post(s.loop, &s.task, say_b, &s);
    loop_turn(s.loop, 1000);
    is_string(s.told, "ab", "what is posted");
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS + 50, "takes no time");
    loop_timer_start(s.loop, &s.timer, 0, say_c, &s);
    is_string(s.told, "ab", "a timer of no time does not fire at once");
    loop_turn(s.loop, 1000);
    is_string(s.told, "abc", "but in the next turn");
    is_number(loop_monotonic_ms(s.loop), SIM_MONOTONIC_START_MS + 50, "which is now");
    is_number(sim_loop_turns(s.loop), 4, "turns are counted");
    story_finish(&s);
}

static void
release_more(void *context)
{
    struct story *s = context;

    story_add(s, 'r');
    loop_release(s->loop, say_c, s);
}

static void
on_events(void *context, int events)
{
    struct story *s = context;

    bool both = events == (LOOP_READ | LOOP_WRITE);

    story_add(s, both ? 'B' : events == LOOP_READ ? 'R' : 'W');
}

TEST(order_in_turn)
{
    struct story s = {.loop = sim_loop_new(42)};

    loop_at_end(s.loop, LOOP_SEND_NET, say_c, &s);
    loop_at_end(s.loop, LOOP_ANSWER_MANAGER, say_b, &s);
    loop_at_end(s.loop, LOOP_SYNC_MARKS, say_a, &s);
    loop_release(s.loop, release_more, &s);
    s.watch = loop_watch_new(s.loop, DESCRIPTOR, LOOP_READ, on_events, &s);
    sim_loop_ready(s.loop, DESCRIPTOR, LOOP_READ);
    loop_on_signal(s.loop, SIGHUP, say_b, &s);
    sim_loop_signal(s.loop, SIGHUP);
    loop_timer_start(s.loop, &s.timer, 0, note_time, &s);
    loop_post(s.loop, &s.task, say_a, &s);
    is_string(s.told, "", "nothing runs before its turn");
    loop_turn(s.loop, 1000);
    is_string(s.told, "anbRabcrc",
              "tasks, timers, signals, readiness, stages, releases");
    loop_watch_free(&s.watch);
    story_finish(&s);
}

static void
free_both(void *context, int events)
{
    struct story *s = context;

    (void)events;
    story_add(s, 'f');
    loop_watch_free(&s->watch);
    loop_watch_free(&s->other_watch);
}

TEST(watch)
{
    struct story s = {.loop = sim_loop_new(42)};

    s.watch = loop_watch_new(s.loop, DESCRIPTOR, LOOP_READ, on_events, &s);
    sim_loop_ready(s.loop, DESCRIPTOR + 1, LOOP_READ);
    sim_loop_ready(s.loop, DESCRIPTOR, LOOP_WRITE);
    loop_run(s.loop);
    is_string(s.told, "", "another descriptor and an unwanted event are not told");
    sim_loop_ready(s.loop, DESCRIPTOR, LOOP_READ);
    loop_run(s.loop);
    loop_run(s.loop);
    is_string(s.told, "R", "a wanted one is, once");
    loop_watch_set(s.watch, LOOP_READ | LOOP_WRITE);
    sim_loop_ready(s.loop, DESCRIPTOR, LOOP_READ);
    loop_run(s.loop);
    is_string(s.told, "RB", "what could not be told was kept until it was wanted");
    loop_watch_free(&s.watch);
    sim_loop_ready(s.loop, DESCRIPTOR, LOOP_READ);
    loop_run(s.loop);
    is_string(s.told, "RB", "a freed watch is silent");

    s.watch = loop_watch_new(s.loop, DESCRIPTOR, LOOP_READ, free_both, &s);
    s.other_watch = loop_watch_new(s.loop, DESCRIPTOR, LOOP_READ, free_both, &s);
    sim_loop_ready(s.loop, DESCRIPTOR, LOOP_READ);
    loop_run(s.loop);
    is_string(s.told, "RBf", "freed in its own callback and in another's");
    loop_watch_free(&s.watch);
    story_finish(&s);
}

TEST(signal)
{
    struct story s = {.loop = sim_loop_new(42)};

    loop_on_signal(s.loop, SIGTERM, story_stop, &s);
    loop_on_signal(s.loop, SIGHUP, say_a, &s);
    loop_timer_start(s.loop, &s.timer, DAY_MS, say_b, &s);
    sim_loop_signal(s.loop, SIGHUP);
    loop_turn(s.loop, 0);
    is_string(s.told, "a", "a signal goes to who asked for it");
    sim_loop_signal(s.loop, SIGTERM);
    loop_run(s.loop);
    is_string(s.told, "a.", "and may stop the loop before the next timer");
    loop_run(s.loop);
    is_string(s.told, "a.b", "which goes on when run again");
    story_finish(&s);
}

TEST(random)
{
    struct loop *one = sim_loop_new(1), *same = loop_new(), *other = sim_loop_new(2);
    bool equal = true, differs = true;

    for (int i = 0; i < 100; i++) {
        uint64_t value = loop_random(one);

        equal = equal && value == loop_random(same);
        differs = differs && value != loop_random(other);
    }
    ok_named(equal, "the same seed gives the same numbers; loop_new()'s is 1");
    ok_named(differs, "another seed gives others");
    loop_free(&one);
    loop_free(&same);
    loop_free(&other);
    loop_free(&other);
}
