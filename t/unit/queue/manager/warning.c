/* Delay warnings: the time at which a sender hears that a message is late, once, over
 * restarts and power cuts, and with commands of operators meanwhile. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "t/support/manager_disk.h"
#include "t/sim/sim_disk.h"

enum { MINUTE_MS = 60 * 1000, HOUR_MS = 60 * MINUTE_MS };

static const char told[] = ": sender notified of the delay: ";

static unsigned
count_lines(const struct world *w, const char *words)
{
    struct text rest = buffer_text(&w->lines);
    unsigned count = 0;
    for (const char *at; rest.length > 0 &&
                         (at = memmem(rest.at, rest.length, words, strlen(words)));) {
        count++;
        rest = text_after(rest, (size_t)(at - rest.at) + 1);
    }
    return count;
}

/* How often ann was written to since the last call: the notices that went out. */
static unsigned
notices(struct world *w)
{
    static const char to_ann[] = " >ann@a.test ";
    unsigned count = 0;
    struct text rest = buffer_text(&w->seen);
    if (text_starts(rest, text_from(to_ann + 1)))
        count++;
    for (const char *at; rest.length > 0 &&
                         (at = memmem(rest.at, rest.length, to_ann, strlen(to_ann)));) {
        count++;
        rest = text_after(rest, (size_t)(at - rest.at) + 1);
    }
    buffer_clear(&w->seen);
    return count;
}

/* The message accepted last, as the disk has it. */
static bool
is_warned(const struct world *w)
{
    struct envelope *e = queue_load(manager_queue(w->manager), w->id);
    bool warned = e != NULL && e->delivery.warned_s != 0;
    envelope_free(&e);
    return warned;
}

/* A list: a notification at each time, over restarts; what passes while no daemon runs
 * has one. */
TEST(list)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
          "later.test smtp://sink.test?notices=20m,5h,10h,15h&lifetime=1d, * smtp://x",
          1024 * 1024);
    world_deliver(&w, "ann@a.test", "later@later.test");
    sim_loop_advance(w.loop, 2 * HOUR_MS);
    is_number(notices(&w), 1, "the first");
    world_restart(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(notices(&w), 0, "no other until its time");
    sim_loop_advance(w.loop, 4 * HOUR_MS);
    is_number(notices(&w), 1, "the second");
    world_stop(&w);
    sim_disk_power_cut();
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(notices(&w), 0, "it is not sent again after a power cut");
    world_stop(&w);
    sim_loop_advance(w.loop, 9 * HOUR_MS);
    manager_world_start(&w);
    sim_loop_advance(w.loop, HOUR_MS);
    is_number(notices(&w), 1, "two times have passed: one notification");
    sim_loop_advance(w.loop, 4 * HOUR_MS);
    is_number(notices(&w), 0, "the list is done");
    sim_loop_advance(w.loop, 6 * HOUR_MS);
    is_number(notices(&w), 1, "then it expires");
    is_number(count_lines(&w, told), 3, "three were logged");
}

/* Off, null senders, journaled mail, mail delivered at last, other routes. */
TEST(nobody)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
            "on.test smtp://one.test?delay_warning=20m, * smtp://sink.test", 0);
    world_deliver(&w, "ann@a.test", "later@off.test");
    world_deliver(&w, "", "later@on.test");
    world_deliver(&w, "ann@a.test", "bad@on.test");
    is_number(notices(&w), 1, "a bounce is no warning");
    sim_loop_advance(w.loop, 8 * HOUR_MS);
    ok(w.attempts > 8);
    is_number(count_lines(&w, told), 0, "off by default; never to a null sender");
    w.all_good = true;
    sim_loop_advance(w.loop, 8 * HOUR_MS);
    world_deliver(&w, "ann@a.test", "later@on.test");
    ok(world_place(&w) == SCHED_UNKNOWN);
    is_number(count_lines(&w, told), 0, "what is in time is not late");
}

/* Two of different patience: each is reported at its own time. */
TEST(two_routes)
{
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
          "one.test smtp://one.test?delay_warning=20m, two.test "
          "smtp://two.test?delay_warning=5h, * smtp://sink.test",
          0);
    world_deliver(&w, "ann@a.test", "later@one.test later@two.test later@b.test");
    sim_loop_advance(w.loop, 3 * HOUR_MS);
    is_number(notices(&w), 1, "the first is late");
    sim_loop_advance(w.loop, 12 * HOUR_MS);
    is_number(notices(&w), 1, "then the other, and no more");
    is_number(count_lines(&w, told), 2, "a notice for each time");
}

/* Two lists in one message: no time of either is skipped, and none comes twice, over
 * restarts and power cuts. */
static void
test_two_lists(int64_t journal_size, bool restarts)
{
    unsigned sent[12] = {0};
    static const unsigned want[12] = {0, 0, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0};
    bool same = true;
    FIXTURE(world, w, world_begin_afresh, manager_world_end,
          "one.test smtp://one.test?notices=2h,5h&maximal_backoff=10m, two.test "
          "smtp://two.test?notices=3h,4h,7h,10h&maximal_backoff=10m, * smtp://x",
          journal_size);
    world_deliver(&w, "ann@a.test", "later@one.test later@two.test");
    sim_loop_advance(w.loop, 30 * MINUTE_MS);
    for (unsigned hour = 1; hour < 12; hour++) {
        if (restarts && hour % 2) {
            world_stop(&w);
            sim_disk_power_cut();
            manager_world_start(&w);
        }
        sim_loop_advance(w.loop, HOUR_MS);
        sent[hour] = notices(&w);
        same = same && sent[hour] == want[hour];
    }
    if (!ok_named(same, "a notice at each time of both lists"))
        for (unsigned i = 1; i < 12; i++)
            printf("# %u: %u, want %u\n", i, sent[i], want[i]);
    is_number(count_lines(&w, told), 6, "logged");
}

