/* link: t/sim/loop.c t/sim/copies_database.c t/sim/copies_engine.c t/sim/copies_keeper.c */
/* queue/copies/adoption.c, adoption_take.c and comparison.c: hosts that are lost, cut off, and
 * back, by the table of cases in doc/cluster.md. */
#include "queue/copies/adoption.h"

#include "queue/copies/adoption_scripts.h"
#include "queue/copies/copies_keys.h"
#include "queue/queue_operator.h"
#include "queue/queue_walk.h"
#include "t/support/adoption_kit.h"
#include "t/support/must.h"

TEST(first)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    a->w.stalled = false;
    world_send(&a->w, "me@a.test", "good@b.test");
    group_pass(&g, 3000);
    world_saw(&a->w, "", "no delivery while it is not known whose the mail is");
    sim_engine_up(a->engine);
    group_pass(&g, 2000);
    is_number(a->opened, 1, "the engine says that it is ours");
    is_number((int64_t)a->number, 0, "without any batch");
    world_saw(&a->w, "me@a.test>good@b.test ", "delivered");
    ok(adoption_state(a->adoption).is_ours && !adoption_state(a->adoption).is_comparing);
}

TEST(no_engine)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    a->w.stalled = false;
    world_send(&a->w, "me@a.test", "good@b.test");
    group_pass(&g, ADOPTION_PATIENCE_MS + 1000);
    world_saw(&a->w, "me@a.test>good@b.test ", "mail that is here goes on");
    is_number(a->opened, 0, "but none comes");
}

TEST(ordered)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    char why[ADOPTION_WHY_MAX], key[COPIES_KEY_MAX + 1], there[64];
    group_up(&g, 3);
    struct id id = site_send(a, 1);
    group_pass(&g, 2000);
    ok(!adoption_order(b->adoption, TEXT("relay1"), why));
    ok_named(strstr(why, "relay1 lives") != NULL, "not while it lives");
    sim_engine_down(a->engine, false);
    group_pass(&g, 60 * 1000);
    is_number((int64_t)adoption_state(b->adoption).adopted, 0, "never by itself");
    ok(!adoption_order(b->adoption, TEXT("relay9"), why) && strstr(why, "no copies") != NULL);
    ok(adoption_order(b->adoption, TEXT("RELAY1"), why));
    group_pass(&g, 5000);
    is_number((int64_t)adoption_state(b->adoption).adopted, 1, "adopted");
    is_number((int64_t)copies_database_count(g.database), 0, "its copy is gone");
    site_go(b);
    world_saw(&b->w, "me@a.test>good@b.test ", "and delivered");
    ok(world_logged(&b->w, "status=adopted") && world_logged(&b->w, ID_TEXT(id)));
    key_of(a, ":adopted", key);
    must(text_copy(there, sizeof(there),
                   copies_database_field(g.database, key, ID_TEXT(id))));
    ok_named(strncmp(there, "relay2/", 7) == 0, "it is known where it went");
    /* The lost host was cut off alone. */
    world_saw(&a->w, "", "not delivered there");
    sim_engine_up(a->engine);
    group_pass(&g, 3000);
    ok(world_is_empty(&a->w));
    ok(world_logged(&a->w, "status=given") && world_logged(&a->w, "to=relay2"));
    is_number((int64_t)adoption_state(a->adoption).given_up, 1, "given up");
    ok_named(a->opened == 2 && a->closed > 0, "then mail is accepted again");
    site_go(a);
    world_saw(&a->w, "", "and not delivered twice");
    site_send(a, 0);
    group_pass(&g, 3000);
    world_saw(&a->w, "me@a.test>good@b.test ", "but what is new");
}

