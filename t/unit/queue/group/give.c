/* link: t/sim/loop.c */
/* queue/group/give.c and take.c: the queue of one host goes to others, with its due times,
 * attempts, marks, failures and holds. */
#include "t/support/give_kit.h"

#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/support/injected.h"
#include "t/support/manager_world.h"
#include "t/support/must.h"

#include <sys/resource.h>

#define ROUTE "* smtp://smtp.b.test"

/* A gives to B, and to C. */
struct group_world {
    struct world a, b;
    struct kit_wire wire;
    struct kit_host *host;
    struct give *give;
    unsigned over;
    uint64_t due_ms; /* of the message, at A */
};

static void
on_drained(void *context)
{
    (void)context;
}

static void
give_is_over(void *context)
{
    struct group_world *g = context;
    g->over++;
}

/* With a journal. */
static void
world_begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    w->settings.queue.journal_size = 8 * 1024 * 1024;
    w->settings.queue.journal_message_max = 256 * 1024;
    world_restart(w);
}

static void
begin(struct group_world *g, const char *routes)
{
    memset(g, 0, sizeof(*g));
    world_begin(&g->a, routes);
    world_begin(&g->b, routes);
    for (int i = 0; i < 5; i++)
        (void)loop_random(g->b.loop); /* other names */
    kit_wire_begin(&g->wire, "relay1", g->a.loop);
    g->host = kit_wire_add(&g->wire, "relay2");
    kit_host_start(g->host, g->b.loop, g->b.events, g->b.manager);
}

static void
start_giving(struct group_world *g)
{
    manager_drain(g->a.manager, 0, on_drained, NULL);
    world_turns(&g->a);
    g->give = give_new(&(struct give_setup){.loop = g->a.loop,
                                            .events = g->a.events,
                                            .manager = g->a.manager,
                                            .calls = &g->wire.calls,
                                            .host = "relay1",
                                            .siblings = kit_wire_siblings,
                                            .context = &g->wire},
                       TEXT(""), give_is_over, g);
}

/* Both hosts live for that time. */
static void
pass(struct group_world *g, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 20) {
        while (kit_wire_carry(&g->wire))
            ;
        sim_loop_advance(g->a.loop, 20);
        sim_loop_advance(g->b.loop, 20);
    }
}

static void
finish(struct group_world *g)
{
    give_free(&g->give);
    kit_wire_end(&g->wire);
    kit_host_stop(g->host);
    manager_world_end(&g->a);
    manager_world_end(&g->b);
}

static struct id
only_id(const struct world *w)
{
    struct id id = {0};
    struct text lines = buffer_text(&w->lines);
    const char *at = memmem(lines.at, lines.length, ": from=relay1, was=", 19);
    if (at == NULL || !id_parse(text_of(at - ID_LENGTH, ID_LENGTH), &id))
        ok_named(false, "a line says that it was taken");
    return id;
}

static struct envelope *
at_b(const struct group_world *g)
{
    struct envelope *e = queue_load(manager_queue(g->b.manager), only_id(&g->b));
    ok_named(e != NULL, "B has it");
    return e;
}

/* Deferred twice, to three recipients: one has it, one has failed and knows. */
static void
send_deferred(struct group_world *g)
{
    world_deliver(&g->a, "me@a.test", "good@b.test bad@b.test later@b.test");
    ok(world_place(&g->a) == SCHED_DEFERRED);
    manager_retry_all(g->a.manager);
    world_turns(&g->a);
    struct sched_state known = sched_find(manager_sched(g->a.manager), g->a.id);
    is_number(known.attempts, 2, "attempts");
    g->due_ms = (uint64_t)known.due_ms;
    buffer_clear(&g->a.seen);
}

