/* The roof: runs of the whole MTA in virtual time, judged by a model (doc/dev/hacking.md "The
 * roof").
 *
 * SEED=n of the first run, RUNS=n, MINUTES=n instead, TRACE=1 prints everything,
 * ONLY=reload,kill in place of the features that the seed draws, WITHOUT='mail:0-3' (plan.h).
 * KEPT=NAME: that file of t/roof/seeds alone. The first failure is shrunk and written,
 * as t/roof/seeds/NAME with KEEP=NAME. FAILURES=n: it ends after so many; FAST=1: no
 * shrinking. Without any of them also the tests of the roof, kept seeds, and fresh ones:
 * FRESH=n says which. Each run is a process of its own. */
#include "t/roof/search.h"
#include "t/roof/shrink.h"

#include "t/support/tap.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FAILURES_SHOWN = 10,
    NAME_SIZE = 80,
    SEEDS_MAX = 200,
    SAME_SEEDS = 3,
    DAY_SEED = 2,
    SEEDS_APART = 1000, /* of two seconds */
    EVENTS_SHRUNK = 300,
    SHRINK_CPU_S = 100
};

#define FRESH_NEWS "roof-fresh"

static struct outcome_of_run run; /* the last one */
static struct plan left_out;

static uint64_t
number_of(const char *name, uint64_t preset)
{
    const char *text = search_wish(name);
    return text != NULL ? strtoull(text, NULL, 10) : preset;
}