/* After silence, and not while the group hears it. */
TEST(silent)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1], *c = &g.sites[2];
    adoption_reload(b->adoption, 60 * 1000);
    adoption_reload(c->adoption, 60 * 1000);
    group_up(&g, 3);
    for (unsigned i = 1; i <= 20; i++)
        site_send(a, i);
    b->heard = c->heard = "relay1";
    sim_engine_down(a->engine, false);
    group_pass(&g, 90 * 1000);
    is_number((int64_t)copies_database_count(g.database), 20, "it is heard");
    b->heard = c->heard = NULL;
    group_pass(&g, 10 * 1000);
    is_number((int64_t)(adoption_state(b->adoption).adopted +
                        adoption_state(c->adoption).adopted),
              20, "adopted by one of two");
    ok_named(adoption_state(b->adoption).adopted == 0 ||
                 adoption_state(c->adoption).adopted == 0,
             "alone");
    site_go(b);
    site_go(c);
    is_number(b->w.attempts + c->w.attempts, 20, "each is delivered once");
}

/* All that it had was adopted, also if that was nothing: the server has lost no copies. */
static void
adopted_all(unsigned count)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    adoption_reload(b->adoption, 10 * 1000);
    group_up(&g, 2);
    for (unsigned i = 1; i <= count; i++)
        site_send(a, i);
    site_copy_bytes(a, a->who, "9", (struct id){.hash = 9}, NULL);
    a->durable = 9;
    sim_engine_down(a->engine, false);
    group_pass(&g, 20 * 1000);
    ok(world_logged(&b->w, "all mail of relay1 is adopted"));
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    is_number(a->opened, 2, "it is back");
    is_number((int64_t)a->losses, 0, "nothing was lost");
}

TEST(adopted_all)
{
    adopted_all(0);
    adopted_all(3);
}

/* It has heard that its mail was adopted, and the engine goes before it has given it up. */
TEST(adopted_and_away)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    adoption_reload(b->adoption, 10 * 1000);
    group_up(&g, 2);
    site_send(a, 1);
    sim_engine_down(a->engine, false);
    group_pass(&g, 20 * 1000);
    site_restart(a, true);
    sim_engine_up(a->engine);
    for (unsigned i = 0; i < 100 && strstr(a->why, "ends here") == NULL; i++) {
        sim_loop_advance(a->w.loop, 10);
        must(a->opened == 0);
        sim_engine_carry(a->engine);
    }
    sim_engine_down(a->engine, false);
    site_go(a);
    group_pass(&g, 2 * ADOPTION_PATIENCE_MS);
    is_number(a->w.attempts, 0, "it is not delivered here");
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    ok_named(world_is_empty(&a->w) && a->opened == 1, "but ends");
}

/* Back from where nothing could be delivered, the first that is says so, and the rest waits for
 * the engine. */
TEST(in_doubt)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    adoption_reload(a->adoption, 10 * 1000);
    group_up(&g, 1);
    sim_engine_down(a->engine, false);
    a->w.stalled = false;
    for (unsigned i = 0; i < 12; i++) {
        world_send(&a->w, "me@a.test", "good@b.test");
        group_pass(&g, 1000);
    }
    is_number(a->w.attempts, 12, "mail goes on while it flows");
    a->w.stalled = true;
    for (unsigned i = 0; i < 30; i++)
        world_send(&a->w, "me@a.test", "good@b.test");
    group_pass(&g, 10 * 1000);
    a->w.stalled = false;
    world_unstall(&a->w);
    group_pass(&g, 1000);
    ok_named(a->w.attempts > 12 && a->w.attempts < 42, "but not after a gap");
    group_pass(&g, ADOPTION_DOUBT_MS);
    is_number(a->w.attempts, 42, "for long");
}

TEST(engine_was_away)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    adoption_reload(b->adoption, 10 * 1000);
    group_up(&g, 2);
    site_send(a, 1);
    sim_engine_down(a->engine, false);
    sim_engine_down(b->engine, false);
    group_pass(&g, 60 * 1000);
    sim_engine_up(b->engine);
    group_pass(&g, 5 * 1000);
    is_number((int64_t)copies_database_count(g.database), 1, "nobody could say anything");
    group_pass(&g, 8 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "then it was silent");
    is_number(world_log_count(&b->w, "adopting the mail of relay1"), 1, "said once");
}

