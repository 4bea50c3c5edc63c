/* After any event of the machine the journal keeps every acknowledged message and brings
 * nothing back: after every call to the disk the power is cut in every way, and after
 * the recovery it goes on and is cut again. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/disk_copy.c */
/* link: t/sim/disk_cut.c */
/* link: t/sim/loop.c */
#include "t/support/journal_kit.h"

/* One workload, watched. */
struct watch {
    struct kit *kit, *probe;
    uint64_t random;
    unsigned states, deep, wrong;
    unsigned depth; /* cuts within the recovery of a cut */
    unsigned every; /* how rarely a state is gone on with */
};

static unsigned copies_alone; /* found without what they are a copy of */

static uint64_t
chance(uint64_t *state, uint64_t below)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

/* --- A user at work -------------------------------------------------------------- */

static unsigned
pick_live(struct kit *k, uint64_t *random)
{
    unsigned start = k->count > 0 ? (unsigned)chance(random, k->count) : 0;
    for (unsigned i = 0; i < k->count; i++) {
        unsigned number = 1 + (start + i) % k->count;
        if (kit_is_live(&k->messages[number]))
            return number;
    }
    return 0;
}

static size_t
pick_size(const struct kit *k, uint64_t *random)
{
    size_t max = journal_payload_max(k->journal);
    switch (chance(random, 8)) {
    case 0:
        return max;
    case 1:
        return 0;
    case 2:
    case 3:
        return (size_t)chance(random, max);
    default:
        return (size_t)chance(random, 1500);
    }
}

static void
act(struct kit *k, uint64_t *random)
{
    unsigned live = pick_live(k, random);
    switch (chance(random, 10)) {
    case 0:
    case 1:
    case 2:
        (void)kit_accept_as(k, pick_size(k, random), chance(random, 8) == 0);
        break;
    case 3:
        if (live > 0)
            kit_mark(k, live, (size_t)chance(random, 300));
        break;
    case 4:
    case 5:
    case 6:
        if (k->hoards && chance(random, 4) > 0)
            (void)kit_accept_as(k, pick_size(k, random), chance(random, 3) == 0);
        else if (live > 0)
            kit_end(k, live, chance(random, 2) > 0 ? RECORD_END : RECORD_MOVED);
        break;
    case 7:
        if (chance(random, 4) == 0)
            kit_end_spool(k);
        break;
    case 8:
        journal_hurry(k->journal);
        if (k->copies && live > 0 && k->messages[live].marks == 0)
            (void)kit_copy(k, live);
        break;
    case 9:
        if (k->checkpoint_waits)
            kit_answer_checkpoint(k);
        break;
    }
}

static void
work(struct kit *k, uint64_t *random, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        act(k, random);
        if (chance(random, 3) == 0)
            kit_turn(k);
        if (chance(random, 20) == 0)
            kit_drain(k);
    }
}

/* --- Cuts ------------------------------------------------------------------------ */

static void
report(struct watch *w, const char *what, const char *error)
{
    if (w->wrong++ < 5)
        printf("# state %u, depth %u, %s: %s\n", w->states, w->depth, what, error);
}

static struct kit *
clone(const struct kit *k)
{
    struct kit *copy = kit_new(1, 1);
    copy->settings = k->settings;
    copy->count = k->count;
    copy->ends_crowded = k->ends_crowded;
    copy->copies = k->copies;
    copy->checkpoints = k->checkpoints;
    copy->hoards = k->hoards;
    copy->checkpoint_at_once = k->checkpoint_at_once;
    memcpy(copy->messages, k->messages, KIT_MESSAGES * sizeof(*k->messages));
    return copy;
}

static void cut_everywhere(void *context);

