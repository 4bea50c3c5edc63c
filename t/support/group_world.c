/* Two hosts of a group. */
#include "t/support/group_world.h"

#include "queue/queue_operator.h"
#include "sched/sched.h"
#include "t/support/tap.h"

#include <string.h>

void
group_world_drained(void *context)
{
    (void)context;
}

void
group_world_given(void *context)
{
    struct group_world *g = context;
    g->over++;
}

/* With a journal. */
static void
group_world_open(struct world *w, const char *routes)
{
    manager_world_begin(w, routes);
    w->settings.queue.journal_size = 8 * 1024 * 1024;
    w->settings.queue.journal_message_max = 256 * 1024;
    world_restart(w);
}

void
group_world_begin(struct group_world *g, const char *routes)
{
    memset(g, 0, sizeof(*g));
    group_world_open(&g->a, routes);
    group_world_open(&g->b, routes);
    for (int i = 0; i < 5; i++)
        (void)loop_random(g->b.loop); /* other names */
    kit_wire_begin(&g->wire, "relay1", g->a.loop);
    g->host = kit_wire_add(&g->wire, "relay2");
    kit_host_start(g->host, g->b.loop, g->b.events, g->b.manager);
}

void
group_world_start(struct group_world *g)
{
    manager_drain(g->a.manager, 0, group_world_drained, NULL);
    world_turns(&g->a);
    g->give = give_new(&(struct give_setup){.loop = g->a.loop,
                                            .events = g->a.events,
                                            .manager = g->a.manager,
                                            .calls = &g->wire.calls,
                                            .host = "relay1",
                                            .siblings = kit_wire_siblings,
                                            .context = &g->wire},
                       TEXT(""), group_world_given, g);
}

void
group_world_pass(struct group_world *g, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 20) {
        while (kit_wire_carry(&g->wire))
            ;
        sim_loop_advance(g->a.loop, 20);
        sim_loop_advance(g->b.loop, 20);
    }
}

void
group_world_end(struct group_world *g)
{
    give_free(&g->give);
    kit_wire_end(&g->wire);
    kit_host_stop(g->host);
    manager_world_end(&g->a);
    manager_world_end(&g->b);
}

struct id
group_world_id(const struct world *w)
{
    struct id id = {0};
    struct text lines = buffer_text(&w->lines);
    const char *at = memmem(lines.at, lines.length, ": from=relay1, was=", 19);
    if (at == NULL || !id_parse(text_of(at - ID_LENGTH, ID_LENGTH), &id))
        ok_named(false, "a line says that it was taken");
    return id;
}

struct envelope *
group_world_taken(const struct group_world *g)
{
    struct envelope *e = queue_load(manager_queue(g->b.manager), group_world_id(&g->b));
    ok_named(e != NULL, "B has it");
    return e;
}

void
group_world_defer(struct group_world *g)
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

void
group_world_check(struct group_world *g)
{
    char first[ID_LENGTH + 1];
    struct envelope *e = group_world_taken(g);
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

void
group_world_is_given(struct group_world *g)
{
    is_number(g->over, 1, "known");
    ok(world_is_empty(&g->a));
    struct sched_counts counts = sched_count(manager_sched(g->b.manager));
    is_number(counts.deferred + counts.incoming + counts.active, 1, "one at B");
}
