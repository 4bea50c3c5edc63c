/* FUTURERELEASE: never before its time, whatever is lost; then within the usual time. Its age counts from then on. */
/* link: t/sim/loop.c */
#include "queue/manager/manager_internal.h"
#include "t/support/manager_world.h"

#include <stdlib.h>

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS };

static void
release_begin(struct world *w)
{
    manager_world_begin(w, "* smtp://x");
}

static void
release_end(struct world *w)
{
    ok_named(world_is_empty(w), "nothing is left");
    manager_world_end(w);
}

static void
send_at(struct world *w, const char *recipient, int64_t in_ms)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("ann@a.test"));
    if (!envelope_add(e, text_from(recipient), NOTIFY_DEFAULT, TEXT("")))
        abort();
    envelope_release_at(e, loop_now_ms(w->loop) + in_ms, TEXT("for;1"));
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    (void)!queue_write(draft, TEXT("Subject: x\r\n\r\nbody\r\n"));
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
    world_turns(w);
}

static void
wait_for(struct world *w, int64_t ms)
{
    sim_loop_advance(w->loop, ms);
    world_turns(w);
}

TEST(waits)
{
    FIXTURE(world, w, release_begin, release_end);
    send_at(&w, "good@b.test", HOUR_MS);
    is_number(w.attempts, 0, "not now");
    is_number(world_files(&w, "info"), 1, "it is in files");
    is_number(sched_count(manager_sched(w.manager)).incoming, 0, "and is no new mail");
    ok(world_logged(&w, "waits: released at "));
    wait_for(&w, HOUR_MS - MINUTE_MS);
    is_number(w.attempts, 0, "nor a minute before");
    wait_for(&w, MINUTE_MS);
    is_number(w.attempts, 1, "then");
}

/* Longer than any due time that a restart trusts. */
TEST(days)
{
    FIXTURE(world, w, release_begin, release_end);
    send_at(&w, "good@b.test", INT64_C(72) * HOUR_MS);
    for (int hour = 0; hour < 71; hour++) {
        wait_for(&w, HOUR_MS);
        if (hour % 10 == 0)
            world_restart(&w);
    }
    world_turns(&w);
    is_number(w.attempts, 0, "over days and restarts");
    wait_for(&w, HOUR_MS + 1);
    is_number(w.attempts, 1, "then");
}

/* The due time on the disk says now: the envelope knows better. A retry is no release. */
TEST(due_is_lost)
{
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, release_begin, release_end);
    send_at(&w, "good@b.test", HOUR_MS);
    ok(manager_operate(w.manager, MANAGER_RETRY, w.id, why) == MANAGER_DONE);
    world_turns(&w);
    is_number(w.attempts, 0, "retried, and it waits");
    struct envelope *e = queue_load(manager_queue(w.manager), w.id);
    queue_defer(manager_queue(w.manager), &e, loop_now_ms(w.loop), 1);
    wait_for(&w, 1000);
    world_restart(&w);
    world_turns(&w);
    is_number(w.attempts, 0, "found as due, and it waits");
    wait_for(&w, HOUR_MS);
    is_number(w.attempts, 1, "then");
}

TEST(operator)
{
    char why[MANAGER_WHY_MAX];
    FIXTURE(world, w, release_begin, release_end);
    send_at(&w, "later@b.test", HOUR_MS);
    ok(manager_operate(w.manager, MANAGER_RELEASE, w.id, why) == MANAGER_DONE);
    world_turns(&w);
    is_number(w.attempts, 1, "released");
    world_restart(&w);
    w.all_good = true;
    wait_for(&w, HOUR_MS / 2);
    ok_named(w.attempts > 1, "also behind a restart");
}

/* Five days later than its arrival it is new. */
TEST(lifetime)
{
    FIXTURE(world, w, release_begin, release_end);
    send_at(&w, "later@b.test", INT64_C(120) * HOUR_MS);
    for (int hour = 0; hour < 121; hour++)
        wait_for(&w, HOUR_MS);
    ok(w.attempts > 0);
    ok_named(!world_logged(&w, "status=expired"), "it has not expired");
    ok_named(!world_logged(&w, "sender notified of the delay"), "nor is it delayed");
    for (int hour = 0; hour < 130; hour++)
        wait_for(&w, HOUR_MS);
    ok_named(world_logged(&w, "status=expired"), "five days behind its release it has");
}

/* It has waited for longer than its lifetime when the clock is set past its release; and behind that the clock is set again. */
TEST(lifetime_by_another_clock)
{
    FIXTURE(world, w, release_begin, release_end);
    send_at(&w, "later@b.test", INT64_C(140) * HOUR_MS);
    for (int hour = 0; hour < 130; hour++)
        wait_for(&w, HOUR_MS);
    is_number(w.attempts, 0, "it waits");
    for (int step = 0; step < 2; step++) {
        sim_loop_step_wall(w.loop, INT64_C(960) * HOUR_MS);
        for (int hour = 0; hour < 10; hour++)
            wait_for(&w, HOUR_MS);
    }
    ok_named(w.attempts > 0, "released");
    ok_named(!world_logged(&w, "status=expired"), "it has not expired");
    world_restart(&w);
    w.all_good = true;
    wait_for(&w, 5 * HOUR_MS);
}