/* Its disk is gone, its name is back. */
TEST(lost_disk)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 1);
    for (unsigned i = 1; i <= 5; i++)
        site_send(a, i);
    site_stop(a, false);
    manager_world_end(&a->w);
    manager_world_begin(&a->w, ADOPTION_ROUTE);
    for (unsigned n = 0; n < 50; n++)
        (void)loop_random(a->w.loop);
    snprintf(a->identity, sizeof(a->identity), "%032u", 77);
    site_start(a);
    sim_engine_up(a->engine);
    sim_engine_up(b->engine);
    group_pass(&g, ADOPTION_SILENT_MS - 1000);
    is_number((int64_t)copies_database_count(g.database), 5, "perhaps it lives");
    group_pass(&g, 4000);
    is_number((int64_t)adoption_state(a->adoption).adopted, 5, "by the host itself");
    is_number((int64_t)adoption_state(b->adoption).adopted, 0, "and nobody else");
    site_go(a);
    is_number(a->w.attempts, 5, "delivered");
}

TEST(lost_disk_elsewhere)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 5; i++)
        site_send(a, i);
    site_stop(a, false);
    snprintf(a->identity, sizeof(a->identity), "%032u", 77);
    world_restart(&a->w);
    site_start(a);
    a->host.closed = "it leaves"; /* it takes nothing */
    sim_engine_up(a->engine);
    group_pass(&g, 3 * ADOPTION_SILENT_MS);
    is_number((int64_t)adoption_state(b->adoption).adopted, 5, "a sibling does");
}

/* Two hosts that live have one name: a sentence, and nothing is taken. */
TEST(namesakes)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    snprintf(b->settings.host, sizeof(b->settings.host), "relay1");
    site_restart(b, true);
    group_up(&g, 2);
    site_send(a, 1);
    site_send(b, 1);
    group_pass(&g, 30 * 1000);
    is_number((int64_t)copies_database_count(g.database), 2, "both keep their copies");
    ok(adoption_state(a->adoption).has_namesake && adoption_state(b->adoption).has_namesake);
    is_number(world_log_count(&b->w, "needs its own cluster_host"), 1, "said once");
}

/* The same spool twice: the second one may do nothing. */
TEST(clone)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    snprintf(b->settings.host, sizeof(b->settings.host), "relay1");
    memcpy(b->identity, a->identity, sizeof(a->identity));
    b->run = 300;
    site_restart(b, true);
    group_up(&g, 1);
    site_send(a, 1);
    sim_engine_up(b->engine);
    b->w.stalled = false;
    world_send(&b->w, "me@a.test", "good@b.test");
    group_pass(&g, 30 * 1000);
    is_number(b->opened, 0, "it is refused");
    ok(strstr(b->why, "clone of its spool") != NULL);
    world_saw(&b->w, "", "and delivers nothing");
    ok(adoption_state(a->adoption).is_ours && adoption_state(b->adoption).has_namesake);
}

/* A kill: the run before was alive a moment ago. */
TEST(restart)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    site_send(a, 1);
    site_restart(a, false);
    sim_engine_up(a->engine);
    group_pass(&g, ADOPTION_SILENT_MS - 1000);
    is_number(a->opened, 0, "it may live");
    group_pass(&g, 4000);
    is_number(a->opened, 1, "it is dead");
    site_restart(a, true);
    sim_engine_up(a->engine);
    group_pass(&g, 1000);
    is_number(a->opened, 1, "immediately after a goodbye");
    site_go(a);
    is_number(a->w.attempts, 1, "once");
}

