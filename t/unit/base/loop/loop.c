/* The loop keeps its three laws, its order and its time. */
#include "base/loop/loop.h"

#include "base/memory.h"
#include "t/support/loop_story.h"
#include "t/support/tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- A system that refuses -------------------------------------------------------- */

static int refused_waits, refused_random;

int
epoll_wait(int epoll, struct epoll_event *events, int size, int wait_ms)
{
    if (refused_waits > 0) {
        refused_waits--;
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_epoll_pwait, epoll, events, size, wait_ms, NULL, 8);
}

ssize_t
getrandom(void *to, size_t size, unsigned flags)
{
    if (refused_random > 0) {
        refused_random--;
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_getrandom, to, size, flags);
}

static void
a_then_post_b(void *context)
{
    struct story *s = context;

    story_add(s, 'a');
    loop_post(s->loop, &s->other_task, say_b, s);
    story_add(s, 'A');
}

TEST(post)
{
    struct story s = {.loop = loop_new()};

    loop_post(s.loop, &s.task, say_a, &s);
    is_string(s.told, "", "loop_post() does not call before it returns");
    loop_post(s.loop, &s.task, say_a, &s);
    loop_turn(s.loop, 5000);
    is_string(s.told, "a",
              "a task posted twice runs once, in a turn that does not wait");
    loop_turn(s.loop, 0);
    is_string(s.told, "a", "and not again");

    loop_post(s.loop, &s.task, a_then_post_b, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "aaA", "what a task posts is for the next turn");
    loop_turn(s.loop, 5000);
    is_string(s.told, "aaAb", "which does not wait either");
    story_finish(&s);
}

TEST(wake)
{
    struct story s = {.loop = loop_new()};
    struct loop_timer timer = {0};
    int64_t before_us;

    loop_wake(s.loop, &s.task);
    loop_wake(s.loop, &s.task);
    before_us = loop_clock_us();
    loop_turn(s.loop, 5000);
    ok_named(loop_clock_us() - before_us < 1000000 && !s.task.queued,
             "a turn that was asked for comes at once");
    loop_timer_start(s.loop, &timer, 1, NULL, NULL);
    loop_turn(s.loop, 5000);
    ok_named(loop_clock_us() - before_us < 1000000, "a timer without a function too");
    story_finish(&s);
}

static void
post_itself(void *context)
{
    struct story *s = context;

    story_add(s, 'p');
    loop_post(s->loop, &s->task, post_itself, s);
}

static void
unpost_other(void *context)
{
    struct story *s = context;

    story_add(s, 'u');
    loop_unpost(s->loop, &s->other_task);
}

TEST(unpost)
{
    struct loop_task third = {0};
    struct story s = {.loop = loop_new()};

    loop_unpost(s.loop, &s.task);
    loop_post(s.loop, &s.task, say_a, &s);
    loop_post(s.loop, &s.other_task, say_b, &s);
    loop_unpost(s.loop, &s.other_task);
    loop_post(s.loop, &third, say_c, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "ac", "the last task is unposted, another posted behind it");
    loop_post(s.loop, &s.task, say_a, &s);
    loop_post(s.loop, &s.other_task, say_b, &s);
    loop_post(s.loop, &third, say_c, &s);
    loop_unpost(s.loop, &s.task);
    loop_turn(s.loop, 0);
    is_string(s.told, "acbc", "the first task is unposted");
    loop_post(s.loop, &s.task, unpost_other, &s);
    loop_post(s.loop, &s.other_task, say_b, &s);
    loop_post(s.loop, &third, say_c, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "acbcuc", "a task unposts one of the same turn");
    loop_post(s.loop, &s.task, post_itself, &s);
    loop_turn(s.loop, 0);
    loop_turn(s.loop, 0);
    is_string(s.told, "acbcucpp", "a task that posts itself runs once a turn");
    loop_unpost(s.loop, &s.task);
    loop_turn(s.loop, 0);
    is_string(s.told, "acbcucpp", "until it is unposted");
    story_finish(&s);
}

static void
post_in_hook(void *context)
{
    struct story *s = context;

    story_add(s, 'h');
    if (s->count++ == 0)
        loop_post(s->loop, &s->task, say_a, s);
}

static void
release_twice(void *context)
{
    struct story *s = context;

    story_add(s, 'r');
    loop_release(s->loop, say_c, s);
    loop_post(s->loop, &s->task, say_b, s);
}