static void
check_deferred(struct group_world *g)
{
    char first[ID_LENGTH + 1];
    struct envelope *e = at_b(g);
    if (e == NULL)
        return;
    id_format(g->a.id, first);
    is_number(e->delivery.done, 2, "marks");
    ok(e->recipients[0].done && e->recipients[1].done && !e->recipients[2].done);
    is_number(e->delivery.attempts, 2, "attempts there");
    is_number(e->delivery.due_ms, (int64_t)g->due_ms, "the due time there");
    is_number(e->delivery.failure_count, 1, "a failure");
    ok_named(e->delivery.failures[0].notified, "which was reported");
    is_text(e->moved.first, text_from(first), "its first name");
    is_number(e->moved.given, 1, "moved once");
    envelope_free(&e);
}

static void
test_deferred(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    send_deferred(&g);
    start_giving(&g);
    pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    is_number((int64_t)give_progress(g.give).given, 1, "given");
    ok(world_is_empty(&g.a));
    ok(world_logged(&g.a, "to=relay2, as=") && world_logged(&g.a, "status=given"));
    check_deferred(&g);
    struct sched_state known = sched_find(manager_sched(g.b.manager), only_id(&g.b));
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    world_saw(&g.b, "", "no attempt was made");
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    known = sched_find(manager_sched(g.b.manager), only_id(&g.b));
    ok_named(known.place == SCHED_DEFERRED && known.attempts == 2 &&
                 known.due_ms == (int64_t)g.due_ms,
             "nor does a restart change that");
    check_deferred(&g);
    g.b.all_good = true;
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.b, "me@a.test>later@b.test ", "then to whom it is open");
    ok(world_is_empty(&g.b));
    finish(&g);
}

/* In files it is the same. */
static void
test_files(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    kit_host_stop(g.host);
    g.b.settings.queue.journal_size = 0;
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    send_deferred(&g);
    start_giving(&g);
    pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    is_number(world_files(&g.b, "todo"), 1, "in todo/");
    check_deferred(&g);
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    struct sched_state known = sched_find(manager_sched(g.b.manager), only_id(&g.b));
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    check_deferred(&g);
    finish(&g);
}

static void
test_held(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.a.stalled = true;
    world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_LATER);
    manager_fake_end(g.a.fakes);
    world_turns(&g.a);
    start_giving(&g);
    pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    struct id id = only_id(&g.b);
    char note[QUEUE_NOTE_MAX];
    is_number(queue_note(manager_queue(g.b.manager), id, QUEUE_HOLD, note), 0, "held");
    ok(strstr(note, "held by the operator") != NULL);
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.b, "", "not delivered");
    g.b.id = id;
    ok(world_operate(&g.b, MANAGER_RELEASE) == MANAGER_DONE);
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.b, "me@a.test>good@b.test ", "released, and that stays so");
    finish(&g);
}

/* A message in memory, whose session never opens. */
static void
test_waiting(void)
{
    struct group_world g;
    begin(&g, "* smtp://smtp.b.test?concurrency=1");
    g.a.stalled = true;
    for (int i = 0; i < 300; i++)
        world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    start_giving(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    pass(&g, 5000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 300, "given");
    ok_named(g.wire.sent_most <= SIBLING_UNANSWERED, "few without an answer");
    ok(world_is_empty(&g.a));
    is_number(g.b.attempts, 300, "B has delivered them");
    finish(&g);
}

/* The same host is asked again, and has it already. */
static void
test_lost_answer(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *other = kit_wire_add(&g.wire, "relay3");
    g.b.stalled = true;
    g.host->weather = KIT_SILENT;
    other->weather = KIT_CLOSED;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 10 * 1000);
    is_number(g.over, 0, "unknown");
    ok(g.host->asked > 5);
    is_number(other->asked, 0, "no other host is asked");
    g.host->weather = KIT_FAIR;
    pass(&g, 2000);
    is_number(g.over, 1, "known");
    ok(world_is_empty(&g.a));
    struct sched_counts counts = sched_count(manager_sched(g.b.manager));
    is_number(counts.deferred + counts.incoming + counts.active, 1, "one at B");
    finish(&g);
}