/* The disk stays, the host gets another name, and later its old one. */
TEST(another_name)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    site_send(a, 1);
    site_send(a, 2);
    site_stop(a, true);
    snprintf(a->settings.host, sizeof(a->settings.host), "relay9");
    world_restart(&a->w);
    site_start(a);
    sim_engine_up(a->engine);
    site_go(a);
    group_pass(&g, 10000);
    is_number(a->w.attempts, 2, "each is delivered once");
    is_number((int64_t)adoption_state(a->adoption).adopted, 0, "none is taken again");
    a->w.stalled = true;
    site_send(a, 3);
    site_stop(a, true);
    snprintf(a->settings.host, sizeof(a->settings.host), "relay1");
    world_restart(&a->w);
    site_start(a);
    sim_engine_up(a->engine);
    group_pass(&g, 10000);
    site_stop(a, true);
    snprintf(a->settings.host, sizeof(a->settings.host), "relay9");
    world_restart(&a->w);
    site_start(a);
    sim_engine_up(a->engine);
    group_pass(&g, 3000);
    is_number((int64_t)adoption_state(a->adoption).given_up, 0, "it is not given up to itself");
    site_go(a);
    is_number(a->w.attempts, 3, "once");
}

/* A copy of before leaves behind that under the name of now. */
TEST(another_name_behind)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    site_send(a, 1);
    site_stop(a, true);
    snprintf(a->settings.host, sizeof(a->settings.host), "relay9");
    world_restart(&a->w);
    site_start(a);
    a->is_behind = true;
    sim_engine_up(a->engine);
    group_pass(&g, 90 * 1000);
    is_number((int64_t)copies_database_count(g.database), 1, "it has no other copy yet");
    a->is_behind = false;
    group_pass(&g, 5000);
    is_number((int64_t)copies_database_count(g.database), 0, "now it has");
}

/* The disk stays, and lock/identity is lost. */
TEST(another_identity)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    site_send(a, 1);
    site_send(a, 2);
    site_stop(a, true);
    snprintf(a->identity, sizeof(a->identity), "%032u", 9);
    world_restart(&a->w);
    site_start(a);
    sim_engine_up(a->engine);
    site_go(a);
    group_pass(&g, 10000);
    is_number(a->w.attempts, 2, "each is delivered once");
    is_number((int64_t)adoption_state(a->adoption).adopted, 0, "none is taken again");
}

/* Another daemon of our disk is away for longer. */
TEST(slices)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    snprintf(a->settings.host, sizeof(a->settings.host), "relay1.0");
    snprintf(b->settings.host, sizeof(b->settings.host), "relay1.1");
    a->settings.slices = b->settings.slices = 2;
    memcpy(b->identity, a->identity, sizeof(b->identity));
    site_stop(a, true);
    site_stop(b, true);
    site_start(a);
    site_start(b);
    group_up(&g, 2);
    site_send(b, 1);
    sim_engine_down(b->engine, false);
    group_pass(&g, 10000);
    is_number((int64_t)copies_database_count(g.database), 1, "its copy stays");
    is_number((int64_t)adoption_state(a->adoption).adopted, 0, "and is not adopted");
    is_number(world_log_count(&a->w, "adopting the mail"), 0, "nor its owner replaced");
    site_restart(b, false);
    sim_engine_up(b->engine);
    group_pass(&g, 10000);
    is_number((int64_t)adoption_state(b->adoption).given_up, 0, "nothing is given up");
    site_go(b);
    is_number(b->w.attempts, 1, "delivered once");
}

/* Without a group, too, the copies of a number of slices before are found. */
TEST(fewer_slices)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    site_stop(a, true);
    a->settings.group[0] = '\0';
    snprintf(a->settings.host, sizeof(a->settings.host), "relay1.0");
    a->settings.slices = 2;
    site_start(a);
    group_up(&g, 1);
    site_send(a, 1);
    site_stop(a, true);
    is_number((int64_t)copies_database_count(g.database), 1, "a copy of a slice");
    snprintf(a->settings.host, sizeof(a->settings.host), "relay1");
    a->settings.slices = 1;
    a->durable = 0;
    world_restart(&a->w);
    site_start(a);
    sim_engine_up(a->engine);
    group_pass(&g, 10000);
    is_number((int64_t)copies_database_count(g.database), 0, "leaves Redis");
    site_go(a);
    is_number(a->w.attempts, 1, "delivered once");
}

/* More slices: the name is that of a smaller part, and another daemon has delivered the mail of
 * the rest. */
