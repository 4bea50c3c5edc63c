/* Records of results are not durable before their events: marks and ends, in files and
 * in the journal, wait for the gate; new mail does not, for long. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "base/event/event.h"
#include "queue/queue_barrier.h"
#include "queue/queue_operator.h"

#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/queue_kit.h"

static const char *const two[] = {"a@x", "b@x", NULL};
static struct kit kit;
static struct event_hub *hub;
static struct gate *gate;
static unsigned writes, waits;
static bool over; /* the barrier */

static void
on_write(void *context)
{
    (void)context;
    writes++;
}

static void
on_wait(void *context)
{
    (void)context;
    waits++;
    gate->durable = gate->last;
}

static void
begin(int64_t journal)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = 1,
                                      .message_size_limit = 1000000,
                                      .journal_size = journal,
                                      .events = hub = event_hub_new(NULL)};
    gate = event_hub_gate(hub);
    gate->write = on_write;
    gate->wait = on_wait;
    if (kit_open_with(&kit, &settings) != 0)
        ok_named(false, kit.error);
    sim_loop_advance(kit.loop, 1000);
}

static void
leave(void)
{
    kit_close(&kit);
    event_hub_free(&hub);
}

static struct envelope *
accepted(void)
{
    return queue_kit_accept(&kit, kit_envelope("s@x", two), TEXT("x"));
}

/* The event of a result. */
static void
tell(void)
{
    gate->last++;
}

static void
settle(struct envelope *e, unsigned index)
{
    tell();
    queue_settle(kit.queue, e, index, NULL);
}

static void
settle_all(struct envelope *e)
{
    settle(e, 0);
    settle(e, 1);
}

static bool
is_found(struct id id)
{
    for (size_t i = 0; i < kit.found_count; i++)
        if (id_compare(kit.found[i].id, id) == 0)
            return true;
    return false;
}

static void
open_gate(void)
{
    gate->durable = gate->last;
    sim_loop_advance(kit.loop, 300);
}

static void
set_over(void *context)
{
    *(bool *)context = true;
}

/* Time stands still while the loop spins. */
static void
wait_at_barrier(struct queue_barrier *b)
{
    enum { TURNS_MAX = 250 };
    int64_t end_ms = loop_monotonic_ms(kit.loop) + 900;
    unsigned turns = 0;
    queue_barrier(kit.queue, b, set_over, &over);
    for (; turns < TURNS_MAX && loop_monotonic_ms(kit.loop) < end_ms; turns++)
        loop_turn(kit.loop, 100);
    ok_named(!over && turns < TURNS_MAX, "nor does who waits for that spin");
    if (turns == TURNS_MAX)
        queue_barrier_cancel(b);
}

TEST(files)
{
    sim_disk_reset();
    begin(0);
    struct envelope *e = accepted();
    unsigned before = writes;
    settle(e, 0);
    sim_loop_advance(kit.loop, 900);
    is_number(sim_disk_count("/spool/info"), 0, "no file has the mark yet");
    ok_named(writes > before, "events are written in each turn, before");
    open_gate();
    is_number(sim_disk_count("/spool/info"), 1, "then one has");
    settle(e, 1);
    uint64_t turns = sim_loop_turns(kit.loop);
    struct text content = sim_disk_content("/spool/local");
    (void)content;
    sim_loop_advance(kit.loop, 900);
    ok_named(sim_loop_turns(kit.loop) - turns < 20, "who waits does not spin");
    struct id id = e->id;
    queue_retire(kit.queue, &e);
    sim_loop_advance(kit.loop, 50);
    is_number(sim_disk_count("/spool/mess"), 1, "nor does the message go");
    ok_named(queue_load(kit.queue, id) == NULL, "although it is none any more");
    struct queue_barrier barrier = {0};
    wait_at_barrier(&barrier);
    open_gate();
    is_number(sim_disk_count("/spool/mess") + sim_disk_count("/spool/info"), 0,
              "with its event it does");
    ok_named(over, "and that is told");
    leave();
}

/* Marks that wait show when the message is read again. */
TEST(overlay)
{
    sim_disk_reset();
    begin(0);
    struct envelope *e = accepted();
    struct id id = e->id;
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 1000, 1);
    sim_loop_advance(kit.loop, 300);
    e = queue_load(kit.queue, id);
    settle(e, 1);
    sim_loop_advance(kit.loop, 200);
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 5000, 2);
    sim_loop_advance(kit.loop, 200);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->recipients[1].done && !e->recipients[0].done,
             "the result is not forgotten");
    open_gate();
    queue_defer(kit.queue, &e, loop_now_ms(kit.loop) + 5000, 2);
    open_gate();
    kit_close(&kit);
    event_hub_free(&hub);
    sim_disk_restart();
    begin(0);
    e = queue_load(kit.queue, id);
    ok_named(e != NULL && e->recipients[1].done && !e->recipients[0].done,
             "nor on disk");
    envelope_free(&e);
    leave();
}

/* A message whose END waits is there after a crash; new mail passes. */
TEST(journal)
{
    for (int opens = 0; opens < 2; opens++) {
        sim_disk_reset();
        begin(4 << 20);
        struct envelope *e = accepted(), *other;
        struct id id = e->id, other_id;
        settle_all(e);
        queue_retire(kit.queue, &e);
        sim_loop_advance(kit.loop, 500);
        tell(); /* of somebody else: the batch of that END does not wait for it */
        gate->durable = opens ? 2 : 1;
        other = accepted(); /* in the next batch */
        bool passes = other != NULL;
        sim_loop_advance(kit.loop, 500);
        ok_named(passes == (opens == 1),
                 "a batch waits for the events of its results alone");
        gate->durable = opens ? 2 : 1;
        other_id = other != NULL ? other->id : id;
        envelope_free(&other);
        sim_disk_die_at(1);
        gate->wait = NULL;
        leave();
        sim_disk_power_cut();
        begin(4 << 20);
        ok_named(is_found(id) == (opens == 0),
                 "END is durable exactly when its event may be");
        if (opens)
            ok_named(is_found(other_id), "as is the new message");
        leave();
    }
}

/* In a stop nothing waits for a turn. */
TEST(stop)
{
    for (int64_t journal = 0; journal <= 4 << 20; journal += 4 << 20) {
        sim_disk_reset();
        begin(journal);
        waits = 0;
        struct envelope *e = accepted(), *open = accepted();
        struct id id = e->id, open_id = open->id;
        settle_all(e);
        queue_retire(kit.queue, &e);
        settle(open, 0);
        leave();
        envelope_free(&open);
        ok_named(waits > 0, "the events are written first");
        sim_disk_restart();
        begin(journal);
        ok_named(!is_found(id) && is_found(open_id), "then their results");
        open = queue_load(kit.queue, open_id);
        ok(open != NULL && open->recipients[0].done && !open->recipients[1].done);
        envelope_free(&open);
        leave();
    }
}
