/* Cuts the power wherever a workload can be cut. */
#include "t/crash/cuts.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINTS_MAX = 3 };

/* The states judged already. */
struct known_states {
    uint64_t *keys; /* 0: free */
    size_t count, capacity;
};

struct run {
    const struct scenario *scenario;
    const struct setup *setup;
    const struct limits *limits;
    struct tally *tally;
    struct known_states known, excused;
    struct work work;
    uint64_t seed, point, shadow_digest, wrong;
    /* within a recovery */
    bool recovering, disordered;
    uint64_t recovery_point;
    char outer[100]; /* the cut before it */
};

/* For cuts_where(). */
static const struct run *now;

static uint64_t
mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 27;
}

static void
insert(struct known_states *k, uint64_t key)
{
    size_t i = key & (k->capacity - 1);
    while (k->keys[i] != 0)
        i = (i + 1) & (k->capacity - 1);
    k->keys[i] = key;
    k->count++;
}

static bool
is_known(const struct known_states *k, uint64_t key)
{
    key |= key == 0;
    for (size_t i = key; k->capacity > 0 && k->keys[i & (k->capacity - 1)] != 0; i++)
        if (k->keys[i & (k->capacity - 1)] == key)
            return true;
    return false;
}

/* False: it was there. */
static bool
is_news(struct known_states *k, uint64_t key)
{
    key |= key == 0;
    if (is_known(k, key))
        return false;
    if (k->count * 2 >= k->capacity) {
        struct known_states larger = {.capacity =
                                          k->capacity > 0 ? k->capacity * 2 : 64};
        larger.keys = memory_array(larger.capacity, sizeof(*larger.keys));
        for (size_t i = 0; i < k->capacity; i++)
            if (k->keys[i] != 0)
                insert(&larger, k->keys[i]);
        free(k->keys);
        *k = larger;
    }
    insert(k, key);
    return true;
}

/* --- One state ------------------------------------------------------------------- */

static void
complain(struct run *r, const char *how, const struct comeback *c,
         const struct finding *v)
{
    r->tally->wrong++;
    if (r->wrong++ >= COMPLAINTS_MAX)
        return;
    printf("# %s, seed %" PRIu64 ", journal %" PRId64 ", point %" PRIu64 ": %s%s",
           r->scenario->name, r->seed, r->setup->journal_size, r->point, r->outer, how);
    printf("; then %u slices, clock %+" PRId64 " h%s: %s\n", c->slices,
           c->step_ms / 3600000, c->copied ? ", copied" : "", v->what);
    fflush(stdout);
}

static void
count_state(struct run *r, const struct comeback *c, const struct finding *v,
            enum sim_cut_kind kind)
{
    struct tally *t = r->tally;
    t->states++;
    t->recovery_states += r->recovering;
    t->kinds[kind]++;
    t->found += v->found;
    t->unasked += v->unasked;
    t->quarantined += v->quarantined;
    t->copied += c->copied;
    t->sliced += c->slices > 1;
    t->stepped += c->step_ms != 0;
}

/* A copy of the world without power; false: it looks like one that has been judged. The
 * caller has the world before. */
static bool
keeps_order(enum sim_cut_kind kind)
{
    switch (kind) {
    case SIM_CUT_ALL:
    case SIM_CUT_TORN:
    case SIM_CUT_GARBAGE:
        return true;
    case SIM_CUT_NOTHING: /* but one directory is synced before another */
    case SIM_CUT_ALONE:
    case SIM_CUT_ALL_BUT:
    case SIM_CUT_TORN_ALONE:
    case SIM_CUT_RANDOM:
    case SIM_CUT_KINDS:
        break;
    }
    return false;
}

static bool
enter_copy(struct run *r, struct sim_cut cut, struct world **before, uint64_t *key)
{
    *before = sim_disk_exchange(sim_disk_copy());
    sim_disk_cut(cut);
    *key = mix(sim_disk_digest(), r->shadow_digest);
    return is_news(&r->known, *key);
}

static void
leave_copy(struct world *before)
{
    struct world *copy = sim_disk_exchange(before);
    sim_disk_free(&copy);
}

static void
describe(struct sim_cut cut, char *out, size_t size)
{
    snprintf(out, size, "%s (%zu)", sim_cut_name(cut.kind), cut.item);
}

static void
judge_state(struct run *r, struct sim_cut cut, uint64_t key, bool counts)
{
    struct finding finding;
    char how[100];
    struct comeback comeback = comeback_any(key, r->setup->slices_max);
    comeback.ordered = keeps_order(cut.kind) && !r->disordered;
    judge(&r->work.shadow, r->setup, &comeback, &finding);
    if (counts)
        count_state(r, &comeback, &finding, cut.kind);
    if (finding.excused > 0)
        (void)is_news(&r->excused, key);
    describe(cut, how, sizeof(how));
    if (finding.wrong > 0)
        complain(r, how, &comeback, &finding);
}

/* False: nothing new. */
static bool
judge_cut(struct run *r, struct sim_cut cut, uint64_t *key)
{
    struct world *before;
    bool news = enter_copy(r, cut, &before, key);
    r->tally->duplicates += !news;
    /* A state excused for a disorderly cut is not excused when an orderly one leads
     * there. */
    if (news ||
        (keeps_order(cut.kind) && !r->disordered && is_known(&r->excused, *key)))
        judge_state(r, cut, *key, news);
    leave_copy(before);
    return news;
}

