/* link: t/sim/loop.c */
/* Fragments that wait are given to another host: their set forgets them here, and they wait
 * anew where they go. */
#include "t/support/channel_world.h"
#include "t/support/give_kit.h"

#define ROUTES "* smtp://h?defragment=yes"
#define WHOLE  "From: a@x\r\nSubject: whole\r\n\r\none\r\ntwo\r\nthree\r\n"
#define OTHER  "From: a@x\r\nSubject: other\r\n\r\none\r\ntwo\r\n"
enum { TURNS = 30, LARGE = 12 * 400000, SETS = 10 };

static unsigned given_over;

static void
on_over(void *context)
{
    (void)context;
    given_over++;
}

static void
on_drained(void *context)
{
    (void)context;
}

static void
pass(struct stage *a, struct stage *b, struct kit_wire *wire, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 20) {
        while (kit_wire_carry(wire))
            ;
        sim_loop_advance(a->w.loop, 20);
        sim_loop_advance(b->w.loop, 20);
    }
}

static size_t
waiting(const struct stage *s)
{
    struct manager_fragments f = {0};
    (void)manager_fragments(s->w.manager, &f);
    return f.messages;
}

/* The queue is given while its fragments are made a whole, so many turns after the last one
 * has come: the recipient gets the whole, once, and no fragment. behind: another set is complete,
 * too, and its fragments are under way when its turn comes. */
static void
given_in_between(int turns, bool behind)
{
    struct stage a, b;
    struct kit_wire wire;
    char name[60], *large = memory_new(LARGE + 1);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = "0123456789\r\n"[i % 12];
    stage_begin(&a, ROUTES);
    stage_begin(&b, ROUTES);
    for (int i = 0; i < 5; i++)
        (void)loop_random(b.w.loop);
    stage_part(&a, "i", 1, 3, "Subject: whole\r\n\r\none\r\n");
    stage_part(&a, "i", 2, 3, large);
    kit_wire_begin(&wire, "relay1", a.w.loop);
    struct kit_host *host = kit_wire_add(&wire, "relay2");
    kit_host_start(host, b.w.loop, b.w.events, b.w.manager);
    if (behind) {
        stage_part(&a, "k", 1, 2, "Subject: other\r\n\r\none\r\n");
        host->weather = KIT_STUCK;
    }
    stage_put(&a, "a@x", "b@y", "i", 3, 3, "three\r\n");
    if (behind)
        stage_put(&a, "a@x", "b@y", "k", 2, 2, "two\r\n");
    for (int i = 0; i < turns; i++)
        loop_turn(a.w.loop, 0);
    manager_drain(a.w.manager, 0, on_drained, NULL);
    struct give *give = give_new(&(struct give_setup){.loop = a.w.loop,
                                                      .events = a.w.events,
                                                      .manager = a.w.manager,
                                                      .calls = &wire.calls,
                                                      .host = "relay1",
                                                      .siblings = kit_wire_siblings,
                                                      .context = &wire},
                                 TEXT(""), on_over, NULL);
    pass(&a, &b, &wire, 3000);
    host->weather = KIT_FAIR;
    pass(&a, &b, &wire, 5000);
    give_free(&give);
    manager_cancel_drain(a.w.manager);
    sim_loop_advance(a.w.loop, 2 * STAGE_HALF_MS);
    sim_loop_advance(b.w.loop, 2 * STAGE_HALF_MS);
    unsigned wholes = 0;
    for (unsigned i = 0; i < a.count; i++)
        wholes += a.delivered[i].content.length > LARGE + 40;
    for (unsigned i = 0; i < b.count; i++)
        wholes += b.delivered[i].content.length > LARGE + 40;
    unsigned all = behind ? 2 : 1;
    if (behind)
        wholes += stage_wholes(&a, OTHER) + stage_wholes(&b, OTHER);
    snprintf(name, sizeof(name), "once, given after %d turns%s", turns,
             behind ? ", and the one behind" : "");
    ok_named(wholes == all && a.count + b.count == all, name);
    if (wholes != all || a.count + b.count != all)
        printf("# %u wholes, %u and %u delivered\n", wholes, a.count, b.count);
    kit_wire_end(&wire);
    kit_host_stop(host);
    stage_end(&a);
    stage_end(&b);
    free(large);
}