/* B knows it after a restart, though it has delivered it. */
static void
test_recalled(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.host->weather = KIT_SILENT;
    g.a.stalled = true;
    world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    start_giving(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    pass(&g, 2000);
    world_saw(&g.b, "me@a.test>good@b.test ", "delivered");
    kit_host_stop(g.host);
    pass(&g, 2000);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    g.host->weather = KIT_FAIR;
    pass(&g, 3000);
    is_number(g.over, 1, "given");
    world_saw(&g.b, "", "not delivered again");
    finish(&g);
}

/* After a minute it goes elsewhere. */
static void
test_gone_host(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *dead = kit_wire_add(&g.wire, "relay3");
    g.host->weather = KIT_CLOSED;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 3000);
    ok(dead->asked > 0);
    g.host->weather = KIT_FAIR;
    pass(&g, 40 * 1000);
    is_number(g.over, 0, "it may be there");
    pass(&g, 30 * 1000);
    is_number(g.over, 1, "given to another");
    finish(&g);
}

static void
test_refused(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.host->weather = KIT_REFUSING;
    send_deferred(&g);
    start_giving(&g);
    pass(&g, 2000);
    is_number(g.over, 1, "nothing more can be given");
    is_number(give_progress(g.give).refused, 1, "it stays");
    struct sched_state known = sched_find(manager_sched(g.a.manager), g.a.id);
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    give_free(&g.give);
    manager_cancel_drain(g.a.manager);
    g.a.all_good = true;
    sim_loop_advance(g.a.loop, 3600 * 1000);
    world_saw(&g.a, "me@a.test>later@b.test ", "and is delivered here");
    finish(&g);
}

/* B cannot read the form; C, of a newer version, can. */
static void
test_older(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *older = kit_wire_add(&g.wire, "relay3");
    g.b.all_good = true;
    older->weather = KIT_OLDER;
    for (int i = 0; i < 100; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 10 * 1000);
    is_number(g.over, 1, "nothing is left");
    struct give_progress p = give_progress(g.give);
    ok(p.given == 100 && p.refused == 0 && p.refusal[0] == '\0');
    ok_named(older->asked > 30 && older->asked <= 100, "once each, in turn");
    ok(world_is_empty(&g.a) && older->taken == 0);
    finish(&g);
}

/* Until the one that can is back; others are given meanwhile. What none can read stays, and
 * is not refused over and over. */
static void
test_older_waits(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *older = kit_wire_add(&g.wire, "relay3");
    older->weather = KIT_OLDER;
    g.host->weather = KIT_CLOSED;
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 10 * 1000);
    is_number(g.over, 0, "it goes on");
    is_number(give_progress(g.give).refused, 0, "nothing stays");
    ok_named(older->asked >= 20 && older->asked <= 20 * 11, "all are tried, once a second");
    g.host->weather = KIT_OLDER;
    pass(&g, 10 * 1000);
    is_number(g.over, 1, "no host can");
    struct give_progress p = give_progress(g.give);
    ok(p.given == 0 && p.refused == 20);
    ok_named(strstr(p.refusal, ": not here") != NULL, "and why");
    give_free(&g.give);
    g.host->weather = KIT_FAIR;
    start_giving(&g);
    pass(&g, 10 * 1000);
    ok(g.over == 2 && give_progress(g.give).given == 20);
    finish(&g);
}

/* The one that can read it goes for good: what the others refused stays. */
static void
test_older_alone(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *older = kit_wire_add(&g.wire, "relay3");
    older->weather = KIT_OLDER;
    g.host->weather = KIT_STUCK;
    g.host->most = 1;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 2000);
    is_number(give_progress(g.give).left, 2, "one is at the newer host, one waits for it");
    g.host->state = "leaving";
    pass(&g, 2000);
    is_number(give_progress(g.give).refused, 1, "the other one stays");
    g.host->weather = KIT_OLDER;
    pass(&g, 2000);
    is_number(g.over, 1, "nothing more can be given");
    is_number(give_progress(g.give).refused, 2, "both stay");
    finish(&g);
}

