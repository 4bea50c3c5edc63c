/* The defragment channel, killed or without power at every change of the disk: each
 * recipient gets the whole, once, whatever happens (spec/defrag-mime.md §2.3, §7.45).
 */
/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
#include "t/channel_world.h"
#include "t/sim/sim_disk.h"

#include <inttypes.h>

enum {
    SLOW = TAP_ADDRESS_SANITIZER,
    PARTS = 3,
    ALONE_MAX = 4,
    AGAIN_STEP = SLOW ? 23 : 7
};

#define ROUTES "z smtp://h\n* smtp://h?defragment=yes&notices=2h"
#define WHOLE  "From: a@x\r\nSubject: whole\r\n\r\none\r\ntwo\r\nthree\r\n"

static const char *const bodies[PARTS] = {"Subject: whole\r\n\r\none\r\n", "two\r\n",
                                          "three\r\n"};

/* What must be true in the end. */
struct promise {
    unsigned accepted; /* bits of parts */
    bool arrived;      /* at a@y, before the machine went */
    struct id id;      /* as this */
};

struct run {
    struct stage stage;
    int64_t journal, message_max; /* of the queue's settings */
    bool background;
    bool adopts; /* the next start has no journal: all of the old one becomes files */
    bool aside;  /* c@z gets the parts at once, so that they have files, and marks */
    struct promise promise;
    uint64_t point, changes; /* the change that is the last; so far */
    struct sim_cut cut;
    struct world *broken; /* as the machine left it */
    bool is_over;
    unsigned part; /* that is being sent, or was sent last */
    int64_t now_ms;
    uint64_t states, wrong;
};

static void
note_arrivals(struct run *r)
{
    const struct stage *s = &r->stage;
    for (unsigned i = 0; i < s->count; i++)
        if (memmem(s->delivered[i].content.at, s->delivered[i].content.length,
                   "message/partial", 15) == NULL) {
            r->promise.arrived = true;
            r->promise.id = s->delivered[i].id;
        }
}

/* The world as it is at this change, without power. */
static void
on_change(void *context)
{
    struct run *r = context;
    if (++r->changes != r->point)
        return;
    r->broken = sim_disk_copy();
    if (r->part > 0 && r->stage.w.accepted)
        r->promise.accepted |= 1U << r->part;
    note_arrivals(r);
    r->is_over = true;
}

/* s->w.folder is a name of the simulated disk's. */
static void
begin(struct run *r)
{
    struct stage *s = &r->stage;
    stage_begin(s, ROUTES);
    stage_stop(s);
    sim_disk_reset();
    s->w.settings.queue.journal_size = r->journal;
    s->w.settings.queue.journal_segment = 65536;
    s->w.settings.queue.journal_message_max = r->message_max;
    s->w.background = r->background;
    world_start(&s->w);
}

/* Two recipients, the second of whom is not for all parts: so some are ended, others
 * are marked. */
static void
work(struct run *r)
{
    struct stage *s = &r->stage;
    for (unsigned n = 1; n <= PARTS && !r->is_over; n++) {
        s->w.accepted = false;
        r->part = n;
        char to[40];
        snprintf(to, sizeof to, "a@y%s%s", n == 2 ? " b@y" : "",
                 r->aside ? " c@z" : "");
        stage_part_to(s, "a@x", to, "i", n, PARTS, bodies[n - 1]);
        if (!r->is_over && s->w.accepted)
            r->promise.accepted |= 1U << n;
    }
    for (unsigned i = 0; i < 10 && !r->is_over; i++)
        world_turns(&s->w);
}

static void
complain(struct run *r, const char *what)
{
    if (r->wrong++ < 3)
        printf("# journal %" PRId64 ", point %" PRIu64 ", %s (%zu): %s\n%.*s\n",
               r->journal, r->point, sim_cut_name(r->cut.kind), r->cut.item, what,
               TEXT_ARGS(buffer_text(&r->stage.w.lines)));
}

static size_t
left_in(const struct stage *s, const char *room)
{
    char path[60];
    snprintf(path, sizeof path, "%s/%s", s->w.folder, room);
    return sim_disk_count(path);
}

/* After the crash: what is there is joined if it was all acknowledged. */
static void
judge(struct run *r)
{
    struct stage *s = &r->stage;
    unsigned wholes = 0, parts = 0;
    bool same = false;
    for (unsigned i = 0; i < s->count; i++) {
        const struct delivered *d = &s->delivered[i];
        if (strcmp(d->to, "c@z") == 0)
            continue; /* t/crash/ counts such */
        if (text_equal(buffer_text(&d->content), TEXT(WHOLE))) {
            wholes++;
            same = id_compare(d->id, r->promise.id) == 0;
        } else {
            parts++;
        }
    }
    if (parts > 0)
        complain(r, "a fragment went on by itself in time");
    if (wholes > 1)
        complain(r, "two wholes");
    if (wholes == 1 && r->promise.arrived && !same)
        complain(r, "it was joined and delivered twice");
    if (wholes == 0 && !r->promise.arrived && r->promise.accepted == (2U | 4U | 8U))
        complain(r, "the whole is lost");
    /* b@y is owed part 2, as it is. */
    stage_clear(s);
    sim_loop_advance(s->w.loop, 2 * STAGE_HALF_MS);
    unsigned owed = 0;
    for (unsigned i = 0; i < s->count; i++)
        owed += strcmp(s->delivered[i].to, "b@y") == 0;
    if (owed != 1 && (r->promise.accepted & 4U) != 0)
        complain(r, "the other's fragment is lost, or there twice");
    struct sched_counts counts = sched_count(manager_sched(s->w.manager));
    if (left_in(s, "info") + left_in(s, "todo") > 0 ||
        counts.incoming + counts.active + counts.deferred > 0)
        complain(r, "something stays behind");
    if (left_in(s, "defrag") > 0)
        complain(r, "a mark stays behind");
    r->states++;
}