TEST(more_slices)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    unsigned own = 0, others = 0;
    site_stop(a, true);
    snprintf(a->settings.host, sizeof(a->settings.host), "relay1.0");
    a->settings.slices = 2;
    site_start(a);
    group_up(&g, 1);
    for (unsigned i = 1; i <= 12; i++) {
        struct id id = site_send(a, i);
        if (id_slice(id, 2) == 0)
            own++;
        else if (others++ > 0) /* one of them waits */
            must(queue_remove(manager_queue(a->w.manager), id));
    }
    world_turns(&a->w);
    must(own > 0 && own < 12);
    site_stop(a, true);
    a->w.settings.queue.slices = 2;
    world_restart(&a->w);
    a->removed.count = 0;
    site_start(a);
    sim_engine_up(a->engine);
    group_pass(&g, 10000);
    is_number((int64_t)adoption_state(a->adoption).recalled, 0, "none is taken back");
    is_number((int64_t)a->removed.count, 12 - own, "the copies of the rest go");
    site_go(a);
    is_number(a->w.attempts, own, "delivered once");
}

TEST(another_group)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    a->durable = 5;
    group_pass(&g, 2000);
    site_restart(a, true);
    group_up(&g, 1);
    is_number(world_log_count(&a->w, "the group of the copies was"), 0, "the same group");
    site_stop(a, true);
    snprintf(a->settings.group, sizeof(a->settings.group), "post");
    world_restart(&a->w);
    site_start(a);
    group_up(&g, 1);
    is_number(world_log_count(&a->w, "the group of the copies was mail: those that are left there, of relay1:000"), 1,
              "another one is said");
    is_number((int64_t)a->number, 5, "and the number goes on");
}

/* The adopter ends with a message stored and its copy there. */
TEST(adopter_restarts)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 2);
    group_adopt_some(&g, 20);
    ok(copies_database_count(g.database) == 20);
    site_restart(b, false);
    sim_engine_up(b->engine);
    group_pass(&g, 3 * ADOPTION_SILENT_MS);
    is_number((int64_t)copies_database_count(g.database), 0, "it goes on");
    site_go(b);
    is_number(b->w.attempts, 30, "each once");
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    ok(world_is_empty(&a->w));
}

/* The adopter dies for good, and is succeeded. */
TEST(succeeded)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *b = &g.sites[1], *c = &g.sites[2];
    adoption_reload(c->adoption, 20 * 1000);
    group_up(&g, 3);
    group_adopt_some(&g, 20);
    /* It is cut off: some are stored, and nobody has said whose they are. */
    sim_engine_down(b->engine, false);
    group_pass(&g, 40 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "the next one takes the rest");
    sim_engine_up(b->engine);
    group_pass(&g, 10 * 1000);
    site_go(b);
    site_go(c);
    is_number(b->w.attempts + c->w.attempts, 30, "each once");
    ok(b->w.attempts >= 10 && c->w.attempts > 0);
}

static bool
take_note(void *context, struct id id)
{
    *(struct id *)context = id;
    return true;
}

/* Its adopter had stored it, with a copy, and came no further: both are copies of one message. */
static void
adopted_halfway(struct group *g, const char *first, const char *second)
{
    struct site *a = &g->sites[0], *b = &g->sites[1], *c = &g->sites[2];
    struct id half = {0};
    char why[ADOPTION_WHY_MAX];
    group_up(g, 3);
    site_send(a, 1);
    group_order(g);
    for (unsigned i = 0; i < 100 && half.time_ms == 0; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
        struct queue_walk *walk = queue_walk_begin(manager_queue(b->w.manager), take_note, &half);
        (void)!queue_walk_read(walk, 100);
        queue_walk_end(&walk);
    }
    site_copy(b, half, 1);
    sim_engine_down(b->engine, false);
    is_number((int64_t)copies_database_count(g->database), 2, "copies");
    group_pass(g, 10 * 1000);
    must(adoption_order(c->adoption, text_from(first), why));
    group_pass(g, 5000);
    (void)!adoption_order(c->adoption, text_from(second), why); /* it may have both */
    group_pass(g, 5000);
    is_number((int64_t)copies_database_count(g->database), 0, "both are taken");
    site_go(c);
    is_number(c->w.attempts, 1, "and delivered once");
}