/* A daemon that stops takes everything back. */
static void
test_stopped(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.host->weather = KIT_STUCK;
    send_deferred(&g);
    start_giving(&g);
    pass(&g, 1000);
    is_number(give_progress(g.give).sent, 1, "sent");
    char why[MANAGER_WHY_MAX];
    ok(manager_operate(g.a.manager, MANAGER_REMOVE, g.a.id, why) == MANAGER_REFUSED);
    give_free(&g.give);
    kit_wire_end(&g.wire);
    struct sched_state known = sched_find(manager_sched(g.a.manager), g.a.id);
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    finish(&g);
}

static void
cancel_giving(struct group_world *g)
{
    give_rest(g->give);
    manager_cancel_drain(g->a.manager);
}

/* What was not sent is here again immediately, and what a sibling may have once it has
 * answered. */
static void
test_cancelled(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.host->most = 1;
    g.host->weather = KIT_STUCK;
    send_deferred(&g);
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 1000);
    is_number(give_progress(g.give).sent, 1, "one is sent");
    cancel_giving(&g);
    pass(&g, 40);
    struct sched_counts counts = sched_count(manager_sched(g.a.manager));
    is_number(counts.deferred + counts.incoming + counts.active, 1,
              "the other is here");
    g.host->weather = KIT_FAIR;
    pass(&g, 1000);
    is_number(give_progress(g.give).given, 1, "the answer is heard");
    is_number(g.over, 0, "of no drain");
    ok(world_logged(&g.a, "status=given"));
    g.a.all_good = g.b.all_good = true;
    buffer_clear(&g.a.seen);
    sim_loop_advance(g.a.loop, 3600 * 1000);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    world_saw(&g.a, "me@a.test>later@b.test ", "one is delivered here");
    world_saw(&g.b, "me@a.test>later@b.test ", "one there");
    finish(&g);
}

/* It is not delivered here while another host may have it, nor given to a third one. */
static void
test_cancelled_lost(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.b.stalled = true;
    g.host->weather = KIT_SILENT;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 2000);
    buffer_clear(&g.a.seen);
    cancel_giving(&g);
    g.a.all_good = true;
    manager_retry_all(g.a.manager);
    pass(&g, 10 * 1000);
    world_saw(&g.a, "", "not delivered here");
    struct kit_host *other = kit_wire_add(&g.wire, "relay3");
    g.host = &g.wire.hosts[0];
    manager_drain(g.a.manager, 0, on_drained, NULL);
    give_again(g.give, TEXT(""));
    pass(&g, 10 * 1000);
    is_number(g.over, 0, "unknown");
    is_number(other->asked, 0, "no other host is asked");
    g.host->weather = KIT_FAIR;
    pass(&g, 2000);
    is_number(g.over, 1, "known");
    ok(world_is_empty(&g.a));
    struct sched_counts counts = sched_count(manager_sched(g.b.manager));
    is_number(counts.deferred + counts.incoming + counts.active, 1, "one at B");
    finish(&g);
}

/* A host that does not come back keeps no mail here for longer. */
static void
test_cancelled_gone(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.host->weather = KIT_CUT;
    send_deferred(&g);
    start_giving(&g);
    pass(&g, 2000);
    cancel_giving(&g);
    pass(&g, 50 * 1000);
    ok_named(manager_is_lent(g.a.manager, g.a.id), "it may be there");
    pass(&g, 10 * 1000);
    struct sched_state known = sched_find(manager_sched(g.a.manager), g.a.id);
    ok(known.place == SCHED_DEFERRED && known.attempts == 2 &&
       known.due_ms == (int64_t)g.due_ms);
    finish(&g);
}

static void
test_local(void)
{
    struct group_world g;
    begin(&g, "local.test lmtp://unix:/nowhere\n* smtp://smtp.b.test");
    manager_set_channel(g.a.manager, TARGET_LMTP, fake_open, &g.a);
    world_deliver(&g.a, "me@a.test", "later@local.test later@b.test");
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 2000);
    is_number(g.over, 1, "nothing more can be given");
    is_number(give_progress(g.give).local, 1, "one stays");
    is_number(give_progress(g.give).given, 1, "one went");
    finish(&g);
}

