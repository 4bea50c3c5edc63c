/* defrag/channel*.c, completion.c: what becomes of fragments, sets and joins when something
 * ends before its time: the daemon, a message, a route, another instance. */
/* link: t/sim/loop.c */
#include "defrag/reassembly/parts_list.h"
#include "queue/queue_operator.h"
#include "t/support/channel_world.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ROUTES "z smtp://h\n* smtp://h?defragment=yes&notices=2h"
#define ONE    "Subject: whole\r\n\r\none\r\n"
#define TWO    "two\r\n"
#define WHOLE  "From: a@x\r\nSubject: whole\r\n\r\none\r\ntwo\r\n"

enum { LARGE = 3 * 1000 * 1000 };

/* Content above 4096 bytes is a file, and examined and reassembled in pieces. */
static void
begin(struct stage *s)
{
    stage_begin(s, ROUTES);
    s->w.settings.queue.journal_size = 4 * 1024 * 1024;
    s->w.settings.queue.journal_message_max = 4096;
    stage_restart(s);
}

static char *
large_body(void)
{
    char *body = memory_array(LARGE + 1, 1);
    memset(body, 'x', LARGE);
    memcpy(body + LARGE - 2, "\r\n", 3);
    return body;
}

/* As stage_part(), but nothing comes of it yet. */
static void
send_only(struct stage *s, const char *recipients, unsigned number, const char *body)
{
    FIXTURE(buffer, b, buffer_init, buffer_free, 64 * 1024 * 1024);
    if (!buffer_format(&b,
                       "From: a@x\r\nContent-Type: message/partial; id=\"i\"; "
                       "number=%u; total=3\r\n\r\n",
                       number) ||
        !buffer_add(&b, text_from(body)))
        abort();
    stage_send(s, "a@x", recipients, buffer_text(&b));
}

/* --- The daemon ------------------------------------------------------------------- */

/* At every turn of a join, and then of its storing. */
static void
test_stop_while_joining(void)
{
    char *body = large_body();
    unsigned in_the_middle = 0;
    for (int turns = 1; turns < 30; turns += 6) {
        FIXTURE(stage, s, begin, stage_end);
        stage_part(&s, "i", 3, 3, body);
        stage_part(&s, "i", 2, 3, body);
        sim_loop_advance(s.w.loop, 1000);
        send_only(&s, "b@y", 1, ONE);
        for (int i = 0; i < turns; i++)
            loop_turn(s.w.loop, 0);
        in_the_middle += world_files(&s.w, "pid") > 0;
        stage_restart(&s);
        sim_loop_advance(s.w.loop, 5000);
        if (s.count != 1 || !world_is_empty(&s.w))
            is_number(s.count, 1, "not joined");
    }
    ok_named(in_the_middle > 1, "stopped in the middle of a join it is made again");
    free(body);
}

/* A start offers what has files first, and it may be younger: the oldest counts. */
TEST(time_over_a_restart)
{
    FIXTURE(stage, s, begin, stage_end);
    stage_part(&s, "i", 1, 3, ONE);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS / 2);
    stage_part_to(&s, "a@x", "b@y c@z", "i", 2, 3, TWO);
    is_number(s.count, 1, "c@z is served");
    is_number(world_files(&s.w, "defrag"), 1, "so it is marked");
    stage_restart(&s);
    sim_loop_advance(s.w.loop, STAGE_HALF_MS / 2 - 10 * 1000);
    is_number(s.count, 1, "b@y waits");
    sim_loop_advance(s.w.loop, 10 * 1000);
    is_number(s.count, 3, "half an interval since the first, not since the second");
    ok(world_is_empty(&s.w));
}

/* --- Many at a time --------------------------------------------------------------- */