/* The fragments of a set go to one host, whatever the others get. */
static void
sets_stay_together(bool is_one_closed)
{
    struct stage a, hosts[2];
    struct kit_wire wire;
    struct kit_host *others[2];
    char id[20];
    stage_begin(&a, ROUTES);
    kit_wire_begin(&wire, "relay1", a.w.loop);
    for (int i = 0; i < 2; i++) {
        stage_begin(&hosts[i], ROUTES);
        for (int j = 0; j < 5 * (i + 1); j++)
            (void)loop_random(hosts[i].w.loop);
        others[i] = kit_wire_add(&wire, i == 0 ? "relay2" : "relay3");
        kit_host_start(others[i], hosts[i].w.loop, hosts[i].w.events,
                       hosts[i].w.manager);
    }
    for (int i = 0; i < 3 * SETS; i++) {
        snprintf(id, sizeof(id), "set%d", i % SETS);
        stage_part(&a, id, (unsigned)(1 + i / SETS), 4, "a part\r\n");
    }
    is_number((int64_t)waiting(&a), 3 * SETS, "fragments wait");
    others[0]->most = others[1]->most = 2; /* and for each other */
    others[1]->weather = is_one_closed ? KIT_CLOSED : KIT_FAIR;
    manager_drain(a.w.manager, 0, on_drained, NULL);
    given_over = 0;
    struct give *give = give_new(&(struct give_setup){.loop = a.w.loop,
                                                      .events = a.w.events,
                                                      .manager = a.w.manager,
                                                      .calls = &wire.calls,
                                                      .host = "relay1",
                                                      .siblings = kit_wire_siblings,
                                                      .context = &wire},
                                 TEXT(""), on_over, NULL);
    for (int i = 0; i < 20 * 50; i++) {
        while (kit_wire_carry(&wire))
            ;
        sim_loop_advance(a.w.loop, 20);
        sim_loop_advance(hosts[0].w.loop, 20);
        sim_loop_advance(hosts[1].w.loop, 20);
    }
    is_number(given_over, 1, "nothing is left");
    size_t sets[2] = {stage_figures(&hosts[0]).sets, stage_figures(&hosts[1]).sets};
    is_number((int64_t)(sets[0] + sets[1]), SETS, "no set is torn");
    is_number((int64_t)(waiting(&hosts[0]) + waiting(&hosts[1])), 3 * SETS, "all wait");
    ok_named(is_one_closed ? sets[1] == 0 : sets[0] > 0 && sets[1] > 0,
             "by those that take mail");
    give_free(&give);
    kit_wire_end(&wire);
    for (int i = 0; i < 2; i++) {
        kit_host_stop(others[i]);
        stage_end(&hosts[i]);
    }
    stage_end(&a);
}

int
main(void)
{
    struct stage a, b;
    struct kit_wire wire;
    stage_begin(&a, ROUTES);
    stage_begin(&b, ROUTES);
    for (int i = 0; i < 5; i++)
        (void)loop_random(b.w.loop);
    stage_part(&a, "i", 1, 3, "Subject: whole\r\n\r\none\r\n");
    stage_part(&a, "i", 2, 3, "two\r\n");
    is_number((int64_t)waiting(&a), 2, "fragments wait");
    kit_wire_begin(&wire, "relay1", a.w.loop);
    struct kit_host *host = kit_wire_add(&wire, "relay2");
    kit_host_start(host, b.w.loop, b.w.events, b.w.manager);
    manager_drain(a.w.manager, 0, on_drained, NULL);
    world_turns(&a.w);
    struct give *give = give_new(&(struct give_setup){.loop = a.w.loop,
                                                      .events = a.w.events,
                                                      .manager = a.w.manager,
                                                      .calls = &wire.calls,
                                                      .host = "relay1",
                                                      .siblings = kit_wire_siblings,
                                                      .context = &wire},
                                 TEXT(""), on_over, NULL);
    pass(&a, &b, &wire, 2000);
    is_number(given_over, 1, "nothing is left");
    is_number((int64_t)give_progress(give).given, 2, "given");
    is_number((int64_t)waiting(&a), 0, "none waits here");
    is_number((int64_t)waiting(&b), 2, "they wait there");
    ok(world_is_empty(&a.w));
    is_number((int64_t)b.count, 0, "none goes on by itself");
    stage_part(&b, "i", 3, 3, "three\r\n");
    pass(&a, &b, &wire, 2000);
    is_number((int64_t)b.count, 1, "the whole does");
    if (b.count == 1)
        is_text(buffer_text(&b.delivered[0].content),
                TEXT(WHOLE),
                "of all three");
    give_free(&give);
    kit_wire_end(&wire);
    kit_host_stop(host);
    stage_end(&a);
    stage_end(&b);
    sets_stay_together(false);
    sets_stay_together(true);
    for (int turns = 0; turns < TURNS; turns++)
        given_in_between(turns, false);
    for (int turns = 0; turns < TURNS; turns += 3)
        given_in_between(turns, true);
    return done();
}