TEST(halfway_first)
{
    FIXTURE(group, g, group_begin, group_end);
    adopted_halfway(&g, "relay1", "relay2");
}

TEST(halfway_second)
{
    FIXTURE(group, g, group_begin, group_end);
    adopted_halfway(&g, "relay2", "relay1");
}

/* The adopter is lost, and nobody thinks of the host whose mail it had begun to take. */
TEST(adopter_ordered)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *b = &g.sites[1], *c = &g.sites[2];
    char why[ADOPTION_WHY_MAX];
    group_up(&g, 3);
    group_adopt_some(&g, 20);
    group_pass(&g, 0);
    sim_engine_down(b->engine, false);
    group_pass(&g, 1000);
    ok(!adoption_order(c->adoption, TEXT("relay2"), why));
    ok_named(strstr(why, "relay2 lives") != NULL, "it lives");
    group_pass(&g, 10 * 1000);
    is_number((int64_t)copies_database_count(g.database), 20, "20 are left");
    must(adoption_order(c->adoption, TEXT("relay2"), why));
    group_pass(&g, 10 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "and taken");
}

/* The answer is lost, and the server has done it. */
TEST(lost_answers)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 20; i++)
        site_send(a, i);
    group_order(&g);
    for (unsigned i = 0; i < 200; i++) {
        for (unsigned n = 0; n < 5 + i % 7; n++)
            sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 20);
        if (i % 5 == 4) {
            sim_engine_down(b->engine, i % 2 == 0);
            sim_engine_up(b->engine);
        }
    }
    group_pass(&g, 5000);
    is_number((int64_t)copies_database_count(g.database), 0, "all are taken");
    site_go(b);
    is_number(b->w.attempts, 20, "each once");
}

/* A server that says what is no answer decides nothing. */
static void
odd_answer(const struct adoption_script *script, const char *answer)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    adoption_reload(b->adoption, 10 * 1000);
    group_up(&g, 2);
    for (unsigned i = 1; i <= 5; i++)
        site_send(a, i);
    sim_engine_down(a->engine, false);
    sim_engine_lie(b->engine, script->text, answer);
    for (unsigned i = 0; i < 2; i++) { /* it ends a connection that says such things */
        group_pass(&g, 20 * 1000);
        sim_engine_up(b->engine);
    }
    is_number((int64_t)adoption_state(b->adoption).adopted, 5, answer);
    is_number((int64_t)copies_database_count(g.database), 0, "none is left");
    if (strcmp(answer, "0") != 0) /* a page that hides all */
        sim_engine_lie(a->engine, script->text, answer);
    for (unsigned i = 0; i < 3; i++) {
        sim_engine_up(a->engine);
        group_pass(&g, 3000);
    }
    site_go(a);
    site_go(b);
    is_number(a->w.attempts, 0, "none is its own any more");
    is_number(b->w.attempts, 5, "each once");
    ok(adoption_state(a->adoption).is_ours && world_is_empty(&a->w));
}

TEST(odd_answers)
{
    static const char *const odd[] = {"", "7", "1 2 3 4 x"};
    for (unsigned i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        odd_answer(&adoption_script_claim, odd[i]);
        odd_answer(&adoption_script_taken, odd[i]);
        odd_answer(&adoption_script_done, odd[i]);
    }
    odd_answer(&adoption_script_page, "0");
    odd_answer(&adoption_script_page, "");
    odd_answer(&adoption_script_page, "x");
}

/* Back while the other one still adopts, which has space, or has not, is slow, or cut off with
 * answers under way: each message has one owner, and nothing waits. */
enum early { EARLY_GOOD, EARLY_FULL, EARLY_SLOW, EARLY_CUT };

