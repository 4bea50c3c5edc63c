/* link: t/sim/loop.c t/sim/copies_database.c t/sim/copies_engine.c */
/* queue/copies/copies_keeper.c: what it does not remember. The rest is in t/roof/engine.c. */
#include "queue/copies/copies_keeper.h"

#include "queue/copies/copies_scripts.h"
#include "queue/manager/manager.h"
#include "queue/queue_internal.h"
#include "t/sim/copies_engine.h"
#include "t/support/manager_world.h"
#include "t/support/must.h"

#include <stdlib.h>

enum { MANY = 200000 };
#define WHO "relay1 1"

struct keeping {
    struct world w;
    struct copies_database *database;
    struct copies_settings settings;
    struct copies_engine *engine;
    struct copies_keeper *keeper;
};

static void
keeper_fenced(void *context, const char *owner)
{
    struct keeping *g = context;
    copies_keeper_close(g->keeper, owner);
}

static void
keeper_start(struct keeping *g)
{
    g->engine = sim_engine_new(g->database);
    g->keeper = copies_keeper_new(&(struct copies_keeper_setup){.loop = g->w.loop,
                                                                .log = g->w.log,
                                                                .queue = manager_queue(g->w.manager),
                                                                .manager = g->w.manager,
                                                                .engine = g->engine,
                                                                .settings = &g->settings,
                                                                .identity = "i",
                                                                .who = WHO,
                                                                .fenced = keeper_fenced,
                                                                .context = g});
}

/* As adoption does it. */
static void
keeping_open(struct keeping *g)
{
    uint64_t number = 0;
    (void)!text_number(copies_database_field(g->database, "pc:{relay1}:relay1:i", "n"), UINT64_MAX, &number);
    copies_keeper_open(g->keeper, number, 0);
}

static void
keeping_up(struct keeping *g)
{
    sim_engine_up(g->engine);
    keeping_open(g);
}

static void
keeper_stop(struct keeping *g)
{
    copies_keeper_free(&g->keeper);
    sim_engine_free(&g->engine);
}

static void
keeping_begin(struct keeping *g)
{
    memset(g, 0, sizeof(*g));
    manager_world_begin(&g->w, "* smtp://smtp.b.test");
    g->w.stalled = true;
    snprintf(g->settings.host, sizeof(g->settings.host), "relay1");
    g->settings.message_max = 1024 * 1024;
    g->database = copies_database_new();
    keeper_start(g);
}

static void
keeping_end(struct keeping *g)
{
    keeper_stop(g);
    manager_world_end(&g->w);
    copies_database_free(&g->database);
}

static void
keeping_pass(struct keeping *g, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 100) {
        while (sim_engine_carry(g->engine))
            sim_loop_advance(g->w.loop, 1);
        sim_loop_advance(g->w.loop, 100);
    }
}

TEST(more_than_it_remembers)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    keeping_up(&g);
    keeping_pass(&g, 1000);
    world_send(&g.w, "me@a.test", "good@b.test");
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), 1, "a copy");
    struct id id = g.w.id;
    sim_engine_down(g.engine, false);
    keeping_pass(&g, 2000);
    for (unsigned i = 0; i < MANY; i++)
        queue_changed(manager_queue(g.w.manager), (struct id){.time_ms = 1, .hash = i + 1});
    world_unstall(&g.w);
    keeping_pass(&g, 1000);
    must(world_is_empty(&g.w));
    keeping_up(&g);
    keeping_pass(&g, 240 * 1000);
    is_number((int64_t)copies_keeper_state(g.keeper).losses, 0, "the engine has lost nothing");
    is_number((int64_t)copies_keeper_state(g.keeper).gaps, 1, "but has what it should not");
    copies_keeper_remove(g.keeper, id);
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "which is looked for");
}

TEST(unread)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    char remove[100];
    g.settings.required = true;
    world_send(&g.w, "me@a.test", "good@b.test"); /* before the engine is there */
    sim_loop_advance(g.w.loop, 100);
    is_number(g.w.accepted, false, "it waits for its copy");
    snprintf(remove, sizeof(remove), "cd %s && rm -f todo/* intd/* mess/*", g.w.folder);
    must(system(remove) == 0);
    keeping_up(&g);
    keeping_pass(&g, 1000);
    is_number(g.w.accepted, false, "what cannot be copied is not accepted");
    is_number((int64_t)copies_keeper_state(g.keeper).refused, 1, "but refused");
}

/* One that waits for its copy is no message to an operator yet: its client is answered. */
TEST(removed_while_it_waits)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    char why[MANAGER_WHY_MAX];
    g.settings.required = true;
    world_send(&g.w, "me@a.test", "good@b.test");
    sim_loop_advance(g.w.loop, 100);
    is_number(g.w.accepted, false, "it waits for its copy");
    is_number(manager_operate(g.w.manager, MANAGER_REMOVE, g.w.id, why), MANAGER_UNKNOWN, "none to remove");
    is_number(manager_remove_listed(g.w.manager, g.w.id, why), MANAGER_UNKNOWN, "nor of a list");
    is_number(manager_operate(g.w.manager, MANAGER_HOLD, g.w.id, why), MANAGER_UNKNOWN, "none to hold");
    is_number(manager_operate(g.w.manager, MANAGER_BOUNCE, g.w.id, why), MANAGER_UNKNOWN, "or to bounce");
    keeping_up(&g);
    keeping_pass(&g, 1000);
    is_number(g.w.accepted, true, "and is accepted");
    is_number((int64_t)copies_database_count(g.database), 1, "with a copy");
}