/* --- While the notice is being written -------------------------------------------- */

struct moment {
    struct world *w;
    void (*act)(struct world *w);
    unsigned seen; /* 1: it has come */
};

/* After the manager's pump: once, in the turn that begins the notice. */
static void
at_answer(void *context)
{
    struct moment *m = context;
    if (m->seen > 0 || manager_notifications(m->w->manager).begun == 0)
        return;
    m->seen = 1;
    m->act(m->w);
}

static void
begin_moment(struct world *w, struct moment *m, void (*act)(struct world *w))
{
    world_begin_afresh(w, "b.test smtp://sink.test?delay_warning=20m, * smtp://x", 1024 * 1024);
    world_stop(w);
    w->background = true;
    sim_disk_set_syncing(DISK_SYNC_AIO, 50);
    manager_world_start(w);
    *m = (struct moment){.w = w, .act = act};
    loop_at_end(w->loop, LOOP_ANSWER_DELIVERY, at_answer, m);
    world_deliver(w, "ann@a.test", "later@b.test");
    buffer_clear(&w->seen);
    for (int i = 0; i < 600 && m->seen == 0; i++)
        sim_loop_advance(w->loop, 20 * 1000);
    is_number(m->seen, 1, "the moment");
    world_turns(w);
}

static void
end_moment(struct world *w, struct moment *m)
{
    loop_at_end_remove(w->loop, LOOP_ANSWER_DELIVERY, at_answer, m);
    manager_world_end(w);
}

static void
hold(struct world *w)
{
    ok(world_operate(w, MANAGER_HOLD) == MANAGER_LATER);
}

static void
hold_and_release(struct world *w)
{
    hold(w);
    ok(world_operate(w, MANAGER_RELEASE) == MANAGER_DONE);
}

static void
bounce(struct world *w)
{
    ok(world_operate(w, MANAGER_BOUNCE) == MANAGER_LATER);
}

static void
remove_it(struct world *w)
{
    ok(world_operate(w, MANAGER_REMOVE) == MANAGER_LATER);
}

static void
retry(struct world *w)
{
    buffer_clear(&w->seen);
    ok(world_operate(w, MANAGER_RETRY) == MANAGER_DONE);
}

static void
hold_wanted(void *context)
{
    hold(context);
}

/* Held when the scheduler waits for it to be loaded. */
static void
retry_and_hold(struct world *w)
{
    static struct loop_timer timer;
    retry(w);
    loop_timer_start(w->loop, &timer, 20, hold_wanted, w);
}

static void
test_operators(void)
{
    struct world w;
    struct moment m;
    begin_moment(&w, &m, hold);
    ok(world_place(&w) == SCHED_UNKNOWN && is_warned(&w));
    ok(sim_disk_count("") > 0);
    is_number(notices(&w), 1, "held: the notice was on its way");
    sim_loop_advance(w.loop, 8 * HOUR_MS);
    is_number(w.seen.length, 0, "held: nothing happens to it");
    ok(world_operate(&w, MANAGER_RELEASE) == MANAGER_DONE);
    sim_loop_advance(w.loop, 8 * HOUR_MS);
    ok(w.seen.length > 0 && notices(&w) == 0);
    end_moment(&w, &m);

    begin_moment(&w, &m, hold_and_release);
    ok(is_warned(&w));
    sim_loop_advance(w.loop, 1000);
    ok_named(world_place(&w) == SCHED_DEFERRED && count_lines(&w, told) == 1,
             "released: it goes on");
    end_moment(&w, &m);

    begin_moment(&w, &m, bounce);
    is_number(notices(&w), 2, "bounced: both are told");
    ok(world_place(&w) == SCHED_UNKNOWN && !is_warned(&w));
    end_moment(&w, &m);

    begin_moment(&w, &m, remove_it);
    is_number(notices(&w), 1, "removed: the notice is out");
    ok(world_place(&w) == SCHED_UNKNOWN && !is_warned(&w));
    end_moment(&w, &m);

    begin_moment(&w, &m, retry);
    is_text(buffer_text(&w.seen), TEXT(">ann@a.test ann@a.test>later@b.test "),
            "retried: it waits for its notice, and is tried at once");
    ok(world_place(&w) == SCHED_DEFERRED && is_warned(&w));
    end_moment(&w, &m);

    begin_moment(&w, &m, retry_and_hold);
    is_text(buffer_text(&w.seen), TEXT(">ann@a.test "), "retried and held: not tried");
    ok(world_place(&w) == SCHED_UNKNOWN && is_warned(&w));
    is_number(sched_count(manager_sched(w.manager)).active, 0, "its load is answered");
    end_moment(&w, &m);
}

int
main(void)
{
    tap_tests("");
    test_two_lists(0, false);
    test_two_lists(1024 * 1024, false);
    test_two_lists(1024 * 1024, true);
    test_operators();
    sim_disk_reset();
    return done();
}