/* Each law can be broken, and says so. */
static void
test_laws(void)
{
    static const struct {
        const char *broken, *law, *only; /* NULL: mood */
    } rows[] = {
        {"once",            "once",    NULL              },
        {"whole",           "whole",   NULL              },
        {"in time",         "in time", NULL              },
        {"bounds",          "bounds",  NULL              },
        {"truth",           "truth",   NULL              },
        {"log",             "truth",   NULL              },
        {"fates",           "truth",   "relay"           },
        {"old",             "truth",   "group"           },
        {"counts",          "truth",   NULL              },
        {"why",             "truth",   NULL              },
        {"clean",           "clean",   NULL              },
        {"metrics",         "truth",   "http"            },
        {"upgrade",         "start",   "upgrade"         },
        {"once",            "once",    "group"           },
        {"shared rate",     "bounds",  "group"           },
        {"shared sessions", "bounds",  "group"           },
        {"cluster status",  "truth",   "group"           },
        {"warnings",        "truth",   "group"           },
        {"joined",          "once",    "fragment"        },
        {"policy",          "bounds",  "sts"             },
        {"token",           "bounds",  "oauth"           },
        {"copy",            "once",    "copy"            },
        {"returned",        "truth",   "return"          },
        {"dead",            "dead",    "dead"            },
        {"suppressed",      "truth",   "dead,mood"       },
        {"dead in a group", "dead",    "dead,group"      },
        {"release",         "in time", "release"         },
        {"requiretls",      "bounds",  "requiretls"      },
        {"leak",            "bounds",  NULL              },
        {"files",           "bounds",  NULL              },
        {"window",          "bounds",  NULL              },
        {"history",         "truth",   NULL              },
        {"webhook",         "once",    "mood,webhook"    },
        {"news",            "truth",   "mood,webhook"    },
        {"age",             "in time", "mood,weather,age"},
        {"probe",           "in time", NULL              },
        {"health",          "in time", "mood,http"       },
        {"fenced",          "fenced",  "sibling,mood"    },
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
    (void)shrink_run(&wishes, SHRINK_RUNS_MAX, SHRINK_CPU_S, &run);
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
    snprintf(path, sizeof(path), SEARCH_KEPT "/%.79s", name);
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
    DIR *folder = opendir(SEARCH_KEPT);
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

/* A day of all that people take a provider for (WITH_DAY). */
static void
test_day(void)
{
    struct wishes wishes = {.seed = DAY_SEED, .only = "day"};
    apart_run(&wishes, false, &run);
    const struct tally *t = &run.tally;
    ok_named(run.good, "a day breaks no law");
    ok_named(t->posted > 0 && t->returned > 0 && t->forged > 0 &&
                 t->to_dead > t->dead_addresses && t->dead_addresses > 0,
             "and has mail of each kind");
}

struct done {
    unsigned dead_tries, claims;
};

/* Seeds from 1 to that one, of these features in turn. */
static struct done
run_kinds(const char *const kinds[2], uint64_t last)
{
    struct done sum = {0};
    for (uint64_t seed = 1; seed <= last; seed++) {
        struct wishes wishes = {.seed = seed, .only = kinds[seed % 2]};
        apart_run(&wishes, false, &run);
        ok_named(run.good, kinds[seed % 2]);
        sum.dead_tries += run.tally.dead_tries;
        sum.claims += run.tally.claims;
    }
    return sum;
}

/* Hosts of a group that share their lists, which seeds without ONLY do not have. */
static void
test_shared_list(void)
{
    static const char *const kinds[] = {"group,redis,mood,kill,dead",
                                        "group,mood,kill,cut,reload,dead"};
    ok_named(run_kinds(kinds, 8).dead_tries > 0, "a group tries dead addresses");
}

/* Hosts of a group that are lost or cut off, and adopted by others. */
static void
test_siblings(void)
{
    static const char *const kinds[] = {"sibling,mood", "sibling,mood,kill,stop"};
    ok_named(run_kinds(kinds, 6).claims > 0, "a host adopts the mail of another");
}

/* --- Seeds --- */

/* A run may need many times as long with sanitizers. */
static const struct {
    uint64_t runs;
    double cpu_max_s; /* of the fixed ones, and of the fresh ones */
} bounds = {TAP_ADDRESS_SANITIZER ? 100 : 300, 290};

/* Fixed ones, and others each time. */
static unsigned
test_seeds(struct search s, const struct wishes *wishes)
{
    unsigned failed;
    s.cpu_max_s = bounds.cpu_max_s;
    failed = search_run(&s, wishes);
    s.first = number_of("FRESH", (uint64_t)time(NULL)) * SEEDS_APART;
    s.news = FRESH_NEWS;
    printf("# fresh seeds: make roof SEED=%" PRIu64 " RUNS=%" PRIu64 "\n", s.first,
           s.runs);
    (void)search_run(&s, wishes);
    return failed;
}

static bool
wants_all(void)
{
    static const char *const names[] = {"SEED", "RUNS", "MINUTES", "ONLY", "KEPT"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (search_wish(names[i]) != NULL)
            return false;
    return true;
}

int
main(void)
{
    struct wishes wishes = {.only = search_wish("ONLY"),
                            .traced = number_of("TRACE", 0) != 0};
    struct search s = {.first = number_of("SEED", 1),
                       .runs = number_of("RUNS", bounds.runs),
                       .failures_max = (unsigned)number_of("FAILURES", FAILURES_SHOWN),
                       .shrinks = search_wish("FAST") == NULL};
    uint64_t minutes = number_of("MINUTES", 0);
    if (search_wish("WITHOUT") != NULL) {
        wishes.plan = &left_out;
        if (!plan_read(&left_out, text_from(search_wish("WITHOUT"))))
            return fprintf(stderr, "WITHOUT is not a list as mail:0-3.7 kill:2\n"), 64;
    }
    if (search_wish("KEPT") != NULL) {
        ok_named(run_kept(search_wish("KEPT"), wishes.traced), search_wish("KEPT"));
        return done();
    }
    if (minutes > 0)
        s.end = time(NULL) + (time_t)minutes * 60;
    else if (search_wish("SEED") != NULL && search_wish("RUNS") == NULL)
        s.runs = 1;
    if (wants_all()) {
        test_laws();
        test_sameness();
        test_shrinking();
        test_kept_seeds();
        test_day();
        test_shared_list();
        test_siblings();
    }
    unsigned failed = wants_all() ? test_seeds(s, &wishes) : search_run(&s, &wishes);
    search_print();
    ok_named(failed == 0, "no law is broken");
    return done();
}