/* A process in a copy of `world`, with its power cut so; the caller has the world
 * before. */
static struct world *
enter(struct run *r, struct world *world, struct sim_cut cut)
{
    struct stage *s = &r->stage;
    struct world *before = sim_disk_exchange(world), *copy = sim_disk_copy();
    (void)sim_disk_exchange(copy);
    sim_disk_cut(cut);
    stage_clear(s);
    buffer_clear(&s->w.lines);
    r->now_ms = loop_now_ms(s->w.loop);
    return before;
}

static void
leave(struct run *r, struct world *before)
{
    struct stage *s = &r->stage;
    stage_stop(s);
    sim_loop_step_wall(s->w.loop, r->now_ms - loop_now_ms(s->w.loop));
    loop_turn(s->w.loop, 0);
    struct world *copy = sim_disk_exchange(before);
    sim_disk_free(&copy);
}

static void
start_again(struct run *r)
{
    r->stage.w.settings.queue.journal_size = r->adopts ? 0 : r->journal;
    world_start(&r->stage.w);
}

static void
come_back(struct run *r, struct world *broken, struct sim_cut cut)
{
    struct world *before = enter(r, broken, cut);
    r->cut = cut;
    start_again(r);
    sim_loop_advance(r->stage.w.loop, 10 * 1000);
    judge(r);
    leave(r, before);
}

static size_t
count_cuts(struct world *broken, enum sim_cut_kind kind)
{
    struct world *before = sim_disk_exchange(broken);
    size_t count = sim_disk_cuts(kind);
    (void)sim_disk_exchange(before);
    return count < ALONE_MAX ? count : ALONE_MAX;
}

/* The recovery is cut off as well. False: it has no such point. */
static bool
break_again(struct run *r, struct world *broken, struct sim_cut cut, uint64_t point)
{
    static const enum sim_cut_kind kinds[] = {SIM_CUT_ALL, SIM_CUT_NOTHING};
    struct promise promise = r->promise;
    struct world *before = enter(r, broken, cut);
    r->point = point;
    r->changes = 0;
    r->part = 0;
    r->broken = NULL;
    sim_disk_on_change(on_change, r);
    start_again(r);
    sim_loop_advance(r->stage.w.loop, 3000);
    sim_disk_on_change(NULL, NULL);
    leave(r, before);
    struct world *again = r->broken;
    for (size_t k = 0; again != NULL && k < sizeof kinds / sizeof *kinds; k++)
        come_back(r, again, (struct sim_cut){kinds[k], 0});
    r->promise = promise;
    if (again == NULL)
        return false;
    sim_disk_free(&again);
    return true;
}

static void
cut_everything(struct run *r)
{
    static const enum sim_cut_kind kinds[] = {
        SIM_CUT_ALL, SIM_CUT_NOTHING, SIM_CUT_ALONE, SIM_CUT_ALL_BUT, SIM_CUT_TORN};
    struct world *broken = r->broken;
    uint64_t point = r->point;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        size_t count = count_cuts(broken, kinds[k]);
        for (size_t i = 0; i < count; i++) {
            struct sim_cut cut = {kinds[k], i};
            come_back(r, broken, cut);
            for (uint64_t at = 1 + point % AGAIN_STEP;
                 k < 2 && !r->adopts && break_again(r, broken, cut, at);
                 at += AGAIN_STEP)
                continue;
            r->point = point;
        }
    }
    sim_disk_free(&broken);
    r->broken = NULL;
}

/* False: there is no such point any more. */
static bool
run(struct run *r, uint64_t point)
{
    struct stage *s = &r->stage;
    r->point = point;
    r->changes = 0;
    r->is_over = false;
    r->promise = (struct promise){0};
    r->part = 0;
    begin(r);
    sim_disk_on_change(on_change, r);
    work(r);
    bool there = r->is_over;
    sim_disk_on_change(NULL, NULL);
    stage_stop(s);
    if (there)
        cut_everything(r);
    world_start(&s->w); /* for its end */
    stage_end(s);
    return there;
}

static void
test_all(struct run r, const char *name)
{
    uint64_t point = 1, step = SLOW ? 7 : 1;
    char words[100];
    while (r.wrong == 0 && run(&r, point))
        point += step;
    snprintf(words, sizeof words,
             "check 45: %s: %" PRIu64 " points, %" PRIu64 " states", name, point,
             r.states);
    ok_named(r.wrong == 0 && r.states > 50, words);
}

int
main(void)
{
    test_all((struct run){.journal = 1024 * 1024, .message_max = 10000}, "journal");
    test_all((struct run){.journal = 1024 * 1024, .message_max = 1},
             "contents in files");
    test_all(
        (struct run){.journal = 1024 * 1024, .message_max = 10000, .background = true},
        "synced in the background");
    test_all((struct run){0}, "files");
    test_all((struct run){.journal = 1024 * 1024, .message_max = 10000, .aside = true},
             "with marks");
    test_all((struct run){.journal = 1024 * 1024, .message_max = 10000, .adopts = true},
             "a journal that is adopted");
    return done();
}