static void
release_in_task(void *context)
{
    struct story *s = context;

    loop_release(s->loop, say_c, s);
    story_add(s, 't');
}

TEST(stages)
{
    struct story s = {.loop = loop_new()};

    loop_at_end(s.loop, LOOP_SEND_NET, say_c, &s);
    loop_at_end(s.loop, LOOP_ANSWER_MANAGER, say_b, &s);
    loop_at_end(s.loop, LOOP_SYNC_MARKS, say_a, &s);
    loop_at_end(s.loop, LOOP_SYNC_MARKS, say_b, &s);
    is_string(s.told, "", "hooks wait for the end of a turn");
    loop_turn(s.loop, 0);
    is_string(s.told, "abbc", "stages in their order, hooks as they were added");
    loop_turn(s.loop, 0);
    is_string(s.told, "abbcabbc", "once every turn");
    loop_at_end_remove(s.loop, LOOP_SYNC_MARKS, say_b, &s);
    loop_at_end_remove(s.loop, LOOP_SEND_NET, say_b, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "abbcabbcabc", "a hook is removed from its own stage alone");
    story_finish(&s);

    s = (struct story){.loop = loop_new()};
    loop_at_end(s.loop, LOOP_SEND_NET, post_in_hook, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "h", "what a hook posts is for the next turn");
    loop_turn(s.loop, 5000);
    is_string(s.told, "hah", "which does not wait, and runs tasks before hooks");
    story_finish(&s);
}

static void
remove_itself(void *context)
{
    struct story *s = context;

    story_add(s, 'x');
    loop_at_end_remove(s->loop, LOOP_ANSWER_MANAGER, remove_itself, s);
    loop_at_end(s->loop, LOOP_SEND_NET, say_b, s);
}

TEST(hook_changes)
{
    struct story s = {.loop = loop_new()};

    loop_at_end(s.loop, LOOP_ANSWER_MANAGER, remove_itself, &s);
    loop_at_end(s.loop, LOOP_ANSWER_MANAGER, say_a, &s);
    loop_turn(s.loop, 0);
    loop_turn(s.loop, 0);
    is_string(s.told, "xabab",
              "a hook removes itself and adds to a later stage of the same turn");
    story_finish(&s);
}

TEST(release)
{
    struct story s = {.loop = loop_new()};

    loop_at_end(s.loop, LOOP_SEND_NET, say_a, &s);
    loop_post(s.loop, &s.task, release_in_task, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "tac", "releases come after the callback and after all stages");
    s.told[0] = '\0';
    loop_release(s.loop, release_twice, &s);
    is_string(s.told, "", "a release waits for the end of a turn");
    loop_turn(s.loop, 0);
    is_string(s.told, "arc", "a release may release more in the same sweep");
    loop_turn(s.loop, 5000);
    is_string(s.told, "arcba", "and post for the next turn");
    loop_release(s.loop, say_c, &s);
    story_finish(&s);
    is_string(s.told, "arcbac", "loop_free() does what was left to release");
}

static int64_t
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

TEST(timer_order)
{
    struct loop_timer timers[3] = {0};
    struct story s;
    int64_t started_us, took_us;

    s = (struct story){.loop = loop_new()};
    started_us = now_us();
    loop_timer_start(s.loop, &timers[0], 30, story_stop, &s);
    loop_timer_start(s.loop, &timers[1], 20, say_b, &s);
    loop_timer_start(s.loop, &timers[2], 10, say_a, &s);
    is_string(s.told, "", "starting a timer calls nothing");
    loop_run(s.loop);
    took_us = now_us() - started_us;
    is_string(s.told, "ab.", "timers fire in the order of their times");
    printf("# 30 ms took %.1f ms\n", (double)took_us / 1000);
    ok_named(took_us >= 29000, "and not early");
    loop_turn(s.loop, 0);
    is_string(s.told, "ab.", "a timer fires once");
    story_finish(&s);
}