static unsigned
lines_with(const struct stage *s, const char *words)
{
    struct buffer copy;
    unsigned count = 0;
    buffer_init(&copy, 64 * 1024 * 1024);
    if (!buffer_add(&copy, buffer_text((struct buffer *)&s->w.lines)) ||
        !buffer_add(&copy, text_of("", 1)))
        abort();
    for (const char *at = buffer_text(&copy).at; (at = strstr(at, words)) != NULL;)
        at++, count++;
    buffer_free(&copy);
    return count;
}

/* A turn releases a bounded number, and the next turns the others, in their order. */
TEST(many_released)
{
    enum { PARTS = 150, PER_TURN = 100 };
    unsigned most = 0, before = 0;
    FIXTURE(stage, s, begin, stage_end);
    for (unsigned number = PARTS; number > 0; number--) {
        stage_put(&s, "a@x", "b@y", "i", number, PARTS + 1, ONE);
        if (number % 10 == 1)
            world_turns(&s.w);
    }
    is_number(s.count, 0, "all wait");
    stage_put(&s, "a@x", "b@y", "i", 1, PARTS, TWO);
    for (int turn = 0; turn < 200; turn++) {
        loop_turn(s.w.loop, 0);
        unsigned released = lines_with(&s, "status=released");
        most = released - before > most ? released - before : most;
        before = released;
    }
    is_number(before, PARTS, "all are released");
    is_number(most, PER_TURN, "so many in a turn");
    sim_loop_advance(s.w.loop, 1000);
    is_number(s.count, PARTS + 1, "and delivered");
    unsigned wrong = 0;
    for (unsigned i = 2; i < s.count; i++)
        wrong += id_compare(s.delivered[i].id, s.delivered[i - 1].id) >= 0;
    is_number(wrong, 0, "by number");
    ok(world_is_empty(&s.w));
}

/* --- Not as the settings say ------------------------------------------------------ */

/* The log says what happened, not what was to happen. */
TEST(cannot_hold)
{
    char hold[100];
    FIXTURE(stage, s, begin, stage_end);
    s.settings.on_timeout = CHANNEL_HOLD;
    channel_reload(s.channel, &s.settings);
    stage_part(&s, "i", 2, 3, TWO);
    snprintf(hold, sizeof(hold), "%s/hold", s.w.folder);
    ok_named(rmdir(hold) == 0, "it cannot be held");
    sim_loop_advance(s.w.loop, STAGE_HALF_MS + 1000);
    ok(world_logged(&s.w, "cannot hold: cannot write its mark"));
    is_number(lines_with(&s, "status=held"), 0, "it is not logged as held");
    is_number(lines_with(&s, "status=released"), 1, "but as released");
    is_number(s.count, 1, "so it is");
    ok(mkdir(hold, 0700) == 0 && world_is_empty(&s.w));
}

/* A fragment that an operator has held is not released, though its set is. */
TEST(held_meanwhile)
{
    FIXTURE(stage, s, begin, stage_end);
    stage_part(&s, "i", 2, 3, TWO);
    struct id first = s.w.id;
    stage_put(&s, "a@x", "b@y", "i", 2, 4, ONE);
    for (int i = 0; i < 200 && stage_figures(&s).messages > 0; i++)
        loop_turn(s.w.loop, 0);
    s.w.id = first;
    is_number(world_operate(&s.w, MANAGER_HOLD), MANAGER_DONE, "held");
    world_turns(&s.w);
    is_number(lines_with(&s, "status=released"), 0, "not released");
    is_number(s.count, 1, "the other goes");
    is_number(world_operate(&s.w, MANAGER_RELEASE), MANAGER_DONE, "released");
    world_turns(&s.w);
    is_number(s.count, 2, "then it goes, too");
    ok(world_is_empty(&s.w));
}

/* --- A route ---------------------------------------------------------------------- */

