/* link: t/sim/loop.c t/sim/copies_database.c t/sim/copies_engine.c */
/* queue/copies/adoption.c, adoption_take.c and comparison.c: hosts that are lost, cut off, and
 * back, by the table of cases in doc/cluster.md. */
#include "queue/copies/adoption.h"

#include "base/crc.h"
#include "queue/copies/adoption_scripts.h"
#include "queue/copies/copies_keys.h"
#include "queue/copies/copies_scripts.h"
#include "queue/queue_operator.h"
#include "queue/queue_walk.h"
#include "sched/sched.h"
#include "t/sim/copies_engine.h"
#include "t/support/give_kit.h"
#include "t/support/manager_world.h"
#include "t/support/must.h"

#define ROUTE "* smtp://smtp.b.test"

enum { SITES = 3, IDS_MAX = 64 };

struct ids {
    struct id all[IDS_MAX];
    size_t count;
};

/* A host. */
struct site {
    struct group *g;
    struct world w;
    struct kit_host host;
    struct copies_settings settings;
    struct copies_engine *engine;
    struct adoption *adoption;
    char identity[40], who[ADOPTION_WHO_MAX + 1];
    const char *heard; /* a host that the group hears */
    uint64_t run;
    uint64_t durable, losses; /* of the keeper */
    unsigned opened, closed;  /* it was */
    bool is_closed;
    uint64_t number;          /* with */
    char why[ADOPTION_WHY_MAX];
    struct ids fresh, removed;
    struct id ends; /* the keeper knows that it does */
};

struct group {
    struct copies_database *database;
    struct site sites[SITES];
};

static void
keeper_open(void *context, uint64_t number, uint64_t least)
{
    struct site *s = context;
    s->opened++;
    s->losses += number < s->durable && !s->is_closed;
    s->is_closed = false;
    s->number = number > least ? number : least;
    s->why[0] = '\0';
    if (s->durable < number)
        s->durable = number;
}

static void
keeper_close(void *context, const char *why)
{
    struct site *s = context;
    s->closed++;
    s->is_closed = true;
    snprintf(s->why, sizeof(s->why), "%s", why);
}

static uint64_t
keeper_durable(void *context)
{
    return ((struct site *)context)->durable;
}

static void
ids_add(struct ids *ids, struct id id)
{
    must(ids->count < IDS_MAX);
    ids->all[ids->count++] = id;
}

static uint64_t
keeper_losses(void *context)
{
    return ((struct site *)context)->losses;
}

static bool
keeper_is_ending(void *context, struct id id)
{
    return id_compare(((struct site *)context)->ends, id) == 0;
}

static void
keeper_refresh(void *context, struct id id)
{
    ids_add(&((struct site *)context)->fresh, id);
}

static void
keeper_remove(void *context, struct id id)
{
    ids_add(&((struct site *)context)->removed, id);
}

static bool
is_heard(void *context, const char *host)
{
    const struct site *s = context;
    return s->heard != NULL && strcmp(s->heard, host) == 0;
}

static const char *
site_closed(void *context)
{
    return ((struct site *)context)->host.closed;
}

static void
site_start(struct site *s)
{
    kit_host_start(&s->host, s->w.loop, s->w.events, s->w.manager);
    adoption_write_who(s->settings.host, ++s->run, s->who);
    s->engine = sim_engine_new(s->g->database);
    s->adoption = adoption_new(&(struct adoption_setup){
        .loop = s->w.loop,
        .log = s->w.log,
        .events = s->w.events,
        .manager = s->w.manager,
        .take = s->host.take,
        .engine = s->engine,
        .keeper = {keeper_open, keeper_close, keeper_durable, keeper_losses, keeper_is_ending, keeper_refresh,
                   keeper_remove, s},
        .settings = &s->settings,
        .identity = s->identity,
        .who = s->who,
        .is_heard = is_heard,
        .closed = site_closed,
        .context = s
    });
}

/* Without a goodbye, unless it is good. */
static void
site_stop(struct site *s, bool is_good)
{
    if (!is_good && copies_engine_is_ready(s->engine))
        sim_engine_down(s->engine, false);
    adoption_free(&s->adoption);
    while (sim_engine_carry(s->engine))
        ;
    sim_engine_free(&s->engine);
    kit_host_stop(&s->host);
}

