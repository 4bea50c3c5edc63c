/* The limit of recipients in memory: each door by which mail comes into memory keeps
 * it, and what has no room waits on disk. */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "t/support/manager_world.h"

enum { LIMIT = 16, MESSAGES = 12 };

static const char four[] = "good1@b.test good2@b.test good3@b.test good4@b.test";

static void
begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    w->settings.sched.recipient_limit = LIMIT;
    world_restart(w);
    w->stalled = true;
}

static size_t
active_recipients(const struct world *w)
{
    return sched_count(manager_sched(w->manager)).recipients;
}

/* Counts these messages. */
static unsigned
envelopes_in_memory(const struct world *w, const struct id *ids, unsigned count)
{
    unsigned in_memory = 0;
    for (unsigned i = 0; i < count; i++)
        in_memory += manager_active(w->manager, ids[i]) != NULL;
    return in_memory;
}

TEST(accepted)
{
    struct world w;
    struct id ids[MESSAGES];
    begin(&w, "* smtp://sink.test");
    for (int i = 0; i < MESSAGES; i++) {
        world_send(&w, "ann@a.test", four);
        ids[i] = w.id;
    }
    world_turns(&w);
    is_number((long)active_recipients(&w), 12, "three of them");
    ok_named(envelopes_in_memory(&w, ids, MESSAGES) <= LIMIT / 4,
             "one envelope may be ready besides, within the limit");
    struct sched_state state = sched_find(manager_sched(w.manager), ids[5]);
    ok_named(state.lacks_room, "it waits for room");
    world_deliver(&w, "ann@a.test", "good@b.test");
    is_number((long)active_recipients(&w), 13, "a small message passes");
    world_unstall(&w);
    sim_loop_advance(w.loop, 10 * 1000);
    is_number(w.attempts, 4 * MESSAGES + 1, "all are delivered");
    ok(world_is_empty(&w));
    manager_world_end(&w);
}

/* Startup does not know how many recipients a message has. */
TEST(found)
{
    struct world w;
    struct id ids[MESSAGES];
    begin(&w, "* smtp://sink.test");
    for (int i = 0; i < MESSAGES; i++) {
        world_deliver(&w, "ann@a.test", four);
        ids[i] = w.id;
    }
    world_restart(&w);
    sim_loop_advance(w.loop, 1000);
    is_number((long)active_recipients(&w), 12, "three of them");
    is_number(envelopes_in_memory(&w, ids, MESSAGES), 3, "no other is in memory");
    uint64_t read = queue_bytes_read(manager_queue(w.manager));
    manager_retry_all(w.manager);
    sim_loop_advance(w.loop, 60 * 1000);
    is_number((long)active_recipients(&w), 12, "a flush makes no room");
    is_number((long)queue_bytes_read(manager_queue(w.manager)), (long)read,
              "and reads nothing");
    world_unstall(&w);
    sim_loop_advance(w.loop, 10 * 1000);
    is_number(w.attempts, 4 * MESSAGES, "all are delivered");
    ok(world_is_empty(&w));
    manager_world_end(&w);
}

TEST(larger)
{
    struct world w;
    struct buffer many;
    begin(&w, "* smtp://sink.test");
    buffer_init(&many, 4096);
    for (int i = 0; i < 100; i++)
        (void)!buffer_format(&many, "good%d@b.test ", i);
    (void)!buffer_add(&many, text_of("", 1));
    world_deliver(&w, "ann@a.test", four);
    world_deliver(&w, "ann@a.test", many.at);
    is_number(world_place(&w), SCHED_INCOMING, "it waits until it is alone");
    world_deliver(&w, "ann@a.test", "good@b.test");
    is_number(world_place(&w), SCHED_ACTIVE, "small mail does not");
    world_unstall(&w);
    sim_loop_advance(w.loop, 60 * 1000);
    is_number(w.attempts, 105, "all are delivered");
    ok(world_is_empty(&w));
    buffer_free(&many);
    manager_world_end(&w);
}

/* Released mail that has not been tried yet is kept in memory only if there is room;
 * else the disk says that it passes the routes that hold. */
TEST(released)
{
    struct world w;
    begin(&w, "held.test hold\n* smtp://sink.test");
    for (int i = 0; i < 3; i++)
        world_deliver(&w, "ann@a.test", four);
    world_deliver(&w, "ann@a.test", "a@held.test b@held.test c@held.test");
    is_number(world_operate(&w, MANAGER_HOLD), MANAGER_DONE, "held before its attempt");
    is_number(world_operate(&w, MANAGER_RELEASE), MANAGER_DONE, "and released");
    ok_named(manager_active(w.manager, w.id) == NULL, "it is not in memory");
    is_number((long)active_recipients(&w), 12, "as before");
    w.all_good = true;
    world_unstall(&w);
    sim_loop_advance(w.loop, 600 * 1000);
    is_number(w.attempts, 15, "all are delivered");
    ok(world_is_empty(&w));
    manager_world_end(&w);
}

/* Deferred mail comes again in its order, never more of it than there is room for; what
 * has failed is reported. */
TEST(deferred)
{
    struct world w;
    begin(&w, "* smtp://sink.test?minimal_backoff=60s&maximal_backoff=60s");
    for (int i = 0; i < MESSAGES; i++)
        world_send(&w, "ann@a.test",
                   "good@b.test bad@b.test later1@b.test later2@b.test");
    world_turns(&w);
    world_unstall(&w);
    for (int i = 0; i < 50; i++) {
        sim_loop_advance(w.loop, 100);
        if (active_recipients(&w) > LIMIT)
            break;
    }
    ok_named(active_recipients(&w) <= LIMIT, "never more than the limit");
    w.all_good = true;
    sim_loop_advance(w.loop, 3600 * 1000);
    ok(world_is_empty(&w));
    ok_named(world_logged(&w, "to=<later2@b.test>"), "and delivered");
    manager_world_end(&w);
}
