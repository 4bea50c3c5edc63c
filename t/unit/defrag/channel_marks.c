/* queue/manager/manager_awaiting.c and its neighbours: which fragments have a mark in defrag/, and
 * when it goes. */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "t/support/channel_world.h"

#include <sys/stat.h>

#define ROUTES "z smtp://h\n* smtp://h?defragment=yes&notices=2h"
#define ONE    "Subject: whole\r\n\r\none\r\n"
#define TWO    "two\r\n"

static unsigned
marks(const struct stage *s)
{
    return world_files(&s->w, "defrag");
}

static void
begin(struct stage *s)
{
    stage_begin(s, ROUTES);
    s->w.settings.queue.journal_size = 512 * 1024;
    s->w.settings.queue.journal_segment = 65536;
    s->w.settings.queue.journal_message_max = 30000;
    stage_restart(s);
}

/* Its recipient c@z is served immediately, so it has files. */
static void
aside(struct stage *s, const char *id, unsigned number, unsigned total)
{
    stage_part_to(s, "a@x", "b@y c@z", id, number, total, number == 1 ? ONE : TWO);
}

TEST(life)
{
    FIXTURE(stage, s, begin, stage_end);
    stage_part(&s, "i", 1, 3, ONE);
    is_number(marks(&s), 0, "young mail has none");
    aside(&s, "i", 2, 3);
    is_number(marks(&s), 1, "what has files has one");
    stage_restart(&s);
    is_number(marks(&s), 1, "a start keeps it");
    is_number(stage_figures(&s).messages, 2, "both wait again");
    stage_part(&s, "i", 3, 3, "three\r\n");
    sim_loop_advance(s.w.loop, 2000);
    is_number(s.count, 2, "joined; and the part for another");
    is_number(marks(&s), 0, "then it is gone");
    ok(world_is_empty(&s.w));
}

/* Released, it may wait for other reasons. */
TEST(release)
{
    struct stage s;
    begin(&s);
    aside(&s, "i", 2, 3);
    is_number(marks(&s), 1, "waits");
    s.refuses = true;
    sim_loop_advance(s.w.loop, STAGE_HALF_MS + 5000);
    is_number(marks(&s), 0, "its time is over: no mark");
    is_number(world_files(&s.w, "info"), 1, "though it is still here");
    is_number(world_place(&s.w), SCHED_DEFERRED, "deferred");
    stage_end(&s);
    begin(&s);
    aside(&s, "i", 1, 3);
    aside(&s, "i", 1, 4);
    is_number(marks(&s), 0, "a conflict");
    is_number(s.count, 4, "sends both on");
    ok(world_is_empty(&s.w));
    stage_end(&s);
}

/* One recipient waits for fragments, the other for a retry: when the first is served
 * the message is deferred, and nothing more. */
TEST(part_served)
{
    FIXTURE(stage, s, begin, stage_end);
    s.refuses = true;
    aside(&s, "i", 1, 2);
    s.refuses = false;
    is_number(marks(&s), 1, "it waits for both");
    struct id first = s.w.id;
    stage_part(&s, "i", 2, 2, TWO);
    world_turns(&s.w);
    is_number(s.count, 1, "joined for one");
    is_number(sched_find(manager_sched(s.w.manager), first).place, SCHED_DEFERRED,
              "the other's retry comes later");
    is_number(marks(&s), 0, "so it is no fragment any more");
    sim_loop_advance(s.w.loop, 1000 * 1000);
    is_number(s.count, 2, "and goes");
    ok(world_is_empty(&s.w));
    /* Both wait, in different sets' ways: the mark stays for the second. */
    stage_clear(&s);
    stage_part_to(&s, "a@x", "b@y d@y c@z", "k", 1, 2, ONE);
    stage_part(&s, "k", 2, 2, TWO);
    world_turns(&s.w);
    is_number(s.count, 2, "b@y has it; c@z the part");
    is_number(marks(&s), 1, "d@y still waits");
    stage_part_to(&s, "a@x", "d@y", "k", 2, 2, TWO);
    world_turns(&s.w);
    is_number(s.count, 3, "and has it");
    ok(world_is_empty(&s.w));
}

TEST(operator)
{
    static const enum manager_verb verbs[] = {MANAGER_HOLD, MANAGER_REMOVE,
                                              MANAGER_BOUNCE};
    FIXTURE(stage, s, begin, stage_end);
    for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
        char id[8];
        snprintf(id, sizeof(id), "i%zu", i);
        aside(&s, id, 1, 2);
        is_number(marks(&s), 1, "a mark");
        is_number(world_operate(&s.w, verbs[i]), MANAGER_DONE, "an order");
        world_turns(&s.w);
        is_number(marks(&s), 0, "no mark");
    }
    sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
    is_number(world_files(&s.w, "hold"), 1, "held it stays");
    is_number(world_files(&s.w, "mess"), 1, "alone");
}