/* A failure that no notification has reported yet is reported by the taker, once. */
static void
test_unreported(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    world_send(&g.a, "me@a.test", "bad@b.test later@b.test");
    for (int i = 0; i < 3; i++)
        loop_turn(g.a.loop, 0);
    start_giving(&g);
    pass(&g, 2000);
    g.b.all_good = true;
    sim_loop_advance(g.b.loop, 3600 * 1000);
    g.a.all_good = true;
    is_number(g.over, 1, "given");
    struct text seen = buffer_text(&g.b.seen);
    unsigned reports = 0;
    for (const char *at = seen.at;
         (at = memmem(at, (size_t)(seen.at + seen.length - at), ">me@a.test", 10)) !=
         NULL;
         at++)
        reports++;
    is_number(reports +
                  (world_logged(&g.a, "sender non-delivery notification") ? 0 : 0),
              1, "one report in all");
    finish(&g);
}

/* A message that is on its way to the disk when the walk begins is given, too. */
static void
test_storing(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    manager_drain(g.a.manager, 0, on_drained, NULL);
    world_turns(&g.a);
    world_send(&g.a, "me@a.test", "later@b.test");
    ok(!g.a.accepted);
    g.give = give_new(&(struct give_setup){.loop = g.a.loop,
                                           .events = g.a.events,
                                           .manager = g.a.manager,
                                           .calls = &g.wire.calls,
                                           .host = "relay1",
                                           .siblings = kit_wire_siblings,
                                           .context = &g.wire},
                      TEXT(""), give_is_over, &g);
    pass(&g, 5000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 1, "given");
    ok(world_is_empty(&g.a));
    finish(&g);
}

/* Siblings take turns, but only those that are named and take mail. */
static void
test_turns(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *third = kit_wire_add(&g.wire, "relay3"),
                    *other = kit_wire_add(&g.wire, "relay4");
    kit_host_start(third, g.b.loop, g.b.events, g.b.manager);
    kit_host_start(other, g.b.loop, g.b.events, g.b.manager);
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    manager_drain(g.a.manager, 0, on_drained, NULL);
    third->state = "leaving";
    g.give = give_new(&(struct give_setup){.loop = g.a.loop,
                                           .events = g.a.events,
                                           .manager = g.a.manager,
                                           .calls = &g.wire.calls,
                                           .host = "relay1",
                                           .siblings = kit_wire_siblings,
                                           .context = &g.wire},
                      TEXT("relay2, RELAY3"), give_is_over, &g);
    pass(&g, 200);
    is_number(third->asked, 0, "it leaves");
    is_number(g.host->taken, 20, "one takes all");
    give_free(&g.give);
    manager_cancel_drain(g.a.manager);
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    third->state = "running";
    start_giving(&g);
    pass(&g, 1000);
    ok(g.host->taken > 20 && third->taken > 0 && other->taken > 0);
    is_number(g.host->taken + third->taken + other->taken, 40, "all in turn");
    kit_host_stop(third);
    kit_host_stop(other);
    finish(&g);
}

/* Mail that one refuses for now goes to another. */
static void
test_later(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct kit_host *other = kit_wire_add(&g.wire, "relay3");
    other->weather = KIT_CLOSED;
    for (int i = 0; i < 10; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 3000);
    is_number(g.over, 1, "nothing is left");
    is_number(g.host->taken, 10, "the other has them");
    give_free(&g.give);
    manager_cancel_drain(g.a.manager);
    g.host->weather = KIT_CLOSED;
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 3000);
    ok_named(give_progress(g.give).why[0] != '\0', "nobody takes mail");
    is_number((int64_t)give_progress(g.give).left, 1, "it is left");
    ok(g.host->asked < 10 + 8);
    other->is_lost = true;
    g.host->state = "closing";
    pass(&g, 1000);
    is_text(text_from(give_progress(g.give).why), TEXT("no other host takes mail"),
            "why");
    finish(&g);
}

