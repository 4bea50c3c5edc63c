/* A list in steps has what queue_each() has, in its order, and reads so many names in a
 * step, not more. */
/* link: t/sim/clock.c */
#include "queue/queue_walk.h"

#include "t/support/folder.h"
#include "t/support/queue_home.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAMES = 600, STEP = 50 };

static const char *const one[] = {"a@example.org", NULL};

struct listed {
    struct {
        struct id id;
        enum queue_place place;
    } rows[NAMES + 10];
    size_t count;
};

static bool
note_row(void *context, struct id id, enum queue_place place)
{
    struct listed *l = context;
    if (l->count == NAMES + 10)
        abort();
    l->rows[l->count].id = id;
    l->rows[l->count++].place = place;
    return true;
}

static void
touch(const char *home, const char *directory, unsigned time, const char *end)
{
    char path[300], name[ID_LENGTH + 1];
    id_format((struct id){.time_ms = 1000 + time}, name);
    snprintf(path, sizeof(path), "%s/%s/%s%s", home, directory, name, end);
    int file = open(path, O_WRONLY | O_CREAT, 0600);
    if (file < 0)
        abort();
    close(file);
}

/* Messages at all places, in no order; some at two, marks without and beside info, notes
 * of damage, and names that are none. */
static void
fill(const char *home)
{
    for (unsigned i = 0; i < NAMES / 2; i++) {
        unsigned time = i * 7919 % 1000;
        static const char *const directories[] = {"todo", "info", "hold", "defrag", "corrupt"};
        touch(home, directories[i % 5], time, i % 5 == 4 ? ".note" : "");
        if (i % 5 == 3 && i % 2 == 0)
            touch(home, "info", time, "");
        if (i % 15 == 0)
            touch(home, "info", time, ""); /* in todo, too */
        if (i % 20 == 1)
            touch(home, "hold", time, "");
    }
    touch(home, "info", 5000, "x");
    touch(home, "hold", 5000, ".note");
}

static bool
wants_all(void *context, struct id id)
{
    unsigned *asked = context;
    (void)id;
    ++*asked;
    return true;
}

static bool
wants_late(void *context, struct id id)
{
    (void)context;
    return id.time_ms > 1500;
}

/* Returns the number of steps. */
static unsigned
walk_all(struct queue *queue, bool (*wants)(void *context, struct id id), struct listed *out)
{
    unsigned asked = 0, steps = 0, before = 0;
    bool within = true;
    struct id id;
    enum queue_place place;
    struct queue_walk *walk = queue_walk_begin(queue, wants, &asked);
    int more = 1;
    for (before = asked; more > 0; before = asked, steps++) {
        more = queue_walk_read(walk, STEP);
        within = within && asked - before <= STEP;
    }
    is_number(more, 0, "all is read");
    is_number(queue_walk_read(walk, STEP), 0, "and stays so");
    ok_named(within, "at most so many names in a step");
    out->count = 0;
    while (queue_walk_next(walk, &id, &place))
        note_row(out, id, place);
    ok(!queue_walk_next(walk, &id, &place));
    queue_walk_end(&walk);
    ok(walk == NULL);
    queue_walk_end(&walk);
    return steps;
}

static void
test_same(struct queue *queue)
{
    static struct listed wanted, got;
    wanted.count = 0;
    is_number(queue_each(queue, note_row, &wanted), 0, "each");
    unsigned steps = walk_all(queue, wants_all, &got);
    ok_named(wanted.count > NAMES / 3 && steps > wanted.count / STEP, "many messages, many steps");
    is_number((long long)got.count, (long long)wanted.count, "as many");
    bool same = got.count == wanted.count;
    for (size_t i = 0; i < got.count && same; i++)
        same = id_compare(got.rows[i].id, wanted.rows[i].id) == 0 && got.rows[i].place == wanted.rows[i].place;
    ok_named(same, "the same, in the same order, at the same places");
    walk_all(queue, wants_late, &got);
    size_t late = 0;
    for (size_t i = 0; i < wanted.count; i++)
        late += wanted.rows[i].id.time_ms > 1500;
    ok_named(late > 0 && late < wanted.count, "some are wanted");
    is_number((long long)got.count, (long long)late, "those are met");
}

static void
test_unread(struct queue *queue, const char *home)
{
    char from[300], to[320];
    unsigned asked = 0;
    int result = 1;
    snprintf(from, sizeof(from), "%s/hold", home);
    snprintf(to, sizeof(to), "%s.away", from);
    ok(rename(from, to) == 0);
    struct queue_walk *walk = queue_walk_begin(queue, wants_all, &asked);
    while (result > 0)
        result = queue_walk_read(walk, STEP);
    ok_named(result < 0, "a directory that cannot be read");
    queue_walk_end(&walk); /* with rows left */
    walk = queue_walk_begin(queue, wants_all, &asked);
    ok(queue_walk_read(walk, 1) == 1);
    queue_walk_end(&walk); /* within a directory */
    ok(rename(to, from) == 0);
}

/* A message whose end is not durable yet has its files still. */
static void
test_ended(void)
{
    char home[100];
    struct kit kit, *k = &kit;
    unsigned asked = 0;
    folder_make(home, sizeof(home), "walk");
    ok(kit_open_with(k, &(struct queue_settings){.spool = home,
                                                 .slices = 1,
                                                 .journal_size = 8 * 1024 * 1024,
                                                 .journal_message_max = 64 * 1024}) == 0);
    struct envelope *e = queue_kit_accept(k, kit_envelope("s@x", one), TEXT("x\r\n"));
    struct id id = e->id, met;
    enum queue_place place;
    queue_defer(k->queue, &e, INT64_C(1) << 40, 1);
    kit_turns(k, 20);
    e = queue_load(k->queue, id);
    for (int i = 0; i < 2; i++) {
        bool is_met = false;
        struct queue_walk *walk = queue_walk_begin(k->queue, wants_all, &asked);
        while (queue_walk_read(walk, STEP) > 0)
            ;
        while (queue_walk_next(walk, &met, &place))
            is_met = is_met || id_compare(met, id) == 0;
        queue_walk_end(&walk);
        ok(is_there(home, "info", id));
        ok_named(is_met == (i == 0), i == 0 ? "it is met" : "not after its end");
        if (i == 0)
            queue_retire(k->queue, &e);
    }
    kit_close(k);
    folder_remove(home);
}

int
main(void)
{
    char home[100];
    struct kit k;
    folder_make(home, sizeof(home), "walk");
    queue_kit_open(&k, home);
    struct envelope *e = queue_kit_accept(&k, kit_envelope("s@x", one), TEXT("x\r\n"));
    fill(home);
    test_same(k.queue);
    test_unread(k.queue, home);
    envelope_free(&e);
    kit_close(&k);
    folder_remove(home);
    test_ended();
    return done();
}