/* The world has just lost its power: start, look, perhaps go on. */
static void
recover(struct watch *w, const char *what)
{
    struct kit *before = w->kit, *k = clone(before);
    bool goes_on = w->depth == 0 && chance(&w->random, w->every) == 0;
    w->states++;
    kit_begin_process(k, chance(&w->random, 4) == 0, w->states);
    w->depth++;
    if (goes_on) {
        w->kit = k;
        w->deep++;
        k->count = before->count;
        sim_disk_on_change(cut_everywhere, w);
    }
    if (journal_kit_open(k) != 0)
        report(w, what, k->error);
    else if (!journal_kit_check(k, 0, what))
        report(w, what, "see above");
    copies_alone += k->alone;
    if (goes_on && k->journal != NULL) {
        kit_adopt(k);
        work(k, &w->random, 12);
    }
    sim_disk_on_change(NULL, NULL);
    w->depth--;
    w->kit = before;
    kit_end_process(k);
    kit_free(&k);
}

static void
cut_once(struct watch *w, struct sim_cut cut)
{
    struct world *now = sim_disk_exchange(sim_disk_copy());
    sim_disk_cut(cut);
    recover(w, sim_cut_name(cut.kind));
    struct world *copy = sim_disk_exchange(now);
    sim_disk_free(&copy);
}

static void
cut_everywhere(void *context)
{
    struct watch *w = context;
    if (w->wrong > 5)
        return;
    for (enum sim_cut_kind kind = SIM_CUT_NOTHING; kind < SIM_CUT_KINDS; kind++) {
        size_t items = sim_disk_cuts(kind);
        /* The largest spread; deep inside only some of it. */
        size_t most = w->depth > 0 ? 1 : kind == SIM_CUT_RANDOM ? 2 : 6;
        for (size_t i = 0; i < items && i < most; i++)
            cut_once(w, (struct sim_cut){kind, items <= most ? i
                                                             : chance(&w->random, items)});
    }
    sim_disk_on_change(cut_everywhere, w);
}

/* How far it has come. */
static uint64_t
last_sequence(const struct kit *k)
{
    uint64_t last = 0;
    for (unsigned i = 1; i <= k->count; i++)
        if (k->messages[i].place.sequence > last)
            last = k->messages[i].place.sequence;
    return last;
}

static void
test_workload(uint64_t seed, size_t blocks, bool blocking, bool checkpoints,
              unsigned steps, unsigned *states)
{
    struct watch w = {.random = seed, .every = 60};
    uint64_t random = seed;
    char name[120];
    sim_disk_reset();
    struct kit *k = w.kit = kit_new(blocks, 4);
    k->ends_crowded = seed % 6 != 1;
    k->checkpoints = checkpoints;
    k->hoards = seed % 3 == 1;
    k->copies = seed % 2 == 1;
    k->checkpoint_at_once = seed % 4 == 0;
    kit_begin_process(k, blocking, seed);
    sim_disk_on_change(cut_everywhere, &w);
    if (journal_kit_open(k) != 0)
        abort();
    work(k, &random, steps);
    sim_disk_on_change(NULL, NULL);
    snprintf(name, sizeof(name),
             "seed %u: %u cuts, %u gone on with; %u messages, %u refused, segment %u",
             (unsigned)seed, w.states, w.deep, k->count, k->refusals,
             (unsigned)last_sequence(k));
    ok_named(w.wrong == 0, name);
    ok(k->in_order && k->failures == 0);
    *states += w.states;
    kit_stop(&k);
}

/* Frees what a dead process has left in our memory. */
static void
bury(struct kit **k)
{
    struct disk_space space;
    sim_disk_die_at(1);
    (void)disk_space((*k)->disk, &space);
    kit_stop(k);
}

/* --- Faults ---------------------------------------------------------------------- */

/* The same work with the call-th call failing, then a kill, a restart, a check. False:
 * it had ended before. */
