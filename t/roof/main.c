/* The roof: runs of the whole MTA in virtual time, judged by a model (doc/hacking.md "The
 * roof").
 *
 * SEED=n of the first run, RUNS=n, MINUTES=n instead, TRACE=1 prints everything,
 * ONLY=reload,kill in place of the features that the seed draws. Each seed is a process
 * of its own. */
#include "t/roof/world.h"

#include "t/support/tap.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 100, FAILURES_SHOWN = 10 };

static uint64_t
number_of(const char *name, uint64_t preset)
{
    const char *text = getenv(name);
    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : preset;
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
             minutes = number_of("MINUTES", 0), seed = first;
    const char *only = getenv("ONLY");
    struct wishes wishes = {.only = only != NULL && only[0] != '\0' ? only : NULL,
                            .traced = number_of("TRACE", 0) != 0};
    struct tally all = {0}, one;
    unsigned failed = 0;
    time_t end = time(NULL) + (time_t)minutes * 60;
    if (getenv("SEED") != NULL && getenv("RUNS") == NULL && minutes == 0)
        runs = 1;
    for (; minutes > 0 ? time(NULL) < end : seed < first + runs; seed++) {
        char name[80];
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
        if (failed == FAILURES_SHOWN)
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
