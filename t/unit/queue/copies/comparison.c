/* link: t/sim/loop.c t/sim/copies_database.c t/sim/copies_engine.c t/sim/copies_keeper.c */
/* queue/copies/comparison.c: a host that is back compares its disk with the engine, by the table of
 * cases in doc/cluster.md. */
#include "queue/copies/adoption.h"

#include "queue/copies/copies_keys.h"
#include "queue/queue_internal.h"
#include "queue/queue_operator.h"
#include "t/support/adoption_kit.h"
#include "t/support/injected.h"
#include "t/support/must.h"

/* The table of a restart with the disk: here or not, there or not, the number of the copy, and
 * that in lock/copies. */
TEST(comparison)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    struct id both = site_send(a, 3), ended = site_send(a, 4), forgotten = site_send(a, 6);
    site_send(a, 0); /* here alone: for the keeper */
    a->durable = 5;
    group_pass(&g, 3000); /* is noted */
    must(queue_remove(manager_queue(a->w.manager), ended) &&
         queue_remove(manager_queue(a->w.manager), forgotten));
    world_turns(&a->w);
    site_restart(a, true);
    a->removed.count = 0;
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    is_number((int64_t)a->number, 6, "goes on from there");
    ok_named(a->removed.count == 1 && id_compare(a->removed.all[0], ended) == 0,
             "there and not here, up to the number: it has ended");
    is_number((int64_t)adoption_state(a->adoption).recalled, 1, "behind it: taken back");
    ok(world_logged(&a->w, ID_TEXT(forgotten)));
    is_number((int64_t)copies_database_count(g.database), 2, "whose copy is another one");
    site_go(a);
    is_number(a->w.attempts, 3, "each is delivered once");
    (void)both;
}

/* Mail that is to be taken back has no space: the rest is delivered meanwhile. */
TEST(full_disk)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    struct id forgotten = site_send(a, 6);
    must(queue_remove(manager_queue(a->w.manager), forgotten));
    a->ends = site_send(a, 7);
    site_restart(a, true);
    a->host.closed = "no space";
    sim_engine_up(a->engine);
    site_go(a);
    group_pass(&g, 20 * 1000);
    is_number(a->w.attempts, 1, "mail that is here goes on");
    is_number((int64_t)adoption_state(a->adoption).recalled, 0, "the other waits");
    ok(adoption_state(a->adoption).is_comparing);
    a->host.closed = NULL;
    group_pass(&g, 5000);
    is_number((int64_t)adoption_state(a->adoption).recalled, 1, "for space");
    is_number(a->w.attempts, 2, "each is delivered once");
}

/* lock/copies is gone, or cut off: everything may be forgotten. */
TEST(no_number)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    struct id id = site_send(a, 12);
    a->durable = 12;
    group_pass(&g, 3000);
    must(queue_remove(manager_queue(a->w.manager), id));
    world_turns(&a->w);
    site_stop(a, true);
    must(manager_hint_write(a->w.manager, "copies", TEXT("12")) == 0);
    world_restart(&a->w);
    a->durable = 0;
    site_start(a);
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    is_number((int64_t)adoption_state(a->adoption).recalled, 1, "taken back");
}

static int64_t
syncs_of(const struct site *s)
{
    const struct disk_pace *pace = disk_pace(queue_disk(manager_queue(s->w.manager)));
    int64_t sum = 0;
    for (unsigned i = 0; i <= DISK_PACE_BOUNDS; i++)
        sum += (int64_t)pace->syncs[i];
    return sum;
}

/* An old number does harm when ends are not heard: only then it has to outlive a power cut. */
TEST(durable_number)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    int64_t before = syncs_of(a);
    for (unsigned i = 0; i < 10; i++) {
        a->durable += 7;
        group_pass(&g, ADOPTION_BEAT_MS);
    }
    is_number(syncs_of(a), before, "no sync while the server hears us");
    sim_engine_down(a->engine, false);
    group_pass(&g, 10 * ADOPTION_BEAT_MS);
    is_number(syncs_of(a), before + 1, "one when it does not");
}

/* The server has lost everything, and says nothing of it. */
TEST(emptied)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    site_send(a, 5);
    a->durable = 5;
    group_pass(&g, 2000);
    copies_database_flush(g.database);
    group_pass(&g, 3000);
    is_number(a->opened, 2, "ours once more");
    is_number((int64_t)a->number, 5, "with the number of before");
    ok(adoption_state(a->adoption).is_ours && !adoption_state(a->adoption).is_comparing);
    site_go(a);
    is_number(a->w.attempts, 1, "and delivered");
}

