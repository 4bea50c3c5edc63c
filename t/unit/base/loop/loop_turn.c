/* A turn, without any system: what is due, in which order, and what is left. */
#include "base/loop/loop_turn.h"

/* link: t/sim/clock.c */
#include "t/sim/clock.h"
#include "t/support/loop_story.h"
#include "t/support/tap.h"

static void
turn(struct story *s, int64_t now_ms)
{
    memset(s->told, 0, sizeof(s->told));
    turn_begin(s->loop, now_ms + 5000, now_ms);
    turn_end(s->loop);
}

static void
stop_and_restart(void *context)
{
    struct story *s = context;

    story_add(s, 's');
    loop_timer_stop(s->loop, &s->timers[1]);
    loop_timer_start(s->loop, &s->timers[2], 1, say_c, s);
    loop_timer_start(s->loop, &s->timers[3], 0, say_b, s);
}

TEST(timers)
{
    struct loop loop = {0};
    struct story s = {.loop = &loop};

    turn_init(&loop, 5100, 100);
    is_number(turn_due_ms(&loop), -1, "no timer is due");
    ok_named(!turn_is_pressing(&loop), "nothing presses");
    loop_timer_start(&loop, &s.timers[0], 30, say_c, &s);
    loop_timer_start(&loop, &s.timers[1], 10, say_a, &s);
    loop_timer_start(&loop, &s.timers[2], 20, say_b, &s);
    is_number(turn_due_ms(&loop), 110, "the first is due first");
    turn(&s, 109);
    is_string(s.told, "", "nothing fires early");
    is_number(loop_now_ms(&loop), 5109, "the turn's wall clock");
    is_number(loop_monotonic_ms(&loop), 109, "and the other one");
    turn(&s, 110);
    is_string(s.told, "a", "the first fires on time");
    turn(&s, 500);
    is_string(s.told, "bc", "late ones fire in the order of their times");
    is_number(turn_due_ms(&loop), -1, "none is left");
    turn_free(&loop);
}

TEST(changes_in_callbacks)
{
    struct loop loop = {0};
    struct story s = {.loop = &loop};

    turn_init(&loop, 5000, 0);
    loop_timer_start(&loop, &s.timers[0], 1, stop_and_restart, &s);
    loop_timer_start(&loop, &s.timers[1], 2, say_a, &s);
    loop_timer_start(&loop, &s.timers[2], 3, say_a, &s);
    turn(&s, 10);
    is_string(s.told, "s", "stopped and restarted ones do not fire in this turn");
    ok_named(turn_is_pressing(&loop), "a timer of no time presses");
    is_number(turn_due_ms(&loop), 11, "the restarted one is due a little later");
    turn(&s, 10);
    is_string(s.told, "b",
              "the one of no time fires in the next turn, at the same time");
    ok_named(!turn_is_pressing(&loop), "nothing presses any more");
    turn(&s, 11);
    is_string(s.told, "c", "the restarted one on its time");
    loop_timer_start(&loop, &s.timers[0], 0, say_a, &s);
    loop_timer_start(&loop, &s.timers[0], 7, say_b, &s);
    ok_named(!turn_is_pressing(&loop), "a restart with a time presses no more");
    is_number(turn_due_ms(&loop), 18, "but has its time");
    loop_timer_start(&loop, &s.timers[0], 0, say_c, &s);
    is_number(turn_due_ms(&loop), -1, "and the other way round");
    turn(&s, 11);
    is_string(s.told, "c", "it fires once");
    turn(&s, 100);
    is_string(s.told, "", "and not again");
    turn_free(&loop);
}

TEST(end)
{
    struct loop loop = {0};
    struct story s = {.loop = &loop};

    turn_init(&loop, 5000, 0);
    loop_at_end(&loop, LOOP_ANSWER_SESSIONS, say_c, &s);
    loop_at_end(&loop, LOOP_ANSWER_MANAGER, say_b, &s);
    loop_at_end(&loop, LOOP_SYNC_MARKS, say_a, &s);
    loop_post(&loop, &s.task, say_c, &s);
    ok_named(turn_is_pressing(&loop), "a task presses");
    turn_begin(&loop, 5000, 0);
    is_string(s.told, "c", "a turn begins with tasks");
    turn_end(&loop);
    is_string(s.told, "cabc", "and ends with the slots, in their order alone");
    loop_release(&loop, say_a, &s);
    ok_named(!turn_is_pressing(&loop), "a release can wait");
    turn_free(&loop);
    is_string(s.told, "cabca", "but is not forgotten");
}