/* The reason of now, not that of an absence before. */
TEST(reasons)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    g.settings.required = true;
    keeping_up(&g);
    copies_keeper_close(g.keeper, "another host has them");
    keeping_pass(&g, 2000);
    is_text(text_from(copies_keeper_state(g.keeper).why), TEXT("another host has them"), "of the present");
    copies_keeper_open(g.keeper, 0, 0);
    sim_engine_down(g.engine, false);
    sim_engine_up(g.engine);
    keeping_pass(&g, 2000);
    ok(copies_keeper_state(g.keeper).is_away);
    is_text(text_from(copies_keeper_state(g.keeper).why), TEXT("it is not known yet whose the copies are"), "and not of before");
    ok(world_logged(&g.w, "mail is refused: it is not known yet whose"));
}

static uint64_t
syncs_of(const struct keeping *g)
{
    const struct disk_pace *pace = disk_pace(queue_disk(manager_queue(g->w.manager)));
    uint64_t sum = 0;
    for (unsigned i = 0; i <= DISK_PACE_BOUNDS; i++)
        sum += pace->syncs[i];
    return sum;
}

/* The IDs in lock/ended. -1: there is none. */
static int
ended_lines(struct keeping *g)
{
    struct buffer all;
    struct text rest, line;
    struct id id;
    int lines = -1;
    buffer_init(&all, 1 << 20);
    if (manager_hint_read(g->w.manager, "ended", &all) >= 0)
        for (rest = buffer_text(&all), lines = 0; text_cut(&rest, '\n', &line);)
            lines += id_parse(line, &id);
    buffer_free(&all);
    return lines;
}

static void
keeping_restart(struct keeping *g)
{
    keeper_stop(g);
    world_restart(&g->w);
    keeper_start(g);
    keeping_pass(g, 100);
}

/* The copy of what ends while the engine hears nothing ends in the next run. */
TEST(ended_meanwhile)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    enum { ENDS = 50 };
    struct id ids[ENDS], lives;
    keeping_up(&g);
    for (unsigned i = 0; i < ENDS; i++) {
        world_send(&g.w, "me@a.test", "good@b.test");
        ids[i] = g.w.id;
        keeping_pass(&g, 100);
    }
    world_send(&g.w, "me@a.test", "good@b.test");
    lives = g.w.id;
    keeping_pass(&g, 1000);
    must(queue_remove(manager_queue(g.w.manager), ids[0]));
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), ENDS, "copies");
    is_number(ended_lines(&g), -1, "nothing is noted of what the engine hears");

    must(queue_remove(manager_queue(g.w.manager), ids[1]));
    sim_loop_advance(g.w.loop, 1);
    sim_engine_down(g.engine, false);
    uint64_t before = syncs_of(&g);
    keeping_pass(&g, 1);
    is_number(ended_lines(&g), 1, "one that waited for others is, when the engine goes");
    for (unsigned i = 2; i < ENDS; i++) {
        must(queue_remove(manager_queue(g.w.manager), ids[i]));
        keeping_pass(&g, 100);
    }
    is_number(ended_lines(&g), ENDS - 1, "each is noted in its turn");
    int64_t seconds = ENDS * 100 / 1000, syncs = (int64_t)(syncs_of(&g) - before);
    ok_named(syncs > 0 && syncs <= seconds + 1, "and synced once a second at most");
    must(manager_hint_append(g.w.manager, "ended", text_from("01JXT2YQ")) == 0); /* cut off */

    keeping_restart(&g);
    must(manager_hint_append(g.w.manager, "ended", text_from("\n")) == 0);
    must(manager_hint_append(g.w.manager, "ended", text_from(ID_TEXT(lives))) == 0);
    must(manager_hint_append(g.w.manager, "ended", text_from("\n")) == 0);
    keeping_restart(&g);
    ok_named(copies_keeper_is_ending(g.keeper, ids[1]) && copies_keeper_is_ending(g.keeper, ids[ENDS - 1]),
             "another run knows them");
    ok_named(!copies_keeper_is_ending(g.keeper, lives), "but not as the end of one that is here");
    keeping_up(&g);
    keeping_pass(&g, 5000);
    is_number((int64_t)copies_database_count(g.database), 1, "and ends them there");
    is_number(ended_lines(&g), -1, "then nothing is left of them");
}

