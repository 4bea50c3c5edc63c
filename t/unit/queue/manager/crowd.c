/* link: t/sim/loop.c */
/* Mail that comes faster than it leaves: for a site, in the journal, on its way to
 * files. */
#include "queue/queue_operator.h"
#include "t/support/manager_world.h"

enum { CROWD = 500, MANY = 7 * CROWD, PART = 16, SECOND_MS = 1000, LARGE = 60 * 1024 };

static void
must_be(bool good)
{
    if (!good)
        abort();
}

static void
send_many(struct world *w, unsigned count, const char *to)
{
    for (unsigned i = 0; i < count; i++)
        world_send(w, "ann@a.test", to);
    world_turns(w);
}

/* Too large to be many in the journal. */
static void
send_large(struct world *w, unsigned count)
{
    static char content[LARGE];
    memset(content, 'x', sizeof(content));
    for (unsigned i = 0; i < count; i++) {
        struct outcome refusal;
        struct envelope *e = envelope_new();
        e->sender = envelope_text(e, TEXT("ann@a.test"));
        must_be(envelope_add(e, TEXT("good@b.test"), 0, TEXT("")));
        struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
        must_be(queue_write(draft, text_of(content, sizeof(content))));
        queue_name(draft, e);
        w->id = e->id;
        queue_commit(&draft, &e, world_stored, w);
    }
    world_turns(w);
}

struct pick {
    const struct world *world;
    size_t waiting, crowded;
};

static bool
pick(void *context, struct id id, enum queue_place place)
{
    struct pick *p = context;
    bool waits = queue_waits_for_move(manager_queue(p->world->manager), id);
    (void)place;
    p->waiting += waits;
    p->crowded += waits && manager_is_crowded(p->world->manager, id, false);
    return true;
}

static void
begin(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    w->settings.sched.active_limit = 10 * CROWD;
    world_restart(w);
}

TEST(site)
{
    FIXTURE(world, w, begin, manager_world_end, "c.test smtp://other.test, * smtp://sink.test");
    ok(manager_is_calm(w.manager));
    w.stalled = true;
    send_many(&w, CROWD - 1, "good@b.test");
    ok_named(manager_is_calm(w.manager), "one less than a crowd");
    ok(!manager_is_crowded(w.manager, w.id, false));
    send_many(&w, 30, "good@b.test");
    struct id last = w.id;
    ok_named(!manager_is_calm(w.manager), "a crowd");
    ok_named(manager_is_crowded(w.manager, last, false),
             "for the site of the last one");
    ok_named(!manager_is_crowded(w.manager, last, true),
             "not for a client with one session");
    send_many(&w, 1, "good@c.test");
    struct id other = w.id;
    ok_named(!manager_is_crowded(w.manager, other, false), "nor at another site");
    send_many(&w, 1, "good@b.test good@c.test");
    ok_named(manager_is_crowded(w.manager, w.id, false), "one crowded site is enough");
    send_many(&w, CROWD, "good@b.test");
    ok_named(manager_is_crowded(w.manager, last, true), "twice as many are for all");
    ok(!manager_is_crowded(w.manager, other, true));
    world_unstall(&w);
    sim_loop_advance(w.loop, 60 * SECOND_MS);
    ok(world_is_empty(&w));
    ok_named(manager_is_calm(w.manager) && !manager_is_crowded(w.manager, last, false),
             "and calm again");
}

/* A crowd of large messages is smaller: the journal is what they fill. */
TEST(large)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.settings.queue.journal_size = 4 * 1024 * 1024;
    w.settings.queue.journal_message_max = LARGE + 1024;
    world_restart(&w);
    w.stalled = true;
    send_large(&w, 10);
    ok(!queue_is_filling(manager_queue(w.manager)));
    send_many(&w, CROWD / PART, "good@b.test");
    ok_named(!manager_is_crowded(w.manager, w.id, false), "a few, and space");
    send_large(&w, 10);
    ok_named(queue_is_filling(manager_queue(w.manager)), "a quarter is used");
    ok_named(!manager_is_calm(w.manager) && manager_is_crowded(w.manager, w.id, false),
             "now they are a crowd");
    world_unstall(&w);
    sim_loop_advance(w.loop, 60 * SECOND_MS);
    ok(!queue_is_filling(manager_queue(w.manager)));
    ok(world_is_empty(&w));
}

/* The operator's rate is no reason to delay clients, nor is a dead site once its mail
 * is in files. */
TEST(slow)
{
    FIXTURE(world, w, begin, manager_world_end,
            "c.test smtp://other.test?adaptive=no, * smtp://sink.test?rate=1/m");
    send_many(&w, 2 * CROWD, "good@b.test");
    ok_named(!manager_is_calm(w.manager), "many wait");
    struct id limited = w.id;
    ok_named(!manager_is_crowded(w.manager, limited, false), "for a rate");
    send_many(&w, 1, "site@c.test");
    for (unsigned i = 0; i < MANY; i++)
        world_send(&w, "ann@a.test", "site@c.test");
    for (unsigned i = 0; i < MANY && queue_moves(manager_queue(w.manager)) < CROWD; i++)
        loop_turn(w.loop, 0);
    ok_named(!manager_is_calm(w.manager), "a crowd waits to become files");
    struct pick picked = {.world = &w};
    must_be(queue_each(manager_queue(w.manager), pick, &picked) == 0);
    ok_named(picked.waiting >= queue_moves(manager_queue(w.manager)),
             "with those that are yet to enter the line");
    is_number(picked.crowded, picked.waiting, "their clients wait");
    ok_named(!manager_is_crowded(w.manager, limited, false),
             "which the other does not");
    sim_loop_advance(w.loop, 60 * SECOND_MS);
    ok_named(!queue_waits_for_move(manager_queue(w.manager), w.id) &&
                 !manager_is_crowded(w.manager, w.id, false),
             "or for a dead site");
}