/* Turned off everywhere, while one set waits, one is joined, and one looked into. */
TEST(turned_off)
{
    char *body = large_body();
    struct stage s;
    begin(&s);
    struct route_table *before = s.w.routes;
    stage_part(&s, "j", 1, 2, ONE);
    stage_part_to(&s, "a@x", "b@y c@z", "j2", 1, 2, ONE);
    is_number(s.count, 1, "c@z is served");
    send_only(&s, "b@y", 2, body);
    for (int i = 0; i < 4; i++)
        loop_turn(s.w.loop, 0);
    s.w.routes_text.routes = TEXT("y smtp://h?defragment=yes\nz smtp://h\n* smtp://h");
    struct route_table *some = world_routes(&s.w);
    manager_reload(s.w.manager, &s.w.settings, some);
    channel_reload(s.channel, &s.settings);
    world_turns(&s.w);
    is_number(s.count, 1, "some routes still ask for it: they wait");
    s.w.routes_text.routes = TEXT("* smtp://h");
    struct route_table *none = world_routes(&s.w);
    manager_reload(s.w.manager, &s.w.settings, none);
    channel_reload(s.channel, &s.settings);
    world_turns(&s.w);
    is_number(s.count, 4, "none does: all go on as they are");
    is_number(stage_figures(&s).messages, 0, "nothing waits");
    ok(world_is_empty(&s.w));
    manager_reload(s.w.manager, &s.w.settings, before);
    route_free(&some);
    route_free(&none);
    stage_end(&s);
    free(body);
}

/* The settings that a reassembly began with may end before it does. */
TEST(reload_while_joining)
{
    char *body = large_body(), *hostname = memory_string("old.test");
    struct stage s;
    begin(&s);
    s.settings.hostname = hostname;
    channel_reload(s.channel, &s.settings);
    stage_part(&s, "i", 3, 3, body);
    stage_part(&s, "i", 2, 3, body);
    sim_loop_advance(s.w.loop, 1000);
    send_only(&s, "b@y", 1, ONE);
    for (int i = 0; i < 200 && world_files(&s.w, "pid") == 0; i++)
        loop_turn(s.w.loop, 0);
    ok_named(world_files(&s.w, "pid") > 0 && s.count == 0, "in the middle of a join");
    s.settings.hostname = "new.test";
    channel_reload(s.channel, &s.settings);
    memset(hostname, 'x', strlen(hostname));
    free(hostname);
    sim_loop_advance(s.w.loop, 5000);
    is_number(s.count, 1, "joined");
    is_string(s.delivered[0].trace, "Received: by old.test (Petrel)",
              "with the name of its beginning");
    stage_end(&s);
    free(body);
}

/* --- Another instance ------------------------------------------------------------- */

static void
keep_spool(const struct stage *s, unsigned turn)
{
    char command[200];
    snprintf(command, sizeof(command), "cp -a %s %s.%u", s->w.folder, s->w.folder, turn);
    if (system(command) != 0)
        abort();
}

/* The spool of an instance that dies in each turn after a join: so many turns. The
 * parts are young, and so is the whole. */
static unsigned
die_in_each_turn(struct stage *s, unsigned slices, unsigned slice)
{
    unsigned turns = 0;
    stage_begin(s, ROUTES);
    s->w.settings.queue.journal_size = 4 * 1024 * 1024;
    s->w.settings.queue.slices = slices;
    s->w.settings.queue.slice = slice;
    stage_restart(s);
    stage_part(s, "i", 1, 2, ONE);
    struct buffer b;
    buffer_init(&b, 1000);
    if (!buffer_format(&b, "Content-Type: message/partial; id=\"i\"; number=2; "
                           "total=2\r\n\r\ntwo\r\n"))
        abort();
    stage_send(s, "a@x", "b@y", buffer_text(&b));
    buffer_free(&b);
    while (!world_logged(&s->w, "status=reassembled"))
        loop_turn(s->w.loop, 0);
    for (; turns < 3 && s->count == 0; turns++) {
        keep_spool(s, turns);
        loop_turn(s->w.loop, 0);
    }
    sim_loop_advance(s->w.loop, 2000); /* no session is open when it stops */
    stage_clear(s);
    stage_stop(s);
    return turns;
}