TEST(routes)
{
    FIXTURE(stage, s, begin, stage_end);
    aside(&s, "i", 1, 2);
    s.w.routes_text.routes = TEXT("y hold\n* smtp://h");
    struct route_table *holding = world_routes(&s.w);
    manager_reload(s.w.manager, &s.w.settings, holding);
    manager_retry_all(s.w.manager);
    world_turns(&s.w);
    is_number(world_files(&s.w, "hold"), 1, "a route that holds");
    is_number(marks(&s), 0, "ends the waiting");
    manager_reload(s.w.manager, &s.w.settings, s.w.routes);
    route_free(&holding);
}

/* The journal has no space: what moves out of it is marked. */
TEST(crowded)
{
    enum { SETS = 40, SIZE = 20000 };
    char body[SIZE + 1], id[20];
    memset(body, 'x', SIZE);
    memcpy(body + SIZE - 2, "\r\n", 3);
    FIXTURE(stage, s, begin, stage_end);
    for (unsigned i = 0; i < SETS; i++) {
        snprintf(id, sizeof(id), "i%u", i);
        stage_part(&s, id, 2, 3, body);
        stage_part(&s, id, 3, 3, body);
    }
    world_turns(&s.w);
    unsigned files = world_files(&s.w, "info");
    ok(files > 0);
    is_number(marks(&s), files, "all that have files");
    stage_restart(&s);
    sim_loop_advance(s.w.loop, 5000);
    is_number(stage_figures(&s).messages, 2 * SETS, "all wait");
    for (unsigned i = 0; i < SETS; i++) {
        snprintf(id, sizeof(id), "i%u", i);
        stage_part(&s, id, 1, 3, ONE);
        stage_clear(&s);
    }
    sim_loop_advance(s.w.loop, 5000);
    is_number(marks(&s), 0, "joined, all are gone");
    ok(world_is_empty(&s.w));
}

/* --- Without a daemon ------------------------------------------------------------- */

struct seen_places {
    unsigned defrag, deferred, other;
};

static bool
note(void *context, struct id id, enum queue_place place)
{
    struct seen_places *p = context;
    (void)id;
    p->defrag += place == QUEUE_DEFRAG;
    p->deferred += place == QUEUE_DEFERRED;
    p->other += place != QUEUE_DEFRAG && place != QUEUE_DEFERRED;
    return true;
}

/* The operator's process, for as long as one command takes. */
static void
offline(struct stage *s, enum manager_verb verb, enum manager_result want)
{
    struct manager_settings settings = s->w.settings;
    struct manager *manager = NULL;
    char why[MANAGER_WHY_MAX] = "", error[300];
    settings.offline = true;
    if (manager_new(&manager, s->w.loop, s->w.events, &settings, NULL, error,
                    sizeof(error)) != 0) {
        ok_named(false, error);
        return;
    }
    world_turns(&s->w);
    is_number(manager_operate(manager, verb, s->w.id, why), want, "done");
    world_turns(&s->w);
    manager_free(&manager);
}

TEST(offline)
{
    struct seen_places places = {0};
    FIXTURE(stage, s, begin, stage_end);
    aside(&s, "i", 1, 2);
    s.refuses = true;
    stage_part_to(&s, "a@x", "c@z", "", 1, 2, ONE);
    s.refuses = false;
    is_number(queue_each(manager_queue(s.w.manager), note, &places), 0, "a list");
    is_number(places.defrag, 1, "has the fragment");
    is_number(places.deferred, 1, "and what is deferred, but not the fragment again");
    is_number(places.other, 0, "and no more");
    aside(&s, "j", 1, 2);
    stage_stop(&s);
    offline(&s, MANAGER_RETRY, MANAGER_DONE);
    is_number(marks(&s), 2, "due now, and waiting still");
    offline(&s, MANAGER_HOLD, MANAGER_DONE);
    is_number(marks(&s), 1, "held: no mark");
    offline(&s, MANAGER_RELEASE, MANAGER_DONE);
    is_number(marks(&s), 1, "released: none");
    offline(&s, MANAGER_REMOVE, MANAGER_DONE);
    manager_world_start(&s.w);
    is_number(marks(&s), 1, "removed: none");
    is_number(world_files(&s.w, "mess"), 2, "the others are there");
    is_number(stage_figures(&s).messages, 1, "and one waits");
    aside(&s, "k", 1, 2);
    stage_stop(&s);
    offline(&s, MANAGER_REMOVE, MANAGER_DONE);
    is_number(marks(&s), 1, "removed while it was marked");
    manager_world_start(&s.w);
}

/* A mark is a file of its own: where no links can be made, it can. */
TEST(links)
{
    char path[200], name[ID_LENGTH + 1];
    struct stat mark, mess;
    FIXTURE(stage, s, begin, stage_end);
    aside(&s, "i", 1, 2);
    id_format(s.w.id, name);
    snprintf(path, sizeof(path), "%s/defrag/%s", s.w.folder, name);
    is_number(stat(path, &mark), 0, "the mark");
    snprintf(path, sizeof(path), "%s/mess/%s", s.w.folder, name);
    is_number(stat(path, &mess), 0, "the content");
    ok(mark.st_nlink == 1 && mess.st_nlink == 1 && mark.st_ino != mess.st_ino);
    is_number(mark.st_size, 0, "it is empty");
}
