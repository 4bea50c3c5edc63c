/* The defragment channel, killed or without power at every change of the disk: each
 * recipient gets the whole, once, in any case (doc/defragment.md "Crashes").
 */
/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
#include "t/support/channel_world.h"
#include "t/support/known.h"
#include "t/sim/sim_disk.h"

#include <inttypes.h>

enum {
    SLOW = TAP_ADDRESS_SANITIZER,
    PARTS = 3,
    ALONE_MAX = SLOW ? 4 : 11,
    AGAIN_STEP = SLOW ? 11 : 1,
    RELEASED_MS = 11 * 60 * 1000
};

/* The shortest time: what ticks meanwhile costs. */
#define ROUTES "z smtp://h\n* smtp://h?defragment=yes&notices=20m"
#define WHOLE  "From: a@x\r\nSubject: whole\r\n\r\none\r\ntwo\r\nthree\r\n"

static const char *const bodies[PARTS] = {"Subject: whole\r\n\r\none\r\n", "two\r\n",
                                          "three\r\n"};

/* The properties at the end. */
struct promise {
    unsigned accepted; /* bits of parts */
    bool arrived;      /* at a@y, before the machine went */
    struct id id;      /* as this */
};

/* The world as it is after a change, still with power. */
struct moment {
    struct world *world;
    struct promise promise;
};
struct moments {
    struct moment *rows;
    size_t count;
};

struct run {
    struct stage stage;
    int64_t journal, message_max; /* of the queue's settings */
    bool background;
    bool adopts; /* the next start has no journal: all of the old one becomes files */
    bool alike;  /* all parts have one recipient: none of them stays */
    bool aside;  /* c@z gets the parts at once, so that they have files, and marks */
    struct promise promise;
    struct moments *moments; /* are added to */
    uint64_t point, second;  /* the changes after which it was cut; second 0: once */
    struct sim_cut first, cut;
    unsigned part; /* that is being sent, or was sent last */
    int64_t now_ms;
    struct known *known; /* states judged: most cuts leave one that another has left */
    uint64_t points, cuts, states, wrong;
};

static void
note_promise(struct run *r)
{
    const struct stage *s = &r->stage;
    if (r->part > 0 && s->w.accepted)
        r->promise.accepted |= 1U << r->part;
    for (unsigned i = 0; i < s->count; i++)
        if (memmem(s->delivered[i].content.at, s->delivered[i].content.length,
                   "message/partial", 15) == NULL) {
            r->promise.arrived = true;
            r->promise.id = s->delivered[i].id;
        }
}

static void
on_change(void *context)
{
    struct run *r = context;
    struct moments *m = r->moments;
    note_promise(r);
    m->rows = memory_resize(m->rows, (m->count + 1) * sizeof(*m->rows));
    m->rows[m->count++] = (struct moment){sim_disk_copy(), r->promise};
}

static void
watch(struct run *r, struct moments *m)
{
    *m = (struct moments){0};
    r->moments = m;
    sim_disk_on_change(on_change, r);
}

static void
moments_free(struct moments *m)
{
    for (size_t i = 0; i < m->count; i++)
        sim_disk_free(&m->rows[i].world);
    free(m->rows);
}

/* Whether the current world, with its promises, is new. */
static bool
is_news(struct run *r, uint64_t salt)
{
    const struct promise *p = &r->promise;
    uint64_t key = known_mix(known_mix(sim_disk_digest(), p->accepted + p->arrived * 2U), salt);
    if (p->arrived)
        key = known_mix(key, p->id.hash);
    return known_is_news(&r->known, key);
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
    manager_world_start(&s->w);
}

/* Two recipients; the second is not in all parts: so some are ended, others are marked,
 * unless they are alike. */
static void
work(struct run *r)
{
    struct stage *s = &r->stage;
    for (unsigned n = 1; n <= PARTS; n++) {
        s->w.accepted = false;
        r->part = n;
        char to[40];
        snprintf(to, sizeof(to), "a@y%s%s", n == 2 && !r->alike ? " b@y" : "",
                 r->aside ? " c@z" : "");
        stage_part_to(s, "a@x", to, "i", n, PARTS, bodies[n - 1]);
        note_promise(r);
    }
    for (unsigned i = 0; i < 10; i++)
        world_turns(&s->w);
    r->part = 0;
}

static void
complain(struct run *r, const char *what)
{
    if (r->wrong++ < 3)
        printf("# point %" PRIu64 ", %s (%zu), again at %" PRIu64 ", %s (%zu): %s\n"
               "%.*s\n",
               r->point, sim_cut_name(r->first.kind), r->first.item, r->second,
               sim_cut_name(r->cut.kind), r->cut.item, what,
               TEXT_ARGS(buffer_text(&r->stage.w.lines)));
}

static size_t
left_in(const struct stage *s, const char *space)
{
    char path[60];
    snprintf(path, sizeof(path), "%s/%s", s->w.folder, space);
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
    /* b@y is owed part 2, as it is; a@y nothing more. */
    stage_clear(s);
    sim_loop_advance(s->w.loop, RELEASED_MS);
    unsigned owed = 0, pieces = 0;
    for (unsigned i = 0; i < s->count; i++) {
        owed += strcmp(s->delivered[i].to, "b@y") == 0;
        pieces += strcmp(s->delivered[i].to, "a@y") == 0;
    }
    if (owed != 1 && !r->alike && (r->promise.accepted & 4U) != 0)
        complain(r, "the other's fragment is lost, or there twice");
    if (pieces > 0 && (wholes > 0 || r->promise.arrived))
        complain(r, "a fragment of what has arrived goes on as well");
    struct sched_counts counts = sched_count(manager_sched(s->w.manager));
    if (left_in(s, "info") + left_in(s, "todo") > 0 ||
        counts.incoming + counts.active + counts.deferred > 0)
        complain(r, "something stays behind");
    if (left_in(s, "defrag") > 0)
        complain(r, "a mark stays behind");
    if (r->adopts && left_in(s, "journal") > 0 && left_in(s, "corrupt") == 0)
        complain(r, "a journal stays behind, or the mark of a whole");
    r->states++;
}