static void
go_on_from(struct stage *s, unsigned turn)
{
    char command[200];
    snprintf(command, sizeof(command), "rm -rf %s && mv %s.%u %s", s->w.folder,
             s->w.folder, turn, s->w.folder);
    if (system(command) != 0)
        abort();
    stage_clear(s);
    buffer_clear(&s->w.lines);
}

/* For a whole that was there before. */
static bool
parts_ended_late(const struct stage *s)
{
    return world_logged(&s->w, "continues in") && !world_logged(&s->w, "status=reassembled");
}

static bool
came_once(const struct stage *s)
{
    return stage_wholes(s, WHOLE) == 1 && s->count == 1 && world_is_empty(&s->w) &&
           !world_logged(&s->w, "cannot be reassembled");
}

/* A reassembled message of `count` parts that wait, whose ends a crash has prevented. */
static void
die_before_the_ends(struct stage *s, unsigned count)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    struct buffer list;
    buffer_init(&list, 1000 * 1000);
    parts_list_begin(1, &list);
    for (unsigned number = 1; number <= count; number++) {
        stage_put(s, "a@x", "b@y", "i", number, count + 1, ONE);
        world_turns(&s->w);
        parts_list_add(s->w.id, (unsigned[1]){0}, 1, &list);
    }
    e->sender = envelope_text(e, TEXT("a@x"));
    e->fragment.made_of = envelope_text(e, buffer_text(&list));
    buffer_free(&list);
    if (!envelope_add(e, TEXT("b@y"), 0, (struct text){0}))
        abort();
    struct queue_draft *draft = queue_begin(manager_queue(s->w.manager), 0, &refusal);
    if (draft == NULL || !queue_write(draft, TEXT(WHOLE)))
        abort();
    queue_name(draft, e);
    s->w.accepted = false;
    queue_commit(&draft, &e, world_stored, &s->w);
    while (!s->w.accepted)
        loop_turn(s->w.loop, 0);
    keep_spool(s, 0);
    sim_loop_advance(s->w.loop, 2000);
    stage_stop(s);
    go_on_from(s, 0);
}

/* The parts that a startup ended before its first turn, and at most in a turn. */
struct ended {
    unsigned at_first, most;
    void (*plug)(struct world *w);
};

static struct ended ended;

static void
plug_and_count(struct world *w)
{
    const struct stage *s = (struct stage *)w;
    ended.plug(w);
    ended.at_first = lines_with(s, "continues in");
    ended.most = 0;
    for (unsigned turn = 0, before = ended.at_first; turn < 200; turn++) {
        loop_turn(w->loop, 0);
        unsigned now = lines_with(s, "continues in");
        ended.most = now - before > ended.most ? now - before : ended.most;
        before = now;
    }
}

/* A startup ends them a bounded number in a turn. Meanwhile none of them is delivered,
 * also where fragments do not wait any more. */
static void
test_many_to_end(const char *routes)
{
    enum { PARTS = 150, PER_TURN = 100 };
    FIXTURE(stage, s, begin, stage_end);
    die_before_the_ends(&s, PARTS);
    struct route_table *waits = s.w.routes;
    s.w.routes_text.routes = text_from(routes);
    s.w.routes = world_routes(&s.w);
    ended.plug = s.w.plug;
    s.w.plug = plug_and_count;
    manager_world_start(&s.w);
    s.w.plug = ended.plug;
    is_number(ended.at_first, PER_TURN, "not all before the first turn");
    is_number(ended.most, PARTS - PER_TURN, "the others in the next");
    sim_loop_advance(s.w.loop, 2000);
    is_number(stage_wholes(&s, WHOLE), 1, "the message is delivered");
    is_number(s.count, 1, "and no part");
    ok(world_is_empty(&s.w));
    stage_stop(&s);
    route_free(&s.w.routes);
    s.w.routes = waits;
    manager_world_start(&s.w);
}

