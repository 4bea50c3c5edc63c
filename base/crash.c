/* The handler of signals that end the process. */
#include "base/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum { STACK_SIZE = 16 * 1024 }; /* the normal stack may have overflowed */
/* SIGSYS is not among them: a system call that the sandbox refuses returns an error, and the
 * kill for others cannot be caught (base/sandbox/sandbox_seccomp.c). */
static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { SIGNALS = sizeof(fatal) / sizeof(*fatal) };

struct crash {
    volatile uint32_t *volatile word;
    void (*volatile run)(void *context);
    void *volatile context;
    struct sigaction before[SIGNALS];
};

/* Static, since a signal handler gets no context. */
static struct crash *
crash(void)
{
    static struct crash one;
    return &one;
}

/* On return the failed instruction runs again, but a signal that was sent does not
 * come again. Either way the previous handler (a sanitizer, the default) has to see
 * the signal. */
static void
on_crash(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    (void)context;
    if (crash()->word != NULL)
        *crash()->word = 1;
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(fatal[i], &crash()->before[i], NULL);
    if (crash()->run != NULL)
        crash()->run(crash()->context);
    if (info->si_code <= 0 || info->si_code == SI_KERNEL)
        raise(number);
    errno = saved;
}

static void
take_signals(void)
{
    static bool taken;
    static char memory[STACK_SIZE];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK};
    action.sa_sigaction = on_crash;
    if (taken)
        return;
    taken = true;
    sigemptyset(&action.sa_mask);
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaction(fatal[i], &action, &crash()->before[i]);
}

void
crash_mark(volatile uint32_t *word)
{
    crash()->word = word;
    take_signals();
}

void
crash_unmark(volatile uint32_t *word)
{
    if (crash()->word == word)
        crash()->word = NULL;
}

void
crash_call(void (*run)(void *context), void *context)
{
    crash()->run = NULL;
    crash()->context = context;
    crash()->run = run;
    take_signals();
}

void
crash_uncall(const void *context)
{
    if (crash()->context == context)
        crash()->run = NULL;
}