/* Into a copy of `world`, with its power cut so; the caller has the world before. */
static struct world *
enter(struct world *world, struct sim_cut cut)
{
    struct world *before = sim_disk_exchange(world), *copy = sim_disk_copy();
    (void)sim_disk_exchange(copy);
    sim_disk_cut(cut);
    return before;
}

static void
leave(struct world *before)
{
    struct world *copy = sim_disk_exchange(before);
    sim_disk_free(&copy);
}

/* A process there. */
static void
start_again(struct run *r)
{
    struct stage *s = &r->stage;
    stage_clear(s);
    buffer_clear(&s->w.lines);
    r->now_ms = loop_now_ms(s->w.loop);
    s->w.settings.queue.journal_size = r->adopts ? 0 : r->journal;
    manager_world_start(&s->w);
}

static void
stop_again(struct run *r)
{
    struct stage *s = &r->stage;
    stage_stop(s);
    sim_loop_step_wall(s->w.loop, r->now_ms - loop_now_ms(s->w.loop));
    loop_turn(s->w.loop, 0);
}

static void
come_back(struct run *r, struct world *broken, struct sim_cut cut)
{
    struct world *before = enter(broken, cut);
    r->cuts++;
    r->cut = cut;
    if (is_news(r, 1)) {
        start_again(r);
        sim_loop_advance(r->stage.w.loop, 10 * 1000);
        judge(r);
        stop_again(r);
    }
    leave(before);
}

static size_t
count_cuts(struct world *broken, enum sim_cut_kind kind)
{
    struct world *before = sim_disk_exchange(broken);
    size_t count = sim_disk_cuts(kind);
    (void)sim_disk_exchange(before);
    return count < ALONE_MAX ? count : ALONE_MAX;
}

static void
come_back_from(struct run *r, const struct moment *m, enum sim_cut_kind kind)
{
    size_t count = count_cuts(m->world, kind);
    for (size_t i = 0; i < count; i++) {
        r->promise = m->promise;
        come_back(r, m->world, (struct sim_cut){kind, i});
    }
}

/* Records the recovery from such a cut. False: it is known. */
static bool
record_recovery(struct run *r, const struct moment *m, struct sim_cut cut,
                struct moments *second)
{
    struct world *before = enter(m->world, cut);
    r->promise = m->promise;
    bool news = is_news(r, 2);
    if (news) {
        watch(r, second);
        start_again(r);
        sim_loop_advance(r->stage.w.loop, 3000);
        sim_disk_on_change(NULL, NULL);
        stop_again(r);
    }
    leave(before);
    return news;
}

/* The recovery is cut off as well. */
static void
break_again(struct run *r, const struct moment *m, struct sim_cut cut)
{
    static const enum sim_cut_kind kinds[] = {SIM_CUT_ALL, SIM_CUT_NOTHING,
                                              SIM_CUT_ALONE};
    struct moments second;
    if (!record_recovery(r, m, cut, &second))
        return;
    r->first = cut;
    for (size_t i = r->point % AGAIN_STEP; i < second.count; i += AGAIN_STEP) {
        r->second = i + 1;
        for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
            come_back_from(r, &second.rows[i], kinds[k]);
    }
    moments_free(&second);
    r->second = 0;
}

static void
cut_everything(struct run *r, const struct moment *m)
{
    static const enum sim_cut_kind kinds[] = {
        SIM_CUT_ALL, SIM_CUT_NOTHING, SIM_CUT_ALONE, SIM_CUT_ALL_BUT, SIM_CUT_TORN};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        come_back_from(r, m, kinds[k]);
    for (size_t k = 0; k < 2; k++)
        break_again(r, m, (struct sim_cut){kinds[k], 0});
}

static void
run(struct run *r)
{
    struct stage *s = &r->stage;
    struct moments first;
    begin(r);
    watch(r, &first);
    work(r);
    sim_disk_on_change(NULL, NULL);
    stage_stop(s);
    for (size_t i = 0; i < first.count && r->wrong == 0; i += SLOW ? 3 : 1) {
        r->point = i + 1;
        r->points++;
        cut_everything(r, &first.rows[i]);
    }
    moments_free(&first);
    known_forget(&r->known);
    manager_world_start(&s->w); /* for its end */
    stage_end(s);
}

static void
test_all(struct run r, const char *name)
{
    char words[140];
    run(&r);
    snprintf(words, sizeof(words),
             "check 45: %s: %" PRIu64 " points, %" PRIu64 " cuts, %" PRIu64 " states",
             name, r.points, r.cuts, r.states);
    ok_named(r.wrong == 0 && r.cuts > 50, words);
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
    test_all((struct run){.alike = true}, "files, of one recipient");
    test_all((struct run){.journal = 1024 * 1024, .message_max = 10000, .aside = true},
             "with marks");
    test_all((struct run){.journal = 1024 * 1024, .message_max = 10000, .adopts = true},
             "a journal that is adopted");
    test_all((struct run){.journal = 1024 * 1024,
                          .message_max = 1,
                          .adopts = true,
                          .alike = true,
                          .background = true},
             "... with contents in files, of one recipient");
    return done();
}