/* The one that is due soonest goes first, held mail last. */
static void
test_order(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    struct id ids[3];
    for (int i = 0; i < 3; i++) {
        world_deliver(&g.a, "me@a.test", "later@b.test");
        ids[i] = g.a.id;
        sim_loop_advance(g.a.loop, 1000);
    }
    g.a.id = ids[0];
    ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_DONE);
    ok(sched_retry(manager_sched(g.a.manager), loop_now_ms(g.a.loop), ids[2]));
    g.host->most = 1;
    start_giving(&g);
    pass(&g, 2000);
    is_number(g.over, 1, "nothing is left");
    const char *at[3];
    for (int i = 0; i < 3; i++) {
        char line[60], id[ID_LENGTH + 1];
        id_format(ids[i], id);
        snprintf(line, sizeof(line), "%s: to=relay2", id);
        at[i] = memmem(g.a.lines.at, g.a.lines.length, line, strlen(line));
    }
    ok(at[2] != NULL && at[1] > at[2] && at[0] > at[1]);
    finish(&g);
}

static void
send_large(struct world *w)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char line[1002];
    memset(line, 'x', 1000);
    memcpy(line + 1000, "\r\n", 2);
    e->sender = envelope_text(e, TEXT("me@a.test"));
    ok(envelope_add(e, TEXT("later@b.test"), 0, TEXT("")));
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    for (int i = 0; i < 300; i++)
        (void)!queue_write(draft, text_of(line, sizeof(line)));
    queue_name(draft, e);
    queue_commit(&draft, &e, world_stored, w);
    world_turns(w);
}

/* Large content waits for its connection; small mail does not wait behind it. */
static void
test_large(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    for (int i = 0; i < 3; i++)
        send_large(&g.a);
    for (int i = 0; i < 20; i++)
        world_deliver(&g.a, "me@a.test", "later@b.test");
    g.host->bytes_max = 256 * 1024;
    start_giving(&g);
    pass(&g, 2000);
    is_number(g.host->taken, 20, "the small ones");
    is_number(g.over, 0, "three wait");
    g.host->bytes_max = 0;
    pass(&g, 2000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 23, "given");
    finish(&g);
}

/* A hold whose delivery has not ended, and a message that is being removed. */
static void
test_commands(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    g.a.stalled = true;
    world_send(&g.a, "me@a.test", "good@b.test");
    world_turns(&g.a);
    ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_LATER);
    start_giving(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    pass(&g, 1000);
    is_number(g.over, 1, "nothing is left");
    is_number(world_files(&g.b, "hold"), 1, "held there");
    finish(&g);
}

/* All slices are in one spool: what is of another one, only its daemon gives away. */
static void
test_slices(void)
{
    enum { MAILS = 16 };
    struct group_world g;
    unsigned others = 0, held = 0;
    begin(&g, ROUTE);
    world_stop(&g.a);
    g.a.settings.queue.journal_size = 0;
    manager_world_start(&g.a);
    for (int i = 0; i < MAILS; i++) {
        world_deliver(&g.a, "me@a.test", "later@b.test");
        others += id_slice(g.a.id, 2);
        if (i % 2 == 0)
            continue;
        ok(world_operate(&g.a, MANAGER_HOLD) == MANAGER_DONE);
        held += id_slice(g.a.id, 2);
    }
    ok_named(held > 0 && held < others && others < MAILS, "of both slices");
    world_stop(&g.a);
    g.a.settings.queue.slices = 2;
    manager_world_start(&g.a);
    start_giving(&g);
    pass(&g, 3000);
    is_number(g.over, 1, "nothing of its own is left");
    is_number(give_progress(g.give).given, MAILS - others, "given");
    is_number(world_files(&g.a, "mess"), others, "the others stay");
    is_number(world_files(&g.a, "hold"), held, "as they were");
    finish(&g);
}

