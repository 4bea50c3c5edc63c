/* Runs in processes of their own. */
#include "t/roof/apart.h"

#include "t/roof/login.h"
#include "t/roof/roof.h"
#include "t/support/tap.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SAID_LINE = 4096,
    CPU_MAX_S = 60,
    MAPPED = 32 << 20,
    SLOWER = 10 /* with sanitizers */
};

/* A run under way, and what is shared with its process. */
static struct slot {
    struct outcome_of_run *shared;
    pid_t child; /* 0: none */
    uint64_t seed;
    bool quiet;
    int said; /* all that it prints */
} slots[APART_AT_ONCE];
static struct outcome_of_run *shared; /* in the process of the run */

static void
find_kind(struct outcome_of_run *out)
{
    struct text rest = text_from(out->reason), word;
    struct buffer kind;
    buffer_init(&kind, APART_REASON_MAX);
    while (text_word(&rest, " ", &word)) {
        bool has_digit = false;
        for (size_t i = 0; i < word.length; i++)
            has_digit = has_digit || (word.at[i] >= '0' && word.at[i] <= '9');
        (void)!(buffer_add(&kind, has_digit ? TEXT("#") : word) &&
                buffer_add_byte(&kind, ' '));
    }
    (void)text_copy(out->kind, sizeof(out->kind),
                    text_before(buffer_text(&kind), APART_KIND_MAX - 1));
    buffer_free(&kind);
}

/* In one line. */
static void
copy_reason(const char *reason, struct outcome_of_run *out)
{
    snprintf(out->reason, sizeof(out->reason), "%s", reason);
    for (char *at = out->reason; *at != '\0'; at++)
        *at = *at >= ' ' ? *at : ' ';
}

static void
heard_break(const char *law, const char *reason)
{
    snprintf(shared->law, sizeof(shared->law), "%s", law);
    copy_reason(reason, shared);
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

/* One that turns without an end is ended, and fails. */
static void
limit_cpu(void)
{
    struct rlimit limit;
    rlim_t most = CPU_MAX_S * (TAP_ADDRESS_SANITIZER ? SLOWER : 1);
    if (getrlimit(RLIMIT_CPU, &limit) != 0)
        abort();
    if (limit.rlim_cur > most)
        limit.rlim_cur = most;
    (void)setrlimit(RLIMIT_CPU, &limit);
}

static noreturn void
run_here(struct wishes wishes, const struct slot *s)
{
    shared = s->shared;
    if (s->said >= 0 &&
        (dup2(s->said, STDOUT_FILENO) < 0 || dup2(s->said, STDERR_FILENO) < 0))
        abort();
    signal(SIGABRT, heard_abort);
    limit_cpu();
    /* a process that ends soon gives nothing back */
    (void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
    (void)mallopt(M_MMAP_THRESHOLD, MAPPED);
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
read_reason(const char *line, struct outcome_of_run *out)
{
    static const char *const signs[] = {"Assertion", "SUMMARY:", "runtime error"};
    for (size_t i = 0; out->reason[0] == '\0' && i < sizeof(signs) / sizeof(*signs);
         i++) {
        const char *at = strstr(line, signs[i]);
        if (at != NULL)
            copy_reason(at, out);
    }
}

static void
read_said(struct slot *s, struct outcome_of_run *out)
{
    char line[SAID_LINE];
    if (lseek(s->said, 0, SEEK_SET) != 0)
        abort();
    FILE *f = fdopen(s->said, "r");
    while (fgets(line, sizeof(line), f) != NULL) {
        read_reason(line, out);
        if (!s->quiet)
            fputs(line, stdout);
    }
    fclose(f);
}

static void
share(struct slot *s)
{
    login_prepare();
    s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s->shared == MAP_FAILED)
        abort();
}

/* 0: one that is free. */
static struct slot *
slot_of(pid_t child)
{
    for (unsigned i = 0; i < APART_AT_ONCE; i++)
        if (slots[i].child == child)
            return &slots[i];
    abort();
}

void
apart_begin(const struct wishes *wishes, bool quiet)
{
    struct slot *s = slot_of(0);
    fflush(stdout);
    if (s->shared == NULL)
        share(s);
    memset(s->shared, 0, sizeof(*s->shared));
    if (wishes->plan != NULL)
        s->shared->plan = *wishes->plan;
    s->seed = wishes->seed;
    s->quiet = quiet;
    s->said = wishes->traced ? -1 : memfd_create("roof", MFD_CLOEXEC);
    s->child = fork();
    if (s->child == 0)
        run_here(*wishes, s);
    if (s->child < 0)
        abort();
}

void
apart_end(struct outcome_of_run *out)
{
    int status = 0;
    pid_t child = wait(&status);
    if (child <= 0)
        abort();
    struct slot *s = slot_of(child);
    *out = *s->shared;
    out->seed = s->seed;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    out->good = out->good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    s->child = 0;
    if (s->said >= 0)
        read_said(s, out);
    find_kind(out);
    if (out->signal != 0 && !s->quiet)
        printf("# seed %" PRIu64 ": the daemon ends by signal %d\n", s->seed,
               out->signal);
}

void
apart_run(const struct wishes *wishes, bool quiet, struct outcome_of_run *out)
{
    apart_begin(wishes, quiet);
    apart_end(out);
}

double
apart_cpu_s(void)
{
    struct tms used; /* getrusage() is a stand-in here (roof.c) */
    if (times(&used) == (clock_t)-1)
        abort();
    return (double)(used.tms_cutime + used.tms_cstime) / (double)sysconf(_SC_CLK_TCK);
}

bool
apart_is_same(const struct outcome_of_run *a, const struct outcome_of_run *b)
{
    return !a->good && !b->good && a->signal == b->signal &&
           strcmp(a->law, b->law) == 0 && strcmp(a->kind, b->kind) == 0;
}