static void
site_restart(struct site *s, bool is_good)
{
    site_stop(s, is_good);
    s->opened = s->closed = 0;
    s->durable = 0;
    world_restart(&s->w);
    site_start(s);
}

static void
group_begin(struct group *g)
{
    static const char *const names[SITES] = {"relay1", "relay2", "relay3"};
    memset(g, 0, sizeof(*g));
    g->database = copies_database_new();
    for (unsigned i = 0; i < SITES; i++) {
        struct site *s = &g->sites[i];
        s->g = g;
        manager_world_begin(&s->w, ROUTE);
        s->w.settings.queue.journal_size = 8 * 1024 * 1024;
        s->w.settings.queue.journal_message_max = 256 * 1024;
        world_restart(&s->w);
        for (unsigned n = 0; n < 5 * i; n++)
            (void)loop_random(s->w.loop); /* other names */
        s->host.name = names[i];
        s->run = 100 * (i + 1);
        snprintf(s->settings.host, sizeof(s->settings.host), "%s", names[i]);
        snprintf(s->settings.group, sizeof(s->settings.group), "mail");
        snprintf(s->identity, sizeof(s->identity), "%032u", i + 1);
        s->w.stalled = true;
        site_start(s);
    }
}

static void
group_end(struct group *g)
{
    for (unsigned i = 0; i < SITES; i++) {
        site_stop(&g->sites[i], false);
        manager_world_end(&g->sites[i].w);
    }
    copies_database_free(&g->database);
}

/* All that are up live for that time. */
static void
group_pass(struct group *g, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += 50) {
        bool any = true;
        while (any) {
            any = false;
            for (unsigned i = 0; i < SITES; i++)
                any |= sim_engine_carry(g->sites[i].engine);
        }
        for (unsigned i = 0; i < SITES; i++)
            sim_loop_advance(g->sites[i].w.loop, 50);
    }
}

static void
group_up(struct group *g, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        sim_engine_up(g->sites[i].engine);
    group_pass(g, 3000);
}

static void
key_of(const struct site *s, const char *suffix, char out[COPIES_KEY_MAX + 1])
{
    char name[COPIES_KEY_MAX];
    snprintf(name, sizeof(name), "%s:%s%s", s->settings.host, s->identity, suffix);
    copies_key(&s->settings, name, out);
}

/* A copy of a message of that host, as the keeper makes it, with that number. */
static void
site_copy(struct site *s, struct id id, unsigned batch)
{
    char key[COPIES_KEY_MAX + 1], name[COPIES_KEY_MAX + 1], content[4096], number[12];
    struct envelope *e = queue_load(manager_queue(s->w.manager), id);
    struct buffer form, field, reply;
    buffer_init(&form, 1 << 20);
    buffer_init(&field, 1 << 20);
    buffer_init(&reply, 1 << 20);
    must(e != NULL && envelope_write_given(e, &form) &&
         buffer_format(&field, "%u\n", batch) && buffer_add(&field, buffer_text(&form)));
    int file = queue_content_open(manager_queue(s->w.manager), e);
    int64_t size =
        queue_content_read(manager_queue(s->w.manager), file, 0, content, sizeof(content));
    queue_content_close(manager_queue(s->w.manager), file);
    copies_key_owner(&s->settings, key);
    key_of(s, "", name);
    snprintf(number, sizeof(number), "%u", batch);
    const struct text words[] = {TEXT("2"), text_from(key), text_from(name),
                                 text_from(s->who), text_from(strstr(name, "}:") + 2),
                                 text_from(number), TEXT("C"), text_from(ID_TEXT(id)),
                                 text_of(content, (size_t)size), TEXT("S"),
                                 text_from(ID_TEXT(id)), buffer_text(&field)};
    must(copies_database_run(s->g->database, copies_script_store, words,
                             sizeof(words) / sizeof(words[0]), &reply));
    buffer_free(&form);
    buffer_free(&field);
    buffer_free(&reply);
    envelope_free(&e);
}

