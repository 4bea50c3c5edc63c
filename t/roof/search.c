/* Seeds, one after the other, on as many processors as a run has places. */
#include "t/roof/search.h"

#include "t/roof/shrink.h"
#include "t/support/tap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME_SIZE = 80, SHRINK_CPU_S = 60 };

static struct {
    struct tally sum;
    double cpu_s;
    bool has_shrunk;
} all;

const char *
search_wish(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static void
add(struct tally *sum, const struct tally *t)
{
    sum->runs++;
    sum->turns += t->turns;
    sum->virtual_ms += t->virtual_ms;
    sum->messages += t->messages;
    sum->recipients += t->recipients;
    sum->stored += t->stored;
    sum->reported += t->reported;
    sum->twice += t->twice;
    sum->kills += t->kills;
    sum->cuts += t->cuts;
    sum->reloads += t->reloads;
    sum->starts += t->starts;
    sum->commands += t->commands;
    sum->compared += t->compared;
    sum->explained += t->explained;
    sum->remembered += t->remembered;
    sum->posted += t->posted;
    sum->returned += t->returned;
    sum->forged += t->forged;
    sum->to_dead += t->to_dead;
    sum->dead_tries += t->dead_tries;
    sum->dead_addresses += t->dead_addresses;
}

/* --- A failure --- */

/* A file for t/roof/seeds/, named by KEEP, or in the build. */
static void
keep(const struct wishes *wishes, const struct outcome_of_run *run)
{
    static char list[PLAN_TEXT_MAX];
    char path[2 * NAME_SIZE];
    const char *name = search_wish("KEEP"), *build = search_wish("BUILD");
    const char *only = wishes->only != NULL ? wishes->only : "*";
    if (name != NULL)
        snprintf(path, sizeof(path), SEARCH_KEPT "/%.79s", name);
    else
        snprintf(path, sizeof(path), "%.79s/roof-%" PRIu64,
                 build != NULL ? build : "build", wishes->seed);
    plan_write(&run->plan, list);
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        printf("# %s cannot be written\n", path);
        return;
    }
    fprintf(f, "# %s: %s\n%" PRIu64 " %s %s\n", run->law[0] != '\0' ? run->law : "ends",
            run->reason, wishes->seed, only, list);
    fclose(f);
    printf("# it is in %s: %" PRIu64 " %s %s\n", path, wishes->seed, only, list);
}

static void
shrink(struct wishes wishes, struct outcome_of_run *run)
{
    uint64_t before = run->events;
    printf("# seed %" PRIu64 " is shrunk\n", wishes.seed);
    unsigned runs = shrink_run(&wishes, SHRINK_RUNS_MAX, SHRINK_CPU_S, run);
    if (run->good) {
        printf("# another run of seed %" PRIu64 " is good\n", wishes.seed);
        return;
    }
    printf("# %" PRIu64 " events became %" PRIu64 " in %u runs; what is left:\n",
           before, run->events, runs);
    wishes.traced = false;
    static struct plan left;
    left = run->plan;
    wishes.plan = &left;
    apart_run(&wishes, false, run);
    keep(&wishes, run);
}

/* --- Runs --- */

static unsigned
processors(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < APART_AT_ONCE ? 1 : APART_AT_ONCE;
}

static bool
goes_on(const struct search *s, uint64_t begun, double cpu_s)
{
    if (s->cpu_max_s > 0 && cpu_s >= s->cpu_max_s)
        return false;
    return s->end > 0 ? time(NULL) < s->end : begun < s->runs;
}

/* A defect that an unknown seed finds may be older than what is tested. */
static void
tell_news(const struct search *s, const struct outcome_of_run *run)
{
    char path[2 * NAME_SIZE];
    const char *build = search_wish("BUILD");
    snprintf(path, sizeof(path), "%.79s/%.79s", build != NULL ? build : "build",
             s->news);
    FILE *f = fopen(path, "a");
    if (f == NULL)
        return;
    fprintf(f, "make roof SEED=%" PRIu64 " # %s: %s\n", run->seed,
            run->law[0] != '\0' ? run->law : "ends", run->reason);
    fclose(f);
    printf("# a fresh seed fails: see %s\n", path);
}

static bool
take_end(const struct search *s, struct outcome_of_run *run)
{
    char name[NAME_SIZE];
    if (run->good) {
        add(&all.sum, &run->tally);
        if (s->runs == 1 && s->end == 0)
            printf("# hash %016" PRIx64 "\n", run->tally.hash);
        return true;
    }
    snprintf(name, sizeof(name), "seed %" PRIu64, run->seed);
    if (s->news == NULL)
        ok_named(false, name);
    else
        tell_news(s, run);
    return false;
}

unsigned
search_run(const struct search *s, const struct wishes *wishes)
{
    static struct outcome_of_run run, first;
    struct wishes each = *wishes;
    unsigned failed = 0, running = 0, places = s->runs == 1 ? 1 : processors();
    uint64_t begun = 0;
    double before_s = apart_cpu_s();
    for (;;) {
        while (running < places && failed < s->failures_max &&
               goes_on(s, begun, apart_cpu_s() - before_s)) {
            each.seed = s->first + begun++;
            apart_begin(&each, false);
            running++;
        }
        if (running == 0)
            break;
        apart_end(&run);
        running--;
        if (!take_end(s, &run) && failed++ == 0)
            first = run;
    }
    all.cpu_s += apart_cpu_s() - before_s;
    if (begun < s->runs && s->end == 0 && failed < s->failures_max)
        printf("# %" PRIu64 " of %" PRIu64 " seeds: the CPU time is used up\n", begun,
               s->runs);
    if (failed > 0 && s->shrinks && !all.has_shrunk) {
        all.has_shrunk = true;
        each.seed = first.seed;
        shrink(each, &first);
    }
    return failed;
}

void
search_print(void)
{
    const struct tally *t = &all.sum;
    double cpu_s = all.cpu_s > 0 ? all.cpu_s : 1;
    printf("# %u runs, %" PRId64 " virtual seconds, %" PRIu64
           " turns; %u messages, %u recipients, %u stored, %u twice, %u reported\n",
           t->runs, t->virtual_ms / 1000, t->turns, t->messages, t->recipients,
           t->stored, t->twice, t->reported);
    printf("# %u starts, %u kills, %u power cuts, %u reloads, %u commands; %u times "
           "all was compared, %u reasons and %u histories were judged\n",
           t->starts, t->kills, t->cuts, t->reloads, t->commands, t->compared,
           t->explained, t->remembered);
    printf(
        "# %u messages by HTTP; %u reports came back, and %u forged ones; %u messages "
        "to %u dead addresses, which were tried %u times\n",
        t->posted, t->returned, t->forged, t->to_dead, t->dead_addresses,
        t->dead_tries);
    printf(
        "# %.1f CPU seconds: in each of them %.0f messages and %.0f virtual seconds\n",
        all.cpu_s, t->messages / cpu_s, (double)t->virtual_ms / 1000 / cpu_s);
}