static bool
run_with_fault(uint64_t seed, uint64_t call, int error, bool dies, unsigned *wrong)
{
    uint64_t random = seed;
    struct kit *k = kit_start(16, 4, seed % 3 == 0);
    k->ends_crowded = seed % 5 > 0;
    k->hoards = seed % 4 == 1;
    k->copies = seed % 2 == 1;
    sim_disk_count_anew();
    if (dies)
        sim_disk_die_at(call);
    else
        sim_disk_fail_at(call, error);
    work(k, &random, 120);
    bool happened = dies ? sim_disk_is_dead() : sim_disk_has_failed();
    if (!dies && !k->in_order)
        ++*wrong;
    if (!dies)
        sim_loop_advance(k->loop, 20000); /* a second failure would wait 10 s */
    if (!dies && !journal_is_quiet(k->journal) && k->failures == 0)
        ++*wrong;
    kit_note_quiet(k);
    /* The process ends without a word; what it knew is what the clients were told. */
    struct kit *next = clone(k);
    if (chance(&random, 2) == 0)
        sim_disk_restart();
    else
        sim_disk_power_cut();
    kit_begin_process(next, false, seed);
    if (journal_kit_open(next) != 0 || !journal_kit_check(next, 0, dies ? "death" : "fault"))
        ++*wrong;
    if (*wrong > 0)
        printf("# seed %u, call %u, error %d: %s; damage at %s\n", (unsigned)seed,
               (unsigned)call, error, next->error, next->where);
    kit_end_process(next);
    kit_free(&next);
    bury(&k);
    return happened;
}

static void
test_faults(int error, bool dies, unsigned *states)
{
    unsigned runs = 0, wrong = 0;
    char name[80];
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t call = 1;
        while (wrong == 0 && run_with_fault(seed, call, error, dies, &wrong))
            call++;
        runs += (unsigned)call;
    }
    snprintf(name, sizeof(name), "%s at each of %u calls",
             dies ? "death" : error == EIO ? "EIO" : "ENOSPC", runs);
    ok_named(wrong == 0, name);
    *states += runs;
}

/* --- Restarts -------------------------------------------------------------------- */

/* Killed over and over, by a signal or by the power, in the middle of its work. */
static void
test_restarts(uint64_t seed)
{
    uint64_t random = seed;
    unsigned wrong = 0;
    struct kit *k = kit_start(16, 5, false);
    k->ends_crowded = true;
    k->copies = seed % 2 == 0;
    for (unsigned round = 0; round < 150 && wrong == 0; round++) {
        sim_disk_count_anew();
        sim_disk_die_at(1 + chance(&random, 40));
        work(k, &random, 20);
        struct kit *next = clone(k);
        if (chance(&random, 3) == 0)
            sim_disk_restart();
        else
            sim_disk_cut((struct sim_cut){SIM_CUT_RANDOM, (size_t)round});
        kit_begin_process(next, chance(&random, 2) == 0, seed + round);
        bool good = journal_kit_open(next) == 0 && journal_kit_check(next, 0, "restart");
        if (!good)
            printf("# seed %u, round %u: %s\n", (unsigned)seed, round, next->error);
        wrong += !good;
        bury(&k);
        sim_disk_restart();
        kit_end_process(next);
        k = next;
        kit_begin_process(k, chance(&random, 2) == 0, seed + round);
        if (journal_kit_open(k) != 0)
            wrong++;
        else
            kit_adopt(k);
    }
    ok_named(wrong == 0, "150 restarts in the middle of work");
    ok_named(k->count > 500, "which went on");
    kit_stop(&k);
}

int
main(void)
{
    unsigned states = 0, rounds = 1;
    const char *more = getenv("ROUNDS");
    if (more != NULL)
        rounds = (unsigned)strtoul(more, NULL, 10);
    for (uint64_t round = 0; round < rounds; round++)
        for (uint64_t seed = 1 + 8 * round; seed <= 8 + 8 * round; seed++)
            test_workload(seed, seed % 3 == 0 ? 32 : 16, seed % 4 == 0, seed % 2 == 0,
                          160, &states);
    ok_named(states >= 5000, "more than 5000 states");
    ok_named(copies_alone > 500, "copies were the only record of a message");
    printf("# %u cuts\n", states);
    test_faults(EIO, false, &states);
    test_faults(ENOSPC, false, &states);
    test_faults(0, true, &states);
    for (uint64_t seed = 1; seed <= 4; seed++)
        test_restarts(seed);
    return done();
}
