/* A turn, without any system: what is due, in which order, and what is left. */
#include "base/loop/loop_turn.h"

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

static void
test_timers(void)
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

static void
test_changes_in_callbacks(void)
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

static void
test_end(void)
{
    struct loop loop = {0};
    struct story s = {.loop = &loop};

    turn_init(&loop, 5000, 0);
    loop_at_end(&loop, LOOP_STAGE_ANSWER, say_b, &s);
    loop_at_end(&loop, LOOP_STAGE_SYNC, say_a, &s);
    loop_post(&loop, &s.task, say_c, &s);
    ok_named(turn_is_pressing(&loop), "a task presses");
    turn_begin(&loop, 5000, 0);
    is_string(s.told, "c", "a turn begins with tasks");
    turn_end(&loop);
    is_string(s.told, "cab", "and ends with the stages");
    loop_release(&loop, say_c, &s);
    ok_named(!turn_is_pressing(&loop), "a release can wait");
    turn_free(&loop);
    is_string(s.told, "cabc", "but is not forgotten");
}

/* Clocks come from outside. */
static void
test_strange_clocks(void)
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

int
main(void)
{
    test_strange_clocks();
    test_timers();
    test_changes_in_callbacks();
    test_end();
    return done();
}