/* --- All states at a point ------------------------------------------------------- */

typedef void try_cut(struct run *r, struct sim_cut cut);

/* Up to `each` of count: the first, the last, and others by chance. */
static void
try_kind(struct run *r, enum sim_cut_kind kind, unsigned each, try_cut *try)
{
    size_t count = sim_disk_cuts(kind);
    if (kind == SIM_CUT_RANDOM && count > 0)
        count = r->limits->random;
    for (size_t i = 0; i < count && (i < each || kind == SIM_CUT_RANDOM); i++) {
        size_t item = i;
        if (kind == SIM_CUT_RANDOM)
            item = (size_t)mix(r->seed + r->recovery_point * 997, r->point * 1009 + i);
        else if (count > each && i == 1)
            item = count - 1;
        else if (count > each && i > 1)
            item = (size_t)(mix(r->point + r->recovery_point, i) % count);
        try(r, (struct sim_cut){kind, item});
    }
}

static void
on_recovery_change(void *context)
{
    struct run *r = context;
    static const enum sim_cut_kind kinds[] = {
        SIM_CUT_NOTHING, SIM_CUT_ALL, SIM_CUT_ALONE, SIM_CUT_ALL_BUT, SIM_CUT_GARBAGE};
    r->recovery_point++;
    r->recovering = true;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t count = sim_disk_cuts(kinds[i]);
        uint64_t key;
        if (count > 0)
            (void)judge_cut(r, (struct sim_cut){kinds[i], r->recovery_point % count},
                            &key);
    }
    r->recovering = false;
}

/* The power comes back, and goes again while the queue recovers. */
static void
cut_recovery(struct run *r, struct sim_cut cut, uint64_t key)
{
    struct world *before = sim_disk_exchange(sim_disk_copy());
    struct comeback comeback = comeback_any(mix(key, 1), r->setup->slices_max);
    char how[60];
    describe(cut, how, sizeof(how));
    snprintf(r->outer, sizeof(r->outer), "%s, %u slices recover; ", how,
             comeback.slices);
    sim_disk_cut(cut);
    r->recovery_point = 0;
    r->disordered = !keeps_order(cut.kind);
    sim_disk_on_change(on_recovery_change, r);
    judge_recover(r->setup, &comeback);
    r->recovery_point = 0;
    r->outer[0] = '\0';
    r->disordered = false;
    leave_copy(before);
}

static void
try_here(struct run *r, struct sim_cut cut)
{
    uint64_t key;
    bool news = judge_cut(r, cut, &key);
    if (news && r->limits->again > 0 && key % r->limits->again == 0)
        cut_recovery(r, cut, key);
}

static void
on_change(void *context)
{
    struct run *r = context;
    r->point++;
    if (r->wrong >= COMPLAINTS_MAX || r->point % r->limits->step != 0 ||
        (r->limits->point > 0 && r->point != r->limits->point))
        return;
    r->tally->points++;
    r->shadow_digest = shadow_digest(&r->work.shadow);
    for (enum sim_cut_kind kind = SIM_CUT_NOTHING; kind < SIM_CUT_KINDS; kind++)
        try_kind(r, kind, r->limits->each, try_here);
}

static void
cut_at_the_end(struct run *r)
{
    on_change(r);
    if (r->tally->wrong > 0)
        printf("#   after error %d at call %" PRIu64 "\n", r->limits->error,
               r->limits->fail_at);
}

bool
cuts_run(const struct scenario *scenario, const struct setup *setup, uint64_t seed,
         const struct limits *limits, struct tally *tally)
{
    struct run *r = memory_new(sizeof(*r));
    r->scenario = scenario;
    r->setup = setup;
    r->seed = seed;
    r->limits = limits;
    r->tally = tally;
    now = r;
    work_begin(&r->work, setup, seed);
    if (limits->fail_at > 0)
        sim_disk_fail_at(limits->fail_at, limits->error);
    else
        sim_disk_on_change(on_change, r);
    scenario->run(&r->work);
    bool failed = act_had_trouble(&r->work);
    if (r->work.hung) {
        tally->wrong++;
        printf("# %s, seed %" PRIu64 ", journal %" PRId64 ", fail at %" PRIu64
               ": T8: no answer\n",
               scenario->name, seed, setup->journal_size, limits->fail_at);
    }
    if (limits->fail_at > 0 && failed)
        cut_at_the_end(r);
    sim_disk_on_change(NULL, NULL);
    work_end(&r->work);
    now = NULL;
    free(r->known.keys);
    free(r->excused.keys);
    free(r);
    return failed;
}

void
cuts_where(char *out, size_t size)
{
    out[0] = '\0';
    if (now != NULL)
        snprintf(out, size,
                 "%s, seed %" PRIu64 ", journal %" PRId64 ", point %" PRIu64
                 ", fail at %" PRIu64 ": %s",
                 now->scenario->name, now->seed, now->setup->journal_size, now->point,
                 now->limits->fail_at, now->outer);
}
