/* What a turn reads from the disk: a budget of bytes, whether they are whole or not. */
/* link: t/sim/loop.c */
#include "t/manager_world.h"

#include <fcntl.h>

enum { COUNT = 10, SIZE = 3 * 1024 * 1024, BUDGET = 4 * 1024 * 1024 };

struct meter {
    struct world *world;
    uint64_t before, most;
};

static void
measure(void *context)
{
    struct meter *meter = context;
    uint64_t now = queue_bytes_read(manager_queue(meter->world->manager));
    if (now - meter->before > meter->most)
        meter->most = now - meter->before;
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
    int file = open(path, O_WRONLY);
    if (file < 0 || pwrite(file, "y", 1, SIZE / 2) != 1)
        abort();
    close(file);
}

static void
test_bytes(bool damaged)
{
    struct world w;
    struct meter meter = {.world = &w};
    struct id ids[COUNT];
    printf("# %s\n", damaged ? "damaged" : "whole");
    world_begin(&w, "* smtp://sink.test");
    w.stalled = true;
    for (unsigned i = 0; i < COUNT; i++)
        ids[i] = send_large(&w);
    world_stop(&w);
    for (unsigned i = 0; damaged && i < COUNT; i++)
        damage(&w, ids[i]);
    w.channel = &meter;
    w.plug = plug_meter;
    world_start(&w);
    world_turns(&w);
    is_number(queue_health(manager_queue(w.manager)).parked, damaged ? COUNT : 0,
              "what is damaged is put aside");
    ok_named(meter.before >= (uint64_t)COUNT * SIZE, "all of it was read");
    ok_named(meter.most > 0 && meter.most < BUDGET + SIZE, "some of it in a turn");
    world_end(&w);
}

int
main(void)
{
    test_bytes(false);
    test_bytes(true);
    return done();
}
