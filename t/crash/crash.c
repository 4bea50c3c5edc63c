/* Cuts the power at every change of the disk in every workload, in every way, and looks
 * whether anything was lost, torn, told twice or left behind
 * (doc/dev/design.md "Crash invariants").
 *
 * crash [rounds [seed]]: rounds of workloads that are left to chance, after the fixed
 * ones; 0 = until enough states have been judged. CRASH_SCENARIO, CRASH_SETUP (0 =
 * files, 1 = journal, 2 = the smallest one), CRASH_POINT, CRASH_SLICES (at most so many) and CRASH_LOG=1
 * repeat what was reported, with the log. */
#include "t/crash/cuts.h"

#include "t/support/tap.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { SLOW = TAP_ADDRESS_SANITIZER };

enum {
    STATES = SLOW ? 8000 : 30000, /* of a bounded run */
    ROUNDS_MAX = 2000,
    SEGMENT = 65536,
    SETUPS = 3 /* files alone; with a small journal; with the smallest one */
};

struct options {
    uint64_t rounds, seed;
    const char *scenario;
    int setup; /* < 0: all */
    struct setup setups[SETUPS];
    struct limits limits;
};

static uint64_t
number_from(const char *text, uint64_t preset)
{
    return text != NULL ? strtoull(text, NULL, 10) : preset;
}

static bool
is_wanted(const struct options *o, const struct scenario *s, const struct setup *setup)
{
    bool fits = s->fills ? setup->journal_size > 0 : setup != &o->setups[SETUPS - 1];
    return fits && (o->scenario == NULL || strcmp(o->scenario, s->name) == 0) &&
           (o->setup < 0 || setup == &o->setups[o->setup]);
}

static void
add_tally(struct tally *all, const struct tally *t)
{
    all->points += t->points;
    all->states += t->states;
    all->recovery_states += t->recovery_states;
    all->duplicates += t->duplicates;
    all->found += t->found;
    all->unasked += t->unasked;
    all->quarantined += t->quarantined;
    all->copied += t->copied;
    all->sliced += t->sliced;
    all->stepped += t->stepped;
    all->wrong += t->wrong;
    for (unsigned i = 0; i < SIM_CUT_KINDS; i++)
        all->kinds[i] += t->kinds[i];
}

static void
run_one(const struct options *o, const struct scenario *s, const struct setup *setup,
        uint64_t seed, struct tally *all)
{
    struct tally t = {0};
    char label[160];
    if (!is_wanted(o, s, setup))
        return;
    (void)cuts_run(s, setup, seed, &o->limits, &t);
    snprintf(label, sizeof(label),
             "%s, %s, seed %" PRIu64 ": %" PRIu64 " points, %" PRIu64 " states",
             s->name, setup->journal_size > 0 ? "journal" : "files", seed, t.points,
             t.states);
    ok_named(t.wrong == 0 && t.states > 0, label);
    add_tally(all, &t);
}

/* Each call fails once, then the power at the end. */
static void
run_errors(const struct options *o, const struct scenario *s, const struct setup *setup,
           int error, struct tally *all)
{
    struct tally t = {0};
    struct limits limits = o->limits;
    char label[160];
    uint64_t step = SLOW ? 29 : s->fails ? 1 : 3;
    if (!is_wanted(o, s, setup) || limits.point > 0)
        return;
    limits.each = 3;
    limits.again = 0;
    limits.step = 1;
    limits.error = error;
    limits.fail_at = 1 + o->seed % step;
    while (t.wrong == 0 && cuts_run(s, setup, o->seed, &limits, &t))
        limits.fail_at += step;
    snprintf(label, sizeof(label),
             "%s, %s: error %d at %" PRIu64 " calls, %" PRIu64 " states", s->name,
             setup->journal_size > 0 ? "journal" : "files", error, t.points, t.states);
    ok_named(t.wrong == 0 && t.states > 0, label);
    add_tally(all, &t);
}

static void
print_tally(const struct tally *t)
{
    printf("# %" PRIu64 " crash points, %" PRIu64
           " states recovered, drained and checked"
           " (%" PRIu64 " of them in a recovery), %" PRIu64 " wrong\n",
           t->points, t->states, t->recovery_states, t->wrong);
    printf("# %" PRIu64 " more looked like one of these; %" PRIu64
           " restored from a copy, %" PRIu64 " with other slices, %" PRIu64
           " with another clock\n",
           t->duplicates, t->copied, t->sliced, t->stepped);
    printf("# %" PRIu64 " messages compared, %" PRIu64
           " of them never acknowledged; %" PRIu64
           " remains of finished ones quarantined\n",
           t->found, t->unasked, t->quarantined);
    for (unsigned i = 0; i < SIM_CUT_KINDS; i++)
        printf("#   %-20s %" PRIu64 "\n", sim_cut_name((enum sim_cut_kind)i),
               t->kinds[i]);
    printf("# %.1f s of CPU\n", (double)clock() / CLOCKS_PER_SEC);
}

/* A failed assertion somewhere below: after which cut? */
static void
on_abort(int number)
{
    char where[300];
    cuts_where(where, sizeof(where));
    printf("# %s: killed by signal %d\n", where, number);
    fflush(stdout);
    signal(number, SIG_DFL);
    raise(number);
}

int
main(int count, char **words)
{
    struct options o = {
        .rounds = count > 1 ? number_from(words[1], 0) : 0,
        .seed = count > 2 ? number_from(words[2], 1) : 1,
        .scenario = getenv("CRASH_SCENARIO"),
        .setup = (int)number_from(getenv("CRASH_SETUP"), 99),
        .limits = {.each = 12, .random = 3, .again = 40, .step = 1}
    };
    if (o.rounds == 0 && !SLOW) {
        o.limits.each = 3;
        o.limits.random = 1;
    }
    unsigned slices_max = (unsigned)number_from(getenv("CRASH_SLICES"), SLICES_MAX);
    struct tally all = {0};
    if (o.setup >= SETUPS)
        o.setup = -1;
    o.setups[0] = (struct setup){.slices_max = slices_max};
    o.setups[1] = (struct setup){.journal_size = 6 * SEGMENT,
                                 .journal_message_max = 20000,
                                 .journal_segment = SEGMENT,
                                 .slices_max = slices_max};
    o.setups[2] = o.setups[1];
    o.setups[2].journal_size = 4 * SEGMENT;
    o.limits.point = number_from(getenv("CRASH_POINT"), 0);
    if (SLOW)
        o.limits = (struct limits){
            .each = 4, .random = 1, .again = 40, .step = 7, .point = o.limits.point};
    signal(SIGABRT, on_abort);
    signal(SIGSEGV, on_abort);
    for (unsigned i = 0; i + 1 < scenario_count; i++)
        for (unsigned k = 0; k < SETUPS; k++) {
            run_one(&o, &scenarios[i], &o.setups[k], o.seed, &all);
            run_errors(&o, &scenarios[i], &o.setups[k], EIO, &all);
            run_errors(&o, &scenarios[i], &o.setups[k], ENOSPC, &all);
        }
    const struct scenario *any = &scenarios[scenario_count - 1];
    for (uint64_t i = 0; i < (o.rounds > 0 ? o.rounds : ROUNDS_MAX); i++)
        for (unsigned k = 0; k < SETUPS; k++)
            if (o.rounds > 0 || all.states < STATES)
                run_one(&o, any, &o.setups[k], o.seed + i, &all);
    print_tally(&all);
    if (o.rounds == 0 && o.scenario == NULL)
        ok_named(all.states >= STATES, "enough states");
    return done();
}
