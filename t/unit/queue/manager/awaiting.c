/* Fragments in mail of sendmail(1): what waits for others, and is settled from elsewhere, are the members of aliases. */
/* link: t/sim/loop.c */
#include "queue/manager/manager_internal.h"
#include "t/support/injected.h"

enum { MINUTE_MS = 60 * 1000 };

/* A channel for which all wait until `passes`. */
struct waiting_room {
    struct aliases *aliases;
    struct manager_defragment channel;
    bool passes;
    unsigned offers, indexes[4];
    size_t count;
};

static enum manager_offered
room_offered(void *context, struct manager_offer *offer)
{
    struct waiting_room *r = context;
    r->offers++;
    if (offer->count == 0 || r->passes)
        return MANAGER_PASS;
    r->count = offer->count < 4 ? offer->count : 4;
    memcpy(r->indexes, offer->indexes, r->count * sizeof(*r->indexes));
    offer->until_ms = INT64_MAX - 1;
    return MANAGER_AWAIT;
}

static void
room_withdrawn(void *context, struct id id)
{
    (void)context;
    (void)id;
}

static bool
room_explains(void *context, struct id id, char *out, size_t size)
{
    (void)context;
    (void)id;
    (void)out;
    (void)size;
    return false;
}

static void
plug_room(struct world *w)
{
    struct waiting_room *r = w->channel;
    manager_set_aliases(w->manager, r->aliases, NULL);
    manager_set_defragment(w->manager, &r->channel);
}

static void
room_begin(struct world *w, struct waiting_room *r, const char *file)
{
    manager_world_begin(w, "frag.test smtp://x?defragment=yes\n* smtp://x");
    *r = (struct waiting_room){
        .channel = {.offer = room_offered, .withdrawn = room_withdrawn, .explain = room_explains, .context = r}};
    r->aliases = injected_aliases(w, file);
    w->channel = r;
    w->plug = plug_room;
    world_restart(w);
    world_stop(w);
}

static void
room_end(struct world *w, struct waiting_room *r)
{
    ok_named(world_is_empty(w), "nothing is left");
    manager_world_end(w);
    aliases_free(&r->aliases);
}

static void
room_settle(const struct world *w, const unsigned *indexes, size_t count)
{
    struct outcome whole = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "reassembled");
    struct id before = queue_enter(manager_queue(w->manager), w->id);
    ok(manager_settle_awaiting(w->manager, w->id, indexes, count, &whole));
    queue_leave(manager_queue(w->manager), before);
}

/* The rest passes. */
static void
room_opens(struct world *w, struct waiting_room *r)
{
    r->passes = true;
    (void)manager_resume(w->manager, w->id);
    sim_loop_advance(w->loop, 2 * MINUTE_MS);
}

/* Two of three are settled: the third is no other's. again: a restart comes between, and another table. */
static void
test_some(bool again)
{
    struct world w;
    struct waiting_room r;
    room_begin(&w, &r, "all: good@frag.test, good2@frag.test\n");
    injected_add(&w, "me@h.test", "all@h.test good@last.frag.test");
    manager_world_start(&w);
    is_number((long)r.count, 2, "the members wait for other fragments");
    world_saw(&w, "me@h.test>good@last.frag.test ", "the other is no fragment's");
    room_settle(&w, r.indexes, 1);
    world_turns(&w);
    room_opens(&w, &r);
    world_saw(&w, "me@h.test>good2@frag.test ", "one has it, the other gets it");
    room_end(&w, &r);

    room_begin(&w, &r, "all: good@frag.test, good2@frag.test\n");
    injected_add(&w, "me@h.test", "all@h.test good3@frag.test");
    manager_world_start(&w);
    is_number((long)r.count, 3, "all wait");
    if (again) {
        world_stop(&w);
        aliases_free(&r.aliases);
        r.aliases = injected_aliases(&w, "all: good4@frag.test\n");
        manager_world_start(&w);
    }
    room_settle(&w, r.indexes, 2);
    world_turns(&w);
    room_opens(&w, &r);
    world_saw(&w, "me@h.test>good3@frag.test ", "who has not been settled gets it");
    room_end(&w, &r);
}

/* One that startup has not offered yet, as after a crash: settled by what the reassembled message lists. */
static void
test_unloaded(void)
{
    struct world w;
    struct waiting_room r;
    room_begin(&w, &r, "all: good@frag.test, good2@frag.test\n");
    injected_add(&w, "me@h.test", "all@h.test good3@frag.test");
    w.settings.offline = true;
    char error[300];
    struct manager *m = NULL;
    if (manager_new(&m, w.loop, w.events, &w.settings, w.routes, error, sizeof(error)) != 0)
        abort();
    w.settings.offline = false;
    w.manager = m;
    plug_room(&w);
    room_settle(&w, (const unsigned[]){0, 1}, 2);
    manager_free(&m);
    w.manager = NULL;
    r.passes = true;
    manager_world_start(&w);
    world_saw(&w, "me@h.test>good3@frag.test ", "the members are settled, not those that the files name");
    room_end(&w, &r);
}

int
main(void)
{
    test_some(false);
    test_some(true);
    test_unloaded();
    return done();
}
