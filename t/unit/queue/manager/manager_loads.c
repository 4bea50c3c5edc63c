/* What a turn reads from the disk: a budget of bytes, whether they are whole or not,
 * our own or another user's, of many messages or of one; and each byte once. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "t/support/manager_world.h"

#include "t/sim/sim_disk.h"

enum { COUNT = 10, SIZE = 3 * 1024 * 1024, BUDGET = 1024 * 1024 };
enum { DAEMON = 1, STRANGER = 2 };

struct meter {
    struct world *world;
    uint64_t before, most, turns;
};

static void
measure(void *context)
{
    struct meter *meter = context;
    uint64_t now = queue_bytes_read(manager_queue(meter->world->manager));
    if (now - meter->before > meter->most)
        meter->most = now - meter->before;
    meter->turns += now > meter->before;
    meter->before = now;
}

static void
plug_meter(struct world *w)
{
    loop_at_end(w->loop, LOOP_STAGE_SEND, measure, w->channel);
}

static struct id
send_large(struct world *w)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char *piece = memory_new(SIZE);
    memset(piece, 'x', SIZE);
    e->sender = envelope_text(e, TEXT("ann@a.test"));
    if (!envelope_add(e, TEXT("good@b.test"), NOTIFY_NEVER, TEXT("")))
        abort();
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), SIZE, &refusal);
    if (draft == NULL || !queue_write(draft, text_of(piece, SIZE)))
        abort();
    queue_name(draft, e);
    struct id id = e->id;
    queue_commit(&draft, &e, world_stored, w);
    free(piece);
    world_turns(w);
    return id;
}

static void
damage(const struct world *w, struct id id)
{
    char path[200], name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(path, sizeof(path), "%s/mess/%s", w->folder, name);
    if (!sim_disk_damage(path, SIZE / 2))
        abort();
}

static size_t
files(const struct world *w, const char *space)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", w->folder, space);
    return sim_disk_count(path);
}

/* Messages of SIZE bytes wait when a daemon starts. */
static void
test_bytes(bool damaged, bool foreign, bool background)
{
    struct world w;
    struct meter meter = {.world = &w};
    struct id ids[COUNT];
    printf("# %s, %s, synced %s\n", damaged ? "damaged" : "whole",
           foreign ? "foreign" : "own", background ? "in the background" : "at once");
    sim_disk_reset();
    sim_disk_set_user(DAEMON);
    sim_disk_set_syncing(DISK_SYNC_AIO, 20);
    manager_world_begin(&w, "* smtp://sink.test");
    w.stalled = true;
    sim_disk_set_user(foreign ? STRANGER : DAEMON);
    for (unsigned i = 0; i < COUNT; i++)
        ids[i] = send_large(&w);
    world_stop(&w);
    sim_disk_set_user(DAEMON);
    for (unsigned i = 0; damaged && i < COUNT; i++)
        damage(&w, ids[i]);
    w.channel = &meter;
    w.plug = plug_meter;
    w.background = background;
    manager_world_start(&w);
    world_turns(&w);
    is_number(queue_health(manager_queue(w.manager)).quarantined, damaged ? COUNT : 0,
              "what is damaged is put aside");
    is_number((int64_t)meter.before, (int64_t)COUNT * SIZE, "all of it was read, once");
    is_number((int64_t)meter.most, BUDGET, "some of it in a turn");
    is_number((int64_t)meter.turns, (int64_t)COUNT * SIZE / BUDGET,
              "which are no more than there need be");
    is_number((int64_t)files(&w, "pid"), 0, "no copy is left");
    w.all_good = true;
    world_unstall(&w);
    world_turns(&w);
    is_number(w.attempts, damaged ? 0 : COUNT, "the others are delivered");
    manager_world_end(&w);
}

int
main(void)
{
    test_bytes(false, false, false);
    test_bytes(true, false, false);
    test_bytes(false, true, false);
    test_bytes(true, true, false);
    test_bytes(false, true, true);
    test_bytes(true, true, true);
    return done();
}