/* Clocks come from outside. */
TEST(strange_clocks)
{
    struct loop loop = {0};
    struct story s = {.loop = &loop};

    turn_init(&loop, -5, -1);
    ok(loop_now_ms(&loop) == 0 && loop_monotonic_ms(&loop) == 0);
    loop_timer_start(&loop, &s.timers[0], 10, say_a, &s);
    turn(&s, 5);
    turn_begin(&loop, -1000, 3);
    turn_end(&loop);
    is_number(loop_monotonic_ms(&loop), 5, "it never steps back");
    is_number(loop_now_ms(&loop), 0, "no time before 1970");
    is_string(s.told, "", "nothing is due by that");
    turn(&s, 10);
    is_string(s.told, "a", "and it goes on");
    turn_free(&loop);
}

static void
pass(void *context)
{
    clock_pass(*(const int64_t *)context);
}

/* How long turns take is measured, and what took most of a slow one. */
TEST(pace)
{
    static int64_t short_ms = 5, long_ms = 300, longer_ms = 400;
    struct loop loop = {0};
    struct loop_timer timer = {0};
    const struct loop_pace *pace = loop_pace(&loop);
    clock_stop();
    turn_init(&loop, 5000, 0);
    turn_begin(&loop, 5001, 1);
    turn_end(&loop);
    is_number(pace->turns[0], 1, "a turn of nothing");
    loop_timer_start(&loop, &timer, 1, pass, &short_ms);
    turn_begin(&loop, 5010, 10);
    turn_end(&loop);
    is_number(pace->turns[1], 1, "one of 5 ms");
    is_number(pace->slow_us, 0, "which is not slow");
    loop_timer_start(&loop, &timer, 1, pass, &long_ms);
    turn_begin(&loop, 5020, 20);
    turn_end(&loop);
    is_number(pace->turns[3], 1, "one of 300 ms");
    is_number(pace->slow_us, 300000, "which is slow");
    is_number(pace->slow_ms, 20, "its time");
    is_string(pace->slow_part, "timers and long work", "what ran");
    turn_begin(&loop, 5030, 30);
    pass(&longer_ms); /* stands for a descriptor that is ready */
    turn_end(&loop);
    is_string(pace->slow_part, "input of clients and servers", "what ran in another");
    loop_at_end(&loop, LOOP_SYNC_MARKS, pass, &longer_ms);
    turn_begin(&loop, 5040, 40);
    turn_end(&loop);
    is_string(pace->slow_part, "the disk, replies and the log", "and at the end of one");
    is_number(pace->slow_us, 400000, "the last one counts");
    is_number(pace->turns[3], 3, "three were slow");
    is_number(pace->sum_us, 1105000, "the sum");
    clock_go();
    turn_free(&loop);
}

/* The wall clock is set, ahead and back; a wait is no jump. */
TEST(jump)
{
    struct loop loop = {0};
    const struct loop_pace *pace = loop_pace(&loop);
    turn_init(&loop, 5000, 0);
    turn_begin(&loop, 5000 + 3600 * 1000, 3600 * 1000);
    turn_end(&loop);
    is_number(pace->jump_by_ms, 0, "an hour of waiting");
    turn_begin(&loop, 5000 + 3600 * 1000 + LOOP_JUMP_MS - 1, 3600 * 1000);
    turn_end(&loop);
    is_number(pace->jump_by_ms, 0, "less than a minute");
    turn_begin(&loop, 5000 + 7300 * 1000, 3600 * 1000 + 10);
    turn_end(&loop);
    is_number(pace->jump_by_ms, 3700 * 1000 - LOOP_JUMP_MS + 1 - 10, "it was set ahead");
    is_number(pace->jump_ms, 3600 * 1000 + 10, "when");
    turn_begin(&loop, 0, 3600 * 1000 + 20);
    turn_end(&loop);
    ok_named(pace->jump_by_ms < -7000 * 1000, "it was set back");
    turn_free(&loop);
}