static void
back_early(enum early early)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    char number[12];
    struct id ids[30];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 30; i++)
        ids[i - 1] = site_send(a, i);
    site_send(a, 0); /* without a copy: nobody adopts it */
    group_order(&g);
    for (unsigned i = 0; i < 4000 && copies_database_count(g.database) > 25; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
    if (early == EARLY_FULL)
        b->host.closed = "no space";
    a->w.stalled = false;
    sim_engine_up(a->engine);
    if (early == EARLY_CUT)
        sim_engine_down(b->engine, true);
    for (unsigned i = 0; i < 40 && early >= EARLY_SLOW; i++) {
        while (sim_engine_carry(a->engine))
            ;
        sim_loop_advance(a->w.loop, 50);
        if (i == 20)
            world_unstall(&a->w);
    }
    for (unsigned i = 0; i < 30 && early >= EARLY_SLOW; i++) { /* all have ended */
        snprintf(number, sizeof(number), "%u", 100 + i);
        site_copy_bytes(a, a->who, number, ids[i], NULL);
    }
    if (early == EARLY_CUT)
        sim_engine_up(b->engine);
    group_pass(&g, 500);
    world_unstall(&a->w);
    group_pass(&g, 10 * 1000);
    is_number(a->opened, 2, "it is not kept waiting");
    ok(world_logged(&a->w, "relay2 adopts the mail of this host"));
    ok(early == EARLY_CUT || world_logged(&b->w, "the rest of the mail of relay1 is another host's"));
    b->host.closed = NULL;
    site_go(b);
    ok_named(b->w.attempts >= 5 && b->w.attempts < 30, "what was adopted is delivered there");
    is_number(a->w.attempts + b->w.attempts, 31, "each once");
    ok(world_is_empty(&a->w) && world_is_empty(&b->w));
    sim_engine_down(a->engine, false);
    group_pass(&g, 20 * 1000);
    is_number(world_log_count(&b->w, "adopting the mail of relay1"), 1, "the order is over");
}

TEST(back_early)
{
    back_early(EARLY_GOOD);
    back_early(EARLY_FULL);
    back_early(EARLY_SLOW);
    back_early(EARLY_CUT);
}

/* A message that an adopter has stored and not got is not known to it as taken, also after a
 * restart: it is adopted another time. */
TEST(adopted_again)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 2);
    group_adopt_some(&g, 25);
    sim_engine_up(a->engine);
    for (unsigned i = 0; i < 10; i++) {
        while (sim_engine_carry(a->engine))
            ;
        sim_loop_advance(a->w.loop, 50);
    }
    group_pass(&g, 3000);
    size_t left = copies_database_count(g.database);
    must(left > 0 && left < 30);
    site_restart(b, true);
    sim_engine_up(b->engine);
    group_pass(&g, 3000);
    group_order(&g);
    group_pass(&g, 10 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "all are adopted");
    site_go(b);
    is_number(b->w.attempts, 30, "and delivered, each once");
}

/* A server that refuses all writes for long, as one whose disk is full, is asked once a second. */
static void
refused_for_long(bool is_giving_up)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1], *s = is_giving_up ? a : b;
    group_up(&g, 2);
    for (unsigned i = 1; i <= 3; i++)
        site_send(a, i);
    group_order(&g);
    if (is_giving_up) {
        group_pass(&g, 5000);
        sim_engine_up(a->engine);
        for (unsigned i = 0; i < 100 && strstr(a->why, "ends here") == NULL; i++) {
            sim_loop_advance(a->w.loop, 10);
            sim_engine_carry(a->engine);
        }
    }
    sim_engine_refuse(s->engine, is_giving_up ? adoption_script_forget.text : adoption_script_claim.text,
                      "the server cannot write to its disk");
    unsigned before = sim_engine_calls(s->engine);
    group_pass(&g, 10 * 1000);
    unsigned calls = sim_engine_calls(s->engine) - before;
    ok_named(calls > 10 && calls < 100, "it is not asked all the time");
    ok(world_log_count(&a->w, "ended here since startup") <= 11);
    sim_engine_refuse(s->engine, NULL, NULL);
    group_pass(&g, 5000);
    ok_named(is_giving_up ? adoption_state(a->adoption).is_ours : adoption_state(b->adoption).adopted == 3,
             "and goes on when it can");
}