TEST(timer_now)
{
    struct story s = {.loop = loop_new()};

    loop_timer_start(s.loop, &s.timer, 0, say_a, &s);
    loop_timer_start(s.loop, &s.other_timer, -5, say_b, &s);
    is_string(s.told, "", "a timer of no time does not fire at once");
    loop_turn(s.loop, 5000);
    ok_named(strlen(s.told) == 2, "but in the next turn, which does not wait");
    loop_timer_start(s.loop, &s.timer, 0, say_c, &s);
    loop_timer_stop(s.loop, &s.timer);
    loop_timer_stop(s.loop, &s.timer);
    loop_turn(s.loop, 0);
    ok_named(strlen(s.told) == 2, "unless it was stopped, which may be done twice");
    loop_timer_start(s.loop, &s.timer, INT64_MAX, say_c, &s);
    loop_turn(s.loop, 1);
    ok_named(strlen(s.told) == 2, "the longest of all times does not overflow");
    story_finish(&s);
}

static void
again_at_once(void *context)
{
    struct story *s = context;

    story_add(s, 'n');
    loop_timer_start(s->loop, &s->timer, 0, again_at_once, s);
}

static void
stop_other_timer(void *context)
{
    struct story *s = context;

    story_add(s, 's');
    loop_timer_stop(s->loop, &s->timer);
    loop_timer_stop(s->loop, &s->other_timer);
}

static void
start_timer_in_task(void *context)
{
    struct story *s = context;

    story_add(s, 't');
    loop_timer_start(s->loop, &s->other_timer, 0, say_b, s);
}

TEST(timer_in_callbacks)
{
    struct story s = {.loop = loop_new()};

    loop_timer_start(s.loop, &s.timer, 0, again_at_once, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "n", "a timer restarted with no time in its callback");
    loop_turn(s.loop, 5000);
    is_string(s.told, "nn", "fires once in every turn");
    loop_timer_stop(s.loop, &s.timer);
    s.told[0] = '\0';

    loop_timer_start(s.loop, &s.timer, 1, stop_other_timer, &s);
    loop_timer_start(s.loop, &s.other_timer, 2, say_b, &s);
    usleep(5000);
    loop_turn(s.loop, 0);
    loop_turn(s.loop, 10);
    is_string(s.told, "s", "a callback stops a timer that is due in the same turn");
    s.told[0] = '\0';

    loop_post(s.loop, &s.task, start_timer_in_task, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "t",
              "a timer of no time started by a task waits for the next turn");
    loop_turn(s.loop, 5000);
    is_string(s.told, "tb", "which does not wait");
    s.told[0] = '\0';

    loop_timer_start(s.loop, &s.timer, 60000, say_a, &s);
    loop_timer_start(s.loop, &s.timer, 1, say_c, &s);
    loop_turn(s.loop, 5000);
    loop_turn(s.loop, 5);
    is_string(s.told, "c", "a restart replaces time and callback");
    story_finish(&s);
}

TEST(many_timers)
{
    enum { MANY = 2000 };
    struct loop_timer *timers = memory_array(MANY, sizeof(*timers));
    struct story s;
    int fired = 0;

    s = (struct story){.loop = loop_new()};
    for (int i = 0; i < MANY; i++)
        loop_timer_start(s.loop, &timers[i], (i * 7919) % 20 + 1, say_a, &s);
    for (int i = 0; i < MANY; i += 2)
        loop_timer_stop(s.loop, &timers[i]);
    usleep(30000);
    loop_turn(s.loop, 0);
    for (int i = 0; i < MANY; i++)
        fired += !heap_has(&timers[i].node);
    is_number(fired, MANY, "of 2000 timers the stopped and the fired are out");
    ok_named(strlen(s.told) == sizeof(s.told) - 1, "and the others have fired");
    story_finish(&s);
    free(timers);
}

static void
waste_time(void *context)
{
    struct story *s = context;
    int64_t wall_ms = loop_now_ms(s->loop), monotonic_ms = loop_monotonic_ms(s->loop);

    usleep(3000);
    s->count =
        loop_now_ms(s->loop) == wall_ms && loop_monotonic_ms(s->loop) == monotonic_ms;
}

TEST(time)
{
    struct story s;
    int64_t wall_ms, monotonic_ms, started_us, wall_s;

    wall_s = time(NULL);
    s = (struct story){.loop = loop_new()};
    wall_ms = loop_now_ms(s.loop);
    monotonic_ms = loop_monotonic_ms(s.loop);
    ok_named(wall_ms / 1000 >= wall_s && wall_ms / 1000 <= (int64_t)time(NULL) + 1,
             "it is now");
    loop_post(s.loop, &s.task, waste_time, &s);
    loop_turn(s.loop, 0);
    ok_named(s.count, "within a turn time stands still");
    loop_turn(s.loop, 0);
    ok_named(loop_now_ms(s.loop) >= wall_ms + 3, "between turns the wall clock moves");
    ok_named(loop_monotonic_ms(s.loop) >= monotonic_ms + 3, "and the monotonic one");
    started_us = now_us();
    loop_turn(s.loop, 20);
    ok_named(now_us() - started_us >= 19000, "loop_turn() waits as long as it may");
    loop_timer_start(s.loop, &s.timer, 300000, say_a, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "", "and not at all if it may not");
    story_finish(&s);
}