/* Its journal is turned off: all of it is adopted, and the parts come first. */
static void
test_adopted_at_the_start(void)
{
    unsigned both = 0, wrong = 0;
    struct stage s;
    unsigned turns = die_in_each_turn(&s, 1, 0);
    s.w.settings.queue.journal_size = 0;
    for (unsigned i = 0; i < turns; i++) {
        go_on_from(&s, i);
        manager_world_start(&s.w);
        sim_loop_advance(s.w.loop, 2000);
        both += parts_ended_late(&s);
        wrong += !came_once(&s);
        stage_stop(&s);
    }
    manager_world_start(&s.w);
    stage_end(&s);
    ok_named(both > 0, "a whole and its parts are adopted");
    is_number(wrong, 0, "and it is not joined again, nor tried to");
}

/* A slice is taken over by one that has run for longer than the whole is there. */
static void
test_taken_over(void)
{
    unsigned both = 0, wrong = 0, slice = 0;
    struct stage s;
    unsigned turns = die_in_each_turn(&s, 2, slice);
    s.w.settings.queue.slice = 1;
    for (unsigned i = 0; i < turns; i++) {
        go_on_from(&s, i);
        sim_loop_step_wall(s.w.loop, -1000 * 1000);
        loop_turn(s.w.loop, 0);
        manager_world_start(&s.w);
        sim_loop_step_wall(s.w.loop, 1000 * 1000);
        ok(queue_adopt(manager_queue(s.w.manager), slice, NULL, NULL) == NULL);
        sim_loop_advance(s.w.loop, 5000);
        both += parts_ended_late(&s);
        wrong += !came_once(&s);
        stage_stop(&s);
    }
    manager_world_start(&s.w);
    stage_end(&s);
    ok_named(both > 0, "a whole and its parts are taken over");
    is_number(wrong, 0, "and it is not joined again, nor tried to");
}

/* --- A message -------------------------------------------------------------------- */

/* The operator removes it, or sends it back; its sender comes again: that one counts.
 */
static void
test_again(void)
{
    static const enum manager_verb verbs[] = {MANAGER_REMOVE, MANAGER_BOUNCE};
    for (size_t i = 0; i < 2; i++) {
        FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
        stage_part(&s, "i", 1, 2, ONE);
        is_number(world_operate(&s.w, verbs[i]), MANAGER_DONE, "gone");
        world_turns(&s.w);
        is_number(stage_figures(&s).messages, 0, "nothing waits for it");
        is_number(stage_figures(&s).sets, 0, "no set is left");
        stage_clear(&s);
        stage_part(&s, "i", 1, 2, ONE);
        ok_named(!world_logged(&s.w, "absorbed"), "it has not been there before");
        stage_part(&s, "i", 2, 2, TWO);
        stage_arrived(&s, 0, "b@y", WHOLE, "joined");
        ok(world_is_empty(&s.w));
    }
}

/* While its digest is made, while another recipient is served, while it is joined. */
static void
test_gone_at_any_time(void)
{
    char *body = large_body();
    unsigned joined = 0, alone = 0;
    for (int turns = 0; turns < 20; turns += 4) {
        FIXTURE(stage, s, begin, stage_end);
        stage_part(&s, "i", 3, 3, TWO);
        stage_part(&s, "i", 1, 3, ONE);
        send_only(&s, "b@y c@z", 2, body);
        for (int i = 0; i < turns; i++)
            loop_turn(s.w.loop, 0);
        (void)world_operate(&s.w, MANAGER_REMOVE);
        sim_loop_advance(s.w.loop, 2000);
        stage_part(&s, "i", 2, 3, TWO);
        sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
        unsigned to_b = 0;
        for (unsigned i = 0; i < s.count; i++)
            to_b += strcmp(s.delivered[i].to, "b@y") == 0;
        joined += to_b == 1;
        alone += to_b > 1;
        if (to_b == 0 || !world_is_empty(&s.w) || stage_figures(&s).messages > 0)
            is_number(to_b, 1, "lost");
    }
    ok_named(joined > 0 && joined + alone == 5, "removed at any time: nothing is lost");
    free(body);
}