/* Any bytes as such a copy, or its end, by whoever owns them. */
static void
site_copy_bytes(struct site *s, const char *who, const char *batch, struct id id, const char *form)
{
    char key[COPIES_KEY_MAX + 1];
    struct buffer reply;
    key_of(s, "", key);
    const struct text words[] = {TEXT("2"), TEXT("pc:{mail}:owner"), text_from(key),
                                 text_from(who), text_from(strstr(key, "}:") + 2),
                                 text_from(batch), form != NULL ? TEXT("S") : TEXT("E"),
                                 text_from(ID_TEXT(id)), text_from(form != NULL ? form : "")};
    buffer_init(&reply, 1000);
    must(copies_database_run(s->g->database, copies_script_store, words, form != NULL ? 9 : 8, &reply));
    buffer_free(&reply);
}

/* A message that waits there, with a copy. */
static struct id
site_send(struct site *s, unsigned batch)
{
    world_send(&s->w, "me@a.test", "good@b.test");
    world_turns(&s->w);
    if (batch > 0)
        site_copy(s, s->w.id, batch);
    return s->w.id;
}

static void
site_go(struct site *s)
{
    s->w.stalled = false;
    world_unstall(&s->w);
    group_pass(s->g, 3000);
}

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
    manager_world_begin(&a->w, ROUTE);
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
    char why[ADOPTION_WHY_MAX];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 30; i++)
        site_send(a, i);
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
    for (unsigned i = 0; i < 4000 && copies_database_count(g.database) > 20; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
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
    struct site *a = &g.sites[0], *b = &g.sites[1], *c = &g.sites[2];
    char why[ADOPTION_WHY_MAX];
    adoption_reload(c->adoption, 20 * 1000);
    group_up(&g, 3);
    for (unsigned i = 1; i <= 30; i++)
        site_send(a, i);
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
    for (unsigned i = 0; i < 4000 && copies_database_count(g.database) > 20; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
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
    sim_engine_down(a->engine, false);
    group_pass(g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
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
    struct site *a = &g.sites[0], *b = &g.sites[1], *c = &g.sites[2];
    char why[ADOPTION_WHY_MAX];
    group_up(&g, 3);
    for (unsigned i = 1; i <= 30; i++)
        site_send(a, i);
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
    for (unsigned i = 0; i < 4000 && copies_database_count(g.database) > 20; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
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
    char why[ADOPTION_WHY_MAX];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 20; i++)
        site_send(a, i);
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
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
    char why[ADOPTION_WHY_MAX];
    char number[12];
    struct id ids[30];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 30; i++)
        ids[i - 1] = site_send(a, i);
    site_send(a, 0); /* without a copy: nobody adopts it */
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
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
    char why[ADOPTION_WHY_MAX];
    group_up(&g, 2);
    for (unsigned i = 1; i <= 30; i++)
        site_send(a, i);
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
    for (unsigned i = 0; i < 4000 && copies_database_count(g.database) > 25; i++) {
        sim_engine_carry(b->engine);
        sim_loop_advance(b->w.loop, 1);
    }
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
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
    group_pass(&g, 10 * 1000);
    is_number((int64_t)copies_database_count(g.database), 0, "all are adopted");
    site_go(b);
    is_number(b->w.attempts, 30, "and delivered, each once");
}

/* The table of a restart with the disk: here or not, there or not, the number of the copy, and
 * that in lock/copies. */
TEST(comparison)
{
    FIXTURE(group, g, group_begin, group_end);
    struct site *a = &g.sites[0];
    group_up(&g, 1);
    struct id both = site_send(a, 3), ended = site_send(a, 4), forgotten = site_send(a, 6),
              here = site_send(a, 0);
    a->durable = 5;
    group_pass(&g, 3000); /* is noted */
    must(queue_remove(manager_queue(a->w.manager), ended) &&
         queue_remove(manager_queue(a->w.manager), forgotten));
    world_turns(&a->w);
    site_restart(a, true);
    a->fresh.count = a->removed.count = 0;
    sim_engine_up(a->engine);
    group_pass(&g, 5000);
    is_number((int64_t)a->number, 6, "goes on from there");
    ok_named(a->fresh.count == 3 && id_compare(a->fresh.all[1], here) == 0,
             "here and perhaps not there: stored again, or anew what has changed");
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
    sim_engine_down(a->engine, false);
    group_pass(&g, 5000);
    must(adoption_order(b->adoption, TEXT("relay1"), why));
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