/* While it is adopted: what was taken stays, since nobody else may have it. */
TEST(emptied_while_taking)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    char why[ADOPTION_WHY_MAX];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 8; i++)
        site_send(a, i);
    site_stop(a, false); /* for good */
    group_pass(&g, 0);
    a->engine = sim_engine_new(g.database);
    for (unsigned i = 0; i < 100; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 50);
    }
    must(adoption_order(b->adoption, TEXT("relay1"), why));
    for (unsigned i = 0; i < 4000 && copies_database_count(g.database) > 4; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
    copies_database_flush(g.database);
    site_go(b);
    group_pass(&g, 5000);
    site_go(b);
    ok(b->w.attempts >= 4);
    is_number(world_files(&b->w, "todo") + world_files(&b->w, "info"), 0, "none is left undecided");
    sim_engine_free(&a->engine);
    site_start(a);
}

/* A content that takes more than a turn is read to its end before the next one. */
TEST(large_contents)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 2);
    struct id ids[3];
    for (unsigned i = 0; i < 3; i++) {
        injected_add_large(&a->w, "me@a.test", "later@b.test", 3 << 20);
        ids[i] = a->w.id;
    }
    site_restart(a, true);
    sim_engine_up(a->engine);
    group_pass(&g, 3000);
    site_go(a);
    must(a->w.attempts == 3);
    for (unsigned i = 0; i < 3; i++)
        site_copy(a, ids[i], i + 1);
    group_order(&g);
    group_pass(&g, 5000);
    is_number((int64_t)adoption_state(b->adoption).adopted, 3, "adopted");
    site_restart(a, false);
    sim_engine_up(a->engine);
    group_pass(&g, 10 * 1000);
    is_number((int64_t)adoption_state(a->adoption).given_up, 3, "each is given up");
    ok_named(world_is_empty(&a->w) && !a->is_closed, "and mail is accepted again");
}

/* A copy that cannot be read stays, and is said. */
TEST(unreadable)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    char why[ADOPTION_WHY_MAX], key[COPIES_KEY_MAX + 1];
    group_up(&g, 2);
    site_send(a, 1);
    struct id id = {.time_ms = 1750000000000, .hash = 99};
    key_of(a, "", key);
    site_copy_bytes(a, a->who, "2", id, "2\nPetrel?\n");
    group_order(&g);
    group_pass(&g, 10 * 1000);
    is_number((int64_t)adoption_state(b->adoption).adopted, 1, "the other is adopted");
    is_number((int64_t)adoption_state(b->adoption).unreadable, 1, "it is counted");
    is_number((int64_t)copies_database_count(g.database), 1, "and stays");
    ok_named(strstr(adoption_state(b->adoption).unreadable_at, key) != NULL &&
                 strstr(adoption_state(b->adoption).unreadable_at, ID_TEXT(id)) != NULL,
             "its key is named");
    /* Others are adopted meanwhile. */
    struct site *c = &g.sites[2];
    sim_engine_up(c->engine);
    group_pass(&g, 3000);
    site_send(c, 1);
    sim_engine_down(c->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay3"), why));
    group_pass(&g, 5000);
    is_number((int64_t)adoption_state(b->adoption).adopted, 2, "it keeps nobody waiting");
    group_pass(&g, 120 * 1000);
    is_number(world_log_count(&b->w, "its envelope cannot be read"), 1, "said once");
    site_copy_bytes(a, b->who, "3", id, NULL);
    group_pass(&g, 120 * 1000);
    is_number((int64_t)adoption_state(b->adoption).unreadable, 0, "an operator removes it");
    ok(world_logged(&b->w, "all mail of relay1 is adopted"));
}

/* Our own: it is tried again at the next comparison, and does not end. */
TEST(unreadable_own)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    struct id id = {.time_ms = 1750000000000, .hash = 99}, forgotten = site_send(a, 6);
    must(queue_remove(manager_queue(a->w.manager), forgotten));
    site_copy_bytes(a, a->who, "7", id, "7\nPetrel?\n");
    for (unsigned i = 0; i < 2; i++) {
        site_restart(a, true);
        sim_engine_up(a->engine);
        group_pass(&g, 10 * 1000);
        a->durable = 7;
        group_pass(&g, 3000);
        ok_named(!adoption_state(a->adoption).is_comparing, "the comparison ends");
        is_number((int64_t)adoption_state(a->adoption).recalled, 1 - i, "the other is taken back");
        is_number((int64_t)adoption_state(a->adoption).unreadable, 1, "it is counted");
        is_number(a->removed.count, 0, "and stays");
    }
}

/* The journal was damaged, and the host ends again before what it lost could be taken back. */
TEST(damage_is_remembered)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    struct id lost = site_send(a, 3);
    a->durable = 5;
    group_pass(&g, 3000); /* is noted */
    must(queue_remove(manager_queue(a->w.manager), lost));
    world_turns(&a->w);
    site_stop(a, true);
    a->durable = 0;
    world_restart(&a->w);
    manager_queue(a->w.manager)->journaled.damages = 1;
    site_start(a);
    group_pass(&g, 5000); /* the server is away */
    site_restart(a, true);
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    is_number(a->removed.count, 0, "it has not ended");
    is_number((int64_t)adoption_state(a->adoption).recalled, 1, "it is taken back");
}