/* One recipient's join is under way when a part is removed that another waits for, too:
 * it gets its own from those that come again. */
static void
test_gone_while_joining(void)
{
    char *body = large_body();
    unsigned in_the_middle = 0;
    for (int turns = 2; turns < 18; turns += 4) {
        unsigned to_b = 0, to_d = 0;
        FIXTURE(stage, s, begin, stage_end);
        stage_part(&s, "i", 2, 3, body);
        sim_loop_advance(s.w.loop, 1000);
        stage_part_to(&s, "a@x", "b@y d@y", "i", 1, 3, ONE);
        struct id removed = s.w.id;
        send_only(&s, "b@y", 3, TWO);
        for (int i = 0; i < turns; i++)
            loop_turn(s.w.loop, 0);
        in_the_middle += world_files(&s.w, "pid") > 0;
        s.w.id = removed;
        (void)world_operate(&s.w, MANAGER_REMOVE);
        sim_loop_advance(s.w.loop, 2000);
        stage_part_to(&s, "a@x", "b@y d@y", "i", 1, 3, ONE);
        stage_part_to(&s, "a@x", "d@y", "i", 2, 3, body);
        stage_part_to(&s, "a@x", "d@y", "i", 3, 3, TWO);
        sim_loop_advance(s.w.loop, 2000);
        for (unsigned i = 0; i < s.count; i++) {
            to_b += strcmp(s.delivered[i].to, "b@y") == 0;
            to_d += strcmp(s.delivered[i].to, "d@y") == 0;
        }
        /* A repetition for a forgotten set waits in vain. */
        sim_loop_advance(s.w.loop, 2 * STAGE_HALF_MS);
        if (to_b == 0 || to_d != 1 || !world_is_empty(&s.w))
            is_number(turns, -1, "lost in this turn");
    }
    ok_named(in_the_middle > 1, "removed in the middle of a join");
    free(body);
}

static void
damage(const struct stage *s, struct id id, off_t at)
{
    char path[200], name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(path, sizeof(path), "%s/mess/%s", s->w.folder, name);
    int file = open(path, O_WRONLY);
    if (file < 0 || pwrite(file, "!", 1, at) != 1)
        abort();
    close(file);
}

/* A file that has been damaged since it was looked into, in its header or its body: its
 * content is read once, for the whole, and its sum tells. */
static void
test_damaged_while_waiting(off_t at)
{
    char *body = large_body();
    FIXTURE(stage, s, stage_begin, stage_end, ROUTES);
    stage_part(&s, "i", 1, 2, ONE);
    struct id id = s.w.id;
    uint64_t before = queue_bytes_read(manager_queue(s.w.manager));
    damage(&s, id, at);
    stage_part(&s, "i", 2, 2, body);
    sim_loop_advance(s.w.loop, 2000);
    ok(world_logged(&s.w, "2 fragments cannot be reassembled: a part is damaged"));
    is_number(queue_health(manager_queue(s.w.manager)).quarantined, 1, "it is put aside");
    is_number((int64_t)s.count, 1, "the other goes on as it is");
    ok(s.count == 1 && s.delivered[0].content.length > LARGE);
    ok_named(queue_bytes_read(manager_queue(s.w.manager)) - before < 2 * LARGE,
             "and was not read for its envelope");
    free(body);
}

int
main(void)
{
    test_damaged_while_waiting(12);
    test_damaged_while_waiting(-1 + (off_t)sizeof(ONE) + 80);
    tap_tests("");
    test_many_to_end(ROUTES);
    test_many_to_end("* smtp://h");
    test_adopted_at_the_start();
    test_taken_over();
    test_gone_while_joining();
    test_again();
    test_gone_at_any_time();
    test_stop_while_joining();
    return done();
}
