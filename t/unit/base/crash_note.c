/* Which ends leave a note: signals of the process itself do, those from outside do not;
 * and what was there before us is found by the signal as well. */
#include "t/support/tap.h"

#include "base/crash.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct page {
    volatile uint32_t note, other, handled;
};

static struct page *
page(void)
{
    static struct page *one;
    if (one == NULL)
        one = mmap(NULL, sizeof(*one), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return one;
}

static void
reset_signals(void)
{
    static const int all[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        signal(all[i], SIG_DFL); /* a sanitizer's would end us in its own way */
}

/* How a child ends that does this; 0: not by a signal. */
static int
ends_by(void (*work)(void))
{
    int status = 0;
    page()->note = page()->other = page()->handled = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        reset_signals();
        work();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
asserts(void)
{
    crash_mark(&page()->note);
    abort();
}

static void
reads_nowhere(void)
{
    crash_mark(&page()->note);
    char *volatile nowhere =
        mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page()->other = (uint32_t)*nowhere;
}

static unsigned
sink(const volatile char *stack, unsigned depth)
{
    volatile char more[4096];
    memset((char *)(uintptr_t)more, *stack, sizeof(more));
    return depth == UINT32_MAX
               ? 0
               : sink(more, depth + 1) + (unsigned)more[depth % sizeof(more)];
}

static void
overflows(void)
{
    crash_mark(&page()->note);
    page()->other = sink("x", 0);
}

static void
is_sent(int number)
{
    crash_mark(&page()->note);
    kill(getpid(), number);
    for (;;)
        pause();
}

static void
is_sent_abort(void)
{
    is_sent(SIGABRT);
}
static void
is_sent_segv(void)
{
    is_sent(SIGSEGV);
}
static void
is_sent_bus(void)
{
    is_sent(SIGBUS);
}
static void
is_sent_fpe(void)
{
    is_sent(SIGFPE);
}
static void
is_sent_ill(void)
{
    is_sent(SIGILL);
}
static void
is_sent_kill(void)
{
    is_sent(SIGKILL);
}
static void
is_sent_term(void)
{
    is_sent(SIGTERM);
}

static void
marks_no_more(void)
{
    crash_mark(&page()->note);
    crash_unmark(&page()->note);
    abort();
}

static void
marks_another(void)
{
    crash_mark(&page()->note);
    crash_mark(&page()->other);
    crash_unmark(&page()->note);
    abort();
}

static void
note_called(void *context)
{
    ((struct page *)context)->other = 1 + ((struct page *)context)->note;
}

static void
calls(void)
{
    crash_mark(&page()->note);
    crash_call(note_called, page());
    reads_nowhere();
}

static void
calls_no_more(void)
{
    crash_mark(&page()->note);
    crash_call(note_called, page());
    crash_uncall(NULL);
    crash_uncall(page());
    abort();
}

static void
is_sent_kill_with_call(void)
{
    crash_call(note_called, page());
    is_sent(SIGKILL);
}

static void
on_abort(int number)
{
    (void)number;
    page()->handled = 1;
}

static void
was_handled(void)
{
    signal(SIGABRT, on_abort);
    crash_mark(&page()->note);
    abort();
}

static void
ends_well(void)
{
    crash_mark(&page()->note);
}

int
main(void)
{
    const struct {
        const char *name;
        void (*work)(void);
        int number;
        uint32_t note, other, handled;
    } cases[] = {
        {"abort()",                asserts,       SIGABRT, 1, 0, 0},
        {"a wild pointer",         reads_nowhere, SIGSEGV, 1, 0, 0},
        {"a stack that overflows", overflows,     SIGSEGV, 1, 0, 0},
        {"SIGABRT of a watchdog",  is_sent_abort, SIGABRT, 1, 0, 0},
        {"SIGSEGV",                is_sent_segv,  SIGSEGV, 1, 0, 0},
        {"SIGBUS",                 is_sent_bus,   SIGBUS,  1, 0, 0},
        {"SIGFPE",                 is_sent_fpe,   SIGFPE,  1, 0, 0},
        {"SIGILL",                 is_sent_ill,   SIGILL,  1, 0, 0},
        {"SIGKILL",                is_sent_kill,  SIGKILL, 0, 0, 0},
        {"SIGTERM",                is_sent_term,  SIGTERM, 0, 0, 0},
        {"no word any more",       marks_no_more, SIGABRT, 0, 0, 0},
        {"another word",           marks_another, SIGABRT, 0, 1, 0},
        {"a handler before ours",  was_handled,   SIGABRT, 1, 0, 1},
        {"an end in order",        ends_well,     0,       0, 0, 0},
        {"a call behind the mark", calls,         SIGSEGV, 1, 2, 0},
        {"no call any more",       calls_no_more, SIGABRT, 1, 0, 0},
        {"SIGKILL, with a call",   is_sent_kill_with_call, SIGKILL, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        printf("# %s\n", cases[i].name);
        is_number(ends_by(cases[i].work), cases[i].number,
                  "the process ends as without us");
        is_number(page()->note, cases[i].note, "the note");
        is_number(page()->other, cases[i].other, "another note");
        is_number(page()->handled, cases[i].handled,
                  "what was there before us has its turn");
    }
    return done();
}