TEST(refused_for_long)
{
    refused_for_long(false);
    refused_for_long(true);
}

/* The page of a walk that has ended meanwhile is none of the next walk. */
TEST(page_of_before)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0], *b = &g.sites[1];
    group_up(&g, 2);
    struct id ended = {.time_ms = 1750000000000, .hash = 99};
    site_copy_bytes(b, b->who, "2", ended, "2\n");
    site_send(a, 1);
    group_order(&g);
    for (unsigned i = 0; i < 10000 && adoption_state(b->adoption).host[0] == '\0'; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
    b->losses++; /* all is compared */
    sim_loop_advance(b->w.loop, 2 * ADOPTION_BEAT_MS); /* the page is slow */
    group_pass(&g, 5000);
    ok_named(b->removed.count == 1 && id_compare(b->removed.all[0], ended) == 0,
             "what is there, and not here, is found");
    is_number((int64_t)adoption_state(b->adoption).adopted, 1, "and the other one adopted");
}

/* A server that comes and goes at startup is waited for, too: another host may have our mail. */
TEST(comes_and_goes)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    a->w.stalled = false;
    world_send(&a->w, "me@a.test", "good@b.test");
    sim_engine_up(a->engine);
    sim_engine_down(a->engine, false);
    group_pass(&g, ADOPTION_PATIENCE_MS - 1000);
    world_saw(&a->w, "", "no delivery meanwhile");
    group_pass(&g, 2000);
    world_saw(&a->w, "me@a.test>good@b.test ", "but mail goes on");
}

/* An earlier run may live; then the server is away for long. */
TEST(away_in_doubt)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    site_send(a, 1);
    site_restart(a, false);
    sim_engine_up(a->engine);
    group_pass(&g, 1000);
    ok(strstr(a->why, "another run of this host") != NULL);
    sim_engine_down(a->engine, false);
    site_go(a);
    group_pass(&g, 2 * ADOPTION_PATIENCE_MS);
    is_number(a->w.attempts, 1, "mail that is here goes on");
}

/* A host that adopts, and lives, but has no space for long, leaves the rest to others. */
static void
full_adopter(bool by_order)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *b = &g.sites[1], *c = &g.sites[2];
    char why[ADOPTION_WHY_MAX];
    if (!by_order)
        for (unsigned i = 0; i < SITES; i++)
            adoption_reload(g.sites[i].adoption, 60 * 1000);
    group_up(&g, 3);
    group_adopt_some(&g, 20);
    b->host.closed = "no space";
    group_pass(&g, 30 * 1000);
    size_t left = copies_database_count(g.database);
    ok_named(left > 0 && !adoption_order(c->adoption, TEXT("relay1"), why), "for a while it may have space again");
    group_pass(&g, 60 * 1000);
    if (by_order)
        ok_named(adoption_order(c->adoption, TEXT("relay1"), why), "it does not keep them");
    group_pass(&g, 90 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "another one takes them");
    site_go(b);
    site_go(c);
    is_number(b->w.attempts, 30 - (int64_t)left, "some here");
    is_number(c->w.attempts, (int64_t)left, "the rest there");
}

TEST(full_adopter)
{
    full_adopter(true);
    full_adopter(false);
}

/* Nobody else is there: it goes on when it has space. */
TEST(full_adopter_alone)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *b = &g.sites[1];
    group_up(&g, 2);
    group_adopt_some(&g, 20);
    b->host.closed = "no space";
    group_pass(&g, 300 * 1000);
    ok_named(copies_database_count(g.database) > 0, "they wait");
    ok(world_log_count(&b->w, "adopting the mail of relay1") <= 4);
    b->host.closed = NULL;
    group_pass(&g, 180 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "and are taken");
}
