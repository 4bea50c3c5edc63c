/* The roof: runs of the whole MTA in virtual time, judged by a model (doc/hacking.md "The
 * roof").
 *
 * SEED=n of the first run, RUNS=n, MINUTES=n instead, TRACE=1 prints everything,
 * ONLY=reload,kill in place of the features that the seed draws, WITHOUT='mail:0-3' (plan.h).
 * KEPT=NAME: that file of t/roof/seeds alone. The first failure is shrunk and written,
 * as t/roof/seeds/NAME with KEEP=NAME. FAILURES=n: it ends after so many; FAST=1: no
 * shrinking. Without any of them also the tests of the roof and kept seeds, and, with FRESH=n, as many
 * fresh seeds from there on. Each run is a process of its own. */
#include "t/roof/shrink.h"

#include "t/support/tap.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RUNS = 100,
    FAILURES_SHOWN = 10,
    NAME_SIZE = 80,
    SEEDS_MAX = 200,
    SAME_SEEDS = 3,
    SEEDS_APART = 1000, /* of two seconds */
    EVENTS_SHRUNK = 300
};
#define KEPT "t/roof/seeds"

static struct outcome_of_run run; /* the last one */
static struct plan left_out;

/* NULL: it is unset, or empty as make leaves it. */
static const char *
wish_of(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static uint64_t
number_of(const char *name, uint64_t preset)
{
    const char *text = wish_of(name);
    return text != NULL ? strtoull(text, NULL, 10) : preset;
}

/* Each law can be broken, and says so. */
static void
test_laws(void)
{
    static const struct {
        const char *broken, *law, *only; /* NULL: mood */
    } rows[] = {
        {"once",            "once",    NULL      },
        {"whole",           "whole",   NULL      },
        {"in time",         "in time", NULL      },
        {"bounds",          "bounds",  NULL      },
        {"truth",           "truth",   NULL      },
        {"log",             "truth",   NULL      },
        {"fates",           "truth",   "relay"   },
        {"counts",          "truth",   NULL      },
        {"why",             "truth",   NULL      },
        {"clean",           "clean",   NULL      },
        {"metrics",         "truth",   "http"    },
        {"upgrade",         "start",   "upgrade" },
        {"once",            "once",    "group"   },
        {"shared rate",     "bounds",  "group"   },
        {"shared sessions", "bounds",  "group"   },
        {"cluster status",  "truth",   "group"   },
        {"joined",          "once",    "fragment"},
        {"policy",          "bounds",  "sts"     },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct wishes wishes = {.seed = 3,
                                .only = rows[i].only != NULL ? rows[i].only : "mood",
                                .broken = rows[i].broken};
        char name[NAME_SIZE];
        apart_run(&wishes, true, &run);
        snprintf(name, sizeof(name), "the law '%s' can be broken: %s", rows[i].law,
                 rows[i].broken);
        ok_named(!run.good && strcmp(run.law, rows[i].law) == 0, name);
    }
}

/* A run that is shrunk still breaks the law, and is much less. */
static void
test_shrinking(void)
{
    struct wishes wishes = {.seed = 5, .broken = "once"};
    char list[PLAN_TEXT_MAX];
    apart_run(&wishes, true, &run);
    uint64_t before = run.events;
    is_text(text_from(run.law), TEXT("once"), "a run breaks a law");
    (void)shrink_run(&wishes, SHRINK_RUNS_MAX, &run);
    uint64_t after = run.events;
    plan_write(&run.plan, list);
    ok_named(plan_read(&left_out, text_from(list)),
             "what a shrunk run omits can be read");
    wishes.plan = &left_out;
    apart_run(&wishes, true, &run);
    ok_named(strcmp(run.law, "once") == 0 && run.events == after && after < before &&
                 after <= EVENTS_SHRUNK,
             "a shrunk run breaks the same law with few events");
    printf("# %" PRIu64 " events became %" PRIu64 "\n", before, after);
}

/* A line of t/roof/seeds/NAME: SEED [ONLY|* [what the plan omits]]. */
static bool
read_kept(char *line, struct wishes *wishes)
{
    struct text rest = text_trim(text_from(line)), seed, only = TEXT("");
    if (!text_word(&rest, " ", &seed) || !text_number(seed, UINT64_MAX, &wishes->seed))
        return false;
    (void)text_word(&rest, " ", &only);
    wishes->only = NULL;
    if (only.length > 0 && !text_equal(only, TEXT("*"))) {
        char *end = line + (only.at - line) + only.length;
        wishes->only = line + (only.at - line);
        rest = *end != '\0' ? text_from(end + 1) : TEXT("");
        *end = '\0';
    }
    wishes->plan = &left_out;
    return plan_read(&left_out, text_trim(rest));
}

static bool
run_kept(const char *name, bool traced)
{
    char path[2 * NAME_SIZE];
    static char line[PLAN_TEXT_MAX];
    snprintf(path, sizeof(path), KEPT "/%.79s", name);
    FILE *f = fopen(path, "r");
    bool good = f != NULL;
    while (good && fgets(line, sizeof(line), f) != NULL) {
        struct wishes wishes = {.traced = traced};
        if (line[0] == '#')
            continue;
        good = read_kept(line, &wishes);
        if (!good)
            break;
        apart_run(&wishes, false, &run);
        good = run.good;
    }
    if (f != NULL)
        fclose(f);
    return good;
}

/* Runs that once found something. */
static void
test_kept_seeds(void)
{
    DIR *folder = opendir(KEPT);
    struct dirent *entry;
    static char names[SEEDS_MAX][NAME_SIZE];
    size_t count = 0;
    while (folder != NULL && count < SEEDS_MAX && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            snprintf(names[count++], NAME_SIZE, "%.79s", entry->d_name);
    if (folder != NULL)
        closedir(folder);
    qsort(names, count, NAME_SIZE,
          (int (*)(const void *, const void *))(void (*)(void))strcmp);
    for (size_t i = 0; i < count; i++)
        ok_named(run_kept(names[i], false), names[i]);
}

/* The same seed is the same run. */
static void
test_sameness(void)
{
    for (uint64_t seed = 1; seed <= SAME_SEEDS; seed++) {
        struct wishes wishes = {.seed = seed * 1000,
                                .only = "mood,kill,stop,path,operator"};
        apart_run(&wishes, true, &run);
        struct tally a = run.tally;
        bool good = run.good;
        apart_run(&wishes, true, &run);
        struct tally b = run.tally;
        ok_named(good && run.good && a.hash == b.hash && a.turns == b.turns,
                 "the same seed gives the same trace");
    }
}

static void
add(struct tally *all, const struct tally *t)
{
    all->runs++;
    all->turns += t->turns;
    all->virtual_ms += t->virtual_ms;
    all->messages += t->messages;
    all->recipients += t->recipients;
    all->stored += t->stored;
    all->reported += t->reported;
    all->twice += t->twice;
    all->kills += t->kills;
    all->cuts += t->cuts;
    all->reloads += t->reloads;
    all->starts += t->starts;
    all->commands += t->commands;
    all->compared += t->compared;
    all->explained += t->explained;
}

/* A file for t/roof/seeds/, named by KEEP, or in the build. */
static void
keep(const struct wishes *wishes)
{
    static char list[PLAN_TEXT_MAX];
    char path[2 * NAME_SIZE];
    const char *name = wish_of("KEEP"), *build = wish_of("BUILD");
    if (name != NULL)
        snprintf(path, sizeof(path), KEPT "/%.79s", name);
    else
        snprintf(path, sizeof(path), "%.79s/roof-%" PRIu64,
                 build != NULL ? build : "build", wishes->seed);
    plan_write(&run.plan, list);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        printf("# %s cannot be written\n", path);
        return;
    }
    fprintf(f, "# %s: %s\n%" PRIu64 " %s %s\n", run.law[0] != '\0' ? run.law : "ends",
            run.reason, wishes->seed, wishes->only != NULL ? wishes->only : "*", list);
    fclose(f);
    printf("# it is in %s: %" PRIu64 " %s %s\n", path, wishes->seed,
           wishes->only != NULL ? wishes->only : "*", list);
}

static void
shrink(const struct wishes *wishes)
{
    uint64_t before = run.events;
    unsigned runs = shrink_run(wishes, SHRINK_RUNS_MAX, &run);
    if (run.good) {
        printf("# another run of seed %" PRIu64 " is good\n", wishes->seed);
        return;
    }
    printf("# %" PRIu64 " events became %" PRIu64 " in %u runs\n", before, run.events,
           runs);
    keep(wishes);
}

struct range {
    uint64_t first, runs;
    time_t end; /* in place of runs, unless 0 */
    unsigned failures_max;
};

/* The number that failed. */
static unsigned
run_seeds(const struct range *r, struct wishes wishes, struct tally *all)
{
    unsigned failed = 0;
    for (uint64_t i = 0; r->end > 0 ? time(NULL) < r->end : i < r->runs; i++) {
        char name[NAME_SIZE];
        wishes.seed = r->first + i;
        apart_run(&wishes, false, &run);
        if (run.good) {
            add(all, &run.tally);
            if (r->runs == 1 && r->end == 0)
                printf("# hash %016" PRIx64 "\n", run.tally.hash);
            continue;
        }
        snprintf(name, sizeof(name), "seed %" PRIu64, wishes.seed);
        ok_named(false, name);
        if (failed++ == 0 && wish_of("FAST") == NULL)
            shrink(&wishes);
        if (failed == r->failures_max)
            break;
    }
    return failed;
}

static void
print_tally(const struct tally *all)
{
    printf("# %u runs, %" PRId64 " virtual seconds, %" PRIu64
           " turns; %u messages, %u recipients, %u stored, %u twice, %u reported\n",
           all->runs, all->virtual_ms / 1000, all->turns, all->messages,
           all->recipients, all->stored, all->twice, all->reported);
    printf("# %u starts, %u kills, %u power cuts, %u reloads, %u commands; %u times "
           "all was "
           "compared, %u reasons were judged\n",
           all->starts, all->kills, all->cuts, all->reloads, all->commands,
           all->compared, all->explained);
}

int
main(void)
{
    struct tally all = {0};
    unsigned failed = 0;
    struct wishes wishes = {.only = wish_of("ONLY"),
                            .traced = number_of("TRACE", 0) != 0};
    struct range r = {.first = number_of("SEED", 1),
                      .runs = number_of("RUNS", RUNS),
                      .failures_max = (unsigned)number_of("FAILURES", FAILURES_SHOWN)};
    uint64_t minutes = number_of("MINUTES", 0);
    bool is_all = wish_of("SEED") == NULL && wish_of("RUNS") == NULL && minutes == 0 &&
                  wishes.only == NULL && wish_of("KEPT") == NULL;
    if (wish_of("WITHOUT") != NULL) {
        wishes.plan = &left_out;
        if (!plan_read(&left_out, text_from(wish_of("WITHOUT"))))
            return fprintf(stderr, "WITHOUT is not a list as mail:0-3.7 kill:2\n"), 64;
    }
    if (wish_of("KEPT") != NULL) {
        ok_named(run_kept(wish_of("KEPT"), wishes.traced), wish_of("KEPT"));
        return done();
    }
    if (minutes > 0)
        r.end = time(NULL) + (time_t)minutes * 60;
    else if (wish_of("SEED") != NULL && wish_of("RUNS") == NULL)
        r.runs = 1;
    if (is_all) {
        test_laws();
        test_sameness();
        test_shrinking();
        test_kept_seeds();
    }
    failed = run_seeds(&r, wishes, &all);
    if (is_all && wish_of("FRESH") != NULL) {
        r.first = number_of("FRESH", (uint64_t)time(NULL)) * SEEDS_APART;
        printf("# fresh seeds: make roof SEED=%" PRIu64 " RUNS=%" PRIu64 "\n", r.first,
               r.runs);
        failed += run_seeds(&r, wishes, &all);
    }
    print_tally(&all);
    ok_named(failed == 0, "no law is broken");
    return done();
}
