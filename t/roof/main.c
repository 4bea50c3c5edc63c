/* The roof: runs of the whole MTA in virtual time, judged by a model (doc/hacking.md "The
 * roof").
 *
 * SEED=n of the first run, RUNS=n, MINUTES=n instead, TRACE=1 prints everything,
 * ONLY=reload,kill in place of the features that the seed draws. FAILURES=n: it ends
 * after so many; FAST=1: seeds alone. Each seed is a process of its own. */
#include "t/roof/world.h"

#include "t/support/tap.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 100, FAILURES_SHOWN = 10, LINE_SIZE = 1000, NAME_SIZE = 80, SEEDS_MAX = 200, SAME_SEEDS = 3 };

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

/* False: a law is broken, or the process has crashed. */
static bool
run_apart(const struct wishes *wishes, struct tally *out)
{
    int ends[2], status = 0;
    fflush(stdout);
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        struct tally t = world_run(wishes);
        fflush(stdout);
        _Exit(write(ends[1], &t, sizeof(t)) == (ssize_t)sizeof(t) ? 0 : 2);
    }
    close(ends[1]);
    bool whole = read(ends[0], out, sizeof(*out)) == (ssize_t)sizeof(*out);
    close(ends[0]);
    if (waitpid(child, &status, 0) != child)
        abort();
    if (WIFSIGNALED(status))
        printf("# seed %" PRIu64 ": the daemon ends by signal %d\n", wishes->seed,
               WTERMSIG(status));
    return whole && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Each law can be broken, and says so. */
static void
test_laws(void)
{
    static const char *const laws[] = {"once", "whole", "in time", "bounds", "truth",
                                       "clean"};
    for (size_t i = 0; i < sizeof(laws) / sizeof(*laws); i++) {
        struct wishes wishes = {.seed = 3, .only = "mood", .broken = laws[i]};
        char line[LINE_SIZE] = "", name[NAME_SIZE];
        struct tally none;
        FILE *said = tmpfile();
        int out = dup(STDOUT_FILENO);
        fflush(stdout);
        if (said == NULL || out < 0 || dup2(fileno(said), STDOUT_FILENO) < 0)
            abort();
        bool good = run_apart(&wishes, &none);
        fflush(stdout);
        if (dup2(out, STDOUT_FILENO) < 0)
            abort();
        close(out);
        rewind(said);
        snprintf(name, sizeof(name), " s: %s: ", laws[i]);
        bool named = false;
        while (!named && fgets(line, sizeof(line), said) != NULL)
            named = strncmp(line, "seed ", 5) == 0 && strstr(line, name) != NULL;
        fclose(said);
        snprintf(name, sizeof(name), "the law '%s' can be broken", laws[i]);
        ok_named(!good && named, name);
    }
}

/* Runs that once found something: t/roof/seeds/NAME has a line SEED ONLY. */
static void
test_kept_seeds(void)
{
    DIR *folder = opendir("t/roof/seeds");
    struct dirent *entry;
    char names[SEEDS_MAX][NAME_SIZE], path[2 * NAME_SIZE], line[LINE_SIZE];
    size_t count = 0;
    while (folder != NULL && count < SEEDS_MAX && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            snprintf(names[count++], NAME_SIZE, "%.79s", entry->d_name);
    if (folder != NULL)
        closedir(folder);
    qsort(names, count, NAME_SIZE,
          (int (*)(const void *, const void *))(void (*)(void))strcmp);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "t/roof/seeds/%.79s", names[i]);
        FILE *f = fopen(path, "r");
        bool good = f != NULL;
        while (good && fgets(line, sizeof(line), f) != NULL)
            if (line[0] != '#') {
                struct wishes wishes = {.seed = strtoull(line, NULL, 10)};
                struct tally none;
                line[strcspn(line, "\n")] = '\0';
                wishes.only = strchr(line, ' ') != NULL ? strchr(line, ' ') + 1 : NULL;
                good = run_apart(&wishes, &none);
            }
        if (f != NULL)
            fclose(f);
        ok_named(good, names[i]);
    }
}

/* The same seed is the same run. */
static void
test_sameness(void)
{
    for (uint64_t seed = 1; seed <= SAME_SEEDS; seed++) {
        struct wishes wishes = {.seed = seed * 1000, .only = "mood,kill,stop,path,operator"};
        struct tally a = {0}, b = {0};
        bool good = run_apart(&wishes, &a) && run_apart(&wishes, &b);
        ok_named(good && a.hash == b.hash && a.turns == b.turns,
                 "the same seed gives the same trace");
    }
}

static void
add(struct tally *all, const struct tally *t)
{
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
}

int
main(void)
{
    uint64_t first = number_of("SEED", 1), runs = number_of("RUNS", RUNS),
             minutes = number_of("MINUTES", 0), seed = first,
             most = number_of("FAILURES", FAILURES_SHOWN);
    struct wishes wishes = {.only = wish_of("ONLY"),
                            .traced = number_of("TRACE", 0) != 0};
    struct tally all = {0}, one;
    unsigned failed = 0;
    time_t end = time(NULL) + (time_t)minutes * 60;
    if (wish_of("SEED") != NULL && wish_of("RUNS") == NULL && minutes == 0)
        runs = 1;
    if (runs > 1 && minutes == 0 && wishes.only == NULL && wish_of("FAST") == NULL) {
        test_laws();
        test_sameness();
        test_kept_seeds();
    }
    for (; minutes > 0 ? time(NULL) < end : seed < first + runs; seed++) {
        char name[NAME_SIZE];
        wishes.seed = seed;
        bool good = run_apart(&wishes, &one);
        snprintf(name, sizeof(name), "seed %" PRIu64, seed);
        if (!good) {
            failed++;
            ok_named(false, name);
        }
        if (good) {
            add(&all, &one);
            if (runs == 1)
                printf("# hash %016" PRIx64 "\n", one.hash);
        }
        if (failed == most)
            break;
    }
    printf("# %" PRIu64 " runs, %" PRId64 " virtual seconds, %" PRIu64
           " turns; %u messages, %u recipients, %u stored, %u twice, %u reported\n",
           seed - first, all.virtual_ms / 1000, all.turns, all.messages, all.recipients,
           all.stored, all.twice, all.reported);
    printf("# %u starts, %u kills, %u power cuts, %u reloads, %u commands\n", all.starts,
           all.kills, all.cuts, all.reloads, all.commands);
    ok_named(failed == 0, "no law is broken");
    return done();
}