TEST(clock)
{
    int64_t start_us = now_us(), before_us = loop_clock_us(), after_us;

    usleep(20000);
    after_us = loop_clock_us();
    ok_named(after_us - before_us >= 20000,
             "the clock for short times goes on within a turn");
    ok_named(after_us - before_us <= now_us() - start_us, "in microseconds");
}

TEST(random)
{
    struct story s;
    uint64_t seen_and = UINT64_MAX, seen_or = 0, last = 0;
    bool repeated = false;

    s = (struct story){.loop = loop_new()};
    for (int i = 0; i < 200; i++) {
        uint64_t value = loop_random(s.loop);

        repeated = repeated || value == last;
        seen_and &= value;
        seen_or |= value;
        last = value;
    }
    ok_named(!repeated, "random numbers do not repeat");
    ok_named(seen_and == 0 && seen_or == UINT64_MAX, "every bit is sometimes 0 and 1");
    story_finish(&s);
}

static void
on_events(void *context, int events)
{
    struct story *s = context;

    s->events |= events;
    bool both = events == (LOOP_READ | LOOP_WRITE);

    story_add(s, both ? 'B' : events == LOOP_READ ? 'R' : 'W');
}

static void
put_byte(int descriptor)
{
    if (write(descriptor, "x", 1) != 1)
        abort();
}

TEST(watch)
{
    struct story s;
    int pair[2];

    s = (struct story){.loop = loop_new()};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    put_byte(pair[1]);
    s.watch = loop_watch_new(s.loop, pair[0], LOOP_READ, on_events, &s);
    is_string(s.told, "", "a new watch does not call, ready or not");
    loop_turn(s.loop, 1000);
    loop_turn(s.loop, 1000);
    is_string(s.told, "RR", "readiness is told every turn, as long as it lasts");
    loop_watch_set(s.watch, 0);
    loop_turn(s.loop, 5);
    is_string(s.told, "RR", "a paused watch is silent");
    loop_watch_set(s.watch, LOOP_WRITE);
    loop_turn(s.loop, 1000);
    is_string(s.told, "RRW", "only what is wanted is told");
    loop_watch_set(s.watch, LOOP_READ | LOOP_WRITE);
    loop_turn(s.loop, 1000);
    is_string(s.told, "RRWB", "reading and writing in one call");
    loop_watch_set(s.watch, 0);
    close(pair[1]);
    loop_turn(s.loop, 5);
    loop_turn(s.loop, 5);
    is_string(s.told, "RRWB", "not even the end of the peer wakes a paused watch");
    loop_watch_free(&s.watch);
    ok_named(!s.watch, "loop_watch_free() empties the pointer");
    loop_watch_free(&s.watch);
    close(pair[0]);
    story_finish(&s);
}

static void
free_own(void *context, int events)
{
    struct story *s = context;

    (void)events;
    story_add(s, 'f');
    loop_watch_free(&s->watch);
    loop_watch_free(&s->other_watch);
}

TEST(watch_freed)
{
    struct story s;
    int pair[2];

    s = (struct story){.loop = loop_new()};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    put_byte(pair[0]);
    put_byte(pair[1]);
    s.watch = loop_watch_new(s.loop, pair[0], LOOP_READ, free_own, &s);
    s.other_watch = loop_watch_new(s.loop, pair[1], LOOP_READ, free_own, &s);
    loop_turn(s.loop, 1000);
    is_string(s.told, "f", "freed in its own callback and in another's: no more calls");
    loop_turn(s.loop, 0);
    is_string(s.told, "f", "nor in a later turn");

    /* The number comes back at once for another file. */
    close(pair[0]);
    close(pair[1]);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    s.watch = loop_watch_new(s.loop, pair[0], LOOP_READ, on_events, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "f", "a reused number is a new file, not ready");
    put_byte(pair[1]);
    loop_turn(s.loop, 1000);
    is_string(s.told, "fR", "until it is");
    loop_watch_free(&s.watch);
    close(pair[0]);
    close(pair[1]);
    story_finish(&s);
}