/* The disk cannot be read for a moment: what was about to be given then goes later. */
static void
test_unreadable(void)
{
    struct group_world g;
    struct rlimit before, none;
    begin(&g, ROUTE);
    world_stop(&g.a);
    g.a.settings.queue.journal_size = 0;
    manager_world_start(&g.a);
    g.host->state = "leaving";
    world_deliver(&g.a, "me@a.test", "later@b.test");
    start_giving(&g);
    pass(&g, 1000);
    is_number(give_progress(g.give).left, 1, "listed");
    must(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = 0;
    must(setrlimit(RLIMIT_NOFILE, &none) == 0);
    g.host->state = "running";
    pass(&g, 400);
    must(setrlimit(RLIMIT_NOFILE, &before) == 0);
    ok(world_logged(&g.a, "cannot read the message now"));
    pass(&g, 5000);
    is_number(g.over, 1, "nothing is left");
    is_number(give_progress(g.give).given, 1, "given");
    finish(&g);
}

static struct aliases *aliases;

static void
plug_aliases(struct world *w)
{
    manager_set_aliases(w->manager, aliases, NULL);
}

/* Mail of sendmail(1) that no daemon has seen: its alias stands for its members, and goes
 * to them alone. */
static void
test_injected(int64_t journal)
{
    struct group_world g;
    begin(&g, ROUTE);
    aliases = injected_aliases(&g.a, "list: good1@b.test, later2@b.test\n");
    g.a.plug = plug_aliases;
    world_stop(&g.a);
    injected_add(&g.a, "me@h.test", "list@h.test");
    kit_host_stop(g.host);
    g.b.settings.queue.journal_size = journal;
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    g.a.stalled = true;
    manager_world_start(&g.a);
    start_giving(&g);
    while (g.a.fakes != NULL)
        manager_fake_end(g.a.fakes);
    pass(&g, 2000);
    is_number(g.over, 1, "given");
    ok(world_is_empty(&g.a));
    struct text seen = buffer_text(&g.b.seen);
    ok_named(
        text_equal(seen, TEXT("me@h.test>good1@b.test me@h.test>later2@b.test ")) ||
            text_equal(seen, TEXT("me@h.test>later2@b.test me@h.test>good1@b.test ")),
        "to the members");
    ok(!world_logged(&g.b, "sendmail: "));
    give_free(&g.give);
    world_stop(&g.a);
    aliases_free(&aliases);
    g.a.plug = NULL;
    manager_world_start(&g.a);
    finish(&g);
}

/* What waits for a quota here waits there, for the quotas of that host. */
static void
test_quota(void)
{
    struct group_world g;
    begin(&g, ROUTE);
    kit_host_stop(g.host);
    g.b.settings.quotas = TEXT("sender:me@h.test 2/d");
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    world_stop(&g.a);
    g.a.settings.quotas = TEXT("sender:me@h.test 1/d");
    for (int i = 0; i < 4; i++)
        injected_add(&g.a, "me@h.test", "good@b.test");
    manager_world_start(&g.a);
    world_saw(&g.a, "me@h.test>good@b.test ", "one may go");
    start_giving(&g);
    pass(&g, 2000);
    is_number(give_progress(g.give).given, 3, "three wait, and are given");
    is_number(g.b.attempts, 0, "they wait there");
    sim_loop_advance(g.b.loop, INT64_C(26) * 3600 * 1000);
    is_number(g.b.attempts, 2, "a day later two may go");
    kit_host_stop(g.host);
    world_restart(&g.b);
    kit_host_start(g.host, g.b.loop, g.b.events, g.b.manager);
    sim_loop_advance(g.b.loop, 3600 * 1000);
    is_number(g.b.attempts, 2, "also after a restart");
    sim_loop_advance(g.b.loop, INT64_C(26) * 3600 * 1000);
    is_number(g.b.attempts, 3, "the third another day later");
    finish(&g);
}

int
main(void)
{
    test_deferred();
    test_files();
    test_held();
    test_waiting();
    test_lost_answer();
    test_recalled();
    test_gone_host();
    test_refused();
    test_older();
    test_older_waits();
    test_older_alone();
    test_stopped();
    test_cancelled();
    test_cancelled_lost();
    test_cancelled_gone();
    test_local();
    test_unreported();
    test_storing();
    test_turns();
    test_large();
    test_slices();
    test_unreadable();
    test_injected(8 * 1024 * 1024);
    test_injected(0);
    test_quota();
    test_later();
    test_order();
    test_commands();
    return done();
}