/* The copy of a message is lost, unnoticed: the next run finds it. */
TEST(checked)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    keeping_up(&g);
    for (unsigned i = 0; i < 2; i++) {
        world_send(&g.w, "me@a.test", "good@b.test");
        keeping_pass(&g, 1000);
    }
    is_number((int64_t)copies_database_count(g.database), 2, "copies");
    copies_database_drop(g.database, "pc:{relay1}:relay1:i", ID_TEXT(g.w.id));
    is_number((int64_t)copies_database_count(g.database), 1, "one is lost");
    keeping_restart(&g);
    keeping_up(&g);
    ok_named(!copies_keeper_has(g.keeper, g.w.id), "nobody knows whether it is there");
    is_number((int64_t)copies_keeper_state(g.keeper).behind, 0, "none is behind");
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), 2, "it is stored again");
    is_number((int64_t)copies_keeper_state(g.keeper).stored, 1, "it alone");
    ok(copies_keeper_has(g.keeper, g.w.id));
}

/* With more slices a part of the mail is another daemon's. */
TEST(more_slices)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    unsigned own = 0;
    keeping_up(&g);
    for (unsigned i = 0; i < 12; i++) {
        world_send(&g.w, "me@a.test", "good@b.test");
        keeping_pass(&g, 200);
        own += id_slice(g.w.id, 2) == 0;
    }
    must(own > 0 && own < 12);
    g.w.settings.queue.slices = 2;
    keeping_restart(&g);
    copies_database_flush(g.database);
    keeping_up(&g);
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), own, "the mail of this slice alone is copied");
}

/* A host that stops without mail leaves no owner. */
TEST(farewell)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    keeping_up(&g);
    for (unsigned mail = 1; mail <= 2; mail++) {
        world_send(&g.w, "me@a.test", "good@b.test");
        keeping_pass(&g, 1000);
        must(copies_database_field(g.database, "pc:{relay1}:owner", "relay1:i").length > 0);
        if (mail == 2)
            world_unstall(&g.w);
        sim_loop_advance(g.w.loop, 1); /* the ends are not sent yet */
        copies_keeper_free(&g.keeper);
        while (sim_engine_carry(g.engine))
            ;
        is_number((int64_t)copies_database_field(g.database, "pc:{relay1}:owner", "relay1:i").length,
                  mail == 1 ? (int64_t)strlen(WHO) : 0, mail == 1 ? "the owner of a copy" : "none without any");
        sim_engine_free(&g.engine);
        keeper_start(&g);
        keeping_up(&g);
        keeping_pass(&g, 1000);
    }
}

/* A message that ends while another host has the copies ends there when they are ours again. */
TEST(ended_while_fenced)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    keeping_up(&g);
    world_send(&g.w, "me@a.test", "good@b.test");
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), 1, "a copy");
    copies_database_set(g.database, "pc:{relay1}:owner", "relay1:i", "relay2");
    world_send(&g.w, "me@a.test", "good@b.test");
    keeping_pass(&g, 1000);
    world_unstall(&g.w); /* was under way */
    keeping_pass(&g, 1000);
    must(world_is_empty(&g.w));
    copies_database_set(g.database, "pc:{relay1}:owner", "relay1:i", WHO);
    keeping_open(&g);
    keeping_pass(&g, 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "it leaves with its message");
}

static void
own_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    (void)context;
    must(refusal == NULL);
    envelope_free(&e);
}

static void
keeping_send_own(struct keeping *g, size_t size)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char *content = memory_new(size);
    memset(content, 'x', size);
    must(envelope_add(e, TEXT("good@b.test"), 0, TEXT("")));
    struct queue_draft *draft = queue_begin_own(manager_queue(g->w.manager), 0, &refusal);
    must(draft != NULL && queue_write(draft, text_of(content, size)));
    queue_name(draft, e);
    queue_commit(&draft, &e, own_stored, NULL);
    free(content);
}

/* Our own mail larger than a batch, in a server that is full: ends behind it make space. */
TEST(full_for_large)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    keeping_up(&g);
    world_send(&g.w, "me@a.test", "good@b.test");
    struct id ends = g.w.id;
    keeping_pass(&g, 1000);
    sim_engine_refuse(g.engine, copies_script_store, "the server is full");
    keeping_send_own(&g, 700 * 1024);
    must(queue_remove(manager_queue(g.w.manager), ends));
    keeping_pass(&g, 5000);
    is_number((int64_t)copies_keeper_state(g.keeper).removed, 1, "an end is heard");
    is_number((int64_t)copies_database_count(g.database), 1, "and the copy is there");
}

/* The names of messages cannot be read for a while. */
TEST(walk_fails)
{
    FIXTURE(keeping, g, keeping_begin, keeping_end);
    char from[100], to[100];
    keeping_up(&g);
    world_send(&g.w, "me@a.test", "good@b.test");
    keeping_pass(&g, 1000);
    snprintf(from, sizeof(from), "%s/todo", g.w.folder);
    snprintf(to, sizeof(to), "%s/away", g.w.folder);
    must(rename(from, to) == 0);
    copies_database_flush(g.database);
    keeping_open(&g);
    keeping_pass(&g, 20 * 1000);
    must(rename(to, from) == 0);
    keeping_pass(&g, 20 * 1000);
    is_number((int64_t)copies_database_count(g.database), 1, "all mail is copied again");
}