static void
task_before_events(void *context)
{
    story_add(context, 't');
}

TEST(order_in_turn)
{
    struct story s;
    int pair[2];

    s = (struct story){.loop = loop_new()};
    ok_named(pipe(pair) == 0, "a pipe");
    put_byte(pair[1]);
    s.watch = loop_watch_new(s.loop, pair[0], LOOP_READ, on_events, &s);
    loop_timer_start(s.loop, &s.timer, 0, say_a, &s);
    loop_post(s.loop, &s.task, task_before_events, &s);
    loop_at_end(s.loop, LOOP_SYNC_MARKS, say_b, &s);
    loop_release(s.loop, say_c, &s);
    loop_turn(s.loop, 0);
    is_string(s.told, "taRbc", "tasks, timers, readiness, stages, releases");
    loop_watch_free(&s.watch);
    close(pair[0]);
    close(pair[1]);
    story_finish(&s);
}

TEST(regular_file)
{
    FILE *file = tmpfile();
    struct story s = {.loop = loop_new()};

    s.watch = loop_watch_new(s.loop, fileno(file), LOOP_READ, on_events, &s);
    loop_turn(s.loop, 1000);
    loop_turn(s.loop, 1000);
    ok_named(strncmp(s.told, "RR", 2) == 0, "a regular file is always ready");
    loop_watch_free(&s.watch);
    fclose(file);
    story_finish(&s);
}

TEST(signal)
{
    struct story s = {.loop = loop_new()};

    loop_on_signal(s.loop, SIGUSR1, story_stop, &s);
    loop_on_signal(s.loop, SIGUSR2, say_a, &s);
    kill(getpid(), SIGUSR2);
    is_string(s.told, "", "a signal does not interrupt");
    loop_turn(s.loop, 1000);
    is_string(s.told, "a", "but arrives as an event");
    kill(getpid(), SIGUSR1);
    loop_at_end(s.loop, LOOP_SEND_NET, say_b, &s);
    loop_run(s.loop);
    is_string(s.told, "a.b", "and can stop the loop, which ends its turn first");
    story_finish(&s);
}

TEST(stop)
{
    struct story s = {.loop = loop_new()};

    loop_post(s.loop, &s.task, story_stop, &s);
    loop_stop(s.loop);
    loop_run(s.loop);
    is_string(s.told, "", "a loop stopped before it runs returns without a turn");
    loop_run(s.loop);
    is_string(s.told, ".", "and can run again");
    story_finish(&s);
    loop_free(&s.loop);
}

/* The law of STYLE: one simulation, or one test, holds many. */
TEST(two_loops)
{
    struct story one = {.loop = loop_new()}, two = {.loop = loop_new()};

    loop_post(one.loop, &one.task, say_a, &one);
    loop_turn(two.loop, 0);
    is_string(one.told, "", "another loop's turn is not ours");
    loop_turn(one.loop, 0);
    is_string(one.told, "a", "two loops live side by side");
    story_finish(&one);
    story_finish(&two);
}

static void
count_turn(void *context)
{
    struct story *s = context;

    if (++s->count == 200000)
        loop_stop(s->loop);
    else
        loop_post(s->loop, &s->task, count_turn, s);
}

/* It goes on with the next turn. */
TEST(refused)
{
    struct story s = {.loop = loop_new()};

    refused_waits = 1;
    loop_timer_start(s.loop, &s.timer, 1, say_a, &s);
    for (int i = 0; i < 1000 && s.told[0] == '\0'; i++)
        loop_turn(s.loop, 10);
    is_string(s.told, "a", "a wait that fails ends nothing");
    is_number(refused_waits, 0, "it did fail");
    refused_random = 1;
    for (int i = 0; i < 100; i++)
        (void)loop_random(s.loop);
    is_number(refused_random, 0, "an interrupted getrandom() is asked again");
    story_finish(&s);
}

TEST(cost)
{
    int64_t started_us = now_us();
    struct story s = {.loop = loop_new()};

    loop_post(s.loop, &s.task, count_turn, &s);
    loop_run(s.loop);
    printf("# a turn costs %.2f us\n", (double)(now_us() - started_us) / s.count);
    is_number(s.count, 200000, "200,000 turns");
    story_finish(&s);
}
