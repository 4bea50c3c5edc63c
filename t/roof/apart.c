/* Runs in processes of their own. */
#include "t/roof/apart.h"

#include "t/roof/login.h"
#include "t/roof/roof.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAID_LINE = 512 };

/* Shared with the process of the run. */
static struct outcome_of_run *shared;

static void
heard_break(const char *law, const char *format)
{
    snprintf(shared->law, sizeof(shared->law), "%s", law);
    snprintf(shared->reason, sizeof(shared->reason), "%s", format);
    shared->events = roof_events();
}

/* Its events until then are in the trace. */
static void
heard_abort(int number)
{
    shared->events = roof_events();
    signal(number, SIG_DFL);
    raise(number);
}

static noreturn void
run_here(struct wishes wishes, int said)
{
    if (said >= 0 && (dup2(said, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0))
        abort();
    signal(SIGABRT, heard_abort);
    roof_on_break(heard_break);
    wishes.plan = &shared->plan;
    shared->tally = world_run(&wishes);
    shared->events = roof_events();
    shared->good = true;
    fflush(stdout);
    _Exit(0);
}

/* The reason of an end that no law has given: the line of an assertion, or of a
 * sanitizer. */
static void
read_reason(int said, struct outcome_of_run *out)
{
    static const char *const signs[] = {"Assertion", "SUMMARY:", "runtime error"};
    char line[SAID_LINE];
    if (lseek(said, 0, SEEK_SET) != 0)
        abort();
    FILE *f = fdopen(said, "r");
    while (out->reason[0] == '\0' && fgets(line, sizeof(line), f) != NULL)
        for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
            const char *at = strstr(line, signs[i]);
            if (at != NULL)
                snprintf(out->reason, sizeof(out->reason), "%.190s", at);
        }
    fclose(f);
}

static void
begin_sharing(void)
{
    login_prepare();
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
}

void
apart_run(const struct wishes *wishes, bool quiet, struct outcome_of_run *out)
{
    int status = 0, said = quiet ? memfd_create("roof", 0) : -1;
    fflush(stdout);
    if (shared == NULL)
        begin_sharing();
    memset(shared, 0, sizeof(*shared));
    if (wishes->plan != NULL)
        shared->plan = *wishes->plan;
    pid_t child = fork();
    if (child == 0)
        run_here(*wishes, said);
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    *out = *shared;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->good = out->good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (said >= 0)
        read_reason(said, out);
    if (out->signal != 0 && !quiet)
        printf("# seed %" PRIu64 ": the daemon ends by signal %d\n", wishes->seed,
               out->signal);
}

bool
apart_is_same(const struct outcome_of_run *a, const struct outcome_of_run *b)
{
    return !a->good && !b->good && a->signal == b->signal &&
           strcmp(a->law, b->law) == 0 && strcmp(a->reason, b->reason) == 0;
}
